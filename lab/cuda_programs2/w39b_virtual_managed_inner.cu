// array of polymorphic materials in a structure passed by value; called through the base by a function that is not inlined
#include <cstdio>
#include <new>
struct Mat { __host__ __device__ virtual float eval(float x) const { return x; } };
struct Lin : Mat { float k = 1; __host__ __device__ float eval(float x) const override { return k * x; } };
struct Scene { int n; Lin mats[4]; Mat plain; };
__device__ __noinline__ float shade(const Mat& m, float x) { return m.eval(x); }
__global__ void render(const Scene* p, float* o) { const Scene& s = *p; int t = threadIdx.x; o[t] = t & 1 ? shade(s.mats[t % 4], 2.f) : shade(s.plain, 1.f); }
int main() { Scene* q; cudaMallocManaged(&q, sizeof *q); new (q) Scene; Scene& s = *q; s.n = 4; for (int i = 0; i < 4; i++) s.mats[i].k = i; float* o; cudaMallocManaged(&o, 128); render<<<1, 32>>>(q, o); cudaDeviceSynchronize(); printf("%g\n", o[3]); cudaFree(o); }
