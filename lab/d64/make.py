s=open('10_hopper/24_late.cu').read()
a=s.index('    wgmma_fence();\n    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);\n    start_sum'); b=s.index('  mbarrier_wait(&smem.v_full[ring.place], ring.parity);\n  watch_step("3. O += P V");')
loop='''    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    if (LATE_V) mbarrier_wait(&smem.v_full[before.place], before.parity), wgmma_fence();
    start_sum<D, Bc>(o_reg, p_reg, smem.v[before.place]);
    if (EARLY) pass_turn();
    wgmma_wait<1>(s_reg);
    if (!EARLY) pass_turn();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    release(smem.k_empty[ring.place]);
    float correction[1][2] = {{1, 1}};
    bool above = false;
    if constexpr (ALWAYS) {
      if ((j + 1) * Bc > warp_first)
        lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j * Bc; });
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float top = rows.m[0][h] * (1 / scale_log2);
        float top2 = -INFINITY;
#pragma unroll
        for (int n = 0; n < Bc / 8; n++) top = fmaxf(top, s_reg[0][n][2 * h]), top2 = fmaxf(top2, s_reg[0][n][2 * h + 1]);
        top = quad_max(fmaxf(top, top2));
        const float m = top * scale_log2;
        correction[0][h] = exp2_approx(rows.m[0][h] - m);
        rows.m[0][h] = m;
        rows.minus_l[0][h] *= correction[0][h];
#pragma unroll
        for (int n = 0; n < Bc / 8; n++)
          for (int c = 0; c < 2; c++) s_reg[0][n][2 * h + c] = fmaf(s_reg[0][n][2 * h + c], scale_log2, -m);
      }
    } else {
      above = make_x(j);
      if (above) lazy_softmax::raise_max(s_reg, rows, correction, state);
      if (polynomial && above) lazy_softmax::keep_nan(s_reg, rows);
    }
    const auto exps = [&](auto from, auto to) {
#pragma unroll
      for (int n = decltype(from)::value; n < decltype(to)::value; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float* pair = s_reg[0][n] + 2 * h;
          const bool by_fma = polynomial && lazy_softmax::by_polynomial(n, h);
          for (int c = 0; c < 2; c++) pair[c] = by_fma ? exp2_polynomial(pair[c]) : exp2_approx(pair[c]);
          rows.minus_l[0][h] -= pair[0] + pair[1];
        }
    };
    exps(Const<0>(), Const<BEFORE>());
    if (BEFORE > 0) {
      const bool never = rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1;
      mbarrier_wait(&smem.v_full[ring.place], ring.parity ^ unsigned(never));
    }
    wgmma_wait<0>(o_reg);
    release(smem.v_empty[before.place]);
    if (ALWAYS || above) lazy_softmax::rescale(o_reg, correction);
    exps(Const<BEFORE>(), Const<16>());
    swizzled_tile::round_fragments<T, Bc>(p_reg, s_reg);
  }

'''
s=s[:a]+loop+s[b:]
if True:
    s=s.replace('    mbarrier_wait(&smem.v_full[before.place], before.parity);\n    watch_step("1. S = Q K^T; beside','    if (!LATE_V) mbarrier_wait(&smem.v_full[before.place], before.parity);\n    watch_step("1. S = Q K^T; beside')
s=s.replace('namespace hopper {\n\nusing attention::ForwardArgs;','namespace hopper {\n\ntemplate <int n> struct Const { static constexpr int value = n; };\nusing attention::ForwardArgs;',1)
s=s.replace('void forward_late(','void FN(').replace('return forward_fitted(p, args, stream, true);','return;')
i=s.index('constexpr attention::Forward unpadded'); s=s[:i]+'}\n}\n'
open('v.cu','w').write(s)
# Four consumers of 64 rows, and tiles of 64 keys: four warps for each scheduler
s=open('v.cu').read()
for a,b in (('constexpr int consumers = 3, threads','constexpr int consumers = 4, threads'),
            ('constexpr int producer_registers = 32, consumer_registers = 160;','constexpr int producer_registers = 32, consumer_registers = 112;'),
            ('static constexpr int Bc = 128, stages = 4;','static constexpr int Bc = 64, stages = 6;'),
            ('exps(Const<BEFORE>(), Const<16>());','exps(Const<BEFORE>(), Const<Bc / 8>());')):
    s=s.replace(a,b)
open('v4.cu','w').write(s)
