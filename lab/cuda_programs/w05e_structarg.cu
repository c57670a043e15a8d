#include "c.h"
typedef float(*op_t)(float);
__device__ float sq(float x){return x*x;}
__device__ float neg(float x){return -x;}
__constant__ op_t acts[2];
__global__ void k(float*o){o[threadIdx.x]=acts[threadIdx.x&1](o[threadIdx.x]);}
struct Op{op_t f;float b;};
__global__ void ko(float*o,Op p){o[threadIdx.x]=p.f(o[threadIdx.x])+p.b;}
__global__ void kp(float*o,const Op*p){o[threadIdx.x]=p->f(o[threadIdx.x])+p->b;}

int main(){float*o;CHECK(cudaMallocManaged(&o,128));for(int i=0;i<32;i++)o[i]=i;Op p{sq,1};ko<<<1,32>>>(o,p);
CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
