#include "c.h"
struct B{__device__ virtual float f(float)const=0;__device__ virtual ~B(){}};struct C:B{float r;__device__ C(float r):r(r){}__device__ float f(float x)const override{return r*x;}};
__global__ void mk(B**l,int n){int i=threadIdx.x;if(i<n)l[i]=new C(i);}
__global__ void use(B**l,int n,float*o){float s=0;for(int i=0;i<=n;i++)s+=l[i]->f(threadIdx.x);o[threadIdx.x]=s;}   // <=
__global__ void del(B**l,int n){for(int i=0;i<n;i++)delete l[i];}
int main(){B**l;float*o;CHECK(cudaMalloc(&l,16*8));CHECK(cudaMallocManaged(&o,128));CHECK(cudaMemset(l,0,128));mk<<<1,32>>>(l,8);use<<<1,32>>>(l,8,o);printf("%s\n",cudaGetErrorString(cudaDeviceSynchronize()));}
