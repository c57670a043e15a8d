#include "c.h"
__global__ void bfs(const int*row,const int*col,int*level,int cur,int n,int*changed){
  int v=blockIdx.x*blockDim.x+threadIdx.x;
  if(v<n&&level[v]==cur)
    for(int e=row[v];e<row[v+1];++e){int u=col[e]; if(level[u]==-1){level[u]=cur+1;*changed=1;}}
}
int main(){const int n=1000;std::vector<int> row(n+1),col;srand(1);
 for(int i=0;i<n;i++){row[i]=col.size();for(int j=0;j<4;j++)col.push_back(rand()%n);}row[n]=col.size();
 std::vector<int> lev(n,-1),ref(n,-1);lev[0]=ref[0]=0;
 {std::vector<int>q{0};for(size_t h=0;h<q.size();h++){int v=q[h];for(int e=row[v];e<row[v+1];e++)if(ref[col[e]]<0){ref[col[e]]=ref[v]+1;q.push_back(col[e]);}}}
 int*r,*c,*l,*ch;CHECK(cudaMalloc(&r,(n+1)*4));CHECK(cudaMalloc(&c,col.size()*4));CHECK(cudaMalloc(&l,n*4));CHECK(cudaMalloc(&ch,4));
 CHECK(cudaMemcpy(r,row.data(),(n+1)*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(c,col.data(),col.size()*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(l,lev.data(),n*4,cudaMemcpyHostToDevice));
 int go=1;for(int cur=0;go;cur++){go=0;CHECK(cudaMemcpy(ch,&go,4,cudaMemcpyHostToDevice));bfs<<<(n+127)/128,128>>>(r,c,l,cur,n,ch);CHECK(cudaGetLastError());CHECK(cudaMemcpy(&go,ch,4,cudaMemcpyDeviceToHost));}
 CHECK(cudaMemcpy(lev.data(),l,n*4,cudaMemcpyDeviceToHost));printf("%s\n",lev==ref?"PASS":"FAIL");
 cudaFree(r);cudaFree(c);cudaFree(l);cudaFree(ch);}
