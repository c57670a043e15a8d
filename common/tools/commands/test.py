"""the test suite on what this machine has, or the tests of a chapter

The engine's tests run everywhere, on plain kernels and on traced ones, whose accesses are counted and searched for
races. With a GPU and nvcc the same suite runs on the GPU too; with nvcc alone all kernels are compiled for one, after
the tests, for compute capability 9.0: machine code of a few that users call, while of the others nvcc's front end says
whether they are right. With --all-architectures, or --all, it is all that a GPU would run, for 8.0 as well (CUDAARCHS
in the environment says otherwise). The summary says how many tests for a GPU were not run; --require-gpu makes that an
error.

There are two tiers. The first one, which this runs, asks every question once, on a small problem or of a sample. With
--all the second one runs, too: all cases and counts of every rung, traced kernels of chapters 12 and 13, all planted
mistakes and hostile submissions, stubs and wrong solutions, a whole course played through, every mutant against every
kind of test, several ranks, browsers; with a time of its own.

With chapters named, only what they need is built, and only their tests run.

While exercises are open (./workbook start), a test that fails because of one says so and is no failure, and the tests
of the workbook itself, which need its solutions, are left out.
"""

import argparse
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import (
    BUILD,
    ROOT,
    Failure,
    Progress,
    bad,
    bold,
    build,
    chapters,
    cuda,
    follow,
    good,
    output_of,
    packages,
    say,
    shown,
)
from tools.course import OF_THE_WORKBOOK, LearnersPath

# Tests, by their names, of the host alone, of the engine alone, and of what a program does before it runs a kernel; all
# others run kernels.
NO_KERNELS = re.compile(r"(simt|reference|style|tools|course|teaching|user_files|(.+\.)?trace|mutants\.traced)\."
                        r"|[^.]+\.(program\.)?(refuses|names|helps|describes|with_64_KB)"
                        r"|.+Rungs\.Pass/(again|orders)$"
                        r"|harness\.(?!program|Memory)|mutants\.(On/KillMatrix|Kinds)|capi\.(shows|Book|fastest)|"
                        r"python\.(without|package)")

# Tests at a time on one GPU: each process holds a few hundred MiB of its memory for the CUDA context.
GPU_JOBS = 4

_TESTS_FAILED = 8  # CTest's status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="only the tests of these (default: everything)")
    parser.add_argument("--all", action="store_true", help="the slow tier, too")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all-architectures", action="store_true",
                       help="without a GPU, compile for every GPU that is supported")
    which.add_argument("--preset", choices=["cpu", "cuda"], help="only this one (default: all that this machine can)")
    which.add_argument("--require-gpu", action="store_true", help="fail if the tests for a GPU cannot be run")


@dataclass
class Plan:
    presets: list[str]  # to build and test
    compile_only: list[str]  # to build
    no_gpu: str  # why the tests for a GPU are not run; empty if they are


def plan(wanted: "str | None", require_gpu: bool, only_some: bool, choice: cuda.Choice, has_nvcc: bool) -> Plan:
    """choice is what this machine would choose for itself."""
    gpu_ready = choice.preset == "cuda"
    if require_gpu and not gpu_ready:
        raise Failure(f"--require-gpu: {choice.why}")
    if wanted:
        left_out = "" if wanted == "cuda" else f"--preset {wanted} leaves it out"
        return Plan([wanted], [], left_out if gpu_ready else choice.why)
    if gpu_ready:
        return Plan(["cpu", "cuda"], [], "")
    return Plan(["cpu"], ["cuda"] if has_nvcc and not only_some else [], choice.why)


def run(arguments: argparse.Namespace) -> int:
    selected = chapters.select(arguments.chapters, chapters.all_chapters()) if arguments.chapters else []
    nvcc = cuda.find_nvcc()
    usable_nvcc = nvcc is not None and nvcc.version >= cuda.LOWEST_NVCC
    if arguments.preset:
        cuda.choose_preset(arguments.preset)  # says so if it cannot be had
    todo = plan(arguments.preset, arguments.require_gpu, bool(selected), cuda.choose_preset(None), usable_nvcc)

    how = {"cpu": "on the SIMT engine", "cuda": "with CUDA"}
    say("Testing " + ", ".join(how[name] for name in todo.presets) + (f" ({todo.no_gpu})." if todo.no_gpu else "."))
    if not selected:
        packages.install_compiler_cache()
        packages.install_for_grading()
    waits = _Waits(LearnersPath())
    results, begin, with_nvcc = {}, time.monotonic(), 0.0
    for preset in todo.presets:
        build.ensure_built(preset, _targets(preset, selected), every_instance=arguments.all)
        results[preset] = _ctest(preset, selected, arguments.require_gpu, waits)
        if arguments.all and not results[preset].failed and _test_names(preset, selected, waits, slow=True):
            build.ensure_built(preset, ["for_slow_tests"])
            results[f"{preset}, slow"] = _ctest(preset, selected, arguments.require_gpu, waits, slow=True)
    all_of_it = arguments.all or arguments.all_architectures
    for preset in todo.compile_only:
        say("All tests that can run here have run. nvcc is here, too, and compiles all kernels for a GPU: some "
            "minutes, and nothing of it is run. (--preset cpu leaves it out.)")
        before = time.monotonic()
        if all_of_it:
            build.ensure_built(preset)
        else:
            build.compile_for_a_gpu(preset)
        with_nvcc += time.monotonic() - before

    say(bold("Summary"))
    for what, result in results.items():
        say(f"  {what}: {(bad if result.failed else good)(result.line())}")
        for why, names in result.not_run.items():
            say(f"    {', '.join(names)} NOT run: {why}")
    for preset in todo.compile_only:
        compiler = f"nvcc {packages.dotted(nvcc.version)}" if nvcc else "nvcc"
        where = "" if all_of_it or "CUDAARCHS" in os.environ else " for compute capability 9.0"
        say(f"  {preset}: compiled with {compiler}{where} in {with_nvcc:.0f} s, not run")
    nvccs = f", {with_nvcc:.0f} of them nvcc's" if with_nvcc else ""
    say(f"  all of it, with builds: {time.monotonic() - begin:.0f} s{nvccs}")
    slow = 0 if arguments.all else sum(len(_test_names(preset, selected, waits, slow=True)) for preset in todo.presets)
    if slow:
        say(f"  {slow} slow tests were NOT run: --all runs them")
    if todo.no_gpu:
        names = _test_names(todo.presets[0], selected, waits, slow=False)
        say(f"  {len(for_a_gpu(names))} of these tests, and compute-sanitizer's, were NOT run on a GPU: {todo.no_gpu}")
    if waits.open and not selected:
        say("  the tests of the workbook itself were NOT run: they need its solutions, and exercises are open")
    failed = [result for result in results.values() if result.failed]
    if failed:
        rerun = " or ".join(f"ctest --preset {result.preset} --rerun-failed" for result in failed)
        raise Failure(f"tests failed; {rerun} repeats only those (log: {shown(failed[0].log)})")
    return 0


class _Waits:
    """Which tests wait for an exercise of the learner's."""

    def __init__(self, path: LearnersPath):
        self._path, self.open = path, path.open

    def behind(self, test: str) -> list[str]:
        """The open exercises in the kernels of the test's chapter."""
        return self._path.open_behind(test.partition(".")[0]) if self.open else []

    def left_out(self) -> list[str]:
        return ["-E", rf"^({'|'.join(OF_THE_WORKBOOK)})\.|^trace\.(walk|watch)"] if self.open else []

    def explain(self, test: str, output: str) -> list[str]:
        """The open exercises that a failed test waits for. Where it names rungs, each of them has to have one."""
        chapter = test.partition(".")[0]
        rungs = set(re.findall(r"^(\w+) (?:forward|backward)$", output, re.M))
        behind = [self._path.open_behind(chapter, rung) for rung in sorted(rungs)] or [self.behind(test)]
        return list(dict.fromkeys(id for ids in behind for id in ids)) if all(behind) else []


@dataclass
class Result:
    preset: str
    log: Path
    tests: int
    failures: int
    skipped: int
    seconds: float
    status: int  # of ctest
    waiting: int = 0  # tests that failed because of open exercises
    open: tuple[str, ...] = ()  # these exercises
    not_run: dict[str, list[str]] = field(default_factory=dict)  # {why: the tests that were skipped}

    @property
    def failed(self) -> bool:
        return self.status != 0 or self.failures > 0

    def line(self) -> str:
        ran = self.tests - self.skipped
        text = f"{ran - self.failures - self.waiting} of {ran} tests passed in {self.seconds:.0f} s"
        text += f", {self.waiting} wait for what is open: {', '.join(self.open)}" if self.waiting else ""
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def _targets(preset: str, selected: list[chapters.Chapter]) -> list[str]:
    """What the tests of these chapters are made of; all if none is selected."""
    traced = [chapter.traced for chapter in selected] if preset == "cpu" else []
    return [*(name for chapter in selected for name in (chapter.name, f"{chapter.name}_tests")), *traced]


def for_a_gpu(names: list[str]) -> list[str]:
    return [name for name in names if not NO_KERNELS.match(name)]


def _filter(selected: list[chapters.Chapter], slow: bool) -> list[str]:
    """The tests of one tier: of these chapters, or all."""
    names = ["-R", "^(" + "|".join(re.escape(chapter.name) for chapter in selected) + r")\."] if selected else []
    return [*names, "-L" if slow else "-LE", "^slow$"]


def _test_names(preset: str, selected: list[chapters.Chapter], waits: _Waits, slow: bool) -> list[str]:
    answer = output_of(["ctest", "--test-dir", build.directory(preset), "--show-only=json-v1",
                        *_filter(selected, slow), *waits.left_out()])
    return [test["name"] for test in json.loads(answer)["tests"]] if answer else []


def _ctest(preset: str, selected: list[chapters.Chapter], require_gpu: bool, waits: _Waits,
           slow: bool = False) -> Result:
    what = f"{preset}-slow" if slow else preset
    log_path, report_path = BUILD / f"{what}-test.log", BUILD / f"{what}-test.xml"
    # One more than there are cores: some tests wait for processes that they have stopped.
    jobs = build.cores() + 1 if preset != "cuda" else min(build.cores(), GPU_JOBS)
    command = ["ctest", "--preset", preset, "--parallel", jobs, "--no-label-summary", "--output-junit", report_path]
    report_path.unlink(missing_ok=True)
    with open(log_path, "w") as log, Progress(f"Testing {preset}" + (", the slow tier" if slow else "")) as progress:
        status = follow(
            [*command, *_filter(selected, slow), *waits.left_out()],
            log,
            _Listener(progress, lambda test: bool(waits.behind(test))),
            cwd=ROOT,
            environment={"REQUIRE_GPU": "1"} if require_gpu else {},
        )
        seconds = progress.seconds()
    if not report_path.exists():
        raise Failure(f"ctest --preset {preset} ended with status {status} and ran nothing (log: {shown(log_path)})")
    suite = ElementTree.parse(report_path).getroot()
    tests, failures = int(suite.get("tests", 0)), int(suite.get("failures", 0))
    skipped = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    waiting, open_ = 0, []
    not_run: dict[str, list[str]] = {}
    for case in suite.iter("testcase"):
        name, output = case.get("name", ""), case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            not_run.setdefault(why_not(output), []).append(name)
        if case.find("failure") is not None and waits.behind(name):
            ids = waits.explain(name, output)
            waiting += bool(ids)
            open_ += ids
            if not ids:
                say(f"{bad(name)}\n{output}")
    failures -= waiting
    only_waiting = status == _TESTS_FAILED and waiting and not failures
    return Result(preset, log_path, tests, failures, skipped, seconds, 0 if only_waiting else status, waiting,
                  tuple(dict.fromkeys(open_)), not_run)


def why_not(output: str) -> str:
    """What a test that is skipped says of it."""
    said = re.search(r"(?:NOT RUN: |SKIPPED, )(.+?)[\"']?$", output, re.MULTILINE)
    return said[1] if said else "the log says why"


class _Listener:
    """Of CTest's output: a passed test moves the progress line; failures, their output and the summary are printed. Of
    a test that may wait for an open exercise nothing is."""

    def __init__(self, progress: Progress, may_wait: Callable[[str], bool]):
        self.progress, self._may_wait = progress, may_wait
        self.listing_skipped = self._muted = self._some_muted = False

    def __call__(self, line: str) -> None:
        test = re.match(r"\s*(\d+)/(\d+) Test\s+#\d+: (\S+)", line)
        if test and re.search(r"Passed|\*\*\*Skipped|\*\*\*Not Run \(Disabled\)", line):
            self.progress.show(f"{test[1]} of {test[2]}  {test[3]}")
            self._muted = False
        elif test and self._may_wait(test[3]):
            self._muted = self._some_muted = True
        elif test:
            self._muted = False
            self.progress.say(bad(line.strip()))
        elif self._some_muted and re.match(r"\d+% tests passed", line):
            self._muted = True  # the list of the failed ones follows, and our summary says which are none
        elif self._muted:
            pass
        elif line.startswith("The following tests did not run:"):
            self.listing_skipped = True  # they are counted in our summary, and named in the log
        elif self.listing_skipped and re.match(r"\s+\d+ - ", line):
            pass
        elif line.strip() and not re.match(r"\s+Start\s+\d+:|Test project |Internal ctest changing", line):
            self.listing_skipped = False
            self.progress.say(line)
