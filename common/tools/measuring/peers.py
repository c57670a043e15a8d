"""Chapters beside the attention that users would pick instead: what is measured, and the arithmetic on it.

`run` builds the shared library of all chapters, has tools/measuring/peers_main.py measure in a
Python that has PyTorch, and keeps its JSON. The JSON, one file a run:

    context   gpu, capability, driver, cuda (PyTorch's), torch, cudnn, commit, date, l2_bytes,
              before and after: SM and memory clocks in MHz, power in W, temperature in C, as nvidia-smi gives them,
              clocks_max_mhz, power_limit_w
    what      the sweep and its restrictions, in a word
    ceilings  what this GPU reached in the same process, timed like everything else: matmul {flop_rate, seconds}, a matrix
              product of two 8192 x 8192 matrices in fp16; copy {byte_rate, seconds}, 1 GiB read and written
    absent    {peer: why it could not be asked}
    points    one for each problem and direction:
      problem, direction, flops, baseline (what its ratios are to), rope (whether q and k are rotated first: by the chapter, or by PyTorch before its FLASH)
      results   one for each chapter or peer: name, kind (chapter, peer), and either
                  seconds {median, p10, p90, min, max}, samples (seconds, in the order taken), flop_rate (FLOP/s),
                  late (launches that were repeated: the GPU got there before the CPU had enqueued them),
                  error and tolerance (of the result, against fp64: what was checked before any timing),
                  ratio (seconds of FLASH / seconds: above 1 is faster than FLASH; null without FLASH. With rope the
                  measure is compiled+FLASH, where torch.compile has made one kernel of the rotations)
                or  skipped (why), or wrong (what: it was not timed)
    summary   one for each name and direction: points, geometric_mean, lowest and highest of the ratios
"""

import json
import math
import os
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path

from tools.machine import BUILD, RESULTS, ROOT, Failure, Progress, build, chapters, follow, shown, significant, slug, system
from tools.measuring.asked import from_arguments
from tools.record import Problem, commit, results

BASELINE = "FLASH"  # PyTorch's FLASH backend, which is FlashAttention-2: what ratios are against
PEERS = ["FLASH", "CUDNN", "MATH", "FA3", "FA4"]
ROPE_BASELINE = "compiled+FLASH"
ROPE_PEERS = ["eager+FLASH", "compiled+FLASH"]
SWEEPS = {
    "fa": "the FlashAttention papers': 16384 tokens, H * D = 2048, D = 64 and 128, N = 512 ... 16384, full and causal",
    "seed": "B=2 H=16 D=64 causal, N = 512 ... 8192",
}

# How long the launches of one candidate at one point may take together (--patience), and how many they are. They are meant
# to take a fifth of it; a candidate whose fewest launches would take longer is left out there.
PATIENCE, FEWEST, MOST = 2.5, 3, 40


# --- What is measured ------------------------------------------------------------------------------------------------


def sweep(name: str, dtype: str = "fp16", head_dim: "int | None" = None, causal: "bool | None" = None) -> list:
    """The problems of a sweep, shortest first; head_dim and causal None: all that it has."""
    if name == "seed":
        lengths, wanted, masks = [512, 1024, 2048, 4096, 8192], [head_dim or 64], [True if causal is None else causal]
    else:
        lengths = [512, 1024, 2048, 4096, 8192, 16384]
        wanted, masks = [head_dim] if head_dim else [64, 128], [False, True] if causal is None else [causal]
        if head_dim and 2048 % head_dim:
            raise Failure(f"--head-dim is {head_dim}: in the sweep fa it must divide H * D = 2048", status=2)

    def problem(length: int, size: int, mask: bool) -> Problem:
        batch, heads = (2, 16) if name == "seed" else (16384 // length, 2048 // size)
        return Problem(batch, heads, heads, length, length, size, dtype, mask)

    return [problem(length, size, mask) for size in wanted for mask in masks for length in lengths]


def problems(arguments) -> tuple:
    """(the problems, a word for them) that the user asks for."""
    name = arguments.sweep or "fa"
    points = sweep(name, arguments.dtype or "fp16", arguments.head_dim, arguments.causal)
    wanted = from_arguments(arguments, points)
    what = [name if wanted == points else "custom", points[0].dtype]
    what += [f"d{arguments.head_dim}"] if arguments.head_dim else []
    what += [] if arguments.causal is None else ["causal" if arguments.causal else "full"]
    return wanted, "-".join(what)


def flops(problem: Problem, direction: str) -> float:
    """As FlashAttention counts them: 4 B H Nq Nk D, half of it when causal, 2.5 times that backward."""
    full = 4.0 * problem.batch * problem.heads * problem.seq_q * problem.seq_k * problem.head_dim
    return full * (0.5 if problem.causal else 1) * (2.5 if direction == "backward" else 1)


# --- How it is measured ----------------------------------------------------------------------------------------------


def predicted_seconds(known: list, problem: Problem) -> "float | None":
    """One launch, at the pace of the most similar launch known: [(problem, seconds)]. Work that is not skipped counts
    whole: kernels that do the masked half too are the slow ones."""
    def work(one: Problem) -> float:
        return flops(replace(one, causal=False), "forward")

    if not known:
        return None
    nearest, seconds = min(known, key=lambda pair: (pair[0].head_dim != problem.head_dim,
                                                    pair[0].causal != problem.causal,
                                                    abs(math.log(work(pair[0]) / work(problem)))))
    return seconds * work(problem) / work(nearest)


def too_slow(seconds: float, patience: float = PATIENCE) -> "str | None":
    """Why a launch of that many seconds is not timed; None if it is."""
    if seconds * (FEWEST + 1) <= patience:  # and one to check
        return None
    return f"one launch would take about {significant(seconds, 2)} s: more than this benchmark waits for"


def launches(seconds: float, patience: float = PATIENCE) -> int:
    return max(FEWEST, min(MOST, int(patience / 5 / seconds)))


def has_turn(count: int, rounds: int, number: int) -> bool:
    """Whether one with `count` launches in `rounds` rounds has one in round `number`: evenly spread."""
    return (number + 1) * count // rounds > number * count // rounds


def spread(samples: list) -> dict:
    ordered = sorted(samples)

    def percentile(share: float) -> float:  # linear between neighbours
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return {"median": statistics.median(ordered), "p10": percentile(0.1), "p90": percentile(0.9), "min": ordered[0],
            "max": ordered[-1]}


def baseline_of(point: dict) -> str:
    return ROPE_BASELINE if point.get("rope") else BASELINE


def add_ratios(points: list) -> None:
    """Gives every point the name of its baseline, and every result with a time its ratio."""
    for point in points:
        name = point["baseline"] = baseline_of(point)
        baseline = next((r["seconds"]["median"] for r in point["results"] if r["name"] == name and "seconds" in r), None)
        for result in point["results"]:
            if "seconds" in result:
                result["ratio"] = baseline / result["seconds"]["median"] if baseline else None


def summary(points: list) -> list:
    ratios = {}
    for point in points:
        for result in point["results"]:
            if result["name"] != point["baseline"] and result.get("ratio"):
                key = result["name"], point["direction"], point["baseline"]
                ratios.setdefault(key, []).append(result["ratio"])
    return [{"name": name, "direction": direction, "baseline": baseline, "points": len(values),
             "geometric_mean": statistics.geometric_mean(values), "lowest": min(values), "highest": max(values)}
            for (name, direction, baseline), values in ratios.items()]


# --- The command -----------------------------------------------------------------------------------------------------


def run(arguments) -> tuple:
    """(the report, the file that holds it)"""
    if arguments.preset == "cpu":
        raise Failure("--peers needs a GPU, and --preset cpu leaves it out", status=2)
    if arguments.rung and arguments.all_rungs:
        raise Failure("--rung and --all-rungs exclude each other", status=2)
    if arguments.patience is not None and not arguments.patience > 0:
        raise Failure(f"--patience is {arguments.patience:g}: it must be more than 0 seconds", status=2)
    if arguments.passed_on:
        raise Failure(f"{arguments.passed_on[0]}: --peers does not use Google Benchmark", status=2)
    if arguments.ladder or arguments.keep:
        raise Failure(f"{'--ladder' if arguments.ladder else '--keep'} does not go with --peers: --sweep says what is timed, "
                      "and it is kept", status=2)
    wanted, what = problems(arguments)
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    gpu, no_gpu = system.find_gpu()
    if not gpu:
        raise Failure(f"--peers needs a GPU: {no_gpu}")
    python = python_with_torch()
    system.choose_preset("cuda", (gpu, ""))  # says so if nvcc is missing
    library = build.ensure_built("cuda", ["flash_attention_workbook"]) / "common/capi/libflash_attention_workbook.so"

    if len(chosen) < len(chapters.all_chapters()):
        what += "".join(f"-{chapter.name}" for chapter in chosen)
    what += f"-{arguments.rung}" if arguments.rung else "-rungs" if arguments.all_rungs else ""
    what += "-backward" if arguments.direction == "backward" else ""
    default = (RESULTS / slug(gpu.name) if not what.startswith("custom") else build.directory("cuda") / "bench")
    path = arguments.out or default / f"peers-{what}.json"
    request = {
        "problems": [asdict(problem) for problem in wanted],
        "chapters": [chapter.name for chapter in chosen],
        "rung": arguments.rung,
        "all_rungs": arguments.all_rungs,
        "directions": [arguments.direction] if arguments.direction else ["forward", "backward"],
        "seed": arguments.seed or 0,
        "patience": arguments.patience or PATIENCE,
        "what": what,
        "commit": commit(),
    }
    report = _measured(python, library, request)
    results.write(path, report)
    return report, path


def python_with_torch() -> str:
    python = system.python_with("torch")
    if python is None:
        named = os.environ.get("WORKBOOK_PYTHON")
        where = f"{named} (WORKBOOK_PYTHON)" if named else f"{sys.executable} and the python3 on the PATH"
        raise Failure(f"--peers needs PyTorch with CUDA, which {where} {'lacks' if named else 'lack'}: install it "
                      "(pip install torch), or name a Python that has it in WORKBOOK_PYTHON")
    return python


def _measured(python: str, library: Path, request: dict) -> dict:
    out = BUILD / "peers.json"
    out.unlink(missing_ok=True)
    log_path = BUILD / "peers.log"
    last_words = ""
    with open(log_path, "w") as log, Progress("Checking and timing") as progress:

        def on_line(line: str) -> None:
            nonlocal last_words
            kind, _, text = line.partition("\t")
            if kind == "progress":
                progress.show(text)
            elif kind == "error":
                last_words = text

        status = follow(
            [python, "-B", "-m", "tools.measuring.peers_main", json.dumps(request), out], log, on_line, cwd=ROOT,
            environment={
                "PYTHONPATH": os.pathsep.join(map(str, [ROOT / "common", ROOT / "common" / "python"])),
                "FLASH_ATTENTION_WORKBOOK_LIBRARY": str(library),
                "PYTHONUNBUFFERED": "1",
            },
        )
    if status:
        raise Failure(last_words or f"the measurement ended with status {status} (log: {shown(log_path)})",
                      status=2 if status == 2 else 1)
    return json.loads(out.read_text())
