#include "c.h"
struct Op{float(*f)(float);float b;};
__host__ __device__ float half_(float x){return x/2;}
__global__ void map(float*o,Op op){o[threadIdx.x]=op.f(threadIdx.x)+op.b;}
__global__ void map2(float*o,float(*f)(float)){o[threadIdx.x]=f(threadIdx.x);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));map2<<<1,32>>>(o,+[](float x){return x+1;});printf("%s\n",cudaGetErrorString(cudaDeviceSynchronize()));printf("%f\n",o[2]);}
