#include "c.h"
// every store stores what is there: row k and column k in Warshall's loop
__global__ void k1(int*r,int k){int j=threadIdx.x;if(r[k]&&r[j])r[j]=1;}
int main(){int*r;CHECK(cudaMalloc(&r,128));int h[32];for(int i=0;i<32;i++)h[i]=1;CHECK(cudaMemcpy(r,h,128,cudaMemcpyHostToDevice));k1<<<1,32>>>(r,31);k1<<<1,32>>>(r,0);k1<<<1,32>>>(r,7);CHECK(cudaMemcpy(h,r,128,cudaMemcpyDeviceToHost));printf("%d\n",h[3]);cudaFree(r);}
