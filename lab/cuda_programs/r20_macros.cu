#include "c.h"
#define HD __host__ __device__ __forceinline__
#define FOR_OPS(X) X(add,a+b) X(sub,a-b) X(mul,a*b)
#define DEF(n,e) __device__ int d_##n(int a,int b){return e;} int h_##n(int a,int b){return e;} \
 __global__ void k_##n(int*o,int a){o[threadIdx.x]=d_##n(a,threadIdx.x);}
FOR_OPS(DEF)
#define KPTR(n,e) {#n,k_##n,h_##n},
struct Entry{const char*name;void(*k)(int*,int);int(*h)(int,int);};
static const Entry table[]={FOR_OPS(KPTR)};
#define LAUNCH(k,g,b,...) do{k<<<g,b>>>(__VA_ARGS__);CHECK(cudaGetLastError());}while(0)
HD int where(){
#ifdef __CUDA_ARCH__
 return 1;
#else
 return 0;
#endif
}
__global__ void w(int*o){*o=where();}
int main(){int*d,h[32];CHECK(cudaMalloc(&d,128));for(auto&e:table){LAUNCH(e.k,1,32,d,7);CHECK(cudaMemcpy(h,d,128,cudaMemcpyDeviceToHost));bool ok=true;for(int i=0;i<32;i++)ok&=h[i]==e.h(7,i);printf("%s %s\n",e.name,ok?"ok":"BAD");}
 LAUNCH(w,1,1,d);CHECK(cudaMemcpy(h,d,4,cudaMemcpyDeviceToHost));printf("%d %d\n",h[0],where());
 void*args[]={&d,nullptr};int seven=7;args[1]=&seven;CHECK(cudaLaunchKernel((const void*)table[2].k,dim3(1),dim3(32),args,0,nullptr));CHECK(cudaMemcpy(h,d,128,cudaMemcpyDeviceToHost));printf("%d\n",h[3]);
 int mg,bs;CHECK(cudaOccupancyMaxPotentialBlockSize(&mg,&bs,k_add));cudaFuncAttributes at;CHECK(cudaFuncGetAttributes(&at,k_add));printf("%d\n",bs>0);cudaFree(d);}
