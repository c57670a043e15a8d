"""The counts of a program's kernels are those in a file of this directory, number by number.

    expect_counts.py [--write] FILE PROGRAM FLAGS...

PROGRAM, run with FLAGS, prints its counts as JSON. With --write the file is made from them: ./workbook dev counts does
that. A launch that counts what one before it does has that one's name in the place of numbers. In the first tier the
last rung is asked, and of those before it every third.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def flatten(name: str, value, into: dict) -> dict:
    """{"a": {"b": 1}} -> {"a b": 1}."""
    if isinstance(value, dict):
        for key, part in value.items():
            flatten(f"{name} {key}".strip(), part, into)
    else:
        into[name] = value
    return into


FIRST = os.environ.get("WORKBOOK_TIER") == "first"  # see ../tiers.py


def counts(program: list) -> dict:
    """{"rung: kernel, launch 1": {"shared_load wavefronts": 65536, ..}}, everything but the source lines, and what is
    counted for exercises alone; the launches of a backward are those of "rung, backward", if the program has a forward too."""
    rungs = json.loads(output([program[0], "--describe"]))["rungs"] if "--trace" in program else []
    both = all(any(rung[direction] for rung in rungs) for direction in ("forward", "backward")) if rungs else False
    found = {}
    for direction in ("forward", "backward") if both else ("",):
        flags = [f"--direction={direction}"] if direction else []
        asked = [rung["name"] for rung in rungs if rung[direction or "forward"] or not both][::-3] if FIRST else []
        for one in [[f"--rung={name}"] for name in asked] or [[]]:
            told = json.loads(output([*program, *flags, *one]))["rungs"]
            if not any(rung["launches"] for rung in told):
                raise SystemExit(f"{' '.join([*program, *flags, *one])} launches nothing")
            for rung in told:
                title = rung["rung"] + (", backward" if direction == "backward" else "")
                for number, launch in enumerate(rung["launches"], 1):
                    kernel, totals, *_ = [launch.pop(name, {}) for name in ("kernel", "totals", "lines", "for_exercises")]
                    found[f"{title}: {kernel}, launch {number}"] = flatten("", launch | totals, {})
    if FIRST or any(flag.startswith(("--packed", "--block-mask", "--rung=")) for flag in program):
        return found  # of the rungs that take such a problem, or of the one that is named
    counted = {launch.partition(":")[0] for launch in found}
    missing = [title for rung in rungs for direction, title in (("forward", rung["name"]),
                                                                ("backward", f"{rung['name']}, backward" if both else
                                                                 rung["name"]))
               if rung[direction] and title not in counted]
    if missing:
        raise SystemExit(f"{' '.join(program)} launches nothing for: {'; '.join(missing)}")
    return found


def read(path: Path) -> dict:
    recorded = json.loads(path.read_text())
    return {launch: recorded[own] if isinstance(own, str) else own for launch, own in recorded.items()}


def record(path: Path, found: dict) -> None:
    first: dict = {}
    names = {launch: first.setdefault(json.dumps(own), launch) for launch, own in found.items()}
    path.write_text(json.dumps({launch: own if names[launch] == launch else names[launch] for launch, own in found.items()},
                               indent=1) + "\n")


def output(program: list) -> str:
    # A grid may be as large as there are multiprocessors, and the engine has as many of those as threads.
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "SIMT_THREADS": "2"})
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(program)} ended with status {done.returncode}: {done.stderr}")
    return done.stdout


def main(arguments: list) -> int:
    write = arguments[:1] == ["--write"]
    path, *program = arguments[1:] if write else arguments
    path, found = Path(path), counts(program)
    if not path.exists() and not write:
        print(f"nobody has recorded what {path.stem} counts: {how_to_record(path)} does")
        return 1
    expected = read(path) if path.exists() else {}
    if FIRST:  # of the rungs that were asked
        titles = {launch.partition(":")[0] for launch in found}
        expected = {launch: own for launch, own in expected.items() if launch.partition(":")[0] in titles}
    if write:
        record(path, found)
    wrong = 0
    for launch in sorted(expected.keys() | found.keys()):
        before, now = expected.get(launch, {}), found.get(launch, {})
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                wrong += 1
                if not write:
                    print(f"{launch}: {name} is {now.get(name)}, expected {before.get(name)}")
    total = sum(map(len, found.values()))
    if write:
        print(f"{path.stem}: {total} counts recorded, " + (f"{wrong} of them not as they were: git diff {path.name} "
                                                           "shows them" if wrong else "all as they were"))
    elif wrong:
        print(f"{wrong} counts differ; if the kernels were meant to change, {how_to_record(path)} records the new ones")
    else:
        print(f"{total} counts as expected")
    return 1 if wrong and not write else 0


def how_to_record(path: Path) -> str:
    number = path.stem.partition("_")[0]
    return f"./workbook dev counts {number if number.isdigit() else path.stem}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
