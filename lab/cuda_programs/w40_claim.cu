#include "c.h"
__global__ void bfs(const int*col,int*visited,const int*q,int nq,int*nx,int*tail){int t=blockIdx.x*blockDim.x+threadIdx.x;if(t<nq)for(int e=0;e<3;e++){int u=col[3*q[t]+e];if(!visited[u]){visited[u]=1;nx[atomicAdd(tail,1)]=u;}}}
int main(){const int n=600;int*col,*vis,*q,*nx,*t;CHECK(cudaMallocManaged(&col,3*n*4));CHECK(cudaMallocManaged(&vis,n*4));CHECK(cudaMallocManaged(&q,n*4));CHECK(cudaMallocManaged(&nx,n*4));CHECK(cudaMallocManaged(&t,4));
 for(int i=0;i<n;i++){vis[i]=0;for(int e=0;e<3;e++)col[3*i+e]=(i*3+e*29+7)%n;}vis[0]=1;q[0]=0;int nq=1,tot=1;while(nq){*t=0;bfs<<<(nq+63)/64,64>>>(col,vis,q,nq,nx,t);CHECK(cudaDeviceSynchronize());nq=*t;tot+=nq;std::swap(q,nx);}printf("%d\n",tot);cudaFree(col);cudaFree(vis);cudaFree(q);cudaFree(nx);cudaFree(t);}
