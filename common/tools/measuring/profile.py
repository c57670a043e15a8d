"""The chapters under Nsight Compute: time, bytes and tensor-core activity of each launch."""

from dataclasses import asdict
from pathlib import Path

from tools.base import JsonObject, Progress, chapters, cuda
from tools.measuring import ncu, problem_flags

TIME, CYCLES = "gpu__time_duration.sum", "sm__cycles_elapsed.max"
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
L2 = "lts__t_bytes.sum"
TENSOR = "sm__inst_executed_pipe_tensor_op_hmma.sum"
# Nsight Compute counts it on Hopper alone, once for each of four warps.
WGMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"
# How busy the schedulers are, and what keeps a warp from its next instruction: cycles of each reason for each
# instruction. The long scoreboard is memory behind L1, the short one shared memory and shuffles, MIO and LG are the
# queues of the load unit.
STALLS = [f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in
          ("long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "math_pipe_throttle", "barrier",
           "wait", "not_selected")]
ISSUE = ["smsp__inst_executed.sum", "smsp__issue_active.avg.pct_of_peak_sustained_active",
         "smsp__average_warp_latency_per_inst_issued.ratio"]
METRICS = [TIME, CYCLES, *DRAM, L2, TENSOR, "launch__registers_per_thread", *ISSUE, *STALLS]


def metrics() -> list[str]:
    """The metrics that this GPU has."""
    on_hopper = cuda.smi({"capability": "compute_cap"})["capability"] == 9.0
    return METRICS + [WGMMA] * on_hopper


def sums(launches: list[JsonObject]) -> JsonObject:
    return {"seconds": sum(launch[TIME] for launch in launches) * 1e-9,
            "dram_bytes": int(sum(launch[metric] for launch in launches for metric in DRAM)),
            "l2_bytes": int(sum(launch[L2] for launch in launches))}


def rungs(chosen: list[chapters.Chapter], problems: list[list[str]], directions: list[str], rung: "str | None",
          build_directory: Path) -> list[JsonObject]:
    """One for each rung (or the one named), direction and problem: chapter, rung, direction, problem, flops,
    launches [{kernel, metric: value}], and their sum: seconds (the profiler's, each launch cold), dram_bytes,
    l2_bytes."""
    profiled, wanted = [], metrics()
    with Progress("Profiling") as progress:
        for chapter in chosen:
            program, description = chapter.program(build_directory), chapters.describe(chapter, [build_directory])
            for direction in directions:
                for one in description.rungs_with(direction) if description else []:
                    for flags in problems if rung in (None, one) else []:
                        problem, flops = problem_flags.resolved(program, flags)
                        progress.show(f"{chapter.name}/{one} {direction} {problem}")
                        launches = ncu.one_pass(ncu.profile(
                            [program, "--check", *flags, f"--direction={direction}", f"--rung={one}"], wanted))
                        profiled.append({"chapter": chapter.name, "rung": one, "direction": direction,
                                         "problem": asdict(problem),
                                         "flops": flops[direction], **sums(launches), "launches": launches})
    return profiled
