"""What this machine has: system packages (installed if they are missing), nvcc, a GPU."""

import glob
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.machine.errors import Failure
from tools.machine.paths import BUILD, shown
from tools.machine.processes import follow, output_of
from tools.machine.terminal import Progress, say

LOWEST_CMAKE = (3, 25)
LOWEST_GXX = (12,)
LOWEST_NVCC = (12, 4)


# --- System packages -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """A Debian package and how to see, on any system, that what it brings is there."""

    name: str
    program: str = ""  # on the PATH
    files: tuple = ()  # patterns below an installation prefix such as /usr; one match is enough

    def present(self, prefixes: list) -> bool:
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
ENGINE_LIBRARIES = [  # which the preset cuda does without
    Package("libboost-context-dev", files=("lib*/libboost_context*.so", "lib/*/libboost_context*.so"))
]
RANKS = [  # of chapter 11; without them its program is one rank
    Package("libopenmpi-dev", files=("include/mpi.h", "include/*/mpi.h", "include/*/mpi/mpi.h", "lib/*/openmpi/include/mpi.h")),
    Package("openmpi-bin", program="mpirun"),
]
COMPILER_CACHE = [Package("ccache", program="ccache")]  # of the tests that compile copies of the tree


def prefixes() -> list:
    """Where CMake's find_package looks, as far as it matters here."""
    chosen = re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", ""))
    return [prefix for prefix in chosen if prefix] + ["/usr", "/usr/local"]


def missing_packages(preset: str, where: "list | None" = None) -> list:
    wanted = TOOLS + LIBRARIES + (ENGINE_LIBRARIES if preset != "cuda" else [])
    where = prefixes() if where is None else where
    return [package for package in wanted if not package.present(where)]


def require_packages(preset: str) -> None:
    """Installs what is missing, or says what the user must install. Does nothing if nothing is missing."""
    missing = missing_packages(preset)
    if missing:
        _install(missing)
    _install_if_possible(RANKS, "mpi", "Chapter 11 is built for one rank, without MPI")
    _require_version("cmake", r"cmake version ([\d.]+)", LOWEST_CMAKE)
    if not os.environ.get("CXX"):
        _require_version("g++", r"\) (\d[\d.]*)", LOWEST_GXX)


def _install(missing: list) -> None:
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
        errors = []

        def on_line(line: str) -> None:
            progress.show(line)
            if line.startswith("E:"):
                errors.append(line[2:].strip())

        follow([*apt, "update"], log, on_line)  # may fail for one source of many: the installation decides
        failed = follow([*apt, "install", "--no-install-recommends", *names.split()], log, on_line)
    still = [package.name for package in missing if not package.present(prefixes())]
    if failed or still:
        reason = errors[-1] if errors else f"still missing afterwards: {' '.join(still)}"
        raise Failure(f"apt-get could not install {names}: {reason} (log: {shown(log_path)})")


def install_compiler_cache() -> None:
    """For the tests that compile copies of the tree."""
    _install_if_possible(COMPILER_CACHE, "ccache", "Copies of the tree are compiled anew each time they are tested, without ccache")


def _install_if_possible(packages: list, what: str, without: str) -> None:
    """Tries once: all else works without them, and what does not is said."""
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


def _become_root() -> "list | None":
    """What to put before a command to run it as root; None if that cannot be done from here."""
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


def _require_version(program: str, pattern: str, lowest: tuple) -> None:
    version = _version(program, pattern)
    if version and version < lowest:
        raise Failure(
            f"{program} {dotted(version)} ({shutil.which(program)}) is too old: install {dotted(lowest)} or later and "
            f"put it first on the PATH{', or name it in CXX' if program == 'g++' else ''}"
        )


def _version(program: str, pattern: str) -> "tuple | None":
    """What the pattern finds in `program --version`, as numbers: (12, 2, 0)."""
    found = re.search(pattern, output_of([program, "--version"]) or "")
    return tuple(int(part) for part in found[1].strip(".").split(".")) if found else None


def dotted(version: tuple) -> str:
    return ".".join(map(str, version))


# --- CUDA ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gpu:
    name: str  # "NVIDIA H200"
    driver: str


@dataclass(frozen=True)
class Nvcc:
    path: str
    version: tuple


def visible_gpu() -> str:
    """The index or the UUID of the GPU that programs will use, where CUDA_VISIBLE_DEVICES names some; else empty."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()


def find_gpu() -> "tuple[Gpu | None, str]":
    """The GPU that programs will use, if it answers, and an empty string; or None and why there is none."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None, "CUDA_VISIBLE_DEVICES hides every GPU"
    if not shutil.which("nvidia-smi"):
        return None, "no nvidia-smi"
    found = smi({"name": "name", "driver": "driver_version"})
    return (Gpu(**found), "") if found["name"] else (None, "nvidia-smi finds none")


# What a measurement says about the machine: name -> nvidia-smi's.
MACHINE = {"gpu": "name", "driver": "driver_version", "sm_clock_max_mhz": "clocks.max.sm", "power_limit_w": "power.limit"}
STATE = {"sm_clock_mhz": "clocks.sm", "memory_clock_mhz": "clocks.mem", "power_w": "power.draw",
         "temperature_c": "temperature.gpu"}


def machine(uuid: str = "") -> dict:
    """The GPU, its driver, its limits, and the CUDA toolkit that compiles for it."""
    nvcc = find_nvcc()
    return {**smi(MACHINE, uuid), "cuda": dotted(nvcc.version) if nvcc else None}


def machine_state(uuid: str = "") -> dict:
    """Its clocks, power and temperature now."""
    return smi(STATE, uuid)


def gpu_identity() -> "str | None":
    """Which of several alike it is: the first eight digits of its UUID."""
    uuid = smi({"uuid": "uuid"})["uuid"]
    return uuid and str(uuid).removeprefix("GPU-")[:8]


def smi(what: dict, uuid: str = "") -> dict:
    """{name: what nvidia-smi says} of that GPU, else of the one that programs will use: numbers where they are some, None for
    what it does not know."""
    uuid = uuid or visible_gpu()
    query = ["nvidia-smi", f"--query-gpu={','.join(what.values())}", "--format=csv,noheader,nounits"]
    lines = (uuid and output_of([*query, f"--id={uuid}"], timeout=60)) or output_of(query, timeout=60) or ""
    values = [value.strip() for value in (lines.splitlines() or [""])[0].split(",")]

    def number(text: str):
        try:
            return float(text)
        except ValueError:
            return text if text and not text.startswith("[") else None

    return {name: number(value) for name, value in zip(what, values + [""] * len(what))}


def find_nvcc() -> "Nvcc | None":
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]
    candidates = [os.environ.get("CUDACXX"), shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes)]
    for path in candidates:
        if path and Path(path).exists():
            version = _version(path, r"release ([\d.]+)")
            if version:
                return Nvcc(path, version)
    return None


@dataclass(frozen=True)
class Choice:
    preset: str
    why: str  # a sentence
    gpu: "Gpu | None" = None


def choose_preset(wanted: "str | None", gpu_and_reason=None, nvcc="look") -> Choice:
    """The preset to use: what the user wants, else `cuda` if a GPU answers and nvcc can build for it, else `cpu`."""
    gpu, no_gpu = gpu_and_reason or find_gpu()
    nvcc = find_nvcc() if nvcc == "look" else nvcc
    lowest = dotted(LOWEST_NVCC)
    if nvcc is None:
        no_nvcc = f"there is no nvcc on the PATH or in /usr/local/cuda (install the CUDA toolkit, {lowest} or later)"
    elif nvcc.version < LOWEST_NVCC:
        no_nvcc = f"nvcc {dotted(nvcc.version)} is too old (install the CUDA toolkit, {lowest} or later)"
    else:
        no_nvcc = ""

    if wanted == "cuda" and no_nvcc:
        raise Failure(f"preset cuda: {no_nvcc}")
    if wanted:
        why = "asked for with --preset" if gpu or wanted != "cuda" else f"no GPU answers: {no_gpu}"
        return Choice(wanted, why, gpu if wanted == "cuda" else None)
    if gpu and not no_nvcc:
        return Choice("cuda", f"{gpu.name} answers and nvcc {dotted(nvcc.version)} is here", gpu)
    if gpu:
        return Choice("cpu", f"{gpu.name} answers, but {no_nvcc}")
    return Choice("cpu", f"no GPU answers: {no_gpu}")


# --- Python ------------------------------------------------------------------------------------------------------------


def python_with(module: str) -> "str | None":
    """The interpreter to use: the first that has the module. WORKBOOK_PYTHON names it, if it is set."""
    named = os.environ.get("WORKBOOK_PYTHON")
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    for python in dict.fromkeys([named] if named else [sys.executable, "python3", "python", "/usr/bin/python3"]):
        if output_of([python, "-c", probe]) is not None:
            return python
    return None
