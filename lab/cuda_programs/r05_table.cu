#include "c.h"
typedef float(*op_t)(float,float);
__device__ float add(float a,float b){return a+b;}
__device__ float mul(float a,float b){return a*b;}
__device__ float subf_(float a,float b){return a-b;}
__device__ op_t p_add=add,p_mul=&mul,p_sub=subf_;
__device__ op_t alls[]={add,mul,subf_};
__constant__ op_t table[3];
struct Op{op_t f;float b;};
__global__ void k(float*o,Op op){int i=threadIdx.x;o[i]=table[i%3](i,2)+alls[i%3](i,2)+op.f(i,op.b);}
__global__ void viaptr(float*o,op_t f){o[threadIdx.x]=f?f(o[threadIdx.x],1):-1;}
int main(){op_t h[3];CHECK(cudaMemcpyFromSymbol(&h[0],p_add,sizeof(op_t)));CHECK(cudaMemcpyFromSymbol(&h[1],p_mul,sizeof(op_t)));CHECK(cudaMemcpyFromSymbol(&h[2],p_sub,sizeof(op_t)));
 CHECK(cudaMemcpyToSymbol(table,h,sizeof h));float*d,o[32];CHECK(cudaMalloc(&d,128));k<<<1,32>>>(d,Op{h[1],3});viaptr<<<1,32>>>(d,h[2]);CHECK(cudaMemcpy(o,d,128,cudaMemcpyDeviceToHost));printf("%f %f %f\n",o[0],o[1],o[2]);
 viaptr<<<1,32>>>(d,nullptr);CHECK(cudaMemcpy(o,d,128,cudaMemcpyDeviceToHost));printf("%f\n",o[3]);cudaFree(d);}
