"""The engine's counts of wild.cu beside Nsight Compute's.

    wild.py count            counts anew, and reads nvcc's widths anew where nvcc is: counts.json and widths.txt
    wild.py check            the engine counts what is in counts.json
    wild.py compare FILE     on a GPU: profiles wild.cu and writes both counts, side by side, as JSON

The counts are those with nvcc's widths (common/simt/trace/widths.h).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SOURCE, WIDTHS, COUNTS = HERE / "wild.cu", HERE / "widths.txt", HERE / "counts.json"
sys.path.insert(0, str(ROOT / "common"))

from tools.base import Failure, cuda  # noqa: E402
from tools.measuring import agreement, ncu  # noqa: E402
from tools.record import commit, result_files  # noqa: E402
from tools.user_files import access_widths  # noqa: E402


def counted() -> list:
    """[{"kernel", "totals", ..}] of each launch."""
    done = subprocess.run([str(ROOT / "workbook"), "trace", "--json", str(SOURCE)], capture_output=True, text=True,
                          env={**os.environ, "SIMT_WIDTHS": str(WIDTHS)})
    if done.returncode:
        raise Failure(f"wild.cu cannot be counted: {done.stderr.strip()}")
    return [{key: value for key, value in launch.items() if key not in ("lines", "for_exercises")} for launch in json.loads(done.stdout)["launches"]]


def count() -> None:
    if access_widths.possible():
        own = {key: width for key, width in access_widths.of_files([SOURCE], ["-std=c++20"]).items() if key[0].startswith("wild/")}
        WIDTHS.write_text(access_widths.text(own))
    COUNTS.write_text(json.dumps(counted(), indent=1) + "\n")


def check() -> None:
    for expected, found in zip(json.loads(COUNTS.read_text()), counted()):
        if expected != found:
            raise Failure(f"{found['kernel']}: the engine counts {found}, expected {expected}; if it was meant to change: "
                          "common/tests/trace/wild/wild.py count")


def compare(out: Path) -> None:
    metrics = [metric for group in agreement.METRICS.values() for metric in group]
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "wild"
        subprocess.run([shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "-arch=sm_90", "-std=c++20", "-lineinfo", "-o", program, SOURCE], check=True)
        compared = agreement.side_by_side("wild", json.loads(COUNTS.read_text()), lambda: ncu.profile([str(program)], metrics))
    context = {**cuda.machine(), "tool": "Nsight Compute, --clock-control none", "tool_version": ncu.version(),
               "commit": commit(), "date": time.strftime("%Y-%m-%d"), "problem": "the launches of common/tests/trace/wild/wild.cu"}
    result_files.write(out, {"context": context, "launches": compared})
    for launch in compared:
        for name, counter in launch["counters"].items():
            if counter["verdict"] not in ("equal", "beside"):
                print(f"{launch['kernel']}: {name}: {counter}")


def main(arguments: list) -> int:
    try:
        if arguments == ["count"]:
            count()
        elif arguments == ["check"]:
            check()
        elif len(arguments) == 2 and arguments[0] == "compare":
            compare(Path(arguments[1]))
        else:
            raise Failure(f"wild.py {' '.join(arguments)}: must be count, check or compare FILE")
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
