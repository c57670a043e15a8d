"""Every barrier and every wait of a chapter is needed, and the checks notice when one is gone.

Puts a switch at every barrier (`__syncthreads();`, `__syncwarp();`, a named one) and wait (`cp_async_wait<N>();`,
`grid_dependency_wait();`) of a chapter's kernels, compiles them as the trace preset does, links them with everything
else of the chapter's program, and runs that on small problems without one of them after the other. Fails unless it says
each time what is wrong: a race, a read of shared memory that is not there yet, a copy or a kernel that nobody waits for,
a deadlock, or a wrong result. What is there for global memory, whose order among threads the engine does not check, or
for compute-sanitizer's racecheck alone says so in the comment on its line, and may go unnoticed.

    drop_barriers.py SOURCE_DIRECTORY SCRATCH_DIRECTORY COMPILE LINK

COMPILE and LINK are commands as CMake lists, without the source and without the output.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path

BARRIER = re.compile(r"(?:__syncthreads|__syncwarp|named_barrier_sync|named_barrier_arrive|grid_dependency_wait|cp_async_wait<[^>]*>)\([^;]*\);")
NOTICED = re.compile(r"deadlock|barrier divergence|named barrier|race on shared memory|uninitialised shared memory|that a cp\.async of|waited for this cp\.async|waited for the kernel before|the kernel before wrote|: FAIL ")
EXEMPT = re.compile("global memory|for racecheck alone")
SHARED = "device/swizzled_tile.h"  # has barriers of its own, and they are tried in every source that includes it
SHARED_PATH = Path(__file__).resolve().parents[2] / SHARED
# Ragged tiles, several of them, and more than one slice of the head dim; long enough for a buffer to be used again.
PROBLEMS = [["--heads=1", "--seq-q=70", "--seq-k=200", "--head-dim=128", "--no-causal"],
            ["--heads=2", "--seq-q=130", "--head-dim=64", "--no-causal"]]


def parts(path: Path) -> list:
    """The source, as [(file, its number of lines before, text)]: with SHARED in the place where it is included."""
    source, include = path.read_text(), f'#include "{SHARED}"\n'
    before, included, after = source.partition(include)
    if not included:
        return [(path, 0, source)]
    return [(path, 0, before), (SHARED_PATH, 0, SHARED_PATH.read_text().replace("#pragma once", "")),
            (path, before.count("\n") + 1, after)]


def barriers(path: Path) -> list:
    """["file.cu:12", the text of the line], in the order of their numbers."""
    found = []
    for file, lines_before, text in parts(path):
        for barrier in BARRIER.finditer(text):
            line = text.count("\n", 0, barrier.start())
            found.append((f"{file.name}:{lines_before + line + 1}", text.splitlines()[line]))
    return found


def switched(path: Path) -> str:
    """The source with a switch at every barrier: the one whose number is in the environment is left out."""
    numbers = count()
    source = "".join(f'#line {lines_before + 1} "{file}"\n' +
                     BARRIER.sub(lambda found: f"without_barrier == {next(numbers)} ? void() : {found[0]}", text)
                     for file, lines_before, text in parts(path))
    return ("#include <cstdlib>\nstatic const int without_barrier = std::atoi(std::getenv(\"WITHOUT_BARRIER\"));\n"
            f"{source}")


def run(command: list, without: int = -1) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "WITHOUT_BARRIER": str(without)})


def program_of(path: Path, scratch: Path, compile_command: list, link_command: list) -> Path:
    """The chapter's program with the switches in this one of its sources."""
    source, target, program = scratch / path.name, scratch / f"{path.name}.o", scratch / path.stem
    source.write_text(switched(path))
    built = run([*compile_command, f"-I{path.parent}", "-c", str(source), "-o", str(target)])
    if built.returncode == 0:
        others = [part for part in link_command if not part.endswith(f"/{path.name}.o") or path.parent.name not in part]
        built = run([others[0], str(target), *others[1:], "-o", str(program)])
    if built.returncode != 0:
        raise SystemExit(built.stderr)
    return program


def verdict(program: Path, number: int) -> str:
    """What the program without this barrier says; empty if it notices nothing."""
    for problem in problems(program):
        done = run([str(program), "--check", *problem], number)
        said = done.stdout + done.stderr
        if done.returncode == 1 and NOTICED.search(said):
            return next(line for line in said.splitlines() if NOTICED.search(line))
    return ""


def problems(program: Path) -> list:
    """Of the rung and the direction that are in the source which the program is named after (NUMBER_RUNG or
    NUMBER_RUNG_backward), or of all of them."""
    rungs = {rung["name"]: rung for rung in json.loads(run([str(program), "--describe"]).stdout)["rungs"]}
    _, rung, backward = re.fullmatch(r"(\d+_)?(.+?)(_backward)?", program.name).groups()
    if rung in rungs:
        direction = "backward" if backward or not rungs[rung]["forward"] else "forward"
        return [[f"--rung={rung}", f"--direction={direction}", *problem] for problem in PROBLEMS]
    directions = [one for one in ("backward", "forward") if any(rung[one] for rung in rungs.values())]
    return [[f"--direction={direction}", *problem] for direction, problem in product(directions, PROBLEMS)]


def main(source_directory: str, scratch_directory: str, compile_command: str, link_command: str) -> int:
    scratch = Path(scratch_directory)
    scratch.mkdir(parents=True, exist_ok=True)
    sources = [path for path in sorted(Path(source_directory).glob("*.cu")) if barriers(path)]
    unnoticed = 0
    with ThreadPoolExecutor(2) as pool:
        programs = list(pool.map(lambda path: program_of(path, scratch, compile_command.split(";"),
                                                         link_command.split(";")), sources))
        for path, program in zip(sources, programs):
            found = barriers(path)
            for (where, line), words in zip(found, pool.map(lambda number: verdict(program, number), range(len(found)))):
                reason = EXEMPT.search(line)
                unnoticed += not words and not reason
                where = where if where.startswith(path.name) else f"{path.name}, {where}"
                print(f"{where} " + (f"noticed: {words}" if words else f"not noticed: {reason[0]}" if reason
                                     else "NOT NOTICED: nothing fails without this barrier"))
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
