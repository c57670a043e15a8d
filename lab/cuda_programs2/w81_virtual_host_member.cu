// kernel writes a polymorphic object into device memory by assignment; host copies an array of structures that contain one, and calls by a member's reference
#include <cstdio>
#include <new>
struct Op { __host__ __device__ virtual int run(int x) const { return x; } };
struct Neg : Op { __host__ __device__ int run(int x) const override { return -x; } };
struct Slot { int id; Neg op; };
__global__ void make(Slot* s) { new (s + threadIdx.x) Slot{int(threadIdx.x), Neg()}; }
int use(const Op& o) { return o.run(3); }
int main() { Slot *d, h[4]; cudaMalloc(&d, sizeof h); make<<<1, 4>>>(d); cudaMemcpy((void*)h, d, sizeof h, cudaMemcpyDeviceToHost); Op* p[4]; for (int i = 0; i < 4; i++) p[i] = &h[i].op; int s = 0; for (auto* q : p) s += use(*q); printf("%d\n", s); cudaFree(d); }
