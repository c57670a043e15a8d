"""The functions of tensors, and the two operators behind them.

torch.ops.flash_attention_workbook.forward and .backward are what torch.compile, opcheck, a CUDA graph or a mode that
watches operators sees. Outside of those, attention() calls the same two functions without PyTorch's dispatcher in between,
which in Python would take longer than all the rest of a call.
"""

import torch

from . import library
from .library import DEVICE, Error

_DTYPES = {torch.float16: 0, torch.bfloat16: 1}
_ALIGNMENT = 16  # bytes: what kernels move at a time


def _check_tensor(name, tensor, like, shape=None):
    if not isinstance(tensor, torch.Tensor):
        raise Error(f"{name} is a {type(tensor).__name__}: it must be a torch.Tensor")
    if (tensor is like or tensor.device != like.device) and tensor.device.type != DEVICE:
        raise Error(f"{name} is on {tensor.device}: it must be a {DEVICE.upper()} tensor"
                    + (", as the library is the SIMT engine's" if DEVICE == "cpu" else ""))
    if tensor.device != like.device:
        raise Error(f"{name} is on {tensor.device} and q is on {like.device}: all tensors must be on one device")
    if tensor.dtype not in _DTYPES:
        raise Error(f"{name} is {tensor.dtype}: supported are torch.float16 and torch.bfloat16")
    if tensor.dtype != like.dtype:
        raise Error(f"{name} is {tensor.dtype} and q is {like.dtype}: all tensors must have one dtype")
    if tensor.dim() != 4:
        raise Error(f"{name} has shape {tuple(tensor.shape)}: it must be [batch, heads, sequence, head_dim]")
    if shape is not None and tensor.shape != shape:
        raise Error(f"{name} has shape {tuple(tensor.shape)}: it must be {tuple(shape)}")
    if not tensor.is_contiguous():
        raise Error(f"{name} is not contiguous: pass {name}.contiguous()")
    if tensor.data_ptr() % _ALIGNMENT:
        raise Error(f"{name} starts at an address that is not a multiple of {_ALIGNMENT} bytes: pass {name}.clone()")


def _check_inputs(q, k, v, causal, scale):
    _check_tensor("q", q, q)
    _check_tensor("k", k, q)
    if k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        raise Error(f"k has shape {tuple(k.shape)} and q {tuple(q.shape)}: batch and head_dim must be equal")
    _check_tensor("v", v, q, k.shape)
    if scale is not None and not isinstance(scale, (int, float)):
        raise Error(f"scale is {scale!r}: it must be a number")
    if not isinstance(causal, int) or causal not in (0, 1):
        raise Error(f"causal is {causal!r}: it must be True or False")


def rope_tables(q, k, base=10000.0):
    """(cos, sin), fp32 [max(Nq, Nk), D / 2]: the angles of RoPE for q [.., Nq, D] and k [.., Nk, D], for their device.

    Row p holds p * base^(-2 i / D), i < D / 2, by which elements i and i + D / 2 are turned at position p. Key j stands
    at position j, query i at i + Nk - Nq. Made in fp64: positions far out have angles that fp32 does not resolve.
    """
    head_dim = q.shape[-1]
    positions = torch.arange(max(q.shape[-2], k.shape[-2]), dtype=torch.float64, device=q.device)
    frequencies = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=q.device) / head_dim)
    angles = torch.outer(positions, frequencies)
    return angles.cos().float(), angles.sin().float()


def _check_rope(rope, q, k):
    """The addresses of the two tables; None, if there is no rope."""
    if rope is None:
        return None
    shape = (max(q.shape[2], k.shape[2]), q.shape[3] // 2)
    for name, table in zip(("cos", "sin"), rope):
        if table.dtype != torch.float32 or table.shape != shape or table.device != q.device or not table.is_contiguous():
            raise Error(f"rope's {name} is {table.dtype} {tuple(table.shape)} on {table.device}: it must be torch.float32 "
                        f"{shape}, contiguous, on {q.device}")
    return rope[0].data_ptr(), rope[1].data_ptr()


def _pair(rope):
    """(cos, sin), or None twice."""
    if rope is None:
        return None, None
    if not isinstance(rope, (tuple, list)) or len(rope) != 2 or not all([isinstance(t, torch.Tensor) for t in rope]):
        raise Error("rope is not a pair of tensors (cos, sin): rope_tables(q, k) makes one")
    return tuple(rope)


def _pointer(tensor):
    return None if tensor is None or tensor.numel() == 0 else tensor.data_ptr()


def _plan(direction, q, k, causal, scale, chapter, rung, rotates, backward_rung=None):
    return library.plan(direction, chapter, rung, rotates, q.shape, k.shape, _DTYPES[q.dtype], causal, scale, q.device.index,
                        backward_rung)


if DEVICE == "cuda":

    def _run(device, function):
        """Calls function(stream) with this device the current one."""
        if device.index == torch.cuda.current_device():
            return function(torch.cuda.current_stream().cuda_stream)
        with torch.cuda.device(device):
            return function(torch.cuda.current_stream().cuda_stream)

else:

    def _run(device, function):
        return function(None)


def forward(q, k, v, causal=False, scale=None, chapter=None, rung=None, rope=None):
    """(o, lse) of q [B, H, Nq, D], k and v [B, Hkv, Nk, D]; lse [B, H, Nq] is None where the rung writes none.

    causal aligns bottom-right: query i sees keys j <= i + Nk - Nq. scale is 1 / sqrt(D) unless given. With rope, the
    tables that rope_tables() makes, q and k are rotated by their positions first. No chapter means the book's last word,
    and no rung the last of its chapter. Works on the current stream, and inside torch.cuda.graph. Knows nothing of
    gradients: attention() does.
    """
    return _launch_forward(q, k, v, causal, scale, chapter, rung, rope)


def _launch_forward(q, k, v, causal, scale, chapter, rung, rope, backward_rung=None):
    """forward(). Where gradients are wanted, backward_rung is the (chapter, rung) of the backward, which may refuse, too."""
    library.check_names(chapter, rung)
    _check_inputs(q, k, v, causal, scale)
    rope = None if rope is None else _pair(rope)
    addresses = _check_rope(rope, q, k)

    def launch(stream):
        plan = _plan("forward", q, k, causal, scale, chapter, rung, rope is not None, backward_rung)
        o = torch.empty_like(q, memory_format=torch.contiguous_format)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device) if plan.writes_lse else None
        workspace = torch.empty(plan.workspace, dtype=torch.uint8, device=q.device) if plan.workspace else None
        plan.forward(addresses, _pointer(q), _pointer(k), _pointer(v), _pointer(o), _pointer(lse), _pointer(workspace), stream)
        return o, lse

    return _run(q.device, launch)


def backward(q, k, v, o, lse, d_o, causal=False, scale=None, chapter=None, rung=None, rope=None):
    """(dq, dk, dv) from what forward() took and returned, and d_o, the gradient of o; of q and k as they were before they
    were rotated."""
    library.check_names(chapter, rung)
    _check_inputs(q, k, v, causal, scale)
    _check_tensor("o", o, q, q.shape)
    _check_tensor("d_o", d_o, q, q.shape)
    if not isinstance(lse, torch.Tensor):
        raise Error(f"lse is a {type(lse).__name__}: it must be a torch.Tensor")
    if lse.dtype != torch.float32 or lse.shape != q.shape[:3] or not lse.is_contiguous() or lse.device != q.device:
        raise Error(f"lse is {lse.dtype} {tuple(lse.shape)} on {lse.device}: it must be torch.float32 "
                    f"{tuple(q.shape[:3])}, contiguous, on {q.device}")
    rope = None if rope is None else _pair(rope)
    addresses = _check_rope(rope, q, k)

    def launch(stream):
        plan = _plan("backward", q, k, causal, scale, chapter, rung, rope is not None)
        dq, dk, dv = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (q, k, v))
        workspace = torch.empty(plan.workspace, dtype=torch.uint8, device=q.device) if plan.workspace else None
        plan.backward(addresses, *map(_pointer, (q, k, v, o, lse, d_o, dq, dk, dv, workspace)), stream)
        return dq, dk, dv

    return _run(q.device, launch)


# The operators. Their last four arguments name the rungs of both directions; cos and sin are the tables of RoPE.
_FORWARD, _BACKWARD = "flash_attention_workbook::forward", "flash_attention_workbook::backward"
_OPTIONS = "Tensor? cos, Tensor? sin, bool causal, float? scale, str? chapter, str? rung"


def _forward(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung, gradients=False):
    """What the operator does. An lse that the rung does not write has no elements."""
    o, lse = _launch_forward(q, k, v, causal, scale, chapter, rung, None if cos is None else (cos, sin),
                             (backward_chapter, backward_rung) if gradients else None)
    return o, torch.empty(0, dtype=torch.float32, device=q.device) if lse is None else lse


def _forward_shapes(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung):
    writes_lse = chapter is None or library.has("lse", chapter, rung)
    return q.new_empty(q.shape), q.new_empty(q.shape[:3] if writes_lse else 0, dtype=torch.float32)


def _backward(d_o, q, k, v, o, lse, cos, sin, causal, scale, chapter, rung):
    if d_o.data_ptr() % _ALIGNMENT:  # autograd's choice, not the caller's
        d_o = d_o.clone()
    return backward(q, k, v, o, lse, d_o, causal, scale, chapter, rung, None if cos is None else (cos, sin))


def _backward_shapes(d_o, q, k, v, o, lse, cos, sin, causal, scale, chapter, rung):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _keep(ctx, inputs, output):
    """What the gradients need. lse has none: it is the backward's own."""
    q, k, v, cos, sin, causal, scale, _, _, backward_chapter, backward_rung = inputs
    ctx.save_for_backward(q, k, v, *output, cos, sin)
    ctx.mark_non_differentiable(output[1])
    ctx.options = (causal, scale, backward_chapter, backward_rung)


def _gradients(ctx, d_o, _):
    q, k, v, o, lse, cos, sin = ctx.saved_tensors
    operator = torch.ops.flash_attention_workbook.backward.default
    # With create_graph=True gradients are recorded here too: the operator refuses to be differentiated, the function cannot.
    # Autograd hands over what it likes: the gradient of a sum is one number, expanded.
    found = _call(operator, operator if torch.is_grad_enabled() else _backward, d_o.contiguous(), q, k, v, o, lse, cos, sin,
                  *ctx.options)
    return *found, None, None, None, None, None, None, None, None


def _no_second_gradients(ctx, *_):
    raise Error("the gradients of attention have no gradients of their own: a backward cannot be differentiated")


def _define(name, signature, function, shapes, gradients, keep=None):
    torch.library.define(name, signature, tags=(torch.Tag.needs_fixed_stride_order, torch.Tag.pt2_compliant_tag))
    torch.library.impl(name, DEVICE)(function)
    torch.library.register_fake(name)(shapes)
    torch.library.register_autograd(name, gradients, setup_context=keep)


_define(_FORWARD, f"(Tensor q, Tensor k, Tensor v, {_OPTIONS}, str? backward_chapter, str? backward_rung) -> (Tensor, Tensor)",
        _forward, _forward_shapes, _gradients, _keep)
_define(_BACKWARD, f"(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
        _backward, _backward_shapes, _no_second_gradients)


class _Attention(torch.autograd.Function):
    """The same without the dispatcher."""

    @staticmethod
    def forward(ctx, *arguments):
        output = _forward(*arguments, gradients=True)
        _keep(ctx, arguments, output)
        return output

    backward = staticmethod(_gradients)


def _call(operator, function, first, *others):
    """The operator, if somebody watches operators: a compiler, a mode, a subclass of tensors. Else the function itself."""
    watched = torch.compiler.is_compiling() or type(first) is not torch.Tensor or torch._C._len_torch_dispatch_stack()
    return (operator if watched else function)(first, *others)


def _with_backward(chapter, rung, backward_chapter, backward_rung, rotates):
    """(chapter, rung, backward_chapter, backward_rung) to take where gradients are wanted; None stands for the default."""
    library.check_names(chapter, rung)
    library.check_names(backward_chapter, backward_rung)
    if backward_chapter is None and chapter is not None:
        backward_chapter, backward_rung = chapter, rung
    able = library.able("backward", rotates)
    if not (able if backward_chapter is None else library.has("backward", backward_chapter, backward_rung)):
        raise Error(f"{backward_chapter or 'the workbook'} has no backward and a tensor requires gradients: use "
                    f"torch.no_grad(), or a backward_chapter of: {', '.join(able) or '(none yet)'}")
    if chapter is None or not library.has("forward", chapter, None):
        chapter, rung = None, None
    elif not library.has("forward", chapter, rung):
        rung = None  # the rung is a backward alone
    if chapter is not None and not library.has("lse", chapter, rung):
        raise Error(f"{chapter} writes no LSE, which a backward needs: chapters that do are "
                    f"{', '.join(library.able('lse', rotates))}")
    return chapter, rung, backward_chapter, backward_rung


def attention(q, k, v, causal=False, scale=None, chapter=None, rung=None, backward_chapter=None, backward_rung=None,
              rope=None):
    """softmax(scale q k^T) v as o [B, H, Nq, D]; arguments as for forward().

    Differentiable where the chapter has a backward, or backward_chapter names one that has. A direction for which no
    chapter is named takes the book's last word, and so does the forward of a chapter that is a backward alone. Under
    autocast q, k and v are converted to its type first.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise Error(f"{name} is a {type(tensor).__name__}: it must be a torch.Tensor")
    if torch.is_autocast_enabled(DEVICE):
        dtype = torch.get_autocast_dtype(DEVICE)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    gradients = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    if gradients and not (chapter is rung is backward_chapter is backward_rung is None):
        chapter, rung, backward_chapter, backward_rung = _with_backward(chapter, rung, backward_chapter, backward_rung,
                                                                        rope is not None)
    return _call(torch.ops.flash_attention_workbook.forward.default, _Attention.apply if gradients else _forward, q, k, v,
                 *_pair(rope), causal, scale, chapter, rung, backward_chapter, backward_rung)[0]


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """As torch.nn.functional.scaled_dot_product_attention, for what the book has: no mask of one's own, no dropout.

    is_causal is PyTorch's, aligned top-left: query i sees keys j <= i. With as many queries as keys that is attention()'s.
    With fewer queries, the keys that none of them sees are left out, which takes a copy of the others.
    """
    if attn_mask is not None:
        raise Error("attn_mask is given: supported are is_causal=True and no mask")
    if dropout_p != 0:
        raise Error(f"dropout_p is {dropout_p}: supported is 0, no dropout")
    if not enable_gqa and query.dim() == key.dim() == 4 and query.shape[1] != key.shape[1]:
        raise Error(f"query has {query.shape[1]} heads and key {key.shape[1]}: enable_gqa=True lets query heads share one of key")
    if is_causal and query.dim() == key.dim() == value.dim() == 4 and query.shape[2] != key.shape[2]:
        seq_q, seq_k = query.shape[2], key.shape[2]
        if seq_q > seq_k:
            raise Error(f"is_causal with {seq_q} queries and {seq_k} keys: supported are as many queries as keys or fewer; those "
                        "from the last key on see all keys, and need a call of their own")
        key, value = key[:, :, :seq_q].contiguous(), value[:, :, :seq_q].contiguous()
    return attention(query, key, value, is_causal, scale)
