#include "c.h"
__global__ void sum(const int*a,int n,int*out){
 int i=blockIdx.x*blockDim.x+threadIdx.x,lane=threadIdx.x&31;
 unsigned mask=__ballot_sync(0xffffffffu,i<n);
 if(i>=n)return;
 int cnt=__popc(mask),v=a[i];
 for(int o=16;o>0;o>>=1){int t=__shfl_down_sync(mask,v,o);if(lane+o<cnt)v+=t;}
 if(lane==0)atomicAdd(out,v);
}
__global__ void fsum(const float*a,int n,float*out){ // floats; guards the same way
 int lane=threadIdx.x;unsigned mask=(n>=32)?0xffffffffu:(1u<<n)-1;
 if(lane<n){float v=a[lane];for(int o=1;o<n;o*=2){float t=__shfl_down_sync(mask,v,o);v+=(lane+o<n)?t:0.f;}if(lane==0)*out=v;}
}
__global__ void scan(const float*a,int n,float*out){int lane=threadIdx.x;if(lane<n){unsigned m=__activemask();float v=a[lane];for(int o=1;o<32;o*=2){float t=__shfl_up_sync(m,v,o);if(lane>=o)v+=t;}out[lane]=v;}}
__global__ void bcast(int*o){if(threadIdx.x>=8&&threadIdx.x<24){int leader=__ffs(0xffff00)-1;int v=threadIdx.x*3;v=__shfl_sync(0xffff00,v,leader);o[threadIdx.x-8]=v;}}
int main(){const int n=117;int h[n],*d,*o,r;for(int i=0;i<n;i++)h[i]=i;CHECK(cudaMalloc(&d,n*4));CHECK(cudaMalloc(&o,64));CHECK(cudaMemcpy(d,h,n*4,cudaMemcpyHostToDevice));CHECK(cudaMemset(o,0,4));
 sum<<<2,64>>>(d,n,o);CHECK(cudaMemcpy(&r,o,4,cudaMemcpyDeviceToHost));printf("%d %d\n",r,n*(n-1)/2);
 float f[20],*df,*fo,fr;for(int i=0;i<20;i++)f[i]=i;CHECK(cudaMalloc(&df,80));CHECK(cudaMalloc(&fo,80));CHECK(cudaMemcpy(df,f,80,cudaMemcpyHostToDevice));fsum<<<1,32>>>(df,20,fo);CHECK(cudaMemcpy(&fr,fo,4,cudaMemcpyDeviceToHost));printf("%f\n",fr);
 scan<<<1,32>>>(df,20,fo);CHECK(cudaMemcpy(f,fo,80,cudaMemcpyDeviceToHost));printf("%f\n",f[19]);bcast<<<1,32>>>(o);int b[16];CHECK(cudaMemcpy(b,o,64,cudaMemcpyDeviceToHost));printf("%d\n",b[15]);cudaFree(d);cudaFree(o);cudaFree(df);cudaFree(fo);}
