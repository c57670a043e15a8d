#include "c.h"
template<int(&A)[3]>__global__ void k5(int*o){o[threadIdx.x]=A[threadIdx.x%3];}
template<class T,T*(*Alloc)(int)>__device__ T*al(int n){return Alloc(n);}
__device__ int tab[3]={1,2,3};
int main(){int*x;CHECK(cudaMallocManaged(&x,128));k5<tab><<<1,32>>>(x);CHECK(cudaDeviceSynchronize());printf("%d\n",x[2]);cudaFree(x);}
