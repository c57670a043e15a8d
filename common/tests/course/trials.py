"""What ./workbook check says of every stub, every planted mistake and every wrong solution.

The trials are made in a copy of the tree, by a process of its own that has the copy's modules. What is the same as in the tree,
and has been compiled there, is not compiled again. All trials of a file are compiled as one: most of a compiler's time goes
into headers. Each has a namespace of its own there, and WORKBOOK_TRIAL says which of them the program runs.

    trials.py [--thorough] [EXERCISE..]
        makes a copy and prints the trials, as JSON, in its last line: of each of these exercises, or of all, the first two wrong
        solutions; --thorough tries all of them, asks every test of an exercise, does not stop at the first that rejects a
        solution, and says what a student is told of it
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tools.base import ROOT, build
from tools.course import judging
from tools.course.exercises import Course, Exercise, load
from tools.course.wrong import wrong_solutions

STUB = "stub"  # the name of what is handed out
COUNTS = "counts"  # what rejects a solution that goes beyond a limit
_NOT_COPIED = shutil.ignore_patterns("build", ".*", "__pycache__", "results")
_FLAGS, _OPTIMISED = Path("common/simt/kernel_flags.cmake"), "set(simt_plain_flags -O2"
_HERE, _THOROUGH = "--here", "--thorough"  # flags of this script; the first one: this is the copy
_DECLARED = re.compile(r"^extern const attention::(\w+) (\w+);.*\n", re.M)
_DEFINED = re.compile(r"^extern const attention::(\w+) (\w+);.*\n(?:constinit )?const attention::\1 \2 =", re.M)


@dataclass(frozen=True)
class Trial:
    exercise: str
    name: str  # of the wrong solution
    state: str  # what check says of it
    rejected_by: list  # kinds of tests, and COUNTS: the first one, or, if thorough, all; of a stub, too
    stage: str = ""  # if thorough: what check says is wrong first,
    lines: tuple = ()  # and all that it says


def trials(exercises: "list[str]", thorough: bool = False) -> "list[Trial]":
    """Of all exercises if none is named."""
    flags = [*([_THOROUGH] if thorough else []), *exercises]
    return [Trial(**entry) for entry in json.loads(_in_a_copy(flags).splitlines()[-1])]


def _in_a_copy(flags: list) -> str:
    """What this script prints there."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        _make_a_copy(copy)
        launcher = [sys.executable, "-I", "-S", "-B", str(ROOT / "common/tests/new_chapter/reuse.py"), str(ROOT), str(copy)]
        environment = {**os.environ, "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(launcher), "PYTHONPATH": str(copy / "common"),
                       "WORKBOOK_TRIAL": "0"}
        script = copy / "common/tests/course/trials.py"
        done = subprocess.run([sys.executable, "-B", script, _HERE, *flags], cwd=copy, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{script} ended with status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


def _make_a_copy(copy: Path) -> None:
    shutil.copytree(ROOT, copy, ignore=_NOT_COPIED)
    if (ROOT / "build/cpu/references").is_dir():  # what the kernels should answer
        (copy / "build/cpu").mkdir(parents=True)
        (copy / "build/cpu/references").symlink_to(ROOT / "build/cpu/references")
    flags = (copy / _FLAGS).read_text()
    assert flags.count(_OPTIMISED) == 1, f"{_FLAGS} has no {_OPTIMISED}"
    (copy / _FLAGS).write_text(flags.replace(_OPTIMISED, "set(simt_plain_flags -O1"))  # in less time


# --- In the copy -----------------------------------------------------------------------------------------------------


def as_one(texts: list) -> str:
    """A source that has all of these, one of which WORKBOOK_TRIAL chooses by its number."""
    (namespace,) = set(re.findall(r"^}  // namespace (\w+)\n*\Z", texts[0], re.M))
    parts = [_as_a_trial(text, namespace, number) for number, text in enumerate(texts)]
    parts.append(f"#include <cstdlib>\nnamespace {namespace} {{")
    for kind, name in _DEFINED.findall(texts[0]):
        # Before the list of rungs is made of it; but a chapter that is one file is made of its own rungs first.
        first = "" if kind == "Chapter" else "[[gnu::init_priority(101)]] "
        choices = ", ".join(f"&trial_{number}::{name}" for number in range(len(texts)))
        parts.append(f"extern const attention::{kind} {name};\n{first}const attention::{kind} {name} = [] {{\n"
                     f"  const attention::{kind}* const all[] = {{{choices}}};\n"
                     f"  return *all[std::atoi(std::getenv(\"WORKBOOK_TRIAL\")) % {len(texts)}];\n}}();")  # others have more
    return "\n".join([*parts, "}\n"])


def _as_a_trial(text: str, namespace: str, number: int) -> str:
    """The text in a namespace of its own. What it declares and other files define stays where it was."""
    defined = {name for _, name in _DEFINED.findall(text)}
    before, begin, inside = text.partition(f"\nnamespace {namespace} {{\n")
    of_others = "".join(line[0] for line in _DECLARED.finditer(inside) if line[2] not in defined)
    inside = _DECLARED.sub(lambda line: line[0] if line[2] in defined else "", inside)
    inside = re.sub(rf"\b{namespace}::", f"{namespace}::trial_{number}::", inside)
    return f"{before}{begin}{of_others}}}\n\nnamespace {namespace}::trial_{number} {{\n{inside}"


def with_kernels(course: Course) -> "list[Exercise]":
    return [one for one in course.exercises if one.kind != "measure" and not one.needs_gpu]


def _try_all(thorough: bool, exercises: "list[str]") -> list:
    course = load()
    kernels = [one for one in with_kernels(course) if not exercises or one.id in exercises]
    attempts = [(one, STUB, course.replaced(one, course.handed_out(one))) for one in kernels]
    tried = collections.Counter()
    for one in wrong_solutions(course):
        tried[one.exercise.id] += 1
        if one.exercise in kernels and (thorough or tried[one.exercise.id] <= 2):
            attempts.append((one.exercise, one.name, one.text))

    of_file = {}
    for exercise, _, text in attempts:
        of_file.setdefault(exercise.file, []).append(text)
    right = {file: (course.root / file).read_text() for file in of_file}
    for file, texts in of_file.items():
        (course.root / file).write_text(as_one(texts))
    programs = ["{}_tests", "{}_traced", "{}_traced_tests"] if thorough else ["{}_tests"]
    targets = sorted({program.format(one.chapter) for one in kernels for program in programs})
    built = build.ensure_built("cpu", targets, quietly=True)
    for file, text in right.items():
        (course.root / file).write_text(text)

    really = build.ensure_built  # of traced kernels, unless thorough: only what a limit asks for, alone in its file
    with mock.patch.object(build, "ensure_built", lambda preset, wanted, **how:
                           built if set(wanted) <= set(targets) else really(preset, wanted, **how)):
        found = []
        for exercise, name, text in attempts:
            os.environ["WORKBOOK_TRIAL"] = str(of_file[exercise.file].index(text))
            (course.root / exercise.file).write_text(text)
            found.append(_try(course, exercise, name, thorough))
            (course.root / exercise.file).write_text(right[exercise.file])
        return found


def _try(course: Course, exercise: Exercise, name: str, thorough: bool) -> dict:
    verdict = judging.judge(course, exercise, explain=thorough)
    if thorough:
        rejected_by = judging.tests_against(course, exercise)
    else:
        found = None if verdict.state != "not attempted" else judging.objection(course, exercise, explain=False)
        lines = found.lines if found else verdict.lines if verdict.state == "wrong" else []
        rejected_by = [_test_of(lines)] if lines else []
    return {"exercise": exercise.id, "name": name, "state": verdict.state, "rejected_by": rejected_by, "stage": verdict.stage,
            "lines": verdict.lines}


def _test_of(lines: list) -> str:
    """Which test it was that said this."""
    found = re.search(r"found by the test `(\w+)`", "\n".join(lines))
    return found[1] if found else COUNTS if "are enough" in lines[0] else lines[0]


def main(flags: list) -> None:
    if _HERE in flags:
        print("\n" + json.dumps(_try_all(_THOROUGH in flags, [word for word in flags if not word.startswith("--")])))
    else:
        print(_in_a_copy(flags), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
