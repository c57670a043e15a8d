"""The commands of ./workbook, a file for each. Who uses which is said here alone; --help shows it, and
common/book/reference.md."""

import ast
from dataclasses import dataclass
from pathlib import Path

DIRECTORY = Path(__file__).parent


@dataclass(frozen=True)
class Group:
    title: str
    names: tuple[str, ...]
    word: str = ""  # stands between ./workbook and the command: ./workbook dev bench

    def present(self) -> list[str]:
        """Its commands that are in this tree: a student's tree lacks some."""
        return [name for name in self.names if (DIRECTORY / f"{name}.py").exists()]


GROUPS = (
    Group("for everybody", ("run", "test", "trace", "walk", "compare")),
    Group("for a learner", ("start", "next", "check", "hint", "reset", "list")),
    Group("for an instructor", ("handout", "grade")),
    Group("to change the workbook, and to measure it",
          ("bench", "peers", "accuracy", "profile", "verify", "machine", "measure", "report", "lessons", "book", "new",
           "counts", "mutants"), word="dev"),
)


def group_of(name: str) -> "Group | None":
    """The group of a command; None if this tree has no such command."""
    for group in GROUPS:  # a command has the name of Python's next()
        if name in group.present():
            return group
    return None


def spoken(name: str) -> str:
    """What the user types to call the command: ./workbook dev bench."""
    group = group_of(name)
    return " ".join(["./workbook", *([group.word] if group and group.word else []), name])


def help_lines(group: Group) -> dict[str, str]:
    """{command: the first line of its docstring}, read without importing it."""
    parsed = {name: ast.parse((DIRECTORY / f"{name}.py").read_text()) for name in group.present()}
    return {name: (ast.get_docstring(module) or "").partition("\n")[0] for name, module in parsed.items()}
