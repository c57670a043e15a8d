#include "c.h"
#include <cooperative_groups.h>
namespace cg=cooperative_groups;
__global__ void k(int*o){auto t=cg::tiled_partition<32>(cg::this_thread_block());int v=threadIdx.x;if(t.thread_rank()<16){v+=t.shfl_down(v,8);t.sync();}o[threadIdx.x]=v;}
int main(){int*o;CHECK(cudaMallocManaged(&o,256));k<<<1,64>>>(o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);cudaFree(o);}
