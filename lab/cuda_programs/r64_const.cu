#include "c.h"
__constant__ float a[16384-64];          // with b exactly 64 KB
__constant__ float b[64];
namespace t{template<class T>struct Host{static const T w[3];};template<class T>const T Host<T>::w[3]={1,2,3};}
const int bigHost[100000]={1,2,3};       // host only
constexpr float K=3.f;const int N=32;static const float h_w[4]={1,2,3,4};
__device__ float big[40000];
__global__ void k(float*o){o[threadIdx.x]=a[threadIdx.x]+b[threadIdx.x]+K+N+big[threadIdx.x];}
float conv_cpu(int i){return h_w[i&3]+t::Host<float>::w[1]+bigHost[2];}
int main(){float h[64];for(int i=0;i<64;i++)h[i]=i;CHECK(cudaMemcpyToSymbol(b,h,sizeof h));CHECK(cudaMemcpyToSymbol(a,h,128,0,cudaMemcpyHostToDevice));float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f %f\n",o[2],conv_cpu(1));cudaFree(o);}
