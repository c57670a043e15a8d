"""How long a lesson is, and what is in it: ./workbook dev lessons prints it, and a test holds the bounds.

**Unfolded** is what a reader meets who opens nothing: the page without what stands between <details> and </details>.

**A word** stands in a paragraph, a list, a quotation or a heading and has a letter or a digit in it. What is left out:
code (blocks; a span in a sentence is one word), tables, formulas ($$ and $), pictures with their alternative text,
comments, and the boxes of the exercises, which ./workbook dev report writes.

**A number of the prose** is a run of digits, with its point, its commas and its exponent, in the same words: 1.20,
57,056 and 64. Not counted are whole numbers below 10, which are read like words (the scores 1 and 3 of a small example,
2 of 1/2); digits of a name (fp16, H200, L2, code spans); a chapter's number (chapter 06, 10_hopper, 01 to 05); the
number of a question; and a date.

**A marker** is a comment that names a number's source or a table: `<!-- gain_over_04 -->`. Its share is of the
characters of the page. **A picture that explains** is any but those of common/results, which are plots of
measurements. **A formula** is a $$ block or a $ span.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.showing.book import CODE_SPAN, COMMENT, LINK
from tools.showing.lesson_numbers import FENCED, REFERENCE, TABLE

# The pages of a chapter that are its lesson. The others (in_depth.md, ..) may be as long as what they tell.
LESSON_PAGES = ("README.md", "backward.md", "packed.md", "blocks.md")
WORDS = 2200
LONG = {"06": 3000, "07": 3000, "08": 3000, "09": 3000, "10": 3000}  # chapters with more to tell, words a page
NUMBERS, PICTURES = 80, 3
MARKER_PERCENT, MARKER_CHARACTERS = 6.0, 50

_FOLD = re.compile(r"<details>.*?</details>", re.DOTALL)
_BOX = re.compile(r"^<!-- exercise \S+ -->\n.*?^<!-- /exercise -->\n", re.DOTALL | re.MULTILINE)
_FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?![\s$])[^$\n]+?(?<![\s\\])\$(?![\w$])", re.DOTALL)
_TABLE_ROW = re.compile(r"^[ >]*\|.*$", re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_TAG = re.compile(r"</?[a-z][^>\n]*>")
_ENUMERATOR = re.compile(r"^[ >]*\d+\. ", re.MULTILINE)
_WORD = re.compile(r"\S*\w\S*")
_CHAPTER = r"(?:0\d|1[0-3])"
_CHAPTERS = re.compile(rf"\b[Cc]hapters? \d+(?:(?:,| and| to| or|–) \d+)*|\b{_CHAPTER}[_./]\w+|\b0\d(?![.,]?\d)|"
                       rf"\b0\d to {_CHAPTER}\b|\b(?:19|20)\d\d-\d\d-\d\d\b")
_DATE = re.compile(r"\((?:19|20)\d\d\)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[,\u202f]\d{3})*(?:\.\d+)?(?:e[+−-]?\d+)?(?![\w])"
                     r"|(?<![\w.])\d+(?:[,\u202f]\d{3})*(?:\.\d+)?(?=[a-zµ%×°]|[¹²³⁴⁵⁶⁷⁸⁹⁰⁻])")


@dataclass(frozen=True)
class Measures:
    page: str
    unfolded: int  # words
    folded: int
    pictures: int  # that explain
    plots: int
    numbers: int  # in unfolded prose
    formulas: int
    marker_percent: float
    longest_marker: str

    def beyond_bounds(self, chapter: str) -> list[str]:
        """What is too much or too little, each with its bound."""
        most = LONG.get(chapter, WORDS)
        return [f"{self.page} {what}" for what, wrong in [
            (f"has {self.unfolded} words unfolded: {most} at most", self.unfolded > most),
            (f"has {self.folded} words folded, more than the {self.unfolded} unfolded", self.folded > self.unfolded),
            (f"has {self.numbers} numbers in unfolded prose: {NUMBERS} at most", self.numbers > NUMBERS),
            (f"has {self.pictures} pictures that explain: {PICTURES} at least", self.pictures < PICTURES),
            (f"is {self.marker_percent:.1f}% markers: less than {MARKER_PERCENT:g}%",
             self.marker_percent >= MARKER_PERCENT),
            (f"has a marker of {len(self.longest_marker)} characters, {self.longest_marker[:MARKER_CHARACTERS]}: "
             f"{MARKER_CHARACTERS} at most", len(self.longest_marker) > MARKER_CHARACTERS)] if wrong]


def prose(text: str) -> str:
    """The words of Markdown, as the docstring above says."""
    text = _BOX.sub("", FENCED.sub("", text))
    text = TABLE.sub("", text)
    text = COMMENT.sub("", text)
    text = _FORMULA.sub("", CODE_SPAN.sub("`code`", text))
    text = _PICTURE.sub("", text)
    text = _TABLE_ROW.sub("", text)
    text = LINK.sub(lambda link: link[2], text)
    return _TAG.sub("", text)


def numbers_in(words: str) -> list[str]:
    plain = _DATE.sub("", _CHAPTERS.sub("", _ENUMERATOR.sub("", words)))
    return [found[0] for found in _NUMBER.finditer(plain) if not re.fullmatch(r"\d", found[0])]


def markers(text: str) -> list[str]:
    """Of numbers, by their names or by their expressions, and of tables."""
    plain = FENCED.sub("", text)
    return [*REFERENCE.findall(plain), *re.findall(r"<!-- /?report\b.*?-->", plain)]


def measure(page: str, text: str) -> Measures:
    unfolded, folds = _FOLD.sub("", text), "\n\n".join(_FOLD.findall(text))
    words, plain, shown = prose(unfolded), FENCED.sub("", text), _PICTURE.findall(FENCED.sub("", unfolded))
    plots = sum("/results/" in picture for picture in shown)
    there = markers(text)
    return Measures(page, len(_WORD.findall(words)), len(_WORD.findall(prose(folds))), len(shown) - plots, plots,
                    len(numbers_in(words)), len(_FORMULA.findall(CODE_SPAN.sub("", COMMENT.sub("", plain)))),
                    100 * sum(map(len, there)) / max(len(text), 1), max(there, key=len, default=""))


def unfolded_numbers(text: str) -> list[str]:
    return numbers_in(prose(_FOLD.sub("", text)))


def lesson_pages(root: Path) -> list[Path]:
    return [path for chapter in sorted(root.glob("[0-9][0-9]_*/README.md")) for name in LESSON_PAGES
            if (path := chapter.with_name(name)).exists()]


def all_measures(root: Path) -> list[Measures]:
    return [measure(str(path.relative_to(root)), path.read_text()) for path in lesson_pages(root)]
