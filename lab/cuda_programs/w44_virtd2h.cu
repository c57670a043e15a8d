#include "c.h"
#include <new>
struct B{int k=3;__host__ __device__ virtual int f(){return k;}__host__ __device__ virtual ~B(){}};struct D:B{__host__ __device__ int f()override{return 7;}};
__global__ void mk(B*b){new(b)D;}
int main(){B*d;CHECK(cudaMalloc(&d,sizeof(D)));mk<<<1,1>>>(d);B*h=(B*)malloc(sizeof(D));CHECK(cudaMemcpy((void*)h,d,sizeof(D),cudaMemcpyDeviceToHost));printf("%d\n",h->f());cudaFree(d);free(h);}
