#include "c.h"
#define R 3
struct Mat{float m[2][2];float t[2];};
__constant__ float filt[2*R+1];
__constant__ Mat cam={{{1,0},{0,1}},{.5f,.5f}};
__constant__ unsigned char big[65536-4096];
__constant__ const char hexd[]="0123456789abcdef";
static __constant__ float*outp;
const float h_filt[2*R+1]={1,2,3,4,3,2,1};
constexpr int N=256;
__global__ void conv(const float*x){int i=threadIdx.x;float s=0;for(int j=-R;j<=R;j++){int k=i+j;if(k>=0&&k<N)s+=filt[j+R]*x[k];}outp[i]=s*cam.m[0][0]+cam.t[1]+big[i]+(hexd[i%16]=='a');}
__global__ void dot(const float*c,float*r){*r=c[0]+c[6];}
int main(){float x[N],o[N],*dx,*dо;for(int i=0;i<N;i++)x[i]=i;CHECK(cudaMalloc(&dx,N*4));CHECK(cudaMalloc(&dо,N*4));CHECK(cudaMemcpy(dx,x,N*4,cudaMemcpyHostToDevice));
 CHECK(cudaMemcpyToSymbol(filt,h_filt,sizeof filt));CHECK(cudaMemcpyToSymbol(outp,&dо,sizeof dо));unsigned char b=7;CHECK(cudaMemcpyToSymbol(big,&b,1,10));
 conv<<<1,N>>>(dx);CHECK(cudaMemcpy(o,dо,sizeof o,cudaMemcpyDeviceToHost));
 bool ok=true;for(int i=0;i<N;i++){float s=0;for(int j=-R;j<=R;j++){int k=i+j;if(k>=0&&k<N)s+=h_filt[j+R]*x[k];}ok&=o[i]==s+.5f+(i==10?7:0)+(i%16==10);}
 float*c;CHECK(cudaGetSymbolAddress((void**)&c,filt));size_t sz;CHECK(cudaGetSymbolSize(&sz,filt));dot<<<1,1>>>(c,dо);CHECK(cudaMemcpy(o,dо,4,cudaMemcpyDeviceToHost));
 Mat hm;CHECK(cudaMemcpyFromSymbol(&hm,cam,sizeof hm));hm.t[1]=9;CHECK(cudaMemcpyToSymbol(cam,&hm,sizeof hm));printf("%s %f %zu\n",ok?"PASS":"FAIL",o[0],sz);cudaFree(dx);cudaFree(dо);}
