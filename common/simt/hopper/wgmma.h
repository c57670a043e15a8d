// Products of a warpgroup: what device/wgmma.h says of them. Each warp's quarter of one is calculated when that warp
// waits for it, from what the shared memory of A and B holds then; until then the threads' shares of D are poison.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/engine/copy.h"
#include "simt/engine/wait.h"
#include "simt/hopper/hopper.h"

namespace simt {

constexpr bool is_fp8(Element element) { return element >= Element::e4m3; }
constexpr int bytes_of(Element element) { return is_fp8(element) ? 1 : 2; }
constexpr int depth_of(Element element) { return 32 / bytes_of(element); }

// A matrix in shared memory, by its descriptor.
struct MatrixInShared {
  std::uint64_t descriptor;
  bool mn;  // its rows are not along the products' inner index; of 16-bit elements alone
  Element element;

  std::uint32_t start() const { return static_cast<std::uint32_t>(descriptor & 0x3fff) << 4; }
  std::uint32_t page_bytes() const { return static_cast<std::uint32_t>(descriptor >> 16 & 0x3fff) << 4; }
  std::uint32_t stride_bytes() const { return static_cast<std::uint32_t>(descriptor >> 32 & 0x3fff) << 4; }
  // Of a row, and of the swizzle: 128 or 64; or 16, without a swizzle.
  std::uint32_t row_bytes() const { return descriptor >> 62 == 2 ? 64 : descriptor >> 62 == 0 ? 16 : 128; }

  // The chunks of 16 bytes that hold rows first to first + rows, 32 bytes of the inner index each: visit(address, row,
  // k). The chunk's elements are (row, k), (row, k + 1) and so on, or (row, k), (row + 1, k) and so on if `mn`.
  template <class Visit>
  void for_each_chunk(int first, int rows, Visit visit) const {
    const std::uint32_t places = row_bytes() / 16 - 1;                        // 0: no swizzle, and
    const std::uint32_t chunk_bytes = row_bytes() == 16 ? page_bytes() : 16;  // a row's chunks lie apart
    const auto swizzled = [=](std::uint32_t address) { return address ^ (address >> 7 & places) << 4; };
    if (mn) {
      for (int k = 0; k < 16; ++k)
        for (int row = first; row < first + rows; row += 8)
          visit(swizzled(start() + row / 64 * page_bytes() + k / 8 * stride_bytes() + k % 8 * 128 + row % 64 * 2), row,
                k);
    } else {
      for (int row = first; row < first + rows; ++row)
        for (std::uint32_t chunk = 0; chunk < 2; ++chunk)
          visit(swizzled(start() + row / 8 * stride_bytes() + row % 8 * row_bytes() + chunk * chunk_bytes), row,
                static_cast<int>(chunk) * depth_of(element) / 2);
    }
  }

  bool operator==(const MatrixInShared&) const = default;
};

// What all threads of a warpgroup say together.
struct ProductForm {
  bool a_in_registers;
  bool accumulate;
  int columns;           // N
  MatrixInShared a, b;   // of an A in registers, its element alone
  bool negated = false;  // -A B

  bool operator==(const ProductForm&) const = default;
};

struct Product {
  ProductForm form;
  std::array<float*, 32> d;                             // of each lane, columns / 2 floats, one after the other, ..
  std::vector<float*> scattered;                        // .. or, if it has any, [lane][columns / 2] of them
  std::array<std::array<std::uint32_t, 4>, 32> a = {};  // of each lane, if A is in registers
  unsigned warp = 0;                                    // its number in the block
  const void* pc = nullptr;

  float& share(int lane, int i) const {
    return scattered.empty() ? d[lane][i] : *scattered[lane * form.columns / 2 + i];
  }
};

class Products {
 public:
  void block_begins();

  // By the warp that the current thread belongs to.
  void start(const Product& product, Worker& worker);
  void wait(int pending_groups, Worker& worker);
  // By the current thread.
  void commit(const Worker& worker);
  void fence(const Worker& worker);

  bool under_way(unsigned warp) const { return !warps_[warp].pending.empty(); }
  const Product* oldest(unsigned warp) const;  // of those not waited for; null if there is none
  // The product that owns this place among the current thread's own variables: null if none does.
  const Product* owner(const Worker& worker, const void* address) const;
  // What is wrong if the block ends now; empty if nothing is.
  std::string left_over() const;

 private:
  struct Sum {
    std::vector<float> values;  // [16][columns]
    int in_flight = 0;          // products that add to it
    unsigned fences = 0;        // of the warp, when the last of them ended
  };
  struct OfWarp {
    std::vector<Product> pending;
    Groups groups;
    unsigned started = 0;
    unsigned commits = 0;
    unsigned fences = 0;
    std::array<unsigned, 32> commits_of_lane = {};
    std::unordered_map<const float*, Sum> sums;  // by lane 0's d
  };

  void check(const Product& product, Worker& worker) const;
  void read_operands(const Product& product, const Worker& worker);
  void multiply(const Product& product, const Worker& worker, float* sum);

  struct {
    float a[16][32], b[32][256];
    std::int32_t a_exponents[16][32], b_exponents[32][256];  // in eight bits
  } operands_;                                               // of the product that is being calculated
  std::array<OfWarp, max_warps> warps_;
  std::array<std::vector<ProductForm>, max_warps / 4> forms_;  // [warpgroup]: those that any of its warps has started
};

}  // namespace simt
