"""CUDA without a GPU: the commands simt and simt-compile, with the engine beside them."""

import os
import sys
from pathlib import Path

PREFIX = Path(__file__).resolve().parent
__version__ = "1.0.0"


def main() -> int:
    sys.path.insert(0, str(PREFIX / "share" / "simt" / "common"))
    from tools.simt import main as command

    return command(PREFIX, __version__)


def front() -> None:
    program = str(PREFIX / "bin" / "simt-compile")
    os.execv(program, [program, *sys.argv[1:]])
