#include "c.h"
template<class T>__device__ T clampT(T x,T a,T b){return x<a?a:x>b?b:x;}
struct M{__device__ float get(float x)const{return x+1;}};
__global__ void k(float*o){o[threadIdx.x]=clampT(o[threadIdx.x],0.f,1.f)+M().get(0);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));for(int i=0;i<32;i++)o[i]=i;k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%f %f %f\n",o[2],clampT(3.f,0.f,1.f),M().get(1));cudaFree(o);}
