// stream-ordered allocation, host function, event timing, all right
#include <cstdio>
__global__ void k(int* a) { a[threadIdx.x] = threadIdx.x; }
static void done(void* p) { *(int*)p += 1; }
int main() { static int calls = 0; cudaStream_t s; cudaStreamCreate(&s); cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); int* h; cudaMallocHost(&h, 256); float ms; for (int r = 0; r < 3; r++) { int* d; cudaMallocAsync(&d, 256, s); cudaEventRecord(a, s); k<<<1, 64, 0, s>>>(d); cudaEventRecord(b, s); cudaMemcpyAsync(h, d, 256, cudaMemcpyDeviceToHost, s); cudaFreeAsync(d, s); cudaLaunchHostFunc(s, done, &calls); cudaEventSynchronize(b); cudaEventElapsedTime(&ms, a, b); cudaStreamSynchronize(s); } printf("%d %d %d\n", h[5], calls, ms >= 0); cudaFreeHost(h); cudaEventDestroy(a); cudaEventDestroy(b); cudaStreamDestroy(s); }
