#include "c.h"
#include <new>
struct Managed{void*operator new(size_t n){void*p;CHECK(cudaMallocManaged(&p,n));CHECK(cudaDeviceSynchronize());return p;}void operator delete(void*p){CHECK(cudaDeviceSynchronize());CHECK(cudaFree(p));}
 void*operator new[](size_t n){void*p;CHECK(cudaMallocManaged(&p,n));return p;}void operator delete[](void*p){cudaDeviceSynchronize();cudaFree(p);}};
struct Node:Managed{int v;Node*next;Node(int v,Node*n):v(v),next(n){}~Node(){}};
struct List:Managed{Node*head=nullptr;int len=0;void push(int v){head=new Node(v,head);len++;}~List(){while(head){Node*n=head->next;delete head;head=n;}}
 __host__ __device__ int sum()const{int s=0;for(Node*p=head;p;p=p->next)s+=p->v;return s;}};
__global__ void walk(const List*l,int*o){o[threadIdx.x]=l->sum();}
__global__ void inc(List*l){for(Node*p=l->head;p;p=p->next)if(threadIdx.x==0)p->v++;}
int main(){List*l=new List;for(int i=0;i<20;i++)l->push(i);int*o;CHECK(cudaMallocManaged(&o,128));walk<<<1,32>>>(l,o);printf("%d\n",l->sum());/* both read */CHECK(cudaDeviceSynchronize());printf("%d %d\n",o[3],l->sum());
 inc<<<1,32>>>(l);CHECK(cudaDeviceSynchronize());l->push(100);inc<<<1,1>>>(l);CHECK(cudaDeviceSynchronize());printf("%d\n",l->sum());delete l;cudaFree(o);}
