#include "c.h"
typedef float(*op_t)(float);__device__ float sq(float x){return x*x;}
__device__ op_t p=sq;__constant__ op_t t[3];
__global__ void k(float*o,int n){o[threadIdx.x]=t[threadIdx.x%n](2);}
int main(){op_t h;CHECK(cudaMemcpyFromSymbol(&h,p,sizeof h));CHECK(cudaMemcpyToSymbol(t,&h,sizeof h));float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o,1);CHECK(cudaDeviceSynchronize());k<<<1,32>>>(o,3);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
