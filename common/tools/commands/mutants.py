"""which test rejects which wrong kernel: every case of every kind of test against every mutant

The wrong kernels (mutants) and the kinds of tests are those of common/tests. On the SIMT engine it takes some minutes.
With a GPU the table for GPUs is made too, with compute-sanitizer's tools beside our own tests. The cases that no mutant
needs are listed with the reason that they are there for. --write puts the tables into common/tests/mutants/README.md:
the tests hold every mutant and every kind to what is written there.

With --exercises it is the table of common/course/wrong/README.md: which test of an exercise rejects which wrong
solution, and what check says is wrong first.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.base import ROOT, Command, Failure, Progress, build, cuda, say, shown
from tools.course import WRONG, Learner, load, wrong_solutions

README = ROOT / "common" / "tests" / "mutants" / "README.md"
SANITIZERS = {
    "memcheck": "accesses outside of what was allocated",
    "racecheck": "races on shared memory",
    "synccheck": "barriers that not all threads reach",
    "initcheck": "reads of global memory that nobody has written",
}
# The preset for a device, and the programs in it that try mutants.
PROGRAMS = {"engine": ("cpu", ["kill_matrix", "kill_matrix_traced"]), "gpu": ("cuda", ["kill_matrix"])}
FOUND = 99  # an exit status that the program itself does not use
PATIENCE = 200  # seconds; a trial takes some, and one that hangs a GPU would take forever


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=list(PROGRAMS),
                        help="only the table for it (default: all that this machine has)")
    parser.add_argument("--exercises", action="store_true", help="the table of the exercises' wrong solutions instead")
    parser.add_argument("--write", action="store_true", help="put the tables into their README.md")


def run(arguments: argparse.Namespace) -> int:
    if arguments.exercises:
        Learner(load()).require_none_started("a table of wrong solutions")
        path = ROOT / WRONG / "README.md"
        return _say_or_write(path, _with_table(path.read_text(), "exercises", _wrong_solutions_as_markdown()),
                             arguments.write)
    choice = cuda.choose_preset(None)
    if arguments.device == "gpu" and not choice.gpu:
        raise Failure(f"--device gpu: {choice.why}")
    text = README.read_text()
    for device in [arguments.device] if arguments.device else PROGRAMS if choice.gpu else ["engine"]:
        preset, names = PROGRAMS[device]
        directory = build.ensure_built(preset, names)
        found = matrix([directory / "common/tests/mutants" / name for name in names], device == "gpu")
        title = "No mutant needs these cases, which are there for the chapters' own tiles:"
        say("\n  ".join([title, *not_needed(found)]))
        text = _with_table(text, device, as_markdown(found))
    return _say_or_write(README, text, arguments.write)


def _with_table(text: str, name: str, table: str) -> str:
    say(table)
    return re.sub(rf"(<!-- kills: {name} -->\n).*?(<!-- /kills -->)", lambda found: f"{found[1]}\n{table}\n{found[2]}",
                  text, flags=re.S)


def _say_or_write(path: Path, text: str, write: bool) -> int:
    if write:
        path.write_text(text)
        say(f"Written: {shown(path)}")
    elif text != path.read_text():
        say(f"This is not what {shown(path)} says; --write changes it.")
    return 0


def _wrong_solutions_as_markdown() -> str:
    script = ROOT / "common/tests/course/trials.py"
    done = subprocess.run([sys.executable, "-B", script, "--thorough"],
                          env={**os.environ, "PYTHONPATH": str(ROOT / "common")},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"{shown(script)} ended with status {done.returncode}")
    trials = {(trial["exercise"], trial["name"]): trial for trial in json.loads(done.stdout.splitlines()[-1])}
    lines = ["| exercise | wrong solution | its mistake | rejected by | `check` names |", "|---|---|---|---|---|"]
    to_name = right = 0
    for one in wrong_solutions(load()):
        trial = trials.get((one.exercise.id, one.name),
                           {"rejected_by": ["the engine's count"], "stage": "", "lines": []})
        named = trial["stage"] or "-"
        if one.stage and one.exercise.kind == "code":
            to_name, right = to_name + 1, right + (named == one.stage)
        if one.stage and named != one.stage:
            named += f", not {one.stage}"
        says = named if one.exercise.kind != "measure" else "the mistake" if one.sentence else "-"
        lines.append(f"| {one.exercise.id} | `{one.name}` | {_cell(one.mistake)} | {', '.join(trial['rejected_by'])} | "
                     f"{says} |")
        if one.sentence and one.exercise.kind != "measure" and one.sentence not in trial["lines"]:
            say(f"{one.title}: not recognised; check said {' / '.join(trial['lines'])}")
    share = f"Of {to_name} wrong kernels that a student could write, `check` names what is wrong first of {right}."
    return "\n".join([*lines, "", share]) + "\n"


@dataclass
class Matrix:
    """What rejects what. A sanitizer is a kind with one case, which has its name."""

    mutants: "dict[str, str]" = field(default_factory=dict)  # mutant -> its mistake
    kinds: "dict[str, str]" = field(default_factory=dict)  # kind of test -> what it looks for
    cases: "dict[str, dict[str, str]]" = field(default_factory=dict)  # kind -> case -> why the kind has it
    # mutant -> kind -> the cases that reject it
    rejected: "dict[str, dict[str, list[str]]]" = field(default_factory=dict)

    def killers(self, mutant: str) -> "list[str]":
        return [kind for kind in self.kinds if kind in self.rejected[mutant]]

    def needed(self, kind: str) -> "list[str]":
        """As few of its cases as reject all mutants that the kind rejects: first the case that rejects most of what is
        left."""
        left = {mutant for mutant in self.mutants if kind in self.rejected[mutant]}
        found: "list[str]" = []
        while left:
            rejects = {case: {mutant for mutant in left if case in self.rejected[mutant][kind]}
                       for case in self.cases[kind]}
            best = max(rejects, key=lambda case: len(rejects[case]))
            found.append(best)
            left -= rejects[best]
        return found


def matrix(programs: "list[Path]", with_sanitizers: bool) -> Matrix:
    result = Matrix()
    for program in programs:
        listed = json.loads(_output([program, "list"]))
        result.mutants = listed["mutants"]
        result.kinds.update({kind: entry["looks_for"] for kind, entry in listed["kinds"].items()})
        result.cases.update({kind: entry["cases"] for kind, entry in listed["kinds"].items()})
    if with_sanitizers:
        result.kinds.update(SANITIZERS)
        result.cases.update({tool: {tool: "small problems"} for tool in SANITIZERS})

    # The tests first: they take longer than the sanitizers do.
    names = list(result.mutants)
    groups = [names[i::build.cores()] for i in range(min(build.cores(), len(names)))]
    trials: list[Any] = [(_rejected_by_tests, program, group) for program in programs for group in groups]
    if with_sanitizers:
        trials += [(_rejected_by_sanitizer, programs[0], [mutant], tool) for mutant in names for tool in SANITIZERS]
    result.rejected = {mutant: {} for mutant in names}
    with Progress("Trying every case on every mutant") as progress, ThreadPoolExecutor(build.cores()) as pool:
        for number, found in enumerate(pool.map(lambda trial: trial[0](*trial[1:]), trials), 1):
            for mutant, kinds in found.items():
                result.rejected[mutant].update(kinds)
            progress.show(f"{number} of {len(trials)}")
    return result


def _rejected_by_tests(program: Path, mutants: "list[str]") -> "dict[str, dict[str, list[str]]]":
    """One process tries them all, since what takes it longest is to compute what is right. After a mutant that takes it
    down, as a wrong kernel on a GPU may, another one goes on with the next."""
    found: "dict[str, dict[str, list[str]]]" = {mutant: {} for mutant in mutants}
    left = mutants
    while left:
        lines = _output([program, "run", *left], PATIENCE * len(left)).splitlines()
        for line in lines:
            rejected = re.match(r"(\w+) (\w+) ([\w.]+): ", line)
            if rejected and rejected[1] in found:
                found[rejected[1]].setdefault(rejected[2], []).append(rejected[3])
        left = left[sum(mutant in lines for mutant in left) + 1:]
    return found


def _rejected_by_sanitizer(program: Path, mutants: "list[str]", tool: str) -> "dict[str, dict[str, list[str]]]":
    done = _run(["compute-sanitizer", "--tool", tool, f"--error-exitcode={FOUND}", program, "launch", *mutants])
    return {mutant: {tool: [tool]} if done.returncode == FOUND else {} for mutant in mutants}


def _output(command: Command, patience: int = PATIENCE) -> str:
    done = _run(command, patience)
    if done.returncode != 0 and not done.stdout:  # a GPU may take the program down with a wrong kernel
        raise Failure(f"{' '.join(map(str, command))} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _run(command: Command, patience: int = PATIENCE) -> subprocess.CompletedProcess[str]:
    words = [str(part) for part in command]
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=patience)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(words)} has not ended after {patience} s: does a wrong kernel hang? Nothing is "
                      "written.") from None


def as_markdown(found: Matrix) -> str:
    lines = ["| mutant | its mistake | rejected by |", "|---|---|---|"]
    lines += [f"| `{mutant}` | {_cell(mistake)} | {', '.join(found.killers(mutant))} |"
              for mutant, mistake in found.mutants.items()]
    lines += ["", "| kind of test | looks for | cases | needed | rejects | and nobody else rejects |",
              "|---|---|--:|--:|--:|---|"]
    for kind, looks_for in found.kinds.items():
        rejected = [mutant for mutant in found.mutants if kind in found.rejected[mutant]]
        alone = [f"`{mutant}`" for mutant in rejected if found.killers(mutant) == [kind]]
        lines.append(f"| {kind} | {_cell(looks_for)} | {len(found.cases[kind])} | {len(found.needed(kind))} "
                     f"| {len(rejected)} | {', '.join(alone)} |")
    return "\n".join(lines) + "\n"


def not_needed(found: Matrix) -> "list[str]":
    """A line for every case that no mutant needs: why it is there."""
    return [f"{kind} {case}: {because}" for kind, cases in found.cases.items()
            for case, because in cases.items() if case not in found.needed(kind)]


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")
