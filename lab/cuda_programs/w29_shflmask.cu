#include "c.h"
__global__ void k(const int*a,int n,int*o){int i=threadIdx.x;int v=0;if(i<n){v=a[i];for(int of=16;of;of/=2)v+=__shfl_down_sync(0xffffffff,v,of);}__syncthreads();if(i==0)*o=v;}
int main(){int*a,*o;CHECK(cudaMallocManaged(&a,128));CHECK(cudaMallocManaged(&o,4));for(int i=0;i<32;i++)a[i]=1;k<<<1,32>>>(a,20,o);CHECK(cudaDeviceSynchronize());printf("%d\n",*o);cudaFree(a);cudaFree(o);}
