#include "c.h"
struct G{int n;float*x;};
__global__ void k(G*g){int i=threadIdx.x;if(i<g->n)g->x[i]+=1;}
int main(){G*g;CHECK(cudaMallocManaged(&g,sizeof(G)));g->n=32;CHECK(cudaMallocManaged(&g->x,128));for(int i=0;i<32;i++)g->x[i]=i;for(int it=0;it<3;it++){k<<<1,32>>>(g);g->n--;}CHECK(cudaDeviceSynchronize());printf("%f\n",g->x[31]);cudaFree(g->x);cudaFree(g);}
