// expects that the captured kernel's scalar argument changes with the variable, and counts on the output
#include <cstdio>
__global__ void setk(int* a, int v) { *a = v; }
int main() { cudaStream_t s; cudaStreamCreate(&s); int* a; cudaMalloc(&a, 4); int v = 1; cudaGraph_t g; cudaGraphExec_t e; cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); setk<<<1, 1, 0, s>>>(a, v); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, 0);
  v = 7; cudaGraphLaunch(e, s); int r; cudaMemcpyAsync(&r, a, 4, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); printf("%d (1 on a GPU)\n", r); cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); cudaFree(a); }
