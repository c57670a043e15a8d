"""A workbench for tests: the workbook as it is, built where the sandbox's users may look, of what is compiled here
already."""

import tempfile
from pathlib import Path

from tools import course
from tools.base import ROOT
from tools.grading import Workbench


def a_workbench(case, exercises: list, patience: float = 60, number: int = 0, times_on: str = "cuda") -> Workbench:
    """For a test case's class; it goes away with it."""
    directory = tempfile.TemporaryDirectory()
    case.addClassCleanup(directory.cleanup)
    Path(directory.name).chmod(0o755)
    workbench = Workbench(ROOT, Path(directory.name), number, patience, times_on)
    workbench.prepare(course.load(), exercises)
    return workbench
