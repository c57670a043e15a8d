"""Which exercises there are: common/course/exercises.json describes them, the chapters' sources contain them.

There are three kinds. A student writes the lines between two markers (code), finds and mends a mistake that has been
planted in a file (debug), or answers with a number (measure). A tree is the whole workbook, with all solutions, or a
student's: there common/course/handed_out holds the exercises' files as they were handed out.

The keys of an exercise, those in brackets need not be there:

    id           "05.rescale": the chapter's number, and the name that the markers have
    title        a few words: what the learner writes, `find ..` of a mistake, `count ..` of a question
    kind         code, debug or measure
    file, rung   the source that it is about, and the rung's name; [direction]: forward (if nothing is said) or
                 backward. The source is one of the chapter, or of common/course, which has what no chapter has
    points, difficulty (1 to 3), minutes (that it takes who has read the lesson), required, needs_gpu
    [lesson]     numbers of the lesson's questions whose answers would say too much: a student's tree has them without
    hints        three: where to look, a small case to think through, what is needed; the last is not the solution
    [then]       what ./workbook check adds when it is right: what has been reached, and why the next one is worth it
    code and debug
      tests      kinds of test (common/tests/chapter/kinds.cc) that the rung has to pass; `trace` is the engine with its
                 checks
      [limits]   what the engine may count at most, or at least and at most: [{"problem": {"heads": 2, ..}, "kernel":
                 "scores", "counts": {"global_load sectors": 1000, "matrix_flops": [8192, 8192]}}]; the problem's keys
                 are the flags of a chapter's program. "others": 0 is about all of WAYS that are not named: who does the
                 work in another way than the exercise is about uses one of those. What only the exercise's idea gives
                 may be none of the usual counts: simt/trace/counts.h, ForExercises. In a student's tree the kernel may
                 have the student's text of another exercise, too
      [may]      words that a solution may have although kernels do not need them: see kernelcode.py
      [shown_in] other files that show the solution in other words, which no search for its tokens finds: as long as the
                 exercise is open they are not handed out
      [tile]     how many rows of an output a thread block owns, a number or a constant of the file: {"o": "Br"}
    measure
      question   a sentence; {seq_q} in it stands for that number of the problem
      problem    what is the same for everyone; draw: {"seq_q": [70, 85, ..]}, of which each student gets one. What is
                 no flag of a chapter's program is a number of the question alone; a text may have it in braces, as the
                 question has: {"window": "{left},0"}
      answer     an expression of numbers and of counted("global_load sectors", "scores"), which the engine counts, also
                 of another rung or problem: counted("matrix_flops", rung="mma", causal=False); drawn("seq_q") is a
                 number of the problem, whole(x) is x without its fraction
      [calculate]  from what the number is calculated, where no command counts it: "from .."; {seq_q} as in the question
    debug
      the planted mistake is in common/course/debug/ID.json: see planted.py

Beside the exercises the file may have `performance`, of which exercises the kernels are timed: see
../grading/speed.py.
"""

import difflib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from tools.base import ROOT, Failure, JsonObject, chapters
from tools.course import markers, planted
from tools.course.markers import Region

FILE = Path("common/course/exercises.json")  # below the root of a tree, as the next ones
HANDED_OUT = Path("common/course/handed_out")
_SOURCES = ("[0-9][0-9]_*/*.cu", "common/course/*/*.cu")  # what exercises can be about
LEARNER = Path(".learner")  # what is remembered of a learner: see learner.py
PLANTED = LEARNER / "planted"
_KINDS_OF_TESTS = Path("common/tests/chapter/kinds.cc")

_ALL: dict[str, type] = {"id": str, "title": str, "kind": str, "file": str, "rung": str, "points": float,
                         "difficulty": int, "minutes": int, "required": bool,
        "needs_gpu": bool, "hints": list}
_MAY: dict[str, type] = {"direction": str, "limits": list, "tile": dict, "lesson": list, "may": list,
                         "shown_in": list, "then": str, "calculate": str}
_JUDGED: dict[str, type] = {"tests": list}
KINDS: dict[str, dict[str, type]] = {"code": _JUDGED, "debug": _JUDGED,
                                     "measure": {"question": str, "problem": dict, "draw": dict, "answer": str}}
_OF_A_LIMIT: dict[str, type] = {"problem": dict, "kernel": str, "counts": dict}
# What the engine counts (simt/trace/counts.h): the ways in which threads get at numbers, and all that a limit may name.
GLOBAL = ("global_load", "global_store", "global_atomic", "copy_load", "bulk_load", "bulk_store", "bulk_add")
SHARED = ("shared_load", "shared_store", "shared_atomic", "copy_store", "ldmatrix", "wgmma", "distributed")
WAYS = (*(f"{op} sectors" for op in GLOBAL), *(f"{op} wavefronts" for op in SHARED), "shuffles", "votes_alone",
        "barriers", "matrix_flops")
COUNTS = {*WAYS, *(f"{op} {what}" for op in (*GLOBAL, *SHARED) for what in ("requests", "bytes")), *"""
    accesses_of_a_thread bytes_after_votes bytes_alone bytes_before_release comparisons_after_votes copies_alone
    flops_ended_in_turn flops_of_a_block flops_out_of_turn matrix_flops_alone others stores_waited_out
    waits_for_all_products
    """.split()}


@dataclass(frozen=True)
class Exercise:
    id: str
    title: str
    kind: str
    file: str  # below the tree's root
    rung: str
    points: float
    difficulty: int
    minutes: int
    required: bool
    needs_gpu: bool
    hints: list[str]
    direction: str = "forward"
    tests: list[str] = field(default_factory=list)
    limits: list[JsonObject] = field(default_factory=list)
    tile: "dict[str, int | str]" = field(default_factory=dict)
    lesson: list[int] = field(default_factory=list)
    may: list[str] = field(default_factory=list)
    shown_in: list[str] = field(default_factory=list)
    then: str = ""
    question: str = ""
    problem: JsonObject = field(default_factory=dict)
    draw: dict[str, list[Any]] = field(default_factory=dict)
    answer: str = ""
    calculate: str = ""

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]

    @property
    def chapter(self) -> str:
        """The directory of its file, which names its programs: a chapter, or a directory of exercises alone."""
        return Path(self.file).parent.name

    @property
    def kernels(self) -> str:
        """How the commands call it: 05, or the name of a directory of exercises alone."""
        return self.chapter[:2] if self.chapter[:1].isdigit() else self.chapter

    @property
    def place(self) -> Path:
        """Where its programs are built, below the build directory."""
        return Path(self.file).parent


class Course:
    """The exercises of one tree."""

    def __init__(self, root: Path, exercises: list[Exercise], damaged: "dict[str, str] | None" = None):
        self.root, self.exercises = root, exercises
        self.damaged = damaged or {}  # {file: what is wrong with its markers}

    def select(self, words: list[str]) -> list[Exercise]:
        """The exercises that the user names by id (05.rescale) or by chapter (05); all if none is named."""
        if not words:
            return self.exercises
        known = {exercise.id: exercise for exercise in self.exercises}
        chosen = set()
        for word in words:
            if word in known:
                chosen.add(word)
                continue
            if "." in word:
                close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.75)
                raise Failure(f"no exercise {word}" + (f"; did you mean {close[0]}?" if close else
                                                       f" (exercises: {', '.join(known)})"), status=2)
            (chapter,) = chapters.select([word], chapters.with_lessons(self.root))
            of_chapter = [exercise.id for exercise in self.exercises if exercise.id[:2] == chapter.name[:2]]
            if not of_chapter:
                some = ", ".join(sorted({id[:2] for id in known}))
                raise Failure(f"chapter {chapter.name} has no exercises (chapters that have some: {some})", status=2)
            chosen.update(of_chapter)
        return [exercise for exercise in self.exercises if exercise.id in chosen]

    def text(self, exercise: Exercise) -> str:
        if exercise.file in self.damaged:
            raise Failure(self.damaged[exercise.file], status=2)
        return _read(self.root, Path(exercise.file))

    def region(self, exercise: Exercise, text: "str | None" = None) -> Region:
        """Where a code exercise stands in its file, or in another text of it."""
        text = self.text(exercise) if text is None else text
        found = [region for region in markers.regions(exercise.file, text) if region.name == exercise.name]
        if not found:
            raise Failure(f"{exercise.file}: there is no `// exercise {exercise.name}: ..`, which {exercise.id} needs",
                          status=2)
        return found[0]

    def handed_out(self, exercise: Exercise) -> "str | None":
        """What a student starts from: what stands between the markers, or the whole file of a debugging exercise.
        None if this tree has solutions and the file of a debugging exercise is neither right nor as planted: it
        cannot be said then."""
        copies = [self.root / place / exercise.file for place in (HANDED_OUT, PLANTED)]
        copy = next((path for path in copies if path.exists()), None)
        if exercise.kind == "debug":
            return copy.read_text() if copy else planted.in_text(self.text(exercise),
                                                                 planted.read(self.root, exercise.id))
        if copy:
            text = copy.read_text()
            return markers.inside(text, self.region(exercise, text))
        return markers.indented_stub(self.text(exercise), self.region(exercise))

    def attempted(self, exercise: Exercise) -> bool:
        """Whether the text differs from what was handed out in more than whitespace."""
        return _words(self.written(exercise)) != _words(self.handed_out(exercise) or "")

    def written(self, exercise: Exercise) -> str:
        """What stands there now: between the markers, or in the whole file of a debugging exercise."""
        text = self.text(exercise)
        return text if exercise.kind == "debug" else markers.inside(text, self.region(exercise, text))

    def replaced(self, exercise: Exercise, written: str) -> str:
        """The text of the exercise's file with this in its place."""
        return written if exercise.kind == "debug" else markers.filled(self.text(exercise), self.region(exercise),
                                                                       written)

    def student_files(self, chosen: list[Exercise]) -> dict[str, str]:
        """{file: its text in a student's tree} for the files of these exercises of a tree with solutions: each has
        its stub or its planted mistake; other exercises' markers are gone, and their solutions stand there as
        ordinary code."""
        files = self.begun([one for one in chosen if one.kind != "measure"])
        for file, text in files.items():
            keep = tuple(one.name for one in chosen if one.kind == "code" and one.file == file)
            files[file] = markers.without_bars(markers.without_markers(text, keep))
        return files

    def begun(self, chosen: list[Exercise]) -> dict[str, str]:
        """{file: its text} with these exercises of code in their initial state, and all else as it stands there."""
        files: dict[str, str] = {}
        for exercise in chosen:
            text = files.get(exercise.file) or self.text(exercise)
            start = self.start_of(exercise)
            files[exercise.file] = start if exercise.kind == "debug" else markers.filled(
                text, self.region(exercise, text), start)
        return files

    def start_of(self, exercise: Exercise) -> str:
        start = self.handed_out(exercise)
        if start is None:
            raise Failure(f"{exercise.file} is neither right nor as {exercise.id} plants its mistake; "
                          f"git checkout {exercise.file} brings it back")
        return start


def _words(text: str) -> list[str]:
    return text.split()


def _read(root: Path, path: Path) -> str:
    try:
        return (root / path).read_text(encoding="utf-8-sig")  # a mark at the beginning is an editor's
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2) from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is not UTF-8", status=2) from None


# --- Reading ---------------------------------------------------------------------------------------------------------


def load(root: Path = ROOT, *, of_a_learner: bool = False) -> Course:
    """Reads the exercises of the tree; Failure names the file and line of the first error. A learner edits the sources:
    there only who needs a file is told what is wrong with its markers."""
    text = _read(root, FILE)
    try:
        entries = json.loads(text)["exercises"]
    except ValueError as error:
        raise Failure(f"{FILE}:{getattr(error, 'lineno', 1)}: {error.args[0]}", status=2) from None
    except (KeyError, TypeError):
        raise Failure(f"{FILE}:1: it must be {{\"exercises\": [..]}}", status=2) from None
    reader = _Reader(root, text)
    exercises = [reader.exercise(entry) for entry in entries]
    damaged: dict[str, str] = {}
    _hold_to_the_sources(root, exercises, reader, damaged if of_a_learner else None)
    return Course(root, exercises, damaged)


class _Reader:
    """Reads the entries of exercises.json, one after the other."""

    def __init__(self, root: Path, text: str):
        self.root, self.lines = root, text.splitlines()
        self.kinds_of_tests = kinds_of_tests(root)
        self.seen: dict[str, Exercise] = {}

    def fail(self, what: str, *words: str) -> NoReturn:
        """Names the line that has the last of these words, each searched for after the one before."""
        number = 0
        for word in words:
            quoted = json.dumps(word)
            number = next((i for i in range(number, len(self.lines)) if quoted in self.lines[i]), number)
        raise Failure(f"{FILE}:{number + 1}: {what}", status=2)

    def exercise(self, entry: Any) -> Exercise:
        name = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not re.fullmatch(r"\d\d\.[a-z_][a-z0-9_]*", name):
            self.fail(f"an exercise's id must be a chapter's number and a name, as 05.rescale: it is {name}", str(name))
        if name in self.seen:
            self.fail(f"exercise {name} stands there twice", name, name)
        kind = entry.get("kind")
        if kind not in KINDS:
            self.fail(f"the kind of {name} is {kind}: it must be {', '.join(KINDS)}", name)
        must = {**_ALL, **KINDS[kind]}
        self._types(name, entry, must, _MAY)
        file = Path(entry["file"])
        directory = file.parts[0] if file.parts else ""
        elsewhere = directory[:2].isdigit() and directory[:2] != name[:2]
        if elsewhere or not any(file.match(pattern) for pattern in _SOURCES) or not (self.root / file).is_file():
            self.fail(f"exercise {name} is about {file}, which is no file of chapter {name[:2]}", name, entry["file"])
        if entry.get("direction", "forward") not in ("forward", "backward"):
            self.fail(f"the direction of {name} is {entry['direction']}: it must be forward or backward", name,
                      entry["direction"])
        for test in entry.get("tests", []):
            if test not in self.kinds_of_tests:
                self.fail(f"there is no kind of test {test} (there are {', '.join(self.kinds_of_tests)})", name, test)
        for shown in entry.get("shown_in", []):
            if not (self.root / shown).is_file():
                self.fail(f"{name} is shown in {shown}, which is no file", name, shown)
        for limit in entry.get("limits", []):
            self._types(f"a limit of {name}", limit, _OF_A_LIMIT, {}, name)
            for count, bounds in limit["counts"].items():
                if count not in COUNTS:
                    self.fail(f"a limit of {name} is on {count}, which the engine does not count (it counts "
                              f"{', '.join(sorted(COUNTS))})", name, count)
                if not all(type(bound) is int for bound in (bounds if isinstance(bounds, list) else [bounds])) or \
                        isinstance(bounds, list) and len(bounds) != 2:
                    self.fail(f"{count} of {name} is {json.dumps(bounds)}: it must be the most that may be counted, or "
                              "[least, most]", name, count)
        self.seen[name] = Exercise(**entry)
        return self.seen[name]

    def _types(self, name: str, entry: JsonObject, must: dict[str, type], may: dict[str, type],
               where: str = "") -> None:
        for key in must.keys() - entry.keys():
            self.fail(f"{name} has no {key}", where or name)
        for key, value in entry.items():
            if key not in must and key not in may:
                self.fail(f"{name} has a key {key}, which it cannot have (it can have {', '.join([*must, *may])})",
                          where or name, key)
            wanted = must.get(key) or may[key]
            if type(value) not in ((int, float) if wanted is float else (wanted,)):
                self.fail(f"{key} of {name} is {json.dumps(value)}: it must be of type {wanted.__name__}",
                          where or name, key)


def kinds_of_tests(root: Path = ROOT) -> list[str]:
    """The names of the kinds of tests, in the order of the suite's source."""
    return re.findall(r'(?:\b(?:kind|solving\w*)\(|\{)\s*"(\w+)",\s*"', _read(root, _KINDS_OF_TESTS))


def _hold_to_the_sources(root: Path, exercises: list[Exercise], reader: _Reader,
                         damaged: "dict[str, str] | None") -> None:
    """Checks that every code exercise has its markers, that there are no other markers, and that a file with a
    planted mistake has no other exercise. What is wrong with a source's markers goes into `damaged`, if it is given."""
    handed_out = (root / HANDED_OUT).is_dir()
    for path in sorted(path for pattern in _SOURCES for path in root.glob(pattern)):
        file = str(path.relative_to(root))
        here = [one for one in exercises if one.file == file and one.kind != "measure"]
        try:
            _hold_to_its_exercises(file, _read(root, Path(file)), here, handed_out, reader)
        except Failure as failure:
            if damaged is None:
                raise
            damaged[file] = f"{failure}; {_way_out(root, file, here)}"
    for exercise in exercises:
        if exercise.kind == "debug" and not handed_out and exercise.file not in (damaged or {}):
            planted.require_a_place(root, exercise.id, exercise.file, _read(root, Path(exercise.file)))


def _hold_to_its_exercises(file: str, text: str, here: list[Exercise], handed_out: bool, reader: _Reader) -> None:
    code = {one.name: one for one in here if one.kind == "code"}
    with_mistake = next((one for one in here if one.kind == "debug"), None)
    found = markers.regions(file, text)
    for region in found:
        where = f"{file}:{region.first}"
        if region.name not in code:
            raise Failure(f"{where}: exercise {region.name} is not in {FILE}", status=2)
        if with_mistake:
            raise Failure(f"{where}: {with_mistake.id} plants a mistake in this file; it can have no other exercise",
                          status=2)
        if region.stub is None and not handed_out:
            raise Failure(f"{file}:{region.last}: the end of exercise {region.name} has no bar, behind which its stub "
                          "stands", status=2)
    for name in code.keys() - {region.name for region in found}:
        reader.fail(f"{file} has no `// exercise {name}: ..`, which {code[name].id} needs", code[name].id)


def _way_out(root: Path, file: str, here: list[Exercise]) -> str:
    """What a learner can do whose markers are damaged."""
    begun = next((path.read_text() for path in (root / LEARNER / "before" / file, root / HANDED_OUT / file)
                  if path.exists()), "")
    now = {line.strip() for line in _read(root, Path(file)).splitlines()}
    missing = [f"`{line}`" for line in markers.marker_lines(begun) if line not in now]
    back = f"put {' and '.join(missing)} back, or " if missing else ""
    return back + (f"./workbook reset {here[0].id} begins the whole file again" if here else "take the line out")
