"""Files of measurements: how they are written and read, and of which commit they are."""

import json
import os
import re
from pathlib import Path

from tools.base import ROOT, Failure, output_of, write_whole


def commit() -> str:
    """The commit that is measured, marked if the sources differ from it; results and lessons do not count.
    WORKBOOK_COMMIT names it where the sources are a copy without their history."""
    named = os.environ.get("WORKBOOK_COMMIT")
    if named:
        return named.strip()
    described = output_of(["git", "-C", ROOT, "describe", "--always", "--abbrev=12"])
    if not described:
        return "unknown"
    changed = output_of(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "--", ".",
                         ":(exclude)common/results", ":(exclude,glob)**/*.md"])
    return described.strip() + ("-dirty" if changed else "")


def compact(report: dict) -> str:
    """JSON with one line for a list of numbers, and one for each of Google Benchmark's runs."""
    runs = report.get("benchmarks")
    text = json.dumps({**report, "benchmarks": []} if runs else report, indent=1)
    if runs:
        lines = ",\n".join("  " + json.dumps(run) for run in runs)
        text = text.replace('"benchmarks": []', f'"benchmarks": [\n{lines}\n ]')
    return re.sub(r"\[\s+([-+.\deE,\s]+?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text) + "\n"


def write(path: Path, report: dict) -> None:
    """Writes all of the report or nothing."""
    write_whole(path, compact(report))


def read(path: Path) -> "dict | None":
    """The report in the file; None if there is no file, Failure if it holds something else."""
    try:
        report = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}")
    if not isinstance(report, dict):
        raise Failure(f"{path} is no measurement: it holds no JSON object")
    return report
