#include "c.h"
void CUDART_CB use(void*p){float*h=(float*)p;h[0]+=1;}
__global__ void k(float*x){x[threadIdx.x]*=2;}
int main(){cudaStream_t s,t;CHECK(cudaStreamCreate(&s));CHECK(cudaStreamCreate(&t));float*h,*d;CHECK(cudaMallocHost(&h,128));CHECK(cudaMalloc(&d,128));for(int i=0;i<32;i++)h[i]=1;CHECK(cudaMemcpyAsync(d,h,128,cudaMemcpyHostToDevice,s));k<<<1,32,0,s>>>(d);CHECK(cudaMemcpyAsync(h,d,128,cudaMemcpyDeviceToHost,s));CHECK(cudaLaunchHostFunc(t,use,h));/* wrong stream */CHECK(cudaDeviceSynchronize());printf("%f\n",h[0]);cudaFreeHost(h);cudaFree(d);cudaStreamDestroy(s);cudaStreamDestroy(t);}
