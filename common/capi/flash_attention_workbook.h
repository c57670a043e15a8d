/* Every chapter's attention, as C functions on device pointers: for PyTorch through common/python, or for any other
 * language.
 *
 * Tensors are contiguous and row-major unless faw_extras has their strides, 16-byte aligned, in device memory:
 *
 *   q, o, d_o, dq   [batch, heads,    seq_q, head_dim]   fp16 or bf16
 *   k, v, dk, dv    [batch, kv_heads, seq_k, head_dim]   fp16 or bf16
 *   lse             [batch, heads,    seq_q]             fp32, natural logarithm
 *
 * where v may have a head dim of its own, which o, d_o and dv share with it (faw_problem's head_dim_v), and where
 * faw_forward_e4m3 takes q, k and v in eight bits.
 *
 * A problem and its extras begin with their size, sizeof of the struct that the caller was compiled with, so that they
 * can grow. Of a caller with an older header the library takes what is not there yet as left out. Of a caller with a
 * newer one it takes what it does not know yet only if that is all zero.
 *
 * Chapters and rungs go by name: "05_online_softmax". A rung of NULL is the chapter's result, the last of its rungs
 * that has the direction asked for.
 *
 * A function returns FAW_OK, or another status and faw_error() says what is wrong, in one line. The forward and the
 * backward only enqueue kernels on the stream, on the current device: they allocate no device memory and do not
 * synchronise, and a CUDA graph can capture them. Any thread may call any function at any time; nothing throws.
 *
 * A library of the `cpu` preset runs the kernels on the SIMT engine: pointers are then to its memory or to the host's
 * own, there are no streams, and the result is there on return.
 */
#ifndef FLASH_ATTENTION_WORKBOOK_H
#define FLASH_ATTENTION_WORKBOOK_H

#include <stddef.h>

/* The workbook's version, by semantic versioning: every other place has it from here. What is compiled with this header
 * runs with libraries of the same or a later version, as long as the first number is the same. */
#define FAW_VERSION_MAJOR 1
#define FAW_VERSION_MINOR 0
#define FAW_VERSION_PATCH 0
#define FAW_VERSION (FAW_VERSION_MAJOR * 10000 + FAW_VERSION_MINOR * 100 + FAW_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  FAW_OK = 0,
  FAW_INVALID = 1,     /* the call is wrong whatever the chapter: a size, a null or misaligned pointer, a name */
  FAW_UNSUPPORTED = 2, /* this chapter cannot do it on this device; another may */
  FAW_CUDA_ERROR = 3,  /* CUDA refused a call or a launch: no GPU, none that the library was built for, ... */
  FAW_FAILED = 4       /* anything else, such as no host memory for an error's text */
} faw_status;

typedef enum { FAW_FP16 = 0, FAW_BF16 = 1 } faw_dtype;

/* Elements from one batch, head and row of a tensor [batch, heads, sequence, head_dim] to the next: multiples of 8
 * unless extras say `unaligned`, none negative. The elements of a row are consecutive. */
typedef struct {
  long long batch, head, row;
} faw_strides;

/* What models add to attention. All of it can be left out; common/attention/problem.h has the formulas and where they
 * are from. FAW_NO_EXTRAS leaves everything out. */
typedef struct {
  size_t size; /* sizeof(faw_extras) */
  int window_left,
      window_right;   /* query i sees keys from i + seq_k - seq_q - left to i + seq_k - seq_q + right; -1: all */
  float softcap;      /* scores become softcap * tanh(score / softcap), 0.1 to 1000; 0: none */
  const float* alibi; /* [batch, heads], slopes, or NULL: scores lose slope * |i + seq_k - seq_q - j| */
  const float* sink;  /* [heads], or NULL: exp(sink) is one more term of each row's sum, and of lse */
  float* d_sink;      /* [heads], written by a backward of a problem with sinks; else NULL */
  /* Where tensors lie, or NULL for one that is contiguous. */
  const faw_strides *q, *k, *v, *o, *d_o, *dq, *dk, *dv;
  /* Packed sequences, one behind the other, or NULL and 0. Then tensors are [total, heads, head_dim] (a batch's stride
   * is nothing), lse is [heads, total_q], `batch` is the number of sequences, seq_q and seq_k are the longest there may
   * be, and each sequence is masked and aligned on its own. cu_seqlens, [batch + 1] in device memory, say where they
   * begin and the last one ends: 0 first, none below the one before it, the last at most the total. Rows of results
   * behind the last sequence become zeros if zero_rest is not 0, and are never touched if it is. If cu_seqlens are
   * something else, all results are NaN: only the kernels can know. (On the SIMT engine it is the call that refuses.)
   */
  const int *cu_seqlens_q, *cu_seqlens_k;
  int total_q, total_k, zero_rest;
  /* A block mask, or NULL and 0: what queries see of keys, in R x C tiles of FAW_BLOCK queries and as many keys. Of a
   * row of tiles those are listed in which some pair is seen, in rising order, and once more those of each column. The
   * rows of a mask have their lists one behind the other, and a mask has them behind those of the mask before. In
   * device memory, all aligned to 16 bytes:
   *
   *   block_begin  [block_batch, block_heads, R + 1 + C + 1]: where the list of each row begins among those of all rows
   *                of all masks, and where the last one ends; then the same of columns
   *   block_tiles  [2, block_listed, 2]: of each tile in the lists of rows, which one of its row it is, and if not all
   *                of its pairs are seen, whose bits it has, else -1; then the same of columns
   *   block_bits   [2, block_cuts, FAW_BLOCK, FAW_BLOCK / 32]: bit j % 32 of word j / 32 says whether a query of such a
   *                tile sees its key j; then the same of keys, and of queries that see them
   *
   * A row without tiles sees nothing. `causal` hides more, and leaves no listed tile out. If the lists are something
   * else, all results are NaN, as above, and a forward looks at those of rows alone. */
  const int *block_begin, *block_tiles;
  const unsigned* block_bits;
  int block_batch, block_heads; /* of masks: 1, or `batch` and `heads` */
  int block_listed, block_cuts;
  /* 1: strides are any, and tensors begin at any multiple of 2 bytes. Such tensors are copied to the workspace and
   * back. 0: strides are multiples of 8 elements, and tensors begin at multiples of 16 bytes. */
  int unaligned;
  int reserved; /* 0 */
} faw_extras;
#define FAW_NO_EXTRAS                                                                                                  \
  {                                                                                                                    \
    sizeof(faw_extras), -1, -1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, \
        0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0                                                                          \
  }
#define FAW_BLOCK 128

typedef struct {
  size_t size; /* sizeof(faw_problem) */
  int batch;   /* as all sizes, at least 1: whoever has empty tensors has nothing to call */
  int heads;   /* query heads, a multiple of kv_heads: query head h reads kv head h / (heads / kv_heads) */
  int kv_heads;
  int seq_q;
  int seq_k;
  int head_dim;   /* a multiple of 8, up to 128, and up to 256 for some: see faw_default_chapter */
  int head_dim_v; /* of v, o, d_o and dv; 0: head_dim. 12_variants has 128 beside a head_dim of 192 */
  int dtype;      /* a faw_dtype */
  int causal;     /* 0, or 1: query i sees keys j <= i + seq_k - seq_q (bottom-right aligned) */
  float scale;    /* of the logits, not 0; faw_default_scale(head_dim) unless another is wanted */
  /* For chapters that rotate Q and K (faw_rotates), and NULL for all others: the angles of RoPE, fp32, device memory,
   * 16-byte aligned, [max(seq_q, seq_k), head_dim / 2]. Row p has those of position p; key j stands at position j and
   * query i at i + seq_k - seq_q. Asking for the size of a workspace does not need them. */
  const float* rope_cos;
  const float* rope_sin;
  /* For chapters that take some (12_variants, which faw_default_chapter finds); NULL for none. Asking for the size of a
   * workspace, or for a chapter, does not need what alibi, sink, d_sink, cu_seqlens, block_.. and the strides point to:
   * only whether they are NULL. */
  const faw_extras* extras;
} faw_problem;

/* FAW_VERSION as the library was compiled with it. */
int faw_version(void);

/* What went wrong in this thread's last call that did not return FAW_OK; "" before there is one. Never NULL; valid
 * until the next such call. */
const char* faw_error(void);

/* 1 / sqrt(head_dim) */
float faw_default_scale(int head_dim);

/* 1 if the kernels run on the SIMT engine, on host memory; 0 if on a GPU. */
int faw_on_engine(void);

/* The problem that is measured where nobody names one: on a GPU B=2 H=16 N=4096 D=64 fp16 causal, on the engine a small
 * one. The caller has set problem->size. */
faw_status faw_default_problem(faw_problem* problem);

/* Floating-point operations as FlashAttention counts them: 4 B H Nq Nk D, half of it when causal; 2.5 times that if
 * `backward` is not 0. If v has its own head dim, that counts for p v, dp and dv. What takes numbers in device memory
 * to know is refused: of packed sequences ask for each as a problem of its own, of a block mask count the pairs seen.
 */
faw_status faw_flops(const faw_problem* problem, int backward, double* flops);

/* The chapters and their rungs, in the order of the book. Names live as long as the library; NULL past the end. */
const char* faw_chapter(int index);
const char* faw_rung(const char* chapter, int index);

/* 1 if the rung (NULL: any rung of the chapter) has that direction, 0 if not or if there is none of that name. */
int faw_has_forward(const char* chapter, const char* rung);
int faw_has_backward(const char* chapter, const char* rung);

/* 1 if the rung (NULL: any rung of the chapter) has a forward of tensors in e4m3, faw_forward_e4m3; else 0. */
int faw_has_forward_e4m3(const char* chapter, const char* rung);

/* 1 if the rung's forward writes lse, 0 if it leaves it untouched. */
int faw_writes_lse(const char* chapter, const char* rung);

/* 1 if every run of the direction gives the same bits from the same inputs, 0 if not or if the rung has none. */
int faw_is_deterministic(const char* chapter, const char* rung, int backward);

/* 1 if the chapter rotates Q and K by their positions (RoPE), and therefore wants the tables of angles. */
int faw_rotates(const char* chapter);

/* 1 if the chapter rounds Q, K and V to e4m3, each with a scale of its own, and P: it is never the default. */
int faw_rounds_to_eight_bits(const char* chapter);

/* 1 if the chapter is a general answer, 0 if it is made for few problems and slower at the others that it takes. */
int faw_is_general(const char* chapter);

/* The chapter to take where nobody names one: the last of the book that is a general answer, or made for such problems,
 * whose result in that direction takes this problem on the current device and, if it is a forward, writes lse.
 * `rotates` is 1 for a chapter that rotates Q and K, 0 for one that does not. A head_dim above 128 has a chapter if
 * nothing rotates, and there are no extras but strides (or head_dim_v). FAW_UNSUPPORTED if there is none, and
 * faw_error() says what the last chapter of the book that has such results would have taken. */
faw_status faw_default_chapter(const faw_problem* problem, int rotates, int backward, const char** chapter);

/* Likewise, and the rung whose kernels run then: the chapter's last in that direction, or the one that it chooses for
 * this problem on the current device, which may be another chapter's. */
faw_status faw_default_rung(const faw_problem* problem, int rotates, int backward, const char** chapter,
                            const char** rung);

/* The size in bytes of the workspace that the call of the same name wants (0: pass NULL). */
faw_status faw_forward_workspace(const char* chapter, const char* rung, const faw_problem* problem, size_t* bytes);
faw_status faw_backward_workspace(const char* chapter, const char* rung, const faw_problem* problem, size_t* bytes);

/* q, k, v -> o, lse. `stream` is a cudaStream_t, NULL for the default stream. lse may be NULL if the rung does not
 * write it. workspace_bytes is the size of the workspace, at least what faw_forward_workspace says. Its contents are
 * undefined before and after. */
faw_status faw_forward(const char* chapter, const char* rung, const faw_problem* problem, const void* q, const void* k,
                       const void* v, void* o, float* lse, void* workspace, size_t workspace_bytes, void* stream);

/* What the elements of q, k and v in e4m3 are to be multiplied by: fp32, device memory. If of_tiles is 0, one number
 * each. If it is 1, one for each FAW_FP8_TILE rows of a head, the last ones of which may be fewer:
 *
 *   q      [batch, heads,    ceil(seq_q / FAW_FP8_TILE)]
 *   k, v   [batch, kv_heads, ceil(seq_k / FAW_FP8_TILE)]
 *
 * All have to be at least 2^-126 and finite. Else results are NaN: only the kernels can know. (On the SIMT engine it is
 * the call that refuses.) A tile of V whose scale is less than 2^-80 of the largest of its head's counts as if it were
 * that. */
typedef struct {
  const float *q, *k, *v;
  int of_tiles;
} faw_scales;
#define FAW_FP8_TILE 128

/* The same of q, k and v that are e4m3 already: bytes of 1 sign, 4 exponent and 3 mantissa bits, without infinities,
 * the largest 448 (OCP 8-bit Floating Point Specification; PyTorch's float8_e4m3fn). o is of the problem's dtype, and
 * the problem has no extras and a head_dim of 64, 128 or 256. Nothing is rounded but the softmax's weights, which
 * become e4m3, and o. */
faw_status faw_forward_e4m3_workspace(const char* chapter, const char* rung, const faw_problem* problem, size_t* bytes);
faw_status faw_forward_e4m3(const char* chapter, const char* rung, const faw_problem* problem, const void* q,
                            const void* k, const void* v, const faw_scales* scales, void* o, float* lse,
                            void* workspace, size_t workspace_bytes, void* stream);

/* q, k, v, o, lse, d_o -> dq, dk, dv; o and lse are the forward's. */
faw_status faw_backward(const char* chapter, const char* rung, const faw_problem* problem, const void* q, const void* k,
                        const void* v, const void* o, const float* lse, const void* d_o, void* dq, void* dk, void* dv,
                        void* workspace, size_t workspace_bytes, void* stream);

#ifdef __cplusplus
}
#endif

#endif
