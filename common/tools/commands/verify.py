"""the engine's counters beside Nsight Compute's, for every launch of the same programs

Needs a GPU and Nsight Compute. What the engine counts is counted here first, of its default problem, or comes from a
file: `SIMT_THREADS=132 ./workbook trace --json --patterns > FILE`, on any machine and of any problem. A counter is
equal, equal but for noise, explained (the reason stands beside it), or different, which is a failure; what caches
decide is shown beside a bound.
"""

import argparse
import os
import time

from tools.base import Failure, JsonObject, bad, bold, chapters, cuda, file_to_write, good, say, table
from tools.measuring import agreement, engine_counts, ncu, problem_flags
from tools.record import commit, read_label, result_files

MULTIPROCESSORS = "132"  # of the engine, as of an H200: a kernel that stays has a thread block for each


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER",
                        help="number or name: 01 05 (default: all, and the access "
                        "patterns of common/tests/trace)")
    parser.add_argument("--engine", type=problem_flags.existing_file, metavar="FILE",
                        help="the engine's counts, instead of counting here")
    parser.add_argument("--out", type=file_to_write, metavar="FILE", help="keep the comparison, as JSON")


def run(arguments: argparse.Namespace) -> int:
    chosen = chapters.select(arguments.chapters, chapters.all_chapters())
    counted = engine_counts.read(arguments.engine, chosen) if arguments.engine else None
    ncu.require()  # before anything takes time
    os.environ.setdefault("SIMT_THREADS", MULTIPROCESSORS)
    counted = counted or engine_counts.count(chosen, [], with_patterns=not arguments.chapters)
    compared = agreement.compare(counted)
    labels = dict.fromkeys(chapter["problem"].removesuffix("_rope") for chapter in counted["chapters"]
                           if chapter["problem"])
    problems = ", ".join(str(read_label(label)[0]) for label in labels)
    context = {**cuda.machine(), "tool": "Nsight Compute, --clock-control none", "tool_version": ncu.version(),
               "commit": commit(), "date": time.strftime("%Y-%m-%d"), "problem": problems}
    say(bold(f"\n{context['gpu']}, {problems}: engine / Nsight Compute") + "\n")
    tally = _say(compared)
    if arguments.out:
        result_files.write(arguments.out, {"context": context, "launches": compared})
    if tally.get("different"):
        raise Failure(f"{tally['different']} counters are different")
    return 0


def _say(compared: list[JsonObject]) -> dict[str, int]:
    """Prints every launch's counters except zeros (of patterns only differences); returns {verdict: how many}."""
    tally: dict[str, int] = {}
    for launch in compared:
        rows = []
        for name, counter in launch["counters"].items():
            word = counter["verdict"]
            tally[word] = tally.get(word, 0) + 1
            if counter["engine"] == counter[
                    "ncu"] == 0 or launch["chapter"] == engine_counts.PATTERNS and word != "different":
                continue
            mark = good(word) if word.startswith("equal") else bad(word) if word == "different" else word
            mark += f": {counter['why']}" if "why" in counter else ""
            rows.append([name, f"{counter['engine']:,}", f"{counter['ncu']:,}", mark])
        if rows:
            say(bold(f"{launch['chapter']}/{launch['rung']} {launch['direction']}: {launch['kernel']}"))
            say(table([["counter", "engine", "ncu", ""], *rows]) + "\n")
    say(", ".join(f"{count} {word}" for word, count in sorted(tally.items())))
    return tally
