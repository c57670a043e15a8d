"""The engine's counters beside Nsight Compute's, launch by launch, for the same programs and the same problem."""

import csv
import io
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.machine import Failure, Progress, bad, bold, build, good, output_of, say, started, system, table
from tools.record import commit

# Our name -> Nsight Compute's metrics, which add up to it. Bank conflicts there are counted too high and wavefronts with
# them: now and then the unit is taken by something else and the cycle counts as both. Their difference is exact, so
# it is what is compared with wavefronts less conflicts.
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
# Nothing that an exact count could equal: caches decide. They stand beside the engine's bound.
BOUNDS = ("DRAM bytes read", "DRAM bytes written", "L2 sectors")


@dataclass(frozen=True)
class Reason:
    """Why a GPU has fewer, or more, than the source says."""

    text: str
    fewer: bool
    least: "Callable[[dict], int]" = lambda engine: 0  # of the engine's counters: fewer than that it does not explain


# Differences that are known, and why, as nvcc's machine code shows it: {kernel: {counter: reason}}. They go by the
# kernel alone, whichever chapters and rungs it is in: by its own name, or with a namespace and what it is a template of.
FUSED_STORES = Reason("nvcc combines the eight neighbouring stores of o_smem into two of 16 bytes", fewer=True)
COMBINED_LOADS = Reason("nvcc loads neighbours of LSE and D together, and once for the two rows of a fragment", fewer=True)
COMBINED_PLACE = Reason("nvcc stores the two numbers of a block's place together", fewer=True)
WAITING = Reason("a GPU looks at a semaphore until it is this block's turn; the engine has it at once", fewer=False)
UNROLLED = Reason("nvcc unrolls the loop over a row's visible keys by four: lanes with 4n keys and with 4n - 1 go through it "
                  "apart", fewer=False)
PREDICATE = Reason("nvcc wrote the predicate of some or all cp.async without a negation, and Nsight Compute takes each of their "
                   "four passes for one wavefront", fewer=True, least=lambda engine: 4 * engine["cp.async instructions"])
EXPLAINED = {
    "rope_fused::forward": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_async<2, 4096, 0>": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_halves_async<0>": {"cp.async wavefronts": PREDICATE},
    "patterns::copy_halves_async_predicate<0>": {"cp.async wavefronts": PREDICATE},
    "attention_forward": {"shared store wavefronts": FUSED_STORES, "shared store conflicts": FUSED_STORES,
                          "shared load wavefronts": UNROLLED},
    "dk_dv": {"shared load wavefronts": COMBINED_LOADS},
    "gradients": {"shared load wavefronts": COMBINED_LOADS, "shared store wavefronts": COMBINED_PLACE,
                  "global load requests": WAITING, "global load sectors": WAITING},
}


def engine_counters(launch: dict) -> dict:
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
        "DRAM bytes read": moved["read"]["launch"],
        "DRAM bytes written": moved["written"]["launch"],
        "L2 sectors": (moved["read"]["blocks"] + moved["written"]["warps"]) // 32,
    }


def require() -> str:
    """The profiler's path; Failure without it or without a GPU."""
    path = shutil.which("ncu") or next((str(p) for p in sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if path is None:
        raise Failure("there is no ncu on the PATH or in /usr/local/cuda: install Nsight Compute")
    gpu, why = system.find_gpu()
    if gpu is None:
        raise Failure(f"--ncu needs a GPU: {why}")
    return path


def patterns(build_directory: Path) -> Path:
    return build_directory / "common" / "tests" / "trace" / "trace_patterns"


def read_counts(path: Path, chosen: list) -> dict:
    try:
        counted = json.loads(path.read_text())
        wanted = {chapter.name for chapter in chosen} | {"patterns"}
        counted["chapters"] = [chapter for chapter in counted["chapters"] if chapter["chapter"] in wanted]
        whole = "problem" in counted and all(
            "direction" in chapter and all("launches" in rung for rung in chapter["rungs"]) for chapter in counted["chapters"])
        if not whole:
            raise KeyError
        # Every chapter's direction and rungs stand beside its counts.
        counted["flags"] = [flag for flag in counted["flags"] if not flag.startswith(("--direction", "--rung"))]
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2)
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path} does not hold the engine's counts: make it with ./workbook trace --json", status=2)
    missing = {chapter.name for chapter in chosen} - {chapter["chapter"] for chapter in counted["chapters"]}
    if missing:
        raise Failure(f"{path} holds no counts of {', '.join(sorted(missing))}: make it with ./workbook trace --json", status=2)
    return counted


def profile(program: list, metrics: list) -> list:
    """[{"kernel": .., metric: value, ..}] of every launch, in their order."""
    command = [require(), "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(metrics), *program]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output, _ = process.communicate()
    launches = parse(output)
    if process.returncode != 0 or not launches:
        lines = [line for line in output.splitlines() if "==ERROR==" in line] or output.strip().splitlines() or ["no output"]
        raise Failure(f"ncu could not profile {Path(str(program[0])).name}: {lines[0].replace('==ERROR== ', '')}")
    return launches


def parse(output: str) -> list:
    """ncu's CSV, which follows whatever the program and ncu itself print: a line for every metric of every launch."""
    lines = output.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(line for line in lines[begin:] if line.startswith('"')))):
        launch = launches.setdefault(int(row["ID"]), {"kernel": row["Kernel Name"]})
        launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [launches[i] for i in sorted(launches)]


def one_pass(launches: list) -> list:
    """Of all that a program with --check launches, one pass. It runs the pass twice, the second time between guard bands; a
    backward has a forward before that. So the launches end with the longest sequence of kernels that stands there twice."""
    names = [launch["kernel"] for launch in launches]
    for count in range(len(names) // 2, 0, -1):
        if names[-count:] == names[-2 * count : -count]:
            return launches[-2 * count : -count]
    raise Failure(f"no pass is there twice: {', '.join(names)}")


def measured_counters(launch: dict) -> dict:
    return {name: int(sum(launch[metric] * factor for metric, factor in metrics.items()))
            for name, metrics in METRICS.items() if all(metric in launch for metric in metrics)}


def explanation(kernel: str, name: str, engine: int, measured: int, counted: dict) -> str:
    """The reason for a difference of this sign and size; empty if none is known."""
    for key in (kernel, kernel.split("<")[0], own_name(kernel)):
        reason = EXPLAINED.get(key, {}).get(name)
        if reason and (reason.least(counted) <= measured < engine if reason.fewer else measured > engine):
            return reason.text
    return ""


def judged(kernel: str, name: str, engine: dict, measured: dict) -> "tuple[str, str]":
    """What a counter is, and why: equal; equal but for noise (see METRICS); beside (a bound, nothing to be equal to); explained;
    or different."""
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
            why = explanation(kernel, wavefronts, *without, engine)
            if without[0] == without[1] or why and what == "conflicts":
                return "equal but for noise", ""
            if why:
                return "explained", why + (f"; {noise} more are noise" if noise else "")
    why = explanation(kernel, name, engine[name], measured[name], engine)
    return ("explained", why) if why else ("different", "")


def beside(kernel: str, name: str, engine: dict, measured: dict) -> dict:
    """A counter as the results keep it."""
    verdict, why = judged(kernel, name, engine, measured)
    return {"engine": engine[name], "ncu": measured[name], "verdict": verdict, **({"why": why} if why else {})}


def compare(counted: dict, out: "Path | None") -> int:
    directory = build.ensure_built("cuda", None if not counted["chapters"] else [
        "trace_patterns" if chapter["chapter"] == "patterns" else chapter["chapter"] for chapter in counted["chapters"]])
    metrics = [metric for group in METRICS.values() for metric in group]
    compared = []
    with Progress("Profiling") as progress:
        for chapter in counted["chapters"]:
            for rung in chapter["rungs"]:
                progress.show(f"{chapter['chapter']}/{rung['rung']} {chapter['direction']}")
                if chapter["chapter"] == "patterns":
                    command, those = [patterns(directory)], list
                else:
                    program = directory / chapter["chapter"] / chapter["chapter"]
                    command = [program, "--check", *counted["flags"], f"--direction={chapter['direction']}",
                               f"--rung={rung['rung']}"]
                    those = one_pass
                for launch in side_by_side(f"{chapter['chapter']}/{rung['rung']}", rung["launches"],
                                           lambda: those(profile(command, metrics))):
                    compared.append({"chapter": chapter["chapter"], "rung": rung["rung"],
                                     "direction": chapter["direction"], **launch})
    return report(counted, compared, out)


def side_by_side(where: str, ours: list, take) -> list:
    """[{"kernel", "counters"}] of the engine's launches and of those that `take` profiles. Noise only adds: where something is
    different, it is profiled again, twice at most, and the least counts."""
    for profiled in range(3):
        launches = take()
        if len(launches) != len(ours):
            raise Failure(f"{where}: {len(launches)} launches on the GPU, {len(ours)} on the engine")
        for launch, theirs in zip(ours, launches):
            if own_name(launch["kernel"]) != own_name(theirs["kernel"]):
                raise Failure(f"{where}: {own_name(theirs['kernel'])} on the GPU, {own_name(launch['kernel'])} on the engine")
        latest = [measured_counters(launch) for launch in launches]
        least = latest if profiled == 0 else [
            {name: min(count, more[name]) for name, count in so_far.items()} for so_far, more in zip(least, latest)]
        compared = [{"kernel": launch["kernel"],
                     "counters": {name: beside(launch["kernel"], name, engine_counters(launch), counters) for name in counters}}
                    for launch, counters in zip(ours, least)]
        if not any(counter["verdict"] == "different" for launch in compared for counter in launch["counters"].values()):
            break
    return compared


def own_name(kernel: str) -> str:
    """A kernel's name alone: without what it returns and takes, and without namespaces, which are written differently."""
    named = kernel.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    return re.split("[<(]", named)[0].rpartition("::")[2].split(" ")[-1]


def report(counted: dict, compared: list, out: "Path | None") -> int:
    context = {**_context(), "problem": counted["problem"]}
    say(bold(f"\n{context['device']}, {counted['problem']}: engine / Nsight Compute") + "\n")
    tally = {}
    for launch in compared:
        rows = []
        for name, counter in launch["counters"].items():
            tally[counter["verdict"]] = tally.get(counter["verdict"], 0) + 1
            if counter["engine"] == counter["ncu"] == 0 or (
                    launch["chapter"] == "patterns" and counter["verdict"] != "different"):
                continue
            word = counter["verdict"]
            mark = good(word) if word.startswith("equal") else bad(word) if word == "different" else word
            if word == "explained":
                mark += ": " + counter["why"]
            rows.append([name, f"{counter['engine']:,}", f"{counter['ncu']:,}", mark])
        if rows:
            say(bold(f"{launch['chapter']}/{launch['rung']} {launch['direction']}: {launch['kernel']}"))
            say(table([["counter", "engine", "ncu", ""], *rows]) + "\n")
    say(", ".join(f"{count} {word}" for word, count in sorted(tally.items())))
    if out:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps({"context": context, "launches": compared}, indent=1) + "\n")
        except OSError as error:
            raise Failure(f"cannot write {out}: {error.strerror}")
    return 1 if tally.get("different") else 0


def _context() -> dict:
    query = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit"
    answer = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], timeout=60) or ""
    values = [value.strip() for value in answer.strip().splitlines()[0].split(",")] if answer.strip() else []
    names = ("device", "driver", "sm_clock", "sm_clock_max", "memory_clock", "power_limit")
    version = (output_of([require(), "--version"]) or "").strip().splitlines()[-1:]
    nvcc = system.find_nvcc()
    return {
        **dict(zip(names, values)),
        "tool": "Nsight Compute, --clock-control none",
        "tool_version": version[0] if version else "",
        "nvcc": system.dotted(nvcc.version) if nvcc else "",
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }
