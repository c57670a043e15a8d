"""The shared library through ctypes: its functions, its book, and what it says to a call. Knows nothing of PyTorch."""

import ctypes
import functools
import os
import pathlib
from typing import NamedTuple, Optional

LIBRARY_VARIABLE = "FLASH_ATTENTION_WORKBOOK_LIBRARY"
LIBRARY = "libflash_attention_workbook.so"
_INT_MAX = 2**31 - 1
DTYPE_NAMES = ["fp16", "bf16"]  # by their numbers in faw_dtype


class Error(ValueError):
    """A call that the library, or a check before it, refused; the text says why, in one line."""


class Problem(ctypes.Structure):
    """faw_problem of common/capi/flash_attention_workbook.h."""

    _fields_ = [(name, ctypes.c_int) for name in
                ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "dtype", "causal")]
    _fields_ += [("scale", ctypes.c_float), ("rope_cos", ctypes.c_void_p), ("rope_sin", ctypes.c_void_p)]


def _load():
    here = pathlib.Path(__file__).resolve().parent
    installed, built = here / LIBRARY, here.parents[2] / "build" / "cuda" / "common" / "capi" / LIBRARY
    path = os.environ.get(LIBRARY_VARIABLE) or (installed if installed.exists() else built)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        if "static TLS" in str(error):
            raise ImportError(f"cannot load {path}: it is the SIMT engine's, and Python has to be started with "
                              "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=262144 in its environment") from None
        raise ImportError(f"cannot load {path} ({error}): build it with `cmake --preset cuda && cmake --build --preset "
                          f"cuda --target flash_attention_workbook`, or set {LIBRARY_VARIABLE}") from None

    status, name, problem, pointer = ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Problem), ctypes.c_void_p
    size = ctypes.POINTER(ctypes.c_size_t)
    for function, result, arguments in (
        ("faw_error", name, []),
        ("faw_on_engine", ctypes.c_int, []),
        ("faw_default_scale", ctypes.c_float, [ctypes.c_int]),
        ("faw_default_problem", status, [problem]),
        ("faw_default_chapter", status, [problem, ctypes.c_int, ctypes.c_int, ctypes.POINTER(name)]),
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
DEVICE = "cpu" if _library.faw_on_engine() else "cuda"  # the type of device on which tensors have to be


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


BOOK = _read_book()  # the library's, which does not change


def chapters():
    """{chapter: {rung: {"forward": bool, "backward": bool, "lse": bool, "rope": bool}}}, in the order of the book."""
    return {chapter: {rung: dict(has) for rung, has in rungs.items()} for chapter, rungs in BOOK.items()}


def has(ability, chapter, rung):
    """Has the rung, or without one any rung of the chapter, that ability? For "lse" without a rung: the one that is run."""
    rungs = BOOK[chapter]
    if rung is not None:
        return rungs[rung][ability]
    if ability == "lse":
        return [one["lse"] for one in rungs.values() if one["forward"]][-1:] == [True]
    return any([one[ability] for one in rungs.values()])


def able(ability, rotates):
    """The chapters with that ability that rotate q and k, or that do not."""
    return [name for name, rungs in BOOK.items()
            if any([rung[ability] and rung["rope"] == rotates for rung in rungs.values()])]


def check_names(chapter, rung):
    """There must be such a chapter, if one is named, and such a rung of it."""
    for what, name in (("chapter", chapter), ("rung", rung)):
        if name is not None and not isinstance(name, str):
            raise Error(f"{what} is {name!r}: it must be a name")
    if chapter is None and rung is not None:
        raise Error(f"rung is {rung!r} and no chapter is given: which chapter's?")
    if chapter is not None and chapter not in BOOK:
        raise Error(f"chapter is {chapter!r}: there are {', '.join(BOOK)}")
    if rung is not None and rung not in BOOK[chapter]:
        raise Error(f"rung is {rung!r}: {chapter} has {', '.join(BOOK[chapter])}")


def default_problem():
    """What the workbook measures where nobody says otherwise: {"batch": 2, .., "dtype": "fp16", "causal": True}."""
    problem = Problem()
    _require(_library.faw_default_problem(problem))
    sizes = {name: getattr(problem, name) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim")}
    return {**sizes, "dtype": DTYPE_NAMES[problem.dtype], "causal": bool(problem.causal)}


def flops(problem, backward=False):
    """Floating-point operations of such a problem, as FlashAttention counts them."""
    count = ctypes.c_double()
    _require(_library.faw_flops(Problem(**{**problem, "dtype": DTYPE_NAMES.index(problem["dtype"])}), backward, count))
    return count.value


class Plan(NamedTuple):
    """A call that the library accepts, but for its pointers."""

    chapter: bytes
    rung: Optional[bytes]
    problem: Problem
    workspace: int  # bytes
    writes_lse: bool

    def forward(self, rope, *pointers):
        _require(_library.faw_forward(self.chapter, self.rung, self._with(rope), *pointers))

    def backward(self, rope, *pointers):
        _require(_library.faw_backward(self.chapter, self.rung, self._with(rope), *pointers))

    def _with(self, rope):
        """The problem with the addresses of these tables; a copy, as threads share the plan."""
        if rope is None:
            return self.problem
        problem = Problem.from_buffer_copy(self.problem)
        problem.rope_cos, problem.rope_sin = rope
        return problem


@functools.lru_cache(maxsize=4096)  # a model asks the same again and again: what is refused is not kept
def plan(direction, chapter, rung, rotates, q_shape, k_shape, dtype, causal, scale, device, backward_rung=None):
    """The plan of a direction on the current device, whose number is `device`; dtype as in faw_dtype.

    For a forward whose gradients are wanted, backward_rung is (chapter, rung) of the backward: its refusal comes here.
    """
    if backward_rung is not None:
        plan("backward", *backward_rung, rotates, q_shape, k_shape, dtype, causal, scale, device)
    for name, shape in (("q", q_shape), ("k", k_shape)):
        if max(shape) > _INT_MAX:
            raise Error(f"{name} has shape {tuple(shape)}: no axis may be longer than {_INT_MAX}")
    batch, heads, seq_q, head_dim = q_shape
    _, kv_heads, seq_k, _ = k_shape
    if scale is None:
        scale = _library.faw_default_scale(head_dim)
    scale = max(min(scale, 1e300), -1e300)  # an int may be beyond every float; beyond fp32 is the library's to refuse
    problem = Problem(batch, heads, kv_heads, seq_q, seq_k, head_dim, dtype, causal, scale)
    if chapter is None:
        name = ctypes.c_char_p()
        _require(_library.faw_default_chapter(problem, rotates, direction == "backward", name))
        chapter = name.value.decode()
    if not rotates and has("rope", chapter, None):
        raise Error(f"{chapter} rotates q and k: pass rope, such as rope_tables(q, k)")
    names = chapter.encode(), None if rung is None else rung.encode()
    size = ctypes.c_size_t()
    sized = _library.faw_forward_workspace if direction == "forward" else _library.faw_backward_workspace
    _require(sized(*names, problem, size))
    return Plan(*names, problem, size.value, bool(_library.faw_writes_lse(*names)))
