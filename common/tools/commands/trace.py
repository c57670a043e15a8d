"""requests, sectors, bank conflicts and bytes of each kernel, by source line, without a GPU

The SIMT engine runs the kernels once and counts what Nsight Compute would: requests and 32-byte sectors of global
memory, wavefronts and bank conflicts of shared memory, and bytes at three levels. It stops at races on shared memory, at
reads of it before a cp.async has been waited for, and at reads of what was never written.
"""

import contextlib
import json
import sys

from tools.machine import bold, chapters, say
from tools.measuring import asked, engine
from tools.record import read_label
from tools.showing import counts


def add_arguments(parser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 03 05 (default: all)")
    asked.add_arguments(parser, several=False)
    asked.add_rung(parser, default="all")
    parser.add_argument("--gpu", choices=counts.GPUS, default="h200", help="to predict for (default: h200)")
    parser.add_argument("--lines", type=asked.at_least_one, default=8, metavar="N",
                        help="source lines to show per kernel (default: 8)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON instead")
    parser.add_argument("--patterns", action="store_true", help="count the access patterns of common/tests/trace too")


def run(arguments) -> int:
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    (flags,) = asked.problems(arguments)
    # JSON has stdout to itself.
    with contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        counted = engine.count(chosen, flags, arguments.direction, arguments.rung, arguments.patterns)
    if arguments.json:
        print(json.dumps(counted, indent=1))
    else:
        _say(counted, counts.GPUS[arguments.gpu], arguments.lines)
    return 0


def _say(counted: dict, gpu: counts.Gpu, most_lines: int) -> None:
    for chapter in counted["chapters"]:
        problem = f", {read_label(chapter['problem'])[0]}" if chapter["problem"] else ""
        for rung in chapter["rungs"]:
            say(bold(f"\n=== {chapter['chapter']}/{rung['rung']}, {chapter['direction']}{problem}") + "\n")
            for launch in rung["launches"]:
                say(counts.launch_report(launch, gpu, most_lines) + "\n")
            say(counts.rung_summary(rung, chapter["flops"], gpu))
    say("\nNo races, no read before its cp.async was waited for, no read of unwritten shared memory.")
