"""What of a solution must not stand in a student's tree, and where it does.

A solution is compared in runs of tokens. A long run is found with other names, too: variables and the kernel's own
functions may be called anything, as long as each has one name. Keywords, CUDA's names, those of common/device and the
problem's members have no other. A shorter run, a line of the solution, counts as it is written. Layout and the way a
loop counts up make no difference. Comments and pages are searched like code.

The ladder repeats itself: much of a solution has been read in an earlier chapter, and much of it returns in a later
one. A run is known if the rest of the exercise's file has it, or a file before it that is handed out, or common/device.
Wherever another run stands, the solution is shown.
"""

import bisect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.course import Course, Exercise, kernelcode, lines_of, planted

LONG = 22  # tokens; of a long solution a quarter
_FEWEST = 6  # tokens of a line
_SHORT = 12  # tokens of a whole solution that is found with other names
_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.']*|<<=|>>=|->|::|\+\+|--|<<|>=|<=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w]")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
# for (int x = 0; x < .. ; ++x) says as little as one word.
_LOOP = re.compile(r"\bfor\s*\(\s*(?:int|auto|unsigned|size_t|int64_t)\s+(\w+)\s*=\s*0\s*;\s*\1\s*<")
_STEP = re.compile(r";\s*(?:\+\+\s*\w+|\w+\s*\+\+)\s*\)")
_AXES = {"x", "y", "z", "w"}
_ANY_NAME = "\0"


@dataclass(frozen=True)
class Run:
    """Tokens of a solution that stand one after the other."""

    exercise: str
    first: int  # which token of the solution it begins with
    tokens: tuple[str, ...]
    as_written: bool  # or with other names, too


class Solutions:
    """The solutions of a tree's exercises, and which of their runs stand in a text."""

    def __init__(self, course: Course):
        self._course = course
        self._words = _Words(course.root)
        self._runs = {one.id: self._runs_of(one) for one in course.exercises if one.kind != "measure"}
        every = [run for runs in self._runs.values() for run in runs]
        self._as_written: dict[str, list[Run]] = {}
        self._patterns: dict[str, list[Run]] = {}
        self._beginnings: dict[str, set[str]] = {}
        for run in every:
            if run.as_written:
                self._as_written.setdefault(_characters(run.tokens), []).append(run)
            else:
                pattern = self._words.pattern(run.tokens)
                self._patterns.setdefault(pattern, []).append(run)
                self._beginnings.setdefault(pattern[:_SHORT], set()).add(pattern)
        key = frozenset(every), frozenset(self._words.members), frozenset(self._words.given)
        self._shown = _SHOWN.setdefault(key, {})
        device = [path.read_text() for path in sorted(course.root.glob("common/device/*.h"))]
        self._beyond_device = {id: runs.difference(*(self.shown(text).get(id, ()) for text in device))
                               for id, runs in self._runs.items()}

    def beyond(self, id: str, known: Iterable[str]) -> frozenset[Run]:
        """The runs that neither common/device nor these texts have."""
        return self._beyond_device[id].difference(*(self.shown(text).get(id, ()) for text in known))

    def shown(self, text: str) -> dict[str, frozenset[Run]]:
        """{exercise's id: those of its solution's runs that stand there}, of solutions that have some there."""
        if text not in self._shown:
            found: dict[str, set[Run]] = {}
            for run, _ in self._found(_Searched(text, self._words)):
                found.setdefault(run.exercise, set()).add(run)
            self._shown[text] = {exercise: frozenset(runs) for exercise, runs in found.items()}
        return self._shown[text]

    def first_leak(self, text: str, own: dict[str, frozenset[Run]]) -> "tuple[str, int] | None":
        """(the exercise, the first line) of these runs that stand there."""
        for exercise, runs in self.shown(text).items():
            if runs & own.get(exercise, frozenset()):
                return exercise, self.line(text, runs & own[exercise])
        return None

    def line(self, text: str, runs: frozenset[Run]) -> int:
        """The number of the first line at which one of these runs of the text begins."""
        searched = _Searched(text, self._words)
        return searched.line(min(at for run, at in self._found(searched) if run in runs))

    def share(self, id: str, texts: Iterable[str]) -> float:
        """How much of the solution, 0 to 1, these texts have together."""
        runs = self._runs[id]
        there = {run.first + at for text in texts for run in self.shown(text).get(id, ())
                 for at in range(len(run.tokens))}
        every = {run.first + at for run in runs for at in range(len(run.tokens))}
        return len(there) / len(every) if every else 0

    def _found(self, searched: "_Searched") -> Iterator[tuple[Run, int]]:
        """(run, where it stands first) of all solutions' runs."""
        for written, runs in self._as_written.items():
            at = searched.written.find(written)
            if at >= 0:
                yield from ((run, at) for run in runs)
        for beginning in self._beginnings.keys() & searched.beginnings():
            for pattern in self._beginnings[beginning]:
                for run in self._patterns[pattern]:
                    at = searched.renamed(run.tokens, pattern)
                    if at >= 0:
                        yield run, at

    def _runs_of(self, exercise: Exercise) -> frozenset[Run]:
        if exercise.kind == "debug":  # what mends it; comments alone show nothing
            found: set[Run] = set()
            first = 0
            for right, _ in planted.read(self._course.root, exercise.id):
                tokens = _tokens(_code(right))
                found.update({Run(exercise.id, first, tokens, len(tokens) < LONG)} if tokens else ())
                first += len(tokens)
            return frozenset(found)
        tokens = _tokens(_code(self._course.written(exercise)))
        length = min(max(LONG, len(tokens) // 4), len(tokens))
        found = {Run(exercise.id, first, tokens[first : first + length], False)
                 for first in range(len(tokens) - length + 1)} if length >= _SHORT else set()
        return frozenset(found) | self._lines(exercise, tokens)

    def _lines(self, exercise: Exercise, solution: tuple[str, ...]) -> set[Run]:
        found = set()
        for line in lines_of(self._course, exercise):
            tokens = _tokens(line)
            tokens = tokens[:-1] if tokens[-1] in ";{," else tokens  # what goes on there is the same
            if len(tokens) < _FEWEST:  # a loop's first line, say
                continue
            places = [at for at in range(len(solution)) if solution[at : at + len(tokens)] == tokens]
            found.add(Run(exercise.id, places[0] if places else 0, tokens, True))
        return found


class _Words:
    """Which names everybody has to use: of all others only the pattern counts."""

    def __init__(self, root: Path):
        headers = "\n".join(path.read_text() for path in sorted(root.glob("common/device/*.h")))
        problem = root / "common/attention/problem.h"
        self.members = _AXES | set(re.findall(r"[A-Za-z_]\w+", _code(problem.read_text()) if problem.exists() else ""))
        offered = set(re.findall(r"\b([A-Za-z_]\w+)(?=\s*[(<])", headers))
        self.given = (kernelcode.KEYWORDS | kernelcode.CUDA | offered | {"for_each"}) - _AXES
        self._character = {word: _character(word) for word in self.given}

    def pattern(self, tokens: Sequence[str]) -> str:
        """A character for each token; a name that might be another is the same character each time."""
        known, members, before, parts = self._character, self.members, "", []
        for token in tokens:
            character = known.get(token)
            if character is None:
                if not token.isidentifier():
                    character = known[token] = _character(token)
                elif before in (".", "->") and token in members:
                    character = _character(token)
                else:
                    character = _ANY_NAME
            parts.append(character)
            before = token
        return "".join(parts)


class _Searched:
    """A text's code, and behind it its comments."""

    def __init__(self, text: str, words: _Words):
        self._text = text
        self._tokens = [*_tokens(_code(text)), "", *_tokens(_comments(text))]
        self.written = _characters(self._tokens)
        self.pattern = words.pattern(self._tokens)

    def beginnings(self) -> set[str]:
        return {self.pattern[at : at + _SHORT] for at in range(len(self.pattern) - _SHORT + 1)}

    def renamed(self, tokens: tuple[str, ...], pattern: str) -> int:
        """Where these tokens stand first, with these or other names; -1 if nowhere."""
        at = self.pattern.find(pattern)
        while at >= 0 and not self._renames(tokens, at):
            at = self.pattern.find(pattern, at + 1)
        return at

    def _renames(self, tokens: tuple[str, ...], at: int) -> bool:
        """Whether the names there are those of the run, each under one other name or its own."""
        there: dict[str, str] = {}
        back: dict[str, str] = {}
        for number, token in enumerate(tokens, at):
            if self.pattern[number] == _ANY_NAME:
                other = self._tokens[number]
                if there.setdefault(token, other) != other or back.setdefault(other, token) != token:
                    return False
        return True

    def line(self, at: int) -> int:
        """Where the token with this number stands, counted from 1."""
        code = _starts(_code(self._text))
        return code[at] if at < len(code) else _starts(_comments(self._text))[at - len(code) - 1]


def _code(text: str) -> str:
    """Without comments and lines for the preprocessor, on the same lines."""
    return _DIRECTIVE.sub("", _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text))


def _comments(text: str) -> str:
    """What the comments say, on the same lines."""
    parts, end = [], 0
    for found in _COMMENT.finditer(text):
        parts += ["\n" * text.count("\n", end, found.start()), found[0].strip("/*")]
        end = found.end()
    return "".join(parts)


def _with_loops(code: str) -> str:
    code = _LOOP.sub(lambda found: f"for_each {found[1]} " + "\n" * found[0].count("\n"), code)
    return _STEP.sub(lambda found: ")" + "\n" * found[0].count("\n"), code)


def _tokens(code: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(_with_loops(code)))


def _starts(code: str) -> list[int]:
    """The line of each token."""
    code = _with_loops(code)
    lines = [at for at, letter in enumerate(code) if letter == "\n"]
    return [bisect.bisect_left(lines, found.start()) + 1 for found in _TOKEN.finditer(code)]


def _characters(tokens: Iterable[str]) -> str:
    return "".join([_CHARACTERS.get(token) or _character(token) for token in tokens])


def _character(token: str) -> str:
    """One of its own for each token."""
    return _CHARACTERS.setdefault(token, chr(_FIRST + len(_CHARACTERS)))


_FIRST = 0x10000  # no surrogate among the next ones
_CHARACTERS: dict[str, str] = {}
# {(all runs, the names that are given): {text: what it shows}}: the same texts are searched for many handouts.
_SHOWN: dict[object, dict[str, dict[str, frozenset[Run]]]] = {}
