/* A stranger's program, in C99: lists the book, asks for a workspace, and is refused what is wrong. */
#include <stdio.h>
#include <string.h>

#include "capi/flash_attention_workbook.h"

int main(void) {
  faw_problem problem = {1, 4, 2, 100, 70, 64, FAW_BF16, 1, 0.0f, NULL, NULL, NULL, 0};
  size_t bytes = 1;
  int c, r;
  for (c = 0; faw_chapter(c); c++) {
    printf("%s:", faw_chapter(c));
    for (r = 0; faw_rung(faw_chapter(c), r); r++) printf(" %s", faw_rung(faw_chapter(c), r));
    printf("\n");
  }
  problem.scale = faw_default_scale(problem.head_dim);
  if (faw_forward_workspace("05_online_softmax", NULL, &problem, &bytes) != FAW_OK || bytes != 0) {
    fprintf(stderr, "workspace: %s\n", faw_error());
    return 1;
  }
  problem.heads = 3;
  if (faw_forward_workspace("05_online_softmax", NULL, &problem, &bytes) != FAW_INVALID ||
      !strstr(faw_error(), "heads is 3")) {
    fprintf(stderr, "heads: %s\n", faw_error());
    return 1;
  }
  return 0;
}
