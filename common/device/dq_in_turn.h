// dQ of chapter 10's backwards from 21_shared_backward.cu on: how its sum goes to global memory, in the order of turns.
// 18_fetched_backward.cu explains it, for one query head.
#pragma once

#include "attention/problem.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/mbarrier.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/semaphore.h"
#include "device/tensor_map.h"

namespace warpgroup_backward {

// Stores or adds a consumer's parts of dQ, each when it is this block's turn. One thread. A part has 64 x 64 numbers:
// at D = 64 a consumer's are all columns of 64 queries, at D = 128 64 columns of all. `smem` has two places for them,
// `dq` [2][parts][64 * 64], with mbarriers `dq_full` and `dq_ready` for each.
template <class Shape, class Shared, class Order>
__device__ __forceinline__ void add_dq(Shared& smem, const TensorMap& dq_map, const attention::Problem& p,
                                       float* dq_sum, int* turns, attention::KeyTile work, Order order, int consumer) {
  constexpr int Br = Shape::Br, D = Shape::D, part_size = 64 * 64, bytes = part_size * sizeof(float);
  // A tile of this block, and the consumer's part of its dQ
  struct Place {
    int head, step, i;
    size_t part;
    int turn;
    bool last;  // this block is the last to add to it
  };
  const auto place_of = [&](int head, int step) -> Place {
    const int i = order.tile(step);
    return {head,
            step,
            i,
            (size_t(head) * work.head_tiles + i) * Shape::parts + consumer,
            order.turn(i),
            order.template is_last<Br>(p, i)};
  };
  const auto after = [&](const Place& at) {
    return at.step > work.start ? place_of(at.head, at.step - 1) : place_of(at.head + 1, work.head_tiles - 1);
  };
  const auto exists = [&](const Place& at) {
    return at.head < work.first_head + work.heads && work.start < work.head_tiles;
  };
  // Makes the place for a part ready: it is empty, or if this is the last part, the sum of the others comes to it, as
  // soon as it is this block's turn. With `wait`, waits for the turn; without, returns false if it has not come.
  const auto prepare = [&](const Place& at, int room, bool wait) {
    Mbarrier* ready = &smem.dq_ready[room][consumer];
    if (!at.last || at.turn == 0) {
      mbarrier_arrive(ready);
      return true;
    }
    if (!wait && semaphore_peek(turns + at.part) != at.turn) return false;
    semaphore_wait(turns + at.part, at.turn);
    fence_proxy_async_global();
    mbarrier_arrive_expect_tx(ready, bytes);
    bulk_load(smem.dq[room][consumer], dq_sum + at.part * part_size, bytes, ready);
    return true;
  };

  Ring<2> ring;
  Place at = place_of(work.first_head, work.head_tiles - 1), next = at;  // the next one to prepare
  int ahead = 0;                                                         // so many are ready, from `at` on
#pragma unroll 1
  for (; exists(at); at = after(at), ahead--, ring.advance()) {
    const float* dq = smem.dq[ring.place][consumer];
    while (ahead < 2 && exists(next) && prepare(next, ring.place ^ ahead, ahead == 0)) next = after(next), ahead++;
    mbarrier_wait(&smem.dq_full[ring.place][consumer], ring.parity);
    if (at.last) {
      tensor_store(dq_map, dq, 0, at.i * Br + (D == 128 ? 0 : consumer * 64), D == 128 ? consumer : 0, at.head);
    } else if (at.turn == 0) {
      bulk_store(dq_sum + at.part * part_size, dq, bytes);
    } else {
      semaphore_wait(turns + at.part, at.turn);
      bulk_add(dq_sum + at.part * part_size, dq, bytes);
    }
    bulk_commit();
    bulk_wait_read<0>();
    if (ahead == 2 && exists(next) && prepare(next, ring.place, false)) next = after(next), ahead++;
    bulk_wait<0>();  // the sum is in global memory, and the next block may have its turn
    fence_acq_rel();
    semaphore_set(turns + at.part, at.turn + 1);
  }
}

}  // namespace warpgroup_backward
