# hopper_forward.h with ORDER (O awaited before exponentials), ASK (next K, V asked for), TURNS
s=open('TREE/12_variants/hopper_forward.h').read()
def rep(a,b):
    global s
    assert s.count(a)==1,(a,s.count(a)); s=s.replace(a,b)
rep('#pragma once','')
rep('namespace variants::on_hopper {','namespace variants::on_hopper { namespace FN {\nconstexpr int turn_threads = 256;')
rep('}  // namespace variants::on_hopper','}}')
s=s.replace("on_hopper::B","FN::B").replace("on_hopper::stages","FN::stages")
for h in ('blocks','extras','hopper','packed'): s=s.replace(f'#include "{h}.h"',f'#include "12_variants/{h}.h"')
s=s.replace('#include <cmath>','#include <cmath>\n#include "device/named_barrier.h"')
rep('''#pragma unroll 1
  for (int step = own.start + 1; step < own.stop; step++) {
    const Ring<stages<D, X>> before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
''','''  constexpr bool asks = ASK, first_o = ORDER || !(consumers == 3 || D == 64);
  Ring<stages<D, X>> next = ring;
  next.advance();
  const auto next_is_there = [&](bool last) {
    const bool v_is_there = mbarrier_test(&smem.v_full[ring.place], ring.parity);
    const bool k_is_there = mbarrier_test(&smem.k_full[next.place], next.parity);
    return v_is_there && (k_is_there || (LAST && last));
  };
  const auto wait_for_next = [&](bool last) {
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    if (!last) mbarrier_wait(&smem.k_full[next.place], next.parity);
  };
  if (ASK == 1) wait_for_next(own.start + 1 >= own.stop);
  bool there = false;
#pragma unroll 1
  for (int step = own.start + 1; step < own.stop; step++) {
    const Ring<stages<D, X>> before = ring;
    const bool last = step + 1 == own.stop;
    if (ASK == 1) {
      ring = next;
      next.advance();
    } else {
    ring.advance();
    if (ASK == 2) next.advance();
    if (!there) {
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
    }
    }
''')
rep('''    wgmma_wait<1>(s_reg);
    release(smem.k_empty[ring.place]);
    const bool above''','''    wgmma_wait<1>(s_reg);
    pass_turn();
    if (ASK) mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over: keeps x behind it
    release(smem.k_empty[ring.place]);
    const bool above''')
rep('''    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum''','''    wait_for_turn();
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    start_sum''')
rep('if constexpr (consumers == 3 || D == 64) {','if constexpr (!first_o) {')
rep('''      // What stands before this wait stays before the one that follows
      mbarrier_wait(&smem.v_full[ring.place], ring.parity);  // no result depends on it
''','''      if (ASK) {
        const bool is_there = next_is_there(last);
        const bool never = rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1;
        if (!is_there || never) wait_for_next(last);
        there = true;
      } else if (TURNS) {
        const bool never = rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1;
        mbarrier_wait(&smem.v_full[ring.place], ring.parity ^ unsigned(never));
      } else
      mbarrier_wait(&smem.v_full[ring.place], ring.parity);  // no result depends on it
''')
rep('''      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
    }
  }
''','''      if (ASK) there = next_is_there(last);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      if (ASK == 1 && !there) wait_for_next(last);
    }
  }
''')
rep('''  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
''','''  const auto wait_for_turn = [&] { if (TURNS) named_barrier_sync(1 + consumer, turn_threads); };
  const auto pass_turn = [&] { if (TURNS) named_barrier_arrive(1 + (consumer + 1) % consumers, turn_threads); };
  if (TURNS) for (int i = 0; i < own.start; i++) wait_for_turn(), pass_turn();
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wait_for_turn();
  wgmma_fence();
''')
rep('''  wgmma_wait<0>(s_reg);
  release(smem.k_empty[ring.place]);
  if (make_x(first))''','''  wgmma_wait<0>(s_reg);
  pass_turn();
  release(smem.k_empty[ring.place]);
  if (make_x(first))''')
rep('''  if constexpr (!X::blocks) let_pass(own.stop, order.steps());
''','''  if constexpr (!X::blocks) let_pass(own.stop, order.steps());
  if (TURNS && !X::blocks) for (int i = own.stop; i < order.steps(); i++) wait_for_turn(), pass_turn();
''')
rep('''    setmaxnreg_inc<consumer_registers<consumers, X>>();
''','''    setmaxnreg_inc<consumer_registers<consumers, X>>();
    if (TURNS && warpgroup == consumers - 1) named_barrier_arrive(1, turn_threads);
''')
open('vf.h','w').write(s)
s=s.replace('''                                             const Score& function, int distance) {
''','''                                             const Score& function, int distance) {
  if constexpr (LAZY && std::is_same_v<Score, Linear>) return lazy_softmax::subtract_max(x, rows, function.scale_log2);
''')
assert 'LAZY' in s
s=s.replace('''    hide<X>(s_reg, p, of_warp, first_row, j * Bc);
''','''    if constexpr (HIDE && !X::window) {
      if ((j + 1) * Bc > of_warp.last) lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j * Bc; });
    } else
    hide<X>(s_reg, p, of_warp, first_row, j * Bc);
''')
open('vf.h','w').write(s)
def rep2(a,b):
    global s
    assert s.count(a)==1,(a,s.count(a)); s=s.replace(a,b)
# END: epilogue as beside
rep2('''    const RowEnd of_row = end_of_row(rows.m[0][h], rows.l(0, h), sink, tile.head % p.heads);
''','''#if END
    const float l = rows.l(0, h), inverse = l > 0 ? 1 / l : 0;
    struct { float lse, factor; } of_row = {(rows.m[0][h] + log2_approx(l)) * ln_2, inverse};
#else
    const RowEnd of_row = end_of_row(rows.m[0][h], rows.l(0, h), sink, tile.head % p.heads);
#endif
''')
# OWN: tiles as in beside
rep2('''  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
  Tiles own = order.''','''#if OWN
  struct { static constexpr bool nearest_first = false; int n; __device__ int tile(int s) const { return s; } __device__ int steps() const { return n; } } order{attention::key_tiles<Bc>(p, tile.i0 + Br - 1)};
  struct { static constexpr int start = 0; int stop; } own{tile.i0 + wgmma_rows * consumer < p.seq_q ? attention::key_tiles<Bc>(p, tile.i0 + wgmma_rows * (consumer + 1) - 1) : 1};
#else
  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
  Tiles own = order.''')
rep2('''order.steps_of(key_tiles<Bc, X>(p, own_row, own_row + wgmma_rows - 1));
  if (X::packed && own_row >= p.seq_q) own.stop = own.start + 1;   // sequences end often: no row is this consumer's
''','''order.steps_of(key_tiles<Bc, X>(p, own_row, own_row + wgmma_rows - 1));
#endif
''')
rep2('  if constexpr (X::blocks) own = {0, smem.listed.steps[q.place]};  // all are of all rows\n','')
rep2('''  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
  const auto load_keys''','''#if !PROD
  const KeyOrder<Bc, X> order(p, tile.i0, tile.i0 + Br - 1);
#endif
  const auto load_keys''')
rep2('''#pragma unroll 1
    for (int j = order.behind() - 1; j >= order.tiles.start; j--) load_keys(j);
#pragma unroll 1
    for (int j = order.behind(); j < order.tiles.stop; j++) load_keys(j);
''','''#if PROD
    const int tiles = attention::key_tiles<Bc>(p, tile.i0 + Br - 1);
#pragma unroll 1
    for (int j = 0; j < tiles; j++) load_keys(j);
#else
#pragma unroll 1
    for (int j = order.behind() - 1; j >= order.tiles.start; j--) load_keys(j);
#pragma unroll 1
    for (int j = order.behind(); j < order.tiles.stop; j++) load_keys(j);
#endif
''')
rep2('  if constexpr (X::window || order.nearest_first) let_pass(0, own.start);','  if constexpr (X::window || decltype(order)::nearest_first) let_pass(0, own.start);')
s='#include "attention/schedule.h"\n'+s
open('vf.h','w').write(s)
s=s.replace('''  struct { static constexpr bool nearest_first = false; int n; __device__ int tile(int s) const { return s; } __device__ int steps() const { return n; } } order{''','''  const SimpleOrder order{''').replace('''  struct { static constexpr int start = 0; int stop; } own{''','''  const SimpleOwn own{''')
s=s.replace('constexpr int turn_threads = 256;','''constexpr int turn_threads = 256;
  struct SimpleOrder { static constexpr bool nearest_first = false; int n; __device__ int tile(int s) const { return s; } __device__ int steps() const { return n; } };
  struct SimpleOwn { static constexpr int start = 0; int stop; };''')
s=s.replace('  if constexpr (X::window || decltype(order)::nearest_first)','#if !OWN\n  if constexpr (X::window || order.nearest_first)').replace('let_pass(0, own.start);','let_pass(0, own.start);\n#endif\n')
open('vf.h','w').write(s)
rep2('''    const RowEnd of_row = end_of_row(''','''    const RowEnd of_row = END_OF_ROW(''')
s=s.replace('namespace variants::on_hopper { namespace FN {','''namespace variants::on_hopper { namespace FN {
#ifndef BRANCH
#define BRANCH 0
#endif
#ifndef PAIR
#define PAIR 0
#endif
#if BRANCH == 0
#define END_OF_ROW end_of_row
#else
#define END_OF_ROW end_of_row2
#endif
__device__ inline RowEnd end_of_row2(float m, float l, const float* sink, int head) {
  const float s = sink ? sink[head] * log2_e : -INFINITY, top = l > 0 ? fmaxf(m, s) : s;
  const float share = l > 0 ? exp2_approx(m - top) : 0;
  l = l * share + (s == -INFINITY ? 0 : exp2_approx(s - top));
  return {(top + log2_approx(l)) * ln_2, l > 0 ? share / l : 0};
}
''',1)
rep2('''  const auto make_x = [&](int j) {
''','''  const auto make_x = [&](int j) {
    if (PAIR) { unsigned long long both; asm volatile("mov.b64 %0, {%1, %2};" : "=l"(both) : "f"(rows.m[0][0]), "f"(rows.m[0][1])); asm volatile("mov.b64 {%0, %1}, %2;" : "=f"(rows.m[0][0]), "=f"(rows.m[0][1]) : "l"(both)); }
''')
open('vf.h','w').write(s)
s=s.replace('''    if (PAIR) { unsigned long''','''#if LDS
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(rows.m[0][0]), "=f"(rows.m[0][1]) : "r"(m_at));
#endif
    if (PAIR) { unsigned long''')
rep2('''  // x in place of S, and whether m has to rise for it
''','''#if LDS
  __shared__ float2 own_m[384];
  const unsigned m_at = shared_address(&own_m[threadIdx.x]);
  const auto keep_m = [&] { asm volatile("st.shared.v2.f32 [%2], {%0, %1};" :: "f"(rows.m[0][0]), "f"(rows.m[0][1]), "r"(m_at)); };
  keep_m();
#else
  const auto keep_m = [&] {};
#endif
  // x in place of S, and whether m has to rise for it
''')
s=s.replace('if (make_x(first)) lazy_softmax::raise(s_reg, o_reg, rows, state);','if (make_x(first)) lazy_softmax::raise(s_reg, o_reg, rows, state), keep_m();')
s=s.replace('if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);','if (above) lazy_softmax::raise(s_reg, o_reg, rows, state), keep_m();')
s=s.replace('namespace variants::on_hopper { namespace FN {','#ifndef LDS\n#define LDS 0\n#endif\nnamespace variants::on_hopper { namespace FN {',1)
open('vf.h','w').write(s)
s=s.replace('#ifndef LDS\n','#ifndef CARRY\n#define CARRY 0\n#endif\n#ifndef LDS\n',1)
rep2('''#else
  const auto keep_m = [&] {};
#endif
''','''#elif CARRY
  unsigned long long both;
#if CARRY == 2
  const unsigned zero = p.head_dim >> 20;
  const auto keep_m = [&] { asm volatile("mov.b64 %0, {%1, %2};" : "=l"(both) : "f"(rows.m[0][0]), "f"(rows.m[0][1])); asm volatile("mad.wide.u32 %0, %1, %1, %0;" : "+l"(both) : "r"(zero)); };
#else
  const auto keep_m = [&] { asm volatile("mov.b64 %0, {%1, %2};" : "=l"(both) : "f"(rows.m[0][0]), "f"(rows.m[0][1])); };
#endif
  keep_m();
#else
  const auto keep_m = [&] {};
#endif
''')
s=s.replace('''#if LDS
    asm volatile("ld''','''#if CARRY
    asm volatile("mov.b64 {%0, %1}, %2;" : "=f"(rows.m[0][0]), "=f"(rows.m[0][1]) : "l"(both));
#elif LDS
    asm volatile("ld''')
open('vf.h','w').write(s)
s=s.replace('namespace variants::on_hopper { namespace FN {','''namespace variants::on_hopper { namespace FN {
__device__ __forceinline__ void wait_unless(unsigned complete, Mbarrier* mbarrier, unsigned parity) {
  asm volatile(
      "{\\n"
      ".reg .pred complete;\\n"
      "setp.ne.u32 complete, %2, 0;\\n"
      "@complete bra done;\\n"
      "again:\\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\\n"
      "@!complete bra again;\\n"
      "done:\\n"
      "}" ::"r"(shared_address(mbarrier)),
      "r"(parity), "r"(complete)
      : "memory");
}
''',1)
rep2('''      if (ASK) there = next_is_there(last);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      if (ASK == 1 && !there) wait_for_next(last);
''','''#if UNLESS
      const bool v_is_there = mbarrier_test(&smem.v_full[ring.place], ring.parity);
      const bool k_is_there = mbarrier_test(&smem.k_full[next.place], next.parity);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      wait_unless(v_is_there, &smem.v_full[ring.place], ring.parity);
      if (!last) wait_unless(k_is_there, &smem.k_full[next.place], next.parity);
#else
      if (ASK) there = next_is_there(last);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      if (ASK == 1 && !there) wait_for_next(last);
#endif
''')
s=s.replace('#ifndef LDS\n','#ifndef UNLESS\n#define UNLESS 0\n#endif\n#ifndef LAST\n#define LAST 1\n#endif\n#ifndef LDS\n',1)
open('vf.h','w').write(s)
rep2('''  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wait_for_turn();
''','''  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  if (STAG) { const unsigned begin = clock(); while (unsigned(clock()) - begin < STAG * consumer) {} }
  watch_step("1. S = Q K^T");
  wait_for_turn();
''')
s=s.replace('#ifndef LDS\n','#ifndef STAG\n#define STAG 0\n#endif\n#ifndef LDS\n',1)
open('vf.h','w').write(s)
b=open('TREE/10_hopper/30_beside.cu').read()
assert b.count('  mbarrier_wait(&smem.k_full[ring.place], ring.parity);\n  watch_step("1. S = Q K^T");')==1
b=b.replace('  mbarrier_wait(&smem.k_full[ring.place], ring.parity);\n  watch_step("1. S = Q K^T");','  mbarrier_wait(&smem.k_full[ring.place], ring.parity);\n  if (STAG) { const unsigned begin = clock(); while (unsigned(clock()) - begin < STAG * consumer) {} }\n  watch_step("1. S = Q K^T");')
b=b.replace('namespace hopper {','namespace HB {\nint consumers_for(const attention::Problem& p) { return p.seq_q < 1024 ? 2 : 3; }\n void forward_fitted(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool prompt) {}\n extern const attention::Forward wide_forward; constinit const attention::Forward wide_forward = {};\n',1).replace('}  // namespace hopper','}').replace('hopper::','HB::')
b=b.replace('extern const attention::Forward wide_forward;  // for D = 192 and 256\nvoid forward_fitted(const Problem& p, const ForwardArgs& args, cudaStream_t stream, bool prompt);\nint consumers_for(const Problem& p);\n','')
b+='\nvoid CAT(run_,HB)(const attention::Problem& p, const attention::ForwardArgs& a, cudaStream_t s) { HB::beside.forward.run(p, a, s); }\n'
b='#define CAT2(a,b) a##b\n#define CAT(a,b) CAT2(a,b)\n'+b
open('bs.cu','w').write(b)
s=s.replace('''#define END_OF_ROW end_of_row2
#endif
''','''#if BRANCH == 1
#define END_OF_ROW end_of_row2
#elif BRANCH == 2
#define END_OF_ROW end_of_row3
#elif BRANCH == 3
#define END_OF_ROW end_of_row4
#else
#define END_OF_ROW end_of_row5
#endif
#endif
__device__ inline RowEnd end_of_row3(float m, float l, const float* sink, int head) {
  if (!sink) return {(m + log2_approx(l)) * ln_2, l > 0 ? 1 / l : 0};
  return end_of_row(m, l, sink, head);
}
__device__ __noinline__ RowEnd end_of_row4(float m, float l, const float* sink, int head) { return end_of_row(m, l, sink, head); }
__device__ inline RowEnd end_of_row5(float m, float l, const float* sink, int head) {
  float lse = (m + log2_approx(l)) * ln_2, factor = l > 0 ? 1 / l : 0;
  if (sink) {  // with LSE that of the keys alone
    const float s = sink[head], top = fmaxf(lse, s), both = top + log2_approx(exp2_approx((lse - top) * log2_e) + exp2_approx((s - top) * log2_e)) * ln_2;
    factor *= exp2_approx((lse - both) * log2_e);
    lse = both;
  }
  return {lse, factor};
}
''',1)
open('vf.h','w').write(s)
