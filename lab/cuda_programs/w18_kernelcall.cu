#include "c.h"
template<class T>__global__ void k(T*o,int n){int i=threadIdx.x;if(i<n)o[i]=i;}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));k<float>(o,32);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
