#include "c.h"
struct Shape{__host__ __device__ virtual float area()const=0;};
struct Circle:Shape{float r;__host__ __device__ Circle(float r):r(r){}__host__ __device__ float area()const override{return 3*r*r;}};
__global__ void k(const Shape*s,float*o){o[threadIdx.x]=s[0].area();}
int main(){Circle c(2);Circle*d;float*o;CHECK(cudaMalloc(&d,sizeof c));CHECK(cudaMemcpy(d,&c,sizeof c,cudaMemcpyHostToDevice));CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(d,o);CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);cudaFree(d);}
