"""The shared library through ctypes: what is in the book. Knows nothing of PyTorch."""

import ctypes
import os
import pathlib

LIBRARY_VARIABLE = "FLASH_ATTENTION_WORKBOOK_LIBRARY"
LIBRARY = "libflash_attention_workbook.so.1"
Error = ValueError  # what a refused call raises, with one line
_DTYPE_NAMES = ["fp16", "bf16"]  # by their numbers in faw_dtype


class Problem(ctypes.Structure):
    """faw_problem of common/capi/flash_attention_workbook.h."""

    _fields_ = [("size", ctypes.c_size_t)]
    _fields_ += [(name, ctypes.c_int) for name in
                 ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "head_dim_v", "dtype", "causal")]
    _fields_ += [("scale", ctypes.c_float), ("rope_cos", ctypes.c_void_p), ("rope_sin", ctypes.c_void_p),
                 ("extras", ctypes.c_void_p)]


class Extras(ctypes.Structure):
    """faw_extras of that header; where tensors lie, and what they hold, is never asked for from here."""

    TENSORS = ("q", "k", "v", "o", "d_o", "dq", "dk", "dv")
    _fields_ = [("size", ctypes.c_size_t), ("window_left", ctypes.c_int), ("window_right", ctypes.c_int), ("softcap", ctypes.c_float)]
    _fields_ += [(name, ctypes.c_void_p) for name in ("alibi", "sink", "d_sink", *TENSORS, "cu_seqlens_q",
                                                      "cu_seqlens_k")]
    _fields_ += [(name, ctypes.c_int) for name in ("total_q", "total_k", "zero_rest")]
    _fields_ += [(name, ctypes.c_void_p) for name in ("block_begin", "block_tiles", "block_bits")]
    _fields_ += [(name, ctypes.c_int) for name in ("block_batch", "block_heads", "block_listed", "block_cuts",
                                                   "unaligned", "reserved")]


_STATUS, _NAME, _PROBLEM = ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Problem)
FUNCTIONS = [  # of that header, those that are called from here: name, result, parameters
    ("faw_version", ctypes.c_int, []),
    ("faw_error", _NAME, []),
    ("faw_on_engine", ctypes.c_int, []),
    ("faw_default_problem", _STATUS, [_PROBLEM]),
    ("faw_flops", _STATUS, [_PROBLEM, ctypes.c_int, ctypes.POINTER(ctypes.c_double)]),
    ("faw_chapter", _NAME, [ctypes.c_int]),
    ("faw_rung", _NAME, [_NAME, ctypes.c_int]),
    ("faw_has_forward", ctypes.c_int, [_NAME, _NAME]),
    ("faw_has_backward", ctypes.c_int, [_NAME, _NAME]),
    ("faw_has_forward_e4m3", ctypes.c_int, [_NAME, _NAME]),
    ("faw_writes_lse", ctypes.c_int, [_NAME, _NAME]),
    ("faw_rotates", ctypes.c_int, [_NAME]),
    ("faw_rounds_to_eight_bits", ctypes.c_int, [_NAME]),
    ("faw_is_general", ctypes.c_int, [_NAME]),
    ("faw_default_rung", _STATUS, [_PROBLEM, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_NAME), ctypes.POINTER(_NAME)]),
]


def _find():
    """The library named in the environment, else the one beside this file, else the one that the `cuda` preset
    builds."""
    here = pathlib.Path(__file__).resolve().parent
    if named := os.environ.get(LIBRARY_VARIABLE):
        return pathlib.Path(named)
    installed = here / LIBRARY
    return installed if installed.exists() else here.parents[2] / "build" / "cuda" / "common" / "capi" / LIBRARY


def _load(path):
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"cannot load {path} ({error}): build it with `cmake --preset cuda && cmake --build --preset "
                          "cuda --target flash_attention_workbook`, or without a GPU with the preset cpu, and set "
                          f"{LIBRARY_VARIABLE}=build/cpu/common/capi/{LIBRARY}") from None

    for function, result, arguments in FUNCTIONS:
        entry = getattr(library, function, None)
        if entry is None:
            raise ImportError(f"{path} is not the workbook's library, or not of this version: it has no {function}")
        entry.restype, entry.argtypes = result, arguments
    return library


DIRECTORY = _find().parent  # where the operators are, too
_library = _load(_find())
VERSION = "{}.{}.{}".format(*(_library.faw_version() // step % 100 for step in (10000, 100, 1)))
DEVICE = "cpu" if _library.faw_on_engine() else "cuda"  # the type of device on which tensors have to be


def _require(status):
    if status != 0:
        raise ValueError(_library.faw_error().decode(errors="replace"))


def _read_book():
    book = {}
    while (chapter := _library.faw_chapter(len(book))) is not None:
        rungs = book[chapter.decode()] = {}
        while (rung := _library.faw_rung(chapter, len(rungs))) is not None:
            rungs[rung.decode()] = {"forward": bool(_library.faw_has_forward(chapter, rung)),
                                    "backward": bool(_library.faw_has_backward(chapter, rung)),
                                    "lse": bool(_library.faw_writes_lse(chapter, rung)),
                                    "rope": bool(_library.faw_rotates(chapter)),
                                    "e4m3": bool(_library.faw_has_forward_e4m3(chapter, rung)),
                                    "eight_bits": bool(_library.faw_rounds_to_eight_bits(chapter)),
                                    "general": bool(_library.faw_is_general(chapter))}
    return book


BOOK = _read_book()  # the library's, which does not change


def chapters():
    """{chapter: {rung: {"forward": bool, "backward": bool, "lse": bool, "rope": bool, "e4m3": bool, "eight_bits": bool,
    "general": bool}}}, in the order of the book. In eight bits q, k and v are rounded to e4m3 first, and so is what
    multiplies v; a rung with "e4m3" takes them in e4m3 too. Not general are chapters that are made for few problems,
    and slower at the others that they take."""
    return {chapter: {rung: dict(has) for rung, has in rungs.items()} for chapter, rungs in BOOK.items()}


def has(ability, chapter, rung):
    """Has the rung, or without one any rung of the chapter, that ability? For "lse" without a rung: the one that is
    run."""
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
            raise ValueError(f"{what} is {name!r}: it must be a name")
    if chapter is None and rung is not None:
        raise ValueError(f"rung is {rung!r} and no chapter is given: which chapter's?")
    if chapter is not None and chapter not in BOOK:
        raise ValueError(f"chapter is {chapter!r}: there are {', '.join(BOOK)}")
    if rung is not None and rung not in BOOK[chapter]:
        raise ValueError(f"rung is {rung!r}: {chapter} has {', '.join(BOOK[chapter])}")


def default_problem():
    """What the workbook measures where nobody says otherwise: {"batch": 2, .., "dtype": "fp16", "causal": True}."""
    problem = Problem(size=ctypes.sizeof(Problem))
    _require(_library.faw_default_problem(problem))
    sizes = {name: getattr(problem, name) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim")}
    return {**sizes, "dtype": _DTYPE_NAMES[problem.dtype], "causal": bool(problem.causal)}


def _as_c(problem):
    if problem["dtype"] not in _DTYPE_NAMES:
        raise ValueError(f"dtype is {problem['dtype']!r}: supported are {' and '.join(_DTYPE_NAMES)}")
    sizes = {"size": ctypes.sizeof(Problem), "scale": 1.0, **problem, "dtype": _DTYPE_NAMES.index(problem["dtype"])}
    window, softcap, *there = (sizes.pop(name, None) for name in ("window", "softcap", "alibi", "sink", "views",
                                                                  "packed", "blocks"))
    made = Problem(**sizes)
    if window or softcap or any(there):
        alibi, sink, views, begins, blocks = (64 if one else None for one in there)  # no address that anybody reads
        totals = (made.batch * made.seq_q, made.batch * made.seq_k) if begins else (0, 0)  # at most
        made.of_extras = Extras(ctypes.sizeof(Extras), *(window or (-1, -1)), softcap or 0, alibi, sink, sink, *[views] * len(Extras.TENSORS),
                                begins, begins, *totals, 0, *[blocks] * 3, *[1 if blocks else 0] * 4)
        made.extras = ctypes.addressof(made.of_extras)
    return made


def default_rung(problem, backward=False, rotates=False):
    """(chapter, rung) whose kernels run on such a problem where no chapter is named, on the current device. A problem
    is as default_problem() says; it may have "head_dim_v", "window", "softcap", and with True "alibi", "sink",
    "views", "packed" and "blocks", too."""
    chapter, rung = ctypes.c_char_p(), ctypes.c_char_p()
    _require(_library.faw_default_rung(_as_c(problem), rotates, backward, ctypes.byref(chapter), ctypes.byref(rung)))
    return chapter.value.decode(), rung.value.decode()


def flops(problem, backward=False):
    """Floating-point operations of such a problem, as FlashAttention counts them. Refused are packed sequences, whose
    lengths it does not say, and block masks, of which it does not say what is seen."""
    count = ctypes.c_double()
    _require(_library.faw_flops(_as_c(problem), backward, count))
    return count.value
