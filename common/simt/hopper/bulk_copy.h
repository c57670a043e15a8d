// Bulk copies: of a box of a tensor, or of consecutive bytes. One belongs to what completes it, the phase of an
// mbarrier or a group of the thread that started it, and is carried out when that is waited for and no sooner. Until
// then the destination of a load is poison, and the source of a store can still change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simt/engine/copy.h"
#include "simt/hopper/hopper.h"

namespace simt {

class Worker;

struct BulkCopy {
  // remote: from the shared memory of one block of a cluster to that of another, in place of global memory.
  enum Kind : std::uint8_t { load, store, add, remote } kind;
  bool of_a_tensor;  // or of `bytes` at `global`
  Worker* block;     // whose shared memory it is
  char* shared;
  char* global;
  int bytes;  // of shared memory
  TensorMap map;
  Coordinates at;
  bool repeated;    // brings what another destination of the same multicast also gets
  unsigned thread;  // that started it, by its number in the block, and that block's rank in the cluster
  unsigned rank;
  const void* pc;          // where
  bool only_read = false;  // of a store that ends: so far, what waits for it is content

  const char* name() const;  // PTX's
  void carry_out() const;
  std::uintptr_t address_in_shared() const;

  // In the order of shared memory, 16 bytes at most: visit(shared, global, bytes), with a null for what lies outside
  // the tensor.
  template <class Visit>
  void for_each_piece(Visit visit) const;

 private:
  template <class Visit>
  void pieces_of_a_row(char* row, char* from, std::uintptr_t row_address, bool inside, Visit visit) const;
};

// What completes stores: a thread's groups, one after the other.
class BulkGroups {
 public:
  void start(const BulkCopy& copy) { copies_.push_back(copy); }
  void commit() { groups_.commit(copies_.size()); }
  std::vector<BulkCopy> finish(int pending_groups);  // takes out those of all but so many of the newest groups
  const BulkCopy* oldest() const { return copies_.empty() ? nullptr : &copies_.front(); }

 private:
  std::vector<BulkCopy> copies_;
  Groups groups_;
};

template <class Visit>
void BulkCopy::pieces_of_a_row(char* row, char* from, std::uintptr_t row_address, bool inside, Visit visit) const {
  const int elements = 16 / map.element_bytes, chunks = map.row_bytes() / 16;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    char* const place = row + 16 * (chunk ^ static_cast<int>(row_address / 128) % chunks);
    const std::int64_t first = at[0] + std::int64_t(chunk) * elements;  // column in the tensor
    const auto within = [&](std::int64_t column) {
      return inside ? static_cast<int>(std::clamp<std::int64_t>(column - first, 0, elements)) * map.element_bytes : 0;
    };
    const int begin = within(0), end = std::max(begin, within(map.sizes[0]));
    if (begin > 0) visit(place, nullptr, begin);
    if (end > begin) visit(place + begin, from + first * map.element_bytes + begin, end - begin);
    if (end < 16) visit(place + end, nullptr, 16 - end);
  }
}

template <class Visit>
void BulkCopy::for_each_piece(Visit visit) const {
  if (!of_a_tensor) {
    for (int i = 0; i < bytes; i += 16) visit(shared + i, global + i, 16);
    return;
  }
  const auto box = [&](int dimension) { return dimension < map.rank ? map.box[dimension] : 1; };
  const std::uintptr_t address = address_in_shared();
  const int rows = box(1) * box(2) * box(3) * box(4);
  for (int row = 0; row < rows; ++row) {
    bool inside = true;
    char* from = static_cast<char*>(map.data);
    for (int i = 1, left = row; i < map.rank; left /= map.box[i++]) {
      const std::int64_t index = std::int64_t(at[i]) + left % map.box[i];
      inside = inside && index >= 0 && index < map.sizes[i];
      from += index * map.strides[i];
    }
    pieces_of_a_row(shared + map.row_bytes() * row, from, address + map.row_bytes() * row, inside, visit);
  }
}

}  // namespace simt
