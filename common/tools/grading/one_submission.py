"""Grading: a submission's lines between the markers, laid over a clean tree, built and run in a sandbox.

Of a submission only these lines and the answers are taken, so that its tests, scripts and CMake files do not matter.
What has been handed in for one rung is judged alone: other exercises of the same rung have their solutions meanwhile.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import Command, Failure, build, cuda, file_trees, shown, started
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
from tools.grading.sandbox import Done, Limits, Sandbox, python
from tools.grading.speed import Graded, Timed
from tools.grading.submission import Submission

ANSWERS = "answers.json"
_TO_BUILD, _TO_COMPILE_A_LOT = 4 * 1024**3, 512 * 1024**2
_HOST_OF_A_GPU = 64 * 1024**3  # what CUDA reserves of a host's addresses is more than it uses
_ONE_AT_A_TIME = threading.Lock()  # on the GPU
_NO_MEMORY = ("bad_alloc|annot allocate memory|out of memory|virtual memory exhausted|cudaErrorMemoryAllocation|"
              ": stack overflow: ")
_OF_CUDA = ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
_OUT_OF_BOUNDS = ("invalid read", "invalid write", "outside", "out of bounds", "misaligned")


@dataclass
class Grade:
    """The grade of one submission."""

    name: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # {exercise's id: Verdict}
    points: dict[str, float] = field(default_factory=dict)
    refused: "tuple[str, str] | None" = None  # (verdict, why) of the whole submission
    seconds: float = 0.0

    @property
    def score(self) -> float:
        return round(sum(self.points.values()), 2)


class Workbench(Workshop):
    """A tree of its own in which one submission after the other is built and run, in a sandbox of its own."""

    def __init__(self, root: Path, directory: Path, number: int, patience: float, times_on: str = "cuda"):
        self.root, self.tree, self.patience = root, directory / f"{number}", patience
        # This workbench is prepared before the others, which then need not compile the same again.
        self.first = directory / "0"
        self.sandbox, self.happened, self._testimony = Sandbox(), "", 0
        self.course = load(root)  # as it should be: the tree is what a student makes of it
        self.times_on, self.no_gpu = times_on, ""  # a preset; why nothing can be timed

    # --- The tree ---

    def prepare(self, course: Course, exercises: Sequence[Graded]) -> None:
        """Builds the workbook as it is, with the caller's rights: nothing of a student's is in it yet."""
        self._keep_others_out()
        self.sandbox.require_entry(self.tree)
        wanted, there = file_trees.read(self.root), set()
        for file, content in wanted.items():
            path = self.tree / file
            if not path.is_file() or path.read_bytes() != content:
                file_trees.write(self.tree, {file: content})
            there.add(path)
        there.update(self.tree / one.handed_in for one in self._timed(exercises))
        for path in self.tree.rglob("*"):
            if path.is_file() and path not in there and "build" not in path.relative_to(self.tree).parts[:1]:
                path.unlink()
        if self.times_on == "cuda":
            choice = cuda.choose_preset(None)
            self.no_gpu = "" if choice.preset == "cuda" else choice.why
        for one in self._timed(exercises):  # its solution, until something is handed in
            file_trees.write(self.tree, {one.handed_in: wanted[one.file]})
        self._environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8",
                             "HOME": str(self.tree / "build"),
                             "TMPDIR": str(self.tree / "build"), "CXX": os.environ.get("CXX") or "g++",
                             "CCACHE_DISABLE": "1",
                             **{name: os.environ[name] for name in _OF_CUDA if name in os.environ}}
        for preset, targets in self._targets(exercises).items():
            self._configure(preset)
            done = self._compile(preset, targets, seconds=3600, inside=False)
            if done.status != 0:
                raise Failure(f"the workbook itself does not build: {_last(done.output)}")
        self.sandbox.own(self.tree / "build")
        self.held = self.sandbox.held(self.tree / "build")
        if not self.held["runs"]:
            raise Failure(f"nothing can be run in {shown(self.tree)} as another user: {self.held['why']}")
        self._require_right_solutions(exercises)
        for one in self._timed(exercises) if self.times_on == "cuda" else []:
            of_itself = self.timed(one, wanted[one.file].decode(), runs=1)
            if of_itself.state != "right":
                self.no_gpu = f"the solution of {one.of} beside itself is {of_itself.state}: {of_itself.lines[0]}"

    def _require_right_solutions(self, exercises: Sequence[Graded]) -> None:
        """Judges one solution of each file, so that no student is blamed for a fault of the machine."""
        of_file = {one.file: one for one in exercises if not isinstance(one, Timed) and one.kind != "measure"
                   and not one.needs_gpu}
        self.lay({})
        for one in of_file.values():
            verdict = judge(_Attempted(self.tree, self.course.exercises), one, workshop=self)
            if verdict.state != "right":
                raise Failure(f"nothing can be graded here: the workbook's own solution of {one.id} is said to be "
                              f"{verdict.state}"
                              + "".join(f": {line}" for line in verdict.lines[:1]))

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
            targets[self.times_on].add(timed.target)
        for one in exercises:
            if isinstance(one, Timed):
                continue
            if one.kind != "measure":
                targets["cpu"].update({f"{one.chapter}_tests", f"{one.chapter}_traced_tests"})
            if one.kind == "measure" or one.limits:
                targets["cpu"].add(f"{one.chapter}_traced")
        return {preset: sorted(names) for preset, names in targets.items() if names}

    def _configure(self, preset: str) -> None:
        if (self.tree / "build" / preset / "build.ninja").exists():
            return
        launcher = self.tree / "common/tests/new_chapter/reuse.py"  # the sandbox need not show the trees that it reuses
        environment = dict(self._environment)
        launchers = [word for tree in (self.root, self.first) if tree != self.tree
                     and (tree / "build" / preset).is_dir()
                     for word in (python(), "-B", str(launcher), str(tree), str(self.tree))]
        if launcher.exists() and launchers:
            environment["CMAKE_CXX_COMPILER_LAUNCHER"] = ";".join(launchers)
        references = self.root / "build" / "cpu" / "references"
        if references.is_dir():  # what the kernels should answer
            shutil.copytree(references, self.tree / "build" / preset / "references", dirs_exist_ok=True)
        done = subprocess.run(["cmake", "--preset", preset], cwd=self.tree, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"cmake --preset {preset} failed in {shown(self.tree)}: {_last(done.stderr)}")

    def lay(self, texts: dict[str, str]) -> None:
        """Lays these texts over the tree, and takes away what was laid there before."""
        for file in {one.file for one in self.course.exercises}:
            text = texts.get(file) or (self.root / file).read_text()
            if (self.tree / file).read_text() != text:
                (self.tree / file).write_text(text)
        answers = self.tree / ANSWERS
        answers.unlink(missing_ok=True)
        if ANSWERS in texts:
            answers.write_text(texts[ANSWERS])

    # --- What a workshop does ---

    def built(self, preset: str, targets: list[str]) -> Path:
        done = self._compile(preset, targets, seconds=5 * self.patience, inside=True)
        if done.stopped:
            self.happened = "hangs the compiler"
            raise build.DoesNotBuild("the compiler was stopped",
                                     [f"the compiler was stopped after {5 * self.patience:g} s"])
        if done.status != 0:
            if re.search(_NO_MEMORY, done.output):
                self.happened = "too much memory"
            errors = build.first_errors(done.output)
            raise build.DoesNotBuild("the build failed", [line.replace(f"{self.tree}/", "") for line in errors])
        return self.tree / "build" / preset

    def _compile(self, preset: str, targets: list[str], seconds: float, inside: bool) -> Done:
        command = ["cmake", "--build", f"build/{preset}", "--parallel", "1" if inside else str(build.cores()),
                   "--target", *targets]
        if inside:
            limits = Limits(seconds, memory=_TO_BUILD, file_bytes=_TO_COMPILE_A_LOT)
            return self.sandbox.run(command, limits, self._environment, cwd=self.tree, writable=(self.tree / "build",),
                                    builds=True)
        with started(command, cwd=self.tree, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                     text=True, errors="replace") as process:
            output, _ = process.communicate()
        return Done(process.returncode, output)

    def answer(self, command: Command, environment: dict[str, str]) -> tuple[int, str]:
        """The program's answer; on its socket it says how many tests have passed, and how many have not."""
        done, said = self._heard(command, Limits(self.patience), environment)
        numbers = said.split()
        self._testimony = int(numbers[0]) if len(numbers) == 2 and numbers[1] == "0" else 0
        return done.status, done.output

    def _heard(self, command: Command, limits: Limits, environment: dict[str, str],
               devices: tuple[str, ...] = ()) -> tuple[Done, str]:
        """(Done, what it says on a socket of its own, behind a secret that it alone was told); DoesNotEnd."""
        ours, theirs = socket.socketpair()
        secret = secrets.token_hex(16)
        with ours, theirs:
            ours.sendall(secret.encode())
            done = self.sandbox.run(command, limits, cwd=self.tree, pass_fds=(theirs.fileno(),), devices=devices,
                                    environment={**self._environment, "TMPDIR": "/tmp", "SIMT_THREADS": "2",
                                                 **environment, "WORKBOOK_GRADER_CHANNEL": str(theirs.fileno())})
            ours.setblocking(False)
            try:
                said = ours.recv(65536).decode(errors="replace")
            except BlockingIOError:
                said = ""
        self.happened = _what_happened(done)
        if done.stopped == "time":
            raise DoesNotEnd(self.patience)
        return done, said[len(secret):] if said.startswith(secret) else ""

    def passed(self, output: str) -> int:
        return self._testimony

    def timed(self, one: Timed, text: str, runs: int = speed.RUNS, times: int = speed.TIMES) -> Verdict:
        """On the time of this text of the exercise's file, beside the file as it is."""
        file_trees.write(self.tree, {one.handed_in: text.encode()})
        flags = [f"--{key}={int(value)}" for key, value in one.problem.items()]
        limits = Limits(self.patience, memory=_HOST_OF_A_GPU, file_bytes=_TO_COMPILE_A_LOT)
        said = []
        try:
            program = self.built(self.times_on, [one.target]) / "common/harness/judge" / one.target
            with _ONE_AT_A_TIME:
                for _ in range(runs):
                    done, heard = self._heard([program, *flags, f"--times={times}"], limits, {}, devices=_nvidia())
                    if done.status != 0 or not heard:
                        return Verdict(self.happened or "crashes", [_last(done.output).replace(f"{self.tree}/", "")])
                    said.append(json.loads(heard))
        except build.DoesNotBuild as failure:
            return Verdict("does not compile", failure.errors[:1])
        except DoesNotEnd as hanging:
            return Verdict("hangs", [str(hanging)])
        return speed.verdict_of(said, one.at_most)


def _nvidia() -> tuple[str, ...]:
    return tuple(map(str, sorted(Path("/dev").glob("nvidia*"))))


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1]


def _what_happened(done: Done) -> str:
    if done.stopped:
        return {"time": "hangs", "output": "prints too much"}[done.stopped]
    if re.search(_NO_MEMORY, done.output):
        return "too much memory"
    return "crashes" if done.status < 0 else ""


# --- One submission --------------------------------------------------------------------------------------------------


def grade(workbench: Workbench, submission: Submission, exercises: Sequence[Graded]) -> Grade:
    """What each exercise of the submission is worth."""
    begin, result = time.monotonic(), Grade(submission.name, refused=submission.refused)
    if submission.refused:
        result.verdicts = {one.id: Verdict(*_as_verdict(submission.refused)) for one in exercises}
    else:
        taken = {one.id: _taken(workbench.course, submission, one) for one in exercises if not isinstance(one, Timed)}
        handed_in = {one.file: _as_handed_in(workbench.course, one.file, exercises, taken) for one in exercises}
        for one in exercises:
            if isinstance(one, Timed):
                result.verdicts[one.id] = _timed(workbench, one, taken[one.of], result.verdicts[one.of])
                continue
            content = taken[one.id]
            if isinstance(content, Verdict):
                result.verdicts[one.id] = content
            elif one.kind == "measure":
                result.verdicts[one.id] = _counted(workbench, one, {one.file: handed_in[one.file], ANSWERS: content})
            else:
                result.verdicts[one.id] = _judged(workbench, one, content)
    result.points = {one.id: one.points if result.verdicts[one.id].state == "right" else 0 for one in exercises}
    result.seconds = time.monotonic() - begin
    return result


def not_graded(submission: Submission, exercises: Sequence[Graded], why: str) -> Grade:
    """A grade for a submission that could not be graded, through no fault of its own."""
    return Grade(submission.name, {one.id: Verdict("not graded", [why]) for one in exercises},
                 {one.id: 0 for one in exercises}, ("not graded", why))


def _as_verdict(refused: tuple[str, str]) -> tuple[str, list[str]]:
    return refused[0], [refused[1]]


def _taken(course: Course, submission: Submission, one: Exercise) -> "str | Verdict":
    """What the submission has for the exercise, or why nothing of it can be graded."""
    file = ANSWERS if one.kind == "measure" else one.file
    if file in submission.wrong:
        return Verdict(*_as_verdict(submission.wrong[file]))
    if file not in submission.texts:
        return Verdict("not handed in", [f"{file} is not there"])
    if one.kind == "measure":
        return submission.texts[file]
    text = submission.texts[file]
    try:
        refused = kernelcode.refusal(course, one, text)
    except Failure as failure:
        return Verdict("no markers", [str(failure)])
    if refused:
        return Verdict("refused", [refused])
    if one.kind == "debug":
        return text if text.endswith("\n") else text + "\n"
    return markers.inside(text, course.region(one, text))


def taken_from(course: Course, submission: Submission, exercises: Sequence[Graded]) -> dict[str, str]:
    """{exercise's id: what was written for it}, of the code exercises that differ from what was handed out."""
    found = {}
    for one in exercises:
        if isinstance(one, Exercise) and one.kind == "code":
            taken = _taken(course, submission, one)
            if isinstance(taken, str) and taken.split() != (course.handed_out(one) or "").split():
                found[one.id] = taken
    return found


def _judged(workbench: Workbench, one: Exercise, written: str) -> Verdict:
    course = workbench.course
    if written.split() == (course.handed_out(one) or "").split():
        return Verdict("not attempted")
    workbench.lay({one.file: course.replaced(one, written)})
    workbench.happened = ""
    verdict = judge(_Attempted(workbench.tree, course.exercises), one, workshop=workbench)
    if verdict.state in ("wrong", "does not compile") and workbench.happened:
        return Verdict(workbench.happened, verdict.lines)
    if verdict.state == "wrong" and verdict.lines and verdict.lines[0].startswith("kernel ") and \
            any(words in verdict.lines[0] for words in _OUT_OF_BOUNDS):
        return Verdict("out of bounds", verdict.lines)
    return verdict


def _timed(workbench: Workbench, one: Timed, written: "str | Verdict", correctness: Verdict) -> Verdict:
    """The verdict on the kernel's speed; a wrong kernel is not timed."""
    if correctness.state != "right" or isinstance(written, Verdict):
        return Verdict("not timed", [f"{one.of} is not right"])
    if workbench.no_gpu:
        return Verdict("not timed", [f"performance is not graded: {workbench.no_gpu}"])
    (exercise,) = workbench.course.select([one.of])
    return workbench.timed(one, workbench.course.replaced(exercise, written))


class _Attempted(Course):
    """A course whose exercises all count as attempted: the caller has checked that."""

    def attempted(self, exercise: Exercise) -> bool:
        return True


def _as_handed_in(course: Course, file: str, exercises: Sequence[Graded], taken: "Mapping[str, str | Verdict]") -> str:
    """The file with all that was handed in for it and can be graded: questions are about the student's own kernels."""
    text = (course.root / file).read_text()
    for one in exercises:
        content = taken.get(one.id)
        if one.file == file and isinstance(one, Exercise) and one.kind != "measure" and isinstance(content, str):
            text = content if one.kind == "debug" else markers.filled(text, course.region(one, text), content)
    return text


def _counted(workbench: Workbench, one: Exercise, texts: dict[str, str]) -> Verdict:
    workbench.lay(texts)
    try:
        return verdict_of_answer(one, Answers(workbench.tree), workbench)
    except Failure as failure:  # answers.json is none
        return Verdict("wrong", [str(failure)])
