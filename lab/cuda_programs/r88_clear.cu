#include "c.h"
__global__ void k1(int*r,int*o){int j=threadIdx.x;o[j]=r[0];if(j==31)r[0]=1;}      // same value as there was, no read by the writer first
__global__ void k2(int*r,int*o){int j=threadIdx.x;int v=r[0];o[j]=v;if(j==31&&v==0)r[0]=1;}
int main(){int*r,*o;CHECK(cudaMalloc(&r,4));CHECK(cudaMalloc(&o,128));int h[32]={1};CHECK(cudaMemcpy(r,h,4,cudaMemcpyHostToDevice));k1<<<1,32>>>(r,o);CHECK(cudaMemset(r,0,4));k2<<<1,32>>>(r,o);CHECK(cudaMemcpy(h,o,128,cudaMemcpyDeviceToHost));printf("%d\n",h[0]);cudaFree(r);cudaFree(o);}
