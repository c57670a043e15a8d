#include "c.h"
__global__ void iter(float*x,int n){int i=threadIdx.x;for(int s=1;s<n;s*=2){float t=i>=s?__ldg(&x[i-s]):0;__syncthreads();x[i]+=t;__syncthreads();}}
int main(){float*x;CHECK(cudaMallocManaged(&x,256));for(int i=0;i<64;i++)x[i]=1;iter<<<1,64>>>(x,64);CHECK(cudaDeviceSynchronize());printf("%f\n",x[63]);cudaFree(x);}
