// objects made by a kernel in managed memory; the host destroys them through the base (virtual destructor) 
#include <cstdio>
#include <new>
struct Shape { __host__ __device__ virtual ~Shape() {} __host__ __device__ virtual float area() const = 0; };
struct Sq : Shape { float a; __host__ __device__ Sq(float a) : a(a) {} __host__ __device__ float area() const override { return a * a; } };
__global__ void make(Sq* s, int n) { int i = threadIdx.x; if (i < n) new (s + i) Sq(i); }
__global__ void total(Sq* s, int n, float* out) { float t = 0; for (int i = 0; i < n; i++) t += static_cast<Shape&>(s[i]).area(); *out = t; }
int main() {
  Sq* s; float* o; cudaMallocManaged(&s, 8 * sizeof(Sq)); cudaMallocManaged(&o, 4);
  make<<<1, 32>>>(s, 8); total<<<1, 1>>>(s, 8, o); cudaDeviceSynchronize(); printf("%g\n", *o);
  for (int i = 0; i < 8; i++) { Shape* p = s + i; p->~Shape(); }
  cudaFree(s); cudaFree(o);
}
