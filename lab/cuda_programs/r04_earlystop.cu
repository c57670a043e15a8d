#include "c.h"
__device__ volatile int found;   // early stop
__device__ unsigned hash(unsigned x){x^=x>>16;x*=0x85ebca6b;x^=x>>13;x*=0xc2b2ae35;return x^(x>>16);}
__global__ void crack(unsigned target,unsigned*answer,unsigned per){
 unsigned base=(blockIdx.x*blockDim.x+threadIdx.x)*per;
 for(unsigned i=0;i<per&&!found;i++) if(hash(base+i)==target){*answer=base+i;found=1;}
}
__global__ void anyneg(const int*a,int n,bool*any){int i=blockIdx.x*blockDim.x+threadIdx.x; if(*any)return; if(i<n&&a[i]<0)*any=true;}
unsigned hhash(unsigned x){x^=x>>16;x*=0x85ebca6b;x^=x>>13;x*=0xc2b2ae35;return x^(x>>16);}
int main(){unsigned*d,h=0;CHECK(cudaMalloc(&d,4));CHECK(cudaMemset(d,0,4));crack<<<8,64>>>(hhash(3000),d,10);CHECK(cudaMemcpy(&h,d,4,cudaMemcpyDeviceToHost));
 int f;CHECK(cudaMemcpyFromSymbol(&f,found,sizeof f));printf("%u %d\n",h,f);
 int*a;bool*any;CHECK(cudaMallocManaged(&a,4096));CHECK(cudaMallocManaged(&any,1));for(int i=0;i<1024;i++)a[i]=i%3-1;*any=false;
 anyneg<<<8,128>>>(a,1024,any);CHECK(cudaDeviceSynchronize());puts(*any?"yes":"no");cudaFree(a);cudaFree(any);cudaFree(d);}
