#include "c.h"
#include <functional>
#include <map>
#include <string>
__host__ __device__ float cube(float x){return x*x*x;}
__host__ __device__ inline bool less_abs(int a,int b){return (a<0?-a:a)<(b<0?-b:b);}
float host_only(float x){return x+1;}
template<float(*F)(float)>__global__ void apply(float*x){x[threadIdx.x]=F(x[threadIdx.x]);}
__device__ float dcube(float x){return cube(x);}
__global__ void bench(float*x){x[threadIdx.x]+=1;}
static void time_it(const char*n,const std::function<void()>&f){f();CHECK(cudaDeviceSynchronize());printf("%s\n",n);}
int main(){std::function<float(float)>f=cube;std::map<std::string,std::function<float(float)>>m{{"cube",cube},{"host",host_only},{"lam",[](float x){return cube(x)+1;}}};
 float(*fp)(float)=&cube;std::vector<int>v{3,-1,2};std::sort(v.begin(),v.end(),less_abs);printf("%f %f %f %f %d\n",f(2),fp(2),m["host"](1),m["lam"](2),v[0]);
 float*x;CHECK(cudaMallocManaged(&x,128));for(int i=0;i<32;i++)x[i]=i;time_it("apply",[&]{apply<cube><<<1,32>>>(x);});time_it("dapply",[=]{apply<dcube><<<1,32>>>(x);});time_it("b",std::bind([](float*p){bench<<<1,32>>>(p);},x));
 printf("%f\n",x[2]);std::transform(x,x+32,x,fp);printf("%f\n",x[1]);cudaFree(x);}
