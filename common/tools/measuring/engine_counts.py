"""The SIMT engine's counts: {"chapters": [what a chapter's program, built to count, prints of one direction, ..]}.
It is what ./workbook trace --json prints, too."""

import json
from collections.abc import Callable
from pathlib import Path

from tools.base import Failure, JsonObject, Progress, answer_of, build, chapters, complain, json_from
from tools.record import read_label

PATTERNS = "patterns"  # the access patterns of common/tests/trace, which stand beside the chapters


def patterns(build_directory: Path) -> Path:
    return build_directory / "common" / "tests" / "trace" / "trace_patterns"


def counts_of(program: Path, *flags: str) -> JsonObject:
    """What the program prints. A rung of it whose result was not right has "wrong", which says where."""
    status, output, last_words = answer_of([program, *flags])
    if status == 1 and output.startswith("{") and wrong_rungs(counted := json_from(program.name, output)):
        return counted
    if status:
        raise Failure(last_words, status=2 if status == 2 else 1)
    return json_from(program.name, output)


def wrong_rungs(counted: JsonObject) -> list[tuple[str, str, str]]:
    """[(chapter, rung, where its result is not right)]"""
    return [(counted["chapter"], rung["rung"], f"not right: {rung['wrong']}") for rung in counted.get("rungs", [])
            if "wrong" in rung]


def count(chosen: list[chapters.Chapter], flags: list[str], direction: "str | None" = None, rung: "str | None" = None,
          with_patterns: bool = False, named: bool = True,
          is_open: Callable[[str, "str | None"], bool] = lambda chapter, rung: False) -> JsonObject:
    """Builds and counts. Chapters that do not take the problem are left out, unless all are; those without the rung,
    too, if the chapters were not named. What the engine stops at in a rung that is_open(chapter, rung) says is no
    failure: it stands under "stopped" as [(chapter, rung, what the engine says)]."""
    patterns_too = ["trace_patterns"] if with_patterns else []
    directory = build.ensure_built("cpu", [*(chapter.traced for chapter in chosen), *patterns_too])
    chosen = chosen if named else chapters.with_rung(rung, chosen, [directory])
    counted, refusals, stopped = [], [], []

    def counts(chapter: chapters.Chapter, one: str, rung: "str | None") -> None:
        try:
            counted.append(counts_of(chapter.traced_program(directory), "--trace", *flags, f"--direction={one}",
                                     *([f"--rung={rung}"] if rung else [])))
        except Failure as failure:
            if failure.status == 2:
                refusals.append(str(failure))
            elif not is_open(chapter.name, rung):
                raise
            elif rung:
                stopped.append((chapter.name, rung, str(failure)))
            else:  # the other rungs can be counted
                described = chapters.describe(chapter, [directory])
                for name in described.rungs_with(one) if described else []:
                    counts(chapter, one, name)

    with Progress("Counting") as progress:
        for chapter, one in passes(chosen, direction, rung, directory):
            progress.show(f"{chapter.name} {one}")
            counts(chapter, one, rung)
        if with_patterns:
            counted.append(counts_of(patterns(directory)))
    if refusals and not counted:
        raise Failure(refusals[0], status=2)
    for refusal in dict.fromkeys(refusals):  # once for both directions
        complain(refusal)
    return {"chapters": counted, **({"stopped": stopped} if stopped else {})}


def passes(chosen: list[chapters.Chapter], direction: "str | None", rung: "str | None",
           build_directory: Path) -> list[tuple[chapters.Chapter, str]]:
    """[(chapter, direction)]: what the user asked for or, of directions, those that the chapter (and the rung) has."""
    if direction:
        return [(chapter, direction) for chapter in chosen]
    passes = []
    for chapter in chosen:
        description = chapters.describe(chapter, [build_directory])
        rungs = description.rungs if description else []
        has = [one for one in ("forward", "backward") if any(each[one] and rung in (None, each["name"])
                                                             for each in rungs)]
        passes += [(chapter, one) for one in has or ["forward"]]  # a rung that is none: the program says so
    return passes


def read(path: Path, chosen: list[chapters.Chapter]) -> JsonObject:
    """The counts of these chapters, and of the patterns if they are there, from a file."""
    try:
        counted = json.loads(path.read_text())
        wanted = {chapter.name for chapter in chosen} | {PATTERNS}
        counted["chapters"] = [chapter for chapter in counted["chapters"] if chapter["chapter"] in wanted]
        for chapter in counted["chapters"]:
            if chapter["problem"]:
                read_label(chapter["problem"])
            launches = [launch for rung in chapter["rungs"] for launch in rung["launches"]]
            if "direction" not in chapter or not all(part in launch for launch in launches
                                                     for part in ("kernel", "totals", "bytes")):
                raise KeyError
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path} does not hold the engine's counts: make it with ./workbook trace --json",
                      status=2) from None
    missing = {chapter.name for chapter in chosen} - {chapter["chapter"] for chapter in counted["chapters"]}
    if missing:
        raise Failure(f"{path} holds no counts of {', '.join(sorted(missing))}: make it with ./workbook trace --json",
                      status=2)
    return counted
