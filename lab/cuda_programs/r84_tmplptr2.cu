#include "c.h"
// device function as an argument of a template that is called from a kernel; kernel template with auto parameter
__device__ float cube(float x){return x*x*x;}
template<float(*F)(float)>__device__ float ap(float x){return F(x);}
template<auto F>__global__ void k2(float*x){x[threadIdx.x]=F(x[threadIdx.x]);}
template<template<class>class C,class T>__global__ void k3(T*x,C<T>c){x[threadIdx.x]=c(x[threadIdx.x]);}
template<class T>struct Twice{__device__ T operator()(T v)const{return v*2;}};
template<class...A>__global__ void k4(float*x,A...a){x[threadIdx.x]+=(a+...);}
__global__ void k(float*x){x[threadIdx.x]=ap<cube>(x[threadIdx.x]);}
int main(){float*x;CHECK(cudaMallocManaged(&x,128));for(int i=0;i<32;i++)x[i]=i;k<<<1,32>>>(x);k2<cube><<<1,32>>>(x);k3<<<1,32>>>(x,Twice<float>{});k4<<<1,32>>>(x,1,2.f);CHECK(cudaDeviceSynchronize());printf("%f\n",x[2]);cudaFree(x);}
