#include "c.h"
__device__ float sq(float x){return x*x;}
template<class F>__global__ void map(float*o,F f){o[threadIdx.x]=f(threadIdx.x);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));map<<<1,32>>>(o,sq);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
