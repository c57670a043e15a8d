// Mistakes of host code, one a case. The line that has to be named ends with the case's name, as a comment.
#include <cstdlib>
#include <vector>

#include "case.h"
#include "steps.h"

constexpr int N = 64;

__global__ void fill(int* x, int value) { x[blockIdx.x * N + threadIdx.x] = value; }
__global__ void add(int* x) {
  x[blockIdx.x * N + threadIdx.x] += 1;  // streams_that_race
}
__global__ void twice(int* x) {
  x[blockIdx.x * N + threadIdx.x] *= 2;  // updated_beside_a_kernel
}
__global__ void copy(int* to, const int* from) {
  to[threadIdx.x] = from[threadIdx.x];  // host_pointer
}

// ---- whose memory it is

CASE(host_pointer) {
  int* host = static_cast<int*>(std::calloc(N, sizeof(int)));
  copy<<<1, N>>>(zeros<int>(N), host);
}

CASE(host_vector) {
  std::vector<int> host(100000);
  copy<<<1, N>>>(zeros<int>(N), host.data());
}

int of_the_program[N] = {1, 2, 3};
CASE(host_global) { copy<<<1, N>>>(zeros<int>(N), of_the_program); }

static int result;
__global__ void answer(int* out) {
  *out = 42;  // host_static
}
CASE(host_static) { answer<<<1, 1>>>(&result); }

CASE(host_variable) {
  int on_the_stack[N] = {};
  copy<<<1, N>>>(zeros<int>(N), on_the_stack);
}

__device__ int total, counts[4];
__constant__ float factors[4];
__device__ float* scratch;
__global__ void use_variables(float* out) {
  atomicAdd(&total, 1);
  *out = counts[0] * factors[0];
}
__global__ void use_scratch() { scratch[threadIdx.x] = 1; }
CASE(host_reads_a_device_variable) {
  use_variables<<<1, 1>>>(zeros<float>(1));
  cudaDeviceSynchronize();
  std::printf("%d\n", total);  // host_reads_a_device_variable
}
CASE(host_writes_a_constant) {
  factors[0] = 2;  // host_writes_a_constant
  use_variables<<<1, 1>>>(zeros<float>(1));
}
CASE(copy_to_a_bare_name) {
  const int ones[4] = {1, 1, 1, 1};
  cudaMemcpy(counts, ones, sizeof ones, cudaMemcpyHostToDevice);  // copy_to_a_bare_name
  use_variables<<<1, 1>>>(zeros<float>(1));
}
__global__ void weigh(float* x, const float* weights) { x[threadIdx.x] *= weights[threadIdx.x % 4]; }
CASE(constant_table_by_its_name) {
  weigh<<<1, N>>>(zeros<float>(N), factors);  // constant_table_by_its_name
}
__global__ void count_in(int* counter) { atomicAdd(counter, 1); }
CASE(device_variable_by_its_address) {
  count_in<<<1, N>>>(&total);  // device_variable_by_its_address
}
CASE(memory_for_a_device_variable) {
  cudaMalloc(&scratch, 4 * N);  // memory_for_a_device_variable
  use_scratch<<<1, N>>>();
}

CASE(host_reads_device_memory) {
  int* x = zeros<int>(N);
  fill<<<1, N>>>(x, 5);
  cudaDeviceSynchronize();
  std::printf("%d\n", x[0]);  // host_reads_device_memory
}

CASE(host_writes_device_memory) {
  int* x = zeros<int>(N);
  for (int i = 0; i < N; ++i) x[i] = i;  // host_writes_device_memory
  add<<<1, N>>>(x);
}

CASE(memcpy_of_the_host) {
  int* x = zeros<int>(N);
  int host[N];
  std::memcpy(host, x, sizeof host);  // memcpy_of_the_host
  std::printf("%d\n", host[1]);
  add<<<1, N>>>(x);
}

CASE(freed_by_the_host) {
  int* x = zeros<int>(N);
  add<<<1, N>>>(x);
  cudaDeviceSynchronize();
  x[1] = 0;  // freed_by_the_host
}

// ---- what is not awaited

CASE(managed_without_waiting) {
  int* x;
  cudaMallocManaged(&x, N * sizeof(int));
  fill<<<1, N>>>(x, 3);
  std::printf("%d\n", x[0]);  // managed_without_waiting
}

CASE(managed_written_too_early) {
  int* x;
  cudaMallocManaged(&x, N * sizeof(int));
  fill<<<1, N>>>(x, 3);
  x[0] = 4;  // managed_written_too_early
  cudaDeviceSynchronize();
}

CASE(managed_of_the_other_stream) {
  int* x;
  cudaMallocManaged(&x, 2 * N * sizeof(int));
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  fill<<<1, N, 0, one>>>(x, 3);
  fill<<<1, N, 0, other>>>(x + N, 4);
  cudaStreamSynchronize(one);
  std::printf("%d\n", x[N]);  // managed_of_the_other_stream
}

CASE(managed_and_cleared) {
  int* x;
  cudaMallocManaged(&x, N * sizeof(int));
  cudaMemsetAsync(x, 0, N * sizeof(int), cudaStreamPerThread);
  std::printf("%d\n", x[3]);  // managed_and_cleared
}

CASE(managed_and_copied) {
  int *x, *y = zeros<int>(N);
  cudaMallocManaged(&x, N * sizeof(int));
  cudaMemcpyAsync(y, x, N * sizeof(int), cudaMemcpyDefault);
  x[3] = 7;  // managed_and_copied
}

CASE(pinned_read_too_early) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  fill<<<1, N, 0, stream>>>(x, 3);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  std::printf("%d\n", host[0]);  // pinned_read_too_early
  cudaStreamSynchronize(stream);
}

CASE(pinned_written_too_early) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  for (int i = 0; i < N; ++i) host[i] = i;
  cudaMemcpyAsync(x, host, N * sizeof(int), cudaMemcpyHostToDevice, stream);
  for (int i = 0; i < N; ++i) host[i] = 2 * i;  // pinned_written_too_early
  cudaStreamSynchronize(stream);
}

CASE(other_stream_awaited) {
  int *x = zeros<int>(N), *host;
  cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocDefault);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, one);
  cudaStreamSynchronize(other);
  std::printf("%d\n", host[1]);  // other_stream_awaited
}

CASE(event_before_the_copy) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t filled;
  cudaEventCreate(&filled);
  fill<<<1, N, 0, stream>>>(x, 3);
  cudaEventRecord(filled, stream);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaEventSynchronize(filled);
  std::printf("%d\n", host[0]);  // event_before_the_copy
}

CASE(streams_that_race) {
  int* x = zeros<int>(1024 * N);  // said once, and not looked up for each of them
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  fill<<<1024, N, 0, one>>>(x, 1);
  add<<<1024, N, 0, other>>>(x);
}

CASE(copy_beside_a_kernel) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  fill<<<1, N, 0, one>>>(x, 1);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, other);  // copy_beside_a_kernel
}

// An update reads first: that must not hide the reads of others.
CASE(updated_beside_a_copy) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaDeviceSynchronize();
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, one);  // updated_beside_a_copy
  add<<<1, N, 0, other>>>(x);
}

__global__ void copy_reversed(int* to, const int* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[gridDim.x * blockDim.x - 1 - i];
}
CASE(updated_beside_a_kernel) {
  int *x = zeros<int>(4 * N), *y = zeros<int>(4 * N);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaDeviceSynchronize();
  copy_reversed<<<4, N, 0, one>>>(y, x);
  twice<<<4, N, 0, other>>>(x);
}

// The stream that the host waits for has read the memory later than the other one.
CASE(managed_that_another_stream_reads) {
  int *x, *y = zeros<int>(N), *z = zeros<int>(N);
  cudaMallocManaged(&x, N * sizeof(int));
  for (int i = 0; i < N; ++i) x[i] = i;
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  copy<<<1, N, 0, one>>>(y, x);
  copy<<<1, N, 0, other>>>(z, x);
  cudaStreamSynchronize(other);
  x[3] = 7;  // managed_that_another_stream_reads
}

CASE(mapped_read_too_early) {
  int *host, *x;
  cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&x, host, 0);
  fill<<<1, N>>>(x, 3);
  std::printf("%d\n", host[5]);  // mapped_read_too_early
}

CASE(mapped_written_too_early) {
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  std::memset(host, 0, N * sizeof(int));
  copy<<<1, N>>>(zeros<int>(N), host);
  host[N - 1] = 1;  // mapped_written_too_early
}

CASE(registered_read_too_early) {
  std::vector<int> host(N);
  cudaHostRegister(host.data(), N * sizeof(int), cudaHostRegisterMapped);
  int* x;
  cudaHostGetDevicePointer(&x, host.data(), 0);
  fill<<<1, N>>>(x, 3);
  std::printf("%d\n", host[5]);  // registered_read_too_early
  cudaHostUnregister(host.data());
}

// By a function of the C library, which only the page itself can tell of.
CASE(registered_and_compared_too_early) {
  std::vector<int> host(64 * N), expected(64 * N);
  cudaHostRegister(host.data(), 64 * N * sizeof(int), cudaHostRegisterDefault);
  int* x = zeros<int>(64 * N);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMemcpyAsync(host.data(), x, 64 * N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  const bool same =
      std::memcmp(host.data(), expected.data(), 64 * N * sizeof(int)) == 0;  // registered_and_compared_too_early
  cudaStreamSynchronize(stream);
  cudaHostUnregister(host.data());
  std::printf("%d\n", same);
}

CASE(allocated_in_another_stream) {
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  int* x;
  cudaMallocAsync(&x, N * sizeof(int), one);  // allocated_in_another_stream
  fill<<<1, N, 0, other>>>(x, 1);
  cudaStreamSynchronize(other);
  cudaFreeAsync(x, other);
}

CASE(freed_in_another_stream) {
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  int* x;
  cudaMallocAsync(&x, N * sizeof(int), one);
  fill<<<1, N, 0, one>>>(x, 1);
  cudaFreeAsync(x, other);  // freed_in_another_stream
}

CASE(freed_while_another_stream_reads) {
  int *x, *y = zeros<int>(N), *z = zeros<int>(N);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaEvent_t filled;
  cudaEventCreate(&filled);
  cudaDeviceSynchronize();
  cudaMallocAsync(&x, N * sizeof(int), other);
  fill<<<1, N, 0, other>>>(x, 1);
  cudaEventRecord(filled, other);
  cudaStreamWaitEvent(one, filled);
  copy<<<1, N, 0, one>>>(y, x);
  copy<<<1, N, 0, other>>>(z, x);
  cudaFreeAsync(x, other);  // freed_while_another_stream_reads
}

CASE(cleared_in_another_stream) {
  int* x = zeros<int>(N);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaMemsetAsync(x, 0, N * sizeof(int), one);  // cleared_in_another_stream
  add<<<1, N, 0, other>>>(x);
}

__global__ void count(int* bins, const int* x) {
  atomicAdd(&bins[x[threadIdx.x] % 8], 1);  // bins_cleared_in_one_of_two_streams
}
CASE(bins_cleared_in_one_of_two_streams) {
  int *x = zeros<int>(N), *bins = zeros<int>(8);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreate(&other);
  cudaDeviceSynchronize();
  cudaMemsetAsync(bins, 0, 8 * sizeof(int), one);
  count<<<1, N, 0, one>>>(bins, x);
  count<<<1, N, 0, other>>>(bins, x);
}

// ---- the default stream, which does not wait for those that are non-blocking

static cudaStream_t non_blocking() {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}

CASE(copied_beside_a_non_blocking_stream) {
  int *x = zeros<int>(N), host[N];
  fill<<<1, N, 0, non_blocking()>>>(x, 1);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);  // copied_beside_a_non_blocking_stream
}

CASE(cleared_beside_a_non_blocking_stream) {
  int *x = zeros<int>(N), *y = zeros<int>(N);
  copy<<<1, N, 0, non_blocking()>>>(y, x);
  cudaMemset(x, 0, N * sizeof(int));  // cleared_beside_a_non_blocking_stream
}

CASE(cleared_too_late_for_a_non_blocking_stream) {
  const cudaStream_t stream = non_blocking();
  int* x = zeros<int>(N);
  cudaMemset(x, 0, N * sizeof(int));  // cleared_too_late_for_a_non_blocking_stream
  add<<<1, N, 0, stream>>>(x);
}

CASE(copied_on_the_device_beside_a_stream) {
  const cudaStream_t stream = non_blocking();
  int *x = zeros<int>(N), *y = zeros<int>(N);
  cudaDeviceSynchronize();
  cudaMemcpy(y, x, N * sizeof(int), cudaMemcpyDeviceToDevice);  // copied_on_the_device_beside_a_stream
  fill<<<1, N, 0, stream>>>(x, 1);
}

CASE(rows_copied_in_another_stream) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  fill<<<1, N, 0, non_blocking()>>>(x, 1);
  cudaMemcpy2DAsync(host, 64, x, 64, 32, 4, cudaMemcpyDeviceToHost, non_blocking());  // rows_copied_in_another_stream
}

CASE(rows_read_too_early) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t stream = non_blocking();
  cudaDeviceSynchronize();
  fill<<<1, N, 0, stream>>>(x, 1);
  cudaMemcpy2DAsync(host, 64, x, 64, 64, 4, cudaMemcpyDeviceToHost, stream);
  std::printf("%d\n", host[20]);  // rows_read_too_early
}

// ---- by way of pinned memory

CASE(pinned_between_two_streams) {
  int *x = zeros<int>(N), *y = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, one);
  cudaMemcpyAsync(y, host, N * sizeof(int), cudaMemcpyHostToDevice, other);  // pinned_between_two_streams
}

CASE(pinned_taken_for_the_next_part_too_early) {
  int *x = zeros<int>(N), *y = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t stream = non_blocking();
  cudaDeviceSynchronize();
  cudaMemcpyAsync(x, host, N * sizeof(int), cudaMemcpyHostToDevice, stream);
  cudaMemcpy(host, y, N * sizeof(int), cudaMemcpyDeviceToHost);  // pinned_taken_for_the_next_part_too_early
}

CASE(registered_between_two_streams) {
  int *x = zeros<int>(N), host[N], *pinned;
  cudaHostRegister(host, sizeof host, cudaHostRegisterDefault);
  cudaMallocHost(&pinned, sizeof host);
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, one);
  cudaMemcpyAsync(pinned, host, sizeof host, cudaMemcpyHostToHost, other);  // registered_between_two_streams
  cudaDeviceSynchronize();
  cudaHostUnregister(host);
}

CASE(mapped_beside_a_copy) {
  int *x = zeros<int>(N), *mapped;
  cudaHostAlloc(&mapped, N * sizeof(int), cudaHostAllocMapped);
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  fill<<<1, N, 0, one>>>(mapped, 1);
  cudaMemcpyAsync(x, mapped, N * sizeof(int), cudaMemcpyHostToDevice, other);  // mapped_beside_a_copy
}

__global__ void doubled(int* to, const int* from) {
  to[threadIdx.x] = 2 * from[threadIdx.x];  // mapped_beside_a_kernel
}
CASE(mapped_beside_a_kernel) {
  int *x = zeros<int>(N), *mapped;
  cudaHostAlloc(&mapped, N * sizeof(int), cudaHostAllocMapped);
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  fill<<<1, N, 0, one>>>(mapped, 1);
  doubled<<<1, N, 0, other>>>(x, mapped);
}

CASE(pinned_read_too_early_in_a_header) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%d\n", first_of(host));
}

__device__ int numbers[N];
__global__ void fill_numbers(int value) { numbers[threadIdx.x] = value; }
CASE(variable_read_in_another_stream) {
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t a = non_blocking(), b = non_blocking();
  fill_numbers<<<1, N, 0, a>>>(1);
  cudaMemcpyFromSymbolAsync(host, numbers, 4 * N, 0, cudaMemcpyDeviceToHost, b);  // variable_read_in_another_stream
}

CASE(variable_written_in_another_stream) {
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t a = non_blocking(), b = non_blocking();
  fill_numbers<<<1, N, 0, a>>>(1);
  cudaMemcpyToSymbolAsync(numbers, host, 4 * N, 0, cudaMemcpyHostToDevice, b);  // variable_written_in_another_stream
}

__constant__ int weights[N];
__global__ void weighted(int* x) { x[threadIdx.x] *= weights[threadIdx.x]; }
CASE(constant_rewritten_beside_a_kernel) {
  int* x = zeros<int>(N);
  const int host[N] = {};
  cudaMemcpyToSymbol(weights, host, sizeof host);
  const cudaStream_t stream = non_blocking();
  weighted<<<1, N, 0, stream>>>(x);
  cudaMemcpyToSymbol(weights, host, sizeof host);  // constant_rewritten_beside_a_kernel
}

__global__ void weighted_sum(int* sum) {
  atomicAdd(sum, weights[threadIdx.x]);  // constant_that_is_still_on_its_way
}
CASE(constant_that_is_still_on_its_way) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  cudaMemcpyToSymbolAsync(weights, host, 4 * N, 0, cudaMemcpyHostToDevice, one);
  weighted_sum<<<1, N, 0, other>>>(x);
}

// Four streams read, and the first one then waits for two of the others.
CASE(update_that_waits_for_all_but_one) {
  int *x = zeros<int>(N), *y = zeros<int>(4 * N);
  cudaStream_t streams[4];
  for (cudaStream_t& stream : streams) stream = non_blocking();
  cudaDeviceSynchronize();
  for (int i = 0; i < 4; ++i) copy<<<1, N, 0, streams[i]>>>(y + i * N, x);
  for (const cudaStream_t other : {streams[2], streams[3]}) {
    cudaEvent_t has_read;
    cudaEventCreate(&has_read);
    cudaEventRecord(has_read, other);
    cudaStreamWaitEvent(streams[0], has_read);
  }
  cudaMemsetAsync(x, 0, N * sizeof(int), streams[0]);  // update_that_waits_for_all_but_one
}

static cudaGraphExec_t graph_of(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  return executable;
}

// Both were captured in the same stream, which orders nothing when they are launched.
CASE(graphs_that_race) {
  int* x = zeros<int>(N);
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  fill<<<1, N, 0, one>>>(x, 1);
  const cudaGraphExec_t first = graph_of(one);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(x, 0, N * sizeof(int), one);  // graphs_that_race
  const cudaGraphExec_t second = graph_of(one);
  cudaGraphLaunch(first, one);
  cudaGraphLaunch(second, other);
}

CASE(updated_beside_a_copy_of_its_graph) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaEvent_t begun, done;
  cudaEventCreate(&begun);
  cudaEventCreate(&done);
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  cudaEventRecord(begun, one);
  cudaStreamWaitEvent(other, begun);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, one);  // updated_beside_a_copy_of_its_graph
  add<<<1, N, 0, other>>>(x);
  cudaEventRecord(done, other);
  cudaStreamWaitEvent(one, done);
  cudaGraphLaunch(graph_of(one), one);
}

CASE(graph_s_copy_read_too_early) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t stream = non_blocking();
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  fill<<<1, N, 0, stream>>>(x, 1);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaGraphLaunch(graph_of(stream), stream);
  std::printf("%d\n", host[3]);  // graph_s_copy_read_too_early
}

CASE(nodes_without_an_edge) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t stream = non_blocking();
  cudaDeviceSynchronize();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t clears, copies;
  cudaGraphCreate(&graph, 0);
  const cudaMemsetParams all = {x, 0, 0, 4, N, 1};
  cudaGraphAddMemsetNode(&clears, graph, nullptr, 0, &all);  // nodes_without_an_edge
  cudaGraphAddMemcpyNode1D(&copies, graph, nullptr, 0, host, x, 4 * N, cudaMemcpyDefault);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
}

static void print_first(void* of) {
  std::printf("%d\n", *static_cast<int*>(of));  // function_in_another_stream
}
CASE(function_in_another_stream) {
  int *x = zeros<int>(N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  const cudaStream_t one = non_blocking(), other = non_blocking();
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, one);
  cudaLaunchHostFunc(other, print_first, host);
}

// ---- calls that fail

__device__ int* of_a_kernel;
__global__ void allocate() {
  of_a_kernel = static_cast<int*>(malloc(N * sizeof(int)));
  for (int i = 0; i < N; ++i) of_a_kernel[i] = i;
}
static int* memory_of_a_kernel() {
  int* memory;
  allocate<<<1, 1>>>();
  cudaMemcpyFromSymbol(&memory, of_a_kernel, sizeof memory);
  return memory;
}
CASE(copy_of_a_kernel_s_memory) {
  int host[N], *const x = memory_of_a_kernel();
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);  // copy_of_a_kernel_s_memory
}
CASE(clearing_of_a_kernel_s_memory) {
  int* const x = memory_of_a_kernel();
  cudaMemset(x, 0, N * sizeof(int));  // clearing_of_a_kernel_s_memory
}
CASE(free_of_a_kernel_s_memory) {
  int* const x = memory_of_a_kernel();
  cudaFree(x);  // free_of_a_kernel_s_memory
}
CASE(kernel_s_memory_freed_in_a_loop) {
  int* const x = memory_of_a_kernel();
  for (int i = 0; i < 4; ++i) cudaFree(x + i);  // kernel_s_memory_freed_in_a_loop
}
CASE(freed_twice_in_a_header) { release(zeros<int>(N)); }

CASE(time_of_an_event_to_come) {
  int* x = zeros<int>(N);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  float milliseconds = 0;
  cudaEventRecord(start);
  fill<<<1, N>>>(x, 1);
  cudaEventRecord(stop);
  cudaEventElapsedTime(&milliseconds, start, stop);  // time_of_an_event_to_come
  std::printf("%f\n", milliseconds);
}

CASE(time_of_an_event_after_the_awaited_one) {
  int* x = zeros<int>(N);
  cudaEvent_t start, middle, stop;
  for (cudaEvent_t* each : {&start, &middle, &stop}) cudaEventCreate(each);
  float milliseconds = 0;
  cudaEventRecord(start);
  fill<<<1, N>>>(x, 1);
  cudaEventRecord(middle);
  fill<<<1, N>>>(x, 2);
  cudaEventRecord(stop);
  cudaEventSynchronize(middle);
  cudaEventElapsedTime(&milliseconds, start, stop);  // time_of_an_event_after_the_awaited_one
  std::printf("%f\n", milliseconds);
}

CASE(event_that_was_destroyed) {
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaEventDestroy(event);
  cudaEventRecord(event);  // event_that_was_destroyed
}

CASE(stream_that_was_destroyed) {
  int* x = zeros<int>(N);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamDestroy(stream);
  fill<<<1, N, 0, stream>>>(x, 1);  // stream_that_was_destroyed
}

CASE(memory_from_before_a_reset) {
  int* x = zeros<int>(N);
  cudaDeviceReset();
  fill<<<1, N>>>(x, 1);
}

CASE(memory_freed_after_a_reset) {
  int* x = zeros<int>(N);
  cudaDeviceReset();
  cudaFree(x);  // memory_freed_after_a_reset
}

CASE(stream_from_before_a_reset) {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaDeviceReset();
  fill<<<1, N, 0, stream>>>(zeros<int>(N), 1);  // stream_from_before_a_reset
}

static cudaStream_t captured() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  return stream;
}
static void end(cudaStream_t stream) {
  cudaGraph_t graph;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess && graph == nullptr) std::puts("no graph");
}
CASE(allocation_in_a_capture) {
  const cudaStream_t stream = captured();
  int* x;
  cudaMalloc(&x, N * sizeof(int));  // allocation_in_a_capture
  end(stream);
}
CASE(wait_in_a_capture) {
  int* x = zeros<int>(N);
  const cudaStream_t stream = captured();
  fill<<<1, N, 0, stream>>>(x, 1);
  cudaDeviceSynchronize();  // wait_in_a_capture
  end(stream);
}
CASE(query_in_a_capture) {
  const cudaStream_t stream = captured();
  cudaStreamQuery(stream);  // query_in_a_capture
  end(stream);
}
CASE(copy_in_a_capture) {
  int *x = zeros<int>(N), host[N];
  const cudaStream_t stream = captured();
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);  // copy_in_a_capture
  end(stream);
}
CASE(default_stream_beside_a_capture) {
  int* x = zeros<int>(N);
  const cudaStream_t stream = captured();
  fill<<<1, N>>>(x, 1);  // default_stream_beside_a_capture
  end(stream);
}
CASE(capture_that_is_not_joined) {
  int* x = zeros<int>(N);
  cudaStream_t stream = captured(), other;
  cudaStreamCreate(&other);
  cudaEvent_t fork;
  cudaEventCreate(&fork);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  fill<<<1, N, 0, other>>>(x, 1);
  cudaGraph_t graph;
  cudaStreamEndCapture(stream, &graph);  // capture_that_is_not_joined
}

CASE(freed_twice) {
  int* x = zeros<int>(N);
  cudaFree(x);
  cudaFree(x);  // freed_twice
}

CASE(free_in_the_middle) {
  int* x = zeros<int>(N);
  cudaFree(x + 1);  // free_in_the_middle
}

CASE(free_of_host_memory) {
  int* x = static_cast<int*>(std::malloc(4));
  cudaFree(x);  // free_of_host_memory
}

CASE(wrong_direction) {
  int *x = zeros<int>(N), host[N] = {};
  cudaMemcpy(x, host, sizeof host, cudaMemcpyDeviceToHost);  // wrong_direction
}

CASE(arguments_the_wrong_way_round) {
  int *x = zeros<int>(N), host[N] = {};
  cudaMemcpy(host, x, sizeof host, cudaMemcpyHostToDevice);  // arguments_the_wrong_way_round
}

CASE(copy_too_long) {
  int *x = zeros<int>(N), host[2 * N] = {};
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);  // copy_too_long
}

CASE(copy_from_beyond_pinned_memory) {
  int *x = zeros<int>(2 * N), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaMemcpy(x, host + 1, N * sizeof(int), cudaMemcpyHostToDevice);  // copy_from_beyond_pinned_memory
}

CASE(copy_to_beyond_pinned_memory) {
  int *x = zeros<int>(1 << 20), *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaMemcpyAsync(host, x, 4 << 20, cudaMemcpyDeviceToHost, nullptr);  // copy_to_beyond_pinned_memory
}

CASE(copy_without_parameters) {
  cudaMemcpy3D(nullptr);  // copy_without_parameters
}

CASE(never_freed) {
  int* x;
  cudaMalloc(&x, N * sizeof(int));  // never_freed
  fill<<<1, N>>>(x, 1);
}

CASE(result_half_written) {
  int *x, host[2 * N];
  cudaMalloc(&x, sizeof host);
  fill<<<1, N>>>(x, 1);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);  // result_half_written
  cudaFree(x);
}

__global__ void fill_rows(float* x, int width) { x[blockIdx.x * width + threadIdx.x] = 1; }
CASE(rows_without_their_pitch) {
  float *x, host[8][100];
  std::size_t pitch;
  cudaMallocPitch(&x, &pitch, sizeof host[0], 8);
  fill_rows<<<8, 100>>>(x, 100);
  cudaMemcpy2D(host, sizeof host[0], x, pitch, sizeof host[0], 8, cudaMemcpyDeviceToHost);  // rows_without_their_pitch
  cudaFree(x);
}

CASE(last_element_not_written) {
  int *x, host[2 * N];
  cudaMalloc(&x, sizeof host);
  fill<<<1, 2 * N - 1>>>(x, 1);
  cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost);  // last_element_not_written
  cudaDeviceSynchronize();
  cudaFree(x);
}

__global__ void tell(int n) { std::printf("%d\n", n); }
CASE(printed_and_not_awaited) {
  tell<<<1, 1>>>(3);
  std::exit(0);
}

CASE(pinned_after_it_was_freed) {
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaFreeHost(host);
  host[1] = 0;  // pinned_after_it_was_freed
}

CASE(managed_written_while_it_is_read) {
  int* x;
  cudaMallocManaged(&x, 4096 * sizeof(int));
  for (int i = 0; i < 4096; ++i) x[i] = i;
  copy<<<1, N>>>(zeros<int>(N), x);
  x[4095] = x[0];  // not in a page of those that the kernel reads
  x[0] = 5;        // managed_written_while_it_is_read
}

static void allocates(void* to) {
  cudaMalloc(static_cast<int**>(to), N);  // call_by_a_function_of_a_stream
}
CASE(call_by_a_function_of_a_stream) {
  int* x;
  cudaLaunchHostFunc(0, allocates, &x);
}

// ---- shared memory that a block cannot have

__global__ void much_static(int* x) {
  __shared__ int large[13 * 1024];
  large[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = large[threadIdx.x ^ 1];
}
CASE(too_much_static_shared) {
  much_static<<<1, N>>>(zeros<int>(N));  // too_much_static_shared
}

__global__ void much_dynamic(int* x) {
  extern __shared__ int large_part[];
  large_part[threadIdx.x] = 1;
  x[threadIdx.x] = large_part[threadIdx.x];
}
CASE(dynamic_shared_without_opting_in) {
  much_dynamic<<<1, N, 64 * 1024>>>(zeros<int>(N));  // dynamic_shared_without_opting_in
}

// ---- functions and objects of the device

using Function = int (*)(int);
__device__ int opposite(int x) { return -x; }
__device__ Function chosen = opposite;
CASE(function_of_the_device) {
  Function f;
  cudaMemcpyFromSymbol(&f, chosen, sizeof f);
  std::printf("%d\n", f(3));  // function_of_the_device
}

struct Shape {
  __host__ __device__ virtual int corners() const { return 3; }
};
struct Square : Shape {
  __host__ __device__ int corners() const override { return 4; }
};
__global__ void make_square(void* place) { new (place) Square; }
CASE(object_of_a_kernel) {
  Shape* shape;
  cudaMallocManaged(&shape, sizeof(Square));
  make_square<<<1, 1>>>(shape);
  cudaDeviceSynchronize();
  std::printf("%d\n", shape->corners());  // object_of_a_kernel
}
CASE(copied_object_of_a_kernel) {
  Shape* shape;
  cudaMalloc(&shape, sizeof(Square));
  make_square<<<1, 1>>>(shape);
  void* const host = std::malloc(sizeof(Square));
  cudaMemcpy(host, shape, sizeof(Square), cudaMemcpyDeviceToHost);
  std::printf("%d\n", static_cast<Shape*>(host)->corners());  // copied_object_of_a_kernel
}

CASE(type_of_an_object_of_a_kernel) {
  Shape* shape;
  cudaMallocManaged(&shape, sizeof(Square));
  make_square<<<1, 1>>>(shape);
  cudaDeviceSynchronize();
  if (dynamic_cast<Square*>(shape) != nullptr) std::printf("a square\n");  // type_of_an_object_of_a_kernel
}

__global__ void use_heap() { free(malloc(8)); }
CASE(heap_resized_too_late) {
  use_heap<<<1, 1>>>();
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);  // heap_resized_too_late
}

CASE(shifted_within_one_array) {
  int* const x = zeros<int>(N);
  cudaMemcpy(x + 1, x, (N - 1) * sizeof(int), cudaMemcpyDeviceToDevice);  // shifted_within_one_array
}
CASE(rows_shifted_within_one_array) {
  int* const x = zeros<int>(N * N);
  const std::size_t pitch = N * sizeof(int), width = (N - 4) * sizeof(int);
  cudaMemcpy2D(x, pitch, x + N, pitch, width, N - 1, cudaMemcpyDeviceToDevice);  // rows_shifted_within_one_array
}

int main(int argc, char** argv) { return main_of_cases(argc, argv); }
