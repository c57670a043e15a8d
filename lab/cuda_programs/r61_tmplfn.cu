#include "c.h"
__device__ float cube(float x){return x*x*x;}
template<class T,T(*F)(T)>__global__ void apply(T*x){x[threadIdx.x]=F(x[threadIdx.x]);}
template<bool(*P)(int),int N=32>struct Cnt{static __device__ int go(int v){return P(v)?N:0;}};
__device__ bool odd(int v){return v&1;}
__global__ void k(float*x){x[threadIdx.x]+=Cnt<odd>::go(threadIdx.x);}
int main(){float*x;CHECK(cudaMallocManaged(&x,128));for(int i=0;i<32;i++)x[i]=i;apply<float,cube><<<1,32>>>(x);k<<<1,32>>>(x);CHECK(cudaDeviceSynchronize());printf("%f %f\n",x[2],x[3]);cudaFree(x);}
