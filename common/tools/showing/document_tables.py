"""Tables of extras, packed sequences and block masks beside what they are compared with: each ratio launch by launch,
and in brackets back to back.

Tables (lesson_tables.py) has them for the lessons. What has not been measured is a dash.
"""

import math
from collections.abc import Callable
from functools import partial

from tools.record import Quantities
from tools.showing.markdown import known, markdown

Place = tuple[str, int]  # direction, head dim
PLACES = [(direction, head_dim) for direction in ("forward", "backward") for head_dim in (128, 64)]
RIVALS = {"dense": "dense", "FA4": "FlashAttention-4", "FA4-deterministic": "the same, deterministic",
          "VARLEN": "`varlen_attn`", "NESTED": "nested tensors", "FLEX": "`flex_attention`"}
EXTRAS = {"none": "nothing", "views": "views", "window": "a window of 1024", "softcap": "a softcap of 20",
          "alibi": "ALiBi", "sink": "a sink"}
MASKS = {"prefix": "a prefix of 4096 keys", "documents": "documents", "dilated": "every fourth of 4096 keys"}
LIST, SHORT_ROWS, BITS = "the list", "short rows", "bits"
PARTS = {"ten": ("ten tiles in each row", (LIST, SHORT_ROWS)), "documents": ("documents", (LIST, SHORT_ROWS, BITS)),
         "dilated": ("every fourth of 4096 keys", (LIST, BITS))}


def _ratio(compute: Callable[[], float]) -> str:
    return known(compute, "{:.3f}".format)


def _both_ways(compute: Callable[[bool], float]) -> str:
    return f"{_ratio(lambda: compute(False))} ({_ratio(lambda: compute(True))})"


def extras(of: Quantities) -> str:
    """How many times the time without the extra, or chapter 10's, and how many times faster than each rival. In
    brackets each alone: a slice of 1/30 s depends on what ran before it."""
    def cell(extra: str, by: str, place: Place) -> str:
        def ratio(way: bool) -> float:
            def ms(extra: str, by: str) -> float:
                return of.extra_ms(extra, by, *place, way="alone" if way else "")

            if by:
                return ms(extra, by) / ms(extra, "12")
            return ms(extra, "12") / (ms("none", "10") if extra == "none" else ms("none", "12"))

        return _both_ways(ratio)

    heads = [f"{direction}, {what}" for direction in ("forward", "backward")
             for what in ("over the plain kernel", "FlashAttention-4", "`flex_attention`")]
    return markdown([["", *heads]] + [
        [f"{title}, D = {head_dim}", *(cell(extra, by, (direction, head_dim)) for direction in ("forward", "backward")
                                       for by in ("", "FA4", "FLEX"))]
        for extra, title in EXTRAS.items() for head_dim in (128, 64)])


def packed(of: Quantities) -> str:
    """How many times the FLOP/s of each rival: of packed sequences, and of the backward also without packing."""
    def cell(who: str, rival: str, place: Place) -> str:
        return "" if rival == who else _both_ways(
            lambda way: of.packed_tflops(who, *place, way) / of.packed_tflops(rival, *place, way))

    return markdown([["FLOP/s, of those of", *RIVALS.values()]] + [
        [f"{title}, {place[0]}, D = {place[1]}", *(cell(who, rival, place) for rival in RIVALS)]
        for who, title, places in (("default", "packed", PLACES), ("dense", "dense", PLACES[2:])) for place in places])


def blocks(of: Quantities) -> str:
    """How many times its tiles' share of the time without a mask, and how many times faster than flex_attention."""
    def cells(mask: str, direction: str, head_dim: int) -> list[str]:
        ours, flex = ((lambda way, by=by: of.block_mask_ms(mask, direction, head_dim, by, way))
                      for by in ("chapter", "FLEX"))
        return [_both_ways(lambda way: of.of_listed_share(mask, direction, head_dim, way)),
                _both_ways(lambda way: flex(way) / ours(way))]

    heads = [f"{direction}, {what}" for direction in ("forward", "backward") for what in ("of its share", "faster")]
    return markdown([["", *heads]] + [
        [f"{title}, D = {head_dim}", *cells(mask, "forward", head_dim), *cells(mask, "backward", head_dim)]
        for mask, title in MASKS.items() for head_dim in (128, 64)])


def parts(of: Quantities) -> str:
    """How many times its share a mask takes, and what its parts say when they are multiplied."""
    def product(mask: str, names: tuple[str, ...], place: Place) -> float:
        of_each = {LIST: lambda: of.block_part("all", *place), SHORT_ROWS: lambda: of.block_part("short", *place),
                   BITS: lambda: of.block_part(mask, *place) / of.block_part(f"{mask}, no bits", *place)}
        return math.prod(of_each[name]() for name in names)

    rows = [["times its share", *(f"{direction}, D = {head_dim}" for direction, head_dim in PLACES)]]
    for mask, (title, names) in PARTS.items():
        rows += [[title, *(_ratio(partial(of.block_part, mask, *place)) for place in PLACES)],
                 [" × ".join(names), *(_ratio(partial(product, mask, names, place)) for place in PLACES)]]
    return markdown(rows)
