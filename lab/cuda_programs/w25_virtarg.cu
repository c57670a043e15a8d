#include "c.h"
struct F{__host__ __device__ virtual float operator()(float x)const{return x;}};
struct G:F{float a;__host__ __device__ G(float a):a(a){}__host__ __device__ float operator()(float x)const override{return a*x;}};
template<class T>__device__ float call(const T&f,float x){const F&b=f;return b(x);}
__device__ float __noinline__ callb(const F*f,float x){return (*f)(x);}
__global__ void k(float*o,G g){o[threadIdx.x]=callb(&g,threadIdx.x);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o,G(3));CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
