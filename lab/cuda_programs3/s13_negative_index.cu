// a pointer into the middle with negative indices; a pointer beyond the end that is only compared
#include <cstdio>
__global__ void k(float* mid, int r) { int x = (int)threadIdx.x - r; float* end = mid + r + 1; float* p = mid + x; if (p < end) *p = x; }
int main() { int r = 8; float *a, h[17]; cudaMalloc(&a, 17 * 4); k<<<1, 32>>>(a + r, r); cudaMemcpy(h, a, 68, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[16]); cudaFree(a); }
