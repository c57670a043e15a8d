"""The two comment lines around an exercise's solution in a source, and what stands between them.

    // exercise rescale: what to do, in a sentence
    ... the solution; in a student's file the stub, until the student has written something else ...
    // end rescale | const float correction = 1;

Behind the bar of the last line stands the stub: C++ that compiles, perhaps nothing. A student's file has no bar.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from tools.base import Failure

_BEGIN = re.compile(r"\s*//[ \t]*exercise[ \t]+(\w+)[ \t]*:[ \t]*(\S.*)")
_END = re.compile(r"\s*//[ \t]*end[ \t]+(\w+)[ \t]*(?: \|(.*))?")
_NEARLY = re.compile(r"\s*//\s*(exercise \w+\s*(:|$)|end \w+\s*(\||$))")  # what was meant to be one of them


@dataclass(frozen=True)
class Region:
    """An exercise's place in a text of lines."""

    name: str
    task: str  # what its first line says
    first: int  # the line of the beginning, counted from 1
    last: int  # the line of the end
    stub: "str | None"  # None in a student's file


def regions(where: str, text: str) -> list[Region]:
    """All regions of the text; Failure names `where` and the line of the first malformed marker."""
    found: dict[str, Region] = {}
    open_region: "tuple[str, str, int] | None" = None

    def fail(line: int, what: str) -> NoReturn:
        raise Failure(f"{where}:{line}: {what}", status=2)

    for number, line in enumerate(text.splitlines(), 1):
        begin, end = _BEGIN.fullmatch(line), _END.fullmatch(line)
        if begin:
            name, task = begin.groups()
            if open_region:
                fail(number, f"exercise {name} begins inside exercise {open_region[0]}, which has no end yet")
            if name in found:
                fail(number, f"exercise {name} begins a second time (the first time in line {found[name].first})")
            open_region = (name, task, number)
        elif end:
            name, stub = end.groups()
            if not open_region or open_region[0] != name:
                inside = f"; exercise {open_region[0]} is open" if open_region else ""
                fail(number, f"the end of exercise {name}, which has not begun{inside}")
            found[name] = Region(*open_region, last=number, stub=None if stub is None else stub.strip())
            open_region = None
        elif _NEARLY.match(line):
            fail(number, "no marker of an exercise: `// exercise NAME: what to do` and `// end NAME | stub` are")
    if open_region:
        fail(open_region[2], f"exercise {open_region[0]} has no end, a line `// end {open_region[0]}` "
             "with all that stood behind it")
    return list(found.values())


def marker_lines(text: str) -> list[str]:
    """The lines that begin or end an exercise, without the space around them."""
    return [line.strip() for line in text.splitlines() if _BEGIN.fullmatch(line) or _END.fullmatch(line)]


def inside(text: str, region: Region) -> str:
    """What stands between the two lines."""
    return "\n".join(text.splitlines()[region.first : region.last - 1])


def filled(text: str, region: Region, content: str) -> str:
    """The text with the content between the two lines."""
    lines = text.splitlines()
    return _joined([*lines[: region.first], *content.splitlines(), *lines[region.last - 1 :]])


def for_a_compiler(path: str, text: str, contents: dict[str, str]) -> str:
    """The text with other contents {name of a region: content}. What a compiler says of a line names that of `path`, in
    which the text stands; of other contents, the line with which their region begins."""
    def line_is(number: int) -> str:
        quoted = path.replace("\\", "\\\\").replace('"', '\\"')
        return f'#line {number} "{quoted}"'

    lines = text.splitlines()
    for region in sorted(regions(path, text), key=lambda one: -one.first):
        if region.name in contents:
            content = [part for line in contents[region.name].splitlines() for part in (line_is(region.first), line)]
            lines[region.first : region.last - 1] = [*content, line_is(region.last)]
    return _joined([line_is(1), *lines])


def indented_stub(text: str, region: Region) -> str:
    """The stub as it stands in a student's file."""
    marker = text.splitlines()[region.last - 1]
    return marker[: len(marker) - len(marker.lstrip())] + region.stub if region.stub else ""


def without_bars(text: str) -> str:
    """The text without the stubs after its end markers."""
    lines = text.splitlines()
    ends = [(number, _END.fullmatch(line)) for number, line in enumerate(lines)]
    for number, end in ends:
        if end and end[2] is not None:
            lines[number] = lines[number].partition(" |")[0]
    return _joined(lines)


def without_markers(text: str, keep: tuple[str, ...] = ()) -> str:
    """The text without any exercise's two lines, but for those in `keep`: the source as if there were no course."""

    def stays(line: str) -> bool:
        marker = _BEGIN.fullmatch(line) or _END.fullmatch(line)
        return not marker or marker[1] in keep

    return _joined([line for line in text.splitlines() if stays(line)])


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
