// Chapter 10: what Hopper adds, one instruction at a time. Each rung, forward or backward, is a complete kernel in a
// file of its own, and differs from the one before by one idea. The first starts from chapter 08's `balanced`. They are
// compiled for compute capability 9.0a: the instructions are Hopper's, and no GPU before or after it has all of them.
#include "attention/chapter.h"

namespace hopper {

extern const attention::Rung tma, descriptors, wgmma_rung, warpspec, overlap, pingpong, stored, listed, persistent,
    dynamic, narrow, ahead, rounds, fitted, prompt, late, polynomial, beside, clusters, chosen;
extern const attention::Backward warpspec_backward, bulk_backward, turns_backward, reversed_backward,
    converted_backward, ordered_backward, ahead_backward, fetched_backward, shared_backward, cyclic_backward,
    clusters_backward, deferred_backward, columns_backward;

namespace {

attention::Rung both(attention::Rung rung, const attention::Backward& backward) {
  rung.backward = backward;
  return rung;
}

}  // namespace

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "10_hopper",
    .idea =
        "hardware copies tiles and multiplies them while the threads do something else: who waits for whom is the "
        "whole program",
    .rungs = {tma,
              descriptors,
              wgmma_rung,
              both(warpspec, warpspec_backward),
              overlap,
              pingpong,
              stored,
              listed,
              persistent,
              dynamic,
              narrow,
              {.name = "bulk",
               .idea = "dQ leaves by bulk reductions, 16 KB each, that another warp starts",
               .backward = bulk_backward},
              {.name = "turns",
               .idea =
                   "thread blocks add to dQ in the order of their keys, by tickets and semaphores: the same bits in "
                   "every run",
               .backward = turns_backward},
              {.name = "reversed",
               .idea = "queries pass by from the last tile up to the diagonal, so that no block waits until another "
                       "comes down to it",
               .backward = reversed_backward},
              {.name = "converted",
               .idea = "the first block of a tile stores its part of dQ, and the last one converts the sum: no kernel "
                       "before or after does",
               .backward = converted_backward},
              {.name = "ordered",
               .idea = "dQ leaves by a bulk tensor copy, that the warp starts which sends the parts of other blocks",
               .backward = ordered_backward},
              both(ahead, ahead_backward),
              {.name = "fetched",
               .idea = "what the other blocks have added up is in shared memory when the last block needs it",
               .backward = fetched_backward},
              rounds,
              fitted,
              {.name = "shared",
               .idea = "several blocks share the query heads that read one kv head, where that makes more blocks",
               .backward = shared_backward},
              {.name = "cyclic",
               .idea = "blocks of one head begin at different queries, so that none waits for its turn",
               .backward = cyclic_backward},
              both(clusters, clusters_backward),
              {.name = "deferred",
               .idea = "dQ of a tile is made with dV and dK of the next one, so that no consumer waits for "
                       "the other",
               .backward = deferred_backward},
              {.name = "columns",
               .idea = "LSE and delta are columns of the products, so that no thread loads them",
               .backward = columns_backward},
              prompt,
              late,
              polynomial,
              beside,
              chosen},
    .starts_from = &narrow};

}  // namespace hopper
