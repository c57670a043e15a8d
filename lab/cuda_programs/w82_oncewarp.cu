#include "c.h"
// the first hit is appended once: check, mark, append (no atomicCAS)
__global__ void dedupe(const int*key,int n,int*seen,int*out,int*cnt){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i<n){int k=key[i];if(seen[k]==0){seen[k]=1;out[atomicAdd(cnt,1)]=k;}}}
int main(){int n=256,*k,*s,*o,*c;CHECK(cudaMallocManaged(&k,1024));CHECK(cudaMallocManaged(&s,64));CHECK(cudaMallocManaged(&o,1024));CHECK(cudaMallocManaged(&c,4));for(int i=0;i<n;i++)k[i]=i/16;for(int i=0;i<16;i++)s[i]=0;*c=0;dedupe<<<2,128>>>(k,n,s,o,c);CHECK(cudaDeviceSynchronize());printf("%d unique\n",*c);cudaFree(k);cudaFree(s);cudaFree(o);cudaFree(c);}
