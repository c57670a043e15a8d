#include "c.h"
// Warshall: the stores that others' reads meet (row k, column k) never change a value
__global__ void closure(int*r,int n,int k){int i=blockIdx.y,j=threadIdx.x;if(r[i*n+k]&&r[k*n+j])r[i*n+j]=1;}
int main(){const int m=32;int*r;CHECK(cudaMallocManaged(&r,m*m*4));for(int i=0;i<m*m;i++)r[i]=(i/m+1)%m==i%m;for(int k=0;k<m;k++)closure<<<dim3(1,m),m>>>(r,m,k);CHECK(cudaDeviceSynchronize());int s=0;for(int i=0;i<m*m;i++)s+=r[i];printf("%d\n",s);cudaFree(r);}
