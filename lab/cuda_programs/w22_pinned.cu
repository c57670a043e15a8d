#include "c.h"
__global__ void k(float*x){x[threadIdx.x]=threadIdx.x;}
struct Pin{float*p;Pin(){CHECK(cudaMallocHost(&p,128));}~Pin(){cudaFreeHost(p);}};
const float*fetch(float*d){Pin p;CHECK(cudaMemcpy(p.p,d,128,cudaMemcpyDeviceToHost));return p.p;}
int main(){float*d;CHECK(cudaMalloc(&d,128));k<<<1,32>>>(d);const float*r=fetch(d);printf("%f\n",r[5]);cudaFree(d);}
