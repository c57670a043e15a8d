// objects with virtual functions made and destroyed by kernels; host functions of the same class used on the host's own objects
#include <cstdio>
struct Shape { __host__ __device__ virtual ~Shape() {} __host__ __device__ virtual float area() const = 0; };
struct Sq : Shape { float a; __host__ __device__ Sq(float a) : a(a) {} __host__ __device__ float area() const override { return a * a; } };
struct Ci : Shape { float r; __host__ __device__ Ci(float r) : r(r) {} __host__ __device__ float area() const override { return 3 * r * r; } };
__global__ void make(Shape** s, int n) { int i = threadIdx.x; if (i < n) { if (i & 1) s[i] = new Sq(i); else s[i] = new Ci(i); } }
__global__ void areas(Shape** s, int n, float* o) { int i = threadIdx.x; if (i < n) o[i] = s[i]->area(); }
__global__ void destroy(Shape** s, int n) { int i = threadIdx.x; if (i < n) delete s[i]; }
int main() { Shape** s; float* o; cudaMalloc(&s, 16 * 8); cudaMallocManaged(&o, 64); make<<<1, 32>>>(s, 16); areas<<<1, 32>>>(s, 16, o); destroy<<<1, 32>>>(s, 16); cudaDeviceSynchronize(); Shape* h = new Sq(3); printf("%g %g\n", o[4], h->area()); delete h; cudaFree(s); cudaFree(o); }
