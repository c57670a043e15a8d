"""Grading: a submission's lines between the markers, laid into the workbook's file, built and judged apart.

Of a submission only these lines and the answers are taken, so that its tests, scripts and CMake files do not matter.
What has been handed in for one rung is judged alone: other exercises of the same rung have their solutions meanwhile.

The programs that judge are the workbook's own, built before anything is handed in, and hold the results that are
expected. The kernels run in a process of their own (kernels.py), and what comes from there is numbers. So they do where
they are timed on a GPU, but that process needs the driver, and with it files and system calls.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.base import Command, Failure, JsonObject, build, cuda, file_trees, shown, started
from tools.course import (
    Answers,
    Course,
    DoesNotEnd,
    Exercise,
    Verdict,
    Workshop,
    judge,
    kernelcode,
    load,
    markers,
    verdict_of_answer,
)
from tools.grading import speed
from tools.grading.kernels import LAYERS, NO_MEMORY, REQUIRED, Attempt, CompilerStopped, Kernels, as_line
from tools.grading.sandbox import OTHER_FILES, Done, Limits, Sandbox, ended, own_program, python
from tools.grading.speed import Graded, Timed
from tools.grading.submission import Submission

ANSWERS = "answers.json"
# No precompiled headers: of the bench's tree the compiler of a submission sees copies of headers, and nothing else. No
# cuBLAS: no kernel calls it, and to compile it takes all the memory of a small container.
OPTIONS = ("-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DSIMT_CUBLAS=OFF")
_TO_COMPILE_A_LOT = 512 * 1024**2
_HOST_OF_A_GPU = 64 * 1024**3  # what CUDA reserves of a host's addresses is more than it uses
_ONE_AT_A_TIME = threading.Lock()  # on the GPU
_OF_CUDA = ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
_OUT_OF_BOUNDS = ("invalid read", "invalid write", "outside", "out of bounds", "misaligned")
_TO_LOOK_AT = "to be looked at"  # the state of what only counts can decide, which such code could forge
_SIGSYS = -31
_MOST_HUNG = 2  # exercises of a submission, which take minutes each; no kernel does that to a compiler
_NOT_GRADED = "common/tests/ranks/"  # tests of chapter 11 that start several ranks, and need kernels of other chapters
_REFERENCED = Path("build/cpu/references/all")  # a file, once all references are there
_NOTHING = "nothing can be graded here: the workbook's own solution of {} is said to be {}"


@dataclass
class Grade:
    """The grade of one submission."""

    name: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # {exercise's id: Verdict}
    points: dict[str, float] = field(default_factory=dict)
    refused: "tuple[str, str] | None" = None  # (verdict, why) of the whole submission
    seconds: float = 0.0
    late: dict[str, int] = field(default_factory=dict)  # {exercise's id: days}
    flags: dict[str, str] = field(default_factory=dict)  # {exercise's id: why a person should look at it}
    log: float = 0.0  # points that a person gave

    @property
    def score(self) -> float:
        return round(sum(self.points.values()) + self.log, 2)


class Workbench(Workshop):
    """A tree of its own, whose programs judge one submission after the other, and a place for the submissions' kernels.
    Nothing of a submission is ever in the tree."""

    def __init__(self, root: Path, directory: Path, number: int, patience: float, times_on: str = "cuda",
                 without: Iterable[str] = ()):
        self.root, self.tree, self.patience = root, directory / f"{number}", patience
        # This workbench is prepared before the others, which then need not compile the same again.
        self.first = directory / "0"
        self.sandbox, self.happened = Sandbox(), ""
        self.kernels = Kernels(self.tree, directory / f"{number}.kernels", self.sandbox, patience, without)
        self.attempt: "Attempt | None" = None  # whose kernels are judged; the workbook's own, in the judge, if none
        self.course = load(root)
        self.times_on, self.no_gpu = times_on, ""  # a preset; why nothing can be timed
        self.held: JsonObject = {"runs": False}
        self._stubs: dict[str, bool] = {}
        self._alone_ms: dict[str, float] = {}  # the time of a solution beside itself, by its exercise

    # --- The tree ---

    def prepare(self, course: Course, exercises: Sequence[Graded]) -> None:
        """Builds the workbook as it is, with the caller's rights: nothing of a student's is in it."""
        self._keep_others_out()
        self.sandbox.require_entry(self.tree)
        wanted, there = file_trees.read(self.root), set()
        wanted = {file: content for file, content in wanted.items() if not file.startswith(_NOT_GRADED)}
        for file, content in wanted.items():
            path = self.tree / file
            if not path.is_file() or path.read_bytes() != content:
                file_trees.write(self.tree, {file: content})
            there.add(path)
        for path in self.tree.rglob("*"):
            if path.is_file() and path not in there and "build" not in path.relative_to(self.tree).parts[:1]:
                path.unlink()
        if self.times_on == "cuda":
            choice = cuda.choose_preset(None)
            self.no_gpu = "" if choice.preset == "cuda" else choice.why
        for one in self._timed(exercises):  # its solution; what is handed in is compiled elsewhere
            file_trees.write(self.tree, {one.handed_in: wanted[one.file]})
        self._environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8",
                             "HOME": str(self.tree / "build"),
                             "TMPDIR": str(self.tree / "build"), "CXX": os.environ.get("CXX") or "g++",
                             "CCACHE_DISABLE": "1",
                             **{name: os.environ[name] for name in _OF_CUDA if name in os.environ}}
        for preset, targets in self._targets(exercises).items():
            self._configure(preset)
            command = ["cmake", "--build", f"build/{preset}", "--parallel", str(build.jobs()), "--target", *targets]
            with started(command, cwd=self.tree, env=self._environment, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace") as process:
                output, _ = process.communicate()
            if process.returncode != 0:
                raise Failure(f"the workbook itself does not build: {build.first_errors(output, 1)[0]}")
        if any(not isinstance(one, Timed) for one in exercises):
            self._make_references(exercises)
            self.sandbox.show_to_judge(self.tree)
            self.kernels.prepare()
            self.held = self._what_holds()
            self._require_right_solutions(exercises)
            self.held["kernels"] = layers_in_words(self.kernels.layers)
        else:
            self.kernels.prepare_place(self.times_on)
            self.held = self._what_holds()
        for one in self._timed(exercises) if self.times_on == "cuda" else []:
            alone = self._times(one, wanted[one.file].decode(), 1, speed.TIMES)
            of_itself = alone if isinstance(alone, Verdict) else speed.verdict_of(alone, one.at_most)
            if of_itself.state != "right":
                self.no_gpu = f"the solution of {one.of} beside itself is {of_itself.state}: {of_itself.lines[0]}"
            elif not isinstance(alone, Verdict):
                self._alone_ms[one.id] = speed.solution_ms(alone)
                self.held["timed kernels"] = "apart from the judge; files and system calls: as the driver needs them"

    def _what_holds(self) -> JsonObject:
        place = self.kernels.place
        held = self.sandbox.held(place, place / "probe")
        if not held["runs"]:
            raise Failure(f"nothing can be run in {shown(place)} as another user: {held['why']}")
        return held

    def require_isolation(self) -> None:
        """Failure if something that should keep a submission's kernels apart does not hold here."""
        held = self.kernels.layers or frozenset()
        missing = [f"{layer} ({LAYERS[layer]})" for layer in REQUIRED if layer not in held]
        if self.held[OTHER_FILES] != "not seen":
            missing.append("compiler (it can read any file)")
        if missing:
            raise Failure(f"--require-isolation: this machine does not hold {', '.join(missing)}; root and "
                          "libseccomp-dev give all of them", status=2)

    def _make_references(self, exercises: Sequence[Graded]) -> None:
        """What kernels should answer, where the tree has none yet: afterwards nobody may write there."""
        for one in exercises:
            if isinstance(one, Timed) or one.kind == "measure" or one.needs_gpu or (self.tree / _REFERENCED).exists():
                continue
            verdict = judge(_Attempted(self.tree, self.course.exercises), replace(one, limits=[]), explain=False,
                            workshop=_AsCaller(self))
            if verdict.state != "right":
                raise Failure(_NOTHING.format(one.id, verdict.state) + "".join(f": {it}" for it in verdict.lines[:1]))

    def _require_right_solutions(self, exercises: Sequence[Graded]) -> None:
        """Judges one solution of each file, so that no student is blamed for a fault of the machine."""
        of_file = {one.file: one for one in exercises if not isinstance(one, Timed) and one.kind != "measure"
                   and not one.needs_gpu}
        for one in of_file.values():
            verdict = self.verdict(one, (self.root / one.file).read_text())
            if verdict.state != "right":
                raise Failure(_NOTHING.format(one.id, verdict.state) + "".join(f": {it}" for it in verdict.lines[:1]))
        if of_file:
            file_trees.write(self.tree, {str(_REFERENCED): b""})

    def _keep_others_out(self) -> None:
        self.tree.parent.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.tree.with_suffix(".lock"), "w")  # as long as this workbench exists
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"somebody is grading in {shown(self.tree)} already") from None

    def _timed(self, exercises: Sequence[Graded]) -> list[Timed]:
        return [one for one in exercises if isinstance(one, Timed) and not self.no_gpu]

    def _targets(self, exercises: Sequence[Graded]) -> dict[str, list[str]]:
        targets: dict[str, set[str]] = {"cpu": set(), "cuda": set()}
        for timed in self._timed(exercises):
            targets[self.times_on].update({timed.target, "timing_judge", "probe"})
        for one in exercises:
            if isinstance(one, Timed):
                continue
            targets["cpu"].update({"confine", "probe", "kernel_host_plain", "kernel_host_traced"})
            if one.kind != "measure":
                targets["cpu"].add(f"{one.chapter}_tests")
            if "trace" in one.tests:
                targets["cpu"].add(f"{one.chapter}_traced_tests")
            if one.kind == "measure" or one.limits:
                targets["cpu"].add(f"{one.chapter}_traced")
        return {preset: sorted(names) for preset, names in targets.items() if names}

    def _configure(self, preset: str) -> None:
        if (self.tree / "build" / preset / "build.ninja").exists():
            return
        launcher = self.tree / "common/tests/new_chapter/reuse.py"
        environment = dict(self._environment)
        launchers = [word for tree in (self.root, self.first) if tree != self.tree
                     and (tree / "build" / preset).is_dir()
                     for word in (python(), "-I", "-S", "-B", str(launcher), str(tree), str(self.tree))]
        if launcher.exists() and launchers:
            environment["CMAKE_CXX_COMPILER_LAUNCHER"] = ";".join(launchers)
        for tree in (self.first, self.root):
            references = tree / "build" / "cpu" / "references"
            if references.is_dir() and tree != self.tree:  # what the kernels should answer
                shutil.copytree(references, self.tree / "build" / preset / "references", dirs_exist_ok=True)
        done = subprocess.run(["cmake", "--preset", preset, *OPTIONS], cwd=self.tree, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"cmake --preset {preset} failed in {shown(self.tree)}: {_first_error(done.stderr)}")

    # --- What a workshop does ---

    def verdict(self, one: Exercise, text: str, unsure: bool = False) -> Verdict:
        """On this text of the exercise's file, which perhaps has more than a kernel needs."""
        self.attempt, self.happened = self.kernels.attempt(one, text), ""
        self.attempt.unsure = unsure
        try:
            return judge(_Attempted(self.tree, self.course.exercises), one, workshop=self)
        finally:
            self.untold = self.attempt.untold
            self.attempt = None

    def results_reject_the_stub(self, one: Exercise) -> bool:
        """Whether results alone tell what was handed out from a solution: no counts, nothing that the engine says."""
        if one.id not in self._stubs:
            verdict = self.verdict(_by_results(one), self.course.replaced(one, self.course.handed_out(one) or ""))
            self._stubs[one.id] = verdict.state != "right"
        return self._stubs[one.id]

    def built(self, preset: str, targets: list[str]) -> Path:
        if self.attempt:
            try:
                self.kernels.program(self.attempt, traced="_traced" in targets[0])
            except CompilerStopped as stopped:
                self.happened = str(stopped)
                raise
        return self.tree / "build" / preset

    def has_built(self, program: Path) -> bool:
        return (self.tree / "build/cpu" / program).exists()

    def answer(self, command: Command, environment: dict[str, str]) -> tuple[int, str]:
        """What the judge answers. Counts are taken twice, each time in a process that is new."""
        environment = {**self._environment, "TMPDIR": "/tmp", **environment}
        if not self.attempt or not self._is_about(command, self.attempt):
            done = own_program(command, environment, self.tree, self.patience)
        else:
            traced = "_traced" in Path(str(command[0])).name
            done = self.kernels.judged(self.attempt, traced, command, environment)
            if "--trace" in command and not done.stopped and done.status == 0 and \
                    self.kernels.judged(self.attempt, traced, command, environment).output != done.output:
                return 1, "the engine counts otherwise when it counts again"
            self.happened = _what_happened(done)
        if done.stopped == "time":
            raise DoesNotEnd(self.patience)
        return done.status, done.output

    @staticmethod
    def _is_about(command: Command, attempt: Attempt) -> bool:
        """A question may be about another rung, too."""
        rungs = [str(word) for word in command if str(word).startswith("--rung=")]
        return not rungs or rungs == [f"--rung={attempt.exercise.rung}"]

    def timed(self, one: Timed, text: str, runs: int = speed.RUNS, times: int = speed.TIMES) -> Verdict:
        """On the time of this text of the exercise's file, beside the file as it is."""
        said = self._times(one, text, runs, times)
        return said if isinstance(said, Verdict) else speed.verdict_of(said, one.at_most, self._alone_ms.get(one.id))

    def _times(self, one: Timed, text: str, runs: int, times: int) -> "list[JsonObject] | Verdict":
        said = []
        try:
            program = self._timing_program(one, text)
            with _ONE_AT_A_TIME:
                for _ in range(runs):
                    done = self._timed_once(one, program, times)
                    if done.status != 0 or done.stopped:
                        return Verdict(_what_happened(done) or "crashes", [as_line(_last(done.output))])
                    said.append(json.loads(done.output))
        except build.DoesNotBuild as failure:
            return Verdict("does not compile", [as_line(line) for line in failure.errors[:1]])
        return said

    def _timed_once(self, one: Timed, program: Path, times: int) -> Done:
        """What the judge prints, who has none of the submission's code in it, of two processes: the solution's, and the
        submission's in the sandbox. Its status, if it is the submission's process that ended, is that one's."""
        there = self.tree / "build" / self.times_on / "common/harness/judge"
        environment = {**self._environment, "TMPDIR": "/tmp", "SIMT_THREADS": "2"}
        flags = [f"--{key}={int(value)}" for key, value in one.problem.items()]
        (ours, solution), (mine, submission) = socket.socketpair(), socket.socketpair()
        with ours, solution, mine, submission, contextlib.ExitStack() as stack:
            theirs = stack.enter_context(self.sandbox.started(
                [program], Limits(2 * self.patience, memory=_HOST_OF_A_GPU, file_bytes=_TO_COMPILE_A_LOT), environment,
                cwd=self.kernels.place, devices=_nvidia(), stdin=submission.fileno(), stdout=subprocess.DEVNULL))
            stack.enter_context(started([there / one.target], cwd=self.tree, env=environment, stdin=solution,
                                        stdout=subprocess.DEVNULL))
            submission.close()
            solution.close()
            done = own_program([there / "timing_judge", *flags, f"--times={times}", f"--solution={ours.fileno()}",
                         f"--submission={mine.fileno()}"], environment, self.tree, self.patience,
                        pass_fds=(ours.fileno(), mine.fileno()))
            ours.close()
            mine.close()
            if not done.stopped:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = ended(theirs, patience=5)
                    done = replace(done, status=min(0, status) or done.status) if done.status != 0 else done
        return replace(done, output=str(DoesNotEnd(self.patience))) if done.stopped else done

    def _timing_program(self, one: Timed, text: str) -> Path:
        """Compiled and linked as ninja would, where the compiler can write to nothing else."""
        if self.attempt is None and not self.kernels.place.exists():
            self.kernels.prepare_place(self.times_on)
        return self.kernels.linked_as(self.tree / "build" / self.times_on, one.target, self.tree / one.handed_in, text)


def _nvidia() -> tuple[str, ...]:
    return tuple(map(str, sorted(Path("/dev").glob("nvidia*"))))


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1]


def _first_error(output: str) -> str:
    """Of CMake, which says more afterwards: its first error in one line."""
    found = re.search(r"^CMake Error.*?(?=\n\n\n|\nCall Stack|\n--|\Z)", output, re.M | re.S)
    return " ".join(found[0].split())[:300] if found else _last(output)


def _what_happened(done: Done) -> str:
    if done.stopped:
        return {"time": "hangs", "output": "prints too much"}[done.stopped]
    if re.search(NO_MEMORY, done.output):
        return "too much memory"
    return "calls the system" if done.status == _SIGSYS else "crashes" if done.status < 0 else ""


def layers_in_words(held: "frozenset[str] | None") -> JsonObject:
    """What keeps the kernels' process apart, for the results."""
    held = held or frozenset()
    return {LAYERS[layer]: "held" if layer in held else "NOT HELD" for layer in LAYERS}


class _AsCaller(Workshop):
    """The workbook's own programs with the workbook's own kernels, as whoever called us."""

    def __init__(self, bench: "Workbench"):
        self._bench = bench

    def built(self, preset: str, targets: list[str]) -> Path:
        return self._bench.tree / "build" / preset

    def answer(self, command: Command, environment: dict[str, str]) -> tuple[int, str]:
        done = own_program(command, {**os.environ, **environment}, self._bench.tree, 600)
        return done.status, done.output


def _by_results(one: Exercise) -> Exercise:
    return replace(one, limits=[], tests=[test for test in one.tests if test != "trace"])


# --- One submission --------------------------------------------------------------------------------------------------


def grade(workbench: Workbench, submission: Submission, exercises: Sequence[Graded]) -> Grade:
    """What each exercise of the submission is worth."""
    begin, result = time.monotonic(), Grade(submission.name, refused=submission.refused)
    if submission.refused:
        result.verdicts = {one.id: Verdict(*_as_verdict(submission.refused)) for one in exercises}
    else:
        workbench.kernels.require_as_prepared()
        hung = 0
        taken = {one.id: _taken(workbench.course, submission, one) for one in exercises if not isinstance(one, Timed)}
        for one in exercises:
            if isinstance(one, Timed):
                result.verdicts[one.id] = _timed(workbench, one, taken[one.of], result.verdicts[one.of])
                continue
            content = taken[one.id]
            if isinstance(content, Verdict):
                result.verdicts[one.id] = content
            elif one.kind == "measure":
                text, doubtful = _as_handed_in(workbench.course, one.file, exercises, taken)
                result.verdicts[one.id] = _counted(workbench, one, content.text, "" if doubtful else text)
            elif hung == _MOST_HUNG:
                result.verdicts[one.id] = Verdict("not compiled", [f"{_MOST_HUNG} others have hung the compiler"])
            else:
                result.verdicts[one.id], doubt = _judged(workbench, one, content)
                hung += result.verdicts[one.id].state == "hangs the compiler"
                if doubt and result.verdicts[one.id].state in ("right", _TO_LOOK_AT):
                    result.flags[one.id] = doubt
    result.points = {one.id: one.points if result.verdicts[one.id].state == "right" else 0 for one in exercises}
    result.seconds = time.monotonic() - begin
    return result


def not_graded(submission: Submission, exercises: Sequence[Graded], why: str) -> Grade:
    """A grade for a submission that could not be graded, through no fault of its own."""
    return Grade(submission.name, {one.id: Verdict("not graded", [why]) for one in exercises},
                 {one.id: 0 for one in exercises}, ("not graded", why))


def _as_verdict(refused: tuple[str, str]) -> tuple[str, list[str]]:
    return refused[0], [refused[1]]


@dataclass(frozen=True)
class _Taken:
    text: str
    doubt: str = ""  # what of it may be no kernel's code


def file_of(one: Graded) -> str:
    """In which file of a submission the exercise is."""
    return ANSWERS if one.kind == "measure" else one.file


def _taken(course: Course, submission: Submission, one: Exercise) -> "_Taken | Verdict":
    """What the submission has for the exercise, or why nothing of it can be graded."""
    file = file_of(one)
    if file in submission.wrong:
        return Verdict(*_as_verdict(submission.wrong[file]))
    if file not in submission.texts:
        return Verdict("not handed in", [f"{file} is not there"])
    text = submission.texts[file]
    if one.kind == "measure":
        return _Taken(text)
    try:
        found = kernelcode.refusal(course, one, text)
    except Failure as failure:
        return Verdict("no markers", [str(failure)])
    if found and found.refused:
        return Verdict("refused", [as_line(found.line)])
    doubt = as_line(found.line) if found else ""
    if one.kind == "debug":
        return _Taken(text if text.endswith("\n") else text + "\n", doubt)
    return _Taken(markers.inside(text, course.region(one, text)), doubt)


def taken_from(course: Course, submission: Submission, exercises: Sequence[Graded]) -> dict[str, str]:
    """{exercise's id: what was written for it}, of the code exercises that differ from what was handed out."""
    found = {}
    for one in exercises:
        if isinstance(one, Exercise) and one.kind == "code":
            taken = _taken(course, submission, one)
            if isinstance(taken, _Taken) and not _as_handed_out(course, one, taken):
                found[one.id] = taken.text
    return found


def _as_handed_out(course: Course, one: Exercise, written: _Taken) -> bool:
    return written.text.split() == (course.handed_out(one) or "").split()


def attempts(course: Course, submission: Submission, one: Graded) -> bool:
    """Whether the submission has something of the exercise, graded or not: more than its stub, or an answer."""
    if isinstance(one, Timed):
        return False
    taken = _taken(course, submission, one)
    if isinstance(taken, Verdict):
        return taken.state != "not handed in"
    if one.kind != "measure":
        return not _as_handed_out(course, one, taken)
    try:
        return json.loads(taken.text)["answers"].get(one.id) is not None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _judged(workbench: Workbench, one: Exercise, written: _Taken) -> tuple[Verdict, str]:
    """(The verdict, what is to be doubted.) Where the code is such that it could forge what the engine says, or hide
    from it what it does, results alone decide; or, if they cannot, a person."""
    course = workbench.course
    if _as_handed_out(course, one, written):
        return Verdict("not attempted"), ""
    verdict = workbench.verdict(one, course.replaced(one, written.text), unsure=bool(written.doubt))
    doubt = written.doubt or workbench.untold
    verdict = Verdict(verdict.state, [as_line(line) for line in verdict.lines], verdict.stage)
    if verdict.state in ("wrong", "does not compile") and workbench.happened:
        return Verdict(workbench.happened, verdict.lines), doubt
    if verdict.state == "wrong" and verdict.lines and verdict.lines[0].startswith("kernel ") and \
            any(words in verdict.lines[0] for words in _OUT_OF_BOUNDS):
        return Verdict("out of bounds", verdict.lines), doubt
    if verdict.state == "right" and doubt and (one.limits or "trace" in one.tests) and \
            not workbench.results_reject_the_stub(one):
        return Verdict(_TO_LOOK_AT, ["its results are right, as those of what was handed out are; whether it counts as "
                                     "little, a person has to see", doubt]), doubt
    return verdict, doubt


def _timed(workbench: Workbench, one: Timed, written: "_Taken | Verdict", correctness: Verdict) -> Verdict:
    """The verdict on the kernel's speed; a wrong kernel is not timed."""
    if correctness.state != "right" or isinstance(written, Verdict):
        return Verdict("not timed", [f"{one.of} is not right"])
    if workbench.no_gpu:
        return Verdict("not timed", [f"performance is not graded: {workbench.no_gpu}"])
    (exercise,) = workbench.course.select([one.of])
    return workbench.timed(one, workbench.course.replaced(exercise, written.text))


class _Attempted(Course):
    """A course whose exercises all count as attempted: the caller has checked that."""

    def attempted(self, exercise: Exercise) -> bool:
        return True


def _as_handed_in(course: Course, file: str, exercises: Sequence[Graded],
                  taken: "Mapping[str, _Taken | Verdict]") -> tuple[str, bool]:
    """(The file with all that was handed in for it and can be graded, whether some of it may be no kernel's code):
    questions are about the student's own kernels."""
    text, doubt = (course.root / file).read_text(), False
    for one in exercises:
        content = taken.get(one.id)
        if one.file == file and isinstance(one, Exercise) and one.kind != "measure" and isinstance(content, _Taken):
            text = content.text if one.kind == "debug" else markers.filled(text, course.region(one, text), content.text)
            doubt = doubt or bool(content.doubt)
    return text, doubt


def _counted(workbench: Workbench, one: Exercise, answers: str, handed_in: str) -> Verdict:
    """On the answer to a question. It may be about the workbook's own kernel or, if these are nothing but a kernel's
    code, about the student's lines."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / ANSWERS).write_text(answers)
        try:
            given = Answers(Path(directory))
            verdict = verdict_of_answer(one, given, workbench)
            if verdict.state == "wrong" and handed_in not in ("", (workbench.course.root / one.file).read_text()):
                workbench.attempt = workbench.kernels.attempt(one, handed_in)
                own = verdict_of_answer(one, given, workbench)
                verdict = own if own.state == "right" else verdict
        except Failure as failure:  # answers.json is none
            return Verdict("wrong", [as_line(str(failure).replace(f"{directory}/", ""))])
        finally:
            workbench.attempt = None
    return Verdict(verdict.state, [as_line(line.replace(f"{directory}/", "")) for line in verdict.lines], verdict.stage)
