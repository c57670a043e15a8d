// Where in shared memory a wgmma reads its operands.
#pragma once

#include <cstddef>
#include <vector>

namespace simt {

struct Product;

// Of a warp's share: 16 bytes each, by SharedMemory::offset_of. No A if it is in registers.
struct Operands {
  std::vector<std::size_t> a, b;
};
Operands operands_of(const Product& product);  // of the current worker's block

}  // namespace simt
