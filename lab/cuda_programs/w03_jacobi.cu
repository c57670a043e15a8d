#include "c.h"
__global__ void jac(const float*in,float*out,int n){int x=threadIdx.x+blockIdx.x*64;if(x>0&&x<n-1)out[x]=.5f*(in[x-1]+in[x+1]);}
int main(){const int n=256;float*a,*b;CHECK(cudaMalloc(&a,n*4));CHECK(cudaMalloc(&b,n*4));CHECK(cudaMemset(a,0,n*4));
 for(int i=0;i<4;i++){jac<<<4,64>>>(a,b,n);std::swap(a,b);}   // b's borders never set
 float h[n];CHECK(cudaMemcpy(h,a,n*4,cudaMemcpyDeviceToHost));printf("%f\n",h[1]);cudaFree(a);cudaFree(b);}
