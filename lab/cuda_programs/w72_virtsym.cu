#include "c.h"
struct B{int k;__host__ __device__ B(int k):k(k){}B()=default;__host__ __device__ virtual int f(int x)const{return x+k;}};
struct Scene{B*list[2];int n;};
__device__ char store[2][sizeof(B)];
__global__ void k(Scene s,int*o){int t=0;for(int i=0;i<s.n;i++)t+=s.list[i]->f(threadIdx.x);o[threadIdx.x]=t;}
int main(){B a[2]={B(1),B(2)};CHECK(cudaMemcpyToSymbol(store,a,sizeof a));char*p;CHECK(cudaGetSymbolAddress((void**)&p,store));Scene s{{(B*)p,(B*)(p+sizeof(B))},2};int*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(s,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[3]);cudaFree(o);}
