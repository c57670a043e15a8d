#include "c.h"
__device__ float warpSum(float v){for(int o=16;o;o/=2)v+=__shfl_down_sync(~0u,v,o);return v;}
__global__ void k(float*o){__shared__ float s[32];float v=warpSum(1.f);if(threadIdx.x%32==0)s[threadIdx.x/32]=v;__syncthreads();if(threadIdx.x<32){v=warpSum(s[threadIdx.x]);if(threadIdx.x==0)*o=v;}}
int main(){float*o;CHECK(cudaMallocManaged(&o,4));k<<<1,96>>>(o);CHECK(cudaDeviceSynchronize());printf("%f\n",*o);cudaFree(o);}
