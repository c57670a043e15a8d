#include "c.h"
__constant__ int step=1;
__constant__ int arr[4]={1,2,3,4};
__device__ int next(){return atomicAdd(&step,1);}
__global__ void k(int*o){o[threadIdx.x]=next()+arr[threadIdx.x&3];}
int main(){int*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);cudaFree(o);}
