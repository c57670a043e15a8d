"""Documents of unequal length: what the sweeps "packed" and "blocks" are of. Knows nothing of PyTorch."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tools.record import Problem

# Drawn once as lengths of documents differ, few of them long: the logarithm is normally distributed, with the mean
# ln 1024 and the deviation 1.2.
LENGTHS = (2684, 1263, 1139, 490, 1082, 198, 1535, 3445, 182, 3308, 1915, 4523, 362, 1465, 1693, 930, 3112, 2725, 1855,
           840, 453, 287, 2511, 1363, 639, 1228, 247, 1944, 179, 481, 1232, 760, 1764, 1038, 5125, 5918, 1728, 3469, 73,
           351)
HEADS, TILE = 16, 128
KEYS = 16384  # of the sweep "blocks"
PREFIX, WINDOW, STEP = 4096, 4096, 4
PATTERNS = ("documents", "prefix", "dilated")


def lengths(tokens: int) -> list[int]:
    """The first documents with so many tokens together; the last one ends there."""
    found: list[int] = []
    for length in itertools.cycle(LENGTHS):
        left = tokens - sum(found)
        if left <= 0:
            return found
        found.append(min(length, left))
    raise AssertionError


def packed(like: Problem) -> list[Problem]:
    """Packed sequences; before them ordinary ones of one length, with nearly as many tokens and pairs."""
    of, tokens = LENGTHS, sum(LENGTHS)
    same = TILE * round(sum(length**2 for length in of) / tokens / TILE)
    return [replace(like, batch=round(tokens / same), heads=HEADS, seq_q=same, seq_k=same, causal=True),
            replace(like, batch=len(of), heads=HEADS, seq_q=max(of), seq_k=max(of), causal=True,
                    extras=f"packed{tokens}_{tokens}")]


def blocks(like: Problem) -> list[Problem]:
    """Block masks; before them no mask."""
    return [replace(like, batch=1, heads=HEADS, seq_q=KEYS, seq_k=KEYS, causal=False, extras=extras)
            for extras in ("", *(f"blocks_{pattern}" for pattern in PATTERNS))]


def lengths_of(problem: Problem) -> list[int]:
    """Of packed sequences."""
    return lengths(problem.asked()["packed"][0])


def seen(pattern: str, numbers: Callable[[list[int]], Any], tokens: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Which pairs a block mask shows, as a function of (b, h, i, j). `numbers` makes a tensor."""
    if pattern == "prefix":  # of a prompt every token sees all
        return lambda b, h, i, j: (j <= i) | (j < PREFIX)
    if pattern == "dilated":
        return lambda b, h, i, j: (j <= i) & (i - j < WINDOW) & ((i - j) % STEP == 0)
    document = numbers([number for number, length in enumerate(lengths(tokens)) for _ in range(length)])
    return lambda b, h, i, j: (document[i] == document[j]) & (j <= i)


def pairs(pattern: str, tokens: int) -> int:
    """How many it shows."""
    if pattern == "prefix":
        return tokens * (tokens + 1) // 2 + PREFIX * (PREFIX - 1) // 2
    if pattern == "dilated":
        return sum(min(i, WINDOW - 1) // STEP + 1 for i in range(tokens))
    return sum(length * (length + 1) // 2 for length in lengths(tokens))


def flops(problem: Problem, of_plain: Callable[[Problem], float]) -> float:
    """As FlashAttention counts them; of_plain: those of a problem without packed sequences and block masks."""
    asked = problem.asked()
    if "packed" in asked:
        return sum(of_plain(replace(problem, batch=1, seq_q=length, seq_k=length, extras=""))
                   for length in lengths_of(problem))
    if "blocks" in asked:
        return (of_plain(replace(problem, extras="", causal=False)) * pairs(asked["blocks"], problem.seq_q)
                / (problem.seq_q * problem.seq_k))
    return of_plain(problem)
