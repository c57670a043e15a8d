// kernels with template parameters: functor types, arrays, functions of both sides, packs, member pointers
#include <cstdio>
#include <cuda_runtime.h>
struct Plus { __host__ __device__ float operator()(float a, float b) const { return a + b; } };
template <class Op, int N, class... A> __global__ void fold(float* o, Op op, A... a) { float v[] = {float(a)...}; float r = v[0]; for (int i = 1; i < N; i++) r = op(r, v[i]); o[threadIdx.x] = r; }
struct P { float x, y; };
template <float P::*M> __global__ void take(const P* p, float* o) { o[threadIdx.x] += p[threadIdx.x].*M; }
template <int N> __global__ void arr(float (*a)[N]) { a[blockIdx.x][threadIdx.x] += N; }
template <template <class> class V> struct Use { V<float> v; };
template <class T> struct Box { T t; };
template <template <class> class V> __global__ void boxed(Use<V> u, float* o) { o[threadIdx.x] += u.v.t; }
__device__ int tbl[3] = {1, 2, 3};
template <int (&A)[3]> __global__ void viaref(float* o) { o[threadIdx.x] += A[threadIdx.x % 3]; }
int main() { float* o; P* p; float(*a)[32]; cudaMallocManaged(&o, 128); cudaMallocManaged(&p, 32 * sizeof(P)); cudaMallocManaged(&a, 2 * 128); for (int i = 0; i < 32; i++) p[i] = {1.f * i, 2.f * i}, a[0][i] = a[1][i] = 0;
  fold<Plus, 3><<<1, 32>>>(o, Plus(), 1, 2.5, 3u); take<&P::y><<<1, 32>>>(p, o); arr<32><<<2, 32>>>(a); boxed<Box><<<1, 32>>>(Use<Box>{{4.f}}, o); viaref<tbl><<<1, 32>>>(o); cudaDeviceSynchronize(); printf("%g %g\n", o[2], a[1][5]); cudaFree(o); cudaFree(p); cudaFree(a); }
