"""The chapters' sources as a ladder that rungs can be taken out of: which file defines which rung, and who uses it.

A rung that shows the solution of an exercise must not be in a student's tree. What needs that rung cannot stay either,
and the chapter's list of rungs, in attention.cu, becomes shorter. A chapter without rungs goes as a whole. A rung that
loses its kernels for head dims above 128 takes those up to 128.
"""

import re
from collections import Counter
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNELS = ("[0-9][0-9]_*/*.cu", "[0-9][0-9]_*/wide/*.cu")  # of the chapters; wide: for head dims above 128
_DEFINES = re.compile(r"^constinit const attention::\w+ (\w+) =", re.M)
_DECLARES = re.compile(r"^extern const attention::(?:Rung|Forward|Backward) ([\w, ]+);\n", re.M)
_USES_OF_OTHERS = re.compile(r"\b(\w+)::(\w+)\b")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_LIST = ".rungs ="
_WIDE = re.compile(r"\d\d_\w+/wide/")
_DECLARES_WIDE = re.compile(r"^extern const attention::\w+ (wide_\w+);[^\n]*\n", re.M)

_STRINGS = r'((?:"(?:\\.|[^"\\])*"\s*)+)'  # C++ joins neighbours

Symbol = tuple[str, str]  # (namespace, name)


@dataclass(frozen=True)
class Listed:
    """A rung as the sources describe it."""

    name: str
    idea: str
    files: frozenset[str]  # whose kernels it runs: its own, and those that these need
    directions: frozenset[str]  # forward, backward


class Ladder:
    """{file: text} of all chapters' .cu files, of which some are taken out."""

    def __init__(self, sources: dict[str, str]):
        self.sources = dict(sources)
        self.gone: set[str] = set()
        self._less: dict[frozenset[str], Ladder] = {}  # without these files
        self._uses: dict[tuple[str, str], set[Symbol]] = {}  # (file, its text) -> what it uses
        self._defined = {(_namespace(file), name): file for file, text in sources.items()
                         for name in _names_defined(text)}
        self._mine = {file: {symbol for symbol, place in self._defined.items() if place == file} for file in sources}
        # What a list has, and kernels for wide heads, which nobody runs but a rung.
        self._needed = {symbol for file in sources if _is_list(file) for symbol in self._used(file)}
        self._needed |= {symbol for symbol, place in self._defined.items() if _WIDE.match(place)}

    def without(self, files: set[str]) -> "Ladder":
        """This ladder when these files are not there."""
        key = frozenset(files)
        if key not in self._less:
            less = copy(self)
            less.sources, less.gone, less._less = dict(self.sources), set(), {}
            less._take_out(files)
            self._less[key] = less
        return self._less[key]

    def chapters(self) -> list[str]:
        return sorted({file.partition("/")[0] for file in self.sources})

    def _take_out(self, files: set[str]) -> None:
        while files:
            for file in files:
                del self.sources[file]
            self.gone |= files
            missing = {symbol for symbol, file in self._defined.items() if file in self.gone}
            for file in [file for file in self.sources if _is_list(file)]:
                self.sources[file] = _shortened(self.sources[file], _namespace(file), missing)
            wide = {symbol for symbol in missing if _WIDE.match(self._defined[symbol])}
            for file in [file for file in self.sources if self._used(file) & wide]:
                self.sources[file] = _without_wide(self.sources[file], _namespace(file), wide)
            used = Counter(symbol for file in self.sources for symbol in self._used(file))
            files = {file for file in self.sources if self._cannot_stay(file, missing, used)}

    def _cannot_stay(self, file: str, missing: set[Symbol], used: "Counter[Symbol]") -> bool:
        chapter = file.partition("/")[0]
        if _is_list(file):
            return _LIST in self.sources[file] and not _elements(self.sources[file])[0]
        attention = f"{chapter}/attention.cu"
        if attention not in self.sources or self._used(file) & missing:
            return True
        mine = self._mine[file]
        return bool(mine & self._needed) and not any(used[symbol] for symbol in mine)  # nobody needs it any more

    def _used(self, file: str) -> set[Symbol]:
        """The rungs, forwards and backwards that a file uses and does not define. A declaration is no use."""
        known = file, self.sources[file]
        if known not in self._uses:
            code = _DECLARES.sub("", self.sources[file]) if _is_list(file) else self.sources[file]
            self._uses[known] = {symbol for symbol in _mentioned(code, _namespace(file)) & self._defined.keys()
                                 if self._defined[symbol] != file}
        return self._uses[known]

    def rungs_of(self, chapter: str) -> list[str]:
        """What the elements of the chapter's list say, in their order: a variable, or a literal with its name."""
        text = self.sources.get(f"{chapter}/attention.cu", "")
        return _elements(text)[0] if _LIST in text else []

    def idea_of(self, chapter: str) -> str:
        """The chapter's one idea; empty if its sources do not say it in the usual way."""
        text = self.sources.get(f"{chapter}/attention.cu", "")
        return _text_of("idea", text.partition("attention::Chapter chapter =")[2])

    def listed(self, chapter: str) -> list[Listed]:
        """The chapter's rungs, in their order."""
        namespace, found = chapter.partition("_")[2], []
        for element in self.rungs_of(chapter):
            literal = element.startswith("{")
            symbols = _mentioned(element, namespace) & self._defined.keys()
            files = {self._defined[symbol] for symbol in symbols} | ({f"{chapter}/attention.cu"} if literal else set())
            variable = re.match(r"(?:both\()?(\w+)", element)
            said = element if literal or not variable else self._definition((namespace, variable[1]))
            files = self._with_what_they_need(files)
            fields = said if literal else said.partition("};")[0]
            directions = {one for one in ("forward", "backward") if f".{one} =" in fields}
            if element.startswith("both("):
                directions.add("backward")
            found.append(Listed(_text_of("name", said), _text_of("idea", said), frozenset(files),
                                frozenset(directions)))
        return found

    def _definition(self, symbol: Symbol) -> str:
        text = self.sources.get(self._defined.get(symbol, ""), "")
        return text[text.find(f" {symbol[1]} ="):]

    def _with_what_they_need(self, files: set[str]) -> set[str]:
        needed: set[str] = set()
        while files:
            needed |= files
            files = {self._defined[symbol] for file in files if not _is_list(file)
                     for symbol in self._used(file)} - needed
        return needed


def _text_of(key: str, text: str) -> str:
    """What the first `.key = "..."` of the text says."""
    found = re.search(rf"\.{key} =\s*{_STRINGS}", text)
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', found[1])).replace('\\"', '"') if found else ""


def _is_list(file: str) -> bool:
    return file.endswith("/attention.cu")


@cache
def is_of_no_rung(file: str, text: str) -> bool:
    """A file of kernels that others of its chapter run."""
    return not _is_list(file) and _DEFINES.search(text) is None


def _namespace(file: str) -> str:
    return file.partition("/")[0].partition("_")[2]


@cache
def _elements(text: str) -> tuple[list[str], int, int]:
    """(the elements of `.rungs = {a, b(c, d), {..}}`, where the first begins, where the last ends)"""
    begin = text.index("{", text.index(_LIST)) + 1
    elements, depth, start, position = [], 0, begin, begin
    while depth >= 0:
        character = text[position]
        depth += (character in "{(") - (character in "})")
        if depth < 0 or (depth == 0 and character == ","):
            elements.append(text[start:position].strip())
            start = position + 1
        position += 1
    return [element for element in elements if element], begin, position - 1


@cache
def _names_defined(text: str) -> tuple[str, ...]:
    return tuple(_DEFINES.findall(text))


@cache
def _mentioned(code: str, namespace: str) -> frozenset[Symbol]:
    """The (namespace, name) of all that the code names, comments and strings aside."""
    code = re.sub(r'//[^\n]*|"(\\.|[^"\\])*"', "", code)
    qualified = set(_USES_OF_OTHERS.findall(code))
    return frozenset(qualified) | {(namespace, name) for name in _WORD.findall(_USES_OF_OTHERS.sub("", code))}


def _without_backward(element: str, namespace: str, missing: set[Symbol]) -> str:
    """both(rung, its_backward) is the rung alone where its backward is missing."""
    both = re.fullmatch(r"both\((\w+), (\w+)\)", element)
    return both[1] if both and (namespace, both[2]) in missing else element


def _without_wide(text: str, namespace: str, missing: set[Symbol]) -> str:
    """A rung's source without these kernels for head dims above 128."""
    text = _DECLARES_WIDE.sub(lambda found: "" if (namespace, found[1]) in missing else found[0], text)
    text = re.sub(r"(attention::padded<\w+, [\w:]+), (\w+)>",
                  lambda found: f"{found[1]}>" if (namespace, found[2]) in missing else found[0], text)
    return text.replace("head_dim_not_8_to_256", "head_dim_not_8_to_128").replace("not_for_hopper_to_256",
                                                                                  "not_for_hopper")


def _shortened(text: str, namespace: str, missing: set[Symbol]) -> str:
    """attention.cu without the rungs that are missing, and without what only they needed."""
    if _LIST not in text:
        return text
    elements, begin, end = _elements(text)
    left = [element for element in (_without_backward(element, namespace, missing) for element in elements)
            if not _mentioned(element, namespace) & missing]
    if left != elements:
        text = text[:begin] + ", ".join(left) + text[end:]
    text = re.sub(r",\s*\.(?:starts_from|example) = &(?:(\w+)::)?(\w+)",
                  lambda found: "" if (found[1] or namespace, found[2]) in missing else found[0], text)

    def declared(found: re.Match[str]) -> str:
        around = re.findall(r"^namespace (\w+) \{$|^(\})", text[: found.start()], re.M)
        inside = around[-1][0] if around and around[-1][0] else namespace
        names = [name for name in found[1].split(", ") if (inside, name) not in missing]
        return found[0].replace(found[1], ", ".join(names)) if names else ""

    text = _DECLARES.sub(declared, text)
    return re.sub(r"^namespace \w+ \{\n+\}(?:  // [^\n]*)?\n+", "", text, flags=re.M)


def read(root: Path, texts: dict[str, str]) -> Ladder:
    """The ladder of a tree, with these texts {file: text} in place of what stands there."""
    files = [str(path.relative_to(root)) for pattern in KERNELS for path in sorted(root.glob(pattern))]
    return Ladder({file: texts[file] if file in texts else (root / file).read_text() for file in files})
