"""What the user may say of the problem, and how a chapter's program hears of it. What the user does not say is left
to the program, which knows the rest."""

import argparse
import math
import re
from pathlib import Path

from tools.base import GPUS, Failure, JsonObject, answer_of, chapters, json_from
from tools.record import Problem, read_label

# What the programs are told as it was said; N of the queries, of which there may be several, apart.
FIELDS = ("batch", "heads", "kv_heads", "seq_k", "head_dim", "dtype", "causal", "window", "softcap", "alibi", "sink",
          "views", "packed", "block_mask", "head_dim_v", "seed", "device")
LARGEST_INT, LARGEST_SEED = 2**31 - 1, 2**63 - 2  # that the programs can hold
HEAD_DIM_STEP, LARGEST_HEAD_DIM = 8, 256  # of all chapters
# All that only chapters take, a rung too: {argparse's name: flag}.
NAMES = {name: f"--{name.replace('_', '-')}" for name in (*FIELDS, "seq_q", "direction", "rung")}


def add_arguments(parser: argparse.ArgumentParser, several: bool,
                  direction: str = "default: both, each with the chapters that have it") -> None:
    """The problem's flags; `several` problems, if there may be more than one N."""
    shape = parser.add_argument_group("the problem (default: the one for the device, see the README)")
    shape.add_argument("--batch", type=at_least_one, metavar="N", help="B")
    shape.add_argument("--heads", type=at_least_one, metavar="N", help="H, query heads")
    shape.add_argument("--kv-heads", type=at_least_one, metavar="N",
                       help="key and value heads; H must be a multiple (default: H)")
    shape.add_argument("--seq-q", type=lengths if several else lambda text: [at_least_one(text)],
                       metavar="N,N,..." if several else "N", help="N of the queries"
                       + (": one, or one after the other" * several))
    shape.add_argument("--seq-k", type=at_least_one, metavar="N",
                       help="N of the keys and values (default: that of the queries)")
    shape.add_argument("--head-dim", type=at_least_one, metavar="N", help="D")
    shape.add_argument("--dtype", choices=["fp16", "bf16"], help="storage type")
    shape.add_argument("--causal", action=argparse.BooleanOptionalAction, help="the causal mask (the default), or none")
    shape.add_argument("--window", type=window, metavar="LEFT,RIGHT",
                       help="keys before and after a query's own that it sees, -1: all (chapter 12, as what follows)")
    shape.add_argument("--softcap", type=softcap, metavar="C", help="scores become C tanh(score / C)")
    for name, what in [("alibi", "scores lose a slope times the distance"), ("sink", "one more term in each row's sum"),
                       ("views", "tensors lie as [B, N, H, D], with gaps"),
                       ("packed", "B sequences of unequal length, one behind the other, the longest of N tokens")]:
        shape.add_argument(f"--{name}", action="store_true", default=None, help=what)
    shape.add_argument("--block-mask", choices=["documents", "prefix", "dilated", "scattered"], help="a block mask")
    shape.add_argument("--head-dim-v", type=at_least_one, metavar="N", help="D of V and O (default: that of Q and K)")
    shape.add_argument("--direction", choices=["forward", "backward"], help=direction)
    shape.add_argument("--seed", type=at_least_zero, metavar="N", help="of the random inputs")


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=GPUS, help="on the SIMT engine with the limits of this GPU: what would not "
                        "run there is refused")


def add_rung(parser: argparse.ArgumentParser, default: str, or_all: bool = False) -> None:
    rungs = parser.add_mutually_exclusive_group()
    rungs.add_argument("--rung", type=rung_name, metavar="NAME",
                       help=f"this rung of the chapter; 10/ordered is 10 --rung=ordered (default: {default})")
    if or_all:
        rungs.add_argument("--all-rungs", action="store_true", help="every rung of a chapter")


def chosen_chapters(arguments: argparse.Namespace, exercises_too: bool = False) -> list[chapters.Chapter]:
    """The chapters that are named (exercises_too: and kernels of exercises), or all chapters. A rung named with its
    chapter, as in 10/ordered, becomes arguments.rung."""
    words = [word.rstrip("/").partition("/") for word in arguments.chapters]
    for word, (_, _, rung) in zip(arguments.chapters, words):
        if rung and (len(words) > 1 or arguments.rung or getattr(arguments, "all_rungs", False)):
            raise Failure(f"{word} names a rung: beside it there can be no other chapter or rung", status=2)
        arguments.rung = rung or arguments.rung
    known = chapters.all_chapters() + (chapters.of_exercises() if exercises_too and words else [])
    chosen = chapters.select([chapter for chapter, _, _ in words], known)
    refusals = [refusal(chapter, arguments) for chapter in chosen]
    if refusals and all(refusals):
        raise Failure(f"{chosen[0].name}: {refusals[0]}", status=2)
    return chosen


def refusal(chapter: chapters.Chapter, arguments: argparse.Namespace) -> str:
    """Why the chapter's program will not take what is asked for, in its own words, before it is built; empty if it
    may. It is the program that decides: here stands only what no rung of the chapter takes."""
    direction, rung, head_dim = (getattr(arguments, name, None) for name in ("direction", "rung", "head_dim"))
    has = {one: chapters.passes_in_sources(chapter, one) for one in ("forward", "backward")}
    if direction and not has[direction].exist and any(passes.exist for passes in has.values()):
        if rung:
            return f"rung {rung} has no {direction}" if chapters.names_a_rung(chapter, rung) else ""
        return f"direction is {direction}: {chapter.name} has none"
    largest = next((has[one].largest_head_dim for one in has if one == direction or not direction and has[one].exist),
                   None)
    if head_dim and largest and (head_dim % HEAD_DIM_STEP or head_dim > LARGEST_HEAD_DIM) and not rung:
        return f"head-dim is {head_dim}: supported are the multiples of {HEAD_DIM_STEP} up to {largest}"
    return ""


def require_takers(chosen: list[chapters.Chapter], arguments: argparse.Namespace) -> None:
    """Refuses unless every chapter takes what is asked for."""
    for chapter in chosen:
        why = refusal(chapter, arguments)
        if why:
            raise Failure(f"{chapter.name}: {why}", status=2)


def rung_name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a rung has a name")
    return text


def at_least_one(text: str) -> int:
    return _whole_number(text, 1, LARGEST_INT)


def at_least_zero(text: str) -> int:
    return _whole_number(text, 0, LARGEST_SEED)


def _whole_number(text: str, least: int, most: int) -> int:
    if not re.fullmatch("[0-9]{1,99}", text) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is not a whole number of at least {least} and at most "
                                         f"{most}")
    return int(text)


def lengths(text: str) -> list[int]:
    """512,1024 -> [512, 1024], without repetitions."""
    return list(dict.fromkeys(at_least_one(part) for part in text.split(",")))


def window(text: str) -> str:
    sides = re.fullmatch(r"(-1|\d{1,9}),(-1|\d{1,9})", text)
    if not sides:
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is no window: LEFT,RIGHT are numbers of keys below "
                                         "1000000000, or -1 for all")
    return text


def softcap(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is no softcap: it must be from 0.1 to 1000")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def existing_file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text).resolve()


def said(arguments: argparse.Namespace) -> JsonObject:
    """{field: value} of what the user said of the problem, except N of the queries."""
    fields = {name: getattr(arguments, name) for name in FIELDS if getattr(arguments, name, None) is not None}
    heads, kv_heads = fields.get("heads", 0), fields.get("kv_heads", 1)
    if heads % kv_heads:
        raise Failure(f"heads is {heads} and kv-heads is {kv_heads}: heads must be a multiple of kv-heads", status=2)
    return fields


def problems(arguments: argparse.Namespace, default_lengths: "list[int] | None" = None) -> list[list[str]]:
    """The problems that the user asks for, each as the flags for a program: of every N that is named, else of the
    default ones, else of the program's own."""
    fields = said(arguments)
    causal = fields.pop("causal", None)
    flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in fields.items()]
    flags += [] if causal is None else ["--causal" if causal else "--no-causal"]
    every = arguments.seq_q or default_lengths
    return [[*flags, f"--seq-q={n}"] for n in every] if every else [flags]


def resolved(program: Path, flags: list[str]) -> tuple[Problem, dict[str, float]]:
    """(the problem, {direction: FLOPs}), as the program understands its flags."""
    status, answer, last_words = answer_of([program, "--describe", *flags])
    if status:
        raise Failure(last_words.removeprefix(f"{program.name}: "), status=2 if status == 2 else 1)
    described = json_from(program.name, answer)
    try:
        return read_label(described["problem"])[0], described["flops"]
    except (KeyError, TypeError, ValueError):
        raise Failure(f"{program.name} --describe does not say its problem") from None
