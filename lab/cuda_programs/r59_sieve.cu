#include "c.h"
__global__ void sieve(bool*comp,int n){int i=blockIdx.x*blockDim.x+threadIdx.x+2;if(i*i<n&&!comp[i])for(int j=i*i;j<n;j+=i)comp[j]=true;}
__global__ void closure(int*r,int n,int k){int i=blockIdx.y,j=blockIdx.x*blockDim.x+threadIdx.x;if(j<n&&r[i*n+k]&&r[k*n+j])r[i*n+j]=1;}
__global__ void fw(int*d,int n,int k){int i=blockIdx.y,j=threadIdx.x;int t=d[i*n+k]+d[k*n+j];if(t<d[i*n+j])d[i*n+j]=t;}
int main(){const int n=1000;bool*c;CHECK(cudaMallocManaged(&c,n));for(int i=0;i<n;i++)c[i]=false;sieve<<<4,64>>>(c,n);CHECK(cudaDeviceSynchronize());int p=0;for(int i=2;i<n;i++)p+=!c[i];printf("%d\n",p);
 const int m=32;int*r,*d;CHECK(cudaMallocManaged(&r,m*m*4));CHECK(cudaMallocManaged(&d,m*m*4));for(int i=0;i<m*m;i++){r[i]=(i/m+1)%m==i%m;d[i]=i/m==i%m?0:(i*7)%50+1;}for(int k=0;k<m;k++){closure<<<dim3(1,m),32>>>(r,m,k);fw<<<dim3(1,m),m>>>(d,m,k);}CHECK(cudaDeviceSynchronize());int s=0;for(int i=0;i<m*m;i++)s+=r[i];printf("%d %d\n",s,d[5*m+9]);cudaFree(c);cudaFree(r);cudaFree(d);}
