#include "c.h"
class Shape{public:__device__ virtual float area()const=0;__device__ virtual ~Shape(){}};
class Circle:public Shape{float r;public:__device__ Circle(float r):r(r){}__device__ float area()const override{return 3.f*r*r;}};
class Sq:public Shape{float a;public:__device__ Sq(float a):a(a){}__device__ float area()const override{return a*a;}};
class List:public Shape{Shape**l;int n;public:__device__ List(Shape**l,int n):l(l),n(n){}__device__ float area()const override{float s=0;for(int i=0;i<n;i++)s+=l[i]->area();return s;}
 __device__ ~List(){for(int i=0;i<n;i++)delete l[i];}};
__global__ void create(Shape**l,Shape**world,int n){if(threadIdx.x==0&&blockIdx.x==0){for(int i=0;i<n;i++)if(i&1)l[i]=new Circle(i);else l[i]=new Sq(i);*world=new List(l,n);}}
__global__ void render(float*o,Shape**world){o[blockIdx.x*32+threadIdx.x]=(*world)->area()+threadIdx.x;}
__global__ void destroy(Shape**world){delete *world;}
int main(){Shape**l,**w;float*o;CHECK(cudaMalloc(&l,10*sizeof(Shape*)));CHECK(cudaMalloc(&w,sizeof(Shape*)));CHECK(cudaMallocManaged(&o,256));
 create<<<1,1>>>(l,w,10);CHECK(cudaGetLastError());CHECK(cudaDeviceSynchronize());render<<<2,32>>>(o,w);CHECK(cudaDeviceSynchronize());printf("%f\n",o[5]);destroy<<<1,1>>>(w);CHECK(cudaDeviceSynchronize());cudaFree(l);cudaFree(w);cudaFree(o);}
