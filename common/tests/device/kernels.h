// Kernels of one wrapper each, as plain functions from inputs to outputs, so that the tests are ordinary C++. One warp
// per thread block, and one block per case. They throw CudaError if a call fails.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/problem.h"

namespace device_tests {

using attention::DType;

// The PTX ISA's fragments, [case][lane][register].
using Words = std::vector<uint32_t>;
using Floats = std::vector<float>;

// c[.., 32, 4] + a[.., 32, 4] b[.., 32, 2]
Floats mma(DType dtype, const Words& a, const Words& b, const Floats& c);
Floats mma_half(const Words& a, const Words& b, const Floats& c);  // with fp16 sums

// What ldmatrix makes of shared memory that holds `tile` (32 rows of 8 elements), where lane l passes the address of
// row rows[l]: registers [32][4] or [32][2].
enum class Form { x4, x4_trans, x2, x2_trans };
Words ldmatrix(Form form, const std::vector<uint16_t>& tile, const std::vector<int>& rows);

// The shared memory, 32 rows of 8 elements, that is 0xffff before stmatrix_x4, or stmatrix_x4_trans, of the fragments
// [lane][4], where lane l passes the address of row rows[l].
std::vector<uint16_t> stmatrix(bool trans, const Words& fragments, const std::vector<int>& rows);

// The product of one warp by way of shared memory, as a flash kernel does it: A [16, 16] and the eight or sixteen rows
// of B as they lie in memory, C [16, 8]. `b_is_transposed`: B is stored as K is, [8, 16]; else as V is, [16, 8].
Floats multiply(DType dtype, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, bool b_is_transposed);

// Lane l copies 16 bytes number l of `from` (32 x 4 words), and gets zeros where valid[l] is 0.
Words copy_or_zero(const Words& from, const std::vector<int>& valid);

// Each lane copies three times 16 bytes, in a group each: [stage][lane][4 words]. It reads two stages when at most one
// group is pending, the third when none is.
Words copy_in_stages(const Words& from);

// The sums that `blocks` warps make with atomic_add_4: lane l of each adds x[4 * l] and up to sum number l % 8.
Floats add_from_blocks(int blocks, const Floats& x);

// Two pairs of warps, each with a named barrier; in each of `rounds`, one warp writes and the other reads. What was
// read, [round][pair][lane]: 100 * round + 32 * pair + lane if it came through.
std::vector<int> pass_to_partner(int rounds, bool writer_waits);

// Blocks of a warp take turns: each adds 1 to what the lane next door of the block before wrote, [block][lane]. They
// look for their turn with semaphore_peek, or wait with semaphore_wait.
std::vector<int> take_turns(int blocks, bool peek);

// Blocks of a warp in a circle, which all run at the same time: in each of `rounds` each adds 1 to what the lane next
// door of the block behind it has, [block][lane]; at first that is the lane's number.
std::vector<int> pass_in_a_circle(int rounds, int blocks);

// The tiles of 64 rows that a TileList with so many heads in a round has, in its order: [tile][head, first row].
std::vector<int> tiles_in_order(const attention::Problem& p, int round_heads);

// `launches` dependent launches: each adds 1 to what the one before wrote, 32 elements further on in a ring of
// [blocks][32] that starts as 0, 1, 2, ...
std::vector<int> go_round(int launches, int blocks);

// RoPE's angles of all pairs of each position, [position][D/2] cosines, then as many sines. The tables, [rows][D/2],
// have the rows from `first_row` on, and no others.
Floats angles(int head_dim, const Floats& cos, const Floats& sin, int first_row, const std::vector<int>& positions);

Floats to_float(DType dtype, const std::vector<uint16_t>& bits);
std::vector<uint16_t> from_float(DType dtype, const Floats& x);
Words pack2(DType dtype, const Floats& low, const Floats& high);
Floats unpack2(DType dtype, const Words& packed);  // x and y of each, in turn

enum class Function { exp2_approx, exp2_polynomial, log2_approx, warp_sum, warp_max, quad_sum, quad_max };
Floats evaluate(Function function, const Floats& x);  // a multiple of 32 values; one warp takes 32

}  // namespace device_tests
