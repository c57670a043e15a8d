#include "c.h"
#include <chrono>
#include <functional>
struct Task{std::function<void()>f;static void CUDART_CB run(void*p){auto*t=static_cast<Task*>(p);t->f();delete t;}};
void CUDART_CB log_cb(cudaStream_t,cudaError_t st,void*d){printf("%s %s\n",(char*)d,cudaGetErrorString(st));}
template<class F>void enqueue(cudaStream_t s,F f){CHECK(cudaLaunchHostFunc(s,Task::run,new Task{f}));}
__global__ void k(float*x,int n){for(int i=threadIdx.x;i<n;i+=32)x[i]*=2;}
int main(){cudaStream_t s;CHECK(cudaStreamCreate(&s));float*h,*d;const int n=64;CHECK(cudaHostAlloc(&h,n*4,cudaHostAllocDefault));CHECK(cudaMallocAsync(&d,n*4,s));int done=0;double sum=0;
 for(int r=0;r<3;r++){enqueue(s,[=]{for(int i=0;i<n;i++)h[i]=i+r;});CHECK(cudaMemcpyAsync(d,h,n*4,cudaMemcpyHostToDevice,s));k<<<1,32,0,s>>>(d,n);CHECK(cudaMemcpyAsync(h,d,n*4,cudaMemcpyDeviceToHost,s));enqueue(s,[=,&sum,&done]{for(int i=0;i<n;i++)sum+=h[i];done++;});}
 static char m[]="stream";CHECK(cudaStreamAddCallback(s,log_cb,m,0));CHECK(cudaFreeAsync(d,s));CHECK(cudaStreamSynchronize(s));printf("%d %f\n",done,sum);CHECK(cudaFreeHost(h));CHECK(cudaStreamDestroy(s));}
