"""What is written of a grading: for Gradescope, a table of the class, and a page for each student."""

import json
import re
from collections.abc import Sequence
from urllib.parse import quote

from tools.base import JsonObject
from tools.grading.one_submission import Grade
from tools.grading.roster import Log, Person
from tools.grading.sandbox import OTHER_FILES
from tools.grading.similarity import TOO_SHORT, Alike, groups
from tools.grading.speed import Graded
from tools.grading.tables import as_csv


def written(grade: Grade, exercises: Sequence[Graded], held: JsonObject) -> str:
    return json.dumps(gradescope(grade, exercises, held), indent=1, ensure_ascii=False) + "\n"


def not_held(held: JsonObject) -> list[str]:
    """What does not keep submissions apart here, in lines; nothing if all does."""
    kernels = held.get("kernels", {})
    missing = [layer for layer, state in kernels.items() if state != "held"]
    if kernels and (len(missing) == len(kernels) or held.get(OTHER_FILES) == "seen"):
        return ["Nothing is isolated here: whoever hands something in could read what you can read. Grade as root, or "
                "where you may have namespaces."]
    return ([f"Submissions' kernels are kept apart, but not by: {'; '.join(missing)}."] if missing else []) + \
        (["Kernels that are timed run apart from the judge, but less isolated: the GPU's driver needs files and system "
          "calls. Points for performance rest on that."] if held.get("timed kernels") else [])


def _what_held(held: JsonObject) -> list[str]:
    """Each layer that should keep submissions apart, as Markdown, and before them what is missing."""
    layers = {**held.get("kernels", {}), **{f"compiler, {layer}": state for layer, state in held.items()
                                            if isinstance(state, str) and layer != "timed kernels"}}
    return ["", "## What kept submissions apart", "", *[line for said in not_held(held) for line in (said, "")],
            *[f"- {_in_markdown(layer)}: {_in_markdown(state)}" for layer, state in layers.items()]]


def gradescope(grade: Grade, exercises: Sequence[Graded], held: JsonObject) -> JsonObject:
    """results.json as gradescope-autograders.readthedocs.io has it."""
    tests = [{"name": f"{one.id}: {one.title}", "number": one.id, "score": grade.points[one.id],
              "max_score": one.points, "status": "passed" if grade.verdicts[one.id].state == "right" else "failed",
              "output": "\n".join([grade.verdicts[one.id].state, *grade.verdicts[one.id].lines]),
              "output_format": "text", "extra_data": {"verdict": grade.verdicts[one.id].state}} for one in exercises]
    return {"score": grade.score, "execution_time": round(grade.seconds),
            "output": "\n".join([_in_a_sentence(grade), *not_held(held)]),
            "output_format": "text", "stdout_visibility": "hidden", "tests": tests,
            "extra_data": {"sandbox": held, "for a person": grade.flags}}


def _in_a_sentence(grade: Grade) -> str:
    if grade.refused:
        return f"{grade.refused[0]}: {grade.refused[1]}"
    states = [verdict.state for verdict in grade.verdicts.values()]
    return f"{states.count('right')} of {len(states)} exercises are right"


def table_of_class(rows: "Sequence[tuple[Grade, Person | None]]", exercises: Sequence[Graded], log: Log) -> str:
    """A line for each student, as CSV: what each exercise was, and then its points. Where nobody is known, there are no
    columns for who it is; and none for a log that nobody was given points for."""
    ids = [one.id for one in exercises]
    known = any(person for _, person in rows)
    lines: list[list[object]] = [["submission", *(["id", "name"] if known else []), "points", "of", *ids,
                                  *[f"{id} points" for id in ids], *(["log points"] if log.of else []), "late days"]]
    for grade, person in rows:
        who = [person.id, person.name] if person else ["", ""]
        lines.append([grade.name, *(who if known else []), grade.score, total(exercises, log),
                      *[grade.verdicts[id].state for id in ids], *[grade.points[id] for id in ids],
                      *([grade.log] if log.of else []), max(grade.late.values(), default=0)])
    return as_csv(lines)


def total(exercises: Sequence[Graded], log: Log) -> float:
    return sum(one.points for one in exercises) + log.of


def _in_markdown(text: str) -> str:
    """The text as it stands there, in a line or a table's cell of Markdown."""
    return re.sub(r"([\\|\[\]<>*_`])", r"\\\1", text)


def page_of(grade: Grade, exercises: Sequence[Graded], log: Log, held: JsonObject) -> str:
    """What one student is told, as Markdown."""
    lines = [f"# {_in_markdown(grade.name)}: {grade.score} of {total(exercises, log)} points", "",
             _in_markdown(_in_a_sentence(grade)) + ".", ""]
    lines += [f"The log has {grade.log:g} of {log.of:g} points.", ""] if log.of else []
    for one in exercises:
        verdict = grade.verdicts[one.id]
        lines += [f"## {one.id}: {one.title}", "",
                  f"**{verdict.state}**, {grade.points[one.id]} of {one.points} points", ""]
        lines += [*[f"    {line}" for line in verdict.lines], ""] if verdict.lines else []
    lines += [line for said in not_held(held) for line in (said, "")]
    return "\n".join(lines)


def no_submissions(names: Sequence[str]) -> str:
    what = "it is" if len(names) == 1 else "each is"
    return f"Not graded, because {what} neither a directory nor a zip or tar archive: {', '.join(names)}."


def page_of_class(grades: list[Grade], exercises: Sequence[Graded], alike: list[Alike], without: str, held: JsonObject,
                  namesakes: Sequence[Sequence[str]] = (), others: Sequence[str] = (),
                  notes: Sequence[str] = ()) -> str:
    """For the instructor: which exercises went wrong most often, who has how much, what else was there, what is not
    known of whose it is and when it came, whose solutions are alike, which submissions answer the questions of one name
    (these have the same right answers), and what kept all these submissions apart from each other and from the
    judge."""
    lines = [f"# {len(grades)} submissions", "", "| exercise | right | not attempted | all else | what else it was |",
             "|---|---|---|---|---|"]
    rows = []
    for one in exercises:
        states = [grade.verdicts[one.id].state for grade in grades]
        nothing = [state for state in states if state in ("not attempted", "not handed in", "not answered")]
        wrong = sorted(set(states) - {"right", *nothing})
        rows.append((len(states) - states.count("right"), one, states.count("right"), len(nothing),
                     ", ".join(f"{state} {states.count(state)}" for state in wrong)))
    for _, one, right, left, others_were in sorted(rows, key=lambda row: (-row[0], row[1].id)):
        lines.append(f"| {one.id}: {one.title} | {right} | {left} | {len(grades) - right - left} | {others_were} |")
    lines += ["", "The exercise that most got wrong comes first.", "", "| submission | points | |", "|---|---|---|"]
    lines += [f"| [{_in_markdown(grade.name)}](students/{quote(grade.name)}.md) | {grade.score} | "
              f"{_in_markdown(': '.join(grade.refused)) if grade.refused else ''} |" for grade in grades]
    lines += ["", no_submissions([_in_markdown(name) for name in others])] if others else []
    lines += ["", "## Whose, and when", "", *[f"- {_in_markdown(note)}" for note in notes]] if notes else []
    flagged = [f"- {_in_markdown(grade.name)}, {exercise} ({grade.points[exercise]:g} points): {_in_markdown(why)}"
               for grade in grades for exercise, why in sorted(grade.flags.items())]
    lines += ["", "## To be looked at", "", "These have lines of which it cannot be said that they are a kernel's code "
              "alone. Points are for results; what the engine counts is not believed of them.", "",
              *flagged] if flagged else []
    lines += ["", "## Alike", ""]
    groups_of_names = [(', '.join(map(_in_markdown, names)), ids, share) for names, ids, share in groups(alike)]
    lines += [without] if without else [f"- {names}: {'all' if share >= 0.995 else f'{share:.0%} or more'} of "
                                        f"{', '.join(ids)}" for names, ids, share in groups_of_names] or \
        ["No two are nearly the same."]
    if not without:
        lines += ["", f"Compared is written code of at least {TOO_SHORT} characters, blanks not counted: for what is "
                  "shorter there is one way to write it.", ""]
    lines += [f"- {', '.join(map(_in_markdown, names))}: the questions of one name in answers.json"
              for names in namesakes]
    lines += _what_held(held)
    return "\n".join(lines) + "\n"
