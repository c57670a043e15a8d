// Clusters: blocks that run at the same time, on multiprocessors next to each other, and reach each other's shared
// memory. CUDA C++ Programming Guide, "Thread Block Clusters"; PTX ISA, "barrier.cluster", "mapa". Compute
// capability 9.0 and later.
//
// A block may touch another one's shared memory when it knows that that block has started, and as long as that has not
// ended: both take a cluster_sync(). The blocks of a cluster are told by their ranks, 0 and up.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/launch.h"
#include "device/mbarrier.h"
#include "device/shared_address.h"
#include "device/tensor_map.h"

// launch(), in clusters of so many blocks: at most 8, and the grid is a multiple of it.
template <class... Params, class... Args>
void launch_clusters(void (*kernel)(Params...), dim3 cluster, LaunchConfig config, Args&&... args) {
  config.cluster = cluster;
  launch_grid(kernel, config, Blocks::apart, std::forward<Args>(args)...);
}

__device__ __forceinline__ uint32_t cluster_rank() {
#ifdef WORKBOOK_SIMT
  return simt::cluster_rank();
#else
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#endif
}

// The barrier of all threads of the cluster, in two parts: each thread arrives, and later waits until all have. What
// threads did before they arrived is seen by those that have waited.
#ifdef WORKBOOK_SIMT
inline void cluster_arrive(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::cluster_arrive(true, file, line);
}
inline void cluster_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::cluster_wait(file, line);
}
inline void cluster_sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cluster_arrive(file, line);
  cluster_wait(file, line);
}
#else
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
#endif

// Where the block of that rank has what this block has at `shared`.
#ifdef WORKBOOK_SIMT
template <class T>
T* map_shared(T* shared, uint32_t rank, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return static_cast<T*>(simt::map_shared(shared, rank, file, line));
}
#else
template <class T>
__device__ __forceinline__ T* map_shared(T* shared, uint32_t rank) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return there;
}
#endif

// Arrives at the mbarrier that the block of that rank has where this block has `mbarrier` (its own, if it is its own
// rank). Those that wait for it wait so that they see what other blocks did: mbarrier_wait_cluster().
//
// mbarrier_arrive_cluster_read() is for a thread that has only read what the mbarrier guards, so that others may write
// there: they wait with mbarrier_wait(). What this thread has written, threads of other blocks may not see yet. The
// other one first waits until all has left that its thread has written, to global memory as well (MEMBAR.ALL.GPU, where
// nvcc compiles it), and in a loop that takes longer than what is waited for.
#ifdef WORKBOOK_SIMT
inline void mbarrier_arrive_cluster(Mbarrier* mbarrier, uint32_t rank, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  simt::mbarrier_arrive(&map_shared(mbarrier, rank, file, line)->state, 1, 0, file, line);
}
inline void mbarrier_arrive_cluster_read(Mbarrier* mbarrier, uint32_t rank, const char* file = __builtin_FILE(),
                                         int line = __builtin_LINE()) {
  mbarrier_arrive_cluster(mbarrier, rank, file, line);
}
inline void mbarrier_wait_cluster(Mbarrier* mbarrier, unsigned parity, const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
  mbarrier_wait(mbarrier, parity, file, line);
}
#else
__device__ __forceinline__ void mbarrier_arrive_cluster(Mbarrier* mbarrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(rank)
      : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_cluster_read(Mbarrier* mbarrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(rank)
      : "memory");
}
__device__ __forceinline__ void mbarrier_wait_cluster(Mbarrier* mbarrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(parity)
      : "memory");
}
#endif

// tensor_load() (device/bulk_copy.h) to several blocks, a bit of `blocks` for each: to the same place in the shared
// memory of all, and each block's mbarrier at the same place counts the bytes that come there. L2 is read once.
__device__ __forceinline__ void tensor_load_multicast(void* shared, const TensorMap& map, Mbarrier* mbarrier,
                                                      uint16_t blocks, int c0, int c1, int c2, int c3) {
#ifdef WORKBOOK_SIMT
  simt::tensor_load_multicast(shared, map, &mbarrier->state, {c0, c1, c2, c3}, 4, blocks);
#else
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(mbarrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
#endif
}

// The same of consecutive bytes: bulk_load().
__device__ __forceinline__ void bulk_load_multicast(void* shared, const void* global, int bytes, Mbarrier* mbarrier,
                                                    uint16_t blocks) {
#ifdef WORKBOOK_SIMT
  simt::bulk_load_multicast(shared, global, bytes, &mbarrier->state, blocks);
#else
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(mbarrier)), "h"(blocks)
      : "memory");
#endif
}
