#include "c.h"
__global__ void pull(const int*row,const int*col,int*level,int cur,int n,bool*more){int v=blockIdx.x*blockDim.x+threadIdx.x;if(v>=n||level[v]>=0)return;for(int e=row[v];e<row[v+1];e++)if(level[col[e]]==cur){level[v]=cur+1;*more=true;break;}}
__global__ void push(const int*row,const int*col,int*level,int*q,int nq,int*nx,int*nn,int cur){int t=threadIdx.x+blockIdx.x*blockDim.x;if(t<nq){int v=q[t];for(int e=row[v];e<row[v+1];e++){int u=col[e];if(level[u]==-1&&atomicCAS(&level[u],-1,cur+1)==-1)nx[atomicAdd(nn,1)]=u;}}}
int main(){const int n=256;int*r,*c,*l;bool*m;CHECK(cudaMallocManaged(&r,(n+1)*4));CHECK(cudaMallocManaged(&c,2*n*4));CHECK(cudaMallocManaged(&l,n*4));CHECK(cudaMallocManaged(&m,1));for(int i=0;i<=n;i++)r[i]=2*i;for(int i=0;i<n;i++){c[2*i]=(i+1)%n;c[2*i+1]=(i*5+1)%n;l[i]=-1;}l[0]=0;
 int cur=0;do{*m=false;pull<<<2,128>>>(r,c,l,cur++,n,m);CHECK(cudaDeviceSynchronize());}while(*m);printf("%d\n",l[100]);
 int*q,*x,*t;CHECK(cudaMallocManaged(&q,n*4));CHECK(cudaMallocManaged(&x,n*4));CHECK(cudaMallocManaged(&t,4));for(int i=0;i<n;i++)l[i]=-1;l[0]=0;q[0]=0;int nq=1;for(cur=0;nq;cur++){*t=0;push<<<(nq+31)/32,32>>>(r,c,l,q,nq,x,t,cur);CHECK(cudaDeviceSynchronize());nq=*t;std::swap(q,x);}printf("%d\n",l[100]);
 cudaFree(r);cudaFree(c);cudaFree(l);cudaFree(m);cudaFree(q);cudaFree(x);cudaFree(t);}
