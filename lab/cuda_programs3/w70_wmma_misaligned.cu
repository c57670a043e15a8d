// wmma with a leading dimension that is no multiple of 8 halves
#include <cstdio>
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
__global__ void k(const half* a, float* o) { wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::fill_fragment(c, 0.f); wmma::load_matrix_sync(fa, a, 17); wmma::load_matrix_sync(fb, a, 17); wmma::mma_sync(c, fa, fb, c); wmma::store_matrix_sync(o, c, 16, wmma::mem_row_major); }
int main() { half h[17 * 16]; for (auto& x : h) x = __float2half(1); half* a; float *o, r[256]; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 1024); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o); cudaMemcpy(r, o, 1024, cudaMemcpyDeviceToHost); printf("%g\n", r[0]); cudaFree(a); cudaFree(o); }
