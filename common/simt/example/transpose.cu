#include <cstdio>
#include <vector>

#include "transpose.cuh"

int main() {
  const int n = 128;
  std::vector<float> host(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = i;
  float *in, *out;
  cudaMalloc(&in, n * n * sizeof(float));
  cudaMalloc(&out, n * n * sizeof(float));
  cudaMemcpy(in, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  transpose<1><<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(out, in, n);
  cudaMemcpy(host.data(), out, n * n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n * n; ++i)
    if (host[i] != float(i % n * n + i / n)) return std::printf("element %d is %g\n", i, host[i]);
  std::printf("transposed\n");
}
