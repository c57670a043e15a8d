"""Running programs under Nsight Compute, and reading what it says."""

import csv
import io
import shutil
import subprocess
from pathlib import Path

from tools.base import Failure, cuda, output_of, started


def require() -> str:
    """The profiler's path; Failure without it or without a GPU."""
    path = shutil.which("ncu") or next((str(p) for p in sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if path is None:
        raise Failure("there is no ncu on the PATH or in /usr/local/cuda: install Nsight Compute")
    gpu, why = cuda.find_gpu()
    if gpu is None:
        raise Failure(f"Nsight Compute needs a GPU: {why}")
    return path


def profile(program: list, metrics: list) -> list:
    """[{"kernel": .., metric: value, ..}] of every launch, in their order."""
    command = [require(), "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(metrics), *program]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output, _ = process.communicate()
    launches = parse(output)
    if process.returncode != 0 or not launches:
        lines = [line for line in output.splitlines() if "==ERROR==" in line] or output.strip().splitlines() or ["no output"]
        raise Failure(f"ncu could not profile {Path(str(program[0])).name}: {lines[0].replace('==ERROR== ', '')}")
    return launches


def parse(output: str) -> list:
    """ncu's CSV, which follows whatever the program and ncu itself print: a line for every metric of every launch."""
    lines = output.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(line for line in lines[begin:] if line.startswith('"')))):
        launch = launches.setdefault(int(row["ID"]), {"kernel": row["Kernel Name"]})
        launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [launches[i] for i in sorted(launches)]


def one_pass(launches: list) -> list:
    """Of all that a program with --check launches, one pass. It runs the pass twice, the second time between guard bands; a
    backward has a forward before that. So the launches end with the longest sequence of kernels that stands there twice."""
    names = [launch["kernel"] for launch in launches]
    for count in range(len(names) // 2, 0, -1):
        if names[-count:] == names[-2 * count : -count]:
            return launches[-2 * count : -count]
    raise Failure(f"no pass is there twice: {', '.join(names)}")


def version() -> str:
    return (output_of([require(), "--version"]) or "").strip().rpartition("\n")[2]
