#include "c.h"
__global__ void k(const int*a,int*o,int n){__shared__ bool stop;if(threadIdx.x==0)stop=false;__syncthreads();int i=threadIdx.x,it=0;while(true){if(a[i+it*64]==7||it==n-1)stop=true;it++;__syncthreads();bool s=stop;__syncthreads();if(s)break;}o[i]=it;}
__global__ void k2(const int*a,int*o,int n){int it=0;while(it<n){int f=a[threadIdx.x+it*64]==7;it++;if(__syncthreads_or(f))break;}o[threadIdx.x]=it;}
int main(){int*a,*o;CHECK(cudaMallocManaged(&a,64*8*4));CHECK(cudaMallocManaged(&o,256));for(int i=0;i<512;i++)a[i]=i==300?7:0;k<<<1,64>>>(a,o,8);CHECK(cudaDeviceSynchronize());printf("%d\n",o[0]);k2<<<1,64>>>(a,o,8);CHECK(cudaDeviceSynchronize());printf("%d\n",o[9]);cudaFree(a);cudaFree(o);}
