src=open('/work/main/13_fp8/forward.h').read()
def rep(s,a,b):
    assert s.count(a)==1,(a,s.count(a)); return s.replace(a,b)
# registers and stages of the variant
s=rep(src,'''  static constexpr int consumers = 2, stages = 3, queries = 2;
  static constexpr int producer_registers = 56, consumer_registers = 224;''','''  static constexpr int consumers = 2, stages = STAGES, queries = 2;
  static constexpr int producer_registers = 504 - 2 * CREG, consumer_registers = CREG;''')
s=rep(s,'''    .cuts_sums = R::flush == 0};

template <class R>
constexpr attention::Forward of_e4m3''','''    .cuts_sums = R::flush == 0};

#if 0
template <class R>
constexpr attention::Forward of_e4m3''')
s=s.replace('''                                        .cuts_sums = R::flush == 0};

}  // namespace fp8''','''                                        .cuts_sums = R::flush == 0};
#endif

}  // namespace fp8''')
s=s.replace('#include "quantize_tiles.h"\n\n','#include "13_fp8/quantize_tiles.h"\n\n')
open('v/forward_v.h','w').write(s)
t=open('/work/main/13_fp8/2_inside.cu').read()
t=t[t.index('// Where 16 bytes'):t.index('}  // namespace\n\nextern')]
t=t.replace('struct Inside : Direct {','struct Inside : Followed {')
open('v/vrows.cu','w').write('''#include "device/stmatrix.h"
#include "forward_v.h"
namespace fp8 { namespace {
struct Followed : Direct {
  struct Range { static constexpr float start = 3, headroom = start; };
  template <int D> static constexpr int followed = D == 64 ? 3 : 2;
  template <int D> static constexpr bool before = D == 64;
  static constexpr bool by_sums = true, turns = true, q_held = QHELD;
  static constexpr int flush = 1;
  static constexpr attention::EightBits rounding = attention::rotated_tile;
};
'''+t+'''
template <int D> __global__ void take_scales(attention::ScalesOfE4m3 scales, Problem p, EightBitTiles to) {
  const int of_q = p.batch * p.heads * to.q_tiles, of_k = p.batch * p.kv_heads * to.k_tiles;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *to.taken = 0;
  if (i < of_q) to.q_scales[i] = checked_scale(scales.q, i, scales.of_tiles);
  if (i < of_k) to.k_scales[i] = checked_scale(scales.k, i, scales.of_tiles), to.v_exponents[i] = log2f(checked_scale(scales.v, i, scales.of_tiles));
}
}
void FN(const Problem& p, const ForwardArgs& args, int what, cudaStream_t stream) {
  constexpr int D = 128; using T = __nv_bfloat16; using R = std::conditional_t<ROWS, Inside, Followed>;
    EightBitTiles eight = tiles_in_workspace(p, args.workspace, true);
    eight.q = static_cast<e4m3*>(const_cast<void*>(args.q)), eight.k = static_cast<e4m3*>(const_cast<void*>(args.k));
    const unsigned blocks = unsigned(p.batch * p.kv_heads) * eight.k_tiles + unsigned(p.batch * p.heads);
    if (ROWS) {
      const int n = std::max(p.batch * p.heads * eight.q_tiles, p.batch * p.kv_heads * eight.k_tiles);
      if (what & 1) launch(take_scales<D>, {unsigned(ceil_div(n, 256)), 256, 0, stream}, args.scales, p, eight);
      eight.v = static_cast<e4m3*>(const_cast<void*>(args.v));
    } else if (what & 1) launch(take_tiles<D>, {blocks, take_threads<D>, 0, stream}, static_cast<const e4m3*>(args.v), args.scales, p, eight);
    else cudaMemsetAsync(eight.taken, 0, 4, stream);
    Problem unrotated = p; unrotated.scale *= D;
    if (what & 2) attend<R, T, D>(unrotated, args, eight, tile_scales(eight), stream);
}
}
''')
