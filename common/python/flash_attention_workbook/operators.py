"""The functions of tensors, and what a compiler must know of the two operators behind them, which are in
operators.cc."""

import contextlib
import numbers
import re

import torch
import torch.utils.flop_counter

from . import library
from .block_masks import BlockMask

try:
    from . import _operators
except ImportError as error:
    raise ImportError(f"cannot load the operators for PyTorch {torch.__version__} ({error}): they are compiled for one "
                      "Python, and for one PyTorch or a few; install the package again (pip install .), or build it again with "
                      "-DPython3_EXECUTABLE=python, see README.md") from None


def rope_tables(q, k, base=10000.0):
    """(cos, sin), fp32 [max(Nq, Nk), D / 2]: the angles of RoPE for q [.., Nq, D] and k [.., Nk, D], for their device.

    Row p holds p * base^(-2 i / D), i < D / 2, by which elements i and i + D / 2 are turned at position p. Key j stands
    at position j, query i at i + Nk - Nq. Made in fp64: positions far out have angles that fp32 does not resolve.
    """
    _require_tensors(q=q, k=k)
    if not isinstance(base, (int, float)) or not base > 0:
        raise ValueError(f"base is {base!r}: it must be a number above 0")
    head_dim = q.shape[-1]
    positions = torch.arange(max(q.shape[-2], k.shape[-2]), dtype=torch.float64, device=q.device)
    frequencies = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=q.device) / head_dim)
    angles = torch.outer(positions, frequencies)
    return angles.cos().float(), angles.sin().float()


def _require_tensors(**arguments):
    """Where Python looks into tensors before the operators do."""
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{name} is a {type(value).__name__}: it must be a torch.Tensor")


def _pair(rope):
    """(cos, sin), or None twice."""
    if rope is None:
        return None, None
    if not isinstance(rope, (tuple, list)) or len(rope) != 2 or not all([isinstance(t, torch.Tensor) for t in rope]):
        raise ValueError("rope is not a pair of tensors (cos, sin): rope_tables(q, k) makes one")
    return tuple([table.contiguous() for table in rope])


def _extras(q, window, softcap, alibi, sink, packed=(None, None, 0, 0), blocks=None):
    """(left, right, softcap, alibi [B, H], sink, ..): as the operators take what models add, and at last where packed
    sequences are, and the tensors of a block mask."""
    packed = *packed, *((None,) * 3 if blocks is None else blocks[:3])
    if window is None and softcap is None and alibi is None and sink is None:
        return -1, -1, 0.0, None, None, *packed
    if window is not None and (not isinstance(window, (tuple, list)) or len(window) != 2
                               or any(isinstance(side, bool) for side in window)):
        raise ValueError(f"window is {window!r}: it must be a pair (left, right) of numbers of keys, -1 for all")
    left, right = (-1, -1) if window is None else window
    if softcap is not None and (isinstance(softcap, bool) or not isinstance(softcap, (int, float))
                                or not 0.1 <= softcap <= 1000):
        raise ValueError(f"softcap is {softcap!r}: it must be a number from 0.1 to 1000, or None")
    _require_tensors(**{name: value for name, value in (("alibi", alibi), ("sink", sink)) if value is not None})
    if alibi is not None:
        if isinstance(q, torch.Tensor) and q.dim() > 1 and (alibi.dim() not in (1, 2) or alibi.shape[-1] != q.shape[1]):
            many = "batch" if packed[0] is None else "sequences"
            raise ValueError(f"alibi has shape {list(alibi.shape)}: it must be [heads] or [{many}, heads], and there "
                             f"are {q.shape[1]} heads")
        if alibi.dim() == 1 or alibi.shape[0] == 1:  # the same slopes in every batch
            batch = q.shape[0] if packed[0] is None else max(0, packed[0].numel() - 1)
            alibi = alibi.expand(batch, -1)
        alibi = alibi.contiguous()
    if sink is not None:
        sink = sink.contiguous()
    return left, right, 0.0 if softcap is None else float(softcap), alibi, sink, *packed


def _checked(blocks, q, k):
    """The BlockMask, if it is of so many queries and keys; None is none. What its tensors must be is the operators'."""
    if blocks is None:
        return None
    _require_tensors(q=q, k=k)
    if not isinstance(blocks, BlockMask):
        raise ValueError(f"blocks is a {type(blocks).__name__}: it must be a BlockMask, as block_mask(mask) makes it")
    _require_tensors(**{f"blocks.{name}": getattr(blocks, name) for name in ("begin", "tiles", "bits")})
    for name, tensor, wanted, size in (("queries", q, blocks.seq_q, "seq_q"), ("keys", k, blocks.seq_k, "seq_k")):
        if tensor.dim() == 4 and tensor.shape[2] != wanted:
            expands = f": block_mask(mask, {size}={tensor.shape[2]}) expands it" if wanted == 1 else ""
            raise ValueError(f"blocks is of {wanted} {name}, and there are {tensor.shape[2]}{expands}")
    return blocks


def _forward(*arguments):
    """The operator forward. A compiler follows it to torch.ops; nobody else waits for torch.ops to read the
    arguments."""
    if torch.compiler.is_compiling():
        return torch.ops.flash_attention_workbook.forward.default(*arguments)
    return _operators.forward(*arguments)


def _backward(*arguments):
    """The operator backward, likewise."""
    if torch.compiler.is_compiling():
        return torch.ops.flash_attention_workbook.backward.default(*arguments)
    return _operators.backward(*arguments)


def forward(q, k, v, causal=False, scale=None, chapter=None, rung=None, rope=None, window=None, softcap=None,
            alibi=None, sink=None, blocks=None):
    """(o, lse) of q [B, H, Nq, D], k and v [B, Hkv, Nk, D]; lse [B, H, Nq] is None where the rung writes none.

    causal aligns bottom-right: query i sees keys j <= i + Nk - Nq. scale is 1 / sqrt(D) unless given. With rope, the
    tables that rope_tables() makes, q and k are rotated by their positions first. No chapter means the book's last
    word, and no rung the last of its chapter. What models add, for chapter 12:

    v may have a head dim of its own, which o has, too: 128 where D is 192.
    window (left, right): query i sees keys i + Nk - Nq - left to i + Nk - Nq + right; -1 is all on that side.
    softcap: scores become softcap * tanh(score / softcap).
    alibi, fp32 [H] or [B, H]: scores lose slope * |i + Nk - Nq - j|. There is one score function, this or a softcap.
    sink, fp32 [H]: exp(sink) is one more term in the sum of each row, and in lse.
    blocks, a BlockMask, as block_mask() makes it: what is in none of its tiles is not computed. causal and a sink may
    stand beside it. D is at most 128, and v has no head dim of its own. Lists that are none make o and all gradients
    NaN on a GPU, since only the kernels can know; those of columns, which are the backward's, the gradients alone. On
    the engine they are refused.

    q, k and v may lie in any way that keeps the D elements of a row together; o lies as q does. Where B, H or Nq is 0,
    no kernel runs; without keys o is 0, and lse -inf or the sink. Works on the current stream, and inside
    torch.cuda.graph. Knows nothing of gradients: attention() does.
    """
    library.check_names(chapter, rung)
    with torch.no_grad():
        o, lse = _forward(q, k, v, *_pair(rope), causal, scale, chapter, rung, None, None,
                          *_extras(q, window, softcap, alibi, sink, blocks=_checked(blocks, q, k)))
    return o, lse if lse.dim() == 3 else None


def backward(q, k, v, o, lse, d_o, causal=False, scale=None, chapter=None, rung=None, rope=None, window=None,
             softcap=None, alibi=None, sink=None, blocks=None):
    """(dq, dk, dv), or with a sink (dq, dk, dv, dsink), from what forward() took and returned, and d_o, the gradient of
    o; of q and k as they were before they were rotated."""
    library.check_names(chapter, rung)
    with torch.no_grad():
        gradients = _backward(d_o, q, k, v, o, lse, *_pair(rope), causal, scale, chapter, rung,
                              *_extras(q, window, softcap, alibi, sink, blocks=_checked(blocks, q, k)))
    return gradients[:3] if sink is None else gradients


def _check(kernel, *arguments):
    """Has the kernel refuse what it would refuse with values. Where sizes are symbols, for those of the call that is
    recorded; and for none where they are not known. A library for GPUs does not say without a GPU who would run."""
    def is_symbol(x):
        return isinstance(x, torch.SymInt)

    def axes(x):
        return (*x.shape, *x.stride()) if isinstance(x, torch.Tensor) else ()

    def number(x):
        return x.node.hint if is_symbol(x) else x

    def with_numbers(x):
        if not any([is_symbol(axis) for axis in axes(x)]):
            return number(x)
        return torch.empty_strided([*map(number, x.shape)], [*map(number, x.stride())], dtype=x.dtype, device=x.device)

    if any([number(axis) is None for x in arguments for axis in (axes(x) or [x]) if is_symbol(axis)]):
        return
    with contextlib.suppress(RuntimeError):
        kernel(*map(with_numbers, arguments))


@torch.library.register_fake("flash_attention_workbook::forward")
def _(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung, window_left=-1, window_right=-1,
      softcap=0.0, alibi=None, sink=None, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=0, max_seqlen_k=0,
      block_begin=None, block_tiles=None, block_bits=None):
    _check(_operators.check_forward, q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung,
           window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
           block_begin, block_tiles, block_bits)
    writes_lse = chapter is None or library.has("lse", chapter, rung)
    head_dim = v.shape[-1]  # which may be less than q's, and not more
    o = torch.empty_like(q if head_dim == q.shape[-1] else q[..., :head_dim])
    return o, q.new_empty(q.shape[:3] if writes_lse else 0, dtype=torch.float32)


@torch.library.register_fake("flash_attention_workbook::backward")
def _(d_o, q, k, v, o, lse, cos, sin, causal, scale, chapter, rung, window_left=-1, window_right=-1, softcap=0.0,
      alibi=None, sink=None, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=0, max_seqlen_k=0, block_begin=None,
      block_tiles=None, block_bits=None):
    _check(_operators.check_backward, d_o, q, k, v, o, lse, cos, sin, causal, scale, chapter, rung, window_left,
           window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, block_begin,
           block_tiles, block_bits)
    return (torch.empty_like(q), torch.empty_like(k), torch.empty_like(v),
            q.new_empty(0 if sink is None else q.shape[1], dtype=torch.float32))


@torch.library.register_fake("flash_attention_workbook::forward_e4m3")
def _(q, k, v, q_scale, k_scale, v_scale, causal, scale, chapter, rung, out_dtype):
    _check(_operators.check_forward_e4m3, q, k, v, q_scale, k_scale, v_scale, causal, scale, chapter, rung, out_dtype)
    return q.new_empty(q.shape, dtype=out_dtype), q.new_empty(q.shape[:3], dtype=torch.float32)


def _count_flops(operator, first, of_q_and_k, of_v):
    """Has FlopCounterMode count what it counts for PyTorch's own attention: every pair of a query and a key, seen or
    not, in so many products over the head dim of q and k, and over v's. Packed sequences count as if all were as long
    as the longest. library.flops() leaves out what a mask hides. q is the operator's argument `first`."""

    @torch.utils.flop_counter.register_flop_formula(operator)
    def _(*arguments, out_shape=None):
        q, k, v, *rest = arguments[first:]
        pairs = q[0] * q[2] * k[2]
        if len(rest) > 16 and rest[13] is not None:  # cu_seqlens_q .. max_seqlen_k
            pairs = (rest[13][0] - 1) * rest[15] * rest[16]
        return 2 * q[1] * pairs * (of_q_and_k * q[3] + of_v * v[3])


_count_flops(torch.ops.flash_attention_workbook.forward, 0, 1, 1)
_count_flops(torch.ops.flash_attention_workbook.forward_e4m3, 0, 1, 1)
_count_flops(torch.ops.flash_attention_workbook.backward, 1, 3, 2)


def _with_backward(chapter, rung, backward_chapter, backward_rung, rotates):
    """(chapter, rung, backward_chapter, backward_rung) to take where gradients are wanted; None stands for the
    default."""
    if backward_chapter is None and chapter is not None:
        backward_chapter, backward_rung = chapter, rung
    able = library.able("backward", rotates)
    if not (able if backward_chapter is None else library.has("backward", backward_chapter, backward_rung)):
        who = (backward_chapter or "the workbook") + (f", rung {backward_rung}," if backward_rung else "")
        raise ValueError(f"{who} has no backward and a tensor requires gradients: use "
                         f"torch.no_grad(), or a backward_chapter of: {', '.join(able) or '(none yet)'}")
    if chapter is None or not library.has("forward", chapter, None):
        chapter, rung = None, None
    elif not library.has("forward", chapter, rung):
        rung = None  # the rung is a backward alone
    if chapter is not None and not library.has("lse", chapter, rung):
        raise ValueError(f"{chapter} writes no LSE, which a backward needs: chapters that do are "
                         f"{', '.join(library.able('lse', rotates))}")
    return chapter, rung, backward_chapter, backward_rung


def attention(q, k, v, causal=False, scale=None, chapter=None, rung=None, backward_chapter=None, backward_rung=None,
              rope=None, window=None, softcap=None, alibi=None, sink=None, blocks=None):
    """softmax(scale q k^T) v as o, [B, H, Nq, D] if v is as wide as q; arguments as for forward(). A sink has a
    gradient, too.

    Differentiable, in reverse mode and not by torch.func, where the chapter has a backward, or backward_chapter names
    one that has. A direction for which no chapter is named takes the book's last word, and so does the forward of a
    chapter that is a backward alone. Under autocast q, k and v are converted to its type first.
    """
    if not (chapter is rung is backward_chapter is backward_rung is None):
        library.check_names(chapter, rung)
        library.check_names(backward_chapter, backward_rung)
        _require_tensors(q=q, k=k, v=v)
        if torch.is_grad_enabled() and any([x.requires_grad for x in (q, k, v)]):
            chapter, rung, backward_chapter, backward_rung = _with_backward(chapter, rung, backward_chapter,
                                                                            backward_rung, rope is not None)
    cos, sin = (None, None) if rope is None else _pair(rope)
    return _forward(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung,
                    *_extras(q, window, softcap, alibi, sink, blocks=_checked(blocks, q, k)))[0]


FP8_CHAPTER, FP8_TILE = "13_fp8", 128


def _scale_of(name, scale, x):
    """A scale as a tensor on x's device: [1], or one for each FP8_TILE rows of a head. What a tensor holds, only the
    kernels can know, and the engine."""
    if isinstance(scale, numbers.Real) and not isinstance(scale, bool):
        if not torch.finfo(torch.float32).tiny <= scale <= torch.finfo(torch.float32).max:
            raise ValueError(f"{name} is {scale!r}: it must be at least 2^-126 and finite, as fp32 has it")
        return torch.full((1,), float(scale), dtype=torch.float32, device=x.device)
    if not isinstance(scale, torch.Tensor):
        raise ValueError(f"{name} is a {type(scale).__name__}: it must be a number or a torch.Tensor")
    tiles = [*x.shape[:2], -(-x.shape[2] // FP8_TILE)]
    if scale.dim() < 3 and scale.numel() == 1:
        scale = scale.reshape(1)
    elif list(scale.shape) != tiles:
        raise ValueError(f"{name} has shape {list(scale.shape)}: it must have one element, or be {tiles}, with one for "
                         f"each {FP8_TILE} rows of a head")
    return scale.contiguous()


def _from_e4m3(tensors, scales, causal, scale, rung, out_dtype):
    """attention_fp8 of tensors in e4m3, {name: tensor}, with {name: scale}."""
    for name, x in tensors.items():
        if x.dtype != torch.float8_e4m3fn:
            raise ValueError(f"{name} is {x.dtype} and another tensor is torch.float8_e4m3fn: q, k and v must have one "
                             "dtype")
        if scales[f"{name}_scale"] is None:
            raise ValueError(f"{name} is torch.float8_e4m3fn and {name}_scale is not given: pass what its elements are "
                             "to be multiplied by")
        if x.dim() != 4:
            raise ValueError(f"{name} has shape {list(x.shape)}: it must be [batch, heads, sequence, head_dim]")
    found = [_scale_of(name, one, x) for (name, one), x in zip(scales.items(), tensors.values())]
    if any([one.dim() == 3 for one in found]):  # then all of them
        found = [one if one.dim() == 3 else one.expand(*x.shape[:2], -(-x.shape[2] // FP8_TILE)).contiguous()
                 for one, x in zip(found, tensors.values())]
    call = (torch.ops.flash_attention_workbook.forward_e4m3.default if torch.compiler.is_compiling() else
            _operators.forward_e4m3)
    return call(*tensors.values(), *found, causal, scale, FP8_CHAPTER, rung,
                torch.bfloat16 if out_dtype is None else out_dtype)[0]


def attention_fp8(q, k, v, causal=False, scale=None, rung=None, q_scale=None, k_scale=None, v_scale=None,
                  out_dtype=None):
    """softmax(scale q k^T) v as o, of q [B, H, Nq, D], k and v [B, Hkv, Nk, D], through numbers of eight bits. The
    error of o is a few percent in the norm: see the lesson of chapter 13. On a GPU of compute capability 9.0 alone.

    Of fp16 or bf16 tensors, kernels make e4m3 and scales, and o is of their type. D is at most 256.

    Or they are torch.float8_e4m3fn already, contiguous, with D = 64, 128 or 256. Then q_scale, k_scale and v_scale say
    what their elements are to be multiplied by: a number, a tensor with one element, or fp32 with one for each 128 rows
    of a head, [B, H, ceil(Nq / 128)] and [B, Hkv, ceil(Nk / 128)]. They must be at least 2^-126 and finite; of a tensor
    only the kernels can know, and make NaN of what depends on another one. o is of out_dtype, torch.bfloat16 unless
    torch.float16 is said.

    No gradients: none is defined of what is rounded so.
    """
    tensors, scales = {"q": q, "k": k, "v": v}, {"q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale}
    _require_tensors(**tensors)
    wanting = [name for name, x in (tensors | scales).items() if isinstance(x, torch.Tensor) and x.requires_grad]
    if torch.is_grad_enabled() and wanting:
        raise ValueError(f"{', '.join(wanting)} require{'s' * (len(wanting) == 1)} gradients and attention_fp8 has none: use "
                         "torch.no_grad(), or attention()")
    library.check_names(FP8_CHAPTER, rung)
    if any([x.dtype == torch.float8_e4m3fn for x in tensors.values()]):
        return _from_e4m3(tensors, scales, causal, scale, rung, out_dtype)
    for name, x in tensors.items():
        if x.dtype not in (torch.float16, torch.bfloat16):
            raise ValueError(f"{name} is {x.dtype}: supported are torch.float16, torch.bfloat16 and, with scales, "
                             "torch.float8_e4m3fn")
        if scales[f"{name}_scale"] is not None:
            raise ValueError(f"{name}_scale is given and {name} is {x.dtype}: scales are of torch.float8_e4m3fn "
                             "tensors")
    if out_dtype not in (None, q.dtype):
        raise ValueError(f"out_dtype is {out_dtype} and q is {q.dtype}: o has another dtype than q only if q is "
                         "torch.float8_e4m3fn")
    return _forward(q, k, v, None, None, causal, scale, FP8_CHAPTER, rung, None, None, *_extras(q, *[None] * 4))[0]


def attention_packed(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, scale=None,
                     window=None, softcap=None, alibi=None, sink=None):
    """attention() of sequences that lie one behind the other, without padding: o, [total_q, H, D], of q [total_q, H, D],
    k and v [total_k, Hkv, D]. D is at most 128, and v has no head dim of its own.

    cu_seqlens_q and cu_seqlens_k, int32 [sequences + 1] where q is, say where they begin, and the last one ends: 0
    first, none below the one before it, the last at most the total. A sequence may be empty. Rows behind the last
    sequence are of none: their o and gradients are 0. max_seqlen_q and max_seqlen_k, the lengths of the longest
    sequences, decide only in which order things are computed.

    Each sequence is masked and aligned on its own. The other arguments are attention()'s; alibi is [H] or [sequences,
    H]. Lengths may change between replays of a CUDA graph, in the same cu_seqlens. If those are none, on a GPU o and
    all gradients are NaN, since only the kernels can know; on the engine they are refused.
    """
    _require_tensors(q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.layout != torch.strided or tensor.is_nested:
            raise ValueError(f"{name} is a sparse or nested tensor: it must be an ordinary one, [total, heads, head_dim]")
        if tensor.dim() != 3:
            raise ValueError(f"{name} is of shape {list(tensor.shape)}: it must be [total, heads, head_dim]")
    o = _forward(*[x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)], None, None, causal, scale, None, None, None,
                 None, *_extras(q, window, softcap, alibi, sink,
                                (cu_seqlens_q.contiguous(), cu_seqlens_k.contiguous(), max_seqlen_q, max_seqlen_k)))[0]
    return o.squeeze(0).transpose(0, 1)


def _band(mask, query, key):
    """(first, last) of a mask by which query i sees keys i + first to i + last; None for an end that cuts nothing off.

    Along a band every diagonal has one value. So the mask is read once, where it is, and what goes to the host is a
    number for each diagonal.
    """
    seq_q, seq_k = query.shape[2], key.shape[2]
    wanted = [*query.shape[:2], seq_q, seq_k]
    if mask.layout != torch.strided or mask.is_nested:
        raise ValueError("attn_mask is a sparse or nested tensor: it must be an ordinary one")
    if mask.dtype != torch.bool:
        raise ValueError(f"attn_mask is {mask.dtype}: supported is torch.bool, True where a query sees a key")
    if (torch.compiler.is_compiling() or mask.is_meta or isinstance(mask, torch._subclasses.FakeTensor)
            or mask.is_cuda and torch.cuda.is_current_stream_capturing()):
        raise ValueError("attn_mask has no values while torch.compile or a CUDA graph records the call, or on the "
                         "device meta: call attention() with a window instead")
    if mask.device != query.device:
        raise ValueError(f"attn_mask is on {mask.device} and query is on {query.device}: all tensors must be on one "
                         "device")
    if mask.dim() > 4 or any([size not in (1, full) for size, full in zip(mask.shape[::-1], wanted[::-1])]):
        raise ValueError(f"attn_mask has shape {list(mask.shape)}: it must be {wanted}, or have 1 for some of "
                         "these numbers")
    if mask.numel() == 0:
        return None, -seq_q
    shape, same = list(mask.shape), mask.new_ones(())
    while mask.dim() > 2:
        if mask.shape[0] > 1 and mask.stride(0) > 0:  # which is 0 where one mask is expanded
            same = same & (mask[1:] == mask[:1]).all()
        mask = mask[0]
    mask = mask.expand(seq_q, seq_k)
    same = same & (mask[1:, 1:] == mask[:-1, :-1]).all()
    # Diagonals in order: from the last query and the first key to the first query and the last key.
    *diagonals, same = torch.cat([mask[:, 0].flip(0), mask[0, 1:], same[None]]).tolist()
    seen = sum(diagonals)
    begin = diagonals.index(True) if seen else 0
    if not same or not all(diagonals[begin:begin + seen]):
        raise ValueError(f"attn_mask {shape} is not one band for all heads: supported is that query i sees keys i + "
                         "first to i + last, as far as there are such; attention(query, key, value, blocks=block_mask("
                         f"attn_mask, seq_q={seq_q}, seq_k={seq_k})) takes others")
    end = begin + seen
    return begin - seq_q + 1 if begin > 0 else None, end - seq_q if end < len(diagonals) else None


def _in_its_terms(query, key, value, causal, scale, window, of):
    """attention() for sdpa(), whose arguments its refusals name; of what there is a window, if there is one."""
    try:
        return attention(query, key, value, causal, scale, window=window)
    except ValueError as error:
        names = {"q": "query", "k": "key", "v": "value", "window": f"window, which {of} is"}
        line = re.sub(r"\b(q|k|v|window)\b", lambda found: names[found[0].lower()], str(error), flags=re.IGNORECASE)
    raise ValueError(line)


# torch.compile records no `except`. So it records an operator that does nothing, but refuses fake tensors as sdpa() does.
torch.library.define("flash_attention_workbook::refuse_sdpa", "(Tensor query, Tensor key, Tensor value, bool causal, "
                     "float? scale, SymInt[]? window, str? of) -> ()")
torch.library.impl("flash_attention_workbook::refuse_sdpa", "default", lambda *arguments: None)


@torch.library.register_fake("flash_attention_workbook::refuse_sdpa")
def _(query, key, value, causal, scale, window, of):
    if window is not None:  # symbols, and Python's functions want numbers
        window = [side.node.hint if isinstance(side, torch.SymInt) else side for side in window]
    if window is None or None not in window:
        _in_its_terms(query, key, value, causal, scale, window, of)


def _attention_of_sdpa(*arguments):
    if not torch.compiler.is_dynamo_compiling():
        return _in_its_terms(*arguments)
    torch.ops.flash_attention_workbook.refuse_sdpa(*arguments)
    query, key, value, causal, scale, window, _ = arguments
    return attention(query, key, value, causal, scale, window=window)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """As torch.nn.functional.scaled_dot_product_attention, for what the book has: no dropout, and masks that are bands.

    is_causal is PyTorch's, aligned top-left: query i sees keys j <= i. With as many queries as keys that is
    attention()'s. With fewer queries, the keys that none of them sees are left out; with more, it is a window.

    attn_mask, torch.bool and True where a query sees a key, is [Nq, Nk], or expands to [B, H, Nq, Nk]: query i sees
    keys i + first to i + last, as far as there are such, for any first and last, the same for all heads. The kernels
    then run with a window, or causally. Each call reads the mask once, makes one more of its size, and waits until one
    number for each diagonal is on the host: where you know the window, call attention() with it. Where
    torch.compile(fullgraph=True) or a CUDA graph records the call, a mask has no values yet and is refused.
    """
    _require_tensors(query=query, key=key, value=value, **({} if attn_mask is None else {"attn_mask": attn_mask}))
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask and is_causal=True are both given: pass one of them")
    if dropout_p != 0:
        found = "not 0" if torch.compiler.is_dynamo_compiling() else dropout_p  # there it may be a symbol
        raise ValueError(f"dropout_p is {found}: supported is 0, no dropout")
    if not isinstance(is_causal, int) or is_causal not in (0, 1):
        raise ValueError(f"is_causal is {is_causal!r}: it must be True or False")
    known = all([x.layout == torch.strided and not x.is_nested and x.dim() == 4 for x in (query, key, value)])
    if not known or key.shape[:3] != value.shape[:3]:
        return _attention_of_sdpa(query, key, value, is_causal, scale, None, None)  # which refuses them
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(f"query has {query.shape[1]} heads and key {key.shape[1]}: enable_gqa=True lets query heads "
                         "share one of key")
    first, last = (None, 0 if is_causal else None) if attn_mask is None else _band(attn_mask, query, key)
    seq_q, seq_k = query.shape[2], key.shape[2]
    # Without the queries at the end that see nothing, and then without the keys that none of them sees, the end of the
    # window is not before the last query's own key, and its beginning is not behind it.
    rows = seq_q if first is None else min(seq_q, seq_k - first)
    keys = seq_k if last is None else min(seq_k, rows + last)
    window = (-1 if first is None else keys - rows - first, -1 if last is None else last - (keys - rows))
    if rows < seq_q:
        query = query[:, :, :rows]
    if keys < seq_k:
        key, value = key[:, :, :keys], value[:, :, :keys]
    o = _attention_of_sdpa(query, key, value, window == (-1, 0), scale,
                           None if window in ((-1, -1), (-1, 0)) else window,
                           "is_causal with more queries than keys" if attn_mask is None else "this attn_mask")
    return o if rows == seq_q else torch.nn.functional.pad(o, (0, 0, 0, seq_q - rows))
