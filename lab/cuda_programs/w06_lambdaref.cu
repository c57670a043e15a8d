#include "c.h"
template<class F>__global__ void forall(int n,F f){int i=threadIdx.x;if(i<n)f(i);}
struct S{float a;float*x;void run(int n){forall<<<1,n>>>(n,[=]__device__(int i){x[i]*=a;});CHECK(cudaDeviceSynchronize());}}; // captures this, of the host's stack
int main(){float*x;CHECK(cudaMallocManaged(&x,128));for(int i=0;i<32;i++)x[i]=i;S*s=new S{3,x};s->run(32);printf("%f\n",x[2]);delete s;cudaFree(x);}
