#include "c.h"
#include <new>
struct Base{int k;__host__ __device__ Base(int k):k(k){}__host__ __device__ virtual int f(int x)const{return x+k;}__host__ __device__ int plain(int x)const{return x*k;}__host__ __device__ virtual ~Base(){}};
struct D:Base{__host__ __device__ D(int k):Base(k){}__host__ __device__ int f(int x)const override{return x-k;}};
template<class T>struct Crtp{__host__ __device__ int go(int x)const{return static_cast<const T*>(this)->impl(x);}};struct C1:Crtp<C1>{int a;__host__ __device__ int impl(int x)const{return x*a;}};
__global__ void nonvirt(const Base*b,int*o){o[threadIdx.x]=b->plain(threadIdx.x)+b->Base::f(1)+b->k;}   // no virtual call
__global__ void make(void*buf,Base**p){*p=new(buf)D(4);}
__global__ void use(Base**p,int*o){o[threadIdx.x]=(*p)->f(threadIdx.x);}
__global__ void local(int*o,int k){D d(k);Base b(k);const Base*q=threadIdx.x&1?(const Base*)&d:&b;o[threadIdx.x]=q->f(threadIdx.x);}
__global__ void byval(D d,int*o){D mine(d);const Base&r=mine;o[threadIdx.x]=r.f(10);}   // copy constructed on device: its own vptr
__global__ void crtp(C1 c,int*o){o[threadIdx.x]=c.go(threadIdx.x);}
__global__ void inshared(int*o){__shared__ alignas(16) char raw[sizeof(D)];__shared__ Base*b;if(threadIdx.x==0)b=new(raw)D(2);__syncthreads();o[threadIdx.x]=b->f(5);}
int main(){int*o;CHECK(cudaMallocManaged(&o,128));D*m;CHECK(cudaMallocManaged(&m,sizeof(D)));new(m)D(3);const Base*hb=m;printf("%d\n",hb->f(5));nonvirt<<<1,32>>>(m,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);
 void*buf;Base**p;CHECK(cudaMalloc(&buf,sizeof(D)));CHECK(cudaMalloc(&p,8));make<<<1,1>>>(buf,p);use<<<1,32>>>(p,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);local<<<1,32>>>(o,7);CHECK(cudaDeviceSynchronize());printf("%d %d\n",o[2],o[3]);
 byval<<<1,32>>>(D(3),o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);C1 c;c.a=3;crtp<<<1,32>>>(c,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);inshared<<<1,32>>>(o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);
 // host object remade by a kernel in managed memory
 make<<<1,1>>>(m,p);use<<<1,32>>>(p,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[9]);cudaFree(m);cudaFree(buf);cudaFree(p);cudaFree(o);}
