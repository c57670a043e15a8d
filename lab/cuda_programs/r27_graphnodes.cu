#include "c.h"
// managed adjacency graph, label propagation with atomicMin, red-black Gauss-Seidel, host func in a graph
struct V{int label;int deg;int*adj;};
__global__ void cc(V*v,int n,int*changed){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i>=n)return;int m=v[i].label;for(int j=0;j<v[i].deg;j++){int u=v[i].adj[j];if(atomicMin(&v[u].label,m)>m)*changed=1;}}
__global__ void rb(float*x,int n,int color){int i=blockIdx.x*blockDim.x+threadIdx.x;if(i>0&&i<n-1&&(i&1)==color)x[i]=.5f*(x[i-1]+x[i+1]);}
struct Ctx{float*h;double sum;};
void CUDART_CB addup(void*p){auto*c=static_cast<Ctx*>(p);c->sum=0;for(int i=0;i<64;i++)c->sum+=c->h[i];}
int main(){const int n=200;V*v;int*ch;CHECK(cudaMallocManaged(&v,n*sizeof(V)));CHECK(cudaMallocManaged(&ch,4));for(int i=0;i<n;i++){v[i].label=i;v[i].deg=2;CHECK(cudaMallocManaged(&v[i].adj,8));v[i].adj[0]=(i+2)%n;v[i].adj[1]=(i+n-2)%n;}
 do{*ch=0;cc<<<2,128>>>(v,n,ch);CHECK(cudaDeviceSynchronize());}while(*ch);printf("%d %d\n",v[100].label,v[101].label);
 float*d,*h;CHECK(cudaMalloc(&d,256));CHECK(cudaMallocHost(&h,256));for(int i=0;i<64;i++)h[i]=0;h[63]=63;Ctx c{h,0};cudaStream_t s;CHECK(cudaStreamCreate(&s));cudaGraph_t g;cudaGraphExec_t ge;
 CHECK(cudaMemcpyAsync(d,h,256,cudaMemcpyHostToDevice,s));CHECK(cudaStreamBeginCapture(s,cudaStreamCaptureModeGlobal));for(int i=0;i<10;i++){rb<<<1,64,0,s>>>(d,64,0);rb<<<1,64,0,s>>>(d,64,1);}CHECK(cudaMemcpyAsync(h,d,256,cudaMemcpyDeviceToHost,s));CHECK(cudaLaunchHostFunc(s,addup,&c));CHECK(cudaStreamEndCapture(s,&g));
 CHECK(cudaGraphInstantiate(&ge,g,0));for(int i=0;i<20;i++){CHECK(cudaGraphLaunch(ge,s));CHECK(cudaStreamSynchronize(s));}printf("%f\n",c.sum);CHECK(cudaGraphExecDestroy(ge));CHECK(cudaGraphDestroy(g));CHECK(cudaFreeHost(h));CHECK(cudaFree(d));CHECK(cudaStreamDestroy(s));for(int i=0;i<n;i++)cudaFree(v[i].adj);cudaFree(v);cudaFree(ch);}
