"""Every chapter's attention on PyTorch CUDA tensors, inside autograd.

    import sys; sys.path.append("common/python")
    import flash_attention_workbook as faw

    o = faw.attention(q, k, v, causal=True)                                # the book's last word
    o = faw.attention(q, k, v, causal=True, chapter="05_online_softmax")   # or any chapter, and any rung of it
    o = faw.attention(q, k, v, causal=True, rope=faw.rope_tables(q, k))    # q and k rotated by their positions

The kernels come from the shared library that the `cuda` preset builds (target flash_attention_workbook); to use
another build, set FLASH_ATTENTION_WORKBOOK_LIBRARY to its path. A chapter without a backward takes no tensors that
require gradients, unless `backward_chapter` names one that has it.
"""

import ctypes
import os
import pathlib

__all__ = ["attention", "forward", "backward", "rope_tables", "chapters", "default_problem", "flops", "Error"]

LIBRARY_VARIABLE = "FLASH_ATTENTION_WORKBOOK_LIBRARY"
LIBRARY = "libflash_attention_workbook.so"

try:
    import torch
except ImportError:
    raise ImportError("flash_attention_workbook needs PyTorch with CUDA: install torch, or use the C interface in "
                      "common/capi") from None


class Error(ValueError):
    """A call that the library, or a check before it, refused; the text says why, in one line."""


class _Problem(ctypes.Structure):
    """faw_problem of common/capi/flash_attention_workbook.h."""

    _fields_ = [(name, ctypes.c_int) for name in
                ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "dtype", "causal")]
    _fields_ += [("scale", ctypes.c_float), ("rope_cos", ctypes.c_void_p), ("rope_sin", ctypes.c_void_p)]


_DTYPES = {torch.float16: 0, torch.bfloat16: 1}
_DTYPE_NAMES = ["fp16", "bf16"]
_ALIGNMENT = 16  # bytes: what kernels move at a time
_INT_MAX = 2**31 - 1


def _load():
    root = pathlib.Path(__file__).resolve().parents[2]
    path = os.environ.get(LIBRARY_VARIABLE) or root / "build" / "cuda" / "common" / "capi" / LIBRARY
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"cannot load {path} ({error}): build it with `cmake --preset cuda && cmake --build --preset "
                          f"cuda --target flash_attention_workbook`, or set {LIBRARY_VARIABLE}") from None

    status, name, problem, pointer = ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Problem), ctypes.c_void_p
    size = ctypes.POINTER(ctypes.c_size_t)
    for function, result, arguments in (
        ("faw_error", name, []),
        ("faw_default_scale", ctypes.c_float, [ctypes.c_int]),
        ("faw_default_problem", status, [problem]),
        ("faw_flops", status, [problem, ctypes.c_int, ctypes.POINTER(ctypes.c_double)]),
        ("faw_chapter", name, [ctypes.c_int]),
        ("faw_rung", name, [name, ctypes.c_int]),
        ("faw_has_forward", ctypes.c_int, [name, name]),
        ("faw_has_backward", ctypes.c_int, [name, name]),
        ("faw_writes_lse", ctypes.c_int, [name, name]),
        ("faw_rotates", ctypes.c_int, [name]),
        ("faw_forward_workspace", status, [name, name, problem, size]),
        ("faw_backward_workspace", status, [name, name, problem, size]),
        ("faw_forward", status, [name, name, problem] + 7 * [pointer]),
        ("faw_backward", status, [name, name, problem] + 11 * [pointer]),
    ):
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


_library = _load()


def _require(status):
    if status != 0:
        raise Error(_library.faw_error().decode(errors="replace"))


def _read_book():
    book = {}
    while (chapter := _library.faw_chapter(len(book))) is not None:
        rungs = book[chapter.decode()] = {}
        while (rung := _library.faw_rung(chapter, len(rungs))) is not None:
            rungs[rung.decode()] = {"forward": bool(_library.faw_has_forward(chapter, rung)),
                                    "backward": bool(_library.faw_has_backward(chapter, rung)),
                                    "lse": bool(_library.faw_writes_lse(chapter, rung)),
                                    "rope": bool(_library.faw_rotates(chapter))}
    return book


_book = _read_book()  # the library's, which does not change


def chapters():
    """{chapter: {rung: {"forward": bool, "backward": bool, "lse": bool, "rope": bool}}}, in the order of the book."""
    return {chapter: {rung: dict(has) for rung, has in rungs.items()} for chapter, rungs in _book.items()}


def default_problem():
    """What the workbook measures where nobody says otherwise: {"batch": 2, .., "dtype": "fp16", "causal": True}."""
    problem = _Problem()
    _require(_library.faw_default_problem(problem))
    sizes = {name: getattr(problem, name) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim")}
    return {**sizes, "dtype": _DTYPE_NAMES[problem.dtype], "causal": bool(problem.causal)}


def flops(problem, backward=False):
    """Floating-point operations of such a problem, as FlashAttention counts them."""
    count = ctypes.c_double()
    _require(_library.faw_flops(_Problem(**{**problem, "dtype": _DTYPE_NAMES.index(problem["dtype"])}), backward, count))
    return count.value


def _encoded(what, name):
    if name is not None and not isinstance(name, str):
        raise Error(f"{what} is {name!r}: it must be a name")
    return None if name is None else name.encode(errors="replace")


def _check_names(chapter, rung):
    """There must be such a chapter, if one is named, and such a rung of it."""
    _encoded("chapter", chapter), _encoded("rung", rung)
    if chapter is None and rung is not None:
        raise Error(f"rung is {rung!r} and no chapter is given: which chapter's?")
    if chapter is not None and chapter not in _book:
        raise Error(f"chapter is {chapter!r}: there are {', '.join(_book)}")
    if rung is not None and rung not in _book[chapter]:
        raise Error(f"rung is {rung!r}: {chapter} has {', '.join(_book[chapter])}")


def _rung(chapter, rung, ability, rope):
    """(chapter, rung) as the library takes them; with no chapter, the book's last that has the ability."""
    _check_names(chapter, rung)
    if chapter is None:
        able = _able(ability, rope)
        if not able:
            raise Error(f"no chapter has a {ability}{' with rope' if rope else ''} yet")
        chapter = able[-1]
    name = _encoded("chapter", chapter)
    if rope is None and _library.faw_rotates(name):
        raise Error(f"{chapter} rotates q and k: pass rope, such as rope_tables(q, k)")
    return name, _encoded("rung", rung)


def _able(ability, rope):
    """The chapters with that ability that rotate q and k, or, with rope None, those that do not."""
    return [name for name, rungs in _book.items()
            if any(rung[ability] and rung["rope"] == (rope is not None) for rung in rungs.values())]


def _check_tensor(name, tensor, like, shape=None):
    if not isinstance(tensor, torch.Tensor):
        raise Error(f"{name} is a {type(tensor).__name__}: it must be a torch.Tensor")
    if tensor.device.type != "cuda":
        raise Error(f"{name} is on {tensor.device}: it must be a CUDA tensor")
    if tensor.device != like.device:
        raise Error(f"{name} is on {tensor.device} and q is on {like.device}: all tensors must be on one device")
    if tensor.dtype not in _DTYPES:
        raise Error(f"{name} is {tensor.dtype}: supported are torch.float16 and torch.bfloat16")
    if tensor.dtype != like.dtype:
        raise Error(f"{name} is {tensor.dtype} and q is {like.dtype}: all tensors must have one dtype")
    if tensor.dim() != 4:
        raise Error(f"{name} has shape {tuple(tensor.shape)}: it must be [batch, heads, sequence, head_dim]")
    if shape is not None and tuple(tensor.shape) != tuple(shape):
        raise Error(f"{name} has shape {tuple(tensor.shape)}: it must be {tuple(shape)}")
    if max(tensor.shape) > _INT_MAX:
        raise Error(f"{name} has shape {tuple(tensor.shape)}: no axis may be longer than {_INT_MAX}")
    if not tensor.is_contiguous():
        raise Error(f"{name} is not contiguous: pass {name}.contiguous()")
    if tensor.data_ptr() % _ALIGNMENT:
        raise Error(f"{name} starts at an address that is not a multiple of {_ALIGNMENT} bytes: pass {name}.clone()")


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
    """The addresses of the two tables; of neither, if there is no rope."""
    if rope is None:
        return None, None
    if not isinstance(rope, (tuple, list)) or len(rope) != 2 or not all(isinstance(t, torch.Tensor) for t in rope):
        raise Error("rope is not a pair of tensors (cos, sin): rope_tables(q, k) makes one")
    shape = (max(q.shape[2], k.shape[2]), q.shape[3] // 2)
    for name, table in zip(("cos", "sin"), rope):
        if (table.dtype, tuple(table.shape), table.device) != (torch.float32, shape, q.device) or not table.is_contiguous():
            raise Error(f"rope's {name} is {table.dtype} {tuple(table.shape)} on {table.device}: it must be torch.float32 "
                        f"{shape}, contiguous, on {q.device}")
    return rope[0].data_ptr(), rope[1].data_ptr()


def _problem(q, k, v, causal, scale, rope):
    """Checks q, k and v, and the tables of RoPE if there are any, and describes them to the library."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_tensor(name, tensor, like=q)
    batch, heads, seq_q, head_dim = q.shape
    _, kv_heads, seq_k, _ = k.shape
    if (k.shape[0], k.shape[3]) != (batch, head_dim):
        raise Error(f"k has shape {tuple(k.shape)} and q {tuple(q.shape)}: batch and head_dim must be equal")
    _check_tensor("v", v, q, k.shape)
    if scale is None:
        scale = _library.faw_default_scale(head_dim)
    elif not isinstance(scale, (int, float)):
        raise Error(f"scale is {scale!r}: it must be a number")
    if not isinstance(causal, int) or causal not in (0, 1):
        raise Error(f"causal is {causal!r}: it must be True or False")
    scale = max(min(scale, 1e300), -1e300)  # an int may be beyond every float; beyond fp32 is the library's to refuse
    return _Problem(batch, heads, kv_heads, seq_q, seq_k, head_dim, _DTYPES[q.dtype], int(causal), scale,
                    *_check_rope(rope, q, k))


def _workspace(size_function, chapter, rung, problem, device):
    size = ctypes.c_size_t()
    _require(size_function(chapter, rung, problem, size))
    return torch.empty(size.value, dtype=torch.uint8, device=device)


def _pointers(*tensors):
    return [None if tensor is None or tensor.numel() == 0 else tensor.data_ptr() for tensor in tensors]


def forward(q, k, v, causal=False, scale=None, chapter=None, rung=None, rope=None):
    """(o, lse) of q [B, H, Nq, D], k and v [B, Hkv, Nk, D]; lse [B, H, Nq] is None where the rung writes none.

    causal aligns bottom-right: query i sees keys j <= i + Nk - Nq. scale is 1 / sqrt(D) unless given. With rope, the
    tables that rope_tables() makes, q and k are rotated by their positions first. No chapter means the book's last that
    has a forward, with rope or without, and no rung the last of its chapter. Works on the current stream, and inside
    torch.cuda.graph. Knows nothing of gradients: attention() does.
    """
    problem, (chapter, rung) = _problem(q, k, v, causal, scale, rope), _rung(chapter, rung, "forward", rope)
    with torch.cuda.device(q.device):
        workspace = _workspace(_library.faw_forward_workspace, chapter, rung, problem, q.device)
        o = torch.empty_like(q)
        writes_lse = _library.faw_writes_lse(chapter, rung)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device) if writes_lse else None
        _require(_library.faw_forward(chapter, rung, problem, *_pointers(q, k, v, o, lse, workspace),
                                      torch.cuda.current_stream().cuda_stream))
    return o, lse


def backward(q, k, v, o, lse, d_o, causal=False, scale=None, chapter=None, rung=None, rope=None):
    """(dq, dk, dv) from what forward() took and returned, and d_o, the gradient of o; of q and k as they were before they
    were rotated."""
    problem, (chapter, rung) = _problem(q, k, v, causal, scale, rope), _rung(chapter, rung, "backward", rope)
    _check_tensor("o", o, q, q.shape)
    _check_tensor("d_o", d_o, q, q.shape)
    if not isinstance(lse, torch.Tensor):
        raise Error(f"lse is a {type(lse).__name__}: it must be a torch.Tensor")
    if lse.dtype != torch.float32 or lse.shape != q.shape[:3] or not lse.is_contiguous() or lse.device != q.device:
        raise Error(f"lse is {lse.dtype} {tuple(lse.shape)} on {lse.device}: it must be torch.float32 "
                    f"{tuple(q.shape[:3])}, contiguous, on {q.device}")
    with torch.cuda.device(q.device):
        workspace = _workspace(_library.faw_backward_workspace, chapter, rung, problem, q.device)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        _require(_library.faw_backward(chapter, rung, problem, *_pointers(q, k, v, o, lse, d_o, dq, dk, dv, workspace),
                                       torch.cuda.current_stream().cuda_stream))
    return dq, dk, dv


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale, forward_rung, backward_rung, rope):
        o, lse = forward(q, k, v, causal, scale, *forward_rung, rope)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = (causal, scale, *backward_rung, rope)
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_o):
        d_o = d_o.contiguous()  # autograd hands over what it likes: the gradient of a sum is one number, expanded
        if d_o.data_ptr() % _ALIGNMENT:
            d_o = d_o.clone()
        q, k, v, o, lse = ctx.saved_tensors
        return *backward(q, k, v, o, lse, d_o, *ctx.options), None, None, None, None, None


def attention(q, k, v, causal=False, scale=None, chapter=None, rung=None, backward_chapter=None, backward_rung=None,
              rope=None):
    """softmax(scale q k^T) v as o [B, H, Nq, D]; arguments as for forward().

    Differentiable where the chapter has a backward, or backward_chapter names one that has. A direction for which no
    chapter is named takes the book's last that has it, and so does the forward of a chapter that is a backward alone.
    """
    if not (torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in (q, k, v))):
        return forward(q, k, v, causal, scale, chapter, rung, rope)[0]
    _check_names(chapter, rung)
    _check_names(backward_chapter, backward_rung)
    if backward_chapter is None and chapter is not None:
        backward_chapter, backward_rung = chapter, rung
    able = _able("backward", rope)
    if backward_chapter is None and not able or backward_chapter is not None and not _library.faw_has_backward(
            _encoded("backward_chapter", backward_chapter), _encoded("backward_rung", backward_rung)):
        raise Error(f"{backward_chapter or 'the workbook'} has no backward and a tensor requires gradients: use "
                    f"torch.no_grad(), or a backward_chapter of: {', '.join(able) or '(none yet)'}")
    if chapter is None or not _library.faw_has_forward(_encoded("chapter", chapter), None):
        chapter, rung = _able("lse", rope)[-1], None
    elif not _library.faw_has_forward(_encoded("chapter", chapter), _encoded("rung", rung)):
        rung = None  # the rung is a backward alone
    if not _library.faw_writes_lse(_encoded("chapter", chapter), _encoded("rung", rung)):
        raise Error(f"{chapter} writes no LSE, which a backward needs: chapters that do are {', '.join(_able('lse', rope))}")
    return _Attention.apply(q, k, v, causal, scale, (chapter, rung), (backward_chapter, backward_rung), rope)
