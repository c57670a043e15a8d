"""what the GPU itself can do, measured: latency and bandwidth of each memory, and four experiments

Builds and runs the experiments of common/microbenchmarks, which check their own results: a pointer chase, the bandwidth
of every level, a branch that lanes take two ways, sums in fp16 and fp32, attention divided by queries and by keys, and
on Hopper products of zeros and of other numbers. The JSON, in Google Benchmark's own format, goes into the build
directory, or where --out says. Without a GPU the experiments run on the SIMT engine, which shows that they are right,
and the tables are those of the GPU that the lessons tell of.
"""

import argparse
import re
import tempfile
from pathlib import Path

from tools.base import RESULTS, Failure, JsonObject, Progress, bold, build, ending_of, file_to_write, follow, say, shown
from tools.measuring import session
from tools.record import THE_BOOKS, Microbenchmarks, Missing, Record, result_files
from tools.showing import microbenchmark_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", choices=["cpu", "cuda"], help="default: cuda if there is a GPU and nvcc, else cpu")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")


def run(arguments: argparse.Namespace) -> int:
    choice = session.choose_device(arguments.preset)
    session.say_device(choice)
    directory = build.ensure_built(choice.preset, ["microbenchmarks"])
    report = measured(directory / "common" / "microbenchmarks" / "microbenchmarks")
    path = arguments.out or directory / "bench" / "machine.json"
    result_files.write(path, report)
    if choice.gpu:
        show(choice.gpu.name, Microbenchmarks(report))
    else:
        say(f"{len(Microbenchmarks(report).names(''))} experiments are right, on the SIMT engine, which says nothing "
            "about times.")
        record = Record(RESULTS / THE_BOOKS)
        try:
            show(f"Recorded: {record.gpu}", Microbenchmarks.of(record))
        except Missing:
            say("No GPU has been recorded yet.")
    say(f"Google Benchmark's JSON: {shown(path)}")
    return 0


def measured(program: Path) -> JsonObject:
    """The program's report, without its path and the name of the host."""
    with tempfile.TemporaryDirectory() as scratch, Progress("Measuring") as progress:
        out, log_path = Path(scratch) / "report.json", Path(scratch) / "log"

        def on_line(line: str) -> None:
            name = re.match(r"(.*?)/iterations:", line)
            if name:
                progress.show(name[1])

        with open(log_path, "w") as log:
            status = follow([program, f"--benchmark_out={out}", "--benchmark_out_format=json"], log, on_line)
        if status:
            raise Failure((log_path.read_text(errors="replace").strip().splitlines()
                           or [f"microbenchmarks {ending_of(status)}"])[-1])
        report = result_files.read(out) or {}
    for private in ("executable", "host_name"):
        report["context"].pop(private, None)
    return report


def show(title: str, of: Microbenchmarks) -> None:
    say(f"\n{bold(title)}")
    for table in (microbenchmark_tables.levels, microbenchmark_tables.latencies, microbenchmark_tables.branches,
                  microbenchmark_tables.sums, microbenchmark_tables.divisions):
        say(f"\n{table(of)}")
    if of.names("products/"):
        say(f"\n{microbenchmark_tables.products(of)}")
    if of.names("fp8_sum/"):
        say(f"\n{microbenchmark_tables.sums_in_eight_bits(of)}")
    say()
