"""A drawing of boxes, cells, arrows and words, written as SVG by hand: no library, and the same bytes each time.

Made to be read on a phone. A drawing is 400 units wide unless it says otherwise, and text is refused that would be
smaller than SMALLEST pixels where the picture is 360 pixels wide, or that would leave the picture. It brings its own
card and follows the reader's light or dark colours.

    drawing = Drawing(300, "Lanes onto sectors", "Above, 32 lanes read 32 sectors; below, they read 2.")
    drawing.text(200, 24, "Before", bold=True, at="middle")
    drawing.cells(20, 40, 32, 1, 10, "blue")
    drawing.arrow((200, 60), (200, 90))

Colours are names: ink (text, arrows), note (what is said beside it), line (frames), and blue, orange, green, purple
for what the picture tells apart: a colour means one thing in a picture. Each of these four has a pale form, pale=True,
on which text can stand.
"""

from collections.abc import Callable, Sequence
from html import escape

WIDTH = 400.0
SMALLEST = 11.0  # pixels of the text, where the picture is SHOWN_AT pixels wide
SHOWN_AT = 360.0
NATURAL = 1.5  # pixels a unit, where there is room

Point = tuple[float, float]

# name: (light, dark); of the four that a picture tells apart also the pale form
INKS = {"page": ("#fbfaf7", "#16181c"), "ink": ("#26241f", "#ece9e2"), "note": ("#656056", "#a8adb5"),
        "line": ("#b9b3a6", "#59606b"), "empty": ("#ffffff", "#1e2126")}
COLORS = {"blue": ("#2f6cb3", "#6fa3ea", "#d6e5f6", "#22374f"), "orange": ("#c9680c", "#f2a351", "#fae3cb", "#4a3218"),
          "green": ("#1b7f5c", "#58c79d", "#d3ecdf", "#1c4033"), "purple": ("#8a4b9c", "#cf9bdd", "#ecdcf1", "#3c2a44"),
          "grey": ("#8a857a", "#7d858f", "#ece9e1", "#2b2f36")}
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace"
NARROW, WIDE = set(" ijl.,:;|'!()[]It-/·"), set("mwMWQOGCD@%→⇒∞×=+−<>Σ")


def short(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def width_of(words: str, size: float, bold: bool = False, mono: bool = False) -> float:
    """About, and rather too much: fonts differ."""
    if mono:
        return 0.61 * size * len(words)
    wide = sum(0.36 if letter in NARROW else 0.86 if letter in WIDE else 0.6 for letter in words)
    return wide * size * (1.06 if bold else 1)


class Drawing:
    """What is drawn later lies above."""

    def __init__(self, height: float, title: str, description: str, width: float = WIDTH):
        self.width, self.height, self.title, self.description = width, height, title, description
        self._parts: list[str] = []

    # --- Words --------------------------------------------------------------------------------------------------------

    def text(self, x: float, y: float, words: str, *, size: float = 13, color: str = "ink", at: str = "start",
             bold: bool = False, italic: bool = False, mono: bool = False) -> None:
        """One line; y is where the letters stand. `at` is start, middle or end: what of the words is at x."""
        least = SMALLEST * self.width / SHOWN_AT
        if size < least:
            raise ValueError(f"{words!r} has size {size:g}: {least:.3g} at least can be read on a phone")
        long = width_of(words, size, bold, mono)
        left = x - {"start": 0.0, "middle": long / 2, "end": long}[at]
        if left < 0 or left + long > self.width or y - size < 0 or y > self.height:
            raise ValueError(f"{words!r} leaves the picture: it takes x from {left:.0f} to {left + long:.0f} of "
                             f"{self.width:g}, y from {y - size:.0f} to {y:.0f} of {self.height:g}")
        style = [f'font-size="{short(size)}"', *([] if at == "start" else [f'text-anchor="{at}"']),
                 *(['font-weight="bold"'] if bold else []), *(['font-style="italic"'] if italic else []),
                 *(['class="m"'] if mono else []), *([] if color == "ink" else [self._fill(color)])]
        self._parts.append(f'<text x="{short(x)}" y="{short(y)}" {" ".join(style)}>{escape(words, False)}</text>')

    def lines(self, x: float, y: float, words: Sequence[str], *, size: float = 13, color: str = "ink",
              at: str = "start", spacing: float = 1.3) -> None:
        for number, line in enumerate(words):
            self.text(x, y + number * spacing * size, line, size=size, color=color, at=at)

    # --- Shapes -------------------------------------------------------------------------------------------------------

    def box(self, x: float, y: float, width: float, height: float, color: str = "empty", words: str = "", *,
            pale: bool = False, dashed: bool = False, frame: bool = True, size: float = 13, bold: bool = False,
            mono: bool = False, edge: str = "") -> None:
        """A rectangle with words in its middle: in the page's colour on a full colour, else in ink. color="none" is a
        frame alone. The frame has the rectangle's colour, or that of `edge`."""
        fill = 'fill="none"' if color == "none" else self._fill(f"{color}-pale" if pale else color)
        edge = edge or (color if color in COLORS else "line")
        stroke = f' stroke="var(--{edge})"' + (' stroke-dasharray="4 3"' if dashed else "") if frame else ""
        self._parts.append(f'<rect x="{short(x)}" y="{short(y)}" width="{short(width)}" '
                           f'height="{short(height)}" rx="2" {fill}{stroke}/>')
        if words:
            on = "page" if color in COLORS and not pale else "ink"
            self.text(x + width / 2, y + height / 2 + 0.36 * size, words, size=size, color=on, at="middle", bold=bold,
                      mono=mono)

    def boxes(self, rectangles: Sequence[tuple[float, float, float, float]], color: str, *, pale: bool = False,
              strength: float = 1) -> None:
        """Many without frames, of one colour, each as (x, y, width, height); a height below 0 goes up."""
        way = "".join(f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h{short(-width)}z"
                      for x, y, width, height in rectangles)
        faint = "" if strength == 1 else f' fill-opacity="{short(strength)}"'
        self._parts.append(f'<path d="{way}" {self._fill(f"{color}-pale" if pale else color)}{faint}/>')

    def cells(self, x: float, y: float, columns: int, rows: int, size: "float | Point",
              color: "str | Callable[[int, int], str]" = "empty",
              words: "Callable[[int, int], str] | None" = None, *, gap: float = 1, font: float = 13,
              mono: bool = False) -> None:
        """A grid. `size` is a cell's, or its (width, height), with the gap; color(column, row) is a colour's name, with
        -pale behind it or not; words(column, row) what stands in the cell."""
        wide, high = size if isinstance(size, tuple) else (size, size)
        for row in range(rows):
            for column in range(columns):
                name = color if isinstance(color, str) else color(column, row)
                kind, pale = name.removesuffix("-pale"), name.endswith("-pale")
                self.box(x + column * wide + gap / 2, y + row * high + gap / 2, wide - gap, high - gap, kind,
                         words(column, row) if words else "", pale=pale, size=font, mono=mono)

    def line(self, *points: Point, color: str = "line", width: float = 1.2, dashed: bool = False) -> None:
        way = "".join(f"{'L' if place else 'M'}{short(x)} {short(y)}" for place, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(f'<path d="{way}" fill="none" stroke="var(--{color})" stroke-width="{short(width)}"'
                           f'{dash}/>')

    def area(self, *points: Point, color: str, pale: bool = True) -> None:
        """A filled polygon without a frame."""
        way = "".join(f"{'L' if place else 'M'}{short(x)} {short(y)}" for place, (x, y) in enumerate(points))
        self._parts.append(f'<path d="{way}z" {self._fill(f"{color}-pale" if pale else color)}/>')

    def arrow(self, *points: Point, color: str = "ink", width: float = 1.5, dashed: bool = False,
              both: bool = False) -> None:
        """Along the points; its tip is at the last one, and with both=True another at the first."""
        (x, y), (before_x, before_y) = points[-1], points[-2]
        self.line(*points, color=color, width=width, dashed=dashed)
        self._tip(x, y, x - before_x, y - before_y, color)
        if both:
            (x, y), (next_x, next_y) = points[0], points[1]
            self._tip(x, y, x - next_x, y - next_y, color)

    def _tip(self, x: float, y: float, dx: float, dy: float, color: str) -> None:
        long = (dx * dx + dy * dy) ** 0.5 or 1.0
        dx, dy = 7 * dx / long, 7 * dy / long
        wings = [(x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)]
        way = "L".join(f"{short(one)} {short(other)}" for one, other in [(x, y), *wings])
        self._parts.append(f'<path d="M{way}z" {self._fill(color)}/>')

    def bracket(self, x: float, y: float, length: float, words: str = "", *, side: str = "below", size: float = 13,
                color: str = "note") -> None:
        """Embraces what lies from (x, y) on: to the right (side below or above) or downwards (side left or right)."""
        out = 5 if side in ("below", "right") else -5
        if side in ("below", "above"):
            self.line((x, y), (x, y + out), (x + length, y + out), (x + length, y), color=color)
            if words:
                self.text(x + length / 2, y + out + (size + 1 if out > 0 else -4), words, size=size, color=color,
                          at="middle")
        else:
            self.line((x, y), (x + out, y), (x + out, y + length), (x, y + length), color=color)
            if words:
                self.text(x + out + out, y + length / 2 + 0.36 * size, words, size=size, color=color,
                          at="start" if out > 0 else "end")

    # --- The file -----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        wide, high = short(self.width), short(self.height)
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
                f'width="{short(NATURAL * self.width)}" height="{short(NATURAL * self.height)}" role="img" '
                'aria-labelledby="title desc" fill="var(--ink)">')
        return "\n".join([head, f'<title id="title">{escape(self.title, False)}</title>',
                          f'<desc id="desc">{escape(self.description, False)}</desc>', f"<style>{self.style()}</style>",
                          f'<rect width="{wide}" height="{high}" rx="8" fill="var(--page)"/>', *self._parts,
                          "</svg>", ""])

    def style(self) -> str:
        def variables(index: int) -> str:
            inks = {name: pair[index] for name, pair in INKS.items()}
            full = {name: values[index] for name, values in COLORS.items()}
            pale = {f"{name}-pale": values[2 + index] for name, values in COLORS.items()}
            return "".join(f"--{name}:{value};" for name, value in {**inks, **full, **pale}.items())

        return (f"svg{{{variables(0)}}}@media (prefers-color-scheme:dark){{svg{{{variables(1)}}}}}"
                f"text{{font-family:{FONT}}}.m{{font-family:{MONO}}}")

    @staticmethod
    def _fill(color: str) -> str:
        if color.removesuffix("-pale") not in {**INKS, **COLORS}:
            raise ValueError(f"there is no colour {color}: there are {', '.join([*INKS, *COLORS])}")
        return f'fill="var(--{color})"'
