#include "c.h"
__constant__ float coef[3]={1,2,3};__device__ int counter=5;
__host__ __device__ float eval(float x){return coef[0]+x*(coef[1]+x*coef[2]);}
__global__ void k(float*o){o[threadIdx.x]=eval(threadIdx.x);atomicAdd(&counter,1);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f %f %d\n",o[2],eval(2),counter);cudaFree(o);}
