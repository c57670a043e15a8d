"""the full measurement on a GPU: every chapter and rung, in pieces that can be resumed

Each piece is a command of ./workbook (--dry-run shows them all, and about how long they take) that writes one JSON file
to common/results, under the GPU's name. A piece that is there, of the commit at hand or of the same machine code, is
not taken again: after a failure, or when time was up (--within), run the command again. ./workbook dev report makes the
pictures and tables of the READMEs from these files, without a GPU.

--again measures for a second time the pieces that are taken for their times, and keeps these times in one file: the
report says how far the two measurements lie apart. Both can run at once, on two GPUs of one machine:
CUDA_VISIBLE_DEVICES names one for each. WORKBOOK_CUDNN may name a directory with another cuDNN, which the pieces beside
peers then ask, too (./workbook dev peers --cudnn).
"""

import argparse

from tools.base import BUILD, RESULTS, Failure, build, chapters, cuda, say, slug
from tools.measuring import peers, pieces, problem_flags
from tools.record import commit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pieces", nargs="*", metavar="PIECE",
                        help="only the one of this name, or else those whose names begin so: ladder sweep-bf16")
    parser.add_argument("--dry-run", action="store_true",
                        help="print the pieces, their commands and about how long they take")
    parser.add_argument("--within", type=problem_flags.seconds, metavar="SECONDS",
                        help="begin no piece that is not expected to end by then")
    parser.add_argument("--again", action="store_true", help="for a second time; only the times are kept")
    parser.add_argument("--engine", type=problem_flags.existing_file, metavar="FILE", help="the engine's counts, from "
                        "./workbook trace --json --patterns elsewhere, where this machine cannot build the engine")
    parser.add_argument("--rehearse", action="store_true",
                        help="without a GPU: the steps of the measurement at small sizes on "
                        "the SIMT engine, into the build directory")


def run(arguments: argparse.Namespace) -> int:
    names = [chapter.name for chapter in chapters.all_chapters()]
    gpu, no_gpu = (None, "") if arguments.rehearse else cuda.find_gpu()
    planned = pieces.rehearsal(names) if arguments.rehearse else pieces.pieces(names, arguments.engine)
    planned = pieces.chosen(planned, arguments.pieces, arguments.again)
    if arguments.rehearse:
        directory = BUILD / "rehearsal"
    else:
        directory = RESULTS / (slug(gpu.name) if gpu else "GPU")
    measured = pieces.Measured(commit())
    states = [pieces.state(piece, directory, measured, arguments.again) for piece in planned]
    if arguments.dry_run:
        say(pieces.plan_table(planned, states, measured))
        return 0
    if arguments.rehearse:
        return pieces.measure(planned, directory, arguments.within, arguments.again)

    if not gpu:
        raise Failure(
            f"measure needs a GPU: {no_gpu}; --dry-run shows the plan, --rehearse tries its steps without one")
    cuda.choose_preset("cuda", (gpu, ""))  # says so if nvcc is missing
    left = [piece for piece, at in zip(planned, states) if not at.done]
    if left:
        python = None
        if any(piece.command[0] in pieces.BESIDE_PYTORCH for piece in left):
            try:
                python = peers.python_with_torch()
                say(f"PyTorch: {python}")
            except Failure as failure:
                say(f"The pieces beside PyTorch will fail: {failure}")
        build.ensure_built("cuda", pieces.targets(left, names), python=python)
        measured = pieces.built(names)
        states = [pieces.state(piece, directory, measured, arguments.again) for piece in planned]
        say(pieces.plan_table(planned, states, measured) + "\n")
    return pieces.measure(planned, directory, arguments.within, arguments.again, measured=measured)
