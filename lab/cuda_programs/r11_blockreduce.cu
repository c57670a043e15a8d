#include "c.h"
template<class T>__inline__ __device__ T warpReduceSum(T v){for(int o=warpSize/2;o>0;o/=2)v+=__shfl_down_sync(0xffffffff,v,o);return v;}
template<class T>__device__ T blockReduceSum(T v){static __shared__ T sh[32];int lane=threadIdx.x%warpSize,w=threadIdx.x/warpSize;v=warpReduceSum(v);if(lane==0)sh[w]=v;__syncthreads();
 v=(threadIdx.x<blockDim.x/warpSize)?sh[lane]:T(0);if(w==0)v=warpReduceSum(v);return v;}
// last warp reduces only blockDim/32 lanes: width argument
__global__ void k2(float*o){__shared__ float sh[8];int t=threadIdx.x;float v=warpReduceSum((float)t);if(t%32==0)sh[t/32]=v;__syncthreads();
 if(t<8){v=sh[t];for(int of=4;of;of>>=1)v+=__shfl_down_sync(0xff,v,of,8);if(t==0)*o=v;}}
__global__ void k(const float*a,float*o,int n){float s=0;for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=blockDim.x*gridDim.x)s+=a[i];s=blockReduceSum(s);if(threadIdx.x==0)atomicAdd(o,s);}
__global__ void k3(float*o){float v=threadIdx.x;for(int of=16;of;of>>=1)v+=__shfl_xor_sync(~0u,v,of);if(threadIdx.x<4)o[threadIdx.x]=v+__shfl_sync(0xf,v,threadIdx.x^1);}
int main(){const int n=1000;float h[n],*d,*o,r[4];for(int i=0;i<n;i++)h[i]=1;CHECK(cudaMalloc(&d,n*4));CHECK(cudaMalloc(&o,16));CHECK(cudaMemset(o,0,16));CHECK(cudaMemcpy(d,h,n*4,cudaMemcpyHostToDevice));
 k<<<4,96>>>(d,o,n);CHECK(cudaMemcpy(r,o,4,cudaMemcpyDeviceToHost));printf("%f\n",r[0]);k2<<<1,256>>>(o);CHECK(cudaMemcpy(r,o,4,cudaMemcpyDeviceToHost));printf("%f\n",r[0]);k3<<<1,32>>>(o);CHECK(cudaMemcpy(r,o,16,cudaMemcpyDeviceToHost));printf("%f\n",r[3]);cudaFree(d);cudaFree(o);}
