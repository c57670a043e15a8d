#include "c.h"
__constant__ float a[12000];
template<class T>struct Tab{T v[5000];};
__constant__ Tab<float> b;
__global__ void k(float*o){o[threadIdx.x]=a[threadIdx.x]+b.v[threadIdx.x];}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
