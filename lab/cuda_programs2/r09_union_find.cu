// connected components: hooks by atomicMin, path halving with plain stores (ECL-CC style)
#include <cstdio>
__device__ int find(int v, int* parent) { int cur = parent[v]; if (cur != v) { int prev = v, next; while (cur > (next = parent[cur])) { parent[prev] = next; prev = cur; cur = next; } } return cur; }
__global__ void hook(const int2* e, int m, int* parent) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= m) return; int a = find(e[i].x, parent), b = find(e[i].y, parent);
  bool again; do { again = false; if (a != b) { int r; if (a < b) { if ((r = atomicCAS(&parent[b], b, a)) != b) { b = r; again = true; } } else if ((r = atomicCAS(&parent[a], a, b)) != a) { a = r; again = true; } } } while (again); }
int main() { const int n = 200, m = 150; int2* e; int* p; cudaMallocManaged(&e, m * 8); cudaMallocManaged(&p, n * 4); for (int i = 0; i < n; i++) p[i] = i; for (int i = 0; i < m; i++) e[i] = make_int2(i, (i * 3 + 50) % n);
  hook<<<2, 96>>>(e, m, p); cudaDeviceSynchronize(); int c = 0; for (int i = 0; i < n; i++) c += p[i] == i; printf("%d\n", c); cudaFree(e); cudaFree(p); }
