"""Is an exercise right? The chapter's own suite decides, run for its rung alone, and names the first mistake."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import Command, JsonObject, build, ending_of, started, substitutes
from tools.course import rungs, stages, wrong
from tools.course.exercises import WAYS, Course, Exercise

# What can be wrong besides a number in the kernel or a result: stages of a Verdict.
ENGINE, COUNT, HANGS = "engine", "count", "hangs"
USUAL_INPUTS = "spread"  # of common/harness/tensors.h: what programs have that are told nothing else
PATIENCE = 60  # seconds for one run of a program: what takes longer hangs
_SHOWN_OF_A_RESULT = re.compile(r"(\w+)\[b=(\d+), h=(\d+), i=(\d+)(?:, d=(\d+))?\] is (\S+), expected (\S+)")
_ENGINE = re.compile(r"cudaError\w+: (kernel .*)")

# Counts that need more words than their names.
_IN_WORDS = {"votes_alone": "votes, matches and reductions of a warp while no product of its own runs",
             "bytes_alone": "bytes that threads write while no product of their warp runs",
             "bytes_before_release": "bytes that threads write before they hand back what their last product has read",
             "waits_for_all_products": "waits after which a warp has no product on its way",
             "flops_out_of_turn": "flops of products that start outside of a turn",
             "flops_ended_in_turn": "flops of products that are waited for before the turn is passed on",
             "flops_of_a_block": "matrix flops of one block",
             "stores_waited_out": "bulk stores and adds that are waited for longer than they read",
             "accesses_of_a_thread": "accesses to memory by the busiest thread",
             "copies_alone": "copies that land before a product has run beside them",
             "comparisons_after_votes": "comparisons between the warp's vote and its next product",
             "bytes_after_votes": "bytes that threads write between the warp's vote and its next product"}

KernelCounts = tuple[str, dict[str, float]]  # of a launch: (kernel, {"global_load sectors": 12, ..})


class DoesNotEnd(Exception):
    def __init__(self, seconds: float = PATIENCE):
        super().__init__(f"it has not ended after {seconds:g} s: does a loop of the kernel not end?")


@dataclass(frozen=True)
class Objection:
    """To an exercise's rung."""
    lines: list[str]
    stage: str  # as in a Verdict
    problem: "JsonObject | None" = None  # with which a result is wrong


@dataclass(frozen=True)
class Verdict:
    state: str  # right, wrong, not attempted, does not compile, not run; of a question also not answered
    lines: list[str] = field(default_factory=list)  # for whoever wants to know more
    stage: str = ""  # of a wrong kernel: what is wrong first (wrong.py), as far as is known


class Workshop:
    """Where exercises are built and run: here, in this tree, with the caller's rights."""

    books: "tuple[str, ...]" = ()  # other exercises, of which the book's text is judged in place of the learner's
    explains = False  # a wrong kernel: where it goes wrong first, and what to ask of a mistake that is known

    def built(self, preset: str, targets: list[str]) -> Path:
        """The build directory; DoesNotBuild if it cannot be built."""
        return build.ensure_built(preset, targets, quietly=True)

    def has_built(self, program: Path) -> bool:
        """Whether the program has been built before, so that a build takes little time."""
        return True

    def answer(self, command: Command, environment: dict[str, str]) -> tuple[int, str]:
        """(exit status, all that it prints); DoesNotEnd."""
        return _answer(command, environment)

    def passed(self, output: str) -> int:
        """How many tests of the suite have passed in the last answer, which printed this."""
        ran = re.search(r"\[  PASSED  \] (\d+) test", output)
        return int(ran[1]) if ran else 0


class _ThisTree(Workshop):
    explains = True

    def has_built(self, program: Path) -> bool:
        return (build.directory("cpu") / program).exists()


HERE = _ThisTree()


# With these nothing of a kernel gets out of a local array untold, in grading. g++ tells the engine of no access to a
# variable whose address it can follow, so it follows none. Where nobody takes an array's address, an index that is out
# of bounds ends the kernel (simt/trace/traced.cc). Counts are other ones with these flags: less leaves a loop.
AS_GRADED = ("-fno-tree-pta", "-fsanitize=bounds-strict", "-fno-sanitize-recover=bounds-strict")


class Beside(_ThisTree):
    """This tree, but for the book's text of other exercises, and traced kernels of one file as grading compiles it."""

    def __init__(self, name: str, books: list[str], texts: dict[str, str], if_need_be: dict[str, str],
                 as_graded: "dict[str, str] | None" = None):
        """texts {file: text}; of if_need_be those that do not compile otherwise; of as_graded, where kernels are
        traced, those that are not among the others."""
        self.name, self.books, self._texts, self._if_need_be = name, tuple(books), texts, if_need_be
        self._as_graded = as_graded or {}

    def built(self, preset: str, targets: list[str]) -> Path:
        traced = preset == "cpu" and bool(self._as_graded) and any("_traced" in target for target in targets)
        try:
            if traced:
                texts = {**self._as_graded, **self._texts}
                return substitutes.built_beside(preset, targets, texts, self.name, AS_GRADED)
            if not self._texts:
                return super().built(preset, targets)
            return substitutes.built_beside(preset, targets, self._texts, self.name)
        except build.DoesNotBuild as failure:
            broken = {file: text for file, text in self._if_need_be.items()
                      if file not in self._texts and any(f"{file}:" in line for line in failure.errors)}
            if not broken:
                raise
            self._texts = {**self._texts, **broken}
            return self.built(preset, targets)


def judge(course: Course, exercise: Exercise, gpu: bool = False, explain: bool = True,
          workshop: Workshop = HERE) -> Verdict:
    """Of a code or debugging exercise, on the SIMT engine; with `gpu` on a GPU too, after the engine has nothing
    against it. A caller that only needs right or wrong can do without the explanation, which is slow."""
    attempted = course.attempted(exercise)
    if not attempted and (exercise.kind == "code" or not explain):
        return Verdict("not attempted", [_where_to_begin(course, exercise)])
    if exercise.needs_gpu and not gpu:
        return Verdict("not run", ["it needs a GPU: ./workbook check --gpu"])
    try:
        found = objection(course, exercise, explain, workshop)
        if not found and gpu:
            found = _of_the_suite(course, exercise, "cuda", [test for test in exercise.tests if test != "trace"],
                                  workshop)
    except build.DoesNotBuild as failure:
        return Verdict("does not compile", failure.errors[:1])
    except DoesNotEnd as hanging:
        found = Objection([str(hanging)], HANGS)
    if not attempted:  # what a mistake does is where the search for it begins
        return Verdict("not attempted", [_where_to_begin(course, exercise), *(found.lines if found else [])])
    if not found:
        return Verdict("right")
    sentence = wrong.sentence_of_code(course, exercise, found.lines) if explain and workshop.explains else None
    return Verdict("wrong", [*found.lines, *([sentence] if sentence else []),
                             *_not_its_fault(course, exercise, workshop.books)], found.stage)


def _not_its_fault(course: Course, exercise: Exercise, books: "tuple[str, ...]") -> list[str]:
    """Which exercises of the same rung are still as they were handed out: the tests judge the rung as a whole. But for
    those that are judged with the book's text."""
    if books:
        return [f"{', '.join(books)}, in the same kernels, was judged with the book's text: yours is still open"]
    return [f"{other.id}, in the same file, is not attempted yet, and the tests judge both together: write it, and "
            "check this one again"
            for other in course.exercises if other.kind == "code" and other.id != exercise.id
            and (other.file, other.rung, other.direction) == (exercise.file, exercise.rung, exercise.direction)
            and not course.attempted(other)]


def _where_to_begin(course: Course, exercise: Exercise) -> str:
    if exercise.kind == "debug":
        return f"{exercise.file} has a mistake somewhere"
    region = course.region(exercise)
    return f"{exercise.file}:{region.first}: {region.task}"


def objection(course: Course, exercise: Exercise, explain: bool = True,
              workshop: Workshop = HERE) -> "Objection | None":
    """The first thing that is wrong on the engine; None if all is right. A mistake that the engine sees on a line of
    the kernel explains wrong numbers, and takes their place. (But where the exercise is not about such mistakes, the
    engine that sees them is not built for it: that takes longer than all else.) Else it is the first number in the
    kernel that is wrong. Of a mistake that is to be found, only what it does is said."""
    explain = explain and exercise.kind != "debug"
    traced = "trace" in exercise.tests
    found = _of_the_suite(course, exercise, "cpu", [test for test in exercise.tests if test != "trace"], workshop)
    look_closer = explain and found.stage != ENGINE and (
        traced or workshop.has_built(_suite(exercise, traced=True))) if found else traced
    if look_closer:
        found = _of_the_suite(course, exercise, "cpu", ["trace"], workshop) or found
    if not found:
        return _beyond_a_limit(exercise, workshop)
    if exercise.kind == "debug":
        return _symptom(course, exercise, found)
    if explain and found.problem and found.stage != ENGINE and workshop.explains:
        return _first_wrong_stage(exercise, found, workshop)
    return found


def _symptom(course: Course, exercise: Exercise, found: Objection) -> Objection:
    rung, other = f"{exercise.kernels}/{exercise.rung}", _rung_beside(course, exercise)
    problem = {key: value for key, value in (found.problem or {}).items() if key not in ("inputs", "scale")}
    direction = " --direction=backward" if exercise.direction == "backward" else ""
    compare = [f"  ./workbook compare {rung} {exercise.kernels}/{other}{direction} --diff"
               "  (with one that is right: what differs)"]
    inputs = (found.problem or {}).get("inputs", USUAL_INPUTS)
    others = [f"  (Both have the usual inputs, not `{inputs}`: with these the results may be right.)"]
    return Objection([*found.lines, "what is the cause? Look what the kernel does:",
                      f"  {command_that_counts(exercise, problem)}  (checks every access)",
                      f"  {' '.join(['./workbook walk', rung, *_flags(problem)])}  (shows every step)",
                      *(others if inputs != USUAL_INPUTS else []), *(compare if other else [])], found.stage)


def _rung_beside(course: Course, exercise: Exercise) -> str:
    """The rung nearest to the exercise's in its chapter, of the same direction, in which the learner has nothing to do
    any more; empty if there is none."""
    listed = [one for one in rungs.read(course.root, {}).listed(exercise.chapter)
              if exercise.direction in one.directions]
    names = [one.name for one in listed]
    if exercise.rung not in names:
        return ""
    at = names.index(exercise.rung)
    open_files = {one.file for one in course.exercises if one.kind != "measure" and not course.attempted(one)}
    right = [(abs(i - at), i, one.name) for i, one in enumerate(listed)
             if i != at and not open_files & one.files and exercise.file not in one.files]
    return min(right)[2] if right else ""


def _first_wrong_stage(exercise: Exercise, found: Objection, workshop: Workshop) -> Objection:
    """Where the kernel goes wrong first, and then what else is known; that alone if nothing that the kernel shows is
    wrong, or its program cannot say: what it compares with has no extras."""
    if any(name in (found.problem or {}) for name in stages.EXTRAS):
        return found
    printed = _printed(exercise.place, exercise.rung, exercise.direction, "--diagnose", found.problem or {}, workshop)
    try:
        (one,) = printed["rungs"] if isinstance(printed, dict) else []
        said, stage = stages.in_words(one["diagnosis"]), stages.stage(one["diagnosis"])
    except (KeyError, TypeError, ValueError):
        return found
    first, *rest = found.lines
    return Objection([*said, *rest], stage) if stage else Objection([first, *said, *rest], found.stage)


def tests_against(course: Course, exercise: Exercise) -> list[str]:
    """Which of the exercise's tests reject it, each run alone; "counts" if only a limit is exceeded."""
    against = [test for test in exercise.tests
               if _of_the_suite(course, exercise, "cpu", [test], HERE)]
    return against or (["counts"] if _beyond_a_limit(exercise, HERE) else [])


def _suite(exercise: Exercise, traced: bool) -> Path:
    """The program of its chapter's tests, in a build directory: with traced kernels it has the test `trace`, else all
    others."""
    return exercise.place / f"{exercise.chapter}{'_traced' if traced else ''}_tests"


def _of_the_suite(course: Course, exercise: Exercise, preset: str, tests: list[str],
                  workshop: Workshop) -> "Objection | None":
    if not tests:
        return None
    suite = _suite(exercise, traced=tests == ["trace"])
    program = workshop.built(preset, [suite.name]) / suite
    wanted = ":".join(f"All/Rungs.Pass/{test}" for test in tests)
    status, output = workshop.answer([program, f"--gtest_filter={wanted}", "--gtest_fail_fast"],
                                     {"WORKBOOK_PASS": f"{exercise.rung} {exercise.direction}"})
    if status == 0 and workshop.passed(output) == len(tests):
        return None
    return _first_wrong(course, exercise, output) or Objection(
        [f"the tests {', '.join(tests)} {ending_of(status)}: {_last_line(output)}"], "")


def _answer(command: Command, environment: dict[str, str]) -> tuple[int, str]:
    """(exit status, all that it prints)"""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                 env={**os.environ, **environment}) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise DoesNotEnd from None
    return process.returncode, output


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1]


def _first_wrong(course: Course, exercise: Exercise, output: str) -> "Objection | None":
    """GoogleTest's first failure, in words for a student."""
    said = re.search(r'Which is: "(.*)"', output)
    if not said:
        other = re.search(r": Failure\n(?:Failed\n)?(.+)", output)
        return Objection([other[1]], "") if other else None
    words = said[1].replace('\\"', '"').replace(f"{course.root}/", "")
    test = re.search(r"\[  FAILED  \] All/Rungs\.Pass/(\w+), where GetParam\(\) = (.*?)(?: \(\d+ ms\))?\n", output)
    of_test = [f"found by the test `{test[1]}`: {test[2]}"] if test else []
    engine, element = _ENGINE.search(words), _SHOWN_OF_A_RESULT.search(words)
    problem = stages.problem_of_case(words)
    in_problem = [_in_words(problem)] if problem else []
    if engine:
        return Objection([engine[1], *in_problem, *of_test], ENGINE, problem)
    if not element:
        return Objection([words, *of_test], "", problem)
    lines = [_element(course, exercise, *element.groups()), *in_problem, *of_test]
    return Objection(lines, element[1], problem)


def _element(course: Course, exercise: Exercise, tensor: str, b: str, h: str, row: str, column: "str | None", got: str,
             want: str) -> str:
    where = f"{tensor}[b={b}, h={h}, row {row}" + (f", column {column}" if column else "") + "]"
    return f"{where}: got {got}, want {want}{_tile(course, exercise, tensor, int(row))}"


def _tile(course: Course, exercise: Exercise, tensor: str, row: int) -> str:
    of_a_block = exercise.tile.get(tensor) or (exercise.tile.get("o") if tensor == "lse" else None)
    if of_a_block is None:
        return ""
    sources = [course.text(exercise), *(path.read_text() for path in sorted(course.root.glob("common/device/*.h")))]
    rows = of_a_block if isinstance(of_a_block, int) else constant("\n".join(sources), of_a_block)
    first = row // rows * rows
    return f" (in the tile of rows {first} to {first + rows - 1}, row {row - first} of it)"


def constant(text: str, name: str) -> int:
    """The value of the first `constexpr int` of that name, which may be a product of others; 0 if there is none."""
    found = re.search(rf"constexpr int (?:[^;]*, )?{name} = ([^,;]+)", text)
    product = 1
    for factor in found[1].split("*") if found else ["0"]:
        factor = factor.strip()
        product *= int(factor) if factor.isdigit() else constant(text, factor)
    return product


def _in_words(problem: JsonObject) -> str:
    h, kv, nq, nk = (problem[name] for name in ("heads", "kv_heads", "seq_q", "seq_k"))
    heads = f"H={h}" if h == kv else f"H={h} (kv {kv})"
    n = f"N={nq}" if nq == nk else f"Nq={nq} Nk={nk}"
    mask = "causal mask" if problem["causal"] else "no mask"
    extras = [name if problem[name] is True else f"{name} {problem[name]:g}" if isinstance(problem[name], float)
              else f"{name} {problem[name]}" for name in (*stages.EXTRAS, "scale") if name in problem]
    said = f"in the problem B={problem['batch']} {heads} {n} D={problem['head_dim']} {problem['dtype']}"
    return ", ".join([said, mask, f"inputs `{problem['inputs']}`", *extras])


# --- What the engine counts ------------------------------------------------------------------------------------------


def counts(place: Path, rung: str, direction: str, problem: JsonObject,
           workshop: Workshop = HERE) -> "list[KernelCounts] | str":
    """The counts of each launch of the rung that is built there, for this problem; or why there are none."""
    printed = _printed(place, rung, direction, "--trace", problem, workshop)
    if isinstance(printed, str):
        return printed
    try:
        (one,) = printed["rungs"]
        return [(launch["kernel"], _flat("", {**launch["totals"], **launch.get("for_exercises", {}), **launch}))
                for launch in one["launches"]]
    except (KeyError, TypeError, ValueError):  # whatever the kernel's file prints
        return f"{place.name} --trace printed no counts that can be read"


def _printed(place: Path, rung: str, direction: str, flag: str, problem: JsonObject,
             workshop: Workshop) -> "JsonObject | str":
    """What the rung's program with traced kernels prints with this flag; or why it prints nothing."""
    traced = f"{place.name}_traced"
    program = [workshop.built("cpu", [traced]) / place / traced, flag, *_flags(problem),
               f"--rung={rung}", f"--direction={direction}"]
    try:  # chapter 11 has more parts where there are more threads: counts have to be the same on every machine
        status, output = workshop.answer(program, {"SIMT_THREADS": "1"})
    except DoesNotEnd as hanging:
        return str(hanging)
    start = output.find('{"chapter"')
    if status != 0 or start < 0:
        said = _last_line(output).rpartition('"rungs": [')[2]  # without the begin of what was being printed
        wrong = f"{place.name} makes mistakes there: are the other exercises in its files right?"
        return wrong if '": ' in said else said
    try:
        printed = json.loads(output[start:])
    except (ValueError, RecursionError):
        printed = None
    return printed if isinstance(printed, dict) else f"{place.name} {flag} printed nothing that can be read"


def _flags(problem: JsonObject) -> list[str]:
    """{"seq_q": 70, "causal": False} -> ["--seq-q=70", "--no-causal"]."""
    def flag(name: str, value: object) -> str:
        name = name.replace("_", "-")
        return f"--{name}={value}" if not isinstance(value, bool) else f"--{name}" if value else f"--no-{name}"

    return [flag(name, value) for name, value in problem.items()]


def _flat(name: str, value: JsonObject) -> dict[str, float]:
    """{"a": {"b": 1}} -> {"a b": 1}: the names that ./workbook dev counts writes."""
    found = {}
    for key, part in value.items():
        if isinstance(part, dict):
            found.update(_flat(f"{name} {key}".strip(), part))
        elif isinstance(part, (int, float)):
            found[f"{name} {key}".strip()] = part
    return found


def sum_of(launches: list[KernelCounts], count: str, kernel: str = "") -> "float | None":
    """Over the launches of the kernels whose names contain `kernel`; None if none of them counts that. Of loads and of
    stores with those of atomic functions, which do both: atomicAdd(p, 0) is a load, and atomicExch is a store."""
    wanted = {count, re.sub(r"^(global|shared)_(load|store) ", r"\1_atomic ", count)}
    numbers = [numbers[one] for name, numbers in launches if kernel in name for one in wanted & numbers.keys()]
    return sum(numbers) if numbers else None


def _beyond_a_limit(exercise: Exercise, workshop: Workshop) -> "Objection | None":
    counted: "dict[str, list[KernelCounts] | str]" = {}  # once for each problem
    for limit in exercise.limits:
        problem, kernel = str(limit["problem"]), f" of the kernel {limit['kernel']}" if limit["kernel"] else ""
        if problem not in counted:
            counted[problem] = counts(exercise.place, exercise.rung, exercise.direction, limit["problem"], workshop)
        launches = counted[problem]
        if isinstance(launches, str):
            stopped = _ENGINE.search(launches)
            return Objection([stopped[1]], ENGINE) if stopped else Objection([launches], "")
        what = "" if any(limit["kernel"] in name for name, _ in launches) else f"the engine has seen no launch{kernel}"
        for count, least, most in bounds_of(limit):
            number = sum_of(launches, count, limit["kernel"]) or 0  # the engine lists what there is
            if not what and not least <= number <= most:
                what = f"the results are right; {_IN_WORDS.get(count, count)}{kernel}: {number:,} where "
                what += f"{most:,} are enough" if number > most else \
                    f"it takes {least:,}: the work is done in another way than this exercise is about"
                what += " (those of each half of a warp count, if it has a mask of its own)" * (count == "shuffles")
        if what:
            return Objection([what, f"counted by {command_that_counts(exercise, limit['problem'])}"], COUNT)
    return None


def bounds_of(limit: JsonObject) -> "list[tuple[str, int, int]]":
    """(a count, the least and the most that it may be), first of those that the limit names."""
    named = limit["counts"]
    bounds = {**named, **{way: named["others"] for way in WAYS if "others" in named and way not in named}}
    return [(count, *(both if isinstance(both, list) else (0, both))) for count, both in bounds.items()
            if count != "others"]


def command_that_counts(exercise: Exercise, problem: JsonObject) -> str:
    """For a student, in a terminal."""
    return " ".join([f"./workbook trace {exercise.kernels} --rung={exercise.rung}", *_flags(problem)])
