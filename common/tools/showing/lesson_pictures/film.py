"""A drawing that moves by itself: its parts come, go and stretch at their times, over and over.

CSS alone moves it, so it moves where a page shows it as a picture. Who wants no motion, and who prints it, sees the
instant `still` and what only_still() adds.

    film = Film(300, "A sum", "Four numbers are added.", seconds=8, still=5)
    with film.shown(2, 6):  # seconds
        film.text(20, 40, "Now the second one")
    with film.stretched(100, [(2, 1), (3, 0.5)]):  # at two seconds its whole height above y = 100, then half of it
        film.box(20, 60, 30, 40, "blue")
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tools.showing.lesson_pictures.canvas import Drawing, short

FADE = 0.3  # seconds in which something comes or goes

Moments = Sequence[tuple[float, float]]  # [(seconds, value)], ascending; between two of them it changes evenly


class Film(Drawing):
    def __init__(self, height: float, title: str, description: str, seconds: float, still: float):
        super().__init__(height, title, description)
        self.seconds, self.still = seconds, still
        self._classes: dict[str, str] = {}  # {what its style is: its name}

    @contextmanager
    def shown(self, begin: float, end: float) -> Iterator[None]:
        """What is drawn within is there from `begin` to `end`."""
        moments = [(begin, 0.0), (begin + FADE, 1.0)] if begin > 0 else []
        moments += [(end, 1.0), (end + FADE, 0.0)] if end < self.seconds else []
        with self._animated("opacity", moments or [(0, 1.0)], short, float(begin <= self.still < end)):
            yield

    @contextmanager
    def stretched(self, y: float, moments: Moments) -> Iterator[None]:
        """Its height, above and below y, by a factor that changes."""
        with self._animated("transform", moments, lambda factor: f"scaleY({short(factor, 4)})",
                            _at(self.still, moments), f"transform-origin:0 {short(y)}px;"):
            yield

    @contextmanager
    def lifted(self, moments: Moments) -> Iterator[None]:
        """Higher by so much."""
        with self._animated("transform", moments, lambda up: f"translateY({short(-up)}px)", _at(self.still, moments)):
            yield

    @contextmanager
    def only_still(self) -> Iterator[None]:
        with self._animated("opacity", [(0, 0.0)], short, 1.0):
            yield

    @contextmanager
    def never_still(self) -> Iterator[None]:
        with self._animated("opacity", [(0, 1.0)], short, 0.0):
            yield

    @contextmanager
    def _animated(self, what: str, moments: Moments, words: Callable[[float], str], at_rest: float,
                  always: str = "") -> Iterator[None]:
        frames = {0.0: moments[0][1], **{100 * min(when / self.seconds, 1): value for when, value in moments},
                  100.0: moments[-1][1]}
        keys = "".join(f"{short(percent)}%{{{what}:{words(value)}}}" for percent, value in frames.items())
        name = self._classes.setdefault(f"{always}{what}:{words(at_rest)}|{keys}", f"k{len(self._classes)}")
        self._parts.append(f'<g class="{name}">')
        yield
        self._parts.append("</g>")

    def style(self) -> str:
        rest, moving = "", ""
        for both, name in self._classes.items():
            at_rest, _, keys = both.partition("|")
            rest += f".{name}{{{at_rest}}}"
            moving += f".{name}{{animation:{name} {short(self.seconds)}s linear infinite}}@keyframes {name}{{{keys}}}"
        return f"{super().style()}{rest}@media (prefers-reduced-motion:no-preference){{{moving}}}"


def _at(when: float, moments: Moments) -> float:
    """The value at this time."""
    if when <= moments[0][0]:
        return moments[0][1]
    for (begin, first), (end, last) in zip(moments, moments[1:]):
        if begin <= when < end:
            return first + (last - first) * (when - begin) / (end - begin)
    return moments[-1][1]
