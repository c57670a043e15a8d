#include "c.h"
__global__ void sum(const float*a,int n,float*o){int i=threadIdx.x;if(i<n){unsigned m=__ballot_sync(__activemask(),true);float v=a[i];for(int of=16;of;of>>=1)v+=__shfl_down_sync(m,v,of);if(i==0)*o=v;}}
int main(){float h[20],*a,*o,r;for(int i=0;i<20;i++)h[i]=1;CHECK(cudaMalloc(&a,80));CHECK(cudaMalloc(&o,4));CHECK(cudaMemcpy(a,h,80,cudaMemcpyHostToDevice));sum<<<1,32>>>(a,20,o);CHECK(cudaMemcpy(&r,o,4,cudaMemcpyDeviceToHost));printf("%f\n",r);cudaFree(a);cudaFree(o);}
