#include "c.h"
template<class T>class DevVec{T*p=nullptr;size_t n=0;bool own=true;public:explicit DevVec(size_t n):n(n){CHECK(cudaMalloc(&p,n*sizeof(T)));}
 __host__ __device__ DevVec(const DevVec&o):p(o.p),n(o.n),own(false){}
 DevVec&operator=(const DevVec&)=delete;
 __host__ __device__ ~DevVec(){
#ifndef __CUDA_ARCH__
  if(own)cudaFree(p);
#endif
 }
 __device__ T&operator[](size_t i){return p[i];}__host__ __device__ size_t size()const{return n;}
 void set(const std::vector<T>&v){CHECK(cudaMemcpy(p,v.data(),n*sizeof(T),cudaMemcpyHostToDevice));}std::vector<T> get()const{std::vector<T>v(n);CHECK(cudaMemcpy(v.data(),p,n*sizeof(T),cudaMemcpyDeviceToHost));return v;}};
__global__ void twice(DevVec<float>v){int i=threadIdx.x;if(i<v.size())v[i]*=2;}
static DevVec<float>*cache;
int main(){DevVec<float>v(50);v.set(std::vector<float>(50,3));twice<<<1,64>>>(v);twice<<<1,64>>>(v);printf("%f\n",v.get()[49]);cache=new DevVec<float>(v);delete cache;}
