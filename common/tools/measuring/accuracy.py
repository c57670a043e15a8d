"""How far results are from fp64, beside PyTorch's attention: what is measured, and how it is judged.

tools/measuring/accuracy_main.py measures, in a Python that has PyTorch. Its JSON:

    context   as that of peers.py, without what belongs to times
    absent    {peer: why it could not be asked}
    errors    one for each problem, without RoPE and with it:
      problem, rope, baseline (what its ratios are to)
      results   one for each rung or peer (with extras: what runs where no chapter is named, and a peer that has them):
                name, kind (chapter, peer), and either
                  norms {o, dq, dk, dv}, those of them that it makes: |x - exact| / |exact| of the whole tensor; null if
                  it is
                  not finite everywhere
                  largest, the same of the largest error: max |x - exact| / max |exact|
                  ratios, the norms divided by those of the baseline: on the same problem, or if it does not take the
                  extras there, on the same tensors without them
                or  skipped (why)
    loss_scaling   one for each problem: problem, exponents, results: name, kind, norms {dq, dk, dv}: a list, one for
                   each
                exponent: of gradients that start from dO times 2^exponent, rounded to what is stored
"""

from dataclasses import replace

from tools.base import JsonObject
from tools.record import Problem

TENSORS = ("o", "dq", "dk", "dv")
BASELINE, ROPE_BASELINE = "FLASH", "rotated+FLASH"
PEERS = ["FLASH", "FLASH-deterministic", "CUDNN"]
WORSE = 1.05  # times the baseline's norm: what a chapter may have

QUERIES, HEADS = 256, 4
KEYS = [1024, 4096, 16384, 65536, 131072]
EXPONENTS = list(range(-24, 21, 2))
EXTRAS, KEYS_WITH_EXTRAS = ["views", "window1024_0", "softcap20", "alibi", "sink"], [4096, 16384]


def problems() -> list[Problem]:
    return [Problem(1, HEADS, HEADS, QUERIES, keys, head_dim, dtype, False)
            for dtype in ("fp16", "bf16") for head_dim in (64, 128) for keys in KEYS]


def problems_with_extras() -> list[Problem]:
    return [replace(problem, extras=extra) for problem in problems() if problem.seq_k in KEYS_WITH_EXTRAS
            for extra in EXTRAS]


def scaled_problems() -> list[Problem]:
    return [Problem(1, HEADS, HEADS, 1024, 1024, 64, dtype, False) for dtype in ("fp16", "bf16")]


def rounded(value: float) -> float:
    """To the digits that a record keeps: no table has more than four."""
    return float(f"{value:.5g}")


def add_ratios(errors: list[JsonObject]) -> None:
    """Gives every problem the name of its baseline, and every result its ratios to it."""
    known: dict[tuple[Problem, str], dict[str, float]] = {
        (Problem(**one["problem"]), result["name"]): result["norms"]
        for one in errors for result in one["results"] if "norms" in result}
    for one in errors:
        one["baseline"] = ROPE_BASELINE if one["rope"] else BASELINE
        problem = Problem(**one["problem"])
        base = known.get((problem, one["baseline"])) or known.get((replace(problem, extras=""), one["baseline"]), {})
        for result in one["results"]:
            if "norms" in result:
                result["ratios"] = {
                    tensor: rounded(norm / base[tensor]) if norm is not None and base.get(tensor) else None
                    for tensor, norm in result["norms"].items()}


def _size(ratio: "float | None") -> float:
    return float("inf") if ratio is None else ratio


def worst(errors: list[JsonObject]) -> "dict[tuple[str, str], tuple[float | None, Problem]]":
    """{(name, tensor): (the largest ratio, its problem)} of the chapters; None for a ratio that cannot be told."""
    found: dict[tuple[str, str], tuple["float | None", Problem]] = {}
    for one in errors:
        for result in one["results"]:
            for tensor, ratio in result.get("ratios", {}).items() if result["kind"] == "chapter" else ():
                key = result["name"], tensor
                if key not in found or _size(ratio) > _size(found[key][0]):
                    found[key] = ratio, Problem(**one["problem"])
    return found


def too_inaccurate(errors: list[JsonObject]) -> list[str]:
    """A line for every tensor of a rung that is further from fp64 than it may be."""
    lines = []
    for (name, tensor), (ratio, problem) in worst(errors).items():
        if ratio is None or not ratio <= WORSE:
            how = "nobody can say how far" if ratio is None else f"{ratio:.2f} times as far"
            lines.append(f"{name}: {tensor} is {how} from fp64 as FlashAttention-2's, at Nk={problem.seq_k} "
                         f"D={problem.head_dim} {problem.dtype}{' ' * bool(problem.extras)}{problem.extras}")
    return lines
