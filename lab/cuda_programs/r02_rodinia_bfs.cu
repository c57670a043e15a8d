#include "c.h"
struct Node{int start,num;};
__global__ void K1(Node*nodes,int*edges,bool*mask,bool*upd,bool*visited,int*cost,int n){
 int t=blockIdx.x*256+threadIdx.x; if(t<n&&mask[t]){mask[t]=false;
  for(int i=nodes[t].start;i<nodes[t].start+nodes[t].num;i++){int id=edges[i];if(!visited[id]){cost[id]=cost[t]+1;upd[id]=true;}}}}
__global__ void K2(bool*mask,bool*upd,bool*visited,bool*over,int n){
 int t=blockIdx.x*256+threadIdx.x; if(t<n&&upd[t]){mask[t]=true;visited[t]=true;*over=true;upd[t]=false;}}
int main(){const int n=2000;Node*nd;int*e,*cost;bool*m,*u,*v,*over;
 CHECK(cudaMallocManaged(&nd,n*sizeof(Node)));CHECK(cudaMallocManaged(&e,n*3*4));CHECK(cudaMallocManaged(&cost,n*4));
 CHECK(cudaMallocManaged(&m,n));CHECK(cudaMallocManaged(&u,n));CHECK(cudaMallocManaged(&v,n));CHECK(cudaMallocManaged(&over,1));
 for(int i=0;i<n;i++){nd[i]={3*i,3};for(int j=0;j<3;j++)e[3*i+j]=(i*7+j*131+1)%n;cost[i]=-1;m[i]=u[i]=v[i]=false;}
 m[0]=v[0]=true;cost[0]=0;int k=0;
 do{*over=false;K1<<<(n+255)/256,256>>>(nd,e,m,u,v,cost,n);K2<<<(n+255)/256,256>>>(m,u,v,over,n);CHECK(cudaDeviceSynchronize());k++;}while(*over);
 std::vector<int>ref(n,-1),q{0};ref[0]=0;for(size_t h=0;h<q.size();h++)for(int j=0;j<3;j++){int w=e[3*q[h]+j];if(ref[w]<0){ref[w]=ref[q[h]]+1;q.push_back(w);}}
 bool ok=true;for(int i=0;i<n;i++)ok&=ref[i]==cost[i];printf("%d iterations %s\n",k,ok?"PASS":"FAIL");
 cudaFree(nd);cudaFree(e);cudaFree(cost);cudaFree(m);cudaFree(u);cudaFree(v);cudaFree(over);}
