// float3 operators without __host__ __device__, used in a kernel: nvcc refuses
#include <cstdio>
float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
float3 operator*(float s, float3 b) { return make_float3(s * b.x, s * b.y, s * b.z); }
__global__ void step(float3* p, const float3* v, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] + dt * v[i];
}
int main() {
  const int n = 256; float3 *p, *v; cudaMallocManaged(&p, n * sizeof(float3)); cudaMallocManaged(&v, n * sizeof(float3));
  for (int i = 0; i < n; i++) { p[i] = make_float3(i, 0, 0); v[i] = make_float3(1, 1, 1); }
  step<<<1, 256>>>(p, v, 0.5f, n); cudaDeviceSynchronize(); printf("%g\n", p[3].x); cudaFree(p); cudaFree(v);
}
