#include "c.h"
struct Node{int v;Node*next;};struct List{Node*head;int n;};
__global__ void sum(List*l,int*o){int s=0;for(Node*p=l->head;p;p=p->next)s+=p->v;*o=s;}
int main(){List*l;int*o;CHECK(cudaMallocManaged(&l,sizeof(List)));CHECK(cudaMallocManaged(&o,4));l->head=nullptr;for(int i=0;i<5;i++)l->head=new Node{i,l->head};sum<<<1,1>>>(l,o);CHECK(cudaDeviceSynchronize());printf("%d\n",*o);cudaFree(l);cudaFree(o);}
