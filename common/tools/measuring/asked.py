"""The problem flags, the same as the chapters' programs take, and the problems that are measured by default."""

import argparse
from dataclasses import replace

from tools.machine import Failure
from tools.record import Problem


def _square(batch: int, heads: int, length: int, head_dim: int) -> Problem:
    return Problem(batch, heads, heads, length, length, head_dim, "fp16", True)


# Small enough for every chapter to take seconds on the SIMT engine.
ENGINE = [_square(1, 2, 256, 64)]

# The regime of the blog series that the workbook follows: B=2, H=16, D=64, fp16, causal.
PUBLISHED = [_square(2, 16, length, 64) for length in (512, 1024, 2048, 4096, 8192)]


def add_arguments(parser: argparse.ArgumentParser, direction: str = "default: both, each with the chapters that have it") -> None:
    shape = parser.add_argument_group("the problem (default: the one for the device, see the README)")
    for flag, help_text in [
        ("--batch", "B"),
        ("--heads", "H, query heads"),
        ("--kv-heads", "key and value heads; H must be a multiple (default: H)"),
        ("--seq-q", "N of the queries"),
        ("--seq-k", "N of the keys and values (default: that of the queries)"),
        ("--head-dim", "D"),
    ]:
        shape.add_argument(flag, type=at_least_one, metavar="N", help=help_text)
    shape.add_argument("--dtype", choices=["fp16", "bf16"], help="storage type")
    shape.add_argument("--causal", action=argparse.BooleanOptionalAction, help="the causal mask, or none")
    shape.add_argument("--direction", choices=["forward", "backward"], help=direction)
    shape.add_argument("--rung", metavar="NAME", help="this rung of the chapter (default: its last; of a backward: all)")
    shape.add_argument("--seed", type=int, metavar="N", help="of the random inputs")


def at_least_one(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return value


def from_arguments(arguments: argparse.Namespace, defaults: list) -> list:
    """The default problems with what the user said put in their place; each only once."""
    if arguments.heads and not arguments.kv_heads:
        arguments.kv_heads = arguments.heads
    if arguments.seq_q and not arguments.seq_k:
        arguments.seq_k = arguments.seq_q
    said = {
        name: value
        for name in ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "dtype", "causal")
        for value in [getattr(arguments, name)]
        if value is not None
    }
    problems = list(dict.fromkeys(replace(problem, **said) for problem in defaults))
    for problem in problems:
        if problem.heads % problem.kv_heads:
            raise Failure(f"heads = {problem.heads} is not a multiple of kv-heads = {problem.kv_heads}", status=2)
    return problems
