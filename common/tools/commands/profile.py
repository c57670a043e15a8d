"""the chapters under Nsight Compute: time and bytes of each kernel

Needs a GPU and Nsight Compute. Every rung is profiled, N = 4096 unless another is named. The JSON, with time, bytes of DRAM
and L2 and tensor-core instructions of each launch, goes into common/results, under the GPU's name.
"""

from tools.base import (
    RESULTS,
    Failure,
    amount_of_memory,
    build,
    cuda,
    file_to_write,
    say,
    shown,
    significant,
    slug,
    table,
)
from tools.measuring import ncu, problem_flags, profile
from tools.record import commit, result_files


def add_arguments(parser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 01 05 (default: all)")
    problem_flags.add_arguments(parser, several=True)
    problem_flags.add_rung(parser, default="all")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")


def run(arguments) -> int:
    chosen = problem_flags.chosen_chapters(arguments)
    problems = problem_flags.problems(arguments)
    ncu.require()
    directory = build.ensure_built("cuda", [chapter.name for chapter in chosen])
    directions = [arguments.direction] if arguments.direction else ["forward", "backward"]
    profiled = profile.rungs(chosen, problems, directions, arguments.rung, directory)
    if not profiled:
        what = f"rung {arguments.rung} with a " if arguments.rung else ""
        raise Failure(f"no chapter named has a {what}{' or a '.join(directions)}", status=2)
    rows = [["", "ms", "DRAM", "L2"]]
    for one in profiled:
        rows.append([f"{one['chapter']}/{one['rung']} {one['direction']} N={one['problem']['seq_q']}",
                     significant(one["seconds"] * 1e3), amount_of_memory(one["dram_bytes"]), amount_of_memory(one["l2_bytes"])])
    say(table(rows))
    machine = cuda.machine()
    path = arguments.out or RESULTS / slug(machine["gpu"]) / "profile.json"
    result_files.write(path, {"context": {**machine, "tool": "Nsight Compute, --clock-control none", "commit": commit()},
                         "rungs": profiled})
    say(f"JSON: {shown(path)}")
    return 0
