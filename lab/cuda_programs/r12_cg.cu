#include "c.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg=cooperative_groups;
template<class G>__device__ int tsum(G t,int v){for(int i=t.size()/2;i>0;i/=2)v+=t.shfl_down(v,i);return t.shfl(v,0);}
__device__ int aggInc(int*c){auto g=cg::coalesced_threads();int p;if(g.thread_rank()==0)p=atomicAdd(c,g.size());return g.shfl(p,0)+g.thread_rank();}
__global__ void filter(const int*a,int*o,int*c,int n){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i<n&&a[i]%3==0)o[aggInc(c)]=a[i];}
__global__ void k(int*o){auto b=cg::this_thread_block();auto w=cg::tiled_partition<32>(b);auto t=cg::tiled_partition<8>(w);
 int v=tsum(t,threadIdx.x);if(t.meta_group_rank()==1)v+=t.shfl_xor(v,1)+cg::reduce(t,1,cg::plus<int>());
 auto t4=cg::tiled_partition(b,4);v+=t4.thread_rank();if(threadIdx.x<20){auto ac=cg::coalesced_threads();int s=cg::reduce(ac,v,cg::plus<int>());if(ac.thread_rank()==0)o[64+w.meta_group_rank()]=s;}
 o[threadIdx.x]=v;}
int main(){int*o,*c,*a;CHECK(cudaMallocManaged(&o,400*4));CHECK(cudaMallocManaged(&c,4));CHECK(cudaMallocManaged(&a,300*4));k<<<1,64>>>(o);CHECK(cudaDeviceSynchronize());printf("%d %d %d %d\n",o[0],o[9],o[63],o[64]);
 *c=0;for(int i=0;i<300;i++)a[i]=i;filter<<<3,128>>>(a,o,c,300);CHECK(cudaDeviceSynchronize());std::sort(o,o+*c);printf("%d %d\n",*c,o[*c-1]);cudaFree(o);cudaFree(c);cudaFree(a);}
