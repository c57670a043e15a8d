#include "c.h"
__global__ void k(float*o){int l=threadIdx.x;float v=l;if(l<16){for(int s=16;s;s>>=1)v+=__shfl_down_sync(0xffff,v,s);if(l==0)o[0]=v;}}
int main(){float*o;CHECK(cudaMallocManaged(&o,4));k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f\n",*o);cudaFree(o);}
