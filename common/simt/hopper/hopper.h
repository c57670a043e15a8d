// What compute capability 9.0 adds, for the wrappers of common/device: mbarriers, bulk copies, products of a
// warpgroup. Each function is one instruction of PTX. Files and lines are those of the kernel, for messages.
#pragma once

#include <array>
#include <cstdint>

namespace simt {

struct ProductForm;
// What a product multiplies. It takes 32 bytes of the inner index: 16 elements of 16 bits, or 32 of 8.
enum class Element : std::uint8_t { fp16, bf16, e4m3, e5m2 };

// A tensor in global memory, and the boxes of it that are copied. Innermost dimension first. A row of a box is swizzled
// over all of its bytes, 128 or 64.
struct TensorMap {
  void* data;
  int element_bytes;
  int rank;
  std::int64_t sizes[5];    // in elements
  std::int64_t strides[5];  // in bytes
  int box[5];               // in elements

  int row_bytes() const { return box[0] * element_bytes; }  // of a box
};

// Where PTX would say that this place in shared memory is: what swizzles and descriptors depend on.
std::uint32_t shared_address(const void* pointer);

// Mbarriers, by the address of their 8 bytes.
void mbarrier_init(std::uint64_t* mbarrier, int arrivals, const char* file, int line);
void fence_mbarrier_init();
// Returns the number of the phase in which it counts.
unsigned mbarrier_arrive(std::uint64_t* mbarrier, int arrivals, int expected_bytes, const char* file, int line);
void mbarrier_drop(std::uint64_t* mbarrier, const char* file,
                   int line);  // expects one arrival less from the next phase on
void mbarrier_wait(std::uint64_t* mbarrier, unsigned parity, const char* file, int line);
// Whether a wait would return at once. Then it has been one. No other thread runs meanwhile: nobody may spin on it.
bool mbarrier_test(std::uint64_t* mbarrier, unsigned parity, const char* file, int line);

// cp.async that is complete with the phase under way, in which its thread has yet to arrive: 4, 8 or 16 bytes.
void mbarrier_cp_async(std::uint64_t* mbarrier, void* shared, const void* global, std::size_t bytes);

// Loads, completed by an mbarrier. `pc` of copies: the kernel's line, if it is not the caller's.
using Coordinates = std::array<int, 5>;
void tensor_load(void* shared, const TensorMap& map, std::uint64_t* mbarrier, const Coordinates& at, int rank);
void bulk_load(void* shared, const void* global, int bytes, std::uint64_t* mbarrier, const void* pc = nullptr);

// The same for several blocks of a cluster, a bit of `blocks` for each by its rank: to the same place in the shared
// memory of all, and completed by the mbarrier that each has at the same place.
void tensor_load_multicast(void* shared, const TensorMap& map, std::uint64_t* mbarrier, const Coordinates& at, int rank,
                           std::uint16_t blocks);
void bulk_load_multicast(void* shared, const void* global, int bytes, std::uint64_t* mbarrier, std::uint16_t blocks,
                         const void* pc = nullptr);
// From this block's shared memory to that of another block of its cluster, where the mbarrier is too.
void bulk_to_block(void* to, const void* from, int bytes, std::uint64_t* mbarrier, const void* pc = nullptr);

// Stores and sums, completed by the thread's groups.
void tensor_store(const TensorMap& map, const void* shared, const Coordinates& at, int rank);
void bulk_store(void* global, const void* shared, int bytes, const void* pc = nullptr);
void bulk_add(float* global, const float* shared, int bytes, const void* pc = nullptr);
void bulk_commit();
void bulk_wait(int pending_groups, bool only_read, const char* file, int line);

void fence_proxy_async(const char* file, int line);

// d[64, columns] += a[64, depth] b[depth, columns], or = if not `accumulate`, where a depth of 16-bit elements is 16,
// and of others 32. d is the calling thread's share, columns / 2 floats, which are poison until a wait; a and b are
// descriptors, or a the thread's four registers. `mn` says of a matrix in shared memory that its rows are not along the
// products' inner index.
void wgmma(Element element, int columns, float* d, std::uint64_t a, bool a_mn, std::uint64_t b, bool b_mn,
           bool accumulate);
void wgmma(Element element, int columns, float* d, const std::uint32_t* a, std::uint64_t b, bool b_mn, bool accumulate);
// Any form of it, with d where each of its columns / 2 pointers says, and a as registers or null.
void wgmma(const ProductForm& form, float* const* d, const std::uint32_t* a, const void* pc);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int pending_groups, const char* file, int line);

void setmaxnreg(const char* name, int registers, const char* file, int line);

}  // namespace simt
