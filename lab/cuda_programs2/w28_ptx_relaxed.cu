// data handed over by st.relaxed / ld.relaxed flags: no release, no acquire
#include <cstdio>
__device__ int ld(const int* p) { int v; asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ void st(int* p, int v) { asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__global__ void chain(int* data, int* flag) {
  int b = blockIdx.x;
  if (threadIdx.x == 0) {
    if (b > 0) { while (ld(flag + b - 1) == 0) {} data[b] = data[b - 1] + 1; } else data[0] = 1;
    st(flag + b, 1);
  }
}
int main() {
  int *d, *f, h[8]; cudaMalloc(&d, 32); cudaMalloc(&f, 32); cudaMemset(f, 0, 32); chain<<<8, 32>>>(d, f);
  cudaMemcpy(h, d, 32, cudaMemcpyDeviceToHost); printf("%d\n", h[7]); cudaFree(d); cudaFree(f);
}
