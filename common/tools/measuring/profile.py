"""The chapters under Nsight Compute: time, bytes and tensor-core activity of each launch, for a problem of real size.

`run` is ./workbook bench --profile. Its JSON:

    context   the machine (tools/machine/system.py), tool, commit
    rungs     one for each rung and direction: chapter, rung, direction, problem, flops, launches [{kernel, metric: value}],
              and their sum: seconds (the profiler's, each launch cold), dram_bytes, l2_bytes
"""

from dataclasses import asdict, replace

from tools.machine import (RESULTS, Failure, Progress, amount_of_memory, build, chapters, say, shown, significant, slug, system,
                           table)
from tools.measuring import asked, ncu, peers
from tools.record import commit, results

TIME, CYCLES = "gpu__time_duration.sum", "sm__cycles_elapsed.max"
DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
L2 = "lts__t_bytes.sum"
TENSOR = "sm__inst_executed_pipe_tensor_op_hmma.sum"
METRICS = [TIME, CYCLES, *DRAM, L2, TENSOR, "launch__registers_per_thread"]

DEFAULT = [one for one in asked.PUBLISHED if one.seq_q == 4096]


def sums(launches: list) -> dict:
    return {"seconds": sum(launch[TIME] for launch in launches) * 1e-9,
            "dram_bytes": int(sum(launch[metric] for launch in launches for metric in DRAM)),
            "l2_bytes": int(sum(launch[L2] for launch in launches))}


def run(arguments) -> int:
    for flag in ("peers", "ladder", "keep"):
        if getattr(arguments, flag):
            raise Failure(f"--{flag} does not go with --profile", status=2)
    ncu.require()
    defaults = DEFAULT if not arguments.lengths else [
        replace(DEFAULT[0], seq_q=length, seq_k=length) for length in arguments.lengths]
    wanted = asked.from_arguments(arguments, defaults)
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    directory = build.ensure_built("cuda", [chapter.name for chapter in chosen])
    profiled = []
    with Progress("Profiling") as progress:
        for chapter in chosen:
            description = chapters.describe(chapter, [directory])
            for direction in [arguments.direction] if arguments.direction else ["forward", "backward"]:
                rungs = description.rungs_with(direction) if description else []
                for rung in rungs if not arguments.rung else [arguments.rung]:
                    for one in wanted:
                        progress.show(f"{chapter.name}/{rung} {direction} {one}")
                        command = [chapter.program(directory), "--check", *one.flags(), f"--direction={direction}",
                                   f"--rung={rung}"]
                        launches = ncu.one_pass(ncu.profile(command, METRICS))
                        profiled.append({"chapter": chapter.name, "rung": rung, "direction": direction,
                                         "problem": asdict(one), "flops": peers.flops(one, direction),
                                         **sums(launches), "launches": launches})
    if not profiled:
        raise Failure(f"no chapter named has a {arguments.direction}", status=2)
    rows = [["", "ms", "DRAM", "L2"]]
    for one in profiled:
        rows.append([f"{one['chapter']}/{one['rung']} {one['direction']} N={one['problem']['seq_q']}",
                     significant(one["seconds"] * 1e3), amount_of_memory(one["dram_bytes"]), amount_of_memory(one["l2_bytes"])])
    say(table(rows))
    machine = system.machine()
    path = arguments.out or RESULTS / slug(machine["gpu"]) / "profile.json"
    results.write(path, {"context": {**machine, "tool": "Nsight Compute, --clock-control none", "commit": commit()},
                         "rungs": profiled})
    say(f"JSON: {shown(path)}")
    return 0
