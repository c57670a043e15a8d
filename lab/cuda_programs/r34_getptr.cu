#include "c.h"
typedef float(*op_t)(float);
__device__ float sq(float x){return x*x;}
__device__ float neg(float x){return -x;}
__constant__ op_t acts[2];
__global__ void k(float*o){o[threadIdx.x]=acts[threadIdx.x&1](o[threadIdx.x]);}
struct Op{op_t f;float b;};
__global__ void ko(float*o,Op p){o[threadIdx.x]=p.f(o[threadIdx.x])+p.b;}
__global__ void kp(float*o,const Op*p){o[threadIdx.x]=p->f(o[threadIdx.x])+p->b;}
__global__ void get(op_t*p,int w){*p=w?sq:neg;}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));for(int i=0;i<32;i++)o[i]=i;op_t*p,h;CHECK(cudaMalloc(&p,8));get<<<1,1>>>(p,1);CHECK(cudaMemcpy(&h,p,8,cudaMemcpyDeviceToHost));ko<<<1,32>>>(o,Op{h,2});Op*q;CHECK(cudaMallocManaged(&q,sizeof(Op)));get<<<1,1>>>(&q->f,0);CHECK(cudaDeviceSynchronize());q->b=3;kp<<<1,32>>>(o,q);CHECK(cudaDeviceSynchronize());cudaFree(p);cudaFree(q);
CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
