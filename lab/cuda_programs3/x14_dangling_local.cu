// a device function returns the address of its local array (matrix rows); and a linked list of locals
#include <cstdio>
struct Node { int v; Node* next; };
__global__ void k(Node** heads, int* o) { int t = threadIdx.x; Node n; n.v = t; n.next = nullptr; heads[t] = &n; __syncthreads(); Node* other = heads[(t + 1) % blockDim.x]; o[t] = other->v; __syncthreads(); }
int main() { Node** q; int *o, h[32]; cudaMalloc(&q, 256); cudaMalloc(&o, 128); k<<<1, 32>>>(q, o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[2]); cudaFree(o); cudaFree(q); }
