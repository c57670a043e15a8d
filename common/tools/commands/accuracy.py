"""how far the chapters' results are from fp64, beside PyTorch's attention on the same tensors

The norm of the error of O, dQ, dK and dV, relative to the norm of the exact one: every rung, FlashAttention-2 (also in its
deterministic mode) and cuDNN, with 256 queries and up to 131072 keys. No rung may be further from fp64 than 1.05 times
FlashAttention-2. And what becomes of gradients when dO is scaled by powers of two. It needs a GPU, and a Python with PyTorch: this
one, the PATH's python3, or the one that WORKBOOK_PYTHON names.
"""

from tools.base import RESULTS, Failure, build, chapters, cuda, file_to_write, say, shown, slug
from tools.measuring import accuracy, peers, problem_flags
from tools.record import commit, result_files
from tools.showing import accuracy_tables


def add_arguments(parser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 06 07 (default: all)")
    parser.add_argument("--seed", type=problem_flags.at_least_zero, default=0, metavar="N", help="of the random inputs (default: 0)")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="where the JSON goes")


def run(arguments) -> int:
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    gpu, no_gpu = cuda.find_gpu()
    if not gpu:
        raise Failure(f"accuracy needs a GPU: {no_gpu}")
    python = peers.python_with_torch("accuracy")
    cuda.choose_preset("cuda", (gpu, ""))  # says so if nvcc is missing
    built = build.ensure_built("cuda", ["flash_attention_workbook"], python=python)
    report = peers.measure(python, built, {"chapters": [chapter.name for chapter in chosen], "seed": arguments.seed,
                                           "commit": commit()}, "accuracy")
    whole = len(chosen) == len(chapters.all_chapters())
    path = arguments.out or (RESULTS / slug(gpu.name) if whole else build.directory("cuda") / "bench") / "accuracy.json"
    result_files.write(path, report)
    say(f"\n{report['context']['gpu']}, PyTorch {report['context']['torch']}: times as far from fp64 as FlashAttention-2, at most\n")
    say(accuracy_tables.table_of_ratios(accuracy.worst(report["errors"])))
    say()
    for line in accuracy_tables.remarks(report):
        say(line)
    say(f"JSON: {shown(path)}")
    wrong = accuracy.too_inaccurate(report["errors"])
    if wrong:
        raise Failure(f"further from fp64 than {accuracy.WORSE} times FlashAttention-2: " + "; ".join(wrong))
    return 0
