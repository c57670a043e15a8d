#include "simt/trace/operands.h"

#include "simt/engine/engine.h"
#include "simt/hopper/wgmma.h"

namespace simt {
namespace {

std::vector<std::size_t> chunks_of(const MatrixInShared& matrix, int first, int rows) {
  std::vector<std::size_t> offsets;
  matrix.for_each_chunk(first, rows, [&](std::uint32_t address, int, int) {
    offsets.push_back(worker->shared_offset(worker->shared().at(address)));
  });
  return offsets;
}

}  // namespace

Operands operands_of(const Product& product) {
  const int warp = static_cast<int>(product.warp % 4);
  return {product.form.a_in_registers ? std::vector<std::size_t>() : chunks_of(product.form.a, warp * 16, 16),
          chunks_of(product.form.b, 0, product.form.columns)};
}

}  // namespace simt
