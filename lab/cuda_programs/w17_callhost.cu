#include "c.h"
namespace gpu{__device__ float act(float x){return x>0?x:0;}}
#define ACT(x) gpu::act(x)
__global__ void k(float*o){o[threadIdx.x]=ACT(o[threadIdx.x]);}
float ref(float x){return ACT(x);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));for(int i=0;i<32;i++)o[i]=i-5;k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f %f\n",o[2],ref(-3));cudaFree(o);}
