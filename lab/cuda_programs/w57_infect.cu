#include "c.h"
// the same in two dimensions on ints, level given by the step number: all store the same value
__global__ void step(int*dist,int n,int s){int x=blockIdx.x*16+threadIdx.x,y=blockIdx.y*16+threadIdx.y;if(x<1||y<1||x>=n-1||y>=n-1)return;int i=y*n+x;if(dist[i]<0&&(dist[i-1]>=0||dist[i+1]>=0||dist[i-n]>=0||dist[i+n]>=0))dist[i]=s;}
int main(){const int n=48;int*d;CHECK(cudaMallocManaged(&d,n*n*4));for(int i=0;i<n*n;i++)d[i]=-1;d[5*n+5]=0;for(int s=1;s<4;s++)step<<<dim3(3,3),dim3(16,16)>>>(d,n,s);CHECK(cudaDeviceSynchronize());printf("%d (5)  %d (-1)\n",d[5*n+6]+4,d[40*n+40]);cudaFree(d);}
