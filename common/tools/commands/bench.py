"""time the chapters with Google Benchmark and keep its raw JSON

Every chapter is checked before it is timed. Flags that begin with --benchmark_ go to Google Benchmark. The JSON of
all chapters goes into one file, in Google Benchmark's own format: in the build directory, or with --keep among the
project's measurements in common/results (from a GPU only), or where --out says.

--peers times PyTorch's scaled_dot_product_attention (and FlashAttention-3 and -4, where they are installed) beside the
chapters, on the same tensors in one process, over a sweep of lengths. It needs a GPU, and a Python with PyTorch: this
one, the PATH's python3, or the one that WORKBOOK_PYTHON names. Its JSON goes into common/results.

--profile runs the chapters under Nsight Compute instead and keeps time, bytes and tensor-core activity of each launch.
"""

import time
from pathlib import Path

from tools.machine import RESULTS, Failure, say, shown, slug
from tools.measuring import peers, profile, session
from tools.record import commit, results
from tools.showing import beside_peers, ladder


def add_arguments(parser) -> None:
    session.add_arguments(parser)
    parser.add_argument("--ladder", action="store_true", help="N = 512 ... 8192 (the default on a GPU)")
    parser.add_argument("--lengths", type=session.lengths, metavar="N,N,...", help="these N instead")
    parser.add_argument("--all-rungs", action="store_true", help="every rung of a chapter, not only its last")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the JSON goes")
    parser.add_argument("--keep", action="store_true", help="keep the JSON in common/results, under the GPU's name")
    parser.add_argument("--peers", action="store_true", help="beside PyTorch's attention, in the same run")
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="with --peers: what the launches of one chapter at "
                        f"one point may take; what takes longer is left out there (default: {peers.PATIENCE})")
    parser.add_argument("--profile", action="store_true", help="under Nsight Compute (default: N = 4096)")
    parser.add_argument("--sweep", choices=list(peers.SWEEPS), help="with --peers (default: fa); " + "; ".join(
        f"{name}: {what}" for name, what in peers.SWEEPS.items()))


def passes_on(flag: str) -> bool:
    """Whether an unknown flag is one for the chapters' programs."""
    return flag.startswith("--benchmark_")


def run(arguments) -> int:
    if arguments.lengths and (arguments.seq_q or arguments.seq_k or arguments.peers):
        raise Failure("--lengths does not go with --seq-q, --seq-k or --peers", status=2)
    if arguments.profile:
        return profile.run(arguments)
    if arguments.peers:
        return _beside_peers(arguments)
    for flag in ("sweep", "patience"):
        if getattr(arguments, flag):
            raise Failure(f"--{flag} is for --peers", status=2)
    if arguments.rung and arguments.all_rungs:
        raise Failure("--rung and --all-rungs exclude each other", status=2)
    current = session.begin(arguments, arguments.passed_on, always_published=arguments.ladder or bool(arguments.lengths))
    gpu = current.choice.gpu
    if arguments.keep and not gpu:
        raise Failure("--keep is for measurements from a GPU, and none is used here; --out FILE keeps these", status=2)

    steps, outcomes = session.measure_ladders(current, ladder.show, arguments.all_rungs)
    path = _keep(arguments, current, outcomes)
    say(f"Google Benchmark's JSON: {shown(path)}")
    return session.conclude(steps, outcomes)


def _beside_peers(arguments) -> int:
    report, path = peers.run(arguments)
    say(f"\n{report['context']['gpu']}, PyTorch {report['context']['torch']}, every result checked before it was timed\n")
    say(beside_peers.tables(report))
    say()
    for line in beside_peers.remarks(report):
        say(line)
    say(f"JSON: {shown(path)}")
    wrong = sorted({result["name"] for point in report["points"] for result in point["results"] if "wrong" in result})
    if wrong:
        raise Failure(f"not right: {', '.join(wrong)}")
    return 0


def merged(outcomes: list) -> dict:
    """One report in Google Benchmark's format: the context of the first, and everybody's runs."""
    reports = [outcome.report for row in outcomes for outcome in row if outcome.report]
    context = dict(reports[0]["context"]) if reports else {}
    for private in ("executable", "host_name"):  # where it happened to lie, and on whose machine
        context.pop(private, None)
    return {"context": context, "benchmarks": [run for report in reports for run in report["benchmarks"]]}


def _keep(arguments, current: session.Session, outcomes: list) -> Path:
    what = "ladder" if len(current.problems) > 1 else "bench"
    file_name = f"{time.strftime('%Y-%m-%dT%H%M%S')}-{commit()}-{what}.json"
    if arguments.out:
        path = arguments.out
    elif arguments.keep:
        path = RESULTS / slug(current.choice.gpu.name) / file_name
    else:
        path = current.build_directory / "bench" / file_name
    results.write(path, merged(outcomes))
    return path
