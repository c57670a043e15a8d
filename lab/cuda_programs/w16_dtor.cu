#include "c.h"
struct Buf{float*p;int n;Buf(int n):n(n){CHECK(cudaMalloc(&p,n*4));}~Buf(){cudaFree(p);}};
__global__ void fill(Buf b){if(threadIdx.x<b.n)b.p[threadIdx.x]=threadIdx.x;}
int main(){Buf b(32);fill<<<1,32>>>(b);float h[32];CHECK(cudaMemcpy(h,b.p,128,cudaMemcpyDeviceToHost));printf("%f\n",h[3]);}
