"""The constants that the kernels' sources define, so that a picture cannot contradict its kernel."""

import re
from functools import cache
from pathlib import Path

from tools.base import ROOT, NotUnderstood, evaluate

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SUFFIX = re.compile(r"(?<=\d)[uUlLfF]+\b")


@cache  # some pictures ask for one thousands of times
def constant(file: str, name: str, root: Path = ROOT) -> int:
    """The value of a whole number that the source defines: constant("05_online_softmax/2_tiles.cu", "Bc") is 64.

    It may be made of other constants of the file, `constexpr int threads = 32 * warps;`. Where the file defines the
    name more than once, with different values, the picture has to say which it means by other ways.
    """
    text = _COMMENT.sub("", (root / file).read_text())
    values = {_value(text, found, (name,), file)
              for found in re.findall(rf"constexpr[^;{{}}]*?\b{name} = ([^,;]+)", text)}
    if len(values) != 1:
        raise LookupError(f"{file} defines {name} {'not at all' if not values else f'as {sorted(values)}'}")
    return values.pop()


def _value(text: str, expression: str, names: tuple[str, ...], file: str) -> int:
    def known(found: "re.Match[str]") -> str:
        other = found[0]
        inner = re.search(rf"constexpr[^;{{}}]*?\b{other} = ([^,;]+)", text)
        if other in names or inner is None:
            raise LookupError(f"{file} defines {names[0]} by {other}, which is no constant of its own")
        return f"({_value(text, inner[1], (*names, other), file)})"

    try:
        whole = evaluate(re.sub(r"\b[A-Za-z_]\w*", known, _SUFFIX.sub("", expression)), None)
    except NotUnderstood as error:
        raise LookupError(f"{file}: {names[-1]} is {error}") from None
    return int(whole)
