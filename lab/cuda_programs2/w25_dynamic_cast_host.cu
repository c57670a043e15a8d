// host asks dynamic_cast of an object that a kernel has made (managed)
#include <cstdio>
#include <new>
struct Node { int v; __host__ __device__ Node(int v) : v(v) {} __host__ __device__ virtual int eval() const { return v; } };
struct Neg : Node { __host__ __device__ Neg(int v) : Node(v) {} __host__ __device__ int eval() const override { return -v; } };
__global__ void make(char* mem) { if (threadIdx.x == 0) new (mem) Neg(3); else if (threadIdx.x == 1) new (mem + 64) Node(4); }
int main() {
  char* m; cudaMallocManaged(&m, 128); make<<<1, 2>>>(m); cudaDeviceSynchronize();
  Node* n = reinterpret_cast<Node*>(m);
  if (Neg* g = dynamic_cast<Neg*>(n)) printf("negated %d\n", g->v);
  cudaFree(m);
}
