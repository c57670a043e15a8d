"""The engine's counters beside Nsight Compute's, launch by launch, for the same programs and the same problems."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tools.base import Failure, JsonObject, Progress, build
from tools.measuring import ncu
from tools.measuring.engine_counts import PATTERNS, patterns
from tools.record import read_label

# Our name -> Nsight Compute's metrics, which add up to it. Bank conflicts there are counted too high and wavefronts
# with them: now and then the unit is taken by something else and the cycle counts as both. Their difference is exact,
# so it is what is compared with wavefronts less conflicts.
L1 = "l1tex__"
METRICS = {
    "global load requests": {f"{L1}t_requests_pipe_lsu_mem_global_op_ld.sum": 1},
    "global load sectors": {f"{L1}t_sectors_pipe_lsu_mem_global_op_ld.sum": 1},
    "global store requests": {f"{L1}t_requests_pipe_lsu_mem_global_op_st.sum": 1},
    "global store sectors": {f"{L1}t_sectors_pipe_lsu_mem_global_op_st.sum": 1},
    "global atomic requests": {f"{L1}t_requests_pipe_lsu_mem_global_op_{op}.sum": 1 for op in ("red", "atom")},
    "global atomic sectors": {f"{L1}t_sectors_pipe_lsu_mem_global_op_{op}.sum": 1 for op in ("red", "atom")},
    "shared load wavefronts": {f"{L1}data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 1},
    "shared load conflicts": {f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 1},
    "shared store wavefronts": {f"{L1}data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 1},
    "shared store conflicts": {f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": 1},
    "ldmatrix instructions": {"smsp__inst_executed_op_ldsm.sum": 1},
    "cp.async instructions": {"smsp__inst_executed_op_ldgsts.sum": 1},
    "cp.async wavefronts": {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum": 1},
    "DRAM bytes read": {"dram__bytes_read.sum": 1},
    "DRAM bytes written": {"dram__bytes_write.sum": 1},
    "L2 sectors": {"lts__t_sectors.sum": 1},
}
# What only Hopper has, and Nsight Compute counts on no other GPU: what bulk copies bring through L1 and take away, and
# wgmma, whose instructions count once for each of four warps.
HOPPER = {
    "bulk load bytes": {f"{L1}m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum": 1},
    "bulk store bytes": {f"{L1}m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum": 1},
    "wgmma instructions": {"sm__inst_executed_pipe_tensor_op_gmma.sum": 1},
    "wgmma wavefronts": {f"{L1}data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum": 1},
    "wgmma conflicts": {f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum": 1},
}
# Nothing that an exact count could equal: caches decide. They stand beside the engine's bound.
BOUNDS = ("DRAM bytes read", "DRAM bytes written", "L2 sectors")


@dataclass(frozen=True)
class Reason:
    """Why a GPU has fewer, or more, than the source says."""

    text: str
    fewer: "bool | None"  # None: whichever it is
    # The fewest that it explains, from the engine's counters.
    least: Callable[[dict[str, int]], int] = lambda engine: 0


# Differences that are known, and why, as nvcc's machine code shows it: {kernel: {counter: reason}}. They go by the
# kernel alone, whichever chapters and rungs it is in: by its own name, or with a namespace and what it is a template
# of.
COMBINED_LOADS = Reason("nvcc loads neighbours of LSE and D together, and once for the two rows of a fragment",
                        fewer=True)
COMBINED_PLACE = Reason("nvcc stores the two numbers of a block's place together", fewer=True)
WAITING = Reason("a GPU looks at a semaphore until it is this block's turn; the engine has it at once", fewer=False)
UNROLLED = Reason("nvcc unrolls the loop over a row's visible keys by four: lanes with 4n keys and with 4n - 1 go "
                  "through it apart", fewer=False)
PREDICATE = Reason("nvcc wrote the predicate of some or all cp.async without a negation, and Nsight Compute takes each "
                   "of their "
                   "four passes for one wavefront", fewer=True,
                   least=lambda engine: 4 * engine["cp.async instructions"])
GUARDED = Reason("nvcc guards the copy of LSE and D with a predicate instead of a branch: warps that have nothing to "
                 "copy issue it, too", fewer=False)
ONE_BY_ONE = Reason("nvcc stores a lane's four scores one by one instead of 16 bytes at once, and each of these stores "
                    "has the conflicts of lanes that are 16 bytes apart", fewer=False)
GRID_BARRIER = Reason("on a GPU the barrier of a grid is an atomic addition by each block and a loop that reads; the "
                      "engine has neither", fewer=False)
EXCLUDED = Reason("Nsight Compute adds as many wavefronts as there are lanes that the predicate of a cp.async leaves "
                  "out", fewer=False)
ORDER = Reason("the order in which the warps of a grid get their places is not defined, and with it where these lie in "
               "the sectors",
               fewer=None)
ONE_MORE = Reason("nvcc loads eight neighbours as two vectors, though the source needs seven of them", fewer=True)
BESIDE_PRODUCTS = Reason("the machine code has as many loads and stores as the engine counts; beside products of "
                         "wgmma, which read shared "
                         "memory, too, Nsight Compute counts more wavefronts of them", fewer=False)
JOINED = Reason(
    "nvcc joins what a thread loads or stores side by side, number by number in the source, into one access",
                fewer=True)
IN_SHARED_MEMORY = [f"shared {kind} {what}" for kind in ("load", "store") for what in ("wavefronts", "conflicts")]
EXPLAINED = {
    "hopper::forward": dict.fromkeys(IN_SHARED_MEMORY, BESIDE_PRODUCTS),
    "hopper::gradients": dict.fromkeys(IN_SHARED_MEMORY, BESIDE_PRODUCTS),
    "split_kv::forward": {"shared load wavefronts": JOINED, "shared load conflicts": JOINED},
    "key_parts::merge_kernel": {"shared store wavefronts": JOINED, "shared store conflicts": JOINED},
    "rope_fused::forward": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_async<2, 4096, 0>": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_halves_async<0>": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_halves_async_predicate<0>": {"cp.async wavefronts": PREDICATE},
    "online_softmax::attention_forward<__half>": {"shared store wavefronts": ONE_BY_ONE,
                                                  "shared store conflicts": ONE_BY_ONE},
    "attention_forward": {"shared load wavefronts": UNROLLED},
    "dk_dv": {"shared load wavefronts": COMBINED_LOADS},
    "dq": {"cp.async instructions": GUARDED},
    "gradients": {"shared load wavefronts": COMBINED_LOADS, "shared store wavefronts": COMBINED_PLACE,
                  "global load requests": WAITING, "global load sectors": WAITING},
    "tensor": {"cp.async wavefronts": EXCLUDED},
    "compact": {"global store sectors": ORDER},
    "sum_of_grid": {"shared load wavefronts": ONE_MORE,
                    **{f"global {kind} {what}": GRID_BARRIER for kind in ("load", "atomic")
                       for what in ("requests", "sectors")}},
}


def engine_counters(launch: JsonObject) -> dict[str, int]:
    """The engine's counts under the names above."""
    totals = launch["totals"]

    def total(field: str, *ops: str) -> int:
        return sum(totals[op][field] for op in ops if op in totals)

    loads, stores = ("global_load", "copy_load"), ("global_store",)
    shared_loads, shared_stores = ("shared_load", "ldmatrix"), ("shared_store",)
    moved = launch["bytes"]
    return {
        "global load requests": total("requests", *loads),
        "global load sectors": total("sectors", *loads),
        "global store requests": total("requests", *stores),
        "global store sectors": total("sectors", *stores),
        "global atomic requests": total("requests", "global_atomic"),
        "global atomic sectors": total("sectors", "global_atomic"),
        "shared load wavefronts": total("wavefronts", *shared_loads),
        "shared load conflicts": total("wavefronts", *shared_loads) - total("ideal", *shared_loads),
        "shared store wavefronts": total("wavefronts", *shared_stores),
        "shared store conflicts": total("wavefronts", *shared_stores) - total("ideal", *shared_stores),
        "ldmatrix instructions": total("requests", "ldmatrix"),
        "cp.async instructions": total("requests", "copy_store"),
        "cp.async wavefronts": total("wavefronts", "copy_store"),
        "bulk load bytes": total("bytes", "bulk_load"),  # of whole boxes: what is outside of the tensor comes as zeros
        "bulk store bytes": 32 * total("sectors", "bulk_store"),
        "wgmma instructions": total("requests", "wgmma"),
        "wgmma wavefronts": total("wavefronts", "wgmma"),
        "wgmma conflicts": total("wavefronts", "wgmma") - total("ideal", "wgmma"),
        "DRAM bytes read": moved["read"]["launch"],
        "DRAM bytes written": moved["written"]["launch"],
        "L2 sectors": (moved["read"]["blocks"] + moved["written"]["warps"]) // 32,
    }


def measured_counters(launch: JsonObject) -> dict[str, int]:
    return {name: int(sum(launch[metric] * factor for metric, factor in metrics.items()))
            for name, metrics in {**METRICS, **HOPPER}.items() if all(metric in launch for metric in metrics)}


def explanation(kernel: str, name: str, engine: int, measured: int, counted: dict[str, int]) -> str:
    """The reason for a difference of this sign and size; empty if none is known."""
    for key in (kernel, kernel.split("<")[0], own_name(kernel)):
        reason = EXPLAINED.get(key, {}).get(name)
        if reason is None:
            continue
        fewer, more = reason.least(counted) <= measured < engine, measured > engine
        if fewer and reason.fewer is not False or more and not reason.fewer:
            return reason.text
    return ""


def judged(kernel: str, name: str, engine: dict[str, int], measured: dict[str, int]) -> tuple[str, str]:
    """(verdict, why): equal; equal but for noise (see METRICS); beside (a bound); explained; or different."""
    if name in BOUNDS:
        return "beside", ""
    if engine[name] == measured[name]:
        return "equal", ""
    kind, _, what = name.rpartition(" ")
    if what in ("wavefronts", "conflicts") and f"{kind} conflicts" in engine:
        wavefronts, conflicts = f"{kind} wavefronts", f"{kind} conflicts"
        noise = measured[conflicts] - engine[conflicts]
        if 0 <= noise <= 0.05 * engine[wavefronts]:
            without = [counters[wavefronts] - counters[conflicts] for counters in (engine, measured)]
            why = explanation(kernel, wavefronts, without[0], without[1], engine)
            if without[0] == without[1] or why and what == "conflicts":
                return "equal but for noise", ""
            if why:
                return "explained", why + (f"; {noise} more are noise" if noise else "")
    why = explanation(kernel, name, engine[name], measured[name], engine)
    return ("explained", why) if why else ("different", "")


def beside(kernel: str, name: str, engine: dict[str, int], measured: dict[str, int]) -> JsonObject:
    """A counter as the results keep it."""
    verdict, why = judged(kernel, name, engine, measured)
    return {"engine": engine[name], "ncu": measured[name], "verdict": verdict, **({"why": why} if why else {})}


def compare(counted: JsonObject) -> list[JsonObject]:
    """[{"chapter", "rung", "direction", "kernel", "counters"}] of every launch that the engine has counted."""
    directory = build.ensure_built("cuda", None if not counted["chapters"] else [
        "trace_patterns" if chapter["chapter"] == PATTERNS else chapter["chapter"] for chapter in counted["chapters"]])
    compared = []
    with Progress("Profiling") as progress:
        for chapter in counted["chapters"]:
            for rung in chapter["rungs"]:
                progress.show(f"{chapter['chapter']}/{rung['rung']} {chapter['direction']}")
                metrics = metrics_for(rung["launches"])
                command: list[object]
                if chapter["chapter"] == PATTERNS:
                    command, those = [patterns(directory)], every_launch
                else:
                    program = directory / chapter["chapter"] / chapter["chapter"]
                    command = [program, "--check", *read_label(chapter["problem"])[0].flags(),
                               f"--direction={chapter['direction']}", f"--rung={rung['rung']}"]
                    those = ncu.one_pass
                for launch in side_by_side(f"{chapter['chapter']}/{rung['rung']}", rung["launches"],
                                           lambda: those(ncu.profile(command, metrics))):
                    compared.append({"chapter": chapter["chapter"], "rung": rung["rung"],
                                     "direction": chapter["direction"], **launch})
    return compared


def every_launch(launches: list[JsonObject]) -> list[JsonObject]:
    return launches


def metrics_for(launches: list[JsonObject]) -> list[str]:
    """What Nsight Compute is to count beside what the engine has counted."""
    on_hopper = any(op in launch["totals"] for launch in launches for op in ("bulk_load", "wgmma"))
    return [metric for group in {**METRICS, **(HOPPER if on_hopper else {})}.values() for metric in group]


def side_by_side(where: str, ours: list[JsonObject], take: Callable[[], list[JsonObject]]) -> list[JsonObject]:
    """[{"kernel", "counters"}] of the engine's launches and of those that `take` profiles. Noise only adds: where
    something is different, it is profiled again, twice at most, and the least counts."""
    least: list[dict[str, int]] = []
    for _ in range(3):
        launches = take()
        if len(launches) != len(ours):
            raise Failure(f"{where}: {len(launches)} launches on the GPU, {len(ours)} on the engine")
        for launch, theirs in zip(ours, launches):
            if own_name(launch["kernel"]) != own_name(theirs["kernel"]):
                raise Failure(f"{where}: {own_name(theirs['kernel'])} on the GPU, {own_name(launch['kernel'])} on the "
                              "engine")
        latest = [measured_counters(launch) for launch in launches]
        least = latest if not least else [
            {name: min(count, more[name]) for name, count in so_far.items()} for so_far, more in zip(least, latest)]
        compared = [{"kernel": launch["kernel"],
                     "counters": {name: beside(launch["kernel"], name, engine_counters(launch), counters)
                                  for name in counters}}
                    for launch, counters in zip(ours, least)]
        if not any(counter["verdict"] == "different" for launch in compared for counter in launch["counters"].values()):
            break
    return compared


def own_name(kernel: str) -> str:
    """A kernel's name alone: without return type, parameters and namespaces, which the two write differently."""
    named = kernel.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    return re.split("[<(]", named)[0].rpartition("::")[2].split(" ")[-1]
