"""requests, sectors, bank conflicts and bytes of each kernel by source line, and its races; needs no GPU

Of chapters, or of any CUDA file: ./workbook trace mine.cu. The SIMT engine runs the kernels once and counts what Nsight
Compute would: requests and 32-byte sectors of global memory, wavefronts and bank conflicts of shared memory, and bytes
at three levels. It stops at races on shared memory, at reads of it before a cp.async has been waited for, and at reads
of what was never written. Where nvcc and nvdisasm are (no GPU is needed for them), the machine instructions that are
executed are counted too.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable

from tools.base import GPUS, Gpu, JsonObject, bold, complain, say
from tools.course import LearnersPath
from tools.machine_code import add_instructions
from tools.measuring import engine_counts, problem_flags
from tools.record import read_label
from tools.showing import trace_report, traced_files
from tools.user_files import add_file_arguments, files_of, goes_to_a_compiler, in_one_word, refuse_without_files

TAKES_WORDS_AFTER = True
passes_on = goes_to_a_compiler
read = in_one_word


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER|FILE.cu",
                        help="number or name: 03 05 (default: all), or an exercise's kernel: rows; or files of your "
                             "own")
    problem_flags.add_arguments(parser, several=False)
    problem_flags.add_rung(parser, default="all")
    problem_flags.add_device(parser)
    parser.add_argument("--gpu", choices=GPUS, help="to predict for (default: that of --device, else h200)")
    parser.add_argument("--lines", type=problem_flags.at_least_one, default=8, metavar="N",
                        help="source lines to show per kernel (default: 8)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON instead")
    parser.add_argument("--patterns", action="store_true", default=None,
                        help="count the access patterns of common/tests/trace too")
    add_file_arguments(parser, traced_files.SECONDS)


def run(arguments: argparse.Namespace) -> int:
    files = files_of(arguments, problem_flags.NAMES | {"patterns": "--patterns"}, traced_files.SECONDS)
    gpu = GPUS[arguments.gpu or arguments.device or "h200"]
    if files:
        return traced_files.trace_files(files, gpu, arguments.lines, arguments.json)
    refuse_without_files(arguments)
    chosen = problem_flags.chosen_chapters(arguments, exercises_too=True)
    (flags,) = problem_flags.problems(arguments)
    # JSON has stdout to itself.
    with contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        path = LearnersPath()
        counted = engine_counts.count(chosen, flags, arguments.direction, arguments.rung, arguments.patterns,
                                      bool(arguments.chapters),
                                      lambda chapter, rung: bool(path.open_behind(chapter, rung)))
        rungs = [rung["launches"] for chapter in counted["chapters"] for rung in chapter["rungs"]]
        words = add_instructions(rungs, gpu.architecture)
    if arguments.json:
        print(json.dumps(counted, indent=1))
    else:
        _say(counted, gpu, arguments.lines)
        say("\n".join(words))
    _say_open(counted, path, complain if arguments.json else say)
    return 0


def _say_open(counted: JsonObject, path: LearnersPath, tell: Callable[[str], None]) -> None:
    """What is not right: because an exercise is open, or else Failure."""
    for counts in counted["chapters"]:
        for wrong in engine_counts.wrong_rungs(counts):
            tell(path.excused(*wrong))
    for stopped in counted.get("stopped", []):
        tell(path.excused(*stopped))


def _say(counted: JsonObject, gpu: Gpu, most_lines: int) -> None:
    for chapter in counted["chapters"]:
        problem = f", {read_label(chapter['problem'])[0]}" if chapter["problem"] else ""
        for rung in chapter["rungs"]:
            say(bold(f"\n=== {chapter['chapter']}/{rung['rung']}, {chapter['direction']}{problem}") + "\n")
            say(trace_report.worst_line(rung["launches"]) + "\n")
            for launch in rung["launches"]:
                say(trace_report.launch_report(launch, gpu, most_lines) + "\n")
            say(trace_report.rung_summary(rung, chapter["flops"], gpu))
    if "stopped" not in counted:
        say("\nNo races, no read before its cp.async was waited for, no read of unwritten shared memory.")
