"""Running a chapter's program on one problem, and reading what its Google Benchmark report says."""

import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import JsonObject, ending_of, started
from tools.record import SECONDS_PER, commit


@dataclass
class Outcome:
    """The outcome of one chapter on one problem."""

    # correct, wrong, refused (the program does not take such a problem), open: 05.rescale (a learner's, not right yet),
    # failed (anything else)
    verdict: str
    detail: str = ""  # the program's own line, unless correct
    seconds: "float | None" = None  # of one pass: the median of the repetitions
    error: "float | None" = None  # largest difference from the reference
    tolerance: "float | None" = None  # and what is allowed
    flop_rate: "float | None" = None  # FLOP/s
    peak_bytes: "float | None" = None  # of device memory
    report: JsonObject = field(default_factory=dict)  # Google Benchmark's, as it wrote it

    @property
    def bad(self) -> bool:
        return self.verdict in ("wrong", "failed")

    @property
    def open(self) -> bool:
        return self.verdict.startswith("open")


def measure(program: Path, flags: list[str], on_wait: Callable[[float], None] = lambda seconds: None) -> Outcome:
    """Runs the program, which checks its result before it times it. on_wait is called about twice a second."""
    with tempfile.TemporaryDirectory() as scratch:
        report_path = Path(scratch) / "report.json"
        stderr_path = Path(scratch) / "stderr"
        command = [program, *flags, f"--benchmark_out={report_path}", "--benchmark_out_format=json"]
        environment = {**os.environ, "WORKBOOK_COMMIT": commit()}
        with open(stderr_path, "w") as stderr, started(
            command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment
        ) as process:
            begin = time.monotonic()
            while process.poll() is None:
                try:
                    process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    on_wait(time.monotonic() - begin)
        report = report_path.read_text() if report_path.exists() else ""
        outcome = interpret(process.returncode, report, stderr_path.read_text(errors="replace"))
        outcome.detail = outcome.detail.removeprefix(f"{program.name}: ")
        return outcome


def interpret(status: int, report_text: str, stderr: str) -> Outcome:
    """The programs exit 2 if they do not take the problem, 1 if the result is wrong or could not be computed.

    A negative status is a signal.
    """
    if status == 0:
        try:
            return read_report(json.loads(report_text))
        except (ValueError, KeyError, TypeError) as problem:
            return Outcome("failed", f"its report cannot be read: {problem}")
    last_words = _last_words(stderr)
    if status < 0:
        return Outcome("failed", ending_of(status) + (f" after: {last_words}" if last_words else ""))
    detail = last_words or f"{ending_of(status)} without a word"
    return Outcome("refused" if status == 2 else "wrong" if ": FAIL " in detail else "failed", detail)


def _last_words(stderr: str) -> str:
    """The program's last message, which begins with the chapter's name and may go on for some lines; on one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    begins = [number for number, line in enumerate(lines) if re.match(r"\d\d_\w+[:/]", line)]
    return " ".join(lines[begins[-1] if begins else -1 :])


def only(report: JsonObject, rung: "str | None") -> JsonObject:
    """The part of a chapter's report that is about this rung."""
    return {**report, "benchmarks": [run for run in report["benchmarks"] if run["name"].split("/")[1] == rung]}


def read_report(report: JsonObject) -> Outcome:
    """The median of the repetitions, as Google Benchmark aggregated it or, where it did not, from the runs."""
    runs = report["benchmarks"]
    failed = [run for run in runs if run.get("error_occurred")]
    if failed:
        return Outcome("failed", failed[0].get("error_message", "Google Benchmark reports an error"), report=report)
    medians = [run for run in runs if run.get("aggregate_name") == "median"]
    chosen = medians[:1] or [run for run in runs if run.get("run_type", "iteration") == "iteration"]
    if not chosen:
        return Outcome("failed", "Google Benchmark ran nothing", report=report)

    def middle(name: str) -> "float | None":
        values = [float(run[name]) for run in chosen if name in run]
        return statistics.median(values) if values else None

    error, tolerance = middle("error"), middle("tolerance")
    outcome = Outcome(
        "correct",
        seconds=statistics.median(run["real_time"] * SECONDS_PER[run["time_unit"]] for run in chosen),
        error=error,
        tolerance=tolerance,
        flop_rate=middle("FLOP/s"),
        peak_bytes=middle("peak_bytes"),
        report=report,
    )
    if error is None or tolerance is None:
        outcome.verdict, outcome.detail = "failed", "its report does not say how far it is from the reference"
    elif not error <= tolerance:  # NaN must fail
        outcome.verdict, outcome.detail = "wrong", f"error {error:.3g} where {tolerance:.3g} is allowed"
    return outcome
