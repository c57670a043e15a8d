"""What is handed out: the student's tree, the instructor's, and the archive for Gradescope.

The student's tree is the workbook with stubs in place of solutions. What would show a solution elsewhere is left out:
rungs and pieces of lessons in which its lines return, mutants, and the tests of the workbook's own tools. The tests
that a kernel has to pass are all there.
"""

import itertools
import json
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
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
                       r"common/course/(debug/|wrong/|(README\.md|gradescope\.md|requirements\.txt)$)|(CHANGELOG|CONTRIBUTING)\.md$")
_OF_A_LESSON = re.compile(r"\.md$|/pictures/|/numbers\.json$")
_COUNTS = "common/tests/trace"
_MOST_FILES = 3  # that a line of the instructor's page names


@dataclass(frozen=True)
class Known:
    """How much of a solution, 0 to 1, students have read before, of their own right."""

    exercise: str
    share: float  # in all of these together
    files: dict[str, float]


@dataclass(frozen=True)
class Handout:
    plan: Plan  # with the exercises that are handed out
    student: file_trees.FileTree  # {path: bytes}
    instructor: file_trees.FileTree
    autograder: file_trees.FileTree
    # (exercise, why) of those that the plan has and that cannot be handed out with the others
    left_out: list[tuple[Exercise, str]]
    rungs: list[str]  # files of kernels that show a solution; of a chapter without any others, its name
    beyond: list[str]  # chapters that the class has not come to
    known: list[Known]


def hand_out(course: Course, plan: Plan, files: "file_trees.FileTree | None" = None,
             later: tuple[Exercise, ...] = (), last: str = "") -> Handout:
    """`files` are course.json and a roster, for the instructor's tree alone. `later` are exercises of later weeks: the
    student's tree must not show their solutions either. `last` is the number of the last chapter that the class has
    come to: later ones are not in the student's tree."""
    tree = file_trees.read(course.root)
    choosing = Choosing(course, later, last)
    chosen, left_out = choosing.compatible(plan.exercises)
    if not chosen:
        why_not = "".join(f" ({one.id}: {why})" for one, why in left_out)
        raise Failure(f"there is no exercise to hand out{why_not}", status=2)
    plan = replace(plan, weeks=[replace(week, exercises=[one for one in week.exercises if one in chosen])
                                for week in plan.weeks])
    view = choosing.view(chosen)
    student = _student_tree(course, plan, tree, view, choosing.solutions)
    _require_no_leak(student, view.own, choosing.solutions)
    instructor = {**tree, **(files or {})}
    whole, left = _chapters(tree), view.less.chapters()
    beyond = [chapter for chapter in whole if last and chapter[:2] > last]
    gone = {file.partition("/")[0] if file.partition("/")[0] in {*whole} - {*left} else file
            for file in view.gone - choosing.beyond}
    return Handout(plan, student, instructor, gradescope.archive(plan, instructor), left_out,
                   sorted(gone), beyond, _known(plan, view, choosing.solutions))


# --- Which exercises, and which rungs ---------------------------------------------------------------------------------


def compatible(course: Course, exercises: list[Exercise],
               later: tuple[Exercise, ...] = (), last: str = "") -> tuple[list[Exercise], list[tuple[Exercise, str]]]:
    """(those that can be handed out together, (exercise, why) of the others): a file that shows the solution of one
    cannot be the file of another. Earlier chapters come first, and a file that can have all of its exercises has
    them."""
    return Choosing(course, later, last).compatible(exercises)


@dataclass(frozen=True)
class _View:
    """What students may see."""

    students: dict[str, str]  # {file: its text} of files with stubs or planted mistakes
    own: dict[str, frozenset[leaks.Run]]  # {exercise's id: runs of its solution that may stand nowhere}
    whole: rungs.Ladder
    less: rungs.Ladder  # without the files that show a solution
    gone: set[str]  # files that show one, or need such a file, also those of no chapter
    hidden: set[str]  # files of later exercises and chapters


@lru_cache(maxsize=1)  # the weeks of one course
def _solutions(course: Course) -> leaks.Solutions:
    return leaks.Solutions(course)


class Choosing:
    """Which exercises go together: the tree is read once."""

    def __init__(self, course: Course, later: tuple[Exercise, ...] = (), last: str = ""):
        self.course, self.later, self.solutions = course, later, _solutions(course)
        self._whole = rungs.read(course.root, {})
        self.beyond = {file for file in self._whole.sources if file[:2] > last} if last else set()
        if last:  # kernels of no chapter are of their exercises' chapters
            self.beyond |= ({one.file for one in course.exercises if one.id[:2] > last}
                             - {one.file for one in course.exercises if one.id[:2] <= last})
        self._in_other_words = {one.id: set(one.shown_in) for one in course.exercises}
        self._apart = {file: course.root.joinpath(file).read_text() for file in {one.file for one in course.exercises}
                       if file not in self._whole.sources}  # of no chapter
        self._students: dict[tuple[str, ...], dict[str, str]] = {}
        self._views: dict[tuple[str, ...], _View] = {}
        self._headers: dict[str, list[str]] = {}
        self._shown: dict[tuple[str, str], dict[str, frozenset[leaks.Run]]] = {}

    def compatible(self, exercises: list[Exercise]) -> tuple[list[Exercise], list[tuple[Exercise, str]]]:
        chosen: list[Exercise] = []
        left_out: list[tuple[Exercise, str]] = []
        for _, of_file in itertools.groupby(sorted(exercises, key=lambda one: (one.file, one.id)),
                                            key=lambda one: one.file):
            together = list(of_file)
            if not self._against(chosen, together):
                chosen = [*chosen, *together]
                continue
            for one in together:
                why = self._against(chosen, [one])
                if why:
                    left_out.append((one, why))
                else:
                    chosen = [*chosen, one]
        return chosen, left_out

    def _against(self, chosen: list[Exercise], more: list[Exercise]) -> str:
        """Why these cannot be handed out with those that are chosen; empty if they can."""
        trial = [*chosen, *more]
        for one in self.later:
            if one.kind != "measure" and any(one.file == other.file for other in more):
                return f"its file has the solution of {one.id}, which comes in a later week"
        view = self.view(trial)
        lost = [other for other in trial if other.file in view.gone]
        if not lost:
            return ""
        files = {other.file for other in lost}
        guilty = [id for id, runs in view.own.items() if files & self._gone(view, {id: runs}).gone]
        what = "its file, or one that it needs, shows" if any(one in lost
                                                              for one in more) else f"the file of {lost[0].id} shows"
        return f"{what} the solution of {', '.join(guilty)}"

    def view(self, chosen: list[Exercise]) -> _View:
        key = tuple(one.id for one in chosen)
        if key not in self._views:
            self._views[key] = self._viewed(chosen)
        return self._views[key]

    def _viewed(self, chosen: list[Exercise]) -> _View:
        unsolved = [one for one in [*chosen, *self.later] if one.kind != "measure"]
        students = self._student_files(chosen)
        starts = {**self._student_files(unsolved), **students}
        hidden = {one.file for one in unsolved if one not in chosen} | self.beyond
        sources = {**self._whole.sources, **{file: students[file] for file in students if file in self._whole.sources}}
        whole = rungs.Ladder(sources)
        view = self._gone(_View(students, {}, whole, whole, set(), hidden), {})
        while True:  # what is not handed out is not known, and so more of a solution may be its own
            own = self._own(unsolved, starts, view.less.sources)
            less = self._gone(view, own)
            if own == view.own:
                return view
            view = less

    def _own(self, unsolved: list[Exercise], starts: dict[str, str],
             sources: dict[str, str]) -> dict[str, frozenset[leaks.Run]]:
        """{exercise's id: what its solution has that its file and those of the sources before it do not have}."""
        own = {one.id: self.solutions.beyond(one.id, [starts[one.file]]) for one in unsolved}
        places = {one.id: _place_of(one) for one in unsolved}
        for file, text in sources.items():
            for id, runs in self.solutions.shown(text).items():
                if id in own and _place(file) < places[id]:
                    own[id] -= runs
        return own

    def _gone(self, view: _View, own: dict[str, frozenset[leaks.Run]]) -> _View:
        """The same where these runs may stand nowhere."""
        def shows(text: str, file: str = "") -> bool:
            shown = self._shown_with_headers(file, text) if file else self.solutions.shown(text)
            return any(not shown[id].isdisjoint(own[id]) for id in shown.keys() & own.keys())

        showing = {file for file, text in view.whole.sources.items() if shows(text, file)}
        showing |= view.whole.sources.keys() & set().union(*(self._in_other_words[id] for id in own))
        # Where kernels are templates in a header, a file of no rung makes them, and the rungs are nothing without it.
        without = {file.partition("/")[0] for file in showing if rungs.is_of_no_rung(file, view.whole.sources[file])
                   and any(map(shows, self._headers_of(file)))}
        showing |= {file for file in view.whole.sources if file.partition("/")[0] in without}
        less = view.whole.without((view.hidden & view.whole.sources.keys()) | showing)
        apart = {file for file, text in self._apart.items() if shows(view.students.get(file, text))}
        return replace(view, own=own, less=less, gone=less.gone | apart | view.hidden)

    def _shown_with_headers(self, file: str, text: str) -> dict[str, frozenset[leaks.Run]]:
        """{exercise's id: those of its runs that stand in this text of the file or in a header beside it}"""
        if (file, text) not in self._shown:
            shown: dict[str, frozenset[leaks.Run]] = {}
            for part in (text, *self._headers_of(file)):
                for id, runs in self.solutions.shown(part).items():
                    shown[id] = shown.get(id, frozenset()) | runs
            self._shown[file, text] = shown
        return self._shown[file, text]

    def _headers_of(self, file: str) -> list[str]:
        """Texts of the headers beside it, which its chapter's files share: who needs one shows what it shows."""
        if file not in self._headers:
            beside = self.course.root.joinpath(file).parent
            found: dict[Path, str] = {}
            left = [self.course.root / file]
            while left:
                for name in re.findall(r'^#include "(\w+\.h)"', left.pop().read_text(), re.M):
                    if (beside / name).is_file() and beside / name not in found:
                        found[beside / name] = (beside / name).read_text()
                        left.append(beside / name)
            self._headers[file] = list(found.values())
        return self._headers[file]

    def _student_files(self, chosen: list[Exercise]) -> dict[str, str]:
        files: dict[str, str] = {}
        for _, of_file in itertools.groupby(sorted(chosen, key=lambda one: one.file), key=lambda one: one.file):
            together = list(of_file)
            key = tuple(one.id for one in together if one.kind != "measure")
            if key not in self._students:
                self._students[key] = self.course.student_files(together)
            files.update(self._students[key])
        return files


_Place = tuple[str, bool, int, str]


@cache
def _place(file: str) -> _Place:
    """By chapter and rung: 10_hopper/10_dynamic.cu comes after 10_hopper/9_persistent.cu."""
    chapter, _, name = file.partition("/")
    number = name.partition("_")[0]
    return chapter, not number.isdigit(), int(number) if number.isdigit() else 0, name


def _place_of(exercise: Exercise) -> _Place:
    """Of its file; what is of no chapter comes after the exercise's chapter."""
    return _place(exercise.file) if exercise.file[:2] == exercise.id[:2] else (f"{exercise.id[:2]}~", True, 0, "")


# --- The student's tree -----------------------------------------------------------------------------------------------


def _student_tree(course: Course, plan: Plan, tree: file_trees.FileTree, view: _View,
                  solutions: leaks.Solutions) -> file_trees.FileTree:
    students, less, chapters = view.students, view.less, view.less.chapters()
    numbers = {one.id[:2] for one in plan.exercises}
    alone = [one for one in _chapters(tree) if one[:2] in numbers and one not in chapters]  # lessons without kernels
    lessons = sorted([*chapters, *alone])
    student = {file: content for file, content in tree.items()
               if not _LEFT_OUT.match(file) and (not file[:2].isdigit() or file.partition("/")[0] in chapters
                                                 or file.partition("/")[0] in alone and _OF_A_LESSON.search(file))}
    for file in [file for file in student if re.fullmatch(r"\d\d_\w+/(wide/)?[^/]*\.cu", file)]:
        del student[file]
    of_no_chapter = {one.file for one in course.exercises} - less.sources.keys() - view.gone
    for file, text in [*less.sources.items(),
                       *((file, students.get(file) or tree[file].decode()) for file in of_no_chapter)]:
        solved = not any(one.file == file for one in plan.exercises)
        student[file] = (without_markers(text) if solved else text).encode()
    for file in students:
        student[str(HANDED_OUT / file)] = less.sources.get(file, students[file]).encode()
    for file in [file for file in student if any(Path(file).parent == Path(hidden).parent
                                                 for hidden in view.gone - less.gone)]:
        del student[file]  # of kernels that are in no chapter: see common/CMakeLists.txt
    for chapter in chapters:
        build = _without_chapters(student[f"{chapter}/CMakeLists.txt"].decode(), set(_chapters(tree)) - set(chapters))
        if any(file.startswith(f"{chapter}/") for file in students):
            build = re.sub(r"\s+NO_SPILLS\b", "", build)  # what a student tries first may need more registers
        student[f"{chapter}/CMakeLists.txt"] = build.encode()
    for chapter in lessons:
        asked = {number: one.id for one in plan.exercises if one.id[:2] == chapter[:2] for number in one.lesson}
        for name in [file for file in student if re.fullmatch(rf"{chapter}/\w+\.md", file)]:
            page = boxes.without_boxes(student[name].decode(), {one.id for one in plan.exercises})
            student[name] = student_lessons.without_secrets(chapter[:2], page, solutions, view.own, asked).encode()
    _shorten_counts(student, course, plan, less, chapters)
    student[str(FILE)] = _exercises(course, plan).encode()
    student[str(SENTENCES)] = (json.dumps(sentences(course.root, plan.exercises), indent=1) + "\n").encode()
    student["README.md"] = student_lessons.front_page(plan, lessons).encode()
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
        left = {launch: counts[numbers] if isinstance(numbers, str) else numbers  # the name of one that counts the same
                for launch, numbers in counts.items() if _rung(launch) in _names(source)
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
    return json.dumps({"exercises": [{**{key: value for key, value in entry.items() if key != "shown_in"},
                                      "points": points[entry["id"]]} for entry in entries if entry["id"] in points]},
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


def _require_no_leak(student: file_trees.FileTree, own: dict[str, frozenset[leaks.Run]],
                     solutions: leaks.Solutions) -> None:
    """Nothing in the tree shows a solution, and nobody need take that on trust."""
    for file, content in sorted(student.items()):
        try:
            found = solutions.first_leak(content.decode(), own)
        except UnicodeDecodeError:
            continue
        if found:
            raise Failure(f"{file}:{found[1]} shows some of the solution of {found[0]}, and cannot be handed out with "
                          "it")


def _known(plan: Plan, view: _View, solutions: leaks.Solutions) -> list[Known]:
    found = []
    for one in plan.exercises:
        if one.kind != "measure":
            before = {file: text for file, text in view.less.sources.items() if _place(file) < _place_of(one)}
            shares = {file: solutions.share(one.id, [text]) for file, text in before.items()}
            found.append(Known(one.id, solutions.share(one.id, before.values()),
                               {file: share for file, share in shares.items() if share > 0}))
    return [one for one in found if one.files]


def page_of_known(known: list[Known]) -> str:
    """For the instructor, as Markdown."""
    lines = ["# What students have read of the solutions before", "",
             "How much of each solution stands in kernels of earlier chapters and rungs, which students have. Other "
             "names count as the same.", "", "| exercise | of its solution | in |", "|---|--:|---|"]
    for one in sorted(known, key=lambda one: -one.share):
        files = sorted(one.files.items(), key=lambda entry: -entry[1])
        there = [f"{file} {share:.0%}" for file, share in files[:_MOST_FILES]]
        more = [f"and {len(files) - _MOST_FILES} more"] if len(files) > _MOST_FILES else []
        lines.append(f"| {one.exercise} | {one.share:.0%} | {', '.join(there + more)} |")
    return "\n".join([*lines, ""])
