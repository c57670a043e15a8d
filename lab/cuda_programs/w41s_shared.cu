#include "c.h"
__global__ void k(const int*a,int*c){__shared__ int done;if(threadIdx.x==0)done=0;__syncthreads();if(a[threadIdx.x]>5&&!done){done=1;atomicAdd(c,1);}}
int main(){int*a,*c;CHECK(cudaMallocManaged(&a,512));CHECK(cudaMallocManaged(&c,4));*c=0;for(int i=0;i<128;i++)a[i]=i%10;k<<<1,128>>>(a,c);CHECK(cudaDeviceSynchronize());printf("%d\n",*c);cudaFree(a);cudaFree(c);}
