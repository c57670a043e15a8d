#include "c.h"
#include <new>
struct B{int k;__host__ __device__ B(int k=0):k(k){}__host__ __device__ virtual int f(int x)const{return x+k;}};
struct D:B{__host__ __device__ D(int k=0):B(k){}__host__ __device__ int f(int x)const override{return x*k;}};
__global__ void mk(D*d,int n){for(int i=0;i<n;i++)new(d+i)D(i);}
__global__ void use(const D*d,int n,int*o){int t=0;for(int i=0;i<n;i++){const B*b=d+i;t+=b->f(threadIdx.x);}o[threadIdx.x]=t;}
int main(){D*d,*e,*m;int*o;CHECK(cudaMalloc(&d,4*sizeof(D)));CHECK(cudaMalloc(&e,4*sizeof(D)));CHECK(cudaMallocManaged(&m,4*sizeof(D)));CHECK(cudaMallocManaged(&o,128));mk<<<1,1>>>(d,4);CHECK(cudaMemcpy(e,d,4*sizeof(D),cudaMemcpyDeviceToDevice));use<<<1,32>>>(e,4,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);
 // through the host and back, bytes unchanged but for k
 std::vector<char>h(4*sizeof(D));CHECK(cudaMemcpy(h.data(),d,h.size(),cudaMemcpyDeviceToHost));((D*)h.data())[1].k=10;CHECK(cudaMemcpy(e,h.data(),h.size(),cudaMemcpyHostToDevice));use<<<1,32>>>(e,4,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);
 mk<<<1,1>>>(m,4);CHECK(cudaDeviceSynchronize());m[1].k=7;m[2]=D(5);/* operator= leaves the table alone */use<<<1,32>>>(m,4,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[2]);cudaFree(d);cudaFree(e);cudaFree(m);cudaFree(o);}
