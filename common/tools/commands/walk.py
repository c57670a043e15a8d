"""a page that replays a run, tile by tile, with its numbers; needs no GPU

The SIMT engine runs the kernels once and records which rows of which matrix every thread block reads and writes, what
it calls its steps, and the numbers that the kernels show. The page opens where most is to be seen, can show the launch
as a whole, and is one file that needs no network. STEP is a chapter, whose last rung is
meant, or a rung of one: 05, 08/earlystop. Two of them stand side by side, on one clock: 03 05, 08/masked 08/earlystop.
05/example has tiles of 4 x 4, and a problem of its own: B=4 H=2 N=8 D=4, with zeros up to D=8, unless you ask for
another one. So has 11: 1 query, 1000 keys and 8 multiprocessors, among which the keys are divided. Of a kernel with a
thread block for each multiprocessor, one block walks all tiles; with SIMT_THREADS=2, two share them. With --packed or
--block-mask the launch as a whole lists who takes which tiles, in which order. With --out
FILE.svg it is a picture that moves instead, of one query of a kernel of chapter 05, with B=1 H=1 N=256 unless you ask
for others.
"""

import argparse
import copy
import os
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from tools.base import BUILD, Failure, JsonObject, Progress, build, chapters, file_to_write, say, shown, write_whole
from tools.course import LearnersPath
from tools.measuring import engine_counts, problem_flags
from tools.showing import walk, walk_picture

NAIVE = "01_naive"  # whose bytes stand beside the others'
LENGTH = 192  # three tiles of 64: with two, a block of 128 rows has none that it could skip
PICTURED = {"batch": 1, "heads": 1, "seq_q": [256]}  # four tiles of 64, of which the mask hides six in sixteen
SHORT = 128  # for what is too much for a page with 192: two backwards, and one whose kernels both show P and dS
EXAMPLE = {"batch": 4, "heads": 2, "seq_q": [8], "head_dim": 8}
SPLIT = "11_split_kv"
FEW_QUERIES = {"seq_q": [1], "seq_k": 1000, "heads": 2}  # without these its keys are not divided
SEQUENCES = {"forward": 200, "backward": 96}  # the longest of five packed ones
MASKED = {"forward": 288, "backward": 192}  # with a block mask
SHAPE = ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "causal")
EXAMPLE_HEAD_DIM = 4
EXAMPLE_BLOCK = 11
EXAMPLE_NOTE = ("This is a published example, with B=4 H=2 N=8 D=4. The kernel takes multiples of 8 for D: so columns "
                "4 to 7 of Q, K and V are "
                "zeros, and the scale is 1/√4, that of D=4. Program 11 of the example is block 11: batch 1, head 1, "
                "rows 4 to 7.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("steps", nargs="+", metavar="STEP", action=_OneOrTwo,
                        help="chapter or chapter/rung: 05 08/earlystop; one or two")
    problem_flags.add_arguments(parser, several=False,
                                direction="default: the forward if there is one, else the backward")
    parser.add_argument("--no-numbers", action="store_true",
                        help="only what moves, without S, P, m, l, O and gradients: longer N fit")
    parser.add_argument("--out", type=file_to_write, metavar="FILE",
                        help="write the page there (default: build/walk/STEP.html); FILE.svg: a picture that moves")
    parser.add_argument("--no-browser", action="store_true", help="write the page, do not open it")


class _OneOrTwo(argparse.Action):
    def __call__(self, parser, arguments, values, option=None):
        if len(values) > 2:
            parser.error(f"{len(values)} steps: one page has room for two")
        setattr(arguments, self.dest, values)


@dataclass(frozen=True)
class Step:
    chapter: chapters.Chapter
    rung: str
    is_example: bool = False

    def __str__(self) -> str:
        return f"{self.chapter.name}/{self.rung}"


def run(arguments: argparse.Namespace) -> int:
    known = chapters.all_chapters() + chapters.of_exercises()
    words = [word.partition("/") for word in arguments.steps]
    asked_for = [(chapters.select([name], known)[0], rung) for name, _, rung in words]
    problem_flags.said(arguments)  # refuses what is wrong in itself, before anything is built
    problem_flags.require_takers([chapter for chapter, _ in asked_for], arguments)

    if arguments.packed and (arguments.heads or 1) > 1:
        raise Failure(f"heads is {arguments.heads}: a page of packed sequences has room for one", status=2)
    is_split = _divides_keys([chapter for chapter, _ in asked_for], arguments)
    many = is_split or arguments.packed or arguments.block_mask  # blocks, of which each has some of the list
    os.environ.setdefault("SIMT_THREADS", "8" if many else "1")  # the engine has as many multiprocessors
    directory = build.ensure_built("cpu", sorted({chapters.Chapter(NAIVE).traced,
                                                  *(chapter.traced for chapter, _ in asked_for)}))
    direction, steps = _steps(asked_for, arguments.direction, directory)
    path = LearnersPath()
    small = EXAMPLE if any(step.is_example for step in steps) else FEW_QUERIES if is_split else (
        {"batch": 5, "seq_q": [SEQUENCES[direction]], "heads": 1} if arguments.packed else
        {"seq_q": [MASKED[direction]], "heads": 1, "causal": False} if arguments.block_mask else
        _small(direction, len(steps)))
    if _is_picture(arguments):
        small = small if small is EXAMPLE else PICTURED
        if len(steps) > 1 or direction != "forward" or arguments.no_numbers:
            raise Failure(f"--out is {arguments.out.name}, a picture: it is of one forward, with its numbers", status=2)
    try:
        page, wrong = _page(arguments, known, steps, direction, directory, small)
    except walk.TooLarge:
        if arguments.seq_q or small.get("seq_q") != [LENGTH]:
            raise
        page, wrong = _page(arguments, known, steps, direction, directory, {**small, "seq_q": [SHORT]})
    except _Stopped as stopped:
        say(path.excused(stopped.step.chapter.name, stopped.step.rung, str(stopped)))
        say(f"So there is nothing to replay; ./workbook trace {stopped.step.chapter.number} names the lines, too.")
        return 0
    name = "-and-".join(f"{step.chapter.name}-{step.rung}" for step in steps)
    out = arguments.out or BUILD / "walk" / f"{name}-{direction}.html"
    write_whole(out, page)
    say(f"{shown(out)}: {len(page.encode()):,} bytes, opens in any browser")
    if not arguments.no_browser and not webbrowser.open(out.resolve().as_uri()):
        say("No browser answers here: open it yourself.")
    for one in wrong:
        say(path.excused(*one))
    return 0


class _Stopped(Failure):
    """The engine has stopped at a mistake of this step's kernels."""

    def __init__(self, step: Step, why: str):
        super().__init__(why)
        self.step = step


def _page(arguments: argparse.Namespace, known: list[chapters.Chapter], steps: list[Step], direction: str,
          directory: Path, small: JsonObject) -> tuple[str, list[tuple[str, str, str]]]:
    """(the page of these steps, which of them are not right); `small` is the problem where the user names none."""
    published = any(step.is_example for step in steps) and all(getattr(arguments, name) is None for name in SHAPE)
    flags = _flags(copy.copy(arguments), small) + [f"--padded-from={EXAMPLE_HEAD_DIM}"] * published
    for step in steps:
        problem = problem_flags.resolved(step.chapter.traced_program(directory), flags)[0]
        walk.require_small(problem, direction, len(steps), not arguments.no_numbers,
                           walk.EXAMPLE_TILE if step.is_example else walk.TILE)
    with Progress("Recording") as progress:
        naive = None
        if direction == "forward" and not arguments.no_numbers and not _is_picture(arguments):  # long N take it minutes
            progress.show(f"{NAIVE} to compare with")
            naive = _naive(known, directory, flags)
        walks, wrong = [], []
        for step in steps:
            progress.show(f"{step} {direction}")
            try:
                recorded = engine_counts.counts_of(step.chapter.traced_program(directory), "--walk", *flags,
                                                   f"--direction={direction}", f"--rung={step.rung}")
            except Failure as failure:
                if failure.status == 2:
                    raise
                raise _Stopped(step, str(failure)) from None
            wrong += engine_counts.wrong_rungs(recorded)
            if _is_picture(arguments):
                return walk_picture.picture(recorded), wrong
            walks.append(walk.walk_of(recorded, None if step.chapter.name == NAIVE else naive, not arguments.no_numbers,
                                      EXAMPLE_NOTE if published else "",
                                      EXAMPLE_BLOCK if published and step.is_example else None))
    return walk.page(walks), wrong


def _divides_keys(asked_for: list[chapters.Chapter], arguments: argparse.Namespace) -> bool:
    """Whether the problem is to be one whose keys chapter 11 divides: alone, and where no other length is asked for."""
    return [chapter.name for chapter in asked_for] == [SPLIT] and not (arguments.seq_q or arguments.seq_k)


def _is_picture(arguments: argparse.Namespace) -> bool:
    return arguments.out is not None and arguments.out.suffix == ".svg"


def _small(direction: str, steps: int) -> JsonObject:
    """The default problem of these steps, whose numbers fit on a page."""
    if steps == 1:
        return {"seq_q": [LENGTH], "heads": 2 if direction == "forward" else 1}
    return {"seq_q": [LENGTH if direction == "forward" else SHORT], "heads": 1}


def _flags(arguments: argparse.Namespace, default: JsonObject) -> list[str]:
    """The flags of the problem that the user asks for, or of a small one."""
    if arguments.kv_heads:
        default = {**default, "heads": arguments.kv_heads}
    for name, value in default.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return problem_flags.problems(arguments)[0]


def _naive(known: list[chapters.Chapter], directory: Path, flags: list[str]) -> "JsonObject | None":
    """None if chapter 01 does not take the problem."""
    (chapter,) = chapters.select([NAIVE], known)
    _, (step,) = _steps([(chapter, "")], "forward", directory)
    try:
        return engine_counts.counts_of(chapter.traced_program(directory), "--walk", *flags, "--direction=forward",
                                       f"--rung={step.rung}")
    except Failure as failure:
        if failure.status != 2:
            raise
        return None


def _steps(asked_for: list[tuple[chapters.Chapter, str]], direction: "str | None",
           directory: Path) -> tuple[str, list[Step]]:
    """(the direction, that all of them have; [Step]) of [(chapter, rung or empty)]."""
    described = []
    for chapter, rung in asked_for:
        description = chapters.describe(chapter, [directory])
        if not description:
            raise Failure(f"{chapter.name} does not say what it has")
        names = [each["name"] for each in description.rungs] + [description.example] * bool(description.example)
        if rung and rung not in names:
            raise Failure(f"{chapter.name} has no rung {rung} (rungs: {', '.join(names)})", status=2)
        described.append((chapter, rung, description))
    for one in [direction] if direction else ["forward", "backward"]:
        rungs = [(chapter, rung, [rung] if rung and rung == description.example and one == "forward"
                  else description.rungs_with(one))
                 for chapter, rung, description in described]
        lacking = next((chapter.name + "/" * bool(rung) + rung for chapter, rung, has in rungs if not has
                        or rung not in ("", *has)), None)
        if lacking is None:
            examples = [bool(rung) and rung == description.example for _, rung, description in described]
            return one, [Step(chapter, rung or has[-1], example) for (chapter, rung,
                                                                      has), example in zip(rungs, examples)]
    if direction or len(asked_for) == 1:
        raise Failure(f"{lacking} has no {direction or one}", status=2)
    raise Failure("the two steps share no direction", status=2)
