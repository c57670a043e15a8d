#include "c.h"
struct Impl{static float f(float x){return x*10;}};float overl(float x){return x;}int overl(int x){return x;}
typedef float(*op_t)(float);
__global__ void m(float*o,op_t*t){o[threadIdx.x]=t[threadIdx.x&1](threadIdx.x);}
int main(){float*o;op_t*t;CHECK(cudaMallocManaged(&o,128));CHECK(cudaMallocManaged(&t,16));t[0]=&Impl::f;t[1]=overl;m<<<1,32>>>(o,t);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);cudaFree(t);}
