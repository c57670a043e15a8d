"""Starting other programs, following their output, reading what they print, and ending them when the user stops us."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from tools.base.annotations import Command
from tools.base.failure import Failure

PATIENCE = 10.0  # seconds that programs have to end in, once they are asked to


@contextlib.contextmanager
def started(command: Command, own_session: bool = True, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """subprocess.Popen in `with`, which ends the child and all its descendants on the way out (Ctrl-C, an error).

    To be found, these have a session of their own. (Not so below sudo, which knows its user by the terminal.)
    """
    process = subprocess.Popen([str(part) for part in command], start_new_session=own_session,
                               **{"stdin": subprocess.DEVNULL, **options})
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process)
        if process.stdout:
            process.stdout.close()


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the process and its session, by force if need be. A build's compilers are in process groups of
    their own, and go on if only CMake is ended."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        process.send_signal(ending)
        for member in _session(process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, ending)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None or any(_session(process.pid)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)


def _session(leader: int) -> Iterator[int]:
    """The processes of the leader's session that have not ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(session) == leader and state not in "ZX":
            yield int(path.parent.name)


def follow(command: Command, log: TextIO, on_line: Callable[[str], object], cwd: "Path | None" = None,
           environment: "Mapping[str, str] | None" = None, own_session: bool = True) -> int:
    """Runs the command, writes stdout and stderr to the open text file `log`, and hands each line to on_line.

    Returns the exit status.
    """
    with started(
        command,
        own_session,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            log.write(line)
            log.flush()
            on_line(line.rstrip("\n"))
        return process.wait()


def output_of(command: Command, timeout: float = 20) -> "str | None":
    """What the command prints, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def answer_of(command: Command) -> tuple[int, str, str]:
    """(exit status, what it prints, why it failed: the last line of what it complains)"""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        output, errors = process.communicate()
    words = (errors.strip().splitlines() or [""])[-1]
    if process.returncode < 0 or not words:
        words = (f"{os.path.basename(str(command[0]))} "
                 f"{ending_of(process.returncode)}{f' after: {words}' if words else ''}")
    return process.returncode, output, words


def ending_of(status: int) -> str:
    """How a program ended: "ended with status 3", "was killed by SIGSEGV"."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-status}"


def json_from(program: str, text: str) -> Any:
    """The JSON that the program printed; Failure if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{program} printed no JSON that can be read: {error}") from None


def with_python_path(*directories: Path) -> dict[str, str]:
    """The environment, with these directories first on Python's module path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, directories),
                                                         *filter(None, [os.environ.get("PYTHONPATH")])])}
