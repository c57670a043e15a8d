"""A bench for tests: the workbook as it is, built where the sandbox's users may look, of what is compiled here already."""

import tempfile
from pathlib import Path

from tools import course
from tools.machine import ROOT
from tools.teaching import Bench


def a_bench(case, exercises: list, patience: float = 60, number: int = 0, times_on: str = "cuda") -> Bench:
    """For a test case's class; it goes away with it."""
    directory = tempfile.TemporaryDirectory()
    case.addClassCleanup(directory.cleanup)
    Path(directory.name).chmod(0o755)
    bench = Bench(ROOT, Path(directory.name), number, patience, times_on)
    bench.prepare(course.load(), exercises)
    return bench
