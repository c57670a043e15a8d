#include "c.h"
#include <memory>
#include <thread>
#include <atomic>
#include <condition_variable>
#include <mutex>
struct CudaFree{void operator()(void*p)const{cudaFree(p);}};
template<class T>using dptr=std::unique_ptr<T[],CudaFree>;
template<class T>dptr<T> make(size_t n){void*p;CHECK(cudaMalloc(&p,n*sizeof(T)));return dptr<T>((T*)p);}
__global__ void fill(int*p,int v){p[threadIdx.x]=v;}
__global__ void fill(float*p,float v){p[threadIdx.x]=v;}   // overloaded kernels
struct Grid{int fill(int x){return x;}static int scale(int x){return 2*x;}__device__ static int dscale(int x){return 3*x;}};
namespace host{void fill(std::vector<int>&v,int x){for(auto&e:v)e=x;}float scale(float x){return x;}}
template<int N>__device__ int pw(int x){return x*pw<N-1>(x);}template<>__device__ int pw<0>(int){return 1;}
__global__ void power(int*p){p[threadIdx.x]=pw<3>(threadIdx.x)+Grid::dscale(1);}
__managed__ int total;__device__ int*ptr;
__global__ void viaptr(){atomicAdd(&total,ptr[threadIdx.x]);}
template<class T>__host__ __device__ T tmax(T a,T b){if constexpr(sizeof(T)==4)return a>b?a:b;else return b<a?a:b;}
std::atomic<int>flag{0};std::mutex mu;std::condition_variable cv;bool ready=false;
int main(){auto a=make<int>(32);auto b=make<float>(32);fill<<<1,32>>>(a.get(),4);fill<<<1,32>>>(b.get(),2.5f);std::vector<int>v(32);host::fill(v,9);Grid g;printf("%d %d %f\n",g.fill(3),Grid::scale(4),host::scale(1));
 power<<<1,32>>>(a.get());CHECK(cudaMemcpy(v.data(),a.get(),128,cudaMemcpyDeviceToHost));printf("%d\n",v[3]);int*p=a.get();CHECK(cudaMemcpyToSymbol(ptr,&p,sizeof p));total=0;viaptr<<<1,32>>>();CHECK(cudaDeviceSynchronize());printf("%d %d\n",total,tmax(3,4));
 cudaStream_t s;CHECK(cudaStreamCreate(&s));float*h=(float*)malloc(128);CHECK(cudaHostRegister(h,128,cudaHostRegisterDefault));CHECK(cudaMemcpyAsync(h,b.get(),128,cudaMemcpyDeviceToHost,s));CHECK(cudaLaunchHostFunc(s,[](void*){std::lock_guard<std::mutex>l(mu);ready=true;cv.notify_one();},nullptr));
 {std::unique_lock<std::mutex>l(mu);cv.wait(l,[]{return ready;});}printf("%f\n",h[4]);CHECK(cudaLaunchHostFunc(s,[](void*f){((std::atomic<int>*)f)->store(1);},&flag));while(!flag)std::this_thread::yield();CHECK(cudaStreamSynchronize(s));CHECK(cudaHostUnregister(h));h[4]=1;printf("%f\n",h[4]);free(h);
 float*q;CHECK(cudaMallocHost(&q,128));CHECK(cudaFreeHost(q));CHECK(cudaMallocHost(&q,128));q[0]=1;printf("%f\n",q[0]);CHECK(cudaFreeHost(q));CHECK(cudaStreamDestroy(s));}
