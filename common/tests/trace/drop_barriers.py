"""Every barrier of a chapter is needed, and the checks notice when one is gone.

Takes out one barrier (`__syncthreads();`, `__syncwarp();`, a named one) of a chapter's kernels after the other, compiles the rest as the trace preset does, links
it with everything else of the chapter's program, and runs that on small problems. Fails unless each such program says what
is wrong: a race, a read of shared memory that is not there yet, a deadlock, or a wrong result.

    drop_barriers.py SOURCE_DIRECTORY SCRATCH_DIRECTORY COMPILE LINK

COMPILE and LINK are commands as CMake lists, without the source and without the output.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

BARRIER = re.compile(r"(?:__syncthreads|__syncwarp|named_barrier_sync|named_barrier_arrive)\([^;]*\);")
NOTICED = re.compile(r"deadlock|barrier divergence|named barrier|race on shared memory|uninitialised shared memory|that a cp\.async of|: FAIL ")
# Ragged tiles, several of them, and more than one slice of the head dim; long enough for a buffer to be used again.
PROBLEMS = [["--heads=1", "--seq-q=70", "--seq-k=200", "--head-dim=128"], ["--heads=2", "--seq-q=130", "--head-dim=64"]]


def without(source: str, number: int) -> str:
    """The source with its number-th barrier replaced by as many blanks: lines keep their numbers."""
    begin, end = list(BARRIER.finditer(source))[number].span()
    return source[:begin] + " " * (end - begin - 1) + ";" + source[end:]


def run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def verdict(path: Path, number: int, scratch: Path, compile_command: list, link_command: list) -> str:
    """What the program without this barrier says; empty if it notices nothing."""
    source = path.read_text()
    name = f"{path.stem}_without_{number}"
    mutant, target, program = scratch / f"{name}.cu", scratch / f"{name}.o", scratch / name
    mutant.write_text(without(source, number))
    built = run([*compile_command, f"-I{path.parent}", "-c", str(mutant), "-o", str(target)])
    if built.returncode == 0:
        others = [part for part in link_command if not part.endswith(f"/{path.name}.o")]
        built = run([others[0], str(target), *others[1:], "-o", str(program)])
    if built.returncode != 0:
        raise SystemExit(built.stderr)
    directions = {direction for rung in json.loads(run([str(program), "--describe"]).stdout)["rungs"]
                  for direction in ("forward", "backward") if rung[direction]}
    for direction, problem in product(sorted(directions), PROBLEMS):
        done = run([str(program), "--check", f"--direction={direction}", *problem])
        said = done.stdout + done.stderr
        if done.returncode == 1 and NOTICED.search(said):
            program.unlink()
            return next(line for line in said.splitlines() if NOTICED.search(line))
    return ""


def main(source_directory: str, scratch_directory: str, compile_command: str, link_command: str) -> int:
    scratch = Path(scratch_directory)
    scratch.mkdir(parents=True, exist_ok=True)
    barriers = [(path, number) for path in sorted(Path(source_directory).glob("*.cu"))
                for number in range(len(BARRIER.findall(path.read_text())))]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda barrier: verdict(*barrier, scratch, compile_command.split(";"),
                                                     link_command.split(";")), barriers))
    for (path, number), words in zip(barriers, said):
        source = path.read_text()
        place = f"{path.name}:{source.count(chr(10), 0, list(BARRIER.finditer(source))[number].start()) + 1}"
        print(f"{place} {'noticed: ' + words if words else 'NOT NOTICED: nothing fails without this barrier'}")
    return 0 if all(said) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
