"""requests, sectors, bank conflicts and bytes of each kernel, by source line, without a GPU

The SIMT engine runs the kernels once and counts what Nsight Compute would: requests and 32-byte sectors of global
memory, wavefronts and bank conflicts of shared memory, and bytes at three levels. It stops at races on shared memory, at
reads of it before a cp.async has been waited for, and at reads of what was never written.

With --ncu, on a machine with a GPU, every counter is compared with Nsight Compute's own.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

from tools.machine import Failure, Progress, bold, build, chapters, say, started
from tools.measuring import asked, ncu
from tools.showing import counts


def add_arguments(parser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 03 05 (default: all)")
    asked.add_arguments(parser)
    parser.add_argument("--gpu", choices=counts.GPUS, default="h200", help="to predict for (default: h200)")
    parser.add_argument("--lines", type=int, default=8, metavar="N", help="source lines to show per kernel (default: 8)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON instead")
    parser.add_argument("--patterns", action="store_true", help="count the access patterns of common/tests/trace too")
    parser.add_argument("--ncu", action="store_true", help="compare with Nsight Compute on this machine's GPU")
    parser.add_argument("--engine", type=Path, metavar="FILE",
                        help="with --ncu: the engine's counts, from --json on a machine that can build the engine")
    parser.add_argument("--out", type=Path, metavar="FILE", help="with --ncu: also write the comparison there, as JSON")


def run(arguments) -> int:
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    problems = asked.from_arguments(arguments, asked.ENGINE)
    wanted = problems[0]
    if (arguments.engine or arguments.out) and not arguments.ncu:
        raise Failure("--engine and --out go with --ncu", status=2)
    if arguments.lines < 1:
        raise Failure(f"--lines is {arguments.lines}: at least 1", status=2)
    if arguments.ncu:
        ncu.require()  # before anything takes time
    flags = wanted.flags()
    flags += [] if arguments.seed is None else [f"--seed={arguments.seed}"]

    counted = ncu.read_counts(arguments.engine, chosen) if arguments.engine else {
        "problem": str(wanted), "flags": flags, "chapters": _count(chosen, flags, arguments)}
    if arguments.ncu:
        return ncu.compare(counted, arguments.out)
    if arguments.json:
        print(json.dumps(counted, indent=1))
        return 0
    _report(counted, arguments)
    return 0


def _count(chosen: list, flags: list, arguments) -> list:
    """What each chapter's program prints, of each direction; those that do not take the problem are left out, unless all are."""
    programs = {chapter.name: chapter.program(build.directory("trace")) for chapter in chosen}
    # JSON has stdout to itself.
    with contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        build.ensure_built("trace", [*programs, *(["trace_patterns"] if arguments.patterns else [])])
        counted, refusals = [], []
        with Progress("Counting") as progress:
            for chapter, direction in passes(chosen, arguments):
                progress.show(f"{chapter.name} {direction}")
                rung = [f"--rung={arguments.rung}"] if arguments.rung else []
                status, output, errors = _output(
                    [programs[chapter.name], "--trace", *flags, f"--direction={direction}", *rung])
                if status == 2:
                    refusals.append(errors)
                elif status != 0:
                    raise Failure(errors)
                else:
                    counted.append(json.loads(output))
            if arguments.patterns:
                counted.append(json.loads(_output([ncu.patterns(build.directory("trace"))])[1]))
    if refusals and not counted:
        raise Failure(refusals[0], status=2)
    for refusal in dict.fromkeys(refusals):  # once for both directions
        print(refusal, file=sys.stderr)
    return counted


def passes(chosen: list, arguments) -> list:
    """[(chapter, direction)]: what the user asked for or, of directions, those that the chapter (and the rung) has."""
    if arguments.direction:
        return [(chapter, arguments.direction) for chapter in chosen]
    passes = []
    for chapter in chosen:
        description = chapters.describe(chapter, [build.directory("trace")])
        rungs = description.rungs if description else []
        has = [direction for direction in ("forward", "backward")
               if any(rung[direction] and arguments.rung in (None, rung["name"]) for rung in rungs)]
        passes += [(chapter, direction) for direction in has or ["forward"]]  # a rung that is none: the program says so
    return passes


def _output(command: list) -> tuple:
    """Exit status, stdout, and the last line of stderr."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate()
        lines = errors.strip().splitlines() or [f"{command[0].name} ended with status {process.returncode}"]
        return process.returncode, output, lines[-1]


def _report(counted: dict, arguments) -> None:
    gpu = counts.GPUS[arguments.gpu]
    for chapter in counted["chapters"]:
        for rung in chapter["rungs"]:
            say(bold(f"\n=== {chapter['chapter']}/{rung['rung']}, {chapter['direction']}, {counted['problem']}") + "\n")
            for launch in rung["launches"]:
                say(counts.launch_report(launch, gpu, arguments.lines) + "\n")
            say(counts.rung_summary(rung, chapter["flops"], gpu))
    say("\nNo races, no read before its cp.async was waited for, no read of unwritten shared memory.")
