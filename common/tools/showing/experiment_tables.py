"""Tables of chapters 10 and 11: their rungs on FlashAttention's sweep, and single experiments (files with a date).

Tables (lesson_tables.py) has them for the lessons. What has not been measured is a dash.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from tools.base import JsonObject, NotUnderstood, significant
from tools.record import LENGTHS, Missing, Quantities
from tools.showing.markdown import known, markdown

SWEEP_LENGTHS = (*LENGTHS, 16384)
Point = tuple[int, int, str]  # N, D, and "full" or "causal"
RUNGS = {
    ("10", "forward"): "tma descriptors wgmma warpspec overlap pingpong stored listed persistent dynamic narrow ahead "
                       "rounds fitted prompt beside",
    ("10", "backward"): "warpspec bulk turns reversed converted ordered ahead fetched rounds shared prompt "
                        "deferred columns chosen"}
BEFORE = {"stored": "overlap", "deferred": "shared"}  # where that is not the rung before
TOGETHER = {  # what was one rung at first, and what all of it starts from
    ("10", "forward"): (("10/wgmma", "10/tma"), ("10/persistent", "10/overlap")),
    ("10", "backward"): (("10/ordered", "10/bulk"), ("10/ordered", "CUDNN"), ("10/columns", "10/prompt"),
                          ("10/chosen", "CUDNN"))}
FIRST = {"forward": "08/balanced", "backward": "CUDNN"}  # what the first rung is compared with
PEERS = {"FLASH": "FlashAttention-2", "FLASH-deterministic": "FlashAttention-2, deterministic", "CUDNN": "cuDNN",
         "FA4": "FlashAttention-4", "FA4-deterministic": "FlashAttention-4, deterministic"}
PEERS_OF = {"forward": ("FLASH", "CUDNN", "FA4"),
            "backward": ("FLASH", "FLASH-deterministic", "CUDNN", "FA4", "FA4-deterministic")}
POINTS = ((8192, 128, "full"), (8192, 128, "causal"), (8192, 64, "full"), (8192, 64, "causal"), (512, 128, "full"),
          (2048, 128, "full"))


def _rungs(chapter: str, direction: str) -> list[tuple[str, str]]:
    """[(step, the step that it is compared with)]"""
    if (chapter, direction) not in RUNGS:
        raise NotUnderstood(f"there is no list of the rungs of {chapter}, {direction}")
    names, before, pairs = RUNGS[chapter, direction].split(), FIRST[direction], []
    for name in names:
        pairs.append((f"{chapter}/{name}", f"{chapter}/{BEFORE[name]}" if name in BEFORE else before))
        before = f"{chapter}/{name}"
    return pairs


def _where(n: int, head_dim: int, mask: str) -> str:
    return f"D = {head_dim}, N = {n}{', causal' if mask == 'causal' else ''}"


class Sweep:
    """TFLOP/s at the points of FlashAttention's sweep. All count, also those whose times are not steady."""

    def __init__(self, report: JsonObject, direction: str):
        self._rates: dict[Point, dict[str, float]] = {}
        for point in report["points"]:
            problem = point["problem"]
            if point["direction"] == direction and not point.get("rope"):
                mask = "causal" if problem["causal"] else "full"
                self._rates[problem["seq_q"], problem["head_dim"], mask] = {
                    self._step(one["name"]): 1e-12 * one["flop_rate"] for one in point["results"]
                    if one.get("flop_rate")}

    @staticmethod
    def _step(name: str) -> str:
        """"10_hopper/tma" -> "10/tma"; a peer's name stays."""
        return f"{name[:2]}/{name.split('/')[1]}" if name[0].isdigit() else name

    def rate(self, step: str, point: Point) -> float:
        found = self._rates.get(point, {}).get(step)
        if found is None:
            raise Missing(f"{step} at {point}")
        return found

    def gain(self, fast: str, slow: str, point: Point) -> float:
        return self.rate(fast, point) / self.rate(slow, point)

    def ratios(self, step: str, peer: str) -> list[float]:
        found = [rates[step] / rates[peer] for rates in self._rates.values() if step in rates and peer in rates]
        if not found:
            raise Missing(f"{step} beside {peer}")
        return found

    def has(self, step: str) -> bool:
        return any(step in rates for rates in self._rates.values())

    def points(self) -> list[Point]:
        return list(self._rates)


def _by_point(sweep: Sweep, steps: dict[str, str]) -> str:
    """Of these steps, {step: its name}, a line for each point."""
    return markdown([["TFLOP/s", *steps.values()],
                     *([f"{mask}, D = {head_dim}, N = {n}",
                        *(known(lambda: sweep.rate(step, (n, head_dim, mask))) for step in steps)]
                       for n, head_dim, mask in sweep.points())])


def rungs_of(sweep: Sweep, chapter: str, direction: str) -> str:
    """At three points."""
    points = [POINTS[0], POINTS[2], POINTS[4]]
    first = {"forward": "08/balanced", "backward": "08/ordered"}[direction]
    steps = {first: f"chapter 08's `{first.split('/')[1]}`",
             **{step: f"`{step.split('/')[1]}`" for step, _ in _rungs(chapter, direction)},
             **{peer: PEERS[peer] for peer in PEERS_OF[direction] if not peer.startswith("FLASH")}}
    return markdown([["TFLOP/s", *(_where(*point) for point in points)],
                     *([name, *(known(lambda: sweep.rate(step, point), "{:.0f}".format) for point in points)]
                       for step, name in steps.items())])


def points_of(sweep: Sweep, chapter: str, direction: str) -> str:
    """Of all rungs that were measured."""
    rungs = {step: f"`{step.split('/')[1]}`" for step, _ in _rungs(chapter, direction) if sweep.has(step)}
    return _by_point(sweep, {"CUDNN": PEERS["CUDNN"], **rungs})


def peers(sweep: Sweep, direction: str) -> str:
    return _by_point(sweep, {peer: PEERS[peer] for peer in PEERS_OF[direction]})


def steps_of(sweep: Sweep, chapter: str, direction: str) -> str:
    """Each rung over the one that it starts from, and several together, at six points."""
    rows = [["times as fast", *(_where(*point) for point in POINTS)]]
    for step, before in (*_rungs(chapter, direction), *TOGETHER[chapter, direction]):
        other = {"CUDNN": "cuDNN", "08/balanced": "chapter 08's `balanced`"}.get(before, f"`{before.split('/')[-1]}`")
        rows.append([f"`{step.split('/')[1]}` over {other}",
                     *(known(lambda: sweep.gain(step, before, point), "{:.2f}".format) for point in POINTS)])
    return markdown(rows)


def gains(sweep: Sweep, chapter: str, rung: str, direction: str) -> str:
    """The same of one rung, at every point."""
    step, before = next(pair for pair in _rungs(chapter, direction) if pair[0].endswith(f"/{rung}"))
    rows = [["N", *map(str, SWEEP_LENGTHS)]]
    for head_dim in (64, 128):
        for mask in ("full", "causal"):
            rows.append([f"{mask}, D = {head_dim}",
                         *(known(lambda: sweep.gain(step, before, (n, head_dim, mask)), "{:.2f}".format)
                           for n in SWEEP_LENGTHS)])
    return markdown(rows)


def again(sweeps: dict[str, Callable[[], Sweep]], step: str, direction: str) -> str:
    """Each of the measurements, {its name: a sweep}: the geometric mean, and the least."""
    rows = [["geometric mean of 24 points (least)", *sweeps]]
    for peer in ("CUDNN", {"forward": "FA4", "backward": "FA4-deterministic"}[direction]):
        rows.append([f"`{step.split('/')[1]}` over {PEERS[peer]}",
                     *(known(lambda: sweep().ratios(step, peer),
                             lambda found: f"{statistics.geometric_mean(found):.2f} ({min(found):.3f})")
                       for sweep in sweeps.values())])
    return markdown(rows)


# Single experiments

def _cell(of: Quantities, file: str, field: str, *path: object, scale: float = 1, text: str = "", **where: object
          ) -> str:
    return known(lambda: scale * of.entry(file, field, *path, **where),
                 lambda value: f"{value:{text}}" if text else significant(value))


def counters_of_10(of: Quantities) -> str:
    columns = (("ns", "ms", 1e-6, ".2f"), ("tensor_percent", "tensor, %", 1, ".0f"),
               ("exp_percent", "exp, %", 1, ".0f"))
    waits = (("stall_barrier", "at barriers", 1, ".1f"), ("stall_long_scoreboard", 'for "memory"', 1, ".1f"))
    every = [(head_dim, *column) for head_dim in (64, 128) for column in columns + (waits if head_dim == 128 else ())]
    rows = [["", *(f"D = {head_dim}: {title}" for head_dim, _, title, _, _ in every)]]
    for rung in ("tma", "wgmma", "warpspec", "overlap", "pingpong", "persistent", "dynamic", "narrow"):
        rows.append([f"`{rung}`", *(_cell(of, "2026-11-23-10-ncu.json", field, "kernels", scale=scale, text=text,
                                          rung=rung, head_dim=head_dim, causal=False)
                                    for head_dim, field, _, scale, text in every)])
    return markdown(rows)


def limits_of_10(of: Quantities) -> str:
    names = {"10_hopper/dynamic": "`dynamic`", "dynamic, without exponentials": "without exponentials: P = x",
             "dynamic, P = S": "without softmax: P = S, rounded",
             "dynamic, products and copies alone": "products and copies alone: one P all the time",
             "dynamic, products alone": "products alone: K and V of the first tiles all the time", "CUDNN": "cuDNN",
             "cuBLAS": "cuBLAS, a product of 8192 × 8192 matrices", "wgmma": "a loop of wgmma"}
    columns = [(head_dim, numbers) for head_dim in (128, 64) for numbers in ("random", "zeros")]
    rows = [["", *(title for head_dim, numbers in columns
                   for title in (f"D = {head_dim}, {numbers}: TFLOP/s", "W"))]]
    for name, words in names.items():
        row = [words]
        for head_dim, numbers in columns:
            of_a_head = {} if name in ("cuBLAS", "wgmma") else {"head_dim": head_dim, "causal": False}
            there = bool(of_a_head) or head_dim == 128  # these two have no head dim
            row += [_cell(of, "2026-11-23-10-limits.json", field, "results", scale=scale, text=".0f", run="first",
                          name=name, numbers=numbers, **of_a_head) if there else ""
                    for field, scale in (("flop_rate", 1e-12), ("power_w", 1))]
        rows.append(row)
    return markdown(rows)


# Chapter 10's kernels with parts left out or changed, back to back. Of "product" it is a matrix product.
JOULES, VARIANTS = "2026-11-29-10-joules.json", "2026-11-29-10-variants.json"
DEFERRED = "2026-11-29-10-deferred.json"
LEFT_OUT = {
    "forward": {"whole": "the kernel", "zeros": "the same, on zeros", "no_exp": "2ˣ by an addition and a shift",
                "no_copies": "the first tiles of K and V every time", "p_shared": "P from shared memory",
                "products": "no copies and no softmax", "bare": "a loop of its products alone",
                "bare_zeros": "the same, on zeros"},
    "backward": {"whole": "the kernel", "zeros": "the same, on zeros", "no_exp": "2ˣ by an addition and a shift",
                 "no_copies": "the first tiles of Q and dO every time",
                 "no_dq": "dQ goes no further than shared memory",
                 "larger": "dQ by reductions of 32 KB, not 16", "bare": "a loop of its products alone"}}


def joules_of(of: Quantities, direction: str) -> str:
    fields = (("joules", "mJ", 1e3, ".0f"), ("power_w", "W", 1, ".0f"), ("sm_clock_mhz", "MHz", 1, ".0f"))

    def rate(**where: Any) -> str:
        return known(lambda: 1e-12 * of.entry(JOULES, "flop", "points", **where)
                     / of.entry(JOULES, "seconds", "points", **where), lambda value: f"{value:.0f}")

    def cells(**where: Any) -> list[str]:
        return [rate(**where), *(_cell(of, JOULES, field, "points", scale=scale, text=text, **where)
                                 for field, _, scale, text in fields)]

    rows = [["", *(f"D = {head_dim}: {title}" for head_dim in (64, 128)
                   for title in ("TFLOP/s", *(title for _, title, _, _ in fields)))]]
    for variant, words in LEFT_OUT[direction].items():
        rows.append([words, *(cell for head_dim in (64, 128)
                              for cell in cells(direction=direction, head_dim=head_dim, variant=variant))])
    if direction == "forward":
        for variant, words in (("cublas", "cuBLAS, a product of 8192 × 8192 matrices"),
                               ("cublas_zeros", "the same, on zeros")):
            rows.append([words, *cells(direction="product", variant=variant), *[""] * (1 + len(fields))])
    return markdown(rows)


def _beside(of: Quantities, file: str, rung: str, problems: dict[str, dict[str, Any]]) -> str:
    """How many times as fast the rung is as the one beside it: launch by launch, then back to back. Without the mask
    and with it, and of {words: what sets a problem apart}."""
    rows = [["N", *map(str, SWEEP_LENGTHS)]]
    for causal in (False, True):
        for words, where in problems.items():
            rows.append([f"{'causal' if causal else 'full'}, {words}", *(
                " / ".join(_cell(of, file, f"{rung}.{ratio}", "points", text=".2f", causal=causal, seq=seq, **where)
                           for ratio in ("ratio", "ratio_back_to_back")) for seq in SWEEP_LENGTHS)])
    return markdown(rows)


def with_clusters(of: Quantities, direction: str) -> str:
    return _beside(of, f"2026-11-29-10-clusters-{direction}.json", "clusters",
                   {f"D = {head_dim}": {"head_dim": head_dim} for head_dim in (64, 128)})


def over_prompt(of: Quantities, rung: str) -> str:
    return _beside(of, DEFERRED, rung, {f"D = {head_dim}, {dtype}": {"head_dim": head_dim, "dtype": dtype}
                                        for head_dim in (64, 128) for dtype in ("bf16", "fp16")})


def heads_in_a_round(of: Quantities) -> str:
    sizes = (1, 2, 4, 8, 16)
    rows = [["heads in a round", *map(str, sizes), "as many as before"]]
    for head_dim in (64, 128):
        for seq in (16384, 8192, 4096, 2048):
            for causal in (False, True):
                where: dict[str, Any] = {"direction": "forward", "head_dim": head_dim, "seq": seq, "causal": causal}

                def cell(what: str = "tflops_sustained", **one: Any) -> str:
                    return _cell(of, "2026-11-30-10-rounds.json", what, "points", text=".0f", **one)

                rows.append([f"D = {head_dim}, N = {seq}, {'causal' if causal else 'full'}",
                             *(cell(round_heads=size, **where) for size in sizes),
                             f"{cell(usual=True, **where)} ({cell('round_heads', usual=True, **where)})"])
    return markdown(rows)


def heads_with_a_window(of: Quantities) -> str:
    heads = ("before", 8, 16, 32)
    rows = [["heads in a round", "as before", *map(str, heads[1:])]]
    for head_dim in (64, 128):
        for window in (256, 1024, 4096):
            cells = [_cell(of, "2026-11-30-12-window-rounds.json", "us", "points", text=".0f", head_dim=head_dim,
                           window=window, heads_in_a_round=number, prefetched_tickets=0)
                     for number in (heads if head_dim == 64 else heads[:-1])]
            rows.append([f"D = {head_dim}, a window of {window}", *cells, *([] if head_dim == 64 else ["16 are all"])])
    return markdown(rows)


def columns_with_a_window(of: Quantities) -> str:
    kernels = ("before", "columns", "columns and dQ later", "but for the last tile")
    rows = [["", *kernels]]
    for head_dim in (64, 128):
        for window in (0, 4096, 1024, 256):
            at: dict[str, Any] = {"head_dim": head_dim, "window": window, "dtype": "bf16"}
            rows.append([f"D = {head_dim}, {f'a window of {window}' if window else 'no window'}",
                         *(_cell(of, "2026-11-30-12-columns.json", "us", "points", text=".0f", kernel=kernel, **at)
                           for kernel in kernels)])
    return markdown(rows)


ORDERS = "2026-11-30-12-orders.json"


def orders_of_12(of: Quantities) -> str:
    rows = [["", "after", "before", "before, m in a pair", "before, in turns"]]
    for head_dim in (64, 128):
        for kind, words in (("plain", "no extra"), ("window", "a window of 1024"), ("softcap", "a softcap of 20"),
                            ("alibi", "ALiBi")):
            at: dict[str, Any] = {"kind": kind, "head_dim": head_dim, "seq_q": 16384}

            def elsewhere(kernel: str, at: dict[str, Any] = at) -> str:
                """Of another run, scaled by what both have."""
                return known(lambda: of.entry(ORDERS, "us", "turns", kernel=kernel, **at)
                             / of.entry(ORDERS, "us", "turns", kernel="O after", **at)
                             * of.entry(ORDERS, "us", "points", kernel="O after", **at), lambda value: f"{value:.0f}")

            cells = [_cell(of, ORDERS, "us", "points", text=".0f", kernel=kernel, **at)
                     for kernel in ("O after", "O before", "O before, m in a pair")]
            if (head_dim, kind) == (128, "plain"):
                cells[1] = elsewhere("O before")
            rows.append([f"D = {head_dim}, {words}", *cells, elsewhere("O before, in turns")])
    return markdown(rows)


def two_registers(of: Quantities) -> str:
    kernels = (("13, 9", "with", "registers"), ("12, 10", "with", "registers_again"),
               ("10, 9", "without", "registers"), ("11, 10", "without", "registers_again"),
               ("8, 9", "with", "registers"), ("2, 3", "with", "registers"), ("4, 5", "beside", "registers"))
    rows = [["registers of the two m", "of", "µs"]]
    for registers, end, run in kernels:
        rows.append(["R" + registers.replace(", ", ", R"),
                     {"with": "this chapter", "without": "this chapter without its sink",
                      "beside": "chapter 10's `beside`"}[end],
                     _cell(of, ORDERS, "us", run, text=".0f", kernel=registers, end=end, seq_q=16384, causal=False)])
    return markdown(rows)


BESIDE = "2026-11-30-10-beside.json"


def ways_through_a_step(of: Quantities) -> str:
    kernels = ("late", "FlashAttention-4")
    return markdown([["", "`late`", "FlashAttention-4"]] + [
        [part, *(_cell(of, BESIDE, "cycles", "ways", text=".0f", kernel=kernel, what=part) for kernel in kernels)]
        for part in ("next K and V", "turn, S starts", "P V starts", "S", "x, maximum", "exponentials", "wait for P V",
                     "rounding")])


def loops_at_64(of: Quantities) -> str:
    """Times as fast as prompt at D = 64, launch by launch (in slices): the mean of four lengths and two programs."""
    lengths = (512, 2048, 8192, 16384)

    def cell(run: int, loop: str, causal: bool) -> str:
        def gain(field: str) -> float:
            of_both = [[of.entry(BESIDE, field, "loops", run=run, seq=n, causal=causal, loop=one) for n in lengths]
                       for one in (loop, "prompt")]
            return statistics.geometric_mean(mine / other for mines, others in zip(*of_both)
                                             for mine, other in zip(mines, others))

        return f"{gain('tflops'):.2f} ({gain('tflops_in_slices'):.2f})"

    return markdown([["", "full", "causal"]] + [
        [text, *(cell(run, loop, causal) for causal in (False, True))]
        for run, loop, text in (
            (2, "beside", "`beside`"), (2, "no wait in front of x", "without the wait in front of x"),
            (2, "m rises before O is awaited", "m rises before O is awaited"),
            (2, "five stages", "five stages of K and V, not four"), (1, "with late's turns", "with `late`'s turns"),
            (1, "with the polynomial", "with the polynomial"))])


TRIED = (  # direction, head dims, variant, what it is, and what was predicted for each head dim
    ("forward", (128,), "early", "turns that end when products have started", "0.99 / 1.00"),
    ("forward", (128,), "late", "turns that end when S is there", "1.00 / 1.00"),
    ("forward", (128,), "regs152", "152 registers a thread, not 160", "1.00 / 1.00"),
    ("backward", (64, 128), "split", "Q and dO each with barriers of their own", "1.00 / 1.00"),
    ("backward", (64, 128), "regs232", "232 registers a thread, not 240", "1.00 / 1.00"),
    ("backward", (64, 128), "regs224", "224 registers", "1.00 / 1.00"),
    ("backward", (64,), "columns", "LSE and δ as columns of the products", "1.01 / 0.99"),
    ("backward", (128,), "columns", "LSE and δ as columns of the products", "–"),
    ("backward", (64,), "apart", "dQ of a tile beside dV and dK of the next one", "1.03 / 1.015"),
    ("backward", (64,), "columns_apart", "both of these", "1.06 / 1.04"),
    ("backward", (64,), "no_stats", "without loads of LSE and δ: a bound for that", "1.03 / 1.02"),
    ("backward", (128,), "no_stats", "without loads of LSE and δ", "1.01 / 1.01"),
    ("backward", (64,), "no_ds", "dS not written to shared memory: a bound for another layout", "1.03 / 1.01"),
    ("backward", (128,), "no_ds", "dS not written to shared memory", "1.01 / 1.005"))


def tried_in_10(of: Quantities) -> str:
    """Times as fast as the kernel as it is, in the same run: launch by launch, then back to back."""
    def gain(field: str, direction: str, head_dim: int, variant: str) -> float:
        where = {"direction": direction, "head_dim": head_dim}
        run = of.entry(VARIANTS, "run", "points", variant=variant, **where)
        whole, changed = (of.entry(VARIANTS, field, "points", variant=one, run=run, **where)
                          for one in ("whole", variant))
        return float(whole / changed)

    rows = [["", "predicted", "D = 64", "D = 128"]]
    for direction, head_dims, variant, words, predicted in TRIED:
        rows.append([f"{direction}: {words}", predicted, *(
            " / ".join(known(partial(gain, field, direction, head_dim, variant), "{:.3f}".format)
                       for field in ("one_launch", "seconds")) if head_dim in head_dims else ""
            for head_dim in (64, 128))])
    return markdown(rows)


def decode_points(of: Quantities) -> str:
    file, fields = "2026-11-23-11-decode.json", ("FLASH", "CUDNN", "whole", "split", "packed", "narrow", "deep", "tall")
    rows = [["B, H<sub>kv</sub>, Nk", "floor", "FA-2", "cuDNN", *(f"`{field}`" for field in fields[2:])]]
    for batch, kv_heads, lengths in ((1, 32, (8192, 65536, 262144)), (1, 8, (8192, 65536, 262144)),
                                     (8, 8, (8192, 65536, 262144)), (64, 8, (8192, 65536))):
        for seq_k in lengths:
            rows.append([f"{batch}, {kv_heads}, {seq_k}",
                         *(_cell(of, file, field, "points", batch=batch, kv_heads=kv_heads, seq_q=1, seq_k=seq_k,
                                 head_dim=128, dtype="fp16")
                           for field in ("floor_us", *(f"us.{field}" for field in fields)))])
    return markdown(rows)


def decode_in_short(of: Quantities) -> str:
    """One problem, with three numbers of keys."""
    fields = ("FLASH", "CUDNN", "whole", "split", "packed", "narrow", "tall")
    rows = [["Nk", "floor", "FA-2", "cuDNN", "`whole` (08)", *(f"`{field}`" for field in fields[3:])]]
    for seq_k in (8192, 65536, 262144):
        rows.append([str(seq_k), *(_cell(of, "2026-11-23-11-decode.json", field, "points", batch=1, kv_heads=8, seq_q=1,
                                         seq_k=seq_k, head_dim=128, dtype="fp16")
                                   for field in ("floor_us", *(f"us.{field}" for field in fields)))])
    return markdown(rows)


def decode_rows(of: Quantities) -> str:
    fields = ("FLASH", "CUDNN", "FLASH packed", "CUDNN packed", "deep", "tall", "warpgroup")
    rows = [["B, Nk", "Nq", "floor", "FA-2", "cuDNN", "FA-2 packed", "cuDNN packed",
             *(f"`{field}`" for field in fields[4:])]]
    for batch, lengths in ((1, (8192, 65536, 262144)), (8, (8192, 65536, 262144)), (64, (8192, 65536))):
        for seq_k in lengths:
            for seq_q in (4, 16):
                rows.append([f"{batch}, {seq_k}", str(seq_q),
                             *(_cell(of, "2026-11-23-11-chosen.json", field, "points", batch=batch, kv_heads=8,
                                     seq_q=seq_q, seq_k=seq_k, head_dim=128, dtype="fp16")
                               for field in ("floor_us", *(f"us.{field}" for field in fields)))])
    return markdown(rows)


SHORT = "2026-11-23-11-short.json"
SIZES = ((1, 8, 8192), (1, 32, 8192), (1, 8, 65536), (1, 8, 262144), (8, 8, 65536))  # B, Hkv, Nk


def _short(batch: int, kv_heads: int, seq_k: int) -> dict[str, Any]:
    return {"batch": batch, "kv_heads": kv_heads, "seq_q": 1, "seq_k": seq_k, "head_dim": 128}


def short_launches(of: Quantities) -> str:
    rows = [["B, H<sub>kv</sub>, Nk", "MB", "floor", "copy", "read", "`tall`", "copy, after reading",
             "read, after reading", "`tall`, after reading"]]
    for batch, kv_heads, seq_k in SIZES:
        where = _short(batch, kv_heads, seq_k)
        kv_bytes = 2 * batch * kv_heads * seq_k * 128 * 2
        rows.append([f"{batch}, {kv_heads}, {seq_k}", significant(1e-6 * kv_bytes, 4),
                     known(lambda: 1e6 * kv_bytes / of.entry("2026-11-23-11-decode.json", "copy_byte_rate")),
                     *(_cell(of, SHORT, f"{after}_us.{what}", "points", **where)
                       for after in ("after_writing", "after_reading") for what in ("copy", "read", "tall"))])
    return markdown(rows)


def short_times(of: Quantities) -> str:
    """Where the time of 268 MB goes."""
    moments = {"first_stage": "the first stage has come, to the median block",
               "keys_done_first": "the first block is done with its keys", "keys_done": "the median block",
               "keys_done_last": "the last block", "blocks_end": "all parts are written",
               "merge_may_go_on": "the merging kernel sees them", "merge_ends": "it has its result",
               "total": "from event to event"}
    return markdown([["µs", "after writing", "after reading"],
                     *([words, *(_cell(of, SHORT, f"timeline.{after}.{moment}", "points", text=".1f",
                                       **_short(1, 8, 65536)) for after in ("after_writing", "after_reading"))]
                       for moment, words in moments.items())])


def short_ideas(of: Quantities) -> str:
    """How many microseconds each idea adds."""
    ideas = (("`evict_first`", "tall, evict_first", "tall"),
             ("`launch_dependents`", "tall, launch_dependents at the start", "tall"),
             ("the last block merges", "tall, evict_first, last block merges", "tall, evict_first"))

    def added(idea: str, without: str, where: dict[str, Any]) -> str:
        times = [lambda name=name: of.entry(SHORT, f"after_writing_us.{name}", "points", **where)
                 for name in (idea, without)]
        return known(lambda: times[0]() - times[1](), lambda value: f"{value:.1f}".replace("-", "−"))

    return markdown([["µs", "33.6 MB", "134 MB", "268 MB", "1074 MB"],
                     *([words, *(added(idea, without, _short(*size)) for size in SIZES[:4])]
                       for words, idea, without in ideas)])


EXPERIMENTS: dict[str, Callable[[Quantities], str]] = {
    "counters of 10": counters_of_10, "limits of 10": limits_of_10,
    "joules, forward": lambda of: joules_of(of, "forward"),
    "joules, backward": lambda of: joules_of(of, "backward"),
    "clusters, forward": lambda of: with_clusters(of, "forward"),
    "clusters, backward": lambda of: with_clusters(of, "backward"), "deferred": lambda of: over_prompt(of, "deferred"),
    "columns": lambda of: over_prompt(of, "columns"),
    "tried in 10": tried_in_10, "heads in a round": heads_in_a_round,
    "heads in a round with a window": heads_with_a_window,
    "columns with a window": columns_with_a_window,
    "orders of chapter 12": orders_of_12, "two registers": two_registers,
    "ways through a step": ways_through_a_step, "loops at D = 64": loops_at_64,
    "decode in short": decode_in_short,
    "decode, one query": decode_points,
    "decode, more rows": decode_rows, "short launches": short_launches, "times in a launch": short_times,
    "ideas": short_ideas}


def experiment(of: Quantities, name: str) -> str:
    if name not in EXPERIMENTS:
        raise NotUnderstood(f"there is no experiment {name} (there are {', '.join(EXPERIMENTS)})")
    return EXPERIMENTS[name](of)
