// four threads of the host, each with its stream and its memory
#include <cstdio>
#include <thread>
#include <vector>
__global__ void k(int* a, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = i; }
int main() { std::vector<std::thread> v; int bad = 0; for (int t = 0; t < 4; t++) v.emplace_back([&, t] { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); int n = 1000 + t, *a; std::vector<int> h(n); cudaMalloc(&a, n * 4); k<<<4, 64, 0, s>>>(a, n); cudaMemcpyAsync(h.data(), a, n * 4, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); for (int i = 0; i < n; i++) if (h[i] != i) __sync_fetch_and_add(&bad, 1); cudaFree(a); cudaStreamDestroy(s); }); for (auto& t : v) t.join(); printf("%d\n", bad); }
