#include "c.h"
// does any element exceed the limit? stop early; the check comes before the look at the flag
__global__ void any(const float*a,int n,float lim,volatile int*stop){for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x){if(a[i]>lim){*stop=1;break;}if(*stop)break;}}
int main(){const int n=1024;float*a;int*s;CHECK(cudaMallocManaged(&a,n*4));CHECK(cudaMallocManaged(&s,4));*s=0;for(int i=0;i<n;i++)a[i]=(i*37)%1000;any<<<2,64>>>(a,n,900,s);CHECK(cudaDeviceSynchronize());printf("%d\n",*s);cudaFree(a);cudaFree(s);}
