"""System packages: what is needed to build, installed where it is missing, and new enough."""

import glob
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass

from tools.base.failure import Failure
from tools.base.paths import BUILD, shown
from tools.base.processes import follow, output_of
from tools.base.terminal import Progress, say

LOWEST_CMAKE = (3, 25)
LOWEST_GXX = (12,)


@dataclass(frozen=True)
class Package:
    """A Debian package, and how to tell on any system whether its contents are installed."""

    name: str
    program: str = ""  # on the PATH
    files: tuple[str, ...] = ()  # patterns below an installation prefix such as /usr; one match is enough

    def present(self, prefixes: list[str]) -> bool:
        if self.program:
            return shutil.which(self.program) is not None
        return any(glob.glob(os.path.join(prefix, pattern)) for prefix in prefixes for pattern in self.files)


TOOLS = [Package("cmake", program="cmake"), Package("ninja-build", program="ninja"), Package("g++", program="g++")]
LIBRARIES = [
    Package("libeigen3-dev", files=("include/eigen3/Eigen/Core",)),
    Package("libgtest-dev", files=("include/gtest/gtest.h",)),
    Package("libbenchmark-dev", files=("include/benchmark/benchmark.h",)),
    Package("libcli11-dev", files=("include/CLI/CLI.hpp",)),
]
ENGINE_LIBRARIES = [  # which the preset cuda does without, and every preset where the engine has a switch of its own
    Package("libboost-context-dev", files=("lib*/libboost_context*.so", "lib/*/libboost_context*.so"))
] if platform.machine() not in ("x86_64", "AMD64") else []
RANKS = [  # of chapter 11; without them its program is one rank
    Package("libopenmpi-dev", files=("include/mpi.h", "include/*/mpi.h", "include/*/mpi/mpi.h",
                                     "lib/*/openmpi/include/mpi.h")),
    Package("openmpi-bin", program="mpirun"),
]
GRADING = [Package("libseccomp-dev", files=("include/seccomp.h",))]  # of what keeps a submission apart, one layer
COMPILER_CACHE = [Package("ccache", program="ccache")]  # of the tests that compile copies of the tree


def prefixes() -> list[str]:
    """The installation prefixes in which CMake's find_package looks."""
    chosen = re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", ""))
    return [prefix for prefix in chosen if prefix] + ["/usr", "/usr/local"]


def missing_packages(preset: str, where: "list[str] | None" = None) -> list[Package]:
    wanted = TOOLS + LIBRARIES + (ENGINE_LIBRARIES if preset != "cuda" else [])
    where = prefixes() if where is None else where
    return [package for package in wanted if not package.present(where)]


def require_packages(preset: str) -> None:
    """Installs what is missing, or says what the user must install. Does nothing if nothing is missing."""
    missing = missing_packages(preset)
    if missing:
        _install(missing)
    _install_if_possible(RANKS, "mpi", "Chapter 11 is built for one rank, without MPI")
    require_versions()


def require_versions() -> None:
    """Failure, in one line, if CMake or the compiler is too old."""
    _require_version("cmake", r"cmake version ([\d.]+)", LOWEST_CMAKE)
    if not os.environ.get("CXX"):
        _require_version("g++", r"\) (\d[\d.]*)", LOWEST_GXX)


def _install(missing: list[Package]) -> None:
    names = " ".join(package.name for package in missing)
    become_root = _become_root() if shutil.which("apt-get") else None
    if become_root is None:
        if shutil.which("git") and not any(package.program for package in missing):
            say(f"Missing: {names}. CMake will fetch and build them, which takes longer than installing them.")
            return
        how = f"run: sudo apt-get install {names}" if shutil.which("apt-get") else (
            "install them with this system's package manager (these are Debian's names)")
        raise Failure(f"missing packages: {names}; {how}")

    BUILD.mkdir(exist_ok=True)
    log_path = BUILD / "packages.log"
    say(f"Installing missing packages with apt-get{' (sudo)' if become_root else ''}: {names}")
    apt = [*become_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-o", "DPkg::Lock::Timeout=300"]
    with open(log_path, "w") as log, Progress("Installing packages") as progress:
        errors: list[str] = []

        def on_line(line: str) -> None:
            progress.show(line)
            if line.startswith("E:"):
                errors.append(line[2:].strip())

        # An update may fail for one source of many: whether the installation succeeds decides.
        follow([*apt, "update"], log, on_line, own_session=False)
        failed = follow([*apt, "install", "--no-install-recommends", *names.split()], log, on_line,
                        own_session=False)
    still = [package.name for package in missing if not package.present(prefixes())]
    if failed or still:
        reason = errors[-1] if errors else f"still missing afterwards: {' '.join(still)}"
        raise Failure(f"apt-get could not install {names}: {reason} (log: {shown(log_path)})")


def install_for_grading() -> None:
    """For ./workbook grade, and the tests of it."""
    _install_if_possible(GRADING, "seccomp", "Submissions are graded without a list of system calls (seccomp), which "
                                             "grading says in its results")


def install_compiler_cache() -> None:
    """For the tests that compile copies of the tree."""
    without = "Copies of the tree are compiled anew each time they are tested, without ccache"
    _install_if_possible(COMPILER_CACHE, "ccache", without)


def _install_if_possible(packages: list[Package], what: str, without: str) -> None:
    """Tries once: everything else works without them, and what does not is said."""
    missing, tried = [package for package in packages if not package.present(prefixes())], BUILD / f"without-{what}.txt"
    if not missing or tried.exists():
        return
    names = " ".join(package.name for package in missing)
    try:
        if shutil.which("apt-get") and _become_root() is not None:
            return _install(missing)
        why = f"this needs the packages {names}"
    except Failure as failure:
        why = str(failure)
    say(f"{without}: {why}. (With them, remove {shown(tried)}.)")
    BUILD.mkdir(exist_ok=True)
    tried.write_text(why)


def _become_root() -> "list[str] | None":
    """The words before a command that run it as root; None if we cannot become root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        if output_of(["sudo", "-n", "true"]) is not None:
            return ["sudo"]
        if sys.stdin.isatty():
            say("apt-get needs root: sudo may ask for your password.")
            if os.system("sudo -v") == 0:
                return ["sudo", "-n"]
    return None


def _require_version(program: str, pattern: str, lowest: tuple[int, ...]) -> None:
    version = version_of(program, pattern)
    if version and version < lowest:
        raise Failure(
            f"{program} {dotted(version)} ({shutil.which(program)}) is too old: install {dotted(lowest)} or later and "
            f"put it first on the PATH{', or name it in CXX' if program == 'g++' else ''}"
        )


def version_of(program: str, pattern: str) -> "tuple[int, ...] | None":
    """The version that the pattern finds in `program --version`: (12, 2, 0)."""
    found = re.search(pattern, output_of([program, "--version"]) or "")
    return tuple(int(part) for part in found[1].strip(".").split(".")) if found else None


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
