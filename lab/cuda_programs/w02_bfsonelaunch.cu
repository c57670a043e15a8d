#include "c.h"
// all levels in one launch, __syncthreads() between levels but several blocks
__global__ void bfs(const int*col,int*level,int n,int depth){int v=blockIdx.x*blockDim.x+threadIdx.x;
 for(int cur=0;cur<depth;cur++){if(v<n&&level[v]==cur)for(int e=0;e<3;++e){int u=col[3*v+e];if(level[u]==-1)level[u]=cur+1;}__syncthreads();}}
int main(){const int n=512;std::vector<int>col(3*n),l(n,-1);for(int i=0;i<n;i++)for(int j=0;j<3;j++)col[3*i+j]=(i*7+j*111+1)%n;l[0]=0;int*c,*lv;CHECK(cudaMalloc(&c,3*n*4));CHECK(cudaMalloc(&lv,n*4));
 CHECK(cudaMemcpy(c,col.data(),3*n*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(lv,l.data(),n*4,cudaMemcpyHostToDevice));bfs<<<4,128>>>(c,lv,n,20);CHECK(cudaMemcpy(l.data(),lv,n*4,cudaMemcpyDeviceToHost));printf("%d %d\n",l[100],l[300]);cudaFree(c);cudaFree(lv);}
