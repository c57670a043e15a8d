// functions of both sides: host tables, std::sort by one, structure with one as default used by the host alone; kernel takes another by template
#include <cstdio>
#include <algorithm>
#include <functional>
__host__ __device__ bool less_abs(int a, int b) { return (a < 0 ? -a : a) < (b < 0 ? -b : b); }
__host__ __device__ int inc(int x) { return x + 1; }
__host__ __device__ int dbl(int x) { return 2 * x; }
using fn = int (*)(int);
struct HostStep { fn f = inc; const char* name = "inc"; };
template <fn F> __global__ void map(int* a) { a[threadIdx.x] = F(a[threadIdx.x]); }
template <bool (*C)(int, int)> __global__ void pairs(int* a) { int i = 2 * threadIdx.x; if (C(a[i + 1], a[i])) { int t = a[i]; a[i] = a[i + 1]; a[i + 1] = t; } }
__device__ fn d_steps[2] = {inc, dbl};
__global__ void dyn(int* a, int k) { a[threadIdx.x] = d_steps[k](a[threadIdx.x]); }
int main() { int *a, h[32]; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = h[i] = (i * 7) % 32 - 16; std::sort(h, h + 32, less_abs); HostStep s[2] = {{}, {dbl, "dbl"}}; std::function<int(int)> g = dbl;
  map<inc><<<1, 32>>>(a); map<dbl><<<1, 32>>>(a); pairs<less_abs><<<1, 16>>>(a); dyn<<<1, 32>>>(a, 1); cudaDeviceSynchronize(); int v = -16; for (auto& x : s) v = x.f(v); printf("%d %d %d\n", a[1], g(v), h[0]); cudaFree(a); }
