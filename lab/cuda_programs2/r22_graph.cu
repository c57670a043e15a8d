#include <cstdio>
__global__ void a(float* x) { x[threadIdx.x] += 1; }
__global__ void b(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void c(const float* x, const float* y, float* z) { z[threadIdx.x] += x[threadIdx.x] + y[threadIdx.x]; }
int main() { float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128); cudaMemset(x, 0, 128); cudaMemset(z, 0, 128); float h[32]; cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); cudaEvent_t f, j; cudaEventCreate(&f); cudaEventCreate(&j); cudaDeviceSynchronize();
  cudaGraph_t g; cudaGraphExec_t e; cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); a<<<1, 32, 0, s>>>(x); cudaEventRecord(f, s); cudaStreamWaitEvent(t, f); b<<<1, 32, 0, t>>>(x, y); cudaEventRecord(j, t); cudaStreamWaitEvent(s, j); c<<<1, 32, 0, s>>>(x, y, z); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, nullptr, nullptr, 0);
  for (int i = 0; i < 4; i++) cudaGraphLaunch(e, s); cudaMemcpyAsync(h, z, 128, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); printf("%g\n", h[0]); cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaEventDestroy(f); cudaEventDestroy(j); cudaFree(x); cudaFree(y); cudaFree(z); }
