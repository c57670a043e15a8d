// neighbouring bytes by different threads; bits by atomicOr, read in a later kernel as bytes
#include <cstdio>
__global__ void set(char* c, unsigned* m) { int i = threadIdx.x; c[i] = i; if (i % 3 == 0) atomicOr(&m[i / 32], 1u << (i % 32)); }
__global__ void get(const unsigned char* m, int* o) { int i = threadIdx.x; o[i] = m[i / 8] >> (i % 8) & 1; }
int main() { char* c; unsigned* m; int *o, h[128]; cudaMalloc(&c, 128); cudaMalloc(&m, 16); cudaMalloc(&o, 512); cudaMemset(m, 0, 16); set<<<1, 128>>>(c, m); get<<<1, 128>>>((unsigned char*)m, o); cudaMemcpy(h, o, 512, cudaMemcpyDeviceToHost); int s = 0; for (int x : h) s += x; printf("%d\n", s); cudaFree(c); cudaFree(m); cudaFree(o); }
