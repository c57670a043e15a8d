#include "c.h"
#include <cmath>
namespace gpu{__device__ float act(float x){return x>0?x:0;}__device__ float lerp(float a,float b,float t){return a+t*(b-a);}
 namespace detail{__device__ int idx(){return blockIdx.x*blockDim.x+threadIdx.x;}}}
namespace cpu{float act(float x){return x>0?x:0;}float lerp(float a,float b,float t){return a+t*(b-a);}int idx(int i){return i;}}
float act(float x){return cpu::act(x)*1.0f;}          // host, global
struct Ref{static float act(float x){return ::act(x);}float lerp(float a,float b){return cpu::lerp(a,b,.5f);}};
__device__ float clampf(float x){return fminf(fmaxf(x,0),1);}
static float clampf(double x){return std::min(std::max(x,0.),1.);}   // host overload by type
__host__ __device__ int sq(int x){return x*x;}
__host__ __device__ double sq(double x){return x*x;}
__device__ float sq(float x){return x*x;}
__global__ void run(float*o){using namespace gpu;int i=detail::idx();o[i]=gpu::act(i-16.f)+lerp(0,i,.5f)+clampf((float)i)+sq(i)+sq(2.f);}
void run(std::vector<float>&v){for(int i=0;i<(int)v.size();i++)v[i]=act(i-16.f)+cpu::lerp(0,i,.5f)+clampf((double)i)+sq(i)+(float)sq(2.0);}
int main(){std::vector<float>v(64),r(64);run(v);float*d;CHECK(cudaMalloc(&d,256));run<<<2,32>>>(d);CHECK(cudaMemcpy(r.data(),d,256,cudaMemcpyDeviceToHost));
 auto clampf=[](float x){return x;};printf("%s %f %f\n",v==r?"PASS":"FAIL",Ref::act(1)+Ref().lerp(0,1),clampf(3));using cpu::lerp;printf("%f\n",lerp(0,1,.25f));cudaFree(d);}
