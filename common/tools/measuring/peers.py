"""Chapters beside the attention that users would pick instead: what is measured, and the arithmetic on it.

tools/measuring/peers_main.py measures, in a Python that has PyTorch. Its JSON, one file a run:

    context   gpu, capability, driver, cuda (PyTorch's), torch, cudnn, commit, date, l2_bytes, sm_clock_max_mhz,
              power_limit_w, before and after: SM and memory clocks in MHz, power in W, temperature in C, as nvidia-smi
              gives them
    what      the sweep and its restrictions, in a word
    timing    "launch by launch", each after a flush of the L2 cache, or "back to back" (back_to_back.py)
    (context has other_cudnn, where a second process asked another version: cudnn, date, before, after,
              measuring_seconds; ours_there: how long ours took there, against here. Its results are CUDNN-9.28)
    ceilings  what this GPU reached in the same process, timed like everything else: matmul {flop_rate, seconds}, a
              matrix product of two 8192 x 8192 matrices in fp16; copy {byte_rate, seconds}, 1 GiB read and written; of
              the sweep fp8 also matmul_fp8, the product of such matrices in e4m3
    absent    {peer or chapter: why it was not asked}
    points    one for each problem and direction:
      problem, direction, flops, baseline (what its ratios are to), rope (whether q and k are rotated first: by the
                chapter, or by PyTorch before its FLASH)
      results   one for each chapter or peer: name, kind (chapter, peer), and either
                  seconds {median, p10, p90, min, max}, samples (seconds, in the order taken), flop_rate (FLOP/s),
                  late (launches that were repeated: the GPU got there before the CPU had enqueued them),
                  error and tolerance (of the result, against fp64: what was checked before any timing; of what is made
                  in eight bits both are norms),
                  norm (|o - exact| / |exact|, against fp64 of the 16-bit inputs; of the sweep fp8),
                  ratio (seconds of FLASH / seconds: above 1 is faster than FLASH; null without FLASH. With rope the
                  measure is compiled+FLASH, where torch.compile has made one kernel of the rotations; in the sweep fp8
                  it is CUDNN-FP8)
                back to back the samples are slices, and there are
                  launches (in a burst of them), alone_seconds (of a launch, when the candidate has the GPU to itself),
                  and of that time: sm_clock_mhz, power_w, joules (a launch); null for what NVML did not say, or where
                  launches are too short for the CPU to keep the GPU at work
                or  skipped (why), or wrong (what: it was not timed)
                (common/results keeps median and p10 of the seconds, and no samples)
    ended     why points are missing, if a launch took the GPU with it; such a file is no record
    summary   one for each name and direction: points, geometric_mean, lowest and highest of the ratios
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tools.base import (
    BUILD,
    ROOT,
    Failure,
    JsonObject,
    Progress,
    cuda,
    ending_of,
    follow,
    pythons,
    shown,
    with_python_path,
)
from tools.measuring import documents, model_sweep
from tools.record import LENGTHS, Problem, beside_peers

BASELINE = "FLASH"  # PyTorch's FLASH backend, which is FlashAttention-2: what ratios are against
PEERS = ["FLASH", "FLASH-deterministic", "CUDNN", "MATH", "FA3", "FA4", "FA4-deterministic"]
FLEX = "FLEX"  # PyTorch's flex_attention, compiled: of problems with extras
# Of packed sequences: PyTorch's varlen_attn, and its nested tensors with FLASH and with cuDNN
VARLEN, NESTED = "VARLEN", ("NESTED", "NESTED-CUDNN")
# cuDNN through its frontend: with a window, which PyTorch does not pass on, and of tensors in e4m3
CUDNN_WINDOW, CUDNN_FP8 = "CUDNN-WINDOW", "CUDNN-FP8"
ROPE_BASELINE = "compiled+FLASH"
ROPE_PEERS = ["eager+FLASH", "compiled+FLASH"]
SWEEPS = {
    "fa": "the FlashAttention papers': 16384 tokens, H * D = 2048, D = 64 and 128, N = 512 ... 16384, full and causal",
    "ladder": "the ladder's problems: B=2 H=16 D=64 causal, N = 512 ... 8192",
    "decode": "few queries and many keys: H=32, Nq = 1, 4 and 16, Nk = 8192, 65536 and 262144, D = 64 and 128, full",
    "dims": "head dims of models: 16384 tokens, H * D = 2048 or nearly, D = 40, 72, 80, 96, 112, 192 and 256, N = 2048 "
            "and 8192, full and causal",
    "extras": "what models add: 16384 tokens, H * D = 2048, D = 64 and 128, N = 16384, causal: plain, as views, with a "
              "window of 1024 keys, softcap 20, ALiBi, a sink",
    "packed": "40 documents of 73 to 5918 tokens, 65536 in all, one behind the other: H=16, D = 64 and 128, causal; "
              "and sequences of one length, as many tokens and pairs",
    "blocks": "block masks: N = 16384, H=16, D = 64 and 128: documents, a prefix of 4096 keys, every fourth of the "
              "last 4096 keys; and no mask",
    "fp8": "eight bits: 16384 tokens, H * D = 2048, D = 64, 128 and 256, N = 2048 ... 16384, full and causal, forward",
    "models": "attention as models ask for it, long and short, with few kv heads and few queries, in fp16 and bf16",
    "random": "points drawn at random from what models ask for",
}
EXTRAS = ["", "views", "window1024_0", "softcap20", "alibi", "sink"]  # of that sweep
LAUNCH_BY_LAUNCH, BACK_TO_BACK = "launch by launch", "back to back"
OF_MODELS = ("models", "random")  # each point has its own shape and dtype; to name one chooses among the points
EIGHT_BITS = "fp8"  # the sweep
IN_EIGHT_BITS = ("CUDNN", CUDNN_FP8)  # and its peers
WITH_EXTRAS = (CUDNN_WINDOW, FLEX)  # peers of problems that have some, beside PEERS
OF_DOCUMENTS = {"packed": ("FA4", "FA4-deterministic", VARLEN, *NESTED, FLEX), "blocks": (FLEX,)}  # and their peers
HEAD_DIMS = [40, 72, 80, 96, 112, 192, 256]  # of that sweep
DECODING = [(1, 32), (1, 8), (8, 8), (64, 8)]  # (B, Hkv) of that sweep
MOST_KEYS = 2**25  # over all kv heads: with more, K and V of two sets of inputs do not fit into the memory of an H200
SHAPE = ("batch", "heads", "kv_heads", "seq_q", "seq_k")  # who names one of these asks for a sweep of his own


# --- What is measured ------------------------------------------------------------------------------------------------


def sweep(name: str, said: JsonObject, default: Problem, draw: "JsonObject | None" = None) -> list[Problem]:
    """The sweep's problems, shortest first, without repetitions. `said` ({field: value}, seq_q a list) overrides; of
    the sweeps of models it chooses. draw: {"points": how many, "seed": of what is drawn at random}."""
    fields = {field: value for field, value in said.items() if field != "seq_q"}
    if name in OF_MODELS:
        points = model_sweep.drawn(**draw) if draw else model_sweep.training() + model_sweep.chunks()
        return [point for point in points if fields.items() <= vars(point).items()
                and point.seq_q in said.get("seq_q", [point.seq_q])]
    if name == "decode":
        points = [replace(default, batch=batch, heads=32, kv_heads=kv_heads, seq_q=n, seq_k=keys, head_dim=size,
                          causal=False)
                  for size in (64, 128) for batch, kv_heads in DECODING for keys in (8192, 65536, 262144)
                  for n in said.get("seq_q", (1, 4, 16)) if batch * kv_heads * keys <= MOST_KEYS]
    elif name == "extras":
        points = [replace(default, batch=max(1, 16384 // n), heads=2048 // size, seq_q=n, seq_k=n, head_dim=size,
                          causal=True, extras=extra)
                  for size in ([said["head_dim"]] if "head_dim" in said else [64, 128])
                  for n in said.get("seq_q", [16384]) for extra in EXTRAS]
    elif name in OF_DOCUMENTS:
        mask = fields.pop("block_mask", None)
        points = [point for size in ([said["head_dim"]] if "head_dim" in said else [64, 128])
                  for point in (documents.packed if name == "packed" else documents.blocks)(
                      replace(default, head_dim=size))
                  if mask in (None, point.asked().get("blocks", mask))]
    elif name == "ladder":
        points = [replace(default, seq_q=n, seq_k=n) for n in said.get("seq_q", LENGTHS)]
    else:
        sizes, lengths = {"dims": (HEAD_DIMS, [2048, 8192]), EIGHT_BITS: ([64, 128, 256], [2048, 4096, 8192, 16384])
                          }.get(name, ([64, 128], [*LENGTHS, 16384]))
        points = [replace(default, batch=max(1, 16384 // n), heads=max(1, round(2048 / size)), seq_q=n, seq_k=n,
                          head_dim=size, causal=mask)
                  for size in ([said["head_dim"]] if "head_dim" in said else sizes)
                  for mask in ([said["causal"]] if "causal" in said else [False, True])
                  for n in said.get("seq_q", lengths)]
    points = [replace(point, **fields) for point in points]
    if name == "decode" and "heads" not in said:
        return list(dict.fromkeys(points))
    return list(dict.fromkeys(replace(point, kv_heads=said.get("kv_heads", point.heads)) for point in points))


def word_for(name: str, said: JsonObject, points: list[Problem]) -> str:
    """What names the sweep and its restrictions: fa-fp16-d64-causal."""
    words = ["custom" if any(field in said for field in SHAPE) and name not in OF_MODELS else name]
    words += [points[0].dtype] if name not in OF_MODELS or "dtype" in said else []
    words += [f"{field}{said[field]}" for field in SHAPE if field in said and name in OF_MODELS]
    words += [f"d{said['head_dim']}"] if "head_dim" in said else []
    words += ["causal" if said["causal"] else "full"] if "causal" in said else []
    words += [said["block_mask"]] if "block_mask" in said else []
    return "-".join(words)


def schedule(name: str, points: list[Problem], directions: Sequence[str]) -> list[tuple[str, bool, Problem]]:
    """[(direction, rope, problem)], in the order in which they are measured."""
    if name in OF_MODELS:
        return [(direction, rope, problem) for rope in (False, True)
                for problem, direction in model_sweep.with_directions(points, directions)]
    return [(direction, rope, problem) for direction in directions for rope in (False, True) for problem in points]


# --- Ratios -----------------------------------------------------------------------------------------------------------


def baseline_of(point: JsonObject) -> str:
    return ROPE_BASELINE if point.get("rope") else BASELINE


def add_ratios(points: list[JsonObject]) -> None:
    """Gives every point the name of its baseline, and every result with a time its ratio."""
    for point in points:
        name = point.setdefault("baseline", baseline_of(point))
        baseline = next((r["seconds"]["median"] for r in point["results"] if r["name"] == name and "seconds" in r),
                        None)
        for result in point["results"]:
            if "seconds" in result:
                result["ratio"] = baseline / result["seconds"]["median"] if baseline else None


def summary(points: list[JsonObject]) -> list[JsonObject]:
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for point in points:
        for result in point["results"]:
            if result["name"] != point["baseline"] and result.get("ratio"):
                key = result["name"], point["direction"], point["baseline"]
                ratios.setdefault(key, []).append(result["ratio"])
    return [{"name": name, "direction": direction, "baseline": baseline, "points": len(values),
             "geometric_mean": statistics.geometric_mean(values), "lowest": min(values), "highest": max(values)}
            for (name, direction, baseline), values in ratios.items()]


# --- Another cuDNN ----------------------------------------------------------------------------------------------------

CUDNN_LIBRARIES = ("libcudnn.so.9", "libcudnn_graph.so.9")  # to preload: these two find the others beside them


def cudnn_in(directory: Path) -> list[Path]:
    found = [directory / name for name in CUDNN_LIBRARIES]
    for path in found:
        if not path.is_file():
            raise Failure(f"--cudnn is {directory}: it has no {path.name}", status=2)
    return found


def _preloading(libraries: Sequence[Path]) -> dict[str, str]:
    def before(variable: str, values: Sequence[object]) -> str:
        return ":".join([*map(str, values), *filter(None, [os.environ.get(variable)])])

    return {"LD_PRELOAD": before("LD_PRELOAD", libraries),
            "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", [libraries[0].parent])} if libraries else {}


def add_cudnn(report: JsonObject, other: JsonObject) -> None:
    """What CUDNN is in the other report, of a process with another version of it, stands in this one as CUDNN-9.28. Its
    context says how long a launch of ours took there, against here."""
    version = other["context"]["cudnn"]
    if version == report["context"]["cudnn"]:
        raise Failure(f"--cudnn has the version that PyTorch brings, {version}")
    name = f"CUDNN-{version // 10000}.{version // 100 % 100}"
    there = {(point["direction"], bool(point["rope"]), Problem(**point["problem"])): point for point in other["points"]}
    ratios = []
    for point in report["points"]:
        twin = there.get((point["direction"], bool(point["rope"]), Problem(**point["problem"])))
        names = [result["name"] for result in point["results"]]
        if "CUDNN" not in names:
            continue
        others = twin["results"] if twin else [{"name": "CUDNN", "kind": "peer", "skipped": "it was not asked"}]
        result = next(one for one in others if one["name"] == "CUDNN")
        point["results"].insert(names.index("CUDNN") + 1, {**result, "name": name})
        mine = str(beside_peers.ours([twin or point]))
        times = [beside_peers.times(one).get(mine) for one in (twin or {"results": []}, point)]
        ratios += [times[0] / times[1]] if times[0] and times[1] else []
    report["context"]["other_cudnn"] = {
        **{field: other["context"].get(field) for field in ("cudnn", "date", "before", "after", "measuring_seconds")},
        "ours_there": statistics.geometric_mean(ratios) if ratios else None}
    add_ratios(report["points"])
    report["summary"] = summary(report["points"])


# --- Measuring it -----------------------------------------------------------------------------------------------------


def python_with_torch(who: str = "peers") -> str:
    python = pythons.with_module("torch")
    if python is None:
        named = os.environ.get("WORKBOOK_PYTHON")
        where = f"{named} (WORKBOOK_PYTHON)" if named else f"{sys.executable} and the python3 on the PATH"
        raise Failure(f"{who} needs PyTorch with CUDA, which {where} {'lacks' if named else 'lack'}: install it "
                      "(pip install torch), or name a Python that has it in WORKBOOK_PYTHON")
    return python


def measure(python: str, built: Path, request: JsonObject, who: str = "peers",
            preloaded: Sequence[Path] = ()) -> JsonObject:
    """Runs peers_main, or another such program, and returns its report. `built` is a preset's build directory;
    `preloaded`: libraries of one directory, before those that PyTorch brings."""
    gpu = cuda.visible_gpu()
    log_path = BUILD / f"{who}{'-' + gpu if gpu else ''}.log"  # on each of several GPUs there may be one at a time
    last_words = ""
    with tempfile.TemporaryDirectory() as scratch, open(log_path,
                                                        "w") as log, Progress("Checking and timing") as progress:
        out = Path(scratch) / "report.json"

        def on_line(line: str) -> None:
            nonlocal last_words
            kind, _, text = line.partition("\t")
            if kind == "progress":
                progress.show(text)
            elif kind == "error":
                last_words = text

        status = follow(
            [python, "-B", "-m", f"tools.measuring.{who}_main", json.dumps(request), out], log, on_line, cwd=ROOT,
            environment={**with_python_path(ROOT / "common", ROOT / "common" / "python"),
                         "FLASH_ATTENTION_WORKBOOK_LIBRARY": str(built / "common/capi/libflash_attention_workbook.so"),
                         "PYTHONUNBUFFERED": "1",
                         # FlashAttention-4 compiles for seconds for each class of problems: once for all commands
                         "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED":
                             os.environ.get("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1"), **_preloading(preloaded)},
        )
        if status != 2 and out.exists():  # what was measured before it died, too
            report = json.loads(out.read_text())
            if status:
                report["ended"] = last_words or f"the process {ending_of(status)}"
                add_ratios(report["points"])
                report["summary"] = summary(report["points"])
            return report
        if status:
            raise Failure(last_words or f"the measurement {ending_of(status)} (log: {shown(log_path)})",
                          status=2 if status == 2 else 1)
        raise Failure(f"the measurement has left no report (log: {shown(log_path)})")
