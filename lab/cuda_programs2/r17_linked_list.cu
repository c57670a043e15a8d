// lock-free push of nodes from a pool; the next launch walks; host walks after synchronising (managed)
#include <cstdio>
struct Node { int v; Node* next; };
__global__ void push(Node* pool, Node** head, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; Node* me = pool + i; me->v = i; Node* old = *(Node* volatile*)head; do { me->next = old; __threadfence(); Node* got = (Node*)atomicCAS((unsigned long long*)head, (unsigned long long)old, (unsigned long long)me); if (got == old) break; old = got; } while (true); }
__global__ void walk(Node* const* head, long* sum) { long s = 0; for (Node* p = *head; p; p = p->next) s += p->v; *sum = s; }
int main() { const int n = 300; Node *pool, **head; long* s; cudaMallocManaged(&pool, n * sizeof(Node)); cudaMallocManaged(&head, sizeof *head); cudaMallocManaged(&s, sizeof *s); *head = nullptr; push<<<3, 128>>>(pool, head, n); walk<<<1, 1>>>(head, s); cudaDeviceSynchronize(); long t = 0; for (Node* p = *head; p; p = p->next) t += p->v; printf("%ld %ld\n", *s, t); cudaFree(pool); cudaFree(head); cudaFree(s); }
