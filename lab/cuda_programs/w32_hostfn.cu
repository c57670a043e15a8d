#include "c.h"
#include <string>
struct Cfg{float s;float scale(float x)const{return s*x;}};
float helper(float x){return x+1;}
__global__ void k(float*o,Cfg c){o[threadIdx.x]=c.scale(threadIdx.x)+helper(1);}
int main(){float*o;CHECK(cudaMallocManaged(&o,128));k<<<1,32>>>(o,Cfg{2});CHECK(cudaDeviceSynchronize());printf("%f\n",o[2]);cudaFree(o);}
