"""The command line: finds the commands, parses, and turns every way of failing into one line and an exit status.

A command is a file in common/tools/commands: its docstring's first line is its help, `add_arguments(parser)` its
flags, `run(arguments)` its work; it returns the exit status or raises Failure. `passes_on(flag)`, if it is there, says
which unknown flags are meant for the chapters' programs; they come as arguments.passed_on. What follows -- is for the
user's own program: it comes as arguments.after, to a command that has TAKES_WORDS_AFTER.
"""

import argparse
import difflib
import importlib
import os
import pkgutil
import re
import signal
import sys

from tools import commands
from tools.base import Failure


def known_commands() -> dict:
    """name -> module, for every file of common/tools/commands."""
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    return {name: importlib.import_module(f"tools.commands.{name}") for name in names}


class _Parser(argparse.ArgumentParser):
    """argparse, but what is wrong fits on one line."""

    def error(self, message: str):
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            message = f"unknown argument {unknown[1]}{_perhaps(unknown[1].split('=')[0], flags)}"
        raise Failure(f"{message} (see {self.prog} --help)", status=2)


def _perhaps(word: str, choices) -> str:
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _parse(words: list):
    available = known_commands()
    front = _Parser(
        prog="workbook",
        description="From the obvious attention kernel to FlashAttention-2, one optimization at a time.",
        epilog="Start with: ./workbook run",
        allow_abbrev=False,
    )
    subparsers = front.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {}
    for name, module in available.items():
        first_line, _, _ = module.__doc__.partition("\n")
        parsers[name] = subparsers.add_parser(
            name, help=first_line, description=module.__doc__, allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(parsers[name])

    if words and not words[0].startswith("-") and words[0] not in available:
        raise Failure(
            f"unknown command {words[0]}{_perhaps(words[0], available)} (commands: {', '.join(available)})", status=2
        )
    if not words:
        front.print_help()
        raise SystemExit(2)
    words, after = _split(words)
    arguments, unknown = front.parse_known_args(words)
    command = available[arguments.command]
    arguments.after = after
    if after and not getattr(command, "TAKES_WORDS_AFTER", False):
        parsers[arguments.command].error(f"nothing can follow -- here, and {after[0]} does")
    passes_on = getattr(command, "passes_on", lambda flag: False)
    arguments.passed_on = [flag for flag in unknown if passes_on(flag)]
    for flag in unknown:
        if not passes_on(flag):
            parsers[arguments.command].error(f"unrecognized arguments: {flag}")
    return command, arguments


def _split(words: list) -> tuple:
    """(those before --, those after it)"""
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1:]


def _terminated(*_):
    raise KeyboardInterrupt


def main(words: list) -> int:
    signal.signal(signal.SIGTERM, _terminated)
    try:
        command, arguments = _parse(words)
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
