"""The command line: finds the command, parses its words, and turns every failure into one line and an exit status.

A command is a file in common/tools/commands: its docstring's first line is its help, `add_arguments(parser)` its
flags, `run(arguments)` its work; it returns the exit status or raises Failure. Only the chosen command is imported.
`passes_on(flag)`, if it is there, says which unknown flags are meant for the chapters' programs; they come as
arguments.passed_on. `read(words)`, if it is there, first writes the words as argparse wants them. What follows -- is
for the user's own program: it comes as arguments.after, to a command that has TAKES_WORDS_AFTER.
"""

import argparse
import difflib
import importlib
import os
import re
import signal
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import NoReturn

from tools.base import Failure, columns, complain, in_columns, in_words, say
from tools.commands import GROUPS, Group, group_of, help_lines, spoken

WELCOME = "From the obvious attention kernel to FlashAttention-2, one optimization at a time."
START = "Start with: ./workbook run; to learn, with ./workbook start"


class _Help(argparse.RawDescriptionHelpFormatter):
    """The text of a command keeps its paragraphs. On a terminal they are as wide as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if columns() == sys.maxsize:
            return super()._fill_text(text, width, indent)
        paragraphs = re.sub(r"(?<=\S)\n(?=\S)", " ", text.strip("\n"))
        return super()._fill_text(in_columns(paragraphs, columns()), width, indent)


class _Parser(argparse.ArgumentParser):
    """argparse, but what is wrong fits on one line."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            message = f"unknown argument {unknown[1]}{_perhaps(unknown[1].split('=')[0], flags)}"
        raise Failure(f"{message} (see {self.prog} --help)", status=2)


def _perhaps(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _front_page() -> str:
    parts = ["usage: ./workbook COMMAND ...", WELCOME]
    for group in GROUPS:
        if group.word:
            parts.append(f"  {group.word:<10}{group.title}: ./workbook {group.word} --help lists these commands")
        elif group.present():
            parts.append(_listed(group))
    return "\n\n".join([*parts, f"./workbook COMMAND --help says every flag. {START}"])


def _page_of(group: Group) -> str:
    where = f"./workbook {group.word} COMMAND"
    return "\n\n".join([f"usage: {where} ...", _listed(group), f"{where} --help says every flag."])


def _listed(group: Group) -> str:
    return "\n".join([f"{group.title}:", *(f"  {name:<10}{line}" for name, line in help_lines(group).items())])


def _chosen(words: list[str]) -> "tuple[str | None, list[str]]":
    """(the command, the words after it); None if a page of help has been printed."""
    within = next((group for group in GROUPS if group.word and words[:1] == [group.word]), None)
    rest = words[1:] if within else words
    if not rest or rest[0] in ("-h", "--help"):
        say(_page_of(within) if within else _front_page())
        return None, rest
    where = f"./workbook {within.word} --help" if within else "./workbook --help"
    if rest[0].startswith("-"):
        raise Failure(f"unknown argument {rest[0]} (see {where})", status=2)
    group = group_of(rest[0])
    if group is None:
        among = [within] if within else [one for one in GROUPS if not one.word]
        names = [name for one in among for name in one.present()]
        names += [] if within else [one.word for one in GROUPS if one.word]
        perhaps = _perhaps(rest[0], names)
        raise Failure(f"unknown command {rest[0]}{perhaps} (see {where}: {', '.join(names)})", status=2)
    if group.word != (within.word if within else ""):
        raise Failure(f"{rest[0]} is {'now ' if group.word else ''}{spoken(rest[0])}", status=2)
    return rest[0], rest[1:]


def _parse(name: str, words: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    command = importlib.import_module(f"tools.commands.{name}")
    parser = _Parser(prog=spoken(name), description=command.__doc__, allow_abbrev=False,
                     formatter_class=_Help)
    command.add_arguments(parser)
    words, after = _split(words)
    arguments, unknown = parser.parse_known_args(_joined(getattr(command, "read", list)(words)))
    arguments.after = after
    if after and not getattr(command, "TAKES_WORDS_AFTER", False):
        parser.error(f"nothing can follow -- here, and {after[0]} does")
    passes_on = getattr(command, "passes_on", lambda flag: False)
    arguments.passed_on = [flag for flag in unknown if passes_on(flag)]
    for flag in unknown:
        if not passes_on(flag):
            parser.error(f"unrecognized arguments: {flag}")
    return command, arguments


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """(those before --, those after it)"""
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1:]


def _joined(words: list[str]) -> list[str]:
    """--window -1,0 as --window=-1,0: argparse takes what begins with - and is no number for a flag."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-\d", word) and joined and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _terminated(*_: object) -> None:
    """Ends what is running, as Ctrl-C does. Later signals are ignored."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(words: list[str]) -> int:
    for one in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) != signal.SIG_IGN:  # nohup
            signal.signal(one, _terminated)
    try:
        if sys.stdout is None:  # ./workbook list >&-
            raise Failure("standard output is closed: nothing can be printed", status=2)
        name, rest = _chosen(words)
        if name is None:
            return 0 if rest else 2
        command, arguments = _parse(name, rest)
        return command.run(arguments) or 0
    except Failure as failure:
        complain(f"workbook: {failure}")
        return failure.status
    except KeyboardInterrupt:
        complain("workbook: stopped")
        return 130
    except BrokenPipeError:  # the reader has seen enough: ./workbook list | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        complain(f"workbook: {in_words(error)}")
        return 1
