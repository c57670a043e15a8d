#include "c.h"
// Floyd-Warshall as taught: unconditional store of the minimum
__global__ void fw(int*d,int n,int k){int i=blockIdx.y,j=threadIdx.x;d[i*n+j]=min(d[i*n+j],d[i*n+k]+d[k*n+j]);}
__global__ void unchanged(int*a,int*o){int i=threadIdx.x;if(i==31&&a[0]==1)a[0]=1;o[i]=a[0];}
int main(){const int m=32;int*d;CHECK(cudaMallocManaged(&d,m*m*4));for(int i=0;i<m*m;i++)d[i]=i/m==i%m?0:(i*7)%50+1;for(int k=0;k<m;k++)fw<<<dim3(1,m),m>>>(d,m,k);CHECK(cudaDeviceSynchronize());printf("%d\n",d[5*m+9]);int*o;CHECK(cudaMallocManaged(&o,128));d[0]=1;unchanged<<<1,32>>>(d,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[3]);cudaFree(d);cudaFree(o);}
