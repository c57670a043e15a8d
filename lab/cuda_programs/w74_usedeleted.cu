#include "c.h"
struct B{int k;__device__ B(int k):k(k){}__device__ virtual int f(int x)const{return x+k;}__device__ virtual ~B(){}};
__global__ void mk(B**l){*l=new B(3);}__global__ void del(B**l){delete *l;}__global__ void use(B**l,int*o){o[threadIdx.x]=(*l)->f(threadIdx.x);}
int main(){B**l;int*o;CHECK(cudaMalloc(&l,8));CHECK(cudaMallocManaged(&o,128));mk<<<1,1>>>(l);del<<<1,1>>>(l);use<<<1,32>>>(l,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[1]);cudaFree(l);cudaFree(o);}
