"""chapters beside PyTorch's attention, on the same tensors in one process

FlashAttention-2 (also in its deterministic mode), cuDNN and the unfused one, as scaled_dot_product_attention has them,
and FlashAttention-3 and -4 (this one, too, in its deterministic mode), where they are installed. Every result is
checked before it is timed: a peer that is wrong at a problem is said to be and is not timed there, and after a chapter
that is wrong the command fails. It needs a GPU, and a Python with PyTorch: this one, the PATH's python3, or the one
that WORKBOOK_PYTHON names. The JSON goes into common/results.
"""

import argparse
import os
from pathlib import Path

from tools.base import RESULTS, Failure, build, chapters, cuda, file_to_write, say, shown, slug
from tools.measuring import documents, launches, model_sweep, peers, problem_flags
from tools.record import beside_peers, commit, result_files
from tools.showing import peer_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER",
                        help="number or name: 01 05 (default: all; 11 where queries are fewer than keys)")
    problem_flags.add_arguments(parser, several=True)
    problem_flags.add_rung(parser, default="its last", or_all=True)
    parser.add_argument("--sweep", choices=list(peers.SWEEPS), default="fa",
                        help="what is timed (default: fa); " + "; ".join(
                        f"{name}: {what}" for name, what in peers.SWEEPS.items()))
    parser.add_argument("--points", type=problem_flags.at_least_one, default=40, metavar="N",
                        help="of --sweep=random, if they fit into 8 minutes: a problem in a direction (default: 40)")
    parser.add_argument("--draw-seed", type=problem_flags.at_least_zero, default=0, metavar="N",
                        help="of --sweep=random, of what is drawn (default: 0)")
    parser.add_argument("--back-to-back", action="store_true",
                        help="twenty launches of one, then of the next, with clock, power and energy; not launch by "
                             "launch, each after a flush of the L2 cache")
    parser.add_argument("--own", action="store_true",
                        help="of ours what runs where no chapter is named, and each rung that may be it; beside the "
                             "fast peers; back to back the first alone (so it is in the sweeps of models unless "
                             "chapters are named)")
    parser.add_argument("--default", action="store_true",
                        help="beside the chapters also what runs where none is named")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="NAME,NAME",
                        help="of all candidates only these, as the table names them: CUDNN,default,10/narrow; 10 is "
                             "all that there is of it")
    parser.add_argument("--cudnn", type=Path, metavar="DIRECTORY",
                        default=os.environ.get("WORKBOOK_CUDNN"),
                        help="that has another cuDNN, libcudnn.so.9 and what is beside it: a second process asks it, "
                             "with ours, and it becomes CUDNN-9.28 (default: WORKBOOK_CUDNN)")
    parser.add_argument("--within", type=problem_flags.seconds, metavar="SECONDS",
                        help="leave out the points that it has not come to by then (default: of models "
                             f"{model_sweep.WITHIN:g})")
    parser.add_argument("--patience", type=problem_flags.seconds, metavar="SECONDS",
                        help="what the launches of one chapter at one point may take; what takes longer is left out "
                             f"there (default: {launches.PATIENCE:g}; of models: {model_sweep.PATIENCE:g})")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")


def run(arguments: argparse.Namespace) -> int:
    chosen = problem_flags.chosen_chapters(arguments)
    said = problem_flags.said(arguments)
    seed = said.pop("seed", 0)
    _require_what_the_sweep_takes(arguments)
    cudnn = peers.cudnn_in(Path(arguments.cudnn)) if arguments.cudnn else []
    gpu, no_gpu = cuda.find_gpu()
    if not gpu:
        raise Failure(f"peers needs a GPU: {no_gpu}")
    python = peers.python_with_torch()
    cuda.choose_preset("cuda", (gpu, ""))  # says so if nvcc is missing
    built = build.ensure_built("cuda", ["flash_attention_workbook"], python=python)
    of_models = arguments.sweep in peers.OF_MODELS
    request = {
        "sweep": arguments.sweep,
        "said": {**said, **({"seq_q": arguments.seq_q} if arguments.seq_q else {})},
        "draw": {"points": arguments.points, "seed": arguments.draw_seed} if arguments.sweep == "random" else None,
        "chapters": [chapter.name for chapter in chosen],
        "named": bool(arguments.chapters),
        "rung": arguments.rung,
        "all_rungs": arguments.all_rungs,
        "directions": [arguments.direction] if arguments.direction else
                      ["forward"] if arguments.sweep == peers.EIGHT_BITS else ["forward", "backward"],
        "seed": seed,
        "timing": peers.BACK_TO_BACK if arguments.back_to_back else peers.LAUNCH_BY_LAUNCH,
        "own": arguments.own or of_models and not (arguments.chapters or arguments.rung or arguments.all_rungs),
        "default": arguments.default,
        "only": arguments.only,
        "patience": arguments.patience or (model_sweep.PATIENCE if of_models else launches.PATIENCE),
        "within": arguments.within or (model_sweep.WITHIN if of_models else None),
        "commit": commit(),
    }
    report = peers.measure(python, built, request)
    if cudnn and any(result["name"] == "CUDNN" for point in report["points"] for result in point["results"]):
        only = ["CUDNN", *filter(None, [beside_peers.ours(report["points"])])]
        try:
            peers.add_cudnn(report, peers.measure(python, built, {**request, "only": only}, preloaded=cudnn))
        except Failure as failure:  # what has been measured is kept
            say(f"\nThe cuDNN of {arguments.cudnn} is not here: {failure}")
    path = arguments.out or _default_path(report["what"], arguments, chosen, gpu)
    if "ended" in report and RESULTS in path.resolve().parents:  # no record is replaced by a part of one
        path = build.directory("cuda") / "bench" / path.name
    result_files.write(path, report)
    say(f"\n{report['context']['gpu']}, PyTorch {report['context']['torch']}, every result checked before it was "
        f"timed, {report['timing']}\n")
    say(peer_tables.tables(report))
    say()
    for line in peer_tables.remarks(report):
        say(line)
    say(f"JSON: {shown(path)}")
    if "ended" in report:
        raise Failure(f"it ended early, at {report['ended']}")
    wrong = peer_tables.wrong_chapters(report)
    if wrong:
        raise Failure(f"not right: {', '.join(wrong)}")
    return 0


def _require_what_the_sweep_takes(arguments: argparse.Namespace) -> None:
    lengths = {"batch": arguments.batch, "seq-q": arguments.seq_q and ",".join(map(str, arguments.seq_q)),
               "seq-k": arguments.seq_k}
    for name, value in lengths.items():
        if value and arguments.sweep in peers.OF_DOCUMENTS:
            raise Failure(f"{name} is {value}: the sweep {arguments.sweep} has lengths of its own, and takes none",
                          status=2)
    if (arguments.direction, arguments.sweep) == ("backward", peers.EIGHT_BITS):
        raise Failure("direction is backward: in eight bits there is a forward alone", status=2)
    for name in ("window", "softcap", "alibi", "sink", "views", "packed", "block_mask", "head_dim_v"):
        if getattr(arguments, name) is not None and (name, arguments.sweep) != ("block_mask", "blocks"):
            raise Failure(f"peers takes no --{name.replace('_', '-')}: what models add is measured with "
                          "--sweep=extras, --sweep=packed and --sweep=blocks", status=2)
    if arguments.block_mask and arguments.block_mask not in documents.PATTERNS:
        raise Failure(f"block-mask is {arguments.block_mask}: the sweep blocks has {', '.join(documents.PATTERNS)}",
                      status=2)


def _default_path(what: str, arguments: argparse.Namespace, chosen: list[chapters.Chapter], gpu: cuda.Gpu) -> Path:
    in_part = what.startswith("custom") or arguments.only
    directory = build.directory("cuda") / "bench" if in_part else RESULTS / slug(gpu.name)
    if len(chosen) < len(chapters.all_chapters()):
        what += "".join(f"-{chapter.name}" for chapter in chosen)
    what += f"-{'-'.join(arguments.only)}".replace("/", "-") if arguments.only else ""
    what += f"-{arguments.rung}" if arguments.rung else "-rungs" if arguments.all_rungs else ""
    what += "-backward" if arguments.direction == "backward" else ""
    return directory / f"peers-{what}{'-b2b' if arguments.back_to_back else ''}.json"
