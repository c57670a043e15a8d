// Collatz / SAT-like: flag as bool in a structure, readers test !s->stop, writers store true with the answer by atomicCAS
#include <cstdio>
struct State { bool stop; unsigned answer; };
__global__ void search(State* s, unsigned want) { for (unsigned x = 1 + blockIdx.x * blockDim.x + threadIdx.x; x < 20000 && !s->stop; x += gridDim.x * blockDim.x) { unsigned long long v = x; unsigned n = 0; while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; n++; } if (n == want) { atomicCAS(&s->answer, 0u, x); s->stop = true; } } }
int main() { State* s; cudaMallocManaged(&s, sizeof *s); *s = {}; search<<<8, 64>>>(s, 200); cudaDeviceSynchronize(); printf("%d\n", s->answer != 0); cudaFree(s); }
