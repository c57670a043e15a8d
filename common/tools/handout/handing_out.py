"""What is handed out: the student's tree, the instructor's, and the archive for Gradescope.

The student's tree is the workbook with stubs in place of solutions. What would show a solution elsewhere is left out:
rungs and pieces of lessons in which its lines return, mutants, and the tests of the workbook's own tools. The tests
that a kernel has to pass are all there.
"""

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tools.base import Failure, file_trees
from tools.course import (
    FILE,
    HANDED_OUT,
    OF_THE_WORKBOOK,
    SENTENCES,
    Course,
    Exercise,
    Plan,
    boxes,
    rungs,
    sentences,
    without_markers,
)
from tools.handout import gradescope, leaks, student_lessons

# Of no use to a student, or nothing for a student's eyes.
_LEFT_OUT = re.compile(rf"(\.ci|\.github|common/tests/({'|'.join(OF_THE_WORKBOOK)})|"
                       r"common/tools/(grading|handout)|common/harness/judge)/|common/tests/trace/\w+_test\.py$|"
                       r"common/tools/commands/(grade|handout|mutants)\.py$|"
                       r"common/course/(debug/|wrong/|(README\.md|gradescope\.md|requirements\.txt)$)|CONTRIBUTING\.md$")
_COUNTS = "common/tests/trace"


@dataclass(frozen=True)
class Handout:
    plan: Plan  # with the exercises that are handed out
    student: file_trees.FileTree  # {path: bytes}
    instructor: file_trees.FileTree
    autograder: file_trees.FileTree
    # (exercise, why) of those that the plan has and that cannot be handed out with the others
    left_out: list[tuple[Exercise, str]]
    rungs: list[str]  # files of rungs that show a solution


def hand_out(course: Course, plan: Plan, plan_file: "bytes | None" = None, later: tuple[Exercise, ...] = ()) -> Handout:
    """`later` are exercises of later weeks: the student's tree must not show their solutions either."""
    tree = file_trees.read(course.root)
    chosen, left_out = compatible(course, plan.exercises, later)
    plan = replace(plan, weeks=[replace(week, exercises=[one for one in week.exercises if one in chosen])
                                for week in plan.weeks])
    view = _view(course, chosen, later)
    student = _student_tree(course, plan, tree, view)
    _require_no_leak(student, view.own)
    instructor = {**tree, **({"course.json": plan_file} if plan_file else {})}
    return Handout(plan, student, instructor, gradescope.archive(plan, instructor), left_out, sorted(view.less.gone))


# --- Which exercises, and which rungs ---------------------------------------------------------------------------------


def compatible(course: Course, exercises: list[Exercise],
               later: tuple[Exercise, ...] = ()) -> tuple[list[Exercise], list[tuple[Exercise, str]]]:
    """(those that can be handed out together, (exercise, why) of the others): a file that shows the solution of one
    cannot be the file of another. Earlier chapters come first, and a file that can have all of its exercises has
    them."""
    chosen: list[Exercise] = []
    left_out: list[tuple[Exercise, str]] = []
    for _, of_file in itertools.groupby(sorted(exercises, key=lambda one: (one.file, one.id)),
                                        key=lambda one: one.file):
        together = list(of_file)
        if not _against(course, chosen, together, later):
            chosen = [*chosen, *together]
            continue
        for one in together:
            why = _against(course, chosen, [one], later)
            if why:
                left_out.append((one, why))
            else:
                chosen = [*chosen, one]
    return chosen, left_out


def _against(course: Course, chosen: list[Exercise], more: list[Exercise], later: tuple[Exercise, ...]) -> str:
    """Why these cannot be handed out with those that are chosen; empty if they can."""
    trial = [*chosen, *more]
    for one in later:
        if one.kind != "measure" and any(one.file == other.file for other in more):
            return f"its file has the solution of {one.id}, which comes in a later week"
    view = _view(course, trial, later)
    lost = [other for other in trial if other.file in view.less.gone]
    if not lost:
        return ""
    guilty = [id for id, lines in view.own.items()
              if {other.file for other in lost} & view.whole.without(_showing(view.whole, [lines])).gone]
    what = "its file, or one that it needs, shows" if any(one in lost
                                                          for one in more) else f"the file of {lost[0].id} shows"
    return f"{what} the solution of {', '.join(guilty)}"


@dataclass(frozen=True)
class _View:
    """What students may see."""

    students: dict[str, str]  # {file: its text} of files with stubs or planted mistakes
    own: dict[str, list[leaks.Run]]  # {exercise's id: lines that may stand nowhere}
    whole: rungs.Ladder
    less: rungs.Ladder  # without the files that show a solution
    hidden: set[str]  # files of later exercises


def _view(course: Course, chosen: list[Exercise], later: tuple[Exercise, ...]) -> _View:
    students = course.student_files(chosen)
    unsolved = [one for one in [*chosen, *later] if one.kind != "measure"]
    own = {one.id: leaks.own_lines(course, one, students if one in chosen
                                   else {**course.student_files([one]), **students})
           for one in unsolved}
    whole, hidden = rungs.read(course.root, students), {one.file for one in unsolved if one not in chosen}
    return _View(students, own, whole, whole.without((hidden & whole.sources.keys()) | _showing(whole, own.values())),
                 hidden)


def _showing(whole: rungs.Ladder, own: Iterable[list[leaks.Run]]) -> set[str]:
    return {file for file, text in whole.sources.items() if any(leaks.shows(text, lines) for lines in own)}


# --- The student's tree -----------------------------------------------------------------------------------------------


def _student_tree(course: Course, plan: Plan, tree: file_trees.FileTree, view: _View) -> file_trees.FileTree:
    students, less, chapters = view.students, view.less, view.less.chapters()
    student = {file: content for file, content in tree.items()
               if not _LEFT_OUT.match(file) and (not file[:2].isdigit() or file.partition("/")[0] in chapters)}
    for file in [file for file in student if re.fullmatch(r"\d\d_\w+/(wide/)?[^/]*\.cu", file)]:
        del student[file]
    of_no_chapter = {one.file for one in course.exercises} - less.sources.keys() - less.gone - view.hidden
    for file, text in [*less.sources.items(),
                       *((file, students.get(file) or tree[file].decode()) for file in of_no_chapter)]:
        solved = not any(one.file == file for one in plan.exercises)
        student[file] = (without_markers(text) if solved else text).encode()
    for file in students:
        student[str(HANDED_OUT / file)] = students[file].encode()
    for file in [file for file in student if any(Path(file).parent == Path(hidden).parent
                                                 for hidden in view.hidden - less.gone)]:
        del student[file]  # of kernels that are in no chapter: see common/CMakeLists.txt
    for chapter in chapters:
        build = _without_chapters(student[f"{chapter}/CMakeLists.txt"].decode(), set(_chapters(tree)) - set(chapters))
        if any(file.startswith(f"{chapter}/") for file in students):
            build = re.sub(r"\s+NO_SPILLS\b", "", build)  # what a student tries first may need more registers
        student[f"{chapter}/CMakeLists.txt"] = build.encode()
        asked = {number: one.id for one in plan.exercises if one.id[:2] == chapter[:2] for number in one.lesson}
        for name in [file for file in student if re.fullmatch(rf"{chapter}/\w+\.md", file)]:
            page = boxes.without_boxes(student[name].decode(), {one.id for one in plan.exercises})
            student[name] = student_lessons.without_secrets(chapter[:2], page, view.own, asked).encode()
    _shorten_counts(student, course, plan, less, chapters)
    student[str(FILE)] = _exercises(course, plan).encode()
    student[str(SENTENCES)] = (json.dumps(sentences(course.root, plan.exercises), indent=1) + "\n").encode()
    student["README.md"] = student_lessons.front_page(plan, chapters).encode()
    for file in [file for file in student if file.endswith(".md")]:
        here = Path(file).parent
        student[file] = student_lessons.without_links(student[file].decode(),
                                                      lambda target: _is_there(student, here, target)).encode()
    for file in [file for file in student if Path(file).name == student_lessons.NUMBERS]:
        pages = [page for page in student if page.endswith(".md") and Path(page).parent == Path(file).parent]
        text = "".join(student[page].decode() for page in pages)
        student[file] = student_lessons.numbers_of(text, student[file].decode()).encode()
    return student


def _chapters(tree: file_trees.FileTree) -> list[str]:
    return sorted({file.partition("/")[0] for file in tree if re.fullmatch(r"\d\d_\w+/CMakeLists\.txt", file)})


def _without_chapters(build: str, gone: set[str]) -> str:
    for chapter in gone:
        build = re.sub(rf"\s+{chapter}\b", "", build)
    return re.sub(r"\s+LINKS(?=\s*[)#])", "", build)


def _shorten_counts(student: file_trees.FileTree, course: Course, plan: Plan, less: rungs.Ladder,
                    chapters: list[str]) -> None:
    """What the engine counts is recorded of rungs that are there and that nobody has to write."""
    written = {(one.chapter, one.rung) for one in plan.exercises if one.kind != "measure"}
    for file in [file for file in student if re.fullmatch(rf"{_COUNTS}/\d\d_\w+\.json", file)]:
        chapter = Path(file).stem
        if chapter not in chapters:
            del student[file]
            continue
        source = "".join(text for name, text in less.sources.items() if name.startswith(f"{chapter}/"))
        counts = json.loads(student[file])
        left = {launch: numbers for launch, numbers in counts.items() if _rung(launch) in _names(source)
                and (chapter, _rung(launch)) not in written}
        student[file] = (json.dumps(left, indent=1) + "\n").encode()


def _rung(launch: str) -> str:
    """"online, backward: kernel<..>, launch 1" -> "online"."""
    return re.split(r", backward: |: ", launch)[0]


def _names(source: str) -> set[str]:
    return set(re.findall(r'\.name = "(\w+)"', source))


def _exercises(course: Course, plan: Plan) -> str:
    """exercises.json with those of the plan, and the plan's points."""
    points = {one.id: one.points for one in plan.exercises}
    entries = json.loads((course.root / FILE).read_text())["exercises"]
    return json.dumps({"exercises": [{**entry, "points": points[entry["id"]]} for entry in entries
                                     if entry["id"] in points]},
                      indent=1, ensure_ascii=False) + "\n"


def _is_there(student: file_trees.FileTree, here: Path, target: str) -> bool:
    parts: list[str] = []
    for part in (here / target).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    path = "/".join(parts)
    return path in student or path == "" or any(file.startswith(f"{path}/") for file in student)


def _require_no_leak(student: file_trees.FileTree, own: dict[str, list[leaks.Run]]) -> None:
    """Nothing in the tree shows a solution, and nobody need take that on trust."""
    for file, content in sorted(student.items()):
        try:
            text = content.decode()
        except UnicodeDecodeError:
            continue
        for exercise, lines in own.items():
            line = leaks.shows(text, lines)
            if line and not file.startswith("common/device/"):
                raise Failure(f"{file}:{line} shows a line of the solution of {exercise}, and cannot be handed out "
                              "with it")
