#include "c.h"
struct Axpy{float a;__host__ __device__ float operator()(float x,float y)const{return a*x+y;}};
struct Less{__host__ __device__ bool operator()(const float&a,const float&b)const{return a<b;}};
struct Poly{float c[4];__host__ __device__ explicit Poly(float s){for(int i=0;i<4;i++)c[i]=s*i;}
 __host__ __device__ ~Poly(){}
 __host__ __device__ float operator()(float x,float)const{float r=0;for(int i=3;i>=0;i--)r=r*x+c[i];return r;}};
template<class F>__global__ void map(const float*x,float*y,int n,F f){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i<n)y[i]=f(x[i],y[i]);}
template<template<class>class C> struct Dummy{};
int main(){const int n=100;std::vector<float>x(n),y(n),r(n);for(int i=0;i<n;i++)x[i]=n-i,y[i]=i;std::sort(x.begin(),x.end(),Less{});
 float*dx,*dy;CHECK(cudaMalloc(&dx,n*4));CHECK(cudaMalloc(&dy,n*4));CHECK(cudaMemcpy(dx,x.data(),n*4,cudaMemcpyHostToDevice));CHECK(cudaMemcpy(dy,y.data(),n*4,cudaMemcpyHostToDevice));
 Axpy f{2};Poly p(.5f);map<<<1,128>>>(dx,dy,n,f);map<<<1,128>>>(dx,dy,n,p);CHECK(cudaMemcpy(r.data(),dy,n*4,cudaMemcpyDeviceToHost));
 bool ok=true;for(int i=0;i<n;i++){y[i]=f(x[i],y[i]);y[i]=p(x[i],y[i]);ok&=y[i]==r[i];}puts(ok?"PASS":"FAIL");cudaFree(dx);cudaFree(dy);}
