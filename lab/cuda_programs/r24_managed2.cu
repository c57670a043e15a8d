#include "c.h"
__global__ void sq(const float*x,float*y){y[threadIdx.x]=x[threadIdx.x]*x[threadIdx.x];}
struct Frame{float*in,*out;cudaStream_t s;cudaEvent_t e;};
int main(){float*a,*b,*o;CHECK(cudaMallocManaged(&a,4096*4));CHECK(cudaMallocManaged(&b,4096*4));CHECK(cudaMallocManaged(&o,4096*4));
 for(int i=0;i<64;i++)a[i]=i; sq<<<1,64>>>(a,o); for(int i=0;i<64;i++)b[i]=2*i; /* other buffer: concurrentManagedAccess */ float s=0;for(int i=0;i<64;i++)s+=a[i]; /* kernel only reads it */
 CHECK(cudaDeviceSynchronize());printf("%f %f\n",s,o[63]);sq<<<1,64>>>(b,o);float r;CHECK(cudaMemcpy(&r,o+3,4,cudaMemcpyDeviceToHost));b[0]=5;printf("%f %f\n",r,o[2]);
 Frame f[2];for(int i=0;i<2;i++){CHECK(cudaMallocManaged(&f[i].in,256));CHECK(cudaMallocManaged(&f[i].out,256));CHECK(cudaStreamCreate(&f[i].s));CHECK(cudaEventCreateWithFlags(&f[i].e,cudaEventDisableTiming));}
 float tot=0;for(int k=0;k<6;k++){Frame&g=f[k&1];if(k>=2){CHECK(cudaEventSynchronize(g.e));tot+=g.out[1];}for(int i=0;i<64;i++)g.in[i]=k+i;sq<<<1,64,0,g.s>>>(g.in,g.out);CHECK(cudaEventRecord(g.e,g.s));}
 CHECK(cudaDeviceSynchronize());printf("%f\n",tot+f[0].out[1]+f[1].out[1]);for(auto&g:f){cudaFree(g.in);cudaFree(g.out);cudaStreamDestroy(g.s);cudaEventDestroy(g.e);}cudaFree(a);cudaFree(b);cudaFree(o);}
