// The problem that every chapter solves: scaled dot-product attention over
//
//   Q, O      [batch, heads,    seq_q, head_dim]   fp16 or bf16
//   K, V      [batch, kv_heads, seq_k, head_dim]   fp16 or bf16
//   LSE       [batch, heads,    seq_q]             fp32, natural logarithm
//
// all contiguous and row-major (the last axis is consecutive in memory), accumulated in fp32:
//
//   S = scale * Q K^T      P = softmax(S) along the keys      O = P V      LSE = log(sum(exp(S)))
//
// With RoPE (rotary position embedding; rotate-half, as in Llama and GPT-NeoX) Q and K are rotated by their positions
// before that, and a backward gives the gradients of the unrotated ones: pair i of a row, elements i and i + D/2, is
// turned by position * 10000^(-2i/D).
//
// In eight bits Q, K and V are rounded to e4m3 before that, and P where it enters the product, relative to its row's
// largest: each of Q, K and V is divided by its scale, 1/448 of its largest finite element in magnitude, and what is
// not finite is NaN. O stays fp16 or bf16.
//
// What models add to that, in any combination, is what a chapter can do that says so (Pass::takes in rung.h):
//
//   views      tensors have strides of their own, with a contiguous last axis: Strides in rung.h. `unaligned` are those
//              whose rows may begin at any element: attention/padded.h copies them
//   window     query i sees keys i + seq_k - seq_q - left <= j <= i + seq_k - seq_q + right (Beltagy et al. 2020)
//   softcap    S = softcap tanh(scale Q K^T / softcap) (Gemma 2, 2024)
//   alibi      S_ij -= slope |i + seq_k - seq_q - j|, a slope for every head (Press et al. 2022)
//              (a softcap and ALiBi are two score functions, and a problem has one)
//   sink       a number s for every head: exp(s) is one more term of each row's sum, and of LSE (gpt-oss, 2025)
//   own_v      V has a head dim of its own, which O, dO and dV share with it (DeepSeek-V2, 2024)
//   packed     sequences of unequal length, one behind the other and without padding: Q and O are [total_q, heads, D],
//              K and V [total_k, kv_heads, D], and LSE is [heads, total_q]. `batch` is the number of sequences, seq_q
//              and seq_k are the longest there may be. Sequence b has the rows from cu_seqlens[b] up to
//              cu_seqlens[b + 1] (rung.h), which the device alone knows, and is a problem of its own: a mask, a window
//              and distances are aligned with its last query and its last key. It may be empty. What lies behind the
//              last sequence is never touched.
//   blocks     a block mask says which pairs of a query and a key see one another: BlockMask in rung.h lists the tiles
//              of 128 queries and 128 keys in which there are any. A causal mask hides more of them, and computes all
//              tiles that are listed
//
// NaN and infinities in the inputs reach every result that depends on them, and spread no further, with one exception:
// a key that a query does not see weighs P = dS = 0 for that query, and 0 * NaN is NaN where a product takes in the
// key all the same.
//
// Kernels take a Problem by value, so this header is read by host and device code alike.
#pragma once

#include <cstddef>
#include <iosfwd>  // declares std::string

#include "device/cuda.h"

namespace attention {

enum class DType { fp16, bf16 };
enum class Mask { none, causal };

// Where a block mask is from: the caller, or one of those that block_mask.h makes.
enum class BlockPattern : unsigned char { none, given, documents, prefix, dilated, scattered };

// How a forward in eight bits rounds. Q, K and V have a scale for each tensor, and the largest P of a row is a power of
// two. Or likewise, where m may lag: the largest P is any number, as with all that follow. Or they have a scale for
// each tile of fp8_tile rows of a head, a power of two. Or likewise, of Q and K once their rows are multiplied by a
// Hadamard matrix (device/fp8.h).
enum EightBits : unsigned char { sixteen_bits, scale_of_tensor, lagging_max, scale_of_tile, rotated_tile };
constexpr int fp8_tile = 128;

struct Problem {
  int batch = 1;
  int heads = 1;      // query heads
  int kv_heads = 1;   // heads % kv_heads == 0: query head h reads kv head h / (heads / kv_heads)
  int seq_q = 1;      // N of the queries
  int seq_k = 1;      // N of the keys and values; may differ from seq_q
  int head_dim = 64;  // a multiple of 8 up to 128 for every chapter, and up to 256 for some
  DType dtype = DType::fp16;
  Mask mask = Mask::none;
  float scale = 0.125f;  // 1 / sqrt(head_dim) unless the caller wants another: see default_scale()
  bool rope = false;
  EightBits eight_bits = sixteen_bits;

  bool views = false;
  int window_left = -1, window_right = -1;  // keys before and after the query's own that it sees; -1: all of them
  float softcap = 0;                        // 0: none
  bool alibi = false;
  bool sink = false;
  int head_dim_v = 0;  // 0: V has the head dim of Q and K
  bool packed = false;
  BlockPattern blocks = BlockPattern::none;
  bool unaligned = false;  // with views
  union {
    int total_q = 0;  // rows of packed tensors
    int listed;       // tiles of a block mask: a problem has one or the other
  };
  int total_k = 0;

  // Of V, O, dO and dV; head_dim is that of Q, K, dQ and dK.
  __host__ __device__ int v_dim() const { return head_dim_v ? head_dim_v : head_dim; }

  // The keys that query i sees, also through a window: first <= j < end, none if end <= first. Neither end is lower
  // for a later query.
  struct Span {
    int first, end;
  };
  __host__ __device__ Span keys_of(int i) const {
    const int own = i + seq_k - seq_q, right = mask == Mask::causal ? 0 : window_right;
    const int end = right < 0 || own + right >= seq_k ? seq_k : own + right + 1;
    return {window_left < 0 || own < window_left ? 0 : own - window_left, end < 0 ? 0 : end};
  }

  // The other way round: the queries that see key j.
  __host__ __device__ Span queries_of(int j) const {
    const int own = j + seq_q - seq_k, right = mask == Mask::causal ? 0 : window_right;
    const int end = window_left < 0 || own + window_left >= seq_q ? seq_q : own + window_left + 1;
    return {right < 0 || own < right ? 0 : own - right, end < 0 ? 0 : end};
  }

  // Number of keys that query i sees where there is no window: always the first ones. Causal is aligned bottom-right,
  // as in FlashAttention 2.1 and later: the last query sees every key, so query i sees j <= i + seq_k - seq_q. With
  // seq_q > seq_k the first queries see none: O = 0 and LSE = -inf there.
  __host__ __device__ int visible_keys(int i) const {
    if (mask == Mask::none) return seq_k;
    const int last = i + seq_k - seq_q;
    return last < 0 ? 0 : (last < seq_k ? last + 1 : seq_k);
  }

  // The other way round: the first query that sees key j. All queries after it see the key, too.
  __host__ __device__ int first_query(int j) const {
    const int i = mask == Mask::none ? 0 : j + seq_q - seq_k;
    return i < 0 ? 0 : i;
  }

  // The kv head, counted over the whole batch, that query head `head` of the whole batch reads
  // (0 <= head < batch * heads).
  __host__ __device__ int kv_head(int head) const {
    return head / heads * kv_heads + head % heads / (heads / kv_heads);
  }

  // Key j stands at position j, and the last query where the last key stands. With seq_q > seq_k the first queries have
  // negative positions, and turn the other way. Tables of angles have a row for every distance from 0.
  __host__ __device__ int query_position(int i) const { return i + seq_k - seq_q; }
  __host__ __device__ int rope_rows() const { return seq_q > seq_k ? seq_q : seq_k; }

  // Numbers of elements.
  size_t q_size() const { return lse_size() * head_dim; }  // Q, dQ; and if V is as wide, O, dO
  size_t kv_size() const { return kv_rows() * head_dim; }  // K, dK; and if V is as wide, V, dV
  size_t o_size() const { return lse_size() * v_dim(); }   // O, dO
  size_t v_size() const { return kv_rows() * v_dim(); }    // V, dV
  size_t lse_size() const { return (packed ? total_q : size_t(batch) * seq_q) * heads; }
  size_t kv_rows() const { return (packed ? total_k : size_t(batch) * seq_k) * kv_heads; }
  size_t alibi_size() const { return alibi ? size_t(batch) * heads : 0; }
  size_t sink_size() const { return sink ? heads : 0; }
  size_t rope_size() const { return rope ? size_t(rope_rows()) * (head_dim / 2) : 0; }  // of one table
};

// 1 / sqrt(head_dim), "Attention Is All You Need" (Vaswani et al. 2017), equation 1.
float default_scale(int head_dim);

const char* name(DType dtype);           // "fp16", "bf16"
const char* name(Mask mask);             // "none", "causal"
const char* name(BlockPattern pattern);  // likewise

// The default problem. On a GPU the ladder's regime, B=2 H=16 D=64 fp16 causal, N = 4096;
// on the engine a problem that takes it about a second.
Problem default_problem();

// As the name of a benchmark has it: B2_H16_N4096_D64_fp16_causal, with what differs from the usual spelt out.
std::string label(const Problem& problem);

// Floating-point operations as FlashAttention counts them: two products of 2 Nq Nk D, half of it when causal, and 2.5
// times that backward (five products). If V has its own head dim, that is the D of P V, dP and dV. Packed
// sequences have those of one problem each, and a block mask those of the pairs that it lets see.
double flops(const Problem& problem, bool backward);

// An error in the problem itself, for every solver: one line that names the value and what is allowed; empty if there
// is none.
std::string invalid(const Problem& problem);

// What a problem can have beside the plain one, as bits. A softcap and ALiBi are both score functions.
enum Extras : unsigned {
  no_extras = 0,
  views = 1,
  window = 2,
  softcap = 4,
  alibi = 8,
  sink = 16,
  own_v = 32,
  packed = 64,
  blocks = 128
};
unsigned extras(const Problem& problem);

// One line if the problem has extras that are not among `taken`; else empty.
std::string extras_unsupported(const Problem& problem, unsigned taken);

// One line if head_dim is not a multiple of `step` in [step, largest]; else empty. For Pass::unsupported.
std::string head_dim_unsupported(const Problem& problem, int step, int largest);

// With a step of 8, which all chapters have.
std::string head_dim_not_8_to_256(const Problem& problem);
std::string head_dim_not_8_to_128(const Problem& problem);

// One line if a GPU of this compute capability does not have the instructions of Hopper, which no later one has either,
// or if its thread blocks can have too few bytes of shared memory.
std::string not_hopper(int major, int minor, int block_bytes);

// That for the current device, and then head_dim_not_8_to_128.
std::string not_for_hopper(const Problem& problem);
std::string not_for_hopper_to_256(const Problem& problem);  // and this one with head dims up to 256

}  // namespace attention
