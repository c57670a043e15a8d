#include "c.h"
__global__ void k(const int*a,int*o,int n){__shared__ bool stop;if(threadIdx.x==0)stop=false;__syncthreads();int i=threadIdx.x,it=0;while(!stop){if(a[i+it*64]==7||it==n-1)stop=true;it++;__syncthreads();}o[i]=it;}
int main(){int*a,*o;CHECK(cudaMallocManaged(&a,64*8*4));CHECK(cudaMallocManaged(&o,256));for(int i=0;i<512;i++)a[i]=i==300?7:0;k<<<1,64>>>(a,o,8);CHECK(cudaDeviceSynchronize());printf("%d\n",o[0]);cudaFree(a);cudaFree(o);}
