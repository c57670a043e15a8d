// the graph copies from a local array of a function that has returned (pageable; captured by its address)
#include <cstdio>
__global__ void add(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }
cudaGraphExec_t record(cudaStream_t s, float* a, float* b) { float* x = new float[32]; for (int i = 0; i < 32; i++) x[i] = 2; cudaGraph_t g; cudaGraphExec_t e; cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(b, x, 128, cudaMemcpyHostToDevice, s); add<<<1, 32, 0, s>>>(a, b); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, 0); cudaGraphDestroy(g); delete[] x; return e; }
int main() { cudaStream_t s; cudaStreamCreate(&s); float *a, *b, h[32]; cudaMalloc(&a, 128); cudaMalloc(&b, 128); cudaMemset(a, 0, 128); auto e = record(s, a, b); cudaGraphLaunch(e, s); cudaStreamSynchronize(s);
  cudaMemcpy(h, a, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaGraphExecDestroy(e); cudaStreamDestroy(s); cudaFree(a); cudaFree(b); }
