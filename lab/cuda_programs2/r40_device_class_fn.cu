// device-made table inside a class; the host holds opaque addresses only; unused host function of the same signature; class template with static __device__ members
#include <cstdio>
typedef double (*F)(double);
template <int P> struct Poly { static __device__ double eval(double x) { double r = 1; for (int i = 0; i < P; i++) r *= x; return r; } };
__device__ F g0 = Poly<2>::eval; __device__ F g1 = Poly<3>::eval;
template <class T> struct Launcher { T* out; F f; void go() const; };
template <class T> __global__ void run(T* o, F f) { o[threadIdx.x] = f(threadIdx.x); }
template <class T> void Launcher<T>::go() const { run<T><<<1, 8>>>(out, f); }
double host_eval(double x) { return x; }
int main() { F h[2]; cudaMemcpyFromSymbol(&h[0], g0, sizeof(F)); cudaMemcpyFromSymbol(&h[1], g1, sizeof(F)); float* o; cudaMallocManaged(&o, 64); for (F f : h) { Launcher<float> l{o, f}; l.go(); } cudaDeviceSynchronize(); printf("%g %g\n", o[3], host_eval(1)); cudaFree(o); }
