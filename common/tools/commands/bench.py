"""time the chapters with Google Benchmark and keep its JSON

Every chapter is checked before it is timed. On a GPU N goes from 512 to 8192, unless other ones are named. Flags that
begin with --benchmark_ go to Google Benchmark, but for those that say what it prints and where. The JSON of all
chapters goes into one file, in Google Benchmark's own format: in the build directory, or where --out says, or with
--keep (from a GPU only) in common/results, among the project's measurements, which hold the median of the repetitions.
"""

import argparse
import time
from pathlib import Path

from tools.base import RESULTS, Failure, JsonObject, cuda, file_to_write, say, shown, slug
from tools.measuring import Outcome, problem_flags, session
from tools.record import commit, result_files
from tools.showing import ladder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    session.add_arguments(parser)
    problem_flags.add_rung(parser, default="its last; of a backward: all", or_all=True)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")
    where.add_argument("--keep", action="store_true", help="keep the JSON in common/results, under the GPU's name")


def passes_on(flag: str) -> bool:
    """Whether an unknown flag goes to Google Benchmark. Its output is read here, so flags about output do not."""
    return flag.startswith("--benchmark_") and not flag.startswith(("--benchmark_out", "--benchmark_format",
                                                                    "--benchmark_list"))


def run(arguments: argparse.Namespace) -> int:
    if arguments.keep and not cuda.choose_preset(arguments.preset).gpu:
        raise Failure("--keep is for measurements from a GPU, and none is used here; --out FILE keeps these", status=2)
    current = session.begin(arguments, arguments.passed_on)
    steps, outcomes = session.measure_ladders(current, ladder.show, arguments.all_rungs)
    path = _keep(arguments, current, outcomes)
    say(f"Google Benchmark's JSON: {shown(path)}")
    return session.conclude(steps, outcomes)


def merged(outcomes: list[list[Outcome]]) -> JsonObject:
    """One report in Google Benchmark's format: the context of the first, and everybody's runs."""
    reports = [outcome.report for row in outcomes for outcome in row if outcome.report]
    context = dict(reports[0]["context"]) if reports else {}
    for private in ("executable", "host_name"):  # where it happened to lie, and on whose machine
        context.pop(private, None)
    return {"context": context, "benchmarks": [run for report in reports for run in report["benchmarks"]]}


def _keep(arguments: argparse.Namespace, current: session.Session, outcomes: list[list[Outcome]]) -> Path:
    what = "ladder" if len(current.problems) > 1 else "bench"
    file_name = f"{time.strftime('%Y-%m-%dT%H%M%S')}-{commit()}-{what}.json"
    if arguments.out:
        path = arguments.out
    elif arguments.keep:
        path = RESULTS / slug(current.device) / file_name
    else:
        path = current.build_directory / "bench" / file_name
    result_files.write(path, merged(outcomes))
    return path
