#include "c.h"
#include <cstring>
#include <numeric>
__global__ void k(float*x){x[threadIdx.x]+=1;}
int main(){float*x;CHECK(cudaMallocManaged(&x,128));memset(x,0,128);cudaStream_t s;CHECK(cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking));k<<<1,32>>>(x);CHECK(cudaStreamSynchronize(s));printf("%f\n",std::accumulate(x,x+32,0.f));cudaStreamDestroy(s);cudaFree(x);}
