"""Which Python has what is needed: one that is here, or a virtual environment made from a file of pinned versions."""

import os
import re
import shutil
import sys
from pathlib import Path

from tools.base.failure import Failure
from tools.base.paths import shown
from tools.base.processes import follow, output_of
from tools.base.terminal import Progress, say


def with_packages(requirements: Path, home: Path, lowest: tuple) -> Path:
    """The environment's interpreter. `lowest` is the oldest Python that the packages accept."""
    python, stamp = home / "bin" / "python", home / "installed.txt"
    if python.exists() and stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    if sys.version_info[:2] < lowest:
        raise Failure(f"the packages of {shown(requirements)} need Python {lowest[0]}.{lowest[1]} or later; "
                      f"this is {sys.version_info[0]}.{sys.version_info[1]}")
    say(f"Installing the packages of {shown(requirements)} into {shown(home)}, once")
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    log_path = home.parent / "packages.log"
    with open(log_path, "w") as log, Progress("Installing packages") as progress:
        lines = []

        def on_line(line: str) -> None:
            lines.append(line)
            progress.show(line)

        if follow([sys.executable, "-m", "venv", home], log, on_line):
            raise Failure(f"the package python3-venv is missing; run: sudo apt-get install python3-venv (log: {shown(log_path)})")
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--requirement", requirements]
        if follow(pip, log, on_line):
            raise Failure(f"pip could not install {_missing(lines)} (log: {shown(log_path)})")
    stamp.write_text(requirements.read_text())
    return python


def _missing(lines: list) -> str:
    """Which package, and why, from what pip says."""
    text = "\n".join(lines)
    package = re.search(r"No matching distribution found for (\S+)", text)
    if not package:
        errors = re.findall(r"^ERROR: (.*)", text, re.MULTILINE)
        return f"the packages: {errors[-1] if errors else 'it says why'}"
    offline = re.search(r"NewConnectionError|ConnectTimeout|ProxyError|Temporary failure|Connection (?:refused|broken|reset)", text)
    return f"{package[1]}: {'its index cannot be reached' if offline else 'there is none for this Python'}"


def with_module(module: str) -> "str | None":
    """The interpreter to use: the first that has the module. WORKBOOK_PYTHON names it, if it is set."""
    named = os.environ.get("WORKBOOK_PYTHON")
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    for python in dict.fromkeys([named] if named else [sys.executable, "python3", "python", "/usr/bin/python3"]):
        if output_of([python, "-c", probe]) is not None:
            return python
    return None
