#include "c.h"
// host functions named like kernels and device functions, told apart by arguments, scope or class
__global__ void add(const float*a,const float*b,float*c){c[threadIdx.x]=a[threadIdx.x]+b[threadIdx.x];}
void add(const std::vector<float>&a,const std::vector<float>&b,std::vector<float>&c){for(size_t i=0;i<a.size();i++)c[i]=a[i]+b[i];}
struct Vec{float x;Vec add(const Vec&o)const{return{x+o.x};}__host__ __device__ float dot(Vec o)const{return x*o.x;}};
namespace cuda_impl{__global__ void relu(float*x){int i=threadIdx.x;x[i]=fmaxf(x[i],0.f);}void relu(float*x,int n){relu<<<1,n>>>(x);CHECK(cudaGetLastError());}}
namespace cpu_impl{void relu(float*x,int n){for(int i=0;i<n;i++)x[i]=x[i]>0?x[i]:0;}}
namespace cuda_impl{__device__ float norm(float x){return x/2;}__global__ void normk(float*x){x[threadIdx.x]=norm(x[threadIdx.x]);}}
namespace cpu_impl{static float norm(float x){return x/2;}}
class Net{void forward_(float*x){cuda_impl::relu(x,32);}public:void forward(float*x){forward_(x);}float norm(float x)const{return cpu_impl::norm(x)+1;}};
template<class F>auto twice(F norm,float x){return norm(norm(x));}
__device__ int size(int x){return x;}
int main(){using namespace cpu_impl;float*x;CHECK(cudaMallocManaged(&x,128));for(int i=0;i<32;i++)x[i]=i-16;Net n;n.forward(x);CHECK(cudaDeviceSynchronize());float y[32];for(int i=0;i<32;i++)y[i]=i-16;cpu_impl::relu(y,32);bool ok=std::equal(y,y+32,x);
 std::vector<float>a(32,1),b(32,2),c(32);add(a,b,c);add<<<1,32>>>(x,x,x);cuda_impl::normk<<<1,32>>>(x);CHECK(cudaDeviceSynchronize());Vec v{2};printf("%d %f %f %f %f %f %f %zu\n",ok,c[3],x[20],v.add(v).x,norm(8),n.norm(2),twice([](float z){return z*3;},2),a.size());
 int size=3;auto relu=[&](int q){return q+size;};printf("%d\n",relu(2));cudaFree(x);}
