// persistent threads; queue head by atomicAdd broadcast through shared memory; tasks push children behind fence, tail published
#include <cstdio>
struct Queue { int head, tail, pending; int item[4096]; volatile int ready[4096]; };
__global__ void work(Queue* q, int* sum) {
  __shared__ int idx;
  for (;;) {
    if (threadIdx.x == 0) { idx = -2; 
      if (*(volatile int*)&q->pending == 0) idx = -1; else { int t = *(volatile int*)&q->tail, h = *(volatile int*)&q->head; if (h < t && atomicCAS(&q->head, h, h + 1) == h) { idx = h; while (!q->ready[h]) {} __threadfence(); } } }
    __syncthreads(); int k = idx; __syncthreads();
    if (k == -1) return; if (k == -2) { __nanosleep(10); continue; }
    int d = q->item[k]; if (threadIdx.x < d) atomicAdd(sum, 1);
    if (threadIdx.x == 0) { if (d > 1) for (int c = 0; c < 2; c++) { atomicAdd(&q->pending, 1); int s = atomicAdd(&q->tail, 1); q->item[s] = d - 1; __threadfence(); q->ready[s] = 1; } atomicSub(&q->pending, 1); }
  }
}
int main() { Queue* q; int* s; cudaMallocManaged(&q, sizeof *q); cudaMallocManaged(&s, 4); memset(q, 0, sizeof *q); *s = 0; q->item[0] = 6; q->ready[0] = 1; q->tail = q->pending = 1; work<<<4, 32>>>(q, s); cudaDeviceSynchronize(); printf("%d %s\n", *s, cudaGetErrorString(cudaGetLastError())); cudaFree(q); cudaFree(s); }
