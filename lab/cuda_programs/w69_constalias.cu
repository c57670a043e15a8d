#include "c.h"
__constant__ int tab[32];
__global__ void set(int*p){p[threadIdx.x]=threadIdx.x;}
__global__ void get(int*o){o[threadIdx.x]=tab[threadIdx.x];}
__global__ void both(int*p,int*o){p[threadIdx.x]=7;__syncthreads();o[threadIdx.x]=tab[31-threadIdx.x];}
int main(){int*p,*o;CHECK(cudaMallocManaged(&o,128));CHECK(cudaGetSymbolAddress((void**)&p,tab));both<<<1,32>>>(p,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[3]);cudaFree(o);}
