"""Times chapters and PyTorch's attention on the same tensors, in one process. Needs PyTorch and a GPU.

    python3 -m tools.measuring.peers_main REQUEST OUT      (tools/measuring/peers.py says what is written to OUT)

Candidates take turns, launch by launch: each time the L2 cache is overwritten, then CUDA events stand around one launch
on one of two sets of inputs. A launch that the GPU reached before the CPU had enqueued all of it is repeated: its time
would be the CPU's. Every result is first compared with fp64; what is wrong is not timed. Lines on stdout:
"progress<TAB>where it is", and at last perhaps "error<TAB>why"; the exit status is 2 for a wrong question, else 1.
"""

import contextlib
import functools
import importlib
import json
import math
import os
import random
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from tools.base import JsonObject, cuda
from tools.measuring import back_to_back, documents, model_sweep
from tools.measuring.launches import (
    ROUNDS,
    ROUNDS_OF_MODELS,
    has_turn,
    launches,
    percentiles,
    predicted_seconds,
    too_slow,
)
from tools.measuring.nvml import Look, Nvml
from tools.measuring.peers import (
    BACK_TO_BACK,
    CUDNN_FP8,
    CUDNN_WINDOW,
    EIGHT_BITS,
    FLEX,
    IN_EIGHT_BITS,
    NESTED,
    OF_DOCUMENTS,
    OF_MODELS,
    PEERS,
    ROPE_PEERS,
    VARLEN,
    WITH_EXTRAS,
    add_ratios,
    schedule,
    summary,
    sweep,
    word_for,
)
from tools.measuring.peers_check import OfEightBits, Reference, in_eight_bits
from tools.record import DEFAULT, Problem

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Refusal(Exception):
    """A request that cannot be answered; the message is one line."""


class Skipped(Exception):
    """Raised when a candidate is left out at a point; the message says why."""


class Lost(Exception):
    """Raised when the GPU does not answer this process any more; the message says who was launched last, and why."""


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


# --- Candidates ------------------------------------------------------------------------------------------------------


class Candidate:
    """attend(q, k, v, causal) -> o, on [B, H, N, D]; differentiable if gradients are asked for. Extras, if the problem
    has some, are further arguments by the names that the workbook gives them (see Problem.asked)."""

    kind = "peer"
    takes: Sequence[str] = ()  # of the extras
    rope = False
    directions: Sequence[str] = ("forward", "backward")
    eight_bits = False  # are its results made in eight bits?
    inputs = staticmethod(lambda tensor: tensor)  # to the layout that `attend` takes, before any timing; and back:
    output = staticmethod(lambda tensor: tensor)

    def __init__(self, name: str, attend: Callable[..., Any]):
        self.name, self.attend = name, attend

    def prepared(self, tensors: list[torch.Tensor], _causal: bool, backward: bool) -> list[Any]:
        """What `attend` is given of these q, k and v, before any timing."""
        return [self.inputs(tensor).detach().requires_grad_(backward) for tensor in tensors]

    @staticmethod
    def mode() -> AbstractContextManager[None]:
        """The mode of PyTorch in which it is launched."""
        return contextlib.nullcontext()

    def lacks(self, problem: Problem) -> "str | None":
        return next((f"it has no {name}" for name in extras(problem) if name not in self.takes), None)

    def refuses(self, problem: Problem) -> "str | None":
        if problem.causal and problem.seq_q != problem.seq_k:
            return self.refuses_other_lengths(problem)
        return None

    def refuses_other_lengths(self, _: Problem) -> "str | None":
        return "PyTorch aligns its causal mask top-left, and another one reaches it as a tensor of all scores only"


class Packed(NamedTuple):
    """What a problem of packed sequences adds. Its tensors are [1, H, total, D], and lie as [total, H, D]."""

    begins: torch.Tensor  # cu_seqlens, of queries and of keys
    longest: int
    shortest: int
    seen: Callable[..., Any]  # of (b, h, i, j): whether both are of one sequence


class Blocks(NamedTuple):
    """What a block mask adds."""

    mask: Any  # ours
    seen: Callable[..., Any]


def rows_of(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """[1, H, total, D] as [total, H, D], where it lies."""
    return [tensor.squeeze(0).transpose(0, 1) for tensor in tensors]


class Flash(Candidate):
    """PyTorch's FLASH: through a bias of PyTorch's it takes a mask that is aligned bottom-right, and through the
    operator beneath it a window."""

    takes = ("window",)

    def refuses_other_lengths(self, problem: Problem) -> "str | None":
        return "PyTorch has no such mask for more queries than keys" if problem.seq_q > problem.seq_k else None


class TokensFirst(Candidate):
    """On [B, N, H, D], as the FlashAttention packages want it."""

    inputs = staticmethod(lambda tensor: tensor.transpose(1, 2).contiguous())
    output = staticmethod(lambda tensor: tensor.transpose(1, 2))

    def refuses(self, problem: Problem) -> "str | None":
        return None


class VariableLength(TokensFirst):
    """attend(q, k, v, packed, causal) -> o, on [total, H, D]."""

    takes = ("packed",)

    def __init__(self, name: str, attend: Callable[..., Any]):
        super().__init__(name, lambda q, k, v, causal, packed: attend(
            *(x.squeeze(0) for x in (q, k, v)), packed, causal).unsqueeze(0))

    def refuses(self, problem: Problem) -> "str | None":
        return None if "packed" in problem.asked() else "it is for packed sequences"


class Deterministic(Flash):
    """As PyTorch's backend is when it is told to add up in a fixed order: its backward alone does otherwise."""

    directions = ("backward",)

    def __init__(self, name: str, attend: Callable[..., Any]):
        super().__init__(name, attend)
        # This debugging aid would be timed too.
        torch.utils.deterministic.fill_uninitialized_memory = False

    @staticmethod
    @contextlib.contextmanager
    def mode() -> Iterator[None]:
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)


def which_rung(workbook: ModuleType, problem: Problem, direction: str) -> str:
    """"10_hopper/prompt", where no chapter is named."""
    return "/".join(workbook.default_rung(problem.asked(), backward=direction == "backward"))


class Chapter(Candidate):
    kind = "chapter"
    takes = ("window", "softcap", "alibi", "sink", "packed", "blocks")  # a rung that does not says so itself

    def __init__(self, workbook: ModuleType, name: str, chapter: "str | None", rung: "str | None",
                 directions: Sequence[str], rope: bool, not_asked: Callable[[Problem], "str | None"] = lambda _: None):
        super().__init__(name, self.attend_with_chapter)
        self.directions, self.rope, self.not_asked = directions, rope, not_asked
        self.eight_bits = chapter is not None and any(
            has.get("eight_bits") for has in workbook.chapters()[chapter].values())
        # Where no chapter is named: which rung's kernels run
        self.runs = None if chapter else functools.partial(which_rung, workbook)
        self.forward_pass = functools.partial(workbook.forward, chapter=chapter, rung=rung)
        self.differentiable = functools.partial(workbook.attention, backward_chapter=chapter, backward_rung=rung)
        self.of_rows = workbook.attention_packed
        self.tables: Any = None
        self.tables_for: Any = None  # shapes
        self.make_tables = workbook.rope_tables

    def _rope(self, q, k):
        """The tables for tensors of these shapes, made once: a model has them beforehand, too."""
        if self.rope and self.tables_for != (q.shape, k.shape):
            self.tables, self.tables_for = self.make_tables(q, k), (q.shape, k.shape)
        return self.tables

    def forward(self, q, k, v, causal, **extras):
        """(o, LSE), or without the LSE of packed sequences."""
        if "packed" in extras:
            return self.attend_with_chapter(q, k, v, causal, **extras), None
        return self.forward_pass(q, k, v, causal, rope=self._rope(q, k), **self._named(extras))

    def attend_with_chapter(self, q, k, v, causal, **extras):
        packed = extras.pop("packed", None)
        if packed:
            begins, longest = [packed.begins] * 2, [packed.longest] * 2
            return self.of_rows(*rows_of(q, k, v), *begins, *longest, causal, **extras).transpose(0, 1).unsqueeze(0)
        return (self.differentiable(q, k, v, causal, rope=self._rope(q, k), **self._named(extras)) if q.requires_grad
                else self.forward(q, k, v, causal, **extras)[0])

    @staticmethod
    def _named(extras):
        return {**extras, "blocks": extras["blocks"].mask} if "blocks" in extras else extras

    def refuses(self, problem: Problem) -> "str | None":
        if "packed" in problem.asked() and self.runs is None:
            return "packed sequences are asked of what runs where no chapter is named"
        return self.not_asked(problem)


class FromEightBits(Candidate):
    """The chapter in eight bits, of tensors that are e4m3 already, with a scale for each."""

    kind = "chapter"
    eight_bits = True
    directions = ("forward",)

    def __init__(self, workbook: ModuleType, chapter: str, dtype: str):
        super().__init__(f"{chapter}/e4m3", lambda q, k, v, causal: workbook.attention_fp8(
            q[0], k[0], v[0], causal, q_scale=q[1], k_scale=k[1], v_scale=v[1], out_dtype=DTYPES[dtype]))

    def prepared(self, tensors, _causal, _backward):
        return [in_eight_bits(tensor) for tensor in tensors]

    def refuses(self, problem: Problem) -> "str | None":
        return None


def eight_bit_candidates(workbook: ModuleType, together: bool, dtype: str) -> list[Candidate]:
    """What runs where no chapter is named, in 16 bits; and all rungs in eight bits, or back to back the last one."""
    candidates: list[Candidate] = [default_candidate(workbook)]
    for chapter, rungs in workbook.chapters().items():
        names = [rung for rung, has in rungs.items() if has.get("eight_bits")]
        candidates += [Chapter(workbook, f"{chapter}/{rung}", chapter, rung, ("forward",), rope=False)
                       for rung in (names[-1:] if together else names)]
        candidates += [FromEightBits(workbook, chapter, dtype)] if names else []
    return candidates


def default_candidate(workbook: ModuleType) -> Chapter:
    """What runs where no chapter is named."""
    return Chapter(workbook, DEFAULT, None, None, ("forward", "backward"), rope=False)


def own_candidates(workbook: ModuleType) -> list[Candidate]:
    """The default, and each rung that may be chosen as the default."""
    candidates: list[Candidate] = [default_candidate(workbook)]
    book = workbook.chapters()
    for chapter, rung in model_sweep.own_rungs(book):
        has = book[chapter][rung]
        candidates.append(Chapter(workbook, f"{chapter}/{rung}", chapter, rung,
                                  [direction for direction in ("forward", "backward") if has[direction]], rope=False,
                                  not_asked=functools.partial(model_sweep.not_asked, chapter, has["general"])))
    return candidates


def chapters_for(points: list[Problem], workbook: ModuleType, request: JsonObject) -> tuple[list[str], dict[str, str]]:
    """(chapters, {chapter: why it is left out}). Chapters for few queries take other problems only if named."""
    few_queries = any(point.seq_q < point.seq_k for point in points)
    absent = {} if request["named"] or few_queries or request["sweep"] == EIGHT_BITS else {
        chapter: "it is made for fewer queries than keys; its name asks about others, too"
        for chapter in request["chapters"]
        if not all(has["general"] for has in workbook.chapters()[chapter].values())}
    absent |= {chapter: "its results are those of eight bits: --sweep=fp8 has peers for it"
               for chapter in request["chapters"] if request["sweep"] != EIGHT_BITS
               and any(has.get("eight_bits") for has in workbook.chapters()[chapter].values())}
    return [chapter for chapter in request["chapters"] if chapter not in absent], absent


def chapter_candidates(workbook: ModuleType, chapters: list[str], request: JsonObject) -> list[Candidate]:
    candidates: list[Candidate] = []
    rung = request["rung"]
    if rung and not request["named"]:  # of all chapters those that have it
        chapters = [chapter for chapter in chapters if rung in workbook.chapters()[chapter]] or chapters
    for chapter in chapters:
        rungs = workbook.chapters()[chapter]
        rope = any(has["rope"] for has in rungs.values())
        if rung and rung not in rungs:
            raise Refusal(f"rung is {rung}: {chapter} has {', '.join(rungs)}")
        if rung or request["all_rungs"] and len(rungs) > 1:
            for one in [rung] if rung else rungs:
                directions = [direction for direction in ("forward", "backward") if rungs[one][direction]]
                candidates.append(Chapter(workbook, f"{chapter}/{one}", chapter, one, directions, rope))
        else:
            directions = [d for d in ("forward", "backward") if any(has[d] for has in rungs.values())]
            candidates.append(Chapter(workbook, chapter, chapter, None, directions, rope))
    return candidates


def sdpa(name: str) -> Candidate:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {"FLASH": SDPBackend.FLASH_ATTENTION, "CUDNN": SDPBackend.CUDNN_ATTENTION, "MATH": SDPBackend.MATH}[
        name.partition("-")[0]]

    @functools.lru_cache(maxsize=1)
    def bottom_right(seq_q, seq_k):
        from torch.nn.attention.bias import causal_lower_right

        return causal_lower_right(seq_q, seq_k)

    def attend(q, k, v, causal, window=None):
        if window:
            o, *_ = torch.ops.aten._flash_attention_forward(
                *(x.transpose(1, 2) for x in (q, k, v)), None, None, q.shape[2], k.shape[2], 0.0, causal, False,
                window_size_left=window[0], window_size_right=window[1])
            return o.transpose(1, 2)
        asked = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        if causal and q.shape[2] != k.shape[2]:
            asked["attn_mask"] = bottom_right(q.shape[2], k.shape[2])
        else:
            asked["is_causal"] = causal
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, **asked)

    kind = Deterministic if name.endswith("-deterministic") else Flash if name == "FLASH" else Candidate
    return kind(name, attend)


def compiled_for_each_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    """Past a limit, 8 unless told, torch.compile would go back to eager operations."""
    from torch._dynamo import config

    setattr(config, "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit", 256)
    return torch.compile(function, dynamic=False)


def rotating(name: str) -> Candidate:
    """What one would do without a chapter that rotates: q and k by PyTorch, as models have it, and then FLASH."""
    flash = sdpa("FLASH").attend

    def rotate(q, k, q_cos, q_sin, k_cos, k_sin):
        def halves_swapped(x):
            low, high = x.chunk(2, dim=-1)
            return torch.cat((-high, low), dim=-1)

        return q * q_cos + halves_swapped(q) * q_sin, k * k_cos + halves_swapped(k) * k_sin

    if name.startswith("compiled"):
        rotate = compiled_for_each_shape(rotate)

    @functools.lru_cache(maxsize=1)
    def tables(seq_q, seq_k, head_dim, dtype):
        frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device="cuda") / head_dim)

        def of(first, count):
            angles = torch.outer(torch.arange(first, first + count, device="cuda").double(), frequencies).repeat(1, 2)
            return angles.cos().to(dtype), angles.sin().to(dtype)

        return *of(seq_k - seq_q, seq_q), *of(0, seq_k)

    def attend(q, k, v, causal):
        return flash(*rotate(q, k, *tables(q.shape[2], k.shape[2], q.shape[3], q.dtype)), v, causal)

    candidate = Candidate(name, attend)
    candidate.rope = True
    return candidate


def package(name: str) -> Candidate:
    if name == "FA3":
        from flash_attn_interface import flash_attn_func
    else:
        from flash_attn.cute import flash_attn_func, flash_attn_varlen_func
    asked = {"deterministic": True} if name.endswith("-deterministic") else {}
    names = {"window": "window_size", "softcap": "softcap", "sink": "learnable_sink"}  # FlashAttention-4's

    def attend(q, k, v, causal, packed=None, **extras):
        said = {names[one]: value.to(q.dtype) if one == "sink" else value for one, value in extras.items()}
        if packed:
            q, k, v = (x.squeeze(0) for x in (q, k, v))
            said |= dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k"), packed.begins)
            said |= dict.fromkeys(("max_seqlen_q", "max_seqlen_k"), packed.longest)
        o = (flash_attn_varlen_func if packed else flash_attn_func)(q, k, v, causal=causal, **said, **asked)
        o = o[0] if isinstance(o, tuple) else o
        return o.unsqueeze(0) if packed else o

    candidate = TokensFirst(name, attend)
    candidate.takes = () if name == "FA3" else (*names, "packed")
    if asked:
        candidate.directions = ("backward",)  # its forward is the same one
    return candidate


def variable_length() -> Candidate:
    """PyTorch's varlen_attn: its FlashAttention-2 on packed sequences."""
    from torch.nn.attention.varlen import varlen_attn

    def attend(q, k, v, packed, causal):
        return varlen_attn(q, k, v, packed.begins, packed.begins, packed.longest, packed.longest,
                           window_size=(-1, 0 if causal else -1))

    return VariableLength(VARLEN, attend)


def nested(name: str) -> Candidate:
    """PyTorch's nested tensors, whose scaled_dot_product_attention has the same backends."""
    from torch.nested import nested_tensor_from_jagged
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = SDPBackend.CUDNN_ATTENTION if name.endswith("-CUDNN") else SDPBackend.FLASH_ATTENTION

    def attend(q, k, v, packed, causal):
        known = {"min_seqlen": packed.shortest, "max_seqlen": packed.longest}  # else it asks the GPU, and waits
        q, k, v = (nested_tensor_from_jagged(x, packed.begins, **known).transpose(1, 2) for x in (q, k, v))
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).values()

    return VariableLength(name, attend)


def from_frontend(module: str) -> ModuleType:
    """A module that needs cuDNN's frontend."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RuntimeError(f"{first_line(error)}: pip install -U nvidia-cudnn-frontend") from None


class CudnnWithWindow(Candidate):
    """cuDNN's attention with a window, by the operator that its frontend gives to PyTorch."""

    takes = ("window",)

    def __init__(self):
        attention = from_frontend("cudnn.experimental.ops").scaled_dot_product_attention

        def attend(q, k, v, causal, window):
            left, right = window
            # There a query sees the keys j with i - left_bound < j: not yet the first of ours. -1 is all of them.
            return attention(q, k, v, enable_gqa=True, diagonal_alignment=int(q.shape[2] != k.shape[2]),
                             left_bound=left + 1 if left >= 0 else -1, right_bound=0 if causal else right)

        super().__init__(CUDNN_WINDOW, attend)

    def refuses(self, problem: Problem) -> "str | None":
        return None if "window" in problem.asked() else "it is for windows"


class CudnnOfEightBits(Candidate):
    """cuDNN's attention of tensors in e4m3, whose result is e4m3, too."""

    eight_bits = True
    directions = ("forward",)
    output = staticmethod(lambda tensor: tensor[0].float() * tensor[1])  # its values, and their scale

    def __init__(self):
        module = from_frontend("tools.measuring.cudnn_fp8")
        super().__init__(CUDNN_FP8, lambda run, **_: run())
        self.graph = functools.lru_cache(maxsize=1)(module.Graph)  # both sets of inputs have it
        self.attention = module.Attention

    def prepared(self, tensors, causal, _backward):
        return [self.attention(self.graph(tuple(tensors[0].shape), causal), *map(in_eight_bits, tensors))]


def flexible() -> Candidate:
    """PyTorch's flex_attention, compiled: with scores and masks as functions, and a sink as its users add one, from the
    LSE. Asked where a problem has extras."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = compiled_for_each_shape(flex_attention)

    @functools.lru_cache(maxsize=4)
    def mask(seq_q, seq_k, causal, window, of_extra):
        def band(_batch, _head, i, j):
            left, right = window
            own = i + seq_k - seq_q
            far_enough = own - j <= (left if left >= 0 else seq_k)
            return far_enough & (j - own <= (0 if causal else right if right >= 0 else seq_k))

        seen = of_extra if of_extra and not causal else band if not of_extra else (
            lambda b, h, i, j: of_extra(b, h, i, j) & (j <= i))
        return create_block_mask(seen, None, None, seq_q, seq_k, device="cuda")

    def attend(q, k, v, causal, window=(-1, -1), softcap=None, alibi=None, sink=None, packed=None, blocks=None):
        def score(s, _batch, head, i, j):
            s = softcap * torch.tanh(s / softcap) if softcap else s
            return s if alibi is None else s - alibi[head] * (i + k.shape[2] - q.shape[2] - j).abs()

        return_lse = {} if sink is None else {"return_lse": True}
        found = compiled(q, k, v, score_mod=score if softcap or alibi is not None else None, enable_gqa=True,
                         block_mask=mask(q.shape[2], k.shape[2], causal, window, seen_of(packed, blocks)),
                         **return_lse)
        if sink is None:
            return found
        o, lse = found
        return (o * torch.sigmoid(lse - sink[:, None])[..., None]).to(o.dtype)

    candidate = Candidate(FLEX, attend)
    candidate.takes = ("window", "softcap", "alibi", "sink", "packed", "blocks")
    return candidate


def rotating_candidates() -> tuple[list[Candidate], dict[str, str]]:
    """(candidates, {name: why it is not there}), for problems with RoPE."""
    if torch.cuda.get_device_capability() < (8, 0):
        return [], dict.fromkeys(ROPE_PEERS, "it needs compute capability 8.0")
    return [rotating(name) for name in ROPE_PEERS], {}


def peer_candidates(names: Sequence[str] = PEERS) -> tuple[list[Candidate], dict[str, str]]:
    """(candidates, {name: why it is not there})"""
    needed = {"MATH": (0, 0), "FA3": (9, 0), CUDNN_FP8: (8, 9)}  # compute capability
    candidates, absent = [], {}
    capability = torch.cuda.get_device_capability()
    for name in names:
        least = needed.get(name, (8, 0))
        if capability < least:
            absent[name] = (f"it needs compute capability {least[0]}.{least[1]}, and this GPU has "
                            f"{capability[0]}.{capability[1]}")
            continue
        try:
            candidates.append(flexible() if name == FLEX else variable_length() if name == VARLEN else nested(name)
                              if name in NESTED else package(name) if name.startswith("FA") else
                              CudnnOfEightBits() if name == CUDNN_FP8 else
                              CudnnWithWindow() if name == CUDNN_WINDOW else sdpa(name))
        except Exception as error:  # not installed, or it does not load here
            absent[name] = first_line(error)
    return candidates, absent


# --- What may go wrong on the way -------------------------------------------------------------------------------------


class Watchdog:
    """Calls `lost` when nothing has been heard for too long: a kernel hangs, and the process cannot go on."""

    LONGEST = 150.0  # seconds for one candidate at one point, with what FlashAttention-4 compiles

    def __init__(self, lost: Callable[[str], None], longest: float = LONGEST):
        self.lost, self.longest = lost, longest
        self.where, self.since, self.over = "", time.monotonic(), threading.Event()

    def __enter__(self) -> "Watchdog":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()

    def __call__(self, where: str) -> None:
        self.where, self.since = where, time.monotonic()

    def _watch(self) -> None:
        while not self.over.wait(self.longest / 100):
            if time.monotonic() - self.since > self.longest:
                return self.lost(f"{self.where}: it has not answered for {self.longest:.0f} s")


# --- Timing ----------------------------------------------------------------------------------------------------------


class Flush:
    """Overwrites the L2 cache, for long enough that the CPU has enqueued what comes next before the GPU gets there."""

    def __init__(self):
        l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
        self.memory = torch.empty(max(2 * l2, 256 << 20), dtype=torch.int8, device="cuda")
        self.memory.zero_()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            self.memory.zero_()
        stop.record()
        stop.synchronize()
        self.seconds = start.elapsed_time(stop) * 1e-4

    def __call__(self, cover: float) -> None:
        for _ in range(max(1, math.ceil(cover / self.seconds))):
            self.memory.zero_()


class Lane:
    """A candidate on one problem, in one direction."""

    ATTEMPTS = 12  # at a launch that is enqueued in time; each has half as much time again

    def __init__(self, candidate: Candidate, direction: str, sets: list[list[torch.Tensor]], causal: bool,
                 extras: JsonObject):
        self.candidate, self.backward = candidate, direction == "backward"
        self.attend = functools.partial(candidate.attend, causal=causal, **extras)
        self.causal, self.extras = causal, extras
        self.sets = [candidate.prepared(one[:3], causal, self.backward) for one in sets]
        self.d_o = [candidate.inputs(one[3]) for one in sets] if self.backward else []
        self.o = [self.attend(*one) for one in self.sets] if self.backward else []
        self.turn, self.cover = 0, 0.0
        self.events: list[tuple[Any, Any]] = []
        self.late = 0  # launches that did not count

    def launch(self, number: int) -> Any:
        if self.backward:
            with self.candidate.mode():
                return torch.autograd.grad(self.o[number], self.sets[number], self.d_o[number], retain_graph=True)
        return self.attend(*self.sets[number])

    def wrong(self, reference: Reference) -> "str | None":
        if self.backward:
            d_o = self.candidate.output(self.d_o[0])
            return reference.wrong_backward(d_o, *map(self.candidate.output, self.launch(0)))
        if isinstance(self.candidate, Chapter):
            q, k, v, *_ = self.sets[0]
            return reference.wrong_forward(*self.candidate.forward(q, k, v, self.causal, **self.extras))
        return reference.wrong_forward(self.candidate.output(self.launch(0)))

    def warm_up(self, flush: Flush) -> float:
        """Seconds of a launch, roughly; and learns how long the CPU takes to enqueue one."""
        host = []
        for number in (1, 0, 1):
            flush(0.0)
            begin = time.perf_counter()
            self.launch(number)
            host.append(time.perf_counter() - begin)
            torch.cuda.synchronize()
        self.cover = 1.5 * statistics.median(host)
        self.take_turn(flush)
        torch.cuda.synchronize()
        self.late = 0
        return self.samples(forget=True)[0]

    def take_turn(self, flush: Flush) -> None:
        for _ in range(self.ATTEMPTS):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush(self.cover)
            start.record()
            self.launch(self.turn % len(self.sets))
            stop.record()
            if not start.query():  # the GPU is still at the flush, and will find everything enqueued
                self.events.append((start, stop))
                self.turn += 1
                return
            self.late += 1
            self.cover = 1.5 * max(self.cover, flush.seconds)
        raise Skipped("the CPU does not enqueue it before the GPU gets there")

    def samples(self, forget: bool = False) -> list[float]:
        seconds = [round(start.elapsed_time(stop) * 1e-3, 8) for start, stop in self.events]
        if forget:
            self.events = []
        return seconds


def ceilings(flush: Flush, eight_bits: bool = False) -> JsonObject:
    """What this GPU can do: a matrix product, also in eight bits, and a copy, large enough to fill it."""
    side, elements = 8192, 1 << 29
    a, b = (torch.randn(side, side, device="cuda", dtype=torch.float16) for _ in range(2))
    product = torch.empty_like(a)
    source = torch.randn(elements, device="cuda", dtype=torch.float16)
    copy = torch.empty_like(source)

    def timed(work: Callable[[], object]) -> dict[str, float]:
        events: list[tuple[Any, Any]] = []
        for _ in range(23):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush(0.0)
            start.record()
            work()
            stop.record()
            events.append((start, stop))
        torch.cuda.synchronize()
        return percentiles([start.elapsed_time(stop) * 1e-3 for start, stop in events[3:]])  # the first ones warm up

    matmul, copying = timed(lambda: torch.matmul(a, b, out=product)), timed(lambda: copy.copy_(source))
    found = {"matmul": {"flop_rate": 2 * side**3 / matmul["median"], "seconds": matmul},
             "copy": {"byte_rate": 2 * 2 * elements / copying["median"], "seconds": copying}}
    if eight_bits and torch.cuda.get_device_capability() >= (8, 9):
        (a8, a_scale), (b8, b_scale) = in_eight_bits(a), in_eight_bits(b)
        of_eight_bits = timed(lambda: torch._scaled_mm(a8, b8.t(), scale_a=a_scale, scale_b=b_scale,
                                                       out_dtype=torch.bfloat16, use_fast_accum=True))
        found["matmul_fp8"] = {"flop_rate": 2 * side**3 / of_eight_bits["median"], "seconds": of_eight_bits}
    return found


def extras(problem: Problem) -> list[str]:
    """The names of what the problem has beside how its tensors lie."""
    return [name for name in ("window", "softcap", "alibi", "sink", "packed", "blocks") if name in problem.asked()]


def seen_of(packed: "Packed | None" = None, blocks: "Blocks | None" = None, **_: Any) -> "Callable[..., Any] | None":
    """Which pairs these extras show, if they say it as a function."""
    extra = packed or blocks
    return extra.seen if extra else None


def make_packed(problem: Problem) -> Packed:
    lengths = documents.lengths_of(problem)
    begins = torch.tensor([0, *lengths], device="cuda", dtype=torch.int32).cumsum(0, dtype=torch.int32)
    document = torch.arange(len(lengths), device="cuda").repeat_interleave(begins.diff())
    return Packed(begins, max(lengths), min(lengths), lambda b, h, i, j: document[i] == document[j])


def make_blocks(problem: Problem) -> Blocks:
    from flash_attention_workbook import block_mask

    seen = documents.seen(problem.asked()["blocks"], functools.partial(torch.tensor, device="cuda"), problem.seq_q)
    return Blocks(block_mask(seen, seq_q=problem.seq_q, seq_k=problem.seq_k, device="cuda"), seen)


def make_extras(problem: Problem, seed: int) -> JsonObject:
    """Their values: slopes as ALiBi has them, and sinks that are standard normal numbers."""
    random = torch.Generator("cuda").manual_seed(seed + 1)
    asked, heads = problem.asked(), problem.heads
    made = {"alibi": lambda: 2 ** (-8 * torch.arange(1, heads + 1, device="cuda") / heads),
            "sink": lambda: torch.randn(heads, device="cuda", generator=random),
            "packed": lambda: make_packed(problem), "blocks": lambda: make_blocks(problem)}
    return {name: made[name]() if name in made else asked[name] for name in extras(problem)}


def about(asked: JsonObject) -> JsonObject:
    """What a record says of these extras."""
    if "packed" in asked:
        return {"lengths": asked["packed"].begins.diff().tolist()}
    if "blocks" in asked:
        mask = asked["blocks"].mask
        return {"share": mask.share(), "cut": mask.bits.shape[1] / mask.tiles.shape[1]}  # of all, and of the listed
    return {}


def make_sets(problem: Problem, direction: str, seed: int) -> list[list[torch.Tensor]]:
    """Two sets of q, k, v (and d_o): standard normal numbers. As views, and packed, they lie as [B, N, H, D]."""
    random = torch.Generator("cuda").manual_seed(seed)
    views = not {"views", "packed"}.isdisjoint(problem.asked())

    def made(shape):
        tensor = torch.randn(shape, device="cuda", dtype=DTYPES[problem.dtype], generator=random)
        return tensor.transpose(1, 2).contiguous().transpose(1, 2) if views else tensor

    packed = problem.asked().get("packed")
    (batch_q, rows_q), (batch_k, rows_k) = ((1, total) for total in packed) if packed else (
        (problem.batch, problem.seq_q), (problem.batch, problem.seq_k))
    q = (batch_q, problem.heads, rows_q, problem.head_dim)
    k = (batch_k, problem.kv_heads, rows_k, problem.head_dim)
    shapes = [q, k, k] + ([q] if direction == "backward" else [])
    return [[made(shape) for shape in shapes] for _ in range(2)]


@dataclass(frozen=True)
class Slices:
    """How it is timed back to back."""

    rounds: int
    look: "Callable[[], Look] | None"  # at clock and power, where NVML is there


def measure(problem: Problem, flops: float, rope: bool, direction: str, candidates: list[Candidate],
            known: dict[tuple[str, str], list[tuple[Problem, float]]], flush: Flush,
            asked: JsonObject, seed: int, patience: float, at: Callable[[str], None] = lambda _: None,
            in_slices: "Slices | None" = None) -> list[JsonObject]:
    """The results of one point. `known` gathers {(name, direction): [(problem, seconds)]}; `asked` are the extras; `at`
    hears whose turn it is; in_slices: back to back."""
    sets = make_sets(problem, direction, seed)
    q, k, v, *_ = sets[0]
    reference = Reference(q, k, v, problem.causal, rope=rope, seen=seen_of(**asked),
                          **{name: value for name, value in asked.items() if name not in ("packed", "blocks")})
    some_in_eight_bits = any(one.eight_bits for one in candidates)
    of_eight_bits = OfEightBits(q, k, v, problem.causal) if some_in_eight_bits else reference
    results: list[JsonObject] = []
    lanes: list[tuple[Lane, int, JsonObject]] = []
    bursts: list[tuple[back_to_back.Bursts, JsonObject]] = []
    for candidate in candidates:
        result: JsonObject = {"name": candidate.name, "kind": candidate.kind}
        results.append(result)
        history = known.setdefault((candidate.name, direction), [])
        at(candidate.name)
        try:
            if direction not in candidate.directions:
                raise Skipped(f"it has no {direction}")
            expected = predicted_seconds(history, problem)
            reason = candidate.lacks(problem) or candidate.refuses(problem)
            reason = reason or (too_slow(expected, patience) if expected else None)
            if reason:
                raise Skipped(reason)
            lane = Lane(candidate, direction, sets, problem.causal, asked)
            judge = of_eight_bits if candidate.eight_bits else reference
            wrong = lane.wrong(judge)
            if wrong:
                result["wrong"] = wrong
                continue
            result["error"], result["tolerance"] = judge.worst or (None, None)
            if some_in_eight_bits:
                result["norm"] = judge.norm
            if isinstance(candidate, Chapter) and candidate.runs:
                result["runs"] = candidate.runs(problem, direction)
            seconds = lane.warm_up(flush)
            history.append((problem, seconds))
            if too_slow(seconds, patience):
                raise Skipped(too_slow(seconds, patience))
            if in_slices:
                bursts.append((back_to_back.Bursts(lane, seconds), result))
            else:
                lanes.append((lane, launches(seconds, patience), result))
        except Skipped as skipped:
            result["skipped"] = str(skipped)
        except torch.cuda.OutOfMemoryError:
            result["skipped"] = "there is not enough device memory"
        except Exception as error:  # a backend or a chapter that does not take the problem; each has errors of its own
            if "CUDA error" in str(error):
                raise Lost(f"{candidate.name}: {first_line(error)}") from error
            result["skipped"] = first_line(error)

    if in_slices:
        back_to_back.measure(bursts, flops, in_slices.rounds, in_slices.look, at)
        return results
    rounds, shuffled = max((count for _, count, _ in lanes), default=0), random.Random(seed)
    for number in range(rounds):
        at("the launches in turn")
        shuffled.shuffle(lanes)  # what ran just before costs time: always the same would be to somebody's favour
        for lane, count, result in lanes:
            if has_turn(count, rounds, number) and "skipped" not in result:
                try:
                    lane.take_turn(flush)
                except Skipped as skipped:
                    result["skipped"] = str(skipped)
        torch.cuda.synchronize()
    for lane, _, result in lanes:
        if "skipped" in result:
            continue
        samples = lane.samples()
        result["late"] = lane.late
        result["seconds"] = percentiles(samples)
        result["flop_rate"] = flops / result["seconds"]["median"]
        result["samples"] = samples
    return results


# --- The machine -----------------------------------------------------------------------------------------------------


def uuid() -> str:
    """nvidia-smi's name of the GPU in use."""
    known = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    return f"GPU-{known}" if known else ""


def context(request: JsonObject) -> JsonObject:
    properties = torch.cuda.get_device_properties(0)
    return {
        **cuda.machine(uuid()),
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "commit": request["commit"],
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "l2_bytes": getattr(properties, "L2_cache_size", None),
        "time": "CUDA events around each launch, enqueued before the GPU gets there, L2 overwritten before it, "
                "candidates in turn, in another order each time, two sets of inputs",
    }


def the_workbook(who: str) -> ModuleType:
    """The chapters, as a module of functions of tensors."""
    if not torch.cuda.is_available():
        raise Refusal(f"{who} needs PyTorch with CUDA: {torch.__version__} at {torch.__path__[0]} finds no GPU")
    try:
        import flash_attention_workbook as workbook
    except ImportError as error:
        raise Refusal(first_line(error)) from None
    return workbook


def candidates_for(points: list[Problem], workbook: ModuleType,
                   request: JsonObject) -> tuple[list[Candidate], list[Candidate], dict[str, str]]:
    """(candidates, those with RoPE, {name: why it is not there}). Chapters that rotate q and k solve another problem
    than those that do not, and have other peers."""
    absent: dict[str, str] = {}
    chapters: list[Candidate]
    of_documents = OF_DOCUMENTS.get(request["sweep"])
    its_peers = IN_EIGHT_BITS if request["sweep"] == EIGHT_BITS else of_documents
    chosen_by_words = any(request[word] for word in ("named", "rung", "all_rungs", "own"))
    if request["sweep"] == EIGHT_BITS and not chosen_by_words:
        chapters = eight_bit_candidates(workbook, request["timing"] == BACK_TO_BACK, points[0].dtype)
    elif of_documents:
        chapters = [default_candidate(workbook)]
        chapters += chapter_candidates(workbook, request["chapters"], request) if request["named"] else []
    elif request["own"]:
        # Back to back it takes long, and which of our rungs is the fastest is known from launches one by one.
        together = request["timing"] == BACK_TO_BACK
        chapters = [default_candidate(workbook)] if together else own_candidates(workbook)
    else:
        chosen, absent = chapters_for(points, workbook, request)
        chapters = chapter_candidates(workbook, chosen, request)
        if request["default"]:
            chapters.append(default_candidate(workbook))
    _require_direction(workbook, chapters, request["directions"])
    plain, rotating = ([one for one in chapters if one.rope == rope] for rope in (False, True))
    names = its_peers or (model_sweep.PEERS if request["own"] else PEERS)
    names = [*names, *WITH_EXTRAS] if any(extras(point) for point in points) and not its_peers else names
    peers, missing = peer_candidates(names) if plain else ([], {})
    rotating_peers, others = rotating_candidates() if rotating else ([], {})
    absent |= missing | others
    every: list[Candidate] = [*peers, *plain, *rotating_peers, *rotating]
    for word in request["only"]:
        if not any(is_named(word, one.name) for one in every):
            raise Refusal(f"only is {word}: " + (absent.get(word) or f"there are {', '.join(x.name for x in every)}"))
    if request["only"]:
        every = [one for one in every if any(is_named(word, one.name) for word in request["only"])]
    return [one for one in every if not one.rope], [one for one in every if one.rope], absent


def is_named(word: str, name: str) -> bool:
    """Whether the word names the candidate: whole, or a chapter by its number, with a rung or with all it has."""
    chapter, _, rung = name.partition("/")
    return word in (name, chapter, f"{chapter.split('_')[0]}/{rung}", chapter.split("_")[0])


def _require_direction(workbook: ModuleType, chapters: list[Candidate], directions: Sequence[str]) -> None:
    if not any(direction in candidate.directions for candidate in chapters for direction in directions):
        lacking, = directions  # of both there would be one
        able = [name for name, rungs in workbook.chapters().items() if any(has[lacking] for has in rungs.values())]
        raise Refusal(f"no {lacking} in {', '.join(one.name for one in chapters)}: chapters that have one: "
                      f"{', '.join(able) or 'none yet'}")


def run(request: JsonObject) -> JsonObject:
    """request: sweep, said and draw (see peers.sweep), timing, chapters, named, rung, all_rungs, own (instead of all
    these), default (beside them), only (names of candidates; empty for all), directions, seed, patience, within
    (seconds, or None), commit."""
    begin = time.monotonic()
    workbook = the_workbook("peers")
    points = sweep(request["sweep"], request["said"], Problem(**workbook.default_problem()), request["draw"])
    if not points:
        raise Refusal("no point of the sweep has all that: " + " ".join(
            f"{field}={value}" for field, value in request["said"].items()))
    *both, absent = candidates_for(points, workbook, request)
    what = word_for(request["sweep"], request["said"], points)
    report: JsonObject = {"context": context(request), "what": what, "timing": request["timing"], "absent": absent,
                          "points": []}
    in_slices = slices(request, report["context"]) if request["timing"] == BACK_TO_BACK else None
    report["context"]["before"] = cuda.machine_state(uuid())
    flush = Flush()
    known: dict[tuple[str, str], list[tuple[Problem, float]]] = {}
    eight_bits = request["sweep"] == EIGHT_BITS
    report["ceilings"] = ceilings(flush, eight_bits)
    torch.cuda.empty_cache()
    beside_ours = request["sweep"] in OF_DOCUMENTS  # the problems without extras: they are ours alone
    planned = [(direction, rope, problem, [one for one in both[rope] if direction in one.directions
                                           and (one.kind == "chapter" or extras(problem) or not beside_ours)])
               for direction, rope, problem in schedule(request["sweep"], points, request["directions"])]
    planned = [point for point in planned if any(one.kind == "chapter" or request["only"] for one in point[-1])]

    def lost(why: str) -> None:
        """What has been measured is kept."""
        ended(report, begin, why)
        write(request["out"], report)
        os._exit(0)

    with Watchdog(lost) as watchdog:
        for number, (direction, rope, problem, candidates) in enumerate(planned, start=1):
            where = f"{direction} {problem}{' RoPE' if rope else ''}"
            print(f"progress\t{where} ({number} of {len(planned)})")
            flops = documents.flops(problem, lambda one: workbook.flops(one.asked(), backward=direction == "backward"))
            added: JsonObject = {}
            results: list[JsonObject]
            try:
                if request["within"] and time.monotonic() - begin > request["within"]:
                    results = skipped(candidates, f"the {request['within']:.0f} s for all points were over")
                else:
                    added = make_extras(problem, request["seed"])
                    with torch.set_grad_enabled(direction == "backward"):
                        results = measure(problem, flops, rope, direction, candidates, known, flush, added,
                                          request["seed"], request["patience"], lambda who: watchdog(f"{where}: {who}"),
                                          in_slices)
            except torch.cuda.OutOfMemoryError:  # for the inputs themselves, or for checking
                results = skipped(candidates, "there is not enough device memory")
            except Exception as error:  # Lost, or whatever a launch that has been checked comes to
                traceback.print_exc()
                ended(report, begin, f"{where}: {first_line(error)}")
                return report
            report["points"].append({"problem": asdict(problem), "rope": rope, "direction": direction, "flops": flops,
                                     **about(added), **({"baseline": CUDNN_FP8} if eight_bits else {}),
                                     "results": results})
            write(request["out"], report)  # in case a launch of the next one ends the process
            torch.cuda.empty_cache()
    ended(report, begin)
    every = [result for point in report["points"] for result in point["results"]]
    asked = [result for result in every if result["kind"] == "chapter"] or every
    if all("skipped" in result for result in asked):
        raise Refusal(f"{asked[0]['name']}: {asked[0]['skipped']}" if asked else "no candidate has that direction")
    return report


def slices(request: JsonObject, about: JsonObject) -> Slices:
    """Says in the report's context how it was timed, and who told clock and power."""
    look = None
    try:
        look = Nvml(uuid()).look
        about["nvml"] = "clock and energy" if look().energy_j is not None else "clock and power, a mean over a second"
    except (OSError, AttributeError) as error:  # no NVML, or one that does not know the GPU
        about["nvml"] = f"absent: {first_line(error)}"
    about["time"] = back_to_back.TIME
    return Slices(ROUNDS_OF_MODELS if request["sweep"] in OF_MODELS else ROUNDS, look)


def ended(report: JsonObject, begin: float, early: "str | None" = None) -> None:
    """Completes the report; `early`: why some of its points are missing."""
    report["context"]["after"] = cuda.machine_state(uuid())
    report["context"]["measuring_seconds"] = round(time.monotonic() - begin, 1)
    if early:
        report["ended"] = early
    add_ratios(report["points"])
    report["summary"] = summary(report["points"])


def skipped(candidates: list[Candidate], why: str) -> list[JsonObject]:
    return [{"name": one.name, "kind": one.kind, "skipped": why} for one in candidates]


def write(path: "str | None", report: JsonObject) -> None:
    if path:
        Path(path + "~").write_text(json.dumps(report))
        os.replace(path + "~", path)  # whole, or as it was


def main(words: list[str], run: Callable[[JsonObject], JsonObject] = run) -> int:
    """Answers a request: one line of JSON, and the file for the report."""
    try:
        write(words[1], run({**json.loads(words[0]), "out": words[1]}))
        return 0
    except Refusal as refusal:
        print(f"error\t{refusal}")
        return 2
    except Exception as error:
        traceback.print_exc()
        print(f"error\t{first_line(error)}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
