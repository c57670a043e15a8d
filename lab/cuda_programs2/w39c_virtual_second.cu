// as w39: polymorphic member behind an int; one object, chosen through a pointer; nothing to inline
#include <cstdio>
struct Mat { __host__ __device__ virtual float eval(float x) const { return x; } };
struct Lin : Mat { float k = 1; __host__ __device__ float eval(float x) const override { return k * x; } };
struct Sq : Mat { __host__ __device__ float eval(float x) const override { return x * x; } };
struct Scene { int n; Lin lin; Sq sq; };
__global__ void render(Scene s, float* o) { const Mat* m; if (threadIdx.x & 1) m = &s.lin; else m = &s.sq; asm volatile("" : "+l"(m)); o[threadIdx.x] = m->eval(3.f); }
int main() { Scene s; s.n = 4; s.lin.k = 2; float* o; cudaMallocManaged(&o, 128); render<<<1, 32>>>(s, o); cudaDeviceSynchronize(); printf("%g %g\n", o[3], o[2]); cudaFree(o); }
