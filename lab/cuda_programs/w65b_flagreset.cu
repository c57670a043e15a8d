#include "c.h"
__global__ void k(int*a,int n,int*changed){int i=blockIdx.x*blockDim.x+threadIdx.x;if(threadIdx.x==0)*changed=0;__syncthreads();if(i<n&&a[i]>0){a[i]--;*changed=1;}}
int main(){int*a,*c;CHECK(cudaMallocManaged(&a,1024));CHECK(cudaMallocManaged(&c,4));for(int i=0;i<256;i++)a[i]=i<192?i%3:i%10;int it=0;do{k<<<4,64>>>(a,256,c);CHECK(cudaDeviceSynchronize());it++;}while(*c);printf("%d\n",it);cudaFree(a);cudaFree(c);}
