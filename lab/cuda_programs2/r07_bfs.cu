// level-synchronous BFS, plain stores of the level, flag `more`
#include <cstdio>
#include <vector>
__global__ void bfs(const int* row, const int* col, int* dist, int n, int level, bool* more) {
  int v = blockIdx.x * blockDim.x + threadIdx.x; if (v >= n || dist[v] != level) return;
  for (int e = row[v]; e < row[v + 1]; e++) { int u = col[e]; if (dist[u] < 0) { dist[u] = level + 1; *more = true; } }
}
int main() { const int n = 500; std::vector<int> row(n + 1), col; for (int i = 0; i < n; i++) { row[i] = col.size(); for (int j : {i * 2 + 1, i * 2 + 2, (i * 17) % n}) if (j < n) col.push_back(j); } row[n] = col.size(); std::vector<int> d(n, -1); d[0] = 0;
  int *r, *c, *dd; bool* m; cudaMalloc(&r, row.size() * 4); cudaMalloc(&c, col.size() * 4); cudaMalloc(&dd, n * 4); cudaMallocManaged(&m, 1);
  cudaMemcpy(r, row.data(), row.size() * 4, cudaMemcpyHostToDevice); cudaMemcpy(c, col.data(), col.size() * 4, cudaMemcpyHostToDevice); cudaMemcpy(dd, d.data(), n * 4, cudaMemcpyHostToDevice);
  int level = 0; do { *m = false; bfs<<<4, 128>>>(r, c, dd, n, level++, m); cudaDeviceSynchronize(); } while (*m);
  cudaMemcpy(d.data(), dd, n * 4, cudaMemcpyDeviceToHost); printf("%d %d\n", level, d[n - 1]); cudaFree(r); cudaFree(c); cudaFree(dd); cudaFree(m); }
