#include "c.h"
struct Res{int found;int idx;};
__global__ void find(const int*a,int n,int key,Res*r){int i=blockIdx.x*blockDim.x+threadIdx.x;if(r->found)return;if(i<n&&a[i]==key){r->idx=i;r->found=1;}}
int main(){const int n=256;int*a;Res*r;CHECK(cudaMallocManaged(&a,n*4));CHECK(cudaMallocManaged(&r,sizeof(Res)));for(int i=0;i<n;i++)a[i]=i%50;*r={0,-1};find<<<2,128>>>(a,n,7,r);CHECK(cudaDeviceSynchronize());printf("%d\n",r->idx);cudaFree(a);cudaFree(r);}
