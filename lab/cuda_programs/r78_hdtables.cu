#include "c.h"
typedef float(*op_t)(float);
__device__ float sq(float x){return x*x;}
__device__ float neg(float x){return -x;}
__constant__ op_t acts[2];
__global__ void k(float*o){o[threadIdx.x]=acts[threadIdx.x&1](o[threadIdx.x]);}
struct Op{op_t f;float b;};
__global__ void ko(float*o,Op p){o[threadIdx.x]=p.f(o[threadIdx.x])+p.b;}
__host__ __device__ float hd1(float x){return x+1;}
__host__ __device__ float hd2(float x){return x*2;}
op_t host_tab[]={hd1,hd2};__device__ op_t dev_tab[]={hd1,hd2};
__global__ void kd(float*o){o[threadIdx.x]=dev_tab[threadIdx.x&1](o[threadIdx.x]);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));for(int i=0;i<32;i++)o[i]=i;kd<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());for(int i=0;i<32;i++)if(o[i]!=host_tab[i&1](i))puts("BAD");printf("%d\n",(void*)sq!=(void*)neg);
CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
