// Thrust beside kernels and the runtime: its vectors are device memory to both.
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/universal_vector.h>

#include <cstdio>

static int wrong = 0;
#define EXPECT(condition) \
  if (!(condition)) std::printf("line %d: not %s\n", __LINE__, #condition), ++wrong

__global__ void twice(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

struct Add {
  int what;
  __host__ __device__ int operator()(int x) const { return x + what; }
};

__global__ void in_a_kernel(float* out, int* x, int n) {
  const thrust::complex<float> z(3, 4);
  thrust::minstd_rand random(threadIdx.x);
  thrust::uniform_real_distribution<float> uniform(0, 1);
  out[threadIdx.x] = thrust::abs(z) + uniform(random);
  const auto pair = thrust::make_tuple(1, 2.5f);
  out[threadIdx.x] += thrust::get<1>(pair);
  if (threadIdx.x == 0) thrust::sort(thrust::seq, x, x + n);
}

int main() {
  constexpr int n = 1000;
  thrust::host_vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 379 % n;

  // Algorithms and kernels in turn.
  thrust::device_vector<int> x = host;
  thrust::sort(x.begin(), x.end());
  twice<<<(n + 255) / 256, 256>>>(thrust::raw_pointer_cast(x.data()), n);
  thrust::transform(x.begin(), x.end(), x.begin(), Add{1});
  EXPECT(x[3] == 7 && thrust::reduce(x.begin(), x.end()) == n * n);
  EXPECT(thrust::inner_product(x.begin(), x.begin() + 3, x.begin(), 0) == 1 + 9 + 25);
  int copied[3];
  cudaMemcpy(copied, thrust::raw_pointer_cast(x.data()) + 5, sizeof copied, cudaMemcpyDeviceToHost);
  EXPECT(copied[0] == 11 && copied[2] == 15);

  // The program's own device memory.
  int* raw;
  cudaMalloc(&raw, n * sizeof(int));
  thrust::device_ptr<int> own(raw);
  thrust::sequence(own, own + n);
  twice<<<(n + 255) / 256, 256>>>(raw, n);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  twice<<<(n + 255) / 256, 256, 0, stream>>>(raw, n);
  thrust::inclusive_scan(thrust::cuda::par.on(stream), own, own + n, own);
  EXPECT(own[4] == 40);
  thrust::for_each(thrust::device, thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n),
                   [raw] __device__(int i) { raw[i] = -i; });
  EXPECT(thrust::reduce(thrust::device, raw, raw + n, 0, thrust::minimum<int>()) == 1 - n);
  const auto both = thrust::make_zip_iterator(thrust::make_tuple(own, x.begin()));
  thrust::sort(both, both + n);
  EXPECT(own[0] == 1 - n && x[0] == 2 * n - 1);
  thrust::device_vector<float> out(64);
  in_a_kernel<<<1, 64>>>(thrust::raw_pointer_cast(out.data()), raw, n);
  EXPECT(out[0] > 7.5f && out[0] < 8.5f && out[1] != out[2]);

  thrust::device_ptr<int> allocated = thrust::device_malloc<int>(n);
  thrust::copy(host.begin(), host.end(), allocated);
  twice<<<(n + 255) / 256, 256>>>(allocated.get(), n);
  EXPECT(allocated[1] == 758);
  thrust::device_free(allocated);
  thrust::universal_vector<int> shared(n, 1);
  twice<<<(n + 255) / 256, 256>>>(thrust::raw_pointer_cast(shared.data()), n);
  cudaDeviceSynchronize();
  EXPECT(shared[n - 1] == 2);
  cudaStreamDestroy(stream);
  cudaFree(raw);
  return wrong != 0;
}
