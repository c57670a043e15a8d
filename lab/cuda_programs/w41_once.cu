#include "c.h"
__global__ void once(int*done,int*count,const int*a){int i=blockIdx.x*blockDim.x+threadIdx.x;if(a[i]>90&&*done==0){*done=1;atomicAdd(count,1);}}
int main(){int*d,*c,*a;CHECK(cudaMallocManaged(&d,4));CHECK(cudaMallocManaged(&c,4));CHECK(cudaMallocManaged(&a,1024));for(int i=0;i<256;i++)a[i]=(i*37)%101;*d=*c=0;once<<<4,64>>>(d,c,a);CHECK(cudaDeviceSynchronize());printf("count %d\n",*c);cudaFree(d);cudaFree(c);cudaFree(a);}
