#include "c.h"
__global__ void k1(int*r,int*o,int k){int j=threadIdx.x;o[j]=r[k];if(r[j])r[j]=1;}
__global__ void k2(int*r,int*o,int k){int j=threadIdx.x;if(r[j])r[j]=1;o[j]=r[k];}
int main(){int*r,*o;CHECK(cudaMalloc(&r,128));CHECK(cudaMalloc(&o,128));int h[32];for(int i=0;i<32;i++)h[i]=1;CHECK(cudaMemcpy(r,h,128,cudaMemcpyHostToDevice));k2<<<1,32>>>(r,o,0);puts("k1 31");k1<<<1,32>>>(r,o,31);CHECK(cudaMemcpy(h,o,128,cudaMemcpyDeviceToHost));printf("%d\n",h[3]);cudaFree(r);cudaFree(o);}
