#include "c.h"
__global__ void k(const float*m,float*o){o[threadIdx.x]=m[threadIdx.x];}
struct H{float*p;H(){CHECK(cudaHostAlloc(&p,128,cudaHostAllocMapped));for(int i=0;i<32;i++)p[i]=i;}~H(){cudaFreeHost(p);}float*dev(){float*d;CHECK(cudaHostGetDevicePointer(&d,p,0));return d;}};
int main(){float*o;CHECK(cudaMallocManaged(&o,128));float*d;{H h;d=h.dev();}k<<<1,32>>>(d,o);CHECK(cudaDeviceSynchronize());printf("%f\n",o[3]);cudaFree(o);}
