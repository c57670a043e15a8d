"""The commands of ./workbook, a file for each. Who uses which is said here alone; --help and the README show it."""

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
        """Its commands in this tree: a student's has not all of them."""
        return [name for name in self.names if (DIRECTORY / f"{name}.py").exists()]


GROUPS = (
    Group("for everybody", ("run", "test", "check", "hint", "reset", "list", "trace", "walk", "compare")),
    Group("for an instructor", ("handout", "grade")),
    Group("to change the workbook, and to measure it",
          ("bench", "peers", "accuracy", "profile", "verify", "machine", "measure", "report", "book", "new", "counts",
           "mutants"), word="dev"),
)


def group_of(name: str) -> "Group | None":
    """None if there is no such command here."""
    return next((group for group in GROUPS if name in group.present()), None)


def spoken(name: str) -> str:
    """How the command is called: ./workbook dev bench."""
    group = group_of(name)
    return " ".join(["./workbook", *([group.word] if group and group.word else []), name])


def help_lines(group: Group) -> dict[str, str]:
    """{command: the first line of its docstring}, read without importing it."""
    parsed = {name: ast.parse((DIRECTORY / f"{name}.py").read_text()) for name in group.present()}
    return {name: (ast.get_docstring(module) or "").partition("\n")[0] for name, module in parsed.items()}
