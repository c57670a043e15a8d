# 20_fitted.cu (prompt's forward, D = 128 and 64) with the next K and V asked for (ASK), and O awaited before the exponentials (BEFORE)
s=open('10_hopper/20_fitted.cu').read()
def rep(a,b):
    global s
    assert s.count(a)==1,(a,s.count(a)); s=s.replace(a,b)
rep('''#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    ring.advance();
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);
    mbarrier_wait(&smem.v_full[before.place], before.parity);
''','''  Keys next = ring;
  next.advance();
  const auto next_is_there = [&](bool last) {
    const bool v_is_there = mbarrier_test(&smem.v_full[ring.place], ring.parity);
    const bool k_is_there = mbarrier_test(&smem.k_full[next.place], next.parity);
    return v_is_there && (k_is_there || last);
  };
  const auto wait_for_next = [&](bool last) {
    mbarrier_wait(&smem.v_full[ring.place], ring.parity);
    if (!last) mbarrier_wait(&smem.k_full[next.place], next.parity);
  };
  if (ASK) wait_for_next(own_tiles == 1);
#pragma unroll 1
  for (int j = 1; j < own_tiles; j++) {
    const Keys before = ring;
    const bool last = j + 1 == own_tiles;
    if (ASK) {
      ring = next;
      next.advance();
    } else {
      ring.advance();
      mbarrier_wait(&smem.k_full[ring.place], ring.parity);
      mbarrier_wait(&smem.v_full[before.place], before.parity);
    }
''')
rep('''    const bool above = make_x(j);
    // Beside''','''    if (ASK) mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over: keeps x behind it
    const bool above = make_x(j);
    // Beside''')
rep("if constexpr (consumers == 3 || (consumers == 2 && D == 64)) {","if constexpr (!BEFORE && (consumers == 3 || (consumers == 2 && D == 64))) {")
rep('''      mbarrier_wait(&smem.v_full[ring.place], ring.parity);  // no result depends on it
''','''      if (ASK) {
        const bool there = next_is_there(last);
        const bool never = rows.minus_l[0][0] == 1 || rows.minus_l[0][1] == 1;
        if (!there || never) wait_for_next(last);
      } else {
        mbarrier_wait(&smem.v_full[ring.place], ring.parity);
      }
''')
rep('''      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
    }
  }
''','''      const bool there = ASK && next_is_there(last);
      lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores(j));
      if (ASK && !there) wait_for_next(last);
    }
  }
''')
s=s.replace('void forward_fitted(','void FN(').replace('forward_fitted(p, args, stream, false)','FN(p, args, stream, false)')
i=s.index('namespace {\n\nvoid run('); s=s[:i]+'}  // namespace hopper\n'
open('lab/y.cu','w').write(s)
