#include "c.h"
struct T{float v[8];};
__global__ void mk(T**p){p[threadIdx.x]=new T;for(int i=0;i<8;i++)p[threadIdx.x]->v[i]=i;}
__global__ void rd(T**p,float*o){o[threadIdx.x]=p[threadIdx.x]->v[3];}
int main(){T**p;float*o;CHECK(cudaMallocManaged(&p,256));CHECK(cudaMallocManaged(&o,128));mk<<<1,32>>>(p);CHECK(cudaDeviceSynchronize());rd<<<1,32>>>(p,o);CHECK(cudaDeviceSynchronize());for(int i=0;i<32;i++)cudaFree(p[i]);printf("%f\n",o[1]);cudaFree(p);cudaFree(o);}
