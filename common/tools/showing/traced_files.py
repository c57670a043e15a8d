"""`trace` of files of the user's own: what the engine counted, kernel by kernel."""

import contextlib
import json
import sys
from pathlib import Path

from tools.base import Gpu, say
from tools.showing import trace_report
from tools.user_files import Asked, Ran, conclude_files, run_files

SECONDS = 60  # that the kernels of a file may take


def trace_files(files: Asked, gpu: Gpu, most_lines: int, as_json: bool, installed: "Path | None" = None) -> int:
    # JSON has stdout to itself.
    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
        ran = run_files(files, counted=True, quietly=as_json, installed=installed)
    if as_json:
        print(json.dumps({"launches": ran.launches, "failures": ran.failures, "mistakes": ran.mistakes}, indent=1))
    else:
        _say_launches(ran, files, gpu, most_lines)
    return conclude_files(files, ran)


def _say_launches(ran: Ran, files: Asked, gpu: Gpu, most_lines: int) -> None:
    roots = tuple(dict.fromkeys(parent for file in files.files for parent in Path(file).resolve().parents))
    worst = trace_report.worst_line(ran.launches, roots)
    if worst:
        say(f"\n{worst}")
    for launch, times in trace_report.alike(ran.launches):
        say("\n" + trace_report.launch_report(launch, gpu, most_lines, roots))
        if times > 1:
            say(f"So do {times} launches.")
    if not ran.failures and not ran.mistakes and ran.launches:
        say("\nNo races, no read before its cp.async was waited for, no read of unwritten shared memory.")
