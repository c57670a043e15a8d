/* A stranger's program, in C99: lists the book, is refused what is wrong, and has attention computed where that takes
 * no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi/flash_attention_workbook.h"

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, faw_error());
  return 1;
}

/* On the engine memory is the host's. If all scores are 0 and all of v is 1, so is o. */
static int computes(const char* chapter, const faw_problem* problem) {
  const unsigned short one = 0x3f80; /* bf16 */
  const size_t of_q = (size_t)problem->batch * problem->heads * problem->seq_q;
  const size_t q_size = of_q * problem->head_dim;
  const size_t k_size = (size_t)problem->batch * problem->kv_heads * problem->seq_k * problem->head_dim;
  unsigned short *q = calloc(q_size, sizeof *q), *k = calloc(k_size, sizeof *k), *v = malloc(k_size * sizeof *v);
  unsigned short* o = calloc(q_size, sizeof *o);
  float* lse = malloc(of_q * sizeof *lse);
  void* workspace;
  size_t bytes, i;
  int wrong = 0;
  for (i = 0; i < k_size; i++) v[i] = one;
  if (faw_forward_workspace(chapter, NULL, problem, &bytes) != FAW_OK) return failed("workspace");
  workspace = malloc(bytes);
  if (faw_forward(chapter, NULL, problem, q, k, v, o, lse, workspace, bytes, NULL) != FAW_OK) return failed("forward");
  for (i = 0; i < q_size; i++) wrong += o[i] != one;
  if (wrong) fprintf(stderr, "%d of %d are wrong\n", wrong, (int)q_size);
  free(q), free(k), free(v), free(o), free(lse), free(workspace);
  return wrong > 0;
}

int main(void) {
  faw_problem problem = {sizeof(faw_problem), 1, 4, 2, 70, 100, 64, 0, FAW_BF16, 1, 0.0f, NULL, NULL, NULL};
  size_t bytes = 1;
  int c, r;
  if (faw_version() != FAW_VERSION) {
    fprintf(stderr, "the header is of version %d, the library of %d\n", FAW_VERSION, faw_version());
    return 1;
  }
  for (c = 0; faw_chapter(c); c++) {
    printf("%s:", faw_chapter(c));
    for (r = 0; faw_rung(faw_chapter(c), r); r++) printf(" %s", faw_rung(faw_chapter(c), r));
    printf("\n");
  }
  problem.scale = faw_default_scale(problem.head_dim);
  if (faw_forward_workspace("05_online_softmax", NULL, &problem, &bytes) != FAW_OK || bytes != 0)
    return failed("workspace");
  problem.heads = 3;
  if (faw_forward_workspace("05_online_softmax", NULL, &problem, &bytes) != FAW_INVALID ||
      !strstr(faw_error(), "heads is 3"))
    return failed("heads");
  problem.heads = 4;
  return faw_on_engine() ? computes("01_naive", &problem) : 0;
}
