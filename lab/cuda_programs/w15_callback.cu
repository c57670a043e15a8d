#include "c.h"
struct W{float*d;float*h;};
void CUDART_CB fin(void*p){W*w=(W*)p;cudaMemcpy(w->h,w->d,128,cudaMemcpyDeviceToHost);cudaFree(w->d);printf("%f\n",w->h[3]);}
__global__ void k(float*x){x[threadIdx.x]=threadIdx.x;}
int main(){W w;float h[32]={};w.h=h;CHECK(cudaMalloc(&w.d,128));cudaStream_t s;CHECK(cudaStreamCreate(&s));k<<<1,32,0,s>>>(w.d);CHECK(cudaLaunchHostFunc(s,fin,&w));CHECK(cudaStreamSynchronize(s));CHECK(cudaStreamDestroy(s));}
