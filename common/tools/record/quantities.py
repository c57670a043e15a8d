"""The numbers that a lesson can show: each function here is one, measured, counted or calculated.

In a lesson, right after the number and its unit, or by a name in numbers.json beside the lesson:

    2.67×<!-- = gain("02", "03", 8192) -->                                             measured
    10.0<!-- = counted("02", "global_load sectors", "scores") / counted("02", "global_load requests", "scores") -->
    67,108,864 bytes<!-- = 2 * 16 * 4096 * 64 * 2 * 4 -->                              calculated

Steps are "06" (the chapter's result), "06/mma", or a peer: FLASH (FlashAttention-2, from PyTorch), CUDNN, FA4, MATH.
Unless a function says otherwise: B=2, H=16, D=64, fp16, causal. Times of the ladder are Google Benchmark's; what is put
beside a peer is taken from the same process as the peer.
"""

import math
import statistics
from typing import Any

from tools.base import JsonObject, NotUnderstood
from tools.record import beside_peers
from tools.record.decoding import Decoding
from tools.record.measurements import Missing, Record, Row
from tools.record.microbenchmarks import LATENCY, Microbenchmarks
from tools.record.problem import DEFAULT
from tools.record.recorded_counts import Counts
from tools.record.repeated_times import SecondMeasurement
from tools.record.training import Training

BLOCK_PARTS = "2026-11-29-12-block-parts.json"
SHORT = "none, 12 x 1280", 12 * 1280**2 / 16384**2  # and the share of the pairs that these sequences have

class Quantities:
    """Every public method is a name that lessons may use."""

    def __init__(self, record: Record, counts: "Counts | None" = None):
        self._record, self._counts, self._second = record, counts or Counts(), SecondMeasurement(record)

    def _direction(self, step: str, direction: "str | None") -> str:
        if direction is None and step[0].isdigit():
            for one in ("forward", "backward"):
                try:
                    self._record.step(step, one)
                    return one
                except Missing:
                    continue
        return direction or "forward"

    def _row(self, source: str, step: str, direction: "str | None", **problem: object) -> Row:
        direction = self._direction(step, direction)
        return self._record.row(source, self._record.step(step, direction), direction, **problem)

    # The ladder

    def ms(self, step, n, direction=None):
        """Milliseconds."""
        return 1e3 * self._row("ladder", step, direction, seq_q=n).seconds

    def us(self, step, n, direction=None):
        """Microseconds."""
        return 1e3 * self.ms(step, n, direction)

    def gain(self, slow, fast, n, direction=None):
        """How many times faster the second step is."""
        return self.ms(slow, n, direction) / self.ms(fast, n, direction)

    def rate(self, step, n, direction=None):
        """TFLOP/s."""
        return 1e-12 * self._row("ladder", step, direction, seq_q=n).flop_rate

    def percent(self, step, n, direction=None):
        """Of the FLOP/s of a large matrix product on this GPU."""
        return 100 * self._row("ladder", step, direction, seq_q=n).flop_rate / self._record.ceiling("matmul")

    # Beside the peers, on the ladder's problems

    def peer_ms(self, step, n, direction=None):
        """Milliseconds, in the process with the peers."""
        return 1e3 * self._row("peers-ladder", step, direction, seq_q=n).seconds

    def against(self, step, peer, n, direction=None):
        """How many times faster than the peer."""
        direction = self._direction(step, direction)
        return self.peer_ms(peer, n, direction) / self.peer_ms(step, n, direction)

    # FlashAttention's sweep: 16384 tokens, H * D = 2048

    def tflops(self, step, n, head_dim=64, mask="full", dtype="fp16", direction=None):
        direction = self._direction(step, direction)
        of = {"seq_q": n, "head_dim": head_dim, "causal": mask == "causal"}
        return 1e-12 * self._row(f"sweep-{dtype}-{direction}", step, direction, **of).flop_rate

    def _ratios(self, step: str, peer: str, dtype: str, direction: "str | None", mask: "str | None",
                head_dim: "int | None") -> list[float]:
        direction = self._direction(step, direction)
        source = f"sweep-{dtype}-{direction}"
        name, peer = self._record.step(step, direction), self._record.step(peer, direction)
        ratios = []
        for row in self._record.rows:
            row_mask = "causal" if row.problem.causal else "full"
            if (row.source, row.step) == (source, name) and mask in (None, row_mask) and (
                    head_dim in (None, row.problem.head_dim)):
                try:
                    ratios.append(self._record.row(source, peer, direction, **vars(row.problem)).seconds / row.seconds)
                except Missing:
                    continue
        if not ratios:
            raise Missing(f"{step} beside {peer} is not in {source}")
        return ratios

    def mean_against(self, step, peer="FLASH", dtype="fp16", direction=None, mask=None, head_dim=None):
        """How many times faster than the peer: the geometric mean of the sweep."""
        return statistics.geometric_mean(self._ratios(step, peer, dtype, direction, mask, head_dim))

    def backward_against(self, step, peer="FLASH"):
        """The same of the backward, in fp16."""
        return self.mean_against(step, peer, direction="backward")

    def points_against(self, step, peer="FLASH", dtype="fp16", direction=None, mask=None, head_dim=None):
        """At how many points of the sweep both have a steady time."""
        return len(self._ratios(step, peer, dtype, direction, mask, head_dim))

    def least_against(self, step, peer="FLASH", dtype="fp16", direction=None, mask=None, head_dim=None):
        return min(self._ratios(step, peer, dtype, direction, mask, head_dim))

    def most_against(self, step, peer="FLASH", dtype="fp16", direction=None, mask=None, head_dim=None):
        return max(self._ratios(step, peer, dtype, direction, mask, head_dim))

    def back_to_back(self, what, peer, dtype, direction, alone=False):
        """The default against a peer in the sweep back to back, in slices or each alone, at all points: "mean"
        (geometric) or "least"."""
        points = self._record.piece(f"sweep-{dtype}-{direction}{beside_peers.B2B}")["points"]
        found = beside_peers.compared(beside_peers.alone(points) if alone else points, DEFAULT, peer)
        if found is None:
            raise Missing(f"the default beside {peer}, {direction}, is not in the sweep back to back")
        return getattr(found, what)

    def h100(self, quantity, *args, **named):
        """Another quantity, of an H100: h100("mean_against", "default", "CUDNN")"""
        record = Record(self._record.directory.parent / "nvidia-h100-80gb-hbm3")
        return getattr(Quantities(record, self._counts), quantity)(*args, **named)

    # The sweep of models

    def of_models(self, what, direction, than="peers", back_to_back=False):
        """The default against a peer, "peers" (the fastest of them at each point) or "own" (the fastest of ours that
        may be the default): "mean" (geometric), "least", "points", and at how many of them it is "behind"."""
        points = self._record.piece(f"models-{direction}{beside_peers.B2B * back_to_back}")["points"]
        names = {"peers": beside_peers.FASTEST_PEER, "own": beside_peers.FASTEST_OWN}
        found = beside_peers.compared(points, DEFAULT, names.get(than, than))
        if found is None:
            raise Missing(f"the default beside {than}, {direction}, is not in the sweep of models")
        known = {"mean": found.mean, "least": found.least, "points": found.points, "behind": found.behind}
        if what not in known:
            raise NotUnderstood(f"there is no {what} (there are {', '.join(known)})")
        return known[what]

    # What models add, and documents, one behind the other or as a block mask (tools/measuring/documents.py)

    def _of_documents(self, sweep: str, direction: str, head_dim: int, extras: str, back_to_back: bool) -> JsonObject:
        """The sweep's only point whose extras begin so; none if that is "none"."""
        points = [point for point in self._record.piece(f"{sweep}{beside_peers.B2B * back_to_back}")["points"]
                  if (point["direction"], point["problem"]["head_dim"]) == (direction, head_dim)
                  and (point["problem"]["extras"].startswith(extras) if extras != "none"
                       else not point["problem"]["extras"])]
        if len(points) != 1:
            raise Missing(f"{sweep}: {len(points)} points with {extras}, {direction}, D = {head_dim}")
        return points[0]

    @staticmethod
    def _timed(point: JsonObject, by: str) -> JsonObject:
        found = [one for one in point["results"] if "seconds" in one and by in (one["name"], one["kind"])]
        if not found:
            raise Missing(f"{by} is not timed at {point['problem']}")
        return min(found, key=lambda one: one["seconds"]["median"])

    def extra_ms(self, extra, by, direction, head_dim=128, dtype="bf16", way=""):
        """Milliseconds with "window", "softcap", "alibi", "sink", "views" or "none", by "12", "10", "FA4" or "FLEX":
        launch by launch, or "back to back", or so and each "alone"."""
        sweep = f"extras-{'fp16-' * (dtype == 'fp16')}{direction}"
        names = {"10": "10_hopper", "12": "12_variants"}
        found = self._timed(self._of_documents(sweep, direction, head_dim, extra, bool(way)), names.get(by, by))
        return 1e3 * (found["alone_seconds"] if way == "alone" else found["seconds"]["median"])

    def packed_tflops(self, by, direction, head_dim, back_to_back=False, time="median"):
        """TFLOP/s of packed sequences, or "dense": of as many tokens and pairs in sequences of one length, by the
        fastest own kernel. In the median, or in the fastest tenth ("p10")."""
        which, by = ("none", "chapter") if by == "dense" else ("packed", by)
        point = self._of_documents("packed", direction, head_dim, which, back_to_back)
        return 1e-12 * point["flops"] / self._timed(point, by)["seconds"][time]

    def block_mask_ms(self, mask, direction, head_dim, by="chapter", back_to_back=False, time="median"):
        """Milliseconds with "documents", "prefix", "dilated" or, by the fastest own kernel, "none"."""
        point = self._of_documents("blocks", direction, head_dim, mask if mask == "none" else f"blocks_{mask}",
                                   back_to_back)
        return 1e3 * self._timed(point, by)["seconds"][time]

    def of_listed_share(self, mask, direction, head_dim, back_to_back=False, time="median"):
        """The time with a block mask, divided by the listed tiles' share of that without."""
        share = self._of_documents("blocks", direction, head_dim, f"blocks_{mask}", back_to_back)["share"]
        return (self.block_mask_ms(mask, direction, head_dim, back_to_back=back_to_back, time=time)
                / self.block_mask_ms("none", direction, head_dim, back_to_back=back_to_back, time=time) / share)

    def block_part(self, mask, direction, head_dim):
        """What a block mask costs beside its tiles: times its share of the time without a mask, of the masks of the
        experiment BLOCK_PARTS, which were measured in turn. "short": no mask, but sequences of ten tiles."""
        def number(field, mask):
            return self.entry(BLOCK_PARTS, field, "points", mask=mask, head_dim=head_dim)

        time, (name, share) = f"{direction}_ms", SHORT if mask == "short" else (mask, None)
        return number(time, name) / (share or number("share", name)) / number(time, "none")

    # Eight bits: 16384 tokens, H * D = 2048, bf16, forward. Steps are "13/offset", "13/e4m3" (of tensors that are e4m3
    # already), "default", "CUDNN" and "CUDNN-FP8"

    def _in_eight_bits(self, step: str, n: int, head_dim: int, mask: str, back_to_back: bool) -> JsonObject:
        where = {"seq_q": n, "head_dim": head_dim, "causal": mask == "causal"}
        name = f"fp8{beside_peers.B2B * back_to_back}"
        for point in self._record.piece(name)["points"]:
            if where.items() <= point["problem"].items():
                for one in point["results"]:
                    chapter, slash, rung = one["name"].partition("/")
                    if "seconds" in one and step in (one["name"], f"{chapter.split('_')[0]}{slash}{rung}"):
                        return one
        raise Missing(f"{step}, N = {n}, D = {head_dim}, {mask}, is not in {name}")

    def steps_in_eight_bits(self):
        """All that were timed there, in order; of cuDNN the one that has eight bits as well."""
        return list(dict.fromkeys(one["name"] for point in self._record.piece("fp8")["points"]
                                  for one in point["results"] if "norm" in one))

    def tflops_in_eight_bits(self, step, n, head_dim, mask="full", back_to_back=False):
        return 1e-12 * self._in_eight_bits(step, n, head_dim, mask, back_to_back)["flop_rate"]

    def error_in_eight_bits(self, step, n, head_dim, mask="full"):
        """|o - exact| / |exact|, against fp64 of the inputs in 16 bits."""
        return self._in_eight_bits(step, n, head_dim, mask, False)["norm"]

    def against_in_eight_bits(self, step, what="mean", peer="CUDNN-FP8", head_dim=None, back_to_back=False,
                              alone=False):
        """How many times as fast as the peer, over all points where both were timed, or those of a head dim: "mean"
        (geometric), "least", "points". Back to back it is in slices, or each alone."""
        def seconds(step, *at):
            one = self._in_eight_bits(step, *at)
            return one["alone_seconds"] if alone else one["seconds"]["median"]

        points = [point for point in self._record.piece(f"fp8{beside_peers.B2B * back_to_back}")["points"]
                  if head_dim in (None, point["problem"]["head_dim"])]
        ratios = []
        for point in points:
            of = point["problem"]
            at = of["seq_q"], of["head_dim"], "causal" if of["causal"] else "full", back_to_back
            try:
                ratios.append(seconds(peer, *at) / seconds(step, *at))
            except Missing:
                continue
        if not ratios:
            raise Missing(f"{step} beside {peer} is not in the sweep fp8")
        known = {"mean": statistics.geometric_mean(ratios), "least": min(ratios), "points": len(ratios)}
        if what not in known:
            raise NotUnderstood(f"there is no {what} (there are {', '.join(known)})")
        return known[what]

    def product_in_eight_bits(self):
        """TFLOP/s of a large matrix product of e4m3 numbers, in the same process."""
        return 1e-12 * self._record.piece("fp8")["ceilings"]["matmul_fp8"]["flop_rate"]

    # Few queries and many keys: H = 32, no mask

    def decoding(self, what, step="11", queries=None, floor_from_us=0, floor_to_us=math.inf):
        """Over all points, or those with so many queries, or a floor in these limits, which is what K and V take at
        the rate of a long copy: their number ("points"), how many times as fast as the faster of FlashAttention-2
        and cuDNN ("mean", "least"), at how many at least as fast ("ahead"); at how many it reads at 95% of a copy's
        rate ("at_the_floor"), the least of these rates ("least_of_floor")."""
        return Decoding(self._record).summary(step, what, queries, 1e-6 * floor_from_us, 1e-6 * floor_to_us)

    # Bytes

    def device_bytes(self, step, n, direction=None):
        """Of device memory, B=1 H=8."""
        return self._row("memory", step, direction, seq_q=n).peak_bytes

    def dram_bytes(self, step, direction=None):
        """Read and written, N=4096, as Nsight Compute counts them."""
        direction = self._direction(step, direction)
        return self._record.profile(self._record.step(step, direction), direction)["dram_bytes"]

    def intensity(self, step, direction=None):
        """FLOP for a byte of DRAM, N=4096."""
        direction = self._direction(step, direction)
        profile = self._record.profile(self._record.step(step, direction), direction)
        return profile["flops"] / profile["dram_bytes"]

    def profiled(self, step, metric, kernel="", direction=None):
        """Nsight Compute's metric of the step's only kernel, or of the one whose name contains `kernel`, N=4096."""
        direction = self._direction(step, direction)
        launches = self._record.profile(self._record.step(step, direction), direction)["launches"]
        chosen = [launch for launch in launches if kernel in launch["kernel"]]
        if len(chosen) != 1:
            raise Missing(f"the profile of {step} has {len(chosen)} kernels {kernel}".rstrip())
        if metric not in chosen[0]:
            raise Missing(f"the profile of {step} has no {metric}")
        return chosen[0][metric]

    # The machine

    def matmul_tflops(self):
        return 1e-12 * self._record.ceiling("matmul")

    def copy_tbytes(self):
        """TB/s of a large copy, read and written."""
        return 1e-12 * self._record.ceiling("copy")

    # Its experiments (./workbook dev machine)

    def latency(self, level, unit="ns"):
        """Of a load from "registers", "shared", "L1", "L2" or "DRAM": nanoseconds, or "cycles"."""
        if level not in LATENCY:
            raise NotUnderstood(f"there is no level {level} (there are {', '.join(LATENCY)})")
        return self.experiment(LATENCY[level], unit)

    def bandwidth(self, level):
        """TB/s out of "registers", "shared", "L1", "L2" or "DRAM", of the whole GPU."""
        return 1e-12 * self.experiment(f"bandwidth/{level}", "bytes/s")

    def experiment(self, name, what):
        """experiment("branch/by_lane", "ms"), experiment("sum/fp16/4096", "error"), experiment("rate/fp32",
        "FLOP/s"): a counter of common/microbenchmarks."""
        return Microbenchmarks.of(self._record).value(name, what)

    def gpu(self, what):
        """What the driver says: "multiprocessors", "registers_of_multiprocessor", "shared_bytes_of_multiprocessor",
        "shared_bytes_of_block", "threads_of_multiprocessor", "l2_bytes", "dram_bytes", "sm_clock_max_mhz"."""
        return Microbenchmarks.of(self._record).size(what)

    # How far from fp64 (./workbook dev accuracy): 256 queries, no mask

    def relative_error(self, step, tensor, keys, dtype="fp16", head_dim=128):
        """|x - exact| / |exact| of "o", "dq", "dk" or "dv", whole tensors."""
        return self._result(step, tensor, "norms", seq_k=keys, dtype=dtype, head_dim=head_dim)

    def error_against(self, step, tensor, keys, dtype="fp16", head_dim=128):
        """The same, divided by that of FlashAttention-2."""
        return self._result(step, tensor, "ratios", seq_k=keys, dtype=dtype, head_dim=head_dim)

    def most_error_against(self, step, tensor, dtype=None, head_dim=None):
        """The largest of these, over all lengths, and both dtypes and head dims unless one is named."""
        of = {key: value for key, value in (("dtype", dtype), ("head_dim", head_dim)) if value is not None}
        ratios = [result["ratios"][tensor] for result in self._results(step, tensor, **of)
                  if tensor in result["ratios"]]
        if not ratios or None in ratios:
            raise Missing(f"{step} has no ratio of {tensor} everywhere in accuracy")
        return max(ratios)

    def _results(self, step: str, tensor: str, **problem: object) -> list[JsonObject]:
        name = self._record.step(step, "forward" if tensor == "o" else "backward")
        return [result for one in self._record.piece("accuracy")["errors"] if not one["problem"].get("extras")
                and problem.items() <= one["problem"].items()
                for result in one["results"] if result["name"] == name and "norms" in result]

    def _result(self, step, tensor, what, **problem):
        found = self._results(step, tensor, **problem)
        if len(found) != 1 or found[0][what].get(tensor) is None:
            where = " ".join(f"{field}={value}" for field, value in problem.items())
            raise Missing(f"{tensor} of {step}, {where} is not in accuracy")
        return found[0][what][tensor]

    def most_error_with(self, extra, tensor):
        """The largest of these with window1024_0, softcap20, alibi, sink or views, where no chapter is named: against
        FlashAttention-2 on the same problem, or without the extra if it has none."""
        ratios = [result["ratios"].get(tensor) for one in self._record.piece("accuracy")["errors"]
                  if one["problem"].get("extras") == extra for result in one["results"]
                  if result["kind"] == "chapter" and "ratios" in result]
        if not ratios or None in ratios:
            raise Missing(f"{extra} has no ratio of {tensor} everywhere in accuracy")
        return max(ratios)

    def scaled_error(self, step, tensor, exponent, dtype="fp16"):
        """|x - exact| / |exact| of "dq", "dk" or "dv" where dO is 2^exponent times the usual; infinite if there is
        anything that is not finite. N = 1024, D = 64."""
        name = self._record.step(step, "backward")
        for one in self._record.piece("accuracy")["loss_scaling"]:
            for result in one["results"]:
                if (one["problem"]["dtype"], result["name"]) == (dtype, name) and exponent in one["exponents"]:
                    norm = result["norms"][tensor][one["exponents"].index(exponent)]
                    return float("inf") if norm is None else norm
        raise Missing(f"{tensor} of {step}, dO * 2^{exponent}, {dtype} is not in accuracy")

    # A small GPT that was trained with one attention and another (common/python/examples)

    def trained(self, run, what):
        """trained("08_causal_earlystop", "loss"), or another of the values that Training.value names."""
        return Training.of(self._record).value(run, what)

    # Any file

    def entry(self, file, field, *path, again=False, **where):
        """A number of any file: entry("x.json", "ms.FA2", "B2_H16", N=512) is the field of that list's entry that has
        N = 512; with again=True, of the second measurement."""
        found: Any = (self._second if again else self._record).file(file)
        for part in path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                raise Missing(f"{file} has no {part} there") from None
        if where:
            matching = [one for one in found if all(one.get(key) == value for key, value in where.items())]
            if len(matching) != 1:
                raise Missing(f"{file}: {len(matching)} entries with {where}")
            found = matching[0]
        parts = field.split(".") if field not in found else [field]
        for part in parts:
            if part not in found:
                raise Missing(f"{file} has no {field} there")
            found = found[part]
        return found

    # What the SIMT engine counts, of B=1, H=2, N=256, D=64, fp16, no mask

    def counted(self, step, what, kernel="", direction=None):
        """As common/tests/trace/*.json name it: "global_load sectors", "barriers". Of all kernels of the step, or of
        those whose names contain `kernel`; of the forward, if the chapter has both directions and none is named."""
        return self._counts.sum(step, what, kernel, direction)

    def agreed(self, chapter, verdict):
        """How many of its kernels' counters, beside Nsight Compute's (./workbook dev verify), are "equal", "equal
        but for noise", "explained", "different", or stand "beside" a bound."""
        counters = [counter for launch in self._record.piece("engine-and-ncu")["launches"]
                    for counter in launch["counters"].values()
                    if launch["chapter"].split("_")[0] == chapter]
        if not counters:
            raise Missing(f"{chapter} is not in engine-and-ncu")
        return sum(counter["verdict"] == verdict for counter in counters)

    # Arithmetic

    def sqrt(self, x):
        return self._of_reals(math.sqrt, x)

    def exp(self, x):
        return self._of_reals(math.exp, x)

    def log(self, x):
        """The natural logarithm."""
        return self._of_reals(math.log, x)

    def floor(self, x):
        return self._of_reals(math.floor, x)

    def ceil(self, x):
        return self._of_reals(math.ceil, x)

    def min(self, *values):
        return self._of_reals(min, *values)

    def max(self, *values):
        return self._of_reals(max, *values)

    @staticmethod
    def _of_reals(function, *values):
        try:
            return function(*values)
        except (ValueError, OverflowError) as error:
            raise NotUnderstood(f"{function.__name__}{values}: {error}") from None
