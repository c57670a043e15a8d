#include "c.h"
#include <new>
struct B{int k=3;__host__ __device__ virtual int f(){return k;}};
struct D:B{__host__ __device__ int f()override{return k+1;}};
__global__ void mk(void*m){new(m)D;}
int main(){B*p;CHECK(cudaMallocManaged(&p,sizeof(D)));mk<<<1,1>>>(p);CHECK(cudaDeviceSynchronize());printf("%d\n",p->f());cudaFree(p);}
