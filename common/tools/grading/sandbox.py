"""Runs a compiler on what a student has written: as another user, without network, with limits on time, memory and
files, in a root directory that has what it needs and no other file (compiler_root.py). (Of what it makes nothing runs
here but, where a GPU times it, kernels that need the driver: kernels.py has a stronger place for all others.)

What a machine offers differs. Root can change a program's root directory and user everywhere, also in a container;
whoever is not root needs namespaces for that. Where bubblewrap works, what is seen can only be read. Limits of the
kernel (prlimit) hold everywhere. `held` finds out, by trying, what really holds, and every result says so.
"""

import contextlib
import ctypes
import functools
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.base import Command, Failure, JsonObject, shown

CHROOT = shutil.which("chroot") or "/usr/sbin/chroot"
MADE = "made"  # below a compiler's root directory: what it can write to
OTHER_FILES = "other files"  # what `held` calls those of instructors and students, and all others but the compiler's
FIRST_USER = 61000  # no user of this number has files
MEMORY = 4 * 1024**3
MOST_OUTPUT = 1024 * 1024
_PROCESSES = 64
_MOST_SANDBOXES = 1000
_FOR_EVERYBODY = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
_PR_SET_CHILD_SUBREAPER = 36  # of <sys/prctl.h>
_BUBBLEWRAP = [shutil.which("bwrap") or "bwrap", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
               "--die-with-parent"]


@dataclass(frozen=True)
class Done:
    status: int  # negative: the signal's number
    output: str
    stopped: str = ""  # why it was stopped: time, output


@dataclass(frozen=True)
class Limits:
    seconds: float
    memory: int = MEMORY
    file_bytes: int = 1024 * 1024
    processes: int = _PROCESSES


class Sandbox:
    """Runs programs as other users. No two sandboxes on a machine have the same users at a time."""

    def __init__(self) -> None:
        self._first_user = os.geteuid()
        if os.geteuid() == 0:
            name, self._first_user = _free_users()
            weakref.finalize(self, name.close)
        _adopt()

    def user(self, number: int = 0) -> int:
        """Of three: who compiles, whose kernels run, who judges. Ourselves, if we cannot choose."""
        return self._first_user + number if os.geteuid() == 0 else os.geteuid()

    def own(self, directory: Path) -> None:
        """Gives a directory to the user who compiles, and to nobody else."""
        directory.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(directory, self.user(), self.user())

    def show_to_judge(self, directory: Path) -> None:
        """Nobody else may enter the directory any more."""
        if os.geteuid() == 0:
            os.chown(directory, 0, self.user(2))
        directory.chmod(0o750)

    def as_judge(self) -> dict[str, Any]:
        """For Popen."""
        return {"user": self.user(2), "group": self.user(2), "extra_groups": []} if os.geteuid() == 0 else {}

    def end_all(self, number: int) -> None:
        """Ends whatever runs as this user, and removes what it has left; nothing if that is who we are."""
        user = self.user(number)
        if user == os.geteuid():
            return
        while left := _processes_of(user):
            for one in left:
                ours = _parent_of(one) == os.getpid()  # whoever started it has gone
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(one, 0 if ours else os.WNOHANG)
        for path in left_by(user):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for how, key in _shared_by(user):
            subprocess.run(["ipcrm", how, key], capture_output=True, user=user, group=user, extra_groups=[])

    def run(self, command: Command, limits: Limits, environment: dict[str, str], cwd: Path = Path("/"),
            writable: tuple[Path, ...] = ()) -> Done:
        with self.started(command, limits, environment, cwd, writable) as process:
            output, stopped = read_output(process, limits.seconds)
        return Done(ended(process), output.decode(errors="replace"), stopped)

    def run_within(self, root: Path, command: Command, limits: Limits, environment: dict[str, str]) -> Done:
        """With `root` as its root directory, below which all paths of the command are, and MADE there as what it may
        write; where it cannot have one, it sees what is there."""
        walls = self._walls_of(root)
        if walls is None:
            return self.run(command, limits, environment, cwd=root, writable=(root / MADE,))
        inside = [str(word).replace(f"{root}/", "/") for word in command]
        environment = {name: value.replace(f"{root}/", "/") for name, value in environment.items()}
        with self._started([*_limits(limits, os.geteuid() == 0), *walls, *inside], environment) as process:
            output, stopped = read_output(process, limits.seconds)
        return Done(ended(process), output.decode(errors="replace"), stopped)

    def started(self, command: Command, limits: Limits, environment: dict[str, str], cwd: Path = Path("/"),
                writable: tuple[Path, ...] = (), devices: tuple[str, ...] = (), stdin: int = subprocess.DEVNULL,
                stdout: int = subprocess.PIPE) -> "contextlib.AbstractContextManager[subprocess.Popen[bytes]]":
        """The process, which is ended with all that it has started when this is left."""
        words = [*_behind_walls(self._user(), cwd, writable, devices), *_limits(limits, os.geteuid() == 0),
                 *map(str, command)]
        return self._started(words, environment, cwd, stdin, stdout)

    @contextlib.contextmanager
    def _started(self, words: list[str], environment: dict[str, str], cwd: Path = Path("/"),
                 stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(words, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.end_all(0)

    def _user(self) -> list[str]:
        program = shutil.which("setpriv")
        if os.geteuid() != 0 or not program:
            return []
        user = str(self.user())
        return [program, "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs", "--inh-caps=-all",
                "--bounding-set=-all"]

    def _walls_of(self, root: Path) -> "list[str] | None":
        """The words before a command that make this its root directory, take away network and other processes as far
        as that can be, and make it another user's; None if the root directory cannot be changed here."""
        apart, own = ["--net", "--pid", "--ipc", "--fork", "--kill-child"], ["--user", "--map-current-user"]
        user = self._user()
        # There Ubuntu 22.04's setpriv, which wants /proc, does not work.
        into = [CHROOT, f"--userspec={self.user()}:{self.user()}", "--groups="]
        bubblewrap = [*_BUBBLEWRAP, *_as_root(), "--ro-bind", str(root), "/", "--bind", str(root / MADE), f"/{MADE}"]
        ways = [[*bubblewrap, *([*into, "/"] if user else [])]] if _bubblewrap() else []
        for names in (apart, ["--net"], []):
            if user:
                ways += [["setpriv", "--no-new-privs", "--inh-caps=-all", "unshare", *names, *into, str(root)]]
            ways += [[*user, "unshare", *own, *names, "--root", str(root), "--wd", "/"]]
        return next((words for words in ways if _works(*words)), None)

    def require_entry(self, tree: Path) -> None:
        """Failure if the sandbox's users cannot reach the tree."""
        closed = next((parent for parent in reversed(tree.resolve().parents) if _is_closed(parent)), None)
        if closed:
            raise Failure(f"nothing can be run in {shown(tree)} as another user, who may not enter {closed}: "
                          f"chmod o+x {closed}")

    def held(self, root: Path, probe: Path) -> JsonObject:
        """Which limits really hold for a compiler with this root directory: found by trying, with a program there."""
        with socket.socket() as listener, tempfile.TemporaryDirectory() as outside:
            os.chmod(outside, 0o777 if os.geteuid() != 0 else 0o755)
            secret = Path(outside) / "of somebody else"
            secret.write_text("")
            secret.chmod(0o644)
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            done = self.run_within(root, [probe, str(listener.getsockname()[1]), outside, secret], Limits(20),
                                   _environment())
        try:
            found = json.loads(done.output)
        except ValueError:
            return {"runs": False, "why": done.output.strip()[-200:]}
        return {"runs": True, "bubblewrap": _bubblewrap(), "user": "its own" if found["user"] != os.geteuid()
                else "not its own", "network": "none" if not found["network"] else "not limited",
                "files": "not limited" if found["writes"] else "read only" if not found["temporary"] else
                         f"read only, but any number in {', '.join(found['temporary'])}",
                "processes": f"at most {found['processes']}" if found["processes"] > 0 else "not limited",
                "others": "not seen" if found["alone"] else "seen",
                OTHER_FILES: "seen" if found["reads"] else "not seen",
                "memory": f"at most {found['memory'] // 1024**2} MiB" if found["memory"] > 0 else "not limited"}


def python() -> str:
    """A Python that every user may start: ours may lie in somebody's home."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@functools.cache
def _works(*command: str) -> bool:
    try:
        return subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _bubblewrap() -> bool:
    return _works(*_wrapped())


def _wrapped(cwd: Path = Path("/"), writable: tuple[Path, ...] = (), devices: tuple[str, ...] = ()) -> list[str]:
    """The system's programs and libraries, to be read; the directory; what may be written; and no other file."""
    places: "list[tuple[str, Path | str]]" = [("--ro-bind", place) for place in _of_the_system()]
    places += [("--ro-bind", cwd)] if cwd != Path("/") else []
    places += [*(("--bind", place) for place in writable), *(("--dev-bind", device) for device in devices)]
    above = dict.fromkeys(parent for _, place in places for parent in reversed(Path(place).parents)
                          if parent != Path("/") and parent != Path("/dev"))
    # Otherwise only root could enter these directories.
    binds = [str(word) for parent in above for word in ("--perms", "0755", "--dir", parent)]
    binds += ["--dev", "/dev", "--proc", "/proc"]
    binds += [str(word) for how, place in places for word in (how, place, place)]
    binds += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*_BUBBLEWRAP, *_as_root(), *binds]


def _as_root() -> list[str]:
    """What bubblewrap leaves to root, who then becomes another user."""
    return ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add",
            "CAP_SETPCAP"] if os.geteuid() == 0 else []


def _of_the_system() -> list[str]:
    """Where programs and libraries are, a compiler of the user's own among them."""
    found = [place for place in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")
             if os.path.isdir(place)]
    homes = [Path(path).resolve().parent.parent for name in (os.environ.get("CXX") or "g++", "nvcc")
             if (path := shutil.which(name))]
    homes += [Path(os.environ[name]).resolve() for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return [*found, *(str(home) for home in dict.fromkeys(homes) if home.is_dir() and home != Path("/")
                      and not any(Path(place) in (home, *home.parents) for place in found))]


def _is_closed(directory: Path) -> bool:
    """Whether the sandbox's user may not enter the directory."""
    return os.geteuid() == 0 and directory.exists() and not directory.stat().st_mode & stat.S_IXOTH


def _free_users() -> tuple[socket.socket, int]:
    """(what keeps others from having the same until it is closed, the first of three users that nobody has)"""
    for user in range(FIRST_USER, FIRST_USER + 3 * _MOST_SANDBOXES, 3):
        name = socket.socket(socket.AF_UNIX)
        try:
            # A name without a file is free again when its process has ended.
            name.bind(f"\0workbook.sandbox.{user}")
            return name, user
        except OSError:
            name.close()
    raise Failure(f"{_MOST_SANDBOXES} sandboxes are at work on this machine already")


def _behind_walls(user: list[str], cwd: Path, writable: tuple[Path, ...], devices: tuple[str, ...]) -> list[str]:
    """The words before a command that take away network, other processes and, with bubblewrap, files; and those that
    make it another user's. Whoever may not have namespaces, as root in many a container, can have them in a
    namespace of users, but has to be the other user before."""
    if _bubblewrap():
        return [*_wrapped(cwd, writable, devices), *user]
    apart, own = ["--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"], ["--user", "--map-current-user"]
    for names in (apart, ["--net"]):
        for walls in (["unshare", *names, *user], [*user, "unshare", *own, *names]):
            if _works(*walls):
                return [*walls, "sh", "-c", '"$@"; exit $?', "sh"]  # no signal ends the first process of a namespace
    return user


def _limits(limits: Limits, own_user: bool) -> list[str]:
    if not shutil.which("prlimit"):
        return []
    seconds = int(limits.seconds) * 4 + 1  # of all its threads together; the clock stops it before
    words = [f"--data={limits.memory}", f"--fsize={limits.file_bytes}", f"--cpu={seconds}", "--core=0", "--nofile=256"]
    return ["prlimit", *words, *([f"--nproc={limits.processes}"] if own_user else [])]


def own_program(command: Command, environment: dict[str, str], place: Path, seconds: float,
                pass_fds: tuple[int, ...] = (), **who: Any) -> Done:
    """What a program of the workbook's own answers, which has nothing of a submission's in it."""
    with subprocess.Popen(list(map(str, command)), cwd=place, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=pass_fds,
                          **who) as process:
        try:
            output, stopped = read_output(process, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return Done(process.wait() if not stopped else 0, output.decode(errors="replace"), stopped)


def read_output(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, str]:
    """(what it prints, why it has to be stopped)"""
    assert process.stdout is not None
    output, end, handle = b"", time.monotonic() + seconds, process.stdout.fileno()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return output, "time"
        if not select.select([handle], [], [], min(left, 1))[0]:
            if process.poll() is not None:  # it has ended, and left somebody behind who keeps the pipe open
                return output, ""
            continue
        more = os.read(handle, 65536)
        if not more:
            break
        output += more
        if len(output) > MOST_OUTPUT:
            return output[:MOST_OUTPUT], "output"
    try:
        process.wait(timeout=max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return output, "time"
    return output, ""


def ended(process: "subprocess.Popen[bytes]", patience: "float | None" = None) -> int:
    """Its status; negative: the signal's number, which a shell, and unshare, say otherwise."""
    status = process.wait(patience)
    return 128 - status if 128 < status < 192 else status


def left_by(user: int) -> list[Path]:
    """What this user has where everybody may write."""
    found = []
    for place in map(Path, _FOR_EVERYBODY):
        with contextlib.suppress(OSError):
            for path in place.iterdir():
                with contextlib.suppress(FileNotFoundError):  # somebody else's, who has removed it meanwhile
                    found += [path] if path.lstat().st_uid == user else []
    return found


def _shared_by(user: int) -> list[tuple[str, str]]:
    """(ipcrm's option, number) of what this user shares in System V's ways, where there is no namespace for that."""
    found = []
    for kind, how in (("shm", "-m"), ("msg", "-q"), ("sem", "-s")):
        with contextlib.suppress(OSError):
            names, *lines = [line.split() for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()]
            found += [(how, line[1]) for line in lines if line[names.index("uid")] == str(user)]
    return found


def _parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return 0


def _processes_of(user: int) -> list[int]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number = int(directory.name)
            if directory.stat().st_uid == user and ("\nState:\tZ" not in (directory / "status").read_text()
                                                    or _parent_of(number) == os.getpid()):
                found.append(number)
    return found


def _adopt() -> None:
    """Makes orphaned descendants our children from now on."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
