"""Further variants of chapter 10's kernels, from those of joules: python3 make.py JOULES_FOLDER."""
import pathlib, sys
SRC, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent


def edit(text, *pairs):
    for old, new in pairs:
        assert text.count(old) == 1, (text.count(old), old)
        text = text.replace(old, new)
    return text


def either(macro, new, old):
    return f"#ifdef {macro}\n{new}#else\n{old}#endif\n"


b = (SRC / "backward.cu").read_text()
b = edit(b,
  # register budgets
  ("constexpr int producer_registers = 24, consumer_registers = 240;",
   "#ifndef REGS\n#define REGS 240\n#endif\nconstexpr int consumer_registers = REGS, producer_registers = 3 * 168 - 2 * REGS;"),
  # separate barriers of Q with LSE and of dO with delta: SPLIT. `full`, `empty` are those of Q
  ("  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];\n",
   "  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];\n"
   "#ifdef SPLIT\n  Mbarrier d_o_full[2], d_o_empty[2];\n#endif\n"
   "#ifdef COLUMNS\n  Mbarrier columns_full, columns_empty;\n#endif\n"),
  ("  float stats[2][2 * Br];             // LSE, then delta\n",
   either("COLUMNS", "  T columns[Br][8];  // -LSE / (scale log2(e)) in three parts, -delta in three parts, 0, 0\n",
          "  float stats[2][2 * Br];             // LSE, then delta\n")),
  ("      mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps\n",
   "      mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps\n"
   "#ifdef SPLIT\n      mbarrier_init(&smem.d_o_full[i], 1);\n      mbarrier_init(&smem.d_o_empty[i], 4 * consumers);\n#endif\n"
   "#ifdef COLUMNS\n      if (i == 0) mbarrier_init(&smem.columns_full, 1), mbarrier_init(&smem.columns_empty, 4 * consumers);\n#endif\n"),
  ("""      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * Br, stats_bytes, full);
""", """#if defined SPLIT
      const float* of_tile = stats + (size_t(head) * work.head_tiles + i) * 2 * Br;
      mbarrier_arrive_expect_tx(full, Br * D * sizeof(T) + stats_bytes / 2);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], of_tile, stats_bytes / 2, full);
      mbarrier_wait(&smem.d_o_empty[ring.place], ring.parity ^ 1);
      Mbarrier* d_o_full = &smem.d_o_full[ring.place];
      mbarrier_arrive_expect_tx(d_o_full, Br * D * sizeof(T) + stats_bytes / 2);
      tensor_load(smem.d_o[ring.place], d_o_map, d_o_full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place] + Br, of_tile + Br, stats_bytes / 2, d_o_full);
#elif defined COLUMNS
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T));
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      mbarrier_wait(&smem.columns_empty, columns.parity ^ 1);
      mbarrier_arrive_expect_tx(&smem.columns_full, Br * 16);
      bulk_load(smem.columns, reinterpret_cast<const T*>(stats) + (size_t(head) * work.head_tiles + i) * 8 * Br, Br * 16, &smem.columns_full);
      columns.advance();
#else
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T) + stats_bytes);
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      bulk_load(smem.stats[ring.place], stats + (size_t(head) * work.head_tiles + i) * 2 * Br, stats_bytes, full);
#endif
"""),
  ("constexpr int Br = Shape<D>::Br, stats_bytes = 2 * Br * sizeof(float);\n  mbarrier_arrive_expect_tx(&smem.kv_full",
   "constexpr int Br = Shape<D>::Br;\n  [[maybe_unused]] constexpr int stats_bytes = 2 * Br * sizeof(float);\n"
   "#ifdef COLUMNS\n  Ring<1> columns;\n#endif\n  mbarrier_arrive_expect_tx(&smem.kv_full"),
  # the consumers
  ("      const float* stats = smem.stats[ring.place];\n", "#ifndef COLUMNS\n      const float* stats = smem.stats[ring.place];\n#endif\n"),
  ("""      start_product<Bc, D, Br>(p_reg, k_rows, q);
      start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
""", """#ifdef COLUMNS
      mbarrier_wait(&smem.columns_full, columns.parity);
      wgmma_fence(for_lse);
      start_product_and<Bc, D, Br>(p_reg, k_rows, q, for_lse, smem.columns[0]);
      wgmma_fence(for_delta);
      start_product_and<Bc, D, Br>(ds_reg, v_rows, d_o, for_delta, smem.columns[0]);
#else
      start_product<Bc, D, Br>(p_reg, k_rows, q);
#ifdef SPLIT
      mbarrier_wait(&smem.d_o_full[ring.place], ring.parity);
      wgmma_fence();
#endif
      start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
#endif
"""),
  ("""      if constexpr (D == 64)
        make_p_ahead<Br>(p_reg, p.scale, stats, visible);  // beside a product, in machine code too
      else
        make_p<Br>(p_reg, p.scale, stats, visible);
""", """#if defined COLUMNS
      make_p_of<Br>(p_reg, 0.f, p.scale, visible);
#elif defined NO_STATS
      make_p_of<Br>(p_reg, -1.7f, p.scale, visible);
#else
      if constexpr (D == 64)
        make_p_ahead<Br>(p_reg, p.scale, stats, visible);  // beside a product, in machine code too
      else
        make_p<Br>(p_reg, p.scale, stats, visible);
#endif
"""),
  ("""      make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
""", """#if defined COLUMNS
      if (lane == 0) mbarrier_arrive(&smem.columns_empty);
      columns.advance();
#endif
#if defined COLUMNS || defined NO_STATS
#pragma unroll
      for (int n = 0; n < Br / 8; n++)
        for (int r = 0; r < 4; r++) ds_reg[0][n][r] *= p_reg[0][n][r];  // 2^12 dS
#else
      make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
#endif
"""),
  ("""      swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
      fence_proxy_async();
""", """#ifndef NO_DS
      swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
      fence_proxy_async();
#endif
"""),
  ("      wgmma_wait<1>(dq_reg);\n", "      wgmma_wait<1>(dq_reg);\n#ifdef SPLIT\n      if (lane == 0) mbarrier_arrive(&smem.d_o_empty[ring.place]);  // dV is done as well\n#endif\n"),
  ("for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= p.scale;", "for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= p.scale * DS_FACTOR;"),
  ("smem.k + warp_key * page_row, dk_reg, p.scale, rows_left);", "smem.k + warp_key * page_row, dk_reg, p.scale * DS_FACTOR, rows_left);"),
  ("  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};\n", """  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};
#ifdef COLUMNS
  Ring<1> columns;
  // A fragments of rows that are all alike: 1 1 1 0 0 0 0 0 | 0, and 0 0 0 1 1 1 0 0 | 0. Lane t of four has 2 t, 2 t + 1
  const int t = lane % 4;
  const float ones[2][2] = {{t < 2 ? 1.f : 0.f, t < 1 ? 1.f : 0.f}, {t == 2 ? 1.f : 0.f, t == 1 || t == 2 ? 1.f : 0.f}};
  const uint32_t of_lse = pack2<T>(ones[0][0], ones[0][1]), of_delta = pack2<T>(ones[1][0], ones[1][1]);
  uint32_t for_lse[4] = {of_lse, of_lse, 0, 0}, for_delta[4] = {of_delta, of_delta, 0, 0};
#endif
"""),
  ("constexpr int part_size = 64 * 64;", '''#if defined COLUMNS || defined NO_STATS
#define DS_FACTOR (1 / p_factor)
// make_p(), where LSE has been subtracted, or is the same everywhere
template <int queries, class VisibleKeys>
__device__ __forceinline__ void make_p_of(float (&x)[1][queries / 8][4], float minus, float scale, VisibleKeys visible_keys) {
  const float scale_log2 = scale * log2_e;
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] = exp2_approx(fmaf(x[0][n][r], scale_log2, minus));
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  if (visible_keys(0) < 16) {
#pragma unroll
    for (int n = 0; n < queries / 8; n++)
      for (int e = 0; e < 2; e++) {
        const int visible = visible_keys(8 * n + 2 * t + e) - g;
        for (int h = 0; h < 2; h++)
          if (8 * h >= visible) x[0][n][2 * h + e] = 0;
      }
  }
}
#else
#define DS_FACTOR 1
#endif
#ifdef COLUMNS
// start_product(), with eight further columns of A, which are in registers, and of B, which are a row of 16 bytes each
template <int a_rows, int D, int columns, class T>
__device__ __forceinline__ void start_product_and(float (&product)[1][columns / 8][4], const T* a, const T* b,
                                                  const uint32_t (&further_a)[4], const T* further_b) {
  // No swizzle: eight rows of 16 bytes are 128 bytes. The second eight columns are the first ones again: A is 0 there
  const uint64_t further = uint64_t((shared_address(further_b) & 0x3ffff) >> 4) | uint64_t(128 >> 4) << 32;
  wgmma<T>(product[0], further_a, further, false);
  const uint64_t a_tile = descriptor_of_rows<D>(a), b_tile = descriptor_of_rows<D>(b);
#pragma unroll
  for (int step = 0; step < D * int(sizeof(T)) / step_bytes; step++)
    wgmma<T>(product[0], wgmma_advance(a_tile, step_begin<a_rows, D, T>(step)),
             wgmma_advance(b_tile, step_begin<columns, D, T>(step)), true);
  wgmma_commit();
}

// prepare_turns() with these columns in place of the statistics
template <class T, class S>
__global__ void prepare_columns(Problem p, const T* o, const float* lse, const T* d_o, T* columns, int* turns, int* tickets) {
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned head_tiles = ceil_div(p.seq_q, Br), tile = row / Br, head = tile / head_tiles;
  const unsigned i = tile % head_tiles * Br + row % Br;
  const size_t q_row = size_t(head) * p.seq_q + i, at = q_row * D + lane * 8;
  const RowStatistics of_row = row_statistics<D>(i < unsigned(p.seq_q), o + at, d_o + at, lse + q_row);
  if (lane == 0) {
    Pack8<T> pack{};
    float rest = fmaxf(-of_row.lse / (p.scale * log2_e), -1e30f);
    for (int k = 0; k < 3; k++) pack.x[k] = from_float<T>(rest), rest -= to_float(pack.x[k]);
    rest = -of_row.row_sum * p_factor;
    for (int k = 3; k < 6; k++) pack.x[k] = from_float<T>(rest), rest -= to_float(pack.x[k]);
    store_pack8(columns + size_t(row) * 8, pack);
    if (row % Br < S::parts) turns[size_t(tile) * S::parts + row % Br] = 0;
  }
  if (thread == 0) *tickets = 0;
}
#endif

constexpr int part_size = 64 * 64;'''),
)
host = b[b.index("  const auto [dq_sum, stats, turns, tickets]"):b.index("  launch_grid(gradients")]
new = '''  float* const dq_sum = static_cast<float*>(workspace);
  float* const stats = dq_sum + size_t(tiles.q_tiles) * S::Br * D;  // [q_tiles][Br][8] of T
  int *const turns = reinterpret_cast<int*>(stats + size_t(tiles.q_tiles) * 4 * S::Br), *const tickets = turns + size_t(tiles.q_tiles) * consumers;
  launch(prepare_columns<T, S>, {tiles.row_blocks, S::threads, 0, stream}, p, in(o_), lse, in(d_o_),
         reinterpret_cast<T*>(stats), turns, tickets);
'''
b = edit(b, (host, either("COLUMNS", new, host)))
# APART: dQ of a tile is made together with dV and dK of the next one, so no consumer waits for the other. One head.
b = edit(b,
  ("  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];\n",
   "  Mbarrier kv_full, full[2], empty[2], dq_full[2][consumers], dq_ready[2][consumers];\n#ifdef APART\n  Mbarrier ds_full[2], ds_empty[2];\n#endif\n"),
  ("      mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps\n",
   "      mbarrier_init(&smem.empty[i], 4 * consumers);  // their warps\n#ifdef APART\n      mbarrier_init(&smem.ds_full[i], 4 * consumers);\n      mbarrier_init(&smem.ds_empty[i], 4 * consumers);\n#endif\n"),
)
first = b.index("#pragma unroll 1\n  for (int head = work.first_head; head < work.first_head + work.heads; head++)\n#pragma unroll 1\n    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance()) {\n      const int i = order.tile(step);\n      const T *q")
last = b.index("  named_barrier_sync(1, warpgroup_threads * consumers);  // everyone is done with K and V")
loop = b[first:last]
write = loop[loop.index("      mbarrier_wait(&smem.dq_ready[ring.place][consumer]"):loop.index("      wgmma_wait<0>(dv_reg, dk_reg);")]
write = write.replace("ring.place", "before.place").replace("ring.parity", "before.parity").replace("order.template is_last<Br>(p, i)", "order.template is_last<Br>(p, i_before)").replace("order.turn(i)", "order.turn(i_before)")
apart = """
  const auto bring_dq = [&](float (&dq_reg)[1][8][4], Ring<2> before, int i_before) {
""" + write + """
  };
  const auto one = [&](auto is_first, int step) {
    constexpr bool first = decltype(is_first)::value;
    Ring<2> before = ring;
    before.place ^= 1, before.parity ^= ring.place == 0;  // the one before
    const int i = order.tile(step), i_before = order.tile(step + 1);
    const T *q = smem.q[ring.place], *d_o = smem.d_o[ring.place];
#ifndef COLUMNS
    const float* stats = smem.stats[ring.place];
#endif
    T* ds = smem.ds[ring.place];
    float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
    mbarrier_wait(&smem.full[ring.place], ring.parity);
    wgmma_fence();
#ifdef COLUMNS
    mbarrier_wait(&smem.columns_full, columns.parity);
    wgmma_fence(for_lse);
    start_product_and<Bc, D, Br>(p_reg, k_rows, q, for_lse, smem.columns[0]);
    wgmma_fence(for_delta);
    start_product_and<Bc, D, Br>(ds_reg, v_rows, d_o, for_delta, smem.columns[0]);
#else
    start_product<Bc, D, Br>(p_reg, k_rows, q);
    start_product<Bc, D, Br>(ds_reg, v_rows, d_o);
#endif
    uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
    wgmma_wait<1>(p_reg);
    const auto visible = [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; };
#ifdef COLUMNS
    make_p_of<Br>(p_reg, 0.f, p.scale, visible);
#else
    if constexpr (D == 64)
      make_p_ahead<Br>(p_reg, p.scale, stats, visible);
    else
      make_p<Br>(p_reg, p.scale, stats, visible);
#endif
    swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
    wgmma_wait<0>(ds_reg);
#ifdef COLUMNS
    if (lane == 0) mbarrier_arrive(&smem.columns_empty);
    columns.advance();
#pragma unroll
    for (int n = 0; n < Br / 8; n++)
      for (int r = 0; r < 4; r++) ds_reg[0][n][r] *= p_reg[0][n][r];
#else
    make_ds<Br>(ds_reg, fragments_of(p_reg), stats + Br);
#endif
    swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
    mbarrier_wait(&smem.ds_empty[ring.place], ring.parity ^ 1);
    swizzled_tile::store_transpose<Br, Br>(ds + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&smem.ds_full[ring.place]);
    if constexpr (first) {
      wgmma_fence(dv_reg);
      wgmma_fence(dk_reg);
      start_sum<D, Br>(dv_reg, p_half, d_o);
      start_sum<D, Br>(dk_reg, ds_half, q);
    } else {
      mbarrier_wait(&smem.ds_full[before.place], before.parity);
      wgmma_fence();
      float dq_reg[1][8][4];
      start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[before.place] + first_query * page_row);
      start_sum<D, Br>(dv_reg, p_half, d_o);
      start_sum<D, Br>(dk_reg, ds_half, q);
      wgmma_wait<2>(dq_reg);
      if (lane == 0) mbarrier_arrive(&smem.ds_empty[before.place]);
      bring_dq(dq_reg, before, i_before);
    }
    wgmma_wait<0>(dv_reg, dk_reg);
    if (lane == 0) mbarrier_arrive(&smem.empty[ring.place]);
    ring.advance();
  };
  int step = work.head_tiles - 1;
  one(std::true_type(), step);
#pragma unroll 1
  for (step--; step >= work.start; step--) one(std::false_type(), step);
  {
    Ring<2> before = ring;
    before.place ^= 1, before.parity ^= ring.place == 0;
    mbarrier_wait(&smem.ds_full[before.place], before.parity);
    wgmma_fence();
    float dq_reg[1][8][4];
    start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[before.place] + first_query * page_row);
    wgmma_wait<0>(dq_reg);
    bring_dq(dq_reg, before, order.tile(step + 1));
  }
"""
b = b[:first] + "#ifdef APART\n" + apart + "#else\n" + loop + "#endif\n\n" + b[last:]
b = b.replace("#include <algorithm>\n", "#include <algorithm>\n#include <type_traits>\n", 1)
(OUT / "backward.cu").write_text(b)

f = (SRC / "forward64.cu").read_text()
i = f.index("constexpr int producer_registers")
line = f[i:f.index("\n", i)]
REGS = "#ifndef REGS\n#define REGS 160\n#endif\nconstexpr int consumer_registers = REGS, producer_registers = 512 - 3 * REGS;"
f = edit(f, (line, REGS))
(OUT / "forward64.cu").write_text(f)

f = (SRC / "forward128.cu").read_text()
f = edit(f,
  ("constexpr int producer_registers = consumers == 3 ? 32 : 24;",
   "constexpr int producer_registers = consumers == 3 ? 512 - 3 * REGS : 24;"),
  ("constexpr int consumer_registers = consumers == 3 ? 160 : 240;", "constexpr int consumer_registers = consumers == 3 ? REGS : 240;"),
  ("template <int consumers>\nconstexpr int threads", "#ifndef REGS\n#define REGS 160\n#endif\ntemplate <int consumers>\nconstexpr int threads"),
  # turns: EARLY passes one on when the products have started, LATE when S is there
  ("""  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  wgmma_wait<0>(s_reg);
""", """  const auto wait_for_turn = [&] { named_barrier_sync(1 + consumer, 256); };
  const auto pass_turn = [&] { named_barrier_arrive(1 + (consumer + 1) % consumers, 256); };
  mbarrier_wait(&smem.k_full[ring.place], ring.parity);
  watch_step("1. S = Q K^T");
  WAIT_FOR_TURN();
  wgmma_fence();
  start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
  PASS_EARLY();
  wgmma_wait<0>(s_reg);
  PASS_LATE();
"""),
  ("""    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    START_SUM(smem.v[before.place]);
    wgmma_wait<1>(s_reg);
""", """    WAIT_FOR_TURN();
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q_rows, smem.k[ring.place]);
    START_SUM(smem.v[before.place]);
    PASS_EARLY();
    wgmma_wait<1>(s_reg);
    PASS_LATE();
#ifdef LATE
    mbarrier_wait(&smem.k_full[ring.place], ring.parity);  // over: keeps x behind it; no result depends on it
#endif
"""),
  ("""    release(smem.v_empty[ring.place]);
  }

  watch_step("O / l and LSE");""", """    release(smem.v_empty[ring.place]);
    WAIT_FOR_TURN();
    PASS_EARLY();
    PASS_LATE();
  }

  watch_step("O / l and LSE");"""),
  ("    setmaxnreg_inc" if False else "#define STORE_P() (void)0\n#endif\n", """#define STORE_P() (void)0
#endif
#if defined EARLY || defined LATE
#define WAIT_FOR_TURN() wait_for_turn()
#else
#define WAIT_FOR_TURN() (void)0
#endif
#ifdef EARLY
#define PASS_EARLY() pass_turn()
#else
#define PASS_EARLY() (void)0
#endif
#ifdef LATE
#define PASS_LATE() pass_turn()
#else
#define PASS_LATE() (void)0
#endif
"""),
)
a, z = f.index("setmaxnreg_inc<"), 0
loop = "    for (; next(smem, tiles, tile, q); q.advance()) attend"
i = f.index(loop, a)
end = f.index("\n", f.index(";", f.index("attend", i)))
f = f[:i] + """#if defined EARLY || defined LATE
    if (warpgroup == consumers - 1) named_barrier_arrive(1, 256);  // the first turn is the first consumer's
#endif
""" + f[i:end] + """
#if defined EARLY || defined LATE
    if (warpgroup == 0) named_barrier_sync(1, 256);  // takes the last turn
#endif
""" + f[end + 1:]
(OUT / "forward128.cu").write_text(f)
