"""chapters beside PyTorch's attention, on the same tensors in one process

FlashAttention-2 (also in its deterministic mode), cuDNN and the unfused one, as scaled_dot_product_attention has them, and
FlashAttention-3 and -4 (this one, too, in its deterministic mode), where they are installed. Every result is checked before it is
timed: a peer that is wrong at a problem is said to be and is not timed there, and after a chapter that is wrong the command fails. It
needs a GPU, and a Python with PyTorch: this one, the PATH's python3, or the one that WORKBOOK_PYTHON names. The JSON goes into
common/results.
"""

from pathlib import Path

from tools.base import RESULTS, Failure, build, chapters, cuda, file_to_write, say, shown, slug
from tools.measuring import peers, problem_flags
from tools.record import commit, result_files
from tools.showing import peer_tables


def add_arguments(parser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER",
                        help="number or name: 01 05 (default: all; 11 where queries are fewer than keys)")
    problem_flags.add_arguments(parser, several=True)
    problem_flags.add_rung(parser, default="its last", or_all=True)
    parser.add_argument("--sweep", choices=list(peers.SWEEPS), default="fa", help="what is timed (default: fa); " + "; ".join(
        f"{name}: {what}" for name, what in peers.SWEEPS.items()))
    parser.add_argument("--patience", type=problem_flags.seconds, default=peers.PATIENCE, metavar="SECONDS",
                        help="what the launches of one chapter at one point may take; what takes longer is left out there "
                        f"(default: {peers.PATIENCE})")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")


def run(arguments) -> int:
    chosen = problem_flags.chosen_chapters(arguments)
    said = problem_flags.said(arguments)
    seed = said.pop("seed", 0)
    gpu, no_gpu = cuda.find_gpu()
    if not gpu:
        raise Failure(f"peers needs a GPU: {no_gpu}")
    python = peers.python_with_torch()
    cuda.choose_preset("cuda", (gpu, ""))  # says so if nvcc is missing
    built = build.ensure_built("cuda", ["flash_attention_workbook"], python=python)
    report = peers.measure(python, built, {
        "sweep": arguments.sweep,
        "said": {**said, **({"seq_q": arguments.seq_q} if arguments.seq_q else {})},
        "chapters": [chapter.name for chapter in chosen],
        "named": bool(arguments.chapters),
        "rung": arguments.rung,
        "all_rungs": arguments.all_rungs,
        "directions": [arguments.direction] if arguments.direction else ["forward", "backward"],
        "seed": seed,
        "patience": arguments.patience,
        "commit": commit(),
    })
    path = arguments.out or _default_path(report["what"], arguments, chosen, gpu)
    result_files.write(path, report)
    say(f"\n{report['context']['gpu']}, PyTorch {report['context']['torch']}, every result checked before it was timed\n")
    say(peer_tables.tables(report))
    say()
    for line in peer_tables.remarks(report):
        say(line)
    say(f"JSON: {shown(path)}")
    wrong = peer_tables.wrong_chapters(report)
    if wrong:
        raise Failure(f"not right: {', '.join(wrong)}")
    return 0


def _default_path(what: str, arguments, chosen: list, gpu: cuda.Gpu) -> Path:
    directory = build.directory("cuda") / "bench" if what.startswith("custom") else RESULTS / slug(gpu.name)
    if len(chosen) < len(chapters.all_chapters()):
        what += "".join(f"-{chapter.name}" for chapter in chosen)
    what += f"-{arguments.rung}" if arguments.rung else "-rungs" if arguments.all_rungs else ""
    return directory / f"peers-{what}{'-backward' if arguments.direction == 'backward' else ''}.json"
