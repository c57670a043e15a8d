// shuffle of a float2 (complex numbers): no such overload
#include <cstdio>
__global__ void sum(const float2* a, float2* o) { float2 v = a[threadIdx.x]; for (int d = 16; d; d /= 2) { float2 w = __shfl_down_sync(0xffffffff, v, d); v.x += w.x; v.y += w.y; } if (!threadIdx.x) *o = v; }
int main() { float2 h[32]; for (auto& x : h) x = make_float2(1, 2); float2 *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 8); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(a, o); cudaMemcpy(&r, o, 8, cudaMemcpyDeviceToHost); printf("%g %g\n", r.x, r.y); cudaFree(a); cudaFree(o); }
