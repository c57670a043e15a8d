"""The command line: finds the command, parses its words, and turns every way of failing into one line and an exit status.

A command is a file in common/tools/commands: its docstring's first line is its help, `add_arguments(parser)` its
flags, `run(arguments)` its work; it returns the exit status or raises Failure. Only the chosen command is imported.
`passes_on(flag)`, if it is there, says which unknown flags are meant for the chapters' programs; they come as
arguments.passed_on. What follows -- is for the user's own program: it comes as arguments.after, to a command that has
TAKES_WORDS_AFTER.
"""

import argparse
import difflib
import importlib
import os
import re
import signal
import sys
from types import ModuleType
from typing import Iterable, List, Optional, Tuple

from tools.base import Failure
from tools.commands import GROUPS, Group, group_of, help_lines, spoken

WELCOME = "From the obvious attention kernel to FlashAttention-2, one optimization at a time."
START = "Start with: ./workbook run"


class _Parser(argparse.ArgumentParser):
    """argparse, but what is wrong fits on one line."""

    def error(self, message: str):
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            message = f"unknown argument {unknown[1]}{_perhaps(unknown[1].split('=')[0], flags)}"
        raise Failure(f"{message} (see {self.prog} --help)", status=2)


def _perhaps(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _help(of: Optional[Group] = None) -> str:
    """The front page, or that of one group."""
    parts = [] if of else [f"usage: ./workbook COMMAND ...\n\n{WELCOME}"]
    for group in [of] if of else GROUPS:
        if group.word and not of:
            lines = {group.word: f"{group.title}: ./workbook {group.word} --help lists these commands"}
        else:
            lines = help_lines(group)
        if of:
            parts.append(f"usage: ./workbook {group.word} COMMAND ...")
        title = f"{group.title}:\n" if of or not group.word else ""
        if lines:
            parts.append(title + "\n".join(f"  {name:<10}{line}" for name, line in lines.items()))
    end = "./workbook COMMAND --help says every flag." if not of else f"./workbook {of.word} COMMAND --help says every flag."
    return "\n\n".join([*parts, end if of else f"{end} {START}"])


def _chosen(words: List[str]) -> Tuple[Optional[str], List[str]]:
    """(the command, the words after it); None where only help was asked for, which then has been printed."""
    word = next((group.word for group in GROUPS if group.word and words[:1] == [group.word]), "")
    where = f"./workbook {word}".rstrip()
    among = [group for group in GROUPS if group.word == word]
    rest = words[1:] if word else words
    if not rest or rest[0] in ("-h", "--help"):
        print(_help(among[0] if word else None))
        return (None, rest)
    if rest[0].startswith("-"):
        raise Failure(f"unknown argument {rest[0]} (see {where} --help)", status=2)
    group = group_of(rest[0])
    if group and group.word != word:
        raise Failure(f"{rest[0]} is now {spoken(rest[0])}" if group.word else f"{rest[0]} is {spoken(rest[0])}", status=2)
    if not group:
        names = [name for one in among for name in one.present()]
        names += [one.word for one in GROUPS if one.word and not word]
        raise Failure(f"unknown command {rest[0]}{_perhaps(rest[0], names)} (see {where} --help: {', '.join(names)})", status=2)
    return rest[0], rest[1:]


def _parse(name: str, words: List[str]) -> Tuple[ModuleType, argparse.Namespace]:
    command = importlib.import_module(f"tools.commands.{name}")
    parser = _Parser(prog=spoken(name), description=command.__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_arguments(parser)
    words, after = _split(words)
    arguments, unknown = parser.parse_known_args(words)
    arguments.after = after
    if after and not getattr(command, "TAKES_WORDS_AFTER", False):
        parser.error(f"nothing can follow -- here, and {after[0]} does")
    passes_on = getattr(command, "passes_on", lambda flag: False)
    arguments.passed_on = [flag for flag in unknown if passes_on(flag)]
    for flag in unknown:
        if not passes_on(flag):
            parser.error(f"unrecognized arguments: {flag}")
    return command, arguments


def _split(words: List[str]) -> Tuple[List[str], List[str]]:
    """(those before --, those after it)"""
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1:]


def _terminated(*_: object) -> None:
    raise KeyboardInterrupt


def main(words: List[str]) -> int:
    signal.signal(signal.SIGTERM, _terminated)
    try:
        name, rest = _chosen(words)
        if name is None:
            return 0 if rest else 2
        command, arguments = _parse(name, rest)
        return command.run(arguments) or 0
    except Failure as failure:
        print(f"workbook: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        print("workbook: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough: ./workbook list | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # no permission, no space: it names the file
        print(f"workbook: {error}", file=sys.stderr)
        return 1
