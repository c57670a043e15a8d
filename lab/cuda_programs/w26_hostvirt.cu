#include "c.h"
struct B{int k=3;__host__ __device__ virtual int f(){return k;}__host__ __device__ virtual ~B(){}};
__global__ void mk(B**p){*p=new B;}
int main(){B**p;CHECK(cudaMallocManaged(&p,8));mk<<<1,1>>>(p);CHECK(cudaDeviceSynchronize());printf("%d\n",(*p)->f());}
