#include "c.h"
// sorted? every thread looks at one pair; nobody who writes has read the flag before, some read it after
__global__ void sorted(const int*a,int n,bool*ok){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i+1<n){if(a[i]>a[i+1])*ok=false;else if(*ok&&i>0&&a[i-1]>a[i])*ok=false;}}
int main(){const int n=256;int*a;bool*ok;CHECK(cudaMallocManaged(&a,n*4));CHECK(cudaMallocManaged(&ok,1));*ok=true;for(int i=0;i<n;i++)a[i]=i;a[99]=0;sorted<<<2,128>>>(a,n,ok);CHECK(cudaDeviceSynchronize());puts(*ok?"sorted":"not sorted");cudaFree(a);cudaFree(ok);}
