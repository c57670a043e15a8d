// queue BFS with atomicCAS on dist and a plain look before it
#include <cstdio>
__global__ void expand(const int* row, const int* col, int* dist, const int* q, int nq, int* next, int* nn, int lvl) {
  int k = blockIdx.x * blockDim.x + threadIdx.x; if (k >= nq) return; int v = q[k];
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (dist[u] == -1 && atomicCAS(&dist[u], -1, lvl) == -1) next[atomicAdd(nn, 1)] = u; }
}
int main() { const int n = 256; int *row, *col, *d, *q[2], *nn; cudaMallocManaged(&row, (n + 1) * 4); cudaMallocManaged(&col, 3 * n * 4); cudaMallocManaged(&d, n * 4); cudaMallocManaged(&q[0], n * 4); cudaMallocManaged(&q[1], n * 4); cudaMallocManaged(&nn, 4);
  for (int i = 0; i < n; i++) { row[i] = 3 * i; col[3 * i] = (2 * i) % n; col[3 * i + 1] = (2 * i + 1) % n; col[3 * i + 2] = (i + 7) % n; d[i] = -1; } row[n] = 3 * n; d[0] = 0; q[0][0] = 0; int cnt = 1, l = 0;
  while (cnt) { *nn = 0; l++; expand<<<(cnt + 63) / 64, 64>>>(row, col, d, q[(l - 1) & 1], cnt, q[l & 1], nn, l); cudaDeviceSynchronize(); cnt = *nn; }
  printf("%d %d\n", l, d[n - 1]); for (void* p : {(void*)row, (void*)col, (void*)d, (void*)q[0], (void*)q[1], (void*)nn}) cudaFree(p); }
