#include "c.h"
template<class F> __global__ void forall(int n,F f){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i<n)f(i);}
template<class F> void par(int n,F f){forall<<<(n+127)/128,128>>>(n,f);CHECK(cudaGetLastError());CHECK(cudaDeviceSynchronize());}
template<class F> void seq(int n,F f){for(int i=0;i<n;i++)f(i);}
struct S{float a;float*x;void run(int n){auto aa=a;auto xx=x;par(n,[=]__device__(int i){xx[i]*=aa;});}
 void run2(int n){par(n,[*this]__device__(int i){x[i]+=a;});}};
int main(){const int n=300;float*x;CHECK(cudaMallocManaged(&x,n*4));float c=2;
 auto body=[=]__host__ __device__(int i){x[i]=c*i;};
 seq(n,body);for(int i=0;i<n;i++)x[i]+=1;par(n,body);S s{3,x};s.run(n);s.run2(n);
 int k[3]={1,2,3};par(n,[=]__device__(int i)mutable{k[i%3]+=i;x[i]+=k[i%3];});
 printf("%f %f\n",x[0],x[299]);cudaFree(x);}
