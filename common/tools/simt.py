"""The command `simt` of an engine that is installed by itself: `run` and `trace` of CUDA files."""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from tools.base import GPUS, Failure, complain, in_words
from tools.showing import traced_files
from tools.user_files import (
    add_file_arguments,
    add_no_races,
    files_of,
    goes_to_a_compiler,
    in_one_word,
    run_and_conclude,
)

DESCRIPTION = "CUDA programs on a machine without a GPU: compiled by g++ for an engine that finds their mistakes."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message} (see {self.prog} --help)", status=2)


def _parser(prefix: Path, version: str) -> argparse.ArgumentParser:
    parser = _Parser(prog="simt", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"simt {version}")
    parser.add_argument("--prefix", action="version", version=str(prefix),
                        help="where the engine lies: cmake -DCMAKE_PREFIX_PATH=$(simt --prefix) finds it")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, words, seconds in (("run", "compile the files and run their main", 0),
                                 ("trace", "the same; count accesses to memory by source line", traced_files.SECONDS)):
        command = commands.add_parser(name, help=words, description=words, allow_abbrev=False)
        command.add_argument("chapters", nargs="+", metavar="FILE.cu", help="CUDA C++ as nvcc takes it, and C++")
        if name == "trace":
            command.add_argument("--gpu", choices=GPUS, default="h200", help="to predict for (default: h200)")
            command.add_argument("--lines", type=int, default=8, metavar="N",
                                 help="source lines to show per kernel (default: 8)")
            command.add_argument("--json", action="store_true", help="print the counts as JSON instead")
        add_file_arguments(command, seconds)
        if name == "run":
            add_no_races(command)
    return parser


def main(prefix: Path, version: str, words: "list[str] | None" = None) -> int:
    """`prefix` is where the engine is installed."""
    words = sys.argv[1:] if words is None else words
    end = words.index("--") if "--" in words else len(words)
    try:
        parser = _parser(prefix, version)
        arguments, unknown = parser.parse_known_args(in_one_word(words[:end]))
        for flag in unknown:
            if not goes_to_a_compiler(flag):
                parser.error(f"unrecognized arguments: {flag}")
        arguments.passed_on = unknown
        arguments.after = words[end + 1:]
        if arguments.command is None:
            parser.print_help()
            return 2
        files = files_of(arguments, {}, traced_files.SECONDS if arguments.command == "trace" else 0)
        if files is None:
            raise Failure(f"{arguments.chapters[0]}: must be a CUDA file, as in mine.cu", status=2)
        if arguments.command == "trace":
            return traced_files.trace_files(files, GPUS[arguments.gpu], arguments.lines, arguments.json, prefix)
        return run_and_conclude(files, prefix)
    except Failure as failure:
        complain(f"simt: {failure}")
        return failure.status
    except OSError as error:
        complain(f"simt: {in_words(error)}")
        return 1
    except KeyboardInterrupt:
        return 130
