"""Starting other programs, following their output, and taking them along when the user stops us."""

import contextlib
import os
import subprocess


@contextlib.contextmanager
def started(command: list, **options):
    """subprocess.Popen in `with`, which on the way out (Ctrl-C, an error) does not leave the child behind."""
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout:
            process.stdout.close()


def follow(command: list, log, on_line, cwd=None, environment=None) -> int:
    """Runs the command, writes stdout and stderr to the open text file `log`, and hands each line to on_line.

    Returns the exit status.
    """
    with started(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout:
            log.write(line)
            log.flush()
            on_line(line.rstrip("\n"))
        return process.wait()


def output_of(command: list, timeout: float = 20) -> "str | None":
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


def answer_of(command: list) -> tuple:
    """(exit status, what it prints, the last line of what it complains)"""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        output, errors = process.communicate()
    lines = errors.strip().splitlines() or [f"{os.path.basename(command[0])} ended with status {process.returncode}"]
    return process.returncode, output, lines[-1]


def with_python_path(*directories) -> dict:
    """The environment in which Python finds modules in these directories before those where the user has it look."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, directories), *filter(None, [os.environ.get("PYTHONPATH")])])}
