"""Times chapters and PyTorch's attention on the same tensors, in one process. Needs PyTorch and a GPU.

    python3 -m tools.measuring.peers_main REQUEST OUT      (tools/measuring/peers.py says what is written to OUT)

Candidates take turns, launch by launch: each time the L2 cache is overwritten, then CUDA events stand around one launch
on one of two sets of inputs. A launch that the GPU reached before the CPU had enqueued all of it is repeated: its time
would be the CPU's. Every result is first compared with fp64; what is wrong is not timed. Lines on stdout:
"progress<TAB>where it is", and at last perhaps "error<TAB>why"; the exit status is 2 for a wrong question, else 1.
"""

import contextlib
import functools
import itertools
import json
import math
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F

from tools.base import JsonObject, cuda
from tools.measuring.peers import (
    PEERS,
    ROPE_PEERS,
    add_ratios,
    has_turn,
    launches,
    percentiles,
    predicted_seconds,
    summary,
    sweep,
    too_slow,
    word_for,
)
from tools.measuring.peers_check import Reference
from tools.record import Problem

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Refusal(Exception):
    """A request that cannot be answered; the message is one line."""


class Skipped(Exception):
    """Raised when a candidate is left out at a point; the message says why."""


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


# --- Candidates ------------------------------------------------------------------------------------------------------


class Candidate:
    """attend(q, k, v, causal) -> o, on [B, H, N, D]; differentiable if gradients are asked for."""

    kind = "peer"
    directions: Sequence[str] = ("forward", "backward")
    inputs = staticmethod(lambda tensor: tensor)  # to the layout that `attend` takes, before any timing; and back:
    output = staticmethod(lambda tensor: tensor)

    def __init__(self, name: str, attend: Callable[..., Any]):
        self.name, self.attend = name, attend

    @staticmethod
    def mode() -> AbstractContextManager[None]:
        """The mode of PyTorch in which it is launched."""
        return contextlib.nullcontext()

    def refuses(self, problem: Problem) -> "str | None":
        if problem.causal and problem.seq_q != problem.seq_k:
            return "its causal mask is aligned differently when N differs"
        return None


class TokensFirst(Candidate):
    """On [B, N, H, D], as the FlashAttention packages want it."""

    inputs = staticmethod(lambda tensor: tensor.transpose(1, 2).contiguous())
    output = staticmethod(lambda tensor: tensor.transpose(1, 2))

    def refuses(self, problem: Problem) -> None:
        return None


class Deterministic(Candidate):
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


class Chapter(Candidate):
    kind = "chapter"

    def __init__(self, workbook: ModuleType, name: str, chapter: str, rung: "str | None", directions: Sequence[str],
                 rope: bool):
        super().__init__(name, self.attend_with_chapter)
        self.directions, self.rope = directions, rope
        self.forward_pass = functools.partial(workbook.forward, chapter=chapter, rung=rung)
        self.differentiable = functools.partial(workbook.attention, backward_chapter=chapter, backward_rung=rung)
        self.tables: Any = None
        self.tables_for: Any = None  # shapes
        self.make_tables = workbook.rope_tables

    def _rope(self, q, k):
        """The tables for tensors of these shapes, made once: a model has them beforehand, too."""
        if self.rope and self.tables_for != (q.shape, k.shape):
            self.tables, self.tables_for = self.make_tables(q, k), (q.shape, k.shape)
        return self.tables

    def forward(self, q, k, v, causal):
        return self.forward_pass(q, k, v, causal, rope=self._rope(q, k))

    def attend_with_chapter(self, q, k, v, causal):
        return (self.differentiable(q, k, v, causal, rope=self._rope(q, k)) if q.requires_grad
                else self.forward(q, k, v, causal)[0])

    def refuses(self, problem: Problem) -> None:
        return None


def chapters_for(points: list[Problem], workbook: ModuleType, request: JsonObject) -> tuple[list[str], dict[str, str]]:
    """(chapters, {chapter: why it is left out}). Chapters for few queries take other problems only if named."""
    few_queries = any(point.seq_q < point.seq_k for point in points)
    absent = {} if request["named"] or few_queries else {
        chapter: "it is made for fewer queries than keys; its name asks about others, too"
        for chapter in request["chapters"]
        if not all(has["general"] for has in workbook.chapters()[chapter].values())}
    return [chapter for chapter in request["chapters"] if chapter not in absent], absent


def chapter_candidates(workbook: ModuleType, chapters: list[str], request: JsonObject) -> list[Chapter]:
    candidates, rung = [], request["rung"]
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

    def attend(q, k, v, causal):
        grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **grouped)

    return (Deterministic if name.endswith("-deterministic") else Candidate)(name, attend)


def rotating(name: str) -> Candidate:
    """What one would do without a chapter that rotates: q and k by PyTorch, as models have it, and then FLASH."""
    flash = sdpa("FLASH").attend

    def rotate(q, k, q_cos, q_sin, k_cos, k_sin):
        def halves_swapped(x):
            low, high = x.chunk(2, dim=-1)
            return torch.cat((-high, low), dim=-1)

        return q * q_cos + halves_swapped(q) * q_sin, k * k_cos + halves_swapped(k) * k_sin

    if name.startswith("compiled"):
        rotate = torch.compile(rotate, dynamic=False)
        # For each shape anew; past this limit, 8 unless told, torch.compile goes back to eager operations.
        from torch._dynamo import config

        setattr(config, "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit", 256)

    @functools.lru_cache(maxsize=1)
    def tables(seq_q, seq_k, head_dim, dtype):
        frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device="cuda") / head_dim)

        def of(first, count):
            angles = torch.outer(torch.arange(first, first + count, device="cuda").double(), frequencies).repeat(1, 2)
            return angles.cos().to(dtype), angles.sin().to(dtype)

        return *of(seq_k - seq_q, seq_q), *of(0, seq_k)

    def attend(q, k, v, causal):
        return flash(*rotate(q, k, *tables(q.shape[2], k.shape[2], q.shape[3], q.dtype)), v, causal)

    return Candidate(name, attend)


def package(name: str) -> Candidate:
    if name == "FA3":
        from flash_attn_interface import flash_attn_func
    else:
        from flash_attn.cute import flash_attn_func
    asked = {"deterministic": True} if name.endswith("-deterministic") else {}

    def attend(q, k, v, causal):
        o = flash_attn_func(q, k, v, causal=causal, **asked)
        return o[0] if isinstance(o, tuple) else o

    candidate = TokensFirst(name, attend)
    if asked:
        candidate.directions = ("backward",)  # its forward is the same one
    return candidate


def rotating_candidates() -> tuple[list[Candidate], dict[str, str]]:
    """(candidates, {name: why it is not there}), for problems with RoPE."""
    if torch.cuda.get_device_capability() < (8, 0):
        return [], dict.fromkeys(ROPE_PEERS, "it needs compute capability 8.0")
    return [rotating(name) for name in ROPE_PEERS], {}


def peer_candidates() -> tuple[list[Candidate], dict[str, str]]:
    """(candidates, {name: why it is not there})"""
    needed = {"MATH": (0, 0), "FA3": (9, 0)}  # compute capability
    candidates, absent = [], {}
    capability = torch.cuda.get_device_capability()
    for name in PEERS:
        least = needed.get(name, (8, 0))
        if capability < least:
            absent[name] = (f"it needs compute capability {least[0]}.{least[1]}, and this GPU has "
                            f"{capability[0]}.{capability[1]}")
            continue
        try:
            candidates.append(package(name) if name.startswith("FA") else sdpa(name))
        except Exception as error:  # not installed, or it does not load here
            absent[name] = first_line(error)
    return candidates, absent


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

    def __init__(self, candidate: Candidate, direction: str, sets: list[list[torch.Tensor]], causal: bool):
        self.candidate, self.causal, self.backward = candidate, causal, direction == "backward"
        self.sets = [[candidate.inputs(tensor).detach().requires_grad_(self.backward) for tensor in one[:3]]
                     for one in sets]
        self.d_o = [candidate.inputs(one[3]) for one in sets] if self.backward else []
        self.o = [candidate.attend(*one, causal) for one in self.sets] if self.backward else []
        self.turn, self.cover = 0, 0.0
        self.events: list[tuple[Any, Any]] = []
        self.late = 0  # launches that did not count

    def launch(self, number: int) -> Any:
        if self.backward:
            with self.candidate.mode():
                return torch.autograd.grad(self.o[number], self.sets[number], self.d_o[number], retain_graph=True)
        return self.candidate.attend(*self.sets[number], self.causal)

    def wrong(self, reference: Reference) -> "str | None":
        if self.backward:
            d_o = self.candidate.output(self.d_o[0])
            return reference.wrong_backward(d_o, *map(self.candidate.output, self.launch(0)))
        if isinstance(self.candidate, Chapter):
            return reference.wrong_forward(*self.candidate.forward(self.sets[0][0], self.sets[0][1], self.sets[0][2],
                                                                   self.causal))
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


def ceilings(flush: Flush) -> JsonObject:
    """What this GPU can do: a matrix product and a copy, large enough to fill it."""
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
    return {"matmul": {"flop_rate": 2 * side**3 / matmul["median"], "seconds": matmul},
            "copy": {"byte_rate": 2 * 2 * elements / copying["median"], "seconds": copying}}


def make_sets(problem: Problem, direction: str, seed: int) -> list[list[torch.Tensor]]:
    """Two sets of q, k, v (and d_o): standard normal numbers."""
    random = torch.Generator("cuda").manual_seed(seed)
    q = (problem.batch, problem.heads, problem.seq_q, problem.head_dim)
    k = (problem.batch, problem.kv_heads, problem.seq_k, problem.head_dim)
    shapes = [q, k, k] + ([q] if direction == "backward" else [])
    return [[torch.randn(shape, device="cuda", dtype=DTYPES[problem.dtype], generator=random) for shape in shapes]
            for _ in range(2)]


def measure(problem: Problem, flops: float, rope: bool, direction: str, candidates: list[Candidate],
            known: dict[tuple[str, str], list[tuple[Problem, float]]], flush: Flush,
            seed: int, patience: float) -> list[JsonObject]:
    """The results of one point. `known` gathers {(name, direction): [(problem, seconds)]}."""
    sets = make_sets(problem, direction, seed)
    reference = Reference(sets[0][0], sets[0][1], sets[0][2], problem.causal, rope=rope)
    results: list[JsonObject] = []
    lanes: list[tuple[Lane, int, JsonObject]] = []
    for candidate in candidates:
        result: JsonObject = {"name": candidate.name, "kind": candidate.kind}
        results.append(result)
        history = known.setdefault((candidate.name, direction), [])
        try:
            if direction not in candidate.directions:
                raise Skipped(f"it has no {direction}")
            expected = predicted_seconds(history, problem)
            reason = candidate.refuses(problem) or (too_slow(expected, patience) if expected else None)
            if reason:
                raise Skipped(reason)
            lane = Lane(candidate, direction, sets, problem.causal)
            wrong = lane.wrong(reference)
            if wrong:
                result["wrong"] = wrong
                continue
            result["error"], result["tolerance"] = reference.worst or (None, None)
            seconds = lane.warm_up(flush)
            history.append((problem, seconds))
            if too_slow(seconds, patience):
                raise Skipped(too_slow(seconds, patience))
            lanes.append((lane, launches(seconds, patience), result))
        except Skipped as skipped:
            result["skipped"] = str(skipped)
        except torch.cuda.OutOfMemoryError:
            result["skipped"] = "there is not enough device memory"
        except Exception as error:  # a backend or a chapter that does not take the problem; each has errors of its own
            if "CUDA error" in str(error):
                raise  # the device is lost to this process
            result["skipped"] = first_line(error)

    rounds = max((count for _, count, _ in lanes), default=0)
    for number in range(rounds):
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
                "candidates in turn, two sets of inputs",
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


def run(request: JsonObject) -> JsonObject:
    """request: sweep, said (see peers.sweep), chapters, named, rung, all_rungs, directions, seed, patience, commit."""
    workbook = the_workbook("peers")
    points = sweep(request["sweep"], request["said"], Problem(**workbook.default_problem()))
    chosen, left_out = chapters_for(points, workbook, request)
    chapters = chapter_candidates(workbook, chosen, request)
    directions = [d for d in request["directions"] if any(d in candidate.directions for candidate in chapters)]
    if not directions:
        lacking, = request["directions"]  # of both there would be one
        able = [name for name, rungs in workbook.chapters().items() if any(has[lacking] for has in rungs.values())]
        raise Refusal(f"no {lacking} in {', '.join(one.name for one in chapters)}: chapters that have one: "
                      f"{', '.join(able) or 'none yet'}")
    peers, absent = peer_candidates() if any(not candidate.rope for candidate in chapters) else ([], {})
    rotating_peers, missing = rotating_candidates() if any(candidate.rope for candidate in chapters) else ([], {})
    absent |= missing | left_out
    begin = time.monotonic()
    what = word_for(request["sweep"], request["said"], points)
    report: JsonObject = {"context": context(request), "what": what, "absent": absent, "points": []}
    report["context"]["before"] = cuda.machine_state(uuid())
    flush = Flush()
    known: dict[tuple[str, str], list[tuple[Problem, float]]] = {}
    report["ceilings"] = ceilings(flush)
    torch.cuda.empty_cache()
    # Chapters that rotate q and k solve another problem than those that do not, and have other peers.
    groups = [(False, peers), (True, rotating_peers)]
    for direction, (rope, beside) in itertools.product(directions, groups):
        ours = [candidate for candidate in chapters if direction in candidate.directions and candidate.rope == rope]
        if not ours:
            continue
        candidates = [*(peer for peer in beside if direction in peer.directions), *ours]
        for number, problem in enumerate(points):
            print(f"progress\t{direction} {problem}{' RoPE' if rope else ''} ({number + 1} of {len(points)})")
            flops = workbook.flops(asdict(problem), backward=direction == "backward")
            try:
                with torch.set_grad_enabled(direction == "backward"):
                    results = measure(problem, flops, rope, direction, candidates, known, flush, request["seed"],
                                      request["patience"])
            except torch.cuda.OutOfMemoryError:  # for the inputs themselves, or for checking
                results = [{"name": one.name, "kind": one.kind, "skipped": "there is not enough device memory"}
                           for one in candidates]
            report["points"].append({"problem": asdict(problem), "rope": rope, "direction": direction, "flops": flops,
                                     "results": results})
            torch.cuda.empty_cache()
    report["context"]["after"] = cuda.machine_state(uuid())
    report["context"]["measuring_seconds"] = round(time.monotonic() - begin, 1)
    chapter_results = [r for point in report["points"] for r in point["results"] if r["kind"] == "chapter"]
    if all("skipped" in result for result in chapter_results):
        raise Refusal(f"{chapter_results[0]['name']}: {chapter_results[0]['skipped']}")
    add_ratios(report["points"])
    report["summary"] = summary(report["points"])
    return report


def main(words: list[str], run: Callable[[JsonObject], JsonObject] = run) -> int:
    """Answers a request: one line of JSON, and the file for the report."""
    try:
        report = run(json.loads(words[0]))
        with open(words[1], "w") as out:
            json.dump(report, out)
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
