"""Files of measurements: how they are written and read, what of them is kept, and of which commit they are."""

import json
import os
from pathlib import Path

from tools.base import RESULTS, ROOT, Failure, JsonObject, output_of, write_whole

LINE = 400  # characters: a value that is longer takes several lines, unless it is a record of plain values

# What Google Benchmark says of a run besides its name, its time and the program's own counters.
NOISE = {"run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
         "threads", "cpu_time", "aggregate_unit"}
SAMPLES = {"samples", "samples_us"}  # the times of single launches
STATISTICS = {"median", "p10"}  # of these samples: the time, and the fastest tenth, which tells whether it is steady


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


def compact(report: JsonObject) -> str:
    """JSON with one line for each record, so that a diff shows which records have changed."""
    return _laid_out(report, "") + "\n"


def _laid_out(value: object, indent: str) -> str:
    line = json.dumps(value)
    if not isinstance(value, (dict, list)) or not value:
        return line
    plain = not any(isinstance(child, (dict, list)) for child in (value.values() if isinstance(value, dict) else value))
    if indent and (plain or len(line) <= LINE and "[{" not in line):  # a list of records takes a line for each
        return line
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_laid_out(child, inner)}" for key, child in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _laid_out(child, inner) for child in value) + f"\n{indent}]"


def repetitions(runs: list[JsonObject]) -> set[str]:
    """The names of Google Benchmark's runs that were repeated: their median counts."""
    return {run["name"].removesuffix("_median") for run in runs if run.get("aggregate_name") == "median"}


def slim(report: JsonObject) -> JsonObject:
    """What common/results keeps of a report: of repetitions the median, of samples what STATISTICS names."""
    if "benchmarks" in report:
        repeated = repetitions(report["benchmarks"])
        runs = [run for run in report["benchmarks"]
                if run.get("aggregate_name", "median") == "median" and run["name"] not in repeated]
        report = {**report, "benchmarks": [{key: run[key] for key in run if key not in NOISE} for run in runs]}
    return _slim(report)


def _slim(value):
    if isinstance(value, list):
        return [_slim(one) for one in value]
    if not isinstance(value, dict):
        return value
    wanted = STATISTICS if value.keys() >= STATISTICS else value.keys() - SAMPLES
    return {key: _slim(one) for key, one in value.items() if key in wanted}


def write(path: Path, report: JsonObject) -> None:
    """Writes all of the report or nothing; in common/results what the pages need: slim."""
    write_whole(path, compact(slim(report) if RESULTS in path.resolve().parents else report))


def read(path: Path) -> "JsonObject | None":
    """The report in the file; None if there is no file, Failure if it holds something else."""
    try:
        report = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}") from None
    if not isinstance(report, dict):
        raise Failure(f"{path} is no measurement: it holds no JSON object")
    return report
