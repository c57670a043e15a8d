#include "c.h"
__global__ void sum(const int*a,int n,int*o){int i=threadIdx.x;if(i<n){unsigned m=(1u<<n)-1;int v=a[i];for(int of=16;of;of>>=1)v+=__shfl_down_sync(m,v,of);if(i==0)*o=v;}}
int main(){int h[20],*a,*o,r;for(int i=0;i<20;i++)h[i]=1;CHECK(cudaMalloc(&a,80));CHECK(cudaMalloc(&o,4));CHECK(cudaMemcpy(a,h,80,cudaMemcpyHostToDevice));sum<<<1,32>>>(a,20,o);CHECK(cudaMemcpy(&r,o,4,cudaMemcpyDeviceToHost));printf("%d\n",r);cudaFree(a);cudaFree(o);}
