"""Every barrier and every wait of a chapter is needed, and the checks notice when one is gone.

Finds the barriers (`__syncthreads();`, `__syncwarp();`, a named one, an arrival at an mbarrier), waits (`cp_async_wait<N>();`,
`grid_dependency_wait();`, for an mbarrier, a semaphore, a bulk copy or wgmma) and proxy fences of a chapter's kernels, and runs the chapter's
program on small problems without one of them after the other: SIMT_WITHOUT tells the engine which. Fails unless it says each time what is wrong: a race, a read of
shared memory that is not there yet, a copy or a kernel that nobody waits for, a deadlock, or a wrong result. What is
there for global memory, whose order among threads the engine does not check, for compute-sanitizer's racecheck alone,
for equal bits in every launch (the kind of test `repeat` holds them), or for the time alone, so that no result depends on
it, says so in the comment on its line, and may go unnoticed.

What a rung has from the rung before, with the same lines around it, is tried there, and only with --all in both. So is what a
kernel for wide heads, wide/forward.cu or wide/backward.cu, has from any rung of its chapter.

    drop_barriers.py SOURCE_DIRECTORY PROGRAM [--all]
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

BARRIER = re.compile(r"(?:__syncthreads|__syncwarp|named_barrier_sync|named_barrier_arrive|grid_dependency_wait|cp_async_wait<[^>]*>"
                     r"|mbarrier_wait|mbarrier_test|mbarrier_arrive|mbarrier_arrive_expect_tx|fence_proxy_async|bulk_wait<[^>]*>"
                     r"|bulk_wait_read<[^>]*>|wgmma_wait<[^>]*>|semaphore_wait|cluster_sync|mbarrier_wait_cluster|mbarrier_arrive_cluster|mbarrier_arrive_cluster_read)"
                     r"\([^;]*\);")
NOTICED = re.compile(r"deadlock|barrier divergence|named barrier|race on shared memory|uninitialised shared memory"
                     r"|that a cp\.async of|waited for this cp\.async|no barrier between this and what"
                     r"|waited for the kernel before|the kernel before wrote|: FAIL |that a bulk copy of"
                     r"|nobody has waited for|that a wgmma of|of the wgmma at|waited for this wgmma|no fence\.proxy\.async"
                     r"|to the memory of the mbarrier|might have counted in the phase before|of the shared memory of block|a block has to stay|and one more arrives")
EXEMPT = re.compile("global memory|for racecheck alone|no result depends on it|for equal bits")
SHARED, SHARED_CALL = "device/swizzled_tile.h", "store_rows"  # has barriers of its own, tried in every source that calls it
SHARED_PATH = Path(__file__).resolve().parents[2] / SHARED
# Ragged tiles, several of them, and more than one slice of the head dim; long enough for a buffer to be used again.
PROBLEMS = [["--heads=1", "--seq-q=70", "--seq-k=200", "--head-dim=128", "--no-causal"],
            ["--heads=2", "--seq-q=130", "--head-dim=64", "--no-causal"],
            ["--heads=1", "--seq-q=200", "--seq-k=400", "--head-dim=128", "--no-causal"]]
# Of forwards where mbarriers pass large tiles from hand to hand: so long that every buffer is used again, and a block has several
# tiles, of which some end with keys that all warpgroups see.
LONG_PROBLEMS = [["--heads=2", "--seq-q=700", "--head-dim=64", "--causal"],
                 ["--heads=2", "--seq-q=520", "--seq-k=900", "--head-dim=128", "--no-causal"]]
# Of backwards for D = 64 alone: so long that every buffer is used again.
HALF_PROBLEM = ["--heads=1", "--seq-q=700", "--seq-k=300", "--head-dim=64", "--no-causal"]
# Of clusters: blocks with different numbers of tiles, and one with none.
CLUSTER_PROBLEM = ["--heads=1", "--seq-q=300", "--head-dim=128", "--causal"]
# Of the list of packed sequences: more of them than its thread blocks count at a time.
PACKED_PROBLEM = ["--packed", "--batch=300", "--heads=1", "--seq-q=2", "--head-dim=64", "--causal"]
# Of block masks: so many tiles that every buffer is used again, and the other head dim.
BLOCKS_PROBLEMS = [["--block-mask=prefix", "--heads=1", "--seq-q=520", "--seq-k=800", "--head-dim=64", "--no-causal"],
                   ["--block-mask=prefix", "--heads=1", "--seq-q=130", "--seq-k=300", "--head-dim=128", "--no-causal"]]
# Of backwards with windows: keys that no query sees.
UNSEEN_PROBLEM = ["--window=16,0", "--heads=1", "--seq-q=100", "--seq-k=700", "--head-dim=64", "--no-causal"]
# Of kernels for wide heads.
WIDE_PROBLEMS = [["--heads=1", "--seq-q=70", "--seq-k=200", "--head-dim=256", "--no-causal"],
                 ["--heads=1", "--seq-q=150", "--seq-k=40", "--head-dim=256", "--causal"],
                 ["--heads=1", "--seq-q=140", "--seq-k=420", "--head-dim=256", "--causal"]]


def barriers(source: Path) -> list:
    """["directory/file.cu:12", the text of the line], in the order of the lines; of a kernel's source those of SHARED
    first, if it calls what has them."""
    text = source.read_text()
    lines = text.splitlines()
    numbers = [text.count("\n", 0, barrier.start()) for barrier in BARRIER.finditer(text)]
    found = [(f"{source.parent.name}/{source.name}:{number + 1}", lines[number]) for number in numbers]
    calls = f'#include "{SHARED}"\n' in text and SHARED_CALL in text
    return barriers(SHARED_PATH) + found if calls else found


def is_wide(source: Path) -> bool:
    return source.parent.name == "wide"


def with_neighbours(source: Path) -> dict:
    """{"directory/file.cu:12": the texts of line 11 to 13}"""
    lines = [line.strip() for line in source.read_text().splitlines()]
    return {where: tuple(lines[number - 2:number + 1]) for where, _ in barriers(source)
            for number in [int(where.rpartition(":")[2])] if SHARED not in where}


def new_barriers(source: Path) -> list:
    """Those that the rung before has not, of the same direction; of a kernel for wide heads, that no rung has."""
    def backward(path: Path) -> bool:
        return path.stem.endswith("backward")
    chapter = source.parent.parent if is_wide(source) else source.parent
    rungs = sorted((path for path in chapter.glob("[0-9]*_*.cu") if backward(path) == backward(source)),
                   key=lambda path: int(path.name.partition("_")[0]))
    before = rungs[:rungs.index(source)][-1:] if source in rungs else rungs if is_wide(source) else []
    known = {around for rung in before for around in with_neighbours(rung).values()}
    around = with_neighbours(source)
    return [barrier for barrier in barriers(source) if around.get(barrier[0]) not in known]


def run(program: str, *arguments: str, without: str = "", **order: str) -> subprocess.CompletedProcess:
    return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SIMT_THREADS": "2", "SIMT_WITHOUT": without, **order})


def borrowers(source: Path) -> list:
    """The rungs without kernels of their own that launch those of the source: what waits for a kernel before it may only
    do so there."""
    offered = re.findall(r"^void (\w+)\([^;{]*{", source.read_text(), re.M)
    return [path.stem.partition("_")[2] for path in sorted(source.parent.glob("[0-9]*_*.cu"))
            for text in [path.read_text()] if "__global__" not in text
            and any(re.search(rf"^void {name}\([^;{{]*\);", text, re.M) for name in offered)]


def problems(source: Path, rungs: dict) -> list:
    """Of the rung and the direction that are in the source (NUMBER_RUNG.cu, NUMBER_RUNG_backward.cu; wide/forward.cu and
    wide/backward.cu: the chapter's last rung that has it), or of all."""
    some = PROBLEMS + (LONG_PROBLEMS if "mbarrier_wait(" in source.read_text() and "_backward" not in source.stem else [])
    some = some + ([HALF_PROBLEM] if "by_dtype_and_head_dim<64>" in source.read_text() and "_backward" in source.stem else [])
    some = some + ([CLUSTER_PROBLEM] if "cluster_sync(" in source.read_text() else [])
    some = some + ([PACKED_PROBLEM] if "    list_tiles(" in source.read_text() else [])
    some = some + (BLOCKS_PROBLEMS if "X::blocks" in source.read_text() or "check_tiles(" in source.read_text() else [])
    some = some + ([UNSEEN_PROBLEM] if "work.queries.start >= work.queries.stop" in source.read_text() else [])
    if is_wide(source):
        rung = [name for name, rung in rungs.items() if rung[source.stem]][-1]
        return [[f"--rung={rung}", f"--direction={source.stem}", *problem] for problem in WIDE_PROBLEMS]
    _, rung, backward = re.fullmatch(r"(\d+_)?(.+?)(_backward)?", source.stem).groups()
    if rung in rungs:
        direction = "backward" if backward or not rungs[rung]["forward"] else "forward"
        return [[f"--rung={name}", f"--direction={direction}", *problem] for name in [rung, *borrowers(source)]
                for problem in some]
    directions = [one for one in ("backward", "forward") if any(rung[one] for rung in rungs.values())]
    found = [[f"--direction={direction}", *problem] for direction, problem in product(directions, some)]
    if source.name == "forward.h" and "to_256" in source.read_text():  # not every rung takes these heads
        found.append([f"--rung={list(rungs)[-1]}", "--direction=forward", *WIDE_PROBLEMS[-1]])
    return found


def verdict(program: str, barrier: str, line: str, source_problems: list) -> str:
    """What the program without this barrier says; empty if it notices nothing."""
    order = {"SIMT_ORDER": "last_first"} if "semaphore_wait(" in line else {}  # else no block comes before its turn
    for problem in source_problems:
        done = run(program, "--check", *problem, without=barrier, **order)
        said = done.stdout + done.stderr
        if done.returncode == 1 and NOTICED.search(said):
            return next(line for line in said.splitlines() if NOTICED.search(line))
    return ""


def main(source_directory: str, program: str, every: str = "") -> int:
    find = barriers if every == "--all" else new_barriers
    described = json.loads(run(program, "--describe").stdout)
    rungs = {rung["name"]: rung for rung in described["rungs"]}
    if "example" in described:
        rungs[described["example"]] = {"forward": True, "backward": False}
    sources = [source for pattern in ("*.cu", "wide/*.cu", "hopper_*.h", "quantize*.h", "forward.h") for source in sorted(Path(source_directory).glob(pattern))
               if source.name != "forward.h" or "mbarrier_wait(" in source.read_text()]
    tries = [(source, *barrier) for source in sources for barrier in find(source)]
    unnoticed = 0
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda one: verdict(program, one[1], one[2], problems(one[0], rungs)), tries)
        for (source, barrier, line), words in zip(tries, said):
            reason = EXEMPT.search(line)
            unnoticed += not words and not reason
            where = f"{source.name}, {barrier}" if SHARED in barrier else barrier
            print(f"{where} " + (f"noticed: {words}" if words else f"not noticed: {reason[0]}" if reason
                                 else "NOT NOTICED: nothing fails without this barrier"))
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
