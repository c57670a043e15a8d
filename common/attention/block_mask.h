// Block masks on the host: those that the workbook makes for its tests, as a rule of which pairs see one another; the
// lists of tiles that follow from a rule; and what can be wrong with such lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/rung.h"

namespace attention {

// Whether query i of a head, counted over all batches, sees key j, by the problem's pattern alone:
//
//   documents  of unequal length, one behind the other, which differ from batch to batch: a query sees its own document
//              up to itself
//   prefix     a third of the keys, which all queries see; behind it a query sees all keys up to itself
//   dilated    every second, fourth or eighth key of a window, by the head
//   scattered  some tiles, whole ones or by chance half of their pairs; each head of each batch has others, and some
//              rows and columns of tiles have none
bool sees(const Problem& problem, int head, int i, int j);

// How many pairs of all heads are seen.
double seen_pairs(const Problem& problem);

// What a BlockMask points to.
struct BlockLists {
  int batch = 1, heads = 1;
  std::vector<int> begin, tiles;
  std::vector<uint32_t> bits;

  int listed() const { return int(tiles.size() / 4); }
  int cuts() const { return int(bits.size() / (2 * BlockMask::tile * BlockMask::words)); }
};

// Those of the problem's pattern; empty if it has none. The problem with their number.
BlockLists block_lists(const Problem& problem);
Problem with_blocks(Problem problem, BlockPattern pattern);

// Of a mask in the host's memory, one line that says what is wrong with it; empty if nothing is. `with_columns`: the
// lists of columns, too, which only a backward reads.
std::string wrong_lists(const Problem& problem, const BlockMask& mask, bool with_columns);

}  // namespace attention
