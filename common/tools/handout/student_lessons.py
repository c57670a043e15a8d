"""The pages of a student's tree: lessons without the exercises' solutions, and the page that says what to do."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from tools.course import Plan
from tools.handout.leaks import Run, Solutions

NUMBERS = "numbers.json"  # beside a lesson: what its named numbers are (tools/showing/number_names.py)

_FENCED = re.compile(r"^( *)```[^\n]*\n.*?^ *```[ \t]*\n", re.DOTALL | re.MULTILINE)
_ANSWER = re.compile(r"\n *<details><summary>Answer</summary>\n.*?\n *</details>\n", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")
_INLINE = re.compile(r"`[^`\n]+`")


def without_secrets(chapter: str, page: str, solutions: Solutions, own: dict[str, frozenset[Run]],
                    asked: dict[int, str]) -> str:
    """The lesson of this chapter (its number) without code of these solutions, {exercise's id: its own runs}, and
    without the folded answers to the questions {number: the exercise that asks for much the same}."""
    def shown_by(code: str) -> str:
        """The exercise whose solution this is, if it is one's: rather one of this chapter, and of those the one of
        whose solution it shows most."""
        parts = {exercise: len(runs & own[exercise]) / len(own[exercise])
                 for exercise, runs in solutions.shown(code).items() if own.get(exercise)}
        best = max(parts, key=lambda exercise: (parts[exercise] > 0, exercise[:2] == chapter, parts[exercise]),
                   default="")
        return best if best and parts[best] else ""

    def placeholder(found: "re.Match[str]", text: str) -> str:
        exercise = shown_by(found[0])
        return text.format(exercise) if exercise else found[0]

    page = _without_answers(page, asked)
    page = _FENCED.sub(lambda found: placeholder(found, f"{found[1]}*(This code is exercise {{}}.)*\n"), page)
    return _INLINE.sub(lambda found: placeholder(found, "(exercise {})"), page)


def _without_answers(page: str, asked: dict[int, str]) -> str:
    """A question is a numbered paragraph, and its answer is the first that is folded behind it."""
    before, heading, questions = page.partition("\n## Questions\n")
    parts = re.split(r"^(?=\d+\. )", questions, flags=re.MULTILINE)
    for place, part in enumerate(parts):
        number = part.partition(".")[0]
        if number.isdigit() and int(number) in asked:
            parts[place] = _ANSWER.sub("\n   *(Its answer is not here: it would say too much about exercise "
                                       f"{asked[int(number)]}.)*\n", part)
    return before + heading + "".join(parts)


def numbers_of(pages: str, entries: str) -> str:
    """The entries of numbers.json that these pages show. Another one would say how a hidden answer is calculated."""
    shown = {name: expression for name, expression in json.loads(entries).items()
             if f"<!-- {name} -->" in pages or f"<!-- report: {name} -->" in pages}
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def without_links(page: str, exists: Callable[[str], bool]) -> str:
    """The page with links to files that are not there turned into their words."""
    def link(found: re.Match[str]) -> str:
        return found[0] if "://" in found[2] or found[2].startswith("mailto:") or exists(found[2]) else found[1]

    return _LINK.sub(link, page)


def front_page(plan: Plan, chapters: list[str]) -> str:
    """The student's README. Its commands are about what is handed out."""
    first = next((one for one in plan.exercises if one.kind != "measure"), plan.exercises[0])
    chapter, has_questions = first.id[:2], any(one.kind == "measure" for one in plan.exercises)
    name, whose = ("NAME", "NAME is the one that you were given") if plan.secret else (
        '"Your Name"', "the name is needed once, for questions")
    commands = [(f"check {chapter}" + (f" --student {name}" if has_questions else ""),
                 f"how far you are with chapter {chapter}" + (f"; {whose}" if has_questions else "")),
                ("next", "what to read, and which lines to write, next"),
                (f"hint {first.id}", "the next hint"), (f"reset {first.id}", "begin again"),
                ("list --exercises", "all exercises, and how far you are")]
    width = max(len(command) for command, _ in commands)
    handed_in = sorted({"answers.json" if one.kind == "measure" else f"{Path(one.file).parent}/*.cu"
                        for one in plan.exercises})
    lines = [f"# {plan.title}", "",
             "Each exercise is a few lines of a CUDA kernel that you write, a mistake that you find, or a number that "
             "you count. No GPU is",
             "needed: `g++` builds the kernels for an engine that runs CUDA threads on the CPU, and that finds races "
             "and accesses out of",
             "bounds.", "", "```", *[f"./workbook {command:{width}}   # {what}" for command, what in commands], "```",
             "",
             "Your lines stand between two comments, `// exercise ..` and `// end ..`. Leave both comments as they "
             "are: only",
             "what stands between them is graded. In an exercise about a mistake you may change every line of the "
             "file, but few changes are",
             "enough. In your lines you may use what the file and `common/device` offer, and your own variables. Calls "
             "of the C++ library",
             "(`printf` too) and lines that begin with `#` are refused, but for `#pragma unroll`; the check says so.",
             *(["Predict the number of a question before you count it: `check` asks for both, and keeps them in "
                "`answers.json`."] if has_questions else []), "",
             "The first check of a chapter takes a minute or two, because it compiles the engine and the tests; each "
             "later one takes some",
             f"seconds. `./workbook check --watch {chapter}` checks again whenever you save a file.", "",
             "[The log](common/course/log.md) says what to write down about your measurements, if your course asks for "
             "that. Give",
             "[this page](common/course/tutor.md) to an AI assistant before you ask it about an exercise.", "",
             "**Hand in** the files that the table names, in their directories, as a zip archive. This makes one:", "",
             "```", f"zip mine.zip {' '.join(handed_in)}", "```", "",
             "You may hand in as often as you like: each exercise has the most points that one of your "
             "archives has for it.", ""]
    for number, week in enumerate(plan.weeks, 1):
        if not week.exercises:
            continue
        if week.due:
            due = week.due.replace("T", ", ")
            lines += [f"## Week {number}: {week.title}", "", f"From {week.begins}. **Due {due}.**", ""]
        else:
            lines += ["## Exercises", ""]
        lines += ["| exercise | | file | minutes | points | difficulty |", "|---|---|---|---|---|---|"]
        for one in week.exercises:
            what = one.title + ("" if one.required else " (not required)") + (" (needs a GPU)" if one.needs_gpu else "")
            file = "answers.json" if one.kind == "measure" else f"[{one.file}]({one.file})"
            difficulty = "\\*" * one.difficulty
            lines.append(f"| {one.id} | {what} | {file} | {one.minutes} | {one.points:g} | {difficulty} |")
        lines.append("")
    total = sum(one.points for one in plan.exercises)
    lines += [f"All together are {total:g} points."]
    if plan.late:
        lines += ["", f"What comes late loses {plan.late['percent_a_day']:g} % of its points for each day that has "
                      f"begun. After {plan.late['days']:g} days it has no points."]
    lines += ["", "## Lessons", "", *[f"- [{chapter}]({chapter}/)" for chapter in chapters], ""]
    return "\n".join(lines)
