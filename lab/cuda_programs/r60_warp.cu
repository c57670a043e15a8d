#include "c.h"
__device__ int aggAdd(int*ctr){unsigned m=__activemask();int l=__ffs(m)-1,r;int lane=threadIdx.x&31;if(lane==l)r=atomicAdd(ctr,__popc(m));r=__shfl_sync(m,r,l);return r+__popc(m&((1u<<lane)-1));}
__global__ void filt(const int*a,int*o,int*c,int n){for(int i=threadIdx.x;i<n;i+=blockDim.x)if(a[i]&1)o[aggAdd(c)]=a[i];}
__global__ void match(const int*k,int*h){int v=k[threadIdx.x];unsigned m=__match_any_sync(~0u,v);if((__ffs(m)-1)==(int)(threadIdx.x&31))atomicAdd(&h[v],__popc(m));}
__global__ void red(const int*a,int n,int*o){unsigned act=__ballot_sync(~0u,threadIdx.x<n);if(threadIdx.x<n){int s=__reduce_add_sync(act,a[threadIdx.x]);int any=__any_sync(act,a[threadIdx.x]==3);if(threadIdx.x==0)*o=s+any;}}
__global__ void segscan(float*x,int n){int i=blockIdx.x*blockDim.x+threadIdx.x;float v=i<n?x[i]:0;for(int d=1;d<8;d*=2){float t=__shfl_up_sync(~0u,v,d,8);if((threadIdx.x&7)>=d)v+=t;}if(i<n)x[i]=v;}
__global__ void minidx(const float*a,int n,int*o){float v=1e30f;int ix=-1;for(int i=threadIdx.x;i<n;i+=32)if(a[i]<v){v=a[i];ix=i;}for(int d=16;d;d/=2){float ov=__shfl_down_sync(~0u,v,d);int oi=__shfl_down_sync(~0u,ix,d);if(ov<v||(ov==v&&oi<ix)){v=ov;ix=oi;}}if(!threadIdx.x)*o=ix;}
// tail: source lane clamped into the mask
__global__ void nb(const float*a,float*o,int n){unsigned m=__ballot_sync(~0u,threadIdx.x<n);if(threadIdx.x>=n)return;float v=a[threadIdx.x];float r=__shfl_sync(m,v,min(threadIdx.x+1,n-1));o[threadIdx.x]=r-v;}
// the last lane gets an undefined neighbour and replaces it
__global__ void nb2(const float*a,float*o,int n){unsigned m=__ballot_sync(~0u,threadIdx.x<n);if(threadIdx.x<n){float v=a[threadIdx.x],r=__shfl_down_sync(m,v,1);if(threadIdx.x==n-1)r=a[0];o[threadIdx.x]=r;}}
int main(){int*a,*o,*c;float*x,*y;CHECK(cudaMallocManaged(&a,400));CHECK(cudaMallocManaged(&o,400));CHECK(cudaMallocManaged(&c,64));CHECK(cudaMallocManaged(&x,400));CHECK(cudaMallocManaged(&y,400));for(int i=0;i<100;i++)a[i]=i*3%11,x[i]=(i*17)%50;for(int i=0;i<16;i++)c[i]=0;
 filt<<<1,64>>>(a,o,c,100);CHECK(cudaDeviceSynchronize());printf("%d\n",c[0]);c[0]=0;match<<<1,64>>>(a,c);CHECK(cudaDeviceSynchronize());printf("%d\n",c[4]);red<<<1,32>>>(a,13,o);CHECK(cudaDeviceSynchronize());printf("%d\n",o[0]);nb<<<1,32>>>(x,y,21);CHECK(cudaDeviceSynchronize());printf("%f %f\n",y[3],y[20]);nb2<<<1,32>>>(x,y,21);CHECK(cudaDeviceSynchronize());printf("%f\n",y[20]);minidx<<<1,32>>>(x,100,o);segscan<<<4,32>>>(x,100);CHECK(cudaDeviceSynchronize());printf("%d %f\n",o[0],x[99]);cudaFree(a);cudaFree(o);cudaFree(c);cudaFree(x);cudaFree(y);}
