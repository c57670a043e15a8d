"""A workbench for tests: the workbook as it is, built where the sandbox's users may look, of what is compiled here
already."""

import subprocess
import tempfile
from pathlib import Path

from tools import course
from tools.base import ROOT
from tools.grading import Workbench


def headers_of_the_system(text: str) -> "list[str]":
    """What a compiler reads of the system for this text."""
    told = subprocess.run(["g++", "-M", "-x", "c++", "-"], input=text, capture_output=True, text=True, check=True).stdout
    return [word for word in told.split() if word.startswith("/")]


def a_workbench(case, exercises: list, patience: float = 60, number: int = 0, times_on: str = "cuda") -> Workbench:
    """For a test case's class; it goes away with it."""
    directory = tempfile.TemporaryDirectory()
    case.addClassCleanup(directory.cleanup)
    Path(directory.name).chmod(0o755)
    workbench = Workbench(ROOT, Path(directory.name), number, patience, times_on)
    workbench.prepare(course.load(), exercises)
    return workbench
