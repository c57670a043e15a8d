"""The full measurement: which pieces it has, and how they are taken one after the other.

A piece is a command line of ./workbook that writes one JSON file: nothing is timed here. In the first measurement that
file becomes common/results/GPU/PIECE.json, with the machine, the command, the commit and a digest of the machine code
in its context. Of the second one (--again) the times are kept, those of all pieces in one file
(record/repeated_times.py). A piece that is there, of the commit that is measured now or of the same machine code, is
not taken again; a piece that fails leaves nothing. On a machine with several GPUs both measurements may run at once,
each with its own in CUDA_VISIBLE_DEVICES.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import (
    BUILD,
    ROOT,
    Failure,
    JsonObject,
    Progress,
    bad,
    bold,
    build,
    cuda,
    ending_of,
    follow,
    say,
    shown,
    table,
)
from tools.measuring import timed_code
from tools.record import commit, repeated_times, result_files

# Seconds that one candidate may take at one point of a sweep with peers. Chapters that need more than about 75 ms a
# launch are left out there; the ladder has them.
PATIENCE = 0.3
BESIDE_PYTORCH = ("accuracy", "peers")  # commands that need PyTorch
MICROBENCHMARKS = "common/microbenchmarks"


@dataclass(frozen=True)
class Piece:
    name: str
    holds: str
    command: tuple[str, ...]  # the words after ./workbook dev; --out FILE is added
    seconds: float  # roughly, on an H200
    timed: bool = False  # for its times, which a second measurement takes again
    may_say_1: bool = False  # the exit status 1 is a finding that the file holds

    def shown(self) -> str:
        # Of a path no more than the file's name: the line is kept, and the path is this machine's.
        words = [f"--engine={Path(word).name}" if word.startswith("--engine=") else word for word in self.command]
        return " ".join(["./workbook", "dev", *words])


@dataclass(frozen=True)
class Measured:
    """What is measured now."""

    commit: str
    machine_code: dict[str, str] = field(default_factory=dict)  # {chapter: digest}; nothing if it is not known yet

    def of(self, piece: Piece, report: JsonObject) -> dict[str, str]:
        """The machine code of the chapters that are named in what the piece has found."""
        found = json.dumps({key: value for key, value in report.items() if key != "context"})
        return {name: digest for name, digest in self.machine_code.items()
                if name in found or (name == MICROBENCHMARKS and piece.command[:1] == ("machine",))}

    def is_of(self, context: JsonObject) -> bool:
        """Whether a piece with this context was measured with the same code as this."""
        code = context.get("machine_code", {})
        same = bool(code) and code.items() <= self.machine_code.items()
        return "piece" in context and (context.get("commit") == self.commit or same)


def built(names: list[str]) -> Measured:
    """What is there for a GPU, after it has been built."""
    return Measured(commit(), timed_code.of([*names, MICROBENCHMARKS], build.directory("cuda")))


def pieces(names: list[str], engine: "Path | None" = None) -> list[Piece]:
    """The plan for these chapters. `engine` holds the engine's counts, where this machine cannot build the engine."""
    planned = []
    for name in names:
        planned.append(Piece(f"ladder-{name}", f"{name}, every rung: B=2 H=16 D=64 fp16 causal, N = 512 ... 8192",
                             ("bench", name.split("_")[0], "--all-rungs"), 35, timed=True))
    planned.append(Piece("machine",
                         "the GPU itself: latencies, bandwidths, a branch, sums in fp16 (common/microbenchmarks)",
                         ("machine",), 10))
    # Bytes do not depend on how often a launch is timed: once is enough.
    planned.append(Piece("memory", "device memory of the forward: B=1 H=8 D=64 fp16 causal, N = 2048 ... 32768",
                         ("bench", "--direction=forward", "--seq-q=2048,8192,32768", "--batch=1", "--heads=8",
                          "--benchmark_repetitions=1", "--benchmark_min_time=0.001"), 70))
    for name in names:
        planned.append(Piece(f"profile-{name}", f"{name}, every rung under Nsight Compute: N = 4096",
                             ("profile", name.split("_")[0]), 25))
    planned.append(Piece("profile-decode", "11, every rung under Nsight Compute: few queries, 65536 keys",
                         ("profile", "11", "--batch=1", "--heads=32", "--kv-heads=8", "--seq-q=1,16", "--seq-k=65536",
                          "--head-dim=128", "--no-causal"), 45))
    planned.append(Piece("engine-and-ncu", "every counter of the SIMT engine beside Nsight Compute's, N = 256",
                         ("verify", *([f"--engine={engine}"] if engine else [])), 190, may_say_1=True))
    planned.append(Piece("accuracy",
                         "how far every rung is from fp64, beside PyTorch's attention: 256 queries, 1024 ... 131072 "
                         "keys",
                         ("accuracy",), 40, may_say_1=True))
    patience = f"--patience={PATIENCE}"
    planned.append(Piece("peers-ladder",
                         "every rung beside PyTorch's attention on the ladder's problems; with RoPE, too",
                         ("peers", "--sweep=ladder", "--all-rungs", patience), 75, timed=True))
    for (dtype, direction), seconds in {("fp16", "forward"): 150, ("fp16", "backward"): 195, ("bf16", "forward"): 150,
                                        ("bf16", "backward"): 185}.items():
        planned.append(Piece(f"sweep-{dtype}-{direction}",
                             f"FlashAttention's sweep, {dtype}, {direction}, every rung and peers",
                             ("peers", "--sweep=fa", f"--dtype={dtype}", f"--direction={direction}", "--all-rungs",
                              "--default", patience),
                             seconds, timed=True))
    for (dtype, direction), seconds in {("fp16", "forward"): 70, ("fp16", "backward"): 100, ("bf16", "forward"): 70,
                                        ("bf16", "backward"): 100}.items():
        planned.append(Piece(f"sweep-{dtype}-{direction}-b2b",
                             f"back to back, {dtype}, {direction}: the default and peers",
                             ("peers", "--sweep=fa", f"--dtype={dtype}", f"--direction={direction}", "--own",
                              "--back-to-back"), seconds, timed=True))
    for (direction, flag), seconds in {("forward", ""): 95, ("backward", ""): 230, ("forward", "-b2b"): 90,
                                       ("backward", "-b2b"): 130}.items():
        planned.append(Piece(f"models-{direction}{flag}",
                             f"the sweep of models, {direction}{', back to back' if flag else ''}: the default, "
                             f"{'' if flag else 'rungs that may be it, '}and peers",
                             ("peers", "--sweep=models", f"--direction={direction}",
                              *(["--back-to-back"] if flag else [])), seconds, timed=True))
    # FlashAttention-4 and flex_attention are compiled at each point, which is most of it.
    for dtype in ("bf16", "fp16"):
        for (direction, flag), seconds in {("forward", ""): 190, ("backward", ""): 260, ("forward", "-b2b"): 210,
                                           ("backward", "-b2b"): 290}.items():
            planned.append(Piece(f"extras-{'fp16-' if dtype == 'fp16' else ''}{direction}{flag}",
                                 f"what models add, {dtype}, {direction}{', back to back' if flag else ''}: chapters "
                                 "12 and 10, and peers",
                                 ("peers", "12", "10", "--sweep=extras", f"--dtype={dtype}", f"--direction={direction}",
                                  *(["--back-to-back"] if flag else [patience])), seconds, timed=True))
    for (what, flag), seconds in {("packed", ""): 90, ("packed", "-b2b"): 80, ("blocks", ""): 140,
                                  ("blocks", "-b2b"): 100}.items():
        planned.append(Piece(f"{what}{flag}",
                             f"{'packed sequences' if what == 'packed' else 'block masks'}, bf16"
                             f"{', back to back' if flag else ''}: chapter 12, and peers",
                             ("peers", "12/views", f"--sweep={what}", "--dtype=bf16",
                              *(["--back-to-back"] if flag else [patience])), seconds, timed=True))
    for flag, seconds in {"": 80, "-b2b": 105}.items():  # for each shape cuDNN compiles, a second or two: hence an end
        planned.append(Piece(f"fp8{flag}",
                             f"attention in eight bits, bf16, forward{', back to back' if flag else ''}: chapter 13, "
                             "the default, and cuDNN in eight bits and in bf16",
                             ("peers", "--sweep=fp8", "--dtype=bf16", f"--within={seconds - 5}",
                              *(["--back-to-back"] if flag else [patience])), seconds, timed=True))
    for dtype in ("fp16", "bf16"):
        planned.append(Piece(f"decode-{dtype}", f"few queries and many keys, {dtype}, beside PyTorch's attention",
                             ("peers", "11", "--sweep=decode", f"--dtype={dtype}", "--direction=forward", "--default",
                              patience),
                             35, timed=True))
    planned.append(Piece("dims", "head dims of models, fp16, both directions, beside PyTorch's attention",
                         ("peers", "08", "10", "--sweep=dims", "--default", patience), 190, timed=True))
    return planned


def rehearsal(names: list[str]) -> list[Piece]:
    """The same plan on the SIMT engine, as far as it can go, in small sizes: shows that every step works."""
    small = ("--preset=cpu", "--seq-q=32,64", "--heads=1", "--batch=1")
    ladders = [Piece(f"ladder-{name}", f"{name}, every rung: N = 32, 64",
                     ("bench", name.split("_")[0], *small, "--all-rungs"), 3, timed=True) for name in names]
    return ladders + [Piece("machine", "the experiments of common/microbenchmarks", ("machine", "--preset=cpu"), 3),
                      Piece("memory", "device memory", ("bench", *small), 10)]


def chosen(planned: list[Piece], words: list[str], again: bool = False) -> list[Piece]:
    """The pieces that begin with one of the words, or all; again: of those that are taken for their times."""
    planned = [piece for piece in planned if piece.timed or not again]
    for word in words:
        if not any(piece.name.startswith(word) for piece in planned):
            kind = "piece that is measured twice" if again else "piece"
            known = ", ".join(piece.name for piece in planned)
            raise Failure(f"no {kind} is called {word} (pieces: {known})", status=2)
    names = {piece.name for piece in planned}
    return [piece for piece in planned
            if not words or any(piece.name == word if word in names else piece.name.startswith(word) for word in words)]


# --- State -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """Whether a piece is there already, and about how many seconds it takes: as many as last time, if there was one."""

    done: bool
    seconds: float


def state(piece: Piece, directory: Path, measured: Measured, again: bool = False) -> State:
    try:
        context = (repeated_times.context(directory, piece.name) if again else
                   (result_files.read(directory / f"{piece.name}.json") or {}).get("context", {}))
    except Failure:  # half of a file, from whoever wrote it: taken anew
        context = {}
    last = context.get("piece", {}).get("seconds")
    return State(measured.is_of(context), last or piece.seconds)


def plan_table(planned: list[Piece], states: list[State], measured: Measured) -> str:
    rows = [["piece", "about", "state", "command"]]
    for piece, at in zip(planned, states):
        rows.append([piece.name, f"{at.seconds:.0f} s", "there" if at.done else "to do", piece.shown()])
    left = sum(at.seconds for at in states if not at.done)
    done = sum(at.done for at in states)
    return table(rows, left_columns=4) + (
        f"\n\nCommit {measured.commit}: {done} of {len(planned)} pieces are there; the others take about {left:.0f} s, "
        "building not counted.")


# --- Taking it -------------------------------------------------------------------------------------------------------


def run_workbook(command: list[str], log_path: Path, on_line: Callable[[str], None]) -> int:
    with open(log_path, "w") as log:
        return follow([sys.executable, ROOT / "workbook", "dev", *command], log, on_line, cwd=ROOT)


def take(piece: Piece, directory: Path, measured: Measured, on_line: Callable[[str], None], again: bool = False,
         runner: Callable[[list[str], Path, Callable[[str], None]], int] = run_workbook) -> None:
    """Runs the piece's command, and puts its JSON into place; again: the times in it. Failure leaves nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "piece.json"
        log_path = BUILD / "measure" / (directory.name + "-again" * again) / f"{piece.name}.log"
        log_path.parent.mkdir(parents=True, exist_ok=True)
        before, begin = cuda.machine_state(), time.monotonic()
        status = runner([*piece.command, f"--out={out}"], log_path, on_line)
        seconds, after = time.monotonic() - begin, cuda.machine_state()
        if status not in ((0, 1) if piece.may_say_1 else (0,)) or not out.exists():
            said = log_path.read_text(errors="replace").strip() if log_path.exists() else ""
            last = said.splitlines()[-1].removeprefix("workbook: ") if said else "no output"
            raise Failure(f"{last} ({ending_of(status)}, log: {shown(log_path)})")
        report = result_files.read(out) or {}
        code = measured.of(piece, report)
        report.setdefault("context", {}).update({
            "commit": measured.commit,
            **({"machine_code": code} if code else {}),
            "machine": cuda.machine(),
            "piece": {"name": piece.name, "command": piece.shown(), "seconds": round(seconds, 1),
                      "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "gpu": cuda.gpu_identity(), "before": before,
                      "after": after},
        })
        if again:
            repeated_times.keep(directory, piece.name, report)
        else:
            result_files.write(directory / f"{piece.name}.json", report)


def targets(planned: list[Piece], names: list[str]) -> list[str]:
    """What these pieces need to have been built for a GPU, or nothing that is known beforehand."""
    wanted = set()
    for piece in planned:
        if piece.command[0] in BESIDE_PYTORCH:
            wanted.add("flash_attention_workbook")
        elif piece.command[0] == "machine":
            wanted.add("machine")
        elif piece.command[0] == "verify":
            wanted |= {"trace_patterns", *names}
        else:
            named = [name for name in names if name.split("_")[0] in piece.command]
            wanted |= set(named or names)
    return sorted(wanted)


def measure(planned: list[Piece], directory: Path, within: "float | None", again: bool = False,
            take_piece: Callable[..., None] = take, measured: "Measured | None" = None) -> int:
    """Every piece that is not there; `within` so many seconds: what would not fit is left for the next time."""
    measured = measured or Measured(commit())
    begin, failed, left = time.monotonic(), [], []
    for number, piece in enumerate(planned, start=1):
        at = state(piece, directory, measured, again)
        if at.done:
            continue
        if within is not None and time.monotonic() - begin + at.seconds > within:
            left.append(piece.name)
            continue
        where = f"{number} of {len(planned)}  {piece.name}"
        started = time.monotonic()
        try:
            with Progress(where) as progress:
                take_piece(piece, directory, measured, progress.show, again)
            say(f"{where}: {time.monotonic() - started:.0f} s (about {at.seconds:.0f} s expected)")
        except Failure as failure:
            failed.append(piece.name)
            say(bad(f"{where}: {failure}"))
    say()
    done = sum(state(piece, directory, measured, again).done for piece in planned)
    say(bold(f"{done} of {len(planned)} pieces are in {shown(directory)}."))
    if failed:
        raise Failure(f"{len(failed)} of {len(planned)} pieces failed: {', '.join(failed)}; run the command again for "
                      "these")
    if left:
        say(f"Left for the next time: {', '.join(left)}. Run the command again.")
    return 0
