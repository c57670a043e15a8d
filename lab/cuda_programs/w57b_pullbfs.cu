#include "c.h"
__global__ void pull(const int*row,const int*col,int*level,int cur,int n,bool*more){int v=blockIdx.x*blockDim.x+threadIdx.x;if(v>=n||level[v]>=0)return;for(int e=row[v];e<row[v+1];e++)if(level[col[e]]>=0){level[v]=cur+1;*more=true;break;}}
int main(){const int n=256;int*r,*c,*l;bool*m;CHECK(cudaMallocManaged(&r,(n+1)*4));CHECK(cudaMallocManaged(&c,2*n*4));CHECK(cudaMallocManaged(&l,n*4));CHECK(cudaMallocManaged(&m,1));for(int i=0;i<=n;i++)r[i]=2*i;for(int i=0;i<n;i++){c[2*i]=(i+1)%n;c[2*i+1]=(i+n-1)%n;l[i]=-1;}l[0]=0;
 int cur=0;do{*m=false;pull<<<2,128>>>(r,c,l,cur++,n,m);CHECK(cudaDeviceSynchronize());}while(*m);printf("level of 100: %d (100)\n",l[100]);cudaFree(r);cudaFree(c);cudaFree(l);cudaFree(m);}
