#include "attention/block_mask.h"

#include <algorithm>

namespace attention {
namespace {

constexpr int tile = BlockMask::tile, words = BlockMask::words;

int tiles_of(int rows) { return (rows + tile - 1) / tile; }

// A number that nobody foresees, the same on every machine.
uint32_t scrambled(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;
  for (int i = 0; i < 2; i++) x = (x ^ x >> 15) * 0x2c1b3c6du;
  return x ^ x >> 16;
}

// In which document a position is, of a batch.
int document(const Problem& p, int batch, int position) {
  constexpr int lengths[] = {257, 5, 90, 180, 33, 64}, count = 6, all = 629;
  position = position / (1 + p.seq_k / 2048) + 100 * batch;
  int number = position / all * count, rest = position % all;
  for (const int length : lengths) {
    if (rest < length) break;
    rest -= length, number++;
  }
  return number;
}

}  // namespace

bool sees(const Problem& p, int head, int i, int j) {
  const int own = i + p.seq_k - p.seq_q, distance = own - j, batch = head / p.heads;
  switch (p.blocks) {
    case BlockPattern::documents:
      return distance >= 0 && document(p, batch, j) == document(p, batch, own);
    case BlockPattern::prefix:
      return distance >= 0 || j < p.seq_k / 3;
    case BlockPattern::dilated: {
      const int step = 2 << head % p.heads % 3;
      return distance >= 0 && distance % step == 0 && distance < p.seq_k / 4 + step;
    }
    case BlockPattern::scattered: {
      const int row = i / tile, column = j / tile;
      const uint32_t chance = scrambled(uint32_t(head), uint32_t(row), uint32_t(column)) % 4;
      if (row % 5 == 3 || column % 5 == 2 || chance == 0) return false;
      return chance == 1 || scrambled(uint32_t(head), uint32_t(i), uint32_t(j)) % 2 == 0;
    }
    default:
      return true;
  }
}

double seen_pairs(const Problem& p) {
  double pairs = 0;
  for (int h = 0; h < p.batch * p.heads; h++)
    for (int i = 0; i < p.seq_q; i++) {
      const Problem::Span keys = p.keys_of(i);
      for (int j = keys.first; j < keys.end; j++) pairs += sees(p, h, i, j);
    }
  return pairs;
}

BlockLists block_lists(const Problem& p) {
  if (p.blocks == BlockPattern::none || p.blocks == BlockPattern::given) return {};
  const bool by_batch = p.blocks == BlockPattern::documents || p.blocks == BlockPattern::scattered;
  const bool by_head = p.blocks == BlockPattern::dilated || p.blocks == BlockPattern::scattered;
  BlockLists lists = {by_batch ? p.batch : 1, by_head ? p.heads : 1, {}, {}, {}};
  const int rows = tiles_of(p.seq_q), columns = tiles_of(p.seq_k);
  std::vector<int> of_rows, of_columns;          // of tiles
  std::vector<uint32_t> of_queries, of_keys;     // of bits
  std::vector<int> cut(size_t(rows) * columns);  // -2: nothing is seen
  const auto list = [&](std::vector<int>& tiles, int one, int its_cut) {
    if (its_cut >= -1) tiles.insert(tiles.end(), {one, its_cut});
  };
  for (int mask = 0; mask < lists.batch * lists.heads; mask++) {
    const int head = by_head ? mask : mask * p.heads;
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < columns; c++) {
        const int queries = std::min(tile, p.seq_q - r * tile), keys = std::min(tile, p.seq_k - c * tile);
        std::vector<uint32_t> queries_bits(tile * words), keys_bits(tile * words);
        int seen = 0;
        for (int i = 0; i < queries; i++)
          for (int j = 0; j < keys; j++) {
            const uint32_t bit = sees(p, head, r * tile + i, c * tile + j);
            seen += int(bit);
            queries_bits[i * words + j / 32] |= bit << j % 32;
            keys_bits[j * words + i / 32] |= bit << i % 32;
          }
        int& its_cut = cut[r * columns + c];
        its_cut = seen == 0 ? -2 : -1;
        if (seen == 0 || seen == queries * keys) continue;
        its_cut = int(of_queries.size() / (tile * words));
        of_queries.insert(of_queries.end(), queries_bits.begin(), queries_bits.end());
        of_keys.insert(of_keys.end(), keys_bits.begin(), keys_bits.end());
      }
    for (int r = 0; r < rows; r++) {
      lists.begin.push_back(int(of_rows.size() / 2));
      for (int c = 0; c < columns; c++) list(of_rows, c, cut[r * columns + c]);
    }
    lists.begin.push_back(int(of_rows.size() / 2));
    for (int c = 0; c < columns; c++) {
      lists.begin.push_back(int(of_columns.size() / 2));
      for (int r = 0; r < rows; r++) list(of_columns, r, cut[r * columns + c]);
    }
    lists.begin.push_back(int(of_columns.size() / 2));
  }
  lists.tiles = std::move(of_rows);
  lists.tiles.insert(lists.tiles.end(), of_columns.begin(), of_columns.end());
  lists.bits = std::move(of_queries);
  lists.bits.insert(lists.bits.end(), of_keys.begin(), of_keys.end());
  return lists;
}

Problem with_blocks(Problem p, BlockPattern pattern) {
  p.blocks = pattern;
  p.listed = block_lists(p).listed();
  return p;
}

std::string wrong_lists(const Problem& p, const BlockMask& mask, bool with_columns) {
  const int sizes[] = {tiles_of(p.seq_q), tiles_of(p.seq_k)}, stride = sizes[0] + sizes[1] + 2;
  const auto text = [](auto number) { return std::to_string(number); };
  for (int side = 0; side <= int(with_columns); side++) {
    const std::string one = side ? "column" : "row";
    int end = 0;  // of the list before
    for (int m = 0; m < mask.batch * mask.heads; m++) {
      const int* begin = mask.begin + m * stride + side * (sizes[0] + 1);
      for (int n = 0; n <= sizes[side]; n++) {
        const std::string its =
            "block_begin of " + one + " " + text(n) + " of mask " + text(m) + " is " + text(begin[n]);
        if (n == 0 && begin[0] != end) return its + ": it must be " + text(end);
        if (begin[n] < end || begin[n] > mask.listed)
          return its + ": it must be from " + text(end) + " to " + text(mask.listed);
        for (int t = end; t < begin[n]; t++) {
          const int* tile = mask.tiles + (size_t(side) * mask.listed + t) * 2;
          const std::string name = "tile " + text(t) + ", of " + one + " " + text(n - 1) + " of mask " + text(m) + ",";
          if (tile[0] < 0 || tile[0] >= sizes[!side])
            return name + " is " + text(tile[0]) + ": it must be from 0 to " + text(sizes[!side] - 1);
          if (t > end && tile[0] <= tile[-2])
            return name + " is " + text(tile[0]) + " and stands behind " + text(tile[-2]) + ": they must rise";
          if (tile[1] < -1 || tile[1] >= mask.cuts)
            return name + " has the bits of number " + text(tile[1]) + ": it must be from -1 to " + text(mask.cuts - 1);
          if (side == 0) continue;
          const int* row = mask.begin + m * stride + tile[0];
          const auto is_it = [&](int r) { return mask.tiles[2 * r] == n - 1 && mask.tiles[2 * r + 1] == tile[1]; };
          bool found = false;
          for (int r = row[0]; r < row[1]; r++) found = found || is_it(r);
          if (!found) return name + " is " + text(tile[0]) + ": that row does not have it";
        }
        end = begin[n];
      }
    }
    if (end != mask.listed)
      return "the " + one + "s have " + text(end) + " tiles and " + text(mask.listed) +
             " are listed: it must be as many";
  }
  for (int c = 0; c < mask.cuts && with_columns; c++)
    for (int i = 0; i < tile; i++)
      for (int j = 0; j < tile; j++) {
        const auto bit = [&](int side, int a, int b) {
          return mask.bits[((size_t(side) * mask.cuts + c) * tile + a) * words + b / 32] >> b % 32 & 1;
        };
        if (bit(0, i, j) != bit(1, j, i))
          return "of cut tile " + text(c) + ", query " + text(i) + (bit(0, i, j) ? " sees" : " does not see") +
                 " key " + text(j) + ", and the keys' bits say otherwise";
      }
  return "";
}

}  // namespace attention
