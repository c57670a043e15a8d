"""Tables of attention in eight bits beside its peers: the sweep fp8 (tools/measuring/peers.py), launch by launch, and
in brackets back to back.

Tables (lesson_tables.py) has them for the lessons. What has not been measured is a dash.
"""

from collections.abc import Callable
from functools import partial

from tools.record import Missing, Quantities
from tools.showing.markdown import NOT_YET, known, markdown

PLACES = ((16384, 128, "full"), (16384, 128, "causal"))  # of the short table: N, D and mask
NAMES = {"default": "in 16 bits", "CUDNN": "cuDNN, 16 bits", "CUDNN-FP8": "cuDNN, e4m3"}
FROM_E4M3 = "from e4m3"  # of the chapter, of tensors that are e4m3 already: nothing is rounded before


def _title(step: str) -> str:
    return NAMES.get(step) or (FROM_E4M3 if step.endswith("/e4m3") else f"`{step.partition('/')[2]}`")


def _both_ways(compute: Callable[[bool], float], text: str) -> str:
    one, together = (known(partial(compute, way), f"{{:{text}}}".format) for way in (False, True))
    return one if together == "–" else f"{one} ({together})"


def _speed(of: Quantities, step: str, n: int, head_dim: int, mask: str) -> str:
    return _both_ways(lambda way: of.tflops_in_eight_bits(step, n, head_dim, mask, way), ".0f")


def _steps(of: Quantities) -> list[str]:
    try:
        return of.steps_in_eight_bits()
    except Missing:
        return []


def points(of: Quantities) -> str:
    """TFLOP/s at every point of the sweep."""
    steps = _steps(of)
    if not steps:
        return NOT_YET
    return markdown([["TFLOP/s", *map(_title, steps)]] + [
        [f"D = {head_dim}, {mask}, N = {n}", *(_speed(of, step, n, head_dim, mask) for step in steps)]
        for head_dim in (64, 128, 256) for mask in ("full", "causal") for n in (2048, 4096, 8192, 16384)])


def in_short(of: Quantities) -> str:
    """Of each candidate the speed at two points, the speed beside cuDNN's in eight bits over all of them, the error."""
    def beside(step: str, what: str) -> str:
        return _both_ways(lambda way: of.against_in_eight_bits(step, what, back_to_back=way), ".2f")

    return markdown([["", *(f"TFLOP/s, {mask}" for *_, mask in PLACES), "over cuDNN's e4m3: mean", "least",
                      "error of O"]] + [
        [_title(step), *(_speed(of, step, *at) for at in PLACES), beside(step, "mean"), beside(step, "least"),
         known(partial(of.error_in_eight_bits, step, *PLACES[0]), "{:.1%}".format)] for step in _steps(of)])
