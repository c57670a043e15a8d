#include "c.h"
#include <mutex>
#include <string>
struct Work{int id;float*h;std::vector<float>*log;std::string name;~Work(){h=nullptr;}};
std::mutex mu;
void CUDART_CB done(void*p){Work*w=(Work*)p;std::lock_guard<std::mutex>g(mu);w->log->push_back(w->h[0]+w->id);}
void CUDART_CB old(cudaStream_t,cudaError_t e,void*p){if(e==cudaSuccess)((Work*)p)->h[1]=5;}
__global__ void scale(float*x,float a){x[threadIdx.x]*=a;}
int main(){std::vector<float>log;cudaStream_t s[2];float*d[2];std::vector<Work>w(2);for(int i=0;i<2;i++){CHECK(cudaStreamCreate(&s[i]));CHECK(cudaMalloc(&d[i],128));float*h;CHECK(cudaMallocHost(&h,128));for(int j=0;j<32;j++)h[j]=j+1;w[i]={i,h,&log,"w"};}
 for(int i=0;i<2;i++){CHECK(cudaMemcpyAsync(d[i],w[i].h,128,cudaMemcpyHostToDevice,s[i]));scale<<<1,32,0,s[i]>>>(d[i],2);CHECK(cudaMemcpyAsync(w[i].h,d[i],128,cudaMemcpyDeviceToHost,s[i]));CHECK(cudaLaunchHostFunc(s[i],done,&w[i]));CHECK(cudaStreamAddCallback(s[i],old,&w[i],0));CHECK(cudaMemcpyAsync(d[i],w[i].h,128,cudaMemcpyHostToDevice,s[i]));}
 for(int i=0;i<2;i++){CHECK(cudaStreamSynchronize(s[i]));printf("%f %f\n",w[i].h[1],w[i].h[2]);CHECK(cudaFreeHost(w[i].h));CHECK(cudaFree(d[i]));CHECK(cudaStreamDestroy(s[i]));}
 std::sort(log.begin(),log.end());printf("%zu %f %f\n",log.size(),log[0],log[1]);}
