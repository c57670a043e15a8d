#include "c.h"
__global__ void bfs(const int*row,const int*col,int*level,int*parent,int cur,int n){int v=blockIdx.x*blockDim.x+threadIdx.x;
 if(v<n&&level[v]==cur)for(int e=row[v];e<row[v+1];++e){int u=col[e];if(level[u]==-1){level[u]=cur+1;parent[u]=v;}}}
int main(){const int n=512;std::vector<int>row(n+1),col,l(n,-1);for(int i=0;i<n;i++){row[i]=col.size();for(int j=0;j<4;j++)col.push_back((i*5+j*37)%n);}row[n]=col.size();l[0]=0;
 int*r,*c,*lv,*p;CHECK(cudaMalloc(&r,(n+1)*4));CHECK(cudaMalloc(&c,col.size()*4));CHECK(cudaMalloc(&lv,n*4));CHECK(cudaMalloc(&p,n*4));CHECK(cudaMemset(p,255,n*4));
 CHECK(cudaMemcpy(r,row.data(),(n+1)*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(c,col.data(),col.size()*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(lv,l.data(),n*4,cudaMemcpyHostToDevice));
 for(int i=0;i<12;i++)bfs<<<4,128>>>(r,c,lv,p,i,n);CHECK(cudaMemcpy(l.data(),p,n*4,cudaMemcpyDeviceToHost));printf("%d\n",l[100]);cudaFree(r);cudaFree(c);cudaFree(lv);cudaFree(p);}
