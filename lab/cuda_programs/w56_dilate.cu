#include "c.h"
// one step of dilation, in place: should grow by one pixel per launch
__global__ void dilate(unsigned char*m,int n){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i>0&&i<n-1&&(m[i-1]||m[i+1]))m[i]=1;}
int main(){const int n=512;unsigned char*m;CHECK(cudaMallocManaged(&m,n));for(int i=0;i<n;i++)m[i]=i==100;dilate<<<4,128>>>(m,n);CHECK(cudaDeviceSynchronize());int c=0;for(int i=0;i<n;i++)c+=m[i];printf("%d (3 expected)\n",c);cudaFree(m);}
