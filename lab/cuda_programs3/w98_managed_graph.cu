// a graph's kernel writes managed memory; the host reads without waiting
#include <cstdio>
__global__ void k(int* a) { a[blockIdx.x * 256 + threadIdx.x] += 1; }
int main() { int* a; cudaMallocManaged(&a, 4096 * 4); for (int i = 0; i < 4096; i++) a[i] = 0; cudaStream_t s; cudaStreamCreate(&s); cudaGraph_t g; cudaGraphExec_t e; cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); k<<<16, 256, 0, s>>>(a); k<<<16, 256, 0, s>>>(a); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, 0); cudaGraphLaunch(e, s); printf("%d\n", a[10]); cudaStreamSynchronize(s); cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); cudaFree(a); }
