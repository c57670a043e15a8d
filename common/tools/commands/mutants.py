"""which kind of test rejects which wrong kernel: each against each

The wrong kernels (mutants) and the kinds of tests are those of common/tests. On the SIMT engine it takes some minutes. With a
GPU the table for GPUs is made too, with compute-sanitizer's tools beside our own tests. --write puts the tables into
common/tests/mutants/README.md: the tests hold every mutant and every kind to what is written there.

With --exercises it is the table of common/course/wrong/README.md: which test of an exercise rejects which wrong solution.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tools.base import ROOT, Failure, Progress, build, cuda, say, shown
from tools.course import WRONG, load, wrong_solutions

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


def add_arguments(parser) -> None:
    parser.add_argument("--device", choices=list(PROGRAMS), help="only the table for it (default: all that this machine has)")
    parser.add_argument("--exercises", action="store_true", help="the table of the exercises' wrong solutions instead")
    parser.add_argument("--write", action="store_true", help="put the tables into their README.md")


def run(arguments) -> int:
    if arguments.exercises:
        path = ROOT / WRONG / "README.md"
        return _say_or_write(path, _with_table(path.read_text(), "exercises", _wrong_solutions_as_markdown()), arguments.write)
    choice = cuda.choose_preset(None)
    if arguments.device == "gpu" and not choice.gpu:
        raise Failure(f"--device gpu: {choice.why}")
    text = README.read_text()
    for device in [arguments.device] if arguments.device else PROGRAMS if choice.gpu else ["engine"]:
        preset, names = PROGRAMS[device]
        directory = build.ensure_built(preset, names)
        programs = [directory / "common/tests/mutants" / name for name in names]
        tables = as_markdown(*matrix(programs, device == "gpu"))
        text = _with_table(text, device, tables)
    return _say_or_write(README, text, arguments.write)


def _with_table(text: str, name: str, table: str) -> str:
    say(table)
    return re.sub(rf"(<!-- kills: {name} -->\n).*?(<!-- /kills -->)", lambda found: f"{found[1]}\n{table}\n{found[2]}", text, flags=re.S)


def _say_or_write(path, text: str, write: bool) -> int:
    if write:
        path.write_text(text)
        say(f"Written: {shown(path)}")
    elif text != path.read_text():
        say(f"This is not what {shown(path)} says; --write changes it.")
    return 0


def _wrong_solutions_as_markdown() -> str:
    script = ROOT / "common/tests/course/trials.py"
    done = subprocess.run([sys.executable, "-B", script, "--thorough"], env={**os.environ, "PYTHONPATH": str(ROOT / "common")},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"{shown(script)} ended with status {done.returncode}")
    rejected_by = {(trial["exercise"], trial["name"]): trial["rejected_by"] for trial in json.loads(done.stdout.splitlines()[-1])}
    lines = ["| exercise | wrong solution | its mistake | rejected by |", "|---|---|---|---|"]
    for one in wrong_solutions(load()):
        by = rejected_by.get((one.exercise.id, one.name), ["the engine's count"])
        lines.append(f"| {one.exercise.id} | `{one.name}` | {_cell(one.mistake)} | {', '.join(by)} |")
    return "\n".join(lines) + "\n"


def matrix(programs: list, with_sanitizers: bool) -> tuple:
    """(mutant -> its mistake, kind -> what it looks for, mutant -> the kinds that reject it)"""
    mutants, kinds = {}, {}
    for program in programs:
        listed = json.loads(_output([program, "list"]))
        mutants = listed["mutants"]
        kinds.update(listed["kinds"])
    if with_sanitizers:
        kinds.update(SANITIZERS)

    # The tests first: they take longer than the sanitizers do.
    trials = [(_rejected_by_tests, program, mutant) for mutant in mutants for program in programs]
    if with_sanitizers:
        trials += [(_rejected_by_sanitizer, programs[0], mutant, tool) for mutant in mutants for tool in SANITIZERS]
    killers = {mutant: [] for mutant in mutants}
    with Progress("Trying every kind of test on every mutant") as progress, ThreadPoolExecutor(build.cores()) as pool:
        for number, (trial, found) in enumerate(zip(trials, pool.map(lambda trial: trial[0](*trial[1:]), trials)), 1):
            killers[trial[2]] += found
            progress.show(f"{number} of {len(trials)}  {trial[2]}")
    return mutants, kinds, killers


def _rejected_by_tests(program, mutant: str) -> list:
    found = [re.match(rf"{mutant} (\w+): ", line) for line in _output([program, "run", mutant]).splitlines()]
    return [one[1] for one in found if one]


def _rejected_by_sanitizer(program, mutant: str, tool: str) -> list:
    done = _run(["compute-sanitizer", "--tool", tool, f"--error-exitcode={FOUND}", program, "launch", mutant])
    return [tool] if done.returncode == FOUND else []


def _output(command: list) -> str:
    done = _run(command)
    if done.returncode != 0 and not done.stdout:  # a GPU may take the program down with a wrong kernel
        raise Failure(f"{' '.join(map(str, command))} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _run(command: list) -> subprocess.CompletedProcess:
    words = [str(part) for part in command]
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(words)} has not ended after {PATIENCE} s: does a wrong kernel hang? Nothing is written.")


def as_markdown(mutants: dict, kinds: dict, killers: dict) -> str:
    lines = ["| mutant | its mistake | rejected by |", "|---|---|---|"]
    lines += [f"| `{mutant}` | {_cell(mistake)} | {', '.join(kind for kind in kinds if kind in killers[mutant])} |"
              for mutant, mistake in mutants.items()]
    lines += ["", "| kind of test | looks for | rejects | and nobody else rejects |", "|---|---|--:|---|"]
    for kind, looks_for in kinds.items():
        rejected = [mutant for mutant in mutants if kind in killers[mutant]]
        alone = [f"`{mutant}`" for mutant in rejected if killers[mutant] == [kind]]
        lines.append(f"| {kind} | {_cell(looks_for)} | {len(rejected)} | {', '.join(alone)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")
