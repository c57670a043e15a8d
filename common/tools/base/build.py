"""Configuring and building a preset with CMake, quietly: the output goes to a log, the first errors to the user."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.base.failure import Failure
from tools.base.packages import require_packages
from tools.base.paths import BUILD, ROOT, shown
from tools.base.processes import follow
from tools.base.terminal import Progress, say

OF_A_COMPILER = 600 * 1024**2
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # cgroups v2 and v1


class DoesNotBuild(Failure):
    """A build that failed, with the lines that say why."""

    def __init__(self, message: str, errors: list[str]):
        super().__init__(message)
        self.errors = errors


def cores() -> int:
    return len(os.sched_getaffinity(0))


def jobs() -> int:
    """How many compilers may run at once. A container's cores are often the machine's, while its memory is its own."""
    return max(1, min(cores(), memory() // OF_A_COMPILER))


def memory() -> int:
    """Bytes that this machine, or this container, has."""
    limits = [int(path.read_text()) for path in _LIMITS if path.is_file() and path.read_text().strip().isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])


def directory(preset: str) -> Path:
    return BUILD / preset


def ensure_built(preset: str, targets: "list[str] | None" = None, quietly: bool = False,
                 python: "str | None" = None, every_instance: bool = False) -> Path:
    """Installs what is missing, configures if need be, builds the targets (all of them if None).

    Returns the build directory. Quietly: neither how long it took nor the errors, which are in DoesNotBuild, are
    printed. `python` is the interpreter for whose PyTorch the operators are compiled, if it matters. With
    every_instance kernels are compiled whole, also where they were not before.
    """
    require_packages(preset)
    build_directory = directory(preset)
    build_directory.mkdir(parents=True, exist_ok=True)
    settings = ["WORKBOOK_ONE_ARCHITECTURE:BOOL=OFF"] if preset == "cuda" else []
    settings += ["WORKBOOK_FEW_INSTANCES:BOOL=OFF"] if every_instance else []
    settings += [f"Python3_EXECUTABLE:FILEPATH={shutil.which(python)}"] if python else []
    with alone(preset):
        configure(preset, build_directory, settings)
        build_targets(preset, build_directory, targets, quietly)
    return build_directory


def compile_for_a_gpu(preset: str) -> None:
    """Where nothing of it can be run: every kernel for one kind of GPU, and no program.

    Which GPU: see common/cmake/cuda_architectures.cmake. nvcc makes machine code of the files that workbook_chapter()
    says are LOOKED_AT, and of all other kernels it sees whether they are right as CUDA: its front end makes every
    instance, and knows what only a GPU has. What is left out is the host's code of all .cu files, for which nvcc would
    take twice as long: another preset compiles and links it. And the place of kernels that somebody hands in
    (common/harness/judge). Most of the time went into headers, and so those others are compiled many at a time.
    """
    require_packages(preset)
    build_directory = directory(preset)
    build_directory.mkdir(parents=True, exist_ok=True)
    with alone(preset):
        configure(preset, build_directory, ["WORKBOOK_ONE_ARCHITECTURE:BOOL=ON"])
        build_targets(preset, build_directory, ["build.ninja"], quietly=True)  # which the next step reads
        statements, rules = ((build_directory / name).read_text() for name in ("build.ninja", "CMakeFiles/rules.ninja"))
        (build_directory / "kernel_rules.ninja").write_text(rules.replace(" -x cu -c ", " -x cu "))
        statements = re.sub(r"^  FLAGS = .*--generate-code.*$", _with_its_phase, statements, flags=re.M)
        statements = _together(statements, build_directory)
        kernels = re.findall(r"^build ((?!common/harness/judge/)\S+\.cu\.o): CUDA_COMPILER__", statements, re.M)
        (build_directory / "kernels.ninja").write_text(
            statements.replace("include CMakeFiles/rules.ninja", "include kernel_rules.ninja"))
        build_targets(preset, build_directory, kernels, quietly=False, rules="kernels.ninja")


def _with_its_phase(flags: "re.Match[str]") -> str:
    """nvcc's flags, and how far it goes."""
    return f"{flags[0]} {'-cubin' if '--warn-on-spills' in flags[0] else '-ptx'}"


_OF_RUNGS = re.compile(r"^build ((?:\d\d_|common/course/|common/microbenchmarks/)\S+\.cu\.o): CUDA_COMPILER__\S+ "
                       r"((?:\$ |\S)+).*\n((?:  .*\n)*)", re.M)
_AT_A_TIME = 30


def _together(statements: str, build_directory: Path) -> str:
    """ninja's statements, in which files that make no machine code, with the same flags, are one source, each in a
    namespace of its own. One that makes instances of what headers beside it have stays alone: they have its namespace,
    too, and are read once."""
    groups: dict[str, list[re.Match[str]]] = {}
    for found in _OF_RUNGS.finditer(statements):
        file = _source(found)
        text, folders = file.read_text(), [re.sub(r"^\d\d_", "", folder) for folder in file.parts]
        name = _ENDS.search(text)
        flags = "\n".join(re.findall(r"^  (?:FLAGS|DEFINES|INCLUDES) = .*$", found[3], re.M))
        if _BESIDE.search(text):
            can = not re.search(r"^template (<>|[^<])", text, re.M)
        else:
            can = name is not None and name[1] in folders
        if " -ptx" in flags and name and can:
            groups.setdefault(flags, []).append(found)
    (build_directory / "together").mkdir(exist_ok=True)
    number = 0
    for of_a_kind in groups.values():
        parts = -(-len(of_a_kind) // _AT_A_TIME)
        for part in (of_a_kind[first::parts] for first in range(parts)):
            made, number = build_directory / f"together/{number}.cu", number + 1
            text = "".join(_in_its_namespace(_source(found), at) for at, found in enumerate(part))
            if not made.exists() or made.read_text() != text:
                made.write_text(text)
            for found in part[1:]:
                statements = statements.replace(found[0], "")
            first = part[0]
            statements = statements.replace(first[0], first[0].replace(first[1], f"together/{made.name}.o").replace(
                f" {first[2]}", f" {str(made).replace(' ', '$ ')}", 1))
    return statements


def _source(kernels: "re.Match[str]") -> Path:
    return Path(kernels[2].replace("$ ", " "))


_ENDS = re.compile(r"^}  // namespace (\w+)\n*\Z", re.M)
_BESIDE = re.compile(r'^#include "((?:microbenchmarks/)?\w+\.h)"', re.M)  # a header that has the file's namespace


def _in_its_namespace(file: Path, number: int) -> str:
    """The file's text with messages that name its lines, in a namespace with the number in its name; or in one within
    its own, if headers beside it have that."""
    text = file.read_text()
    found = _ENDS.search(text)
    assert found is not None
    name = found[1]
    if _BESIDE.search(text):
        text = re.sub(rf"^namespace {name} {{", f"namespace {name} {{ namespace file_{number} {{", text, flags=re.M)
        text = re.sub(rf"^}}  // namespace {name}$", "} }", text, flags=re.M)
        text = re.sub(r'^#include "(\w+\.h)"', f'#include "{file.parent}/\\1"', text, flags=re.M)
    else:
        text = re.sub(rf"\bnamespace {name} {{|(?<![\w:]){name}::",
                      lambda own: own[0].replace(name, f"{name}_{number}"), text)
    return f'#line 1 "{file}"\n{text}\n'


@contextlib.contextmanager
def alone(preset: str) -> Iterator[None]:
    """Keeps a second command waiting: neither ninja nor the logs can serve two at once."""
    with open(BUILD / f"{preset}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        yield


def configure(preset: str, build_directory: Path, settings: "tuple[str, ...] | list[str]" = ()) -> None:
    cache, rules = build_directory / "CMakeCache.txt", build_directory / "build.ninja"
    presets = ROOT / "CMakePresets.json"
    known = _entries(cache) if cache.exists() else []
    configured = rules.exists() and known and cache.stat().st_mtime > presets.stat().st_mtime
    if configured and all(setting in known for setting in settings):
        return  # from here on the build itself notices when it must be configured again
    log_path = BUILD / f"{preset}-configure.log"
    with open(log_path, "w") as log, Progress(f"Configuring {shown(build_directory)}") as progress:
        compiler = {"CXX": os.environ.get("CXX") or "g++"}  # c++, CMake's own first choice, may be another one
        status = follow(["cmake", "--preset", preset, *(f"-D{setting}" for setting in settings)], log, progress.show,
                        cwd=ROOT, environment=compiler)
    if status:
        _fail(f"cmake --preset {preset} failed", log_path, f"mend it, or remove {shown(build_directory)} if it was "
              "configured in another place or another way, and run the command again")
    cache.touch()


def _entries(cache: Path) -> list[str]:
    """The lines NAME:TYPE=VALUE of a CMakeCache.txt; Failure, which names the file, if it is corrupt."""
    lines = cache.read_text(errors="replace").splitlines()
    entries = [line for line in lines if line.strip() and not line.startswith(("#", "//"))]
    wrong = next((line for line in entries if not re.match(r'("[^"]+"|[^":=]+):[A-Z]+=', line)), None)
    if wrong is None and any(line.startswith("CMAKE_GENERATOR:") for line in entries):
        return entries
    where = f"line {lines.index(wrong) + 1} is no NAME:TYPE=VALUE" if wrong is not None else "it names no generator"
    raise Failure(f"{shown(cache)} is corrupt ({where}): remove {shown(cache.parent)}, and run the command again")


def build_targets(preset: str, build_directory: Path, targets: "list[str] | None", quietly: bool,
                  rules: "str | None" = None) -> None:
    """With other rules than those of build.ninja, if a file of rules is named."""
    log_path = BUILD / f"{preset}-build.log"
    command = ["cmake", "--build", build_directory, "--parallel", jobs()]
    if targets:
        command += ["--target", *targets]
    if rules:
        command += ["--", "-f", rules]
    with open(log_path, "w") as log, Progress(f"Building {shown(build_directory)}") as progress:
        did_something = False

        def on_line(line: str) -> None:
            nonlocal did_something
            step = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
            if step and "Re-checking globbed directories" not in line:
                did_something = True
                progress.show(f"{step[1]} of {step[2]}  {_short(step[3])}")

        status = follow(command, log, on_line, cwd=ROOT, environment={"NINJA_STATUS": "[%f/%t] "})
        seconds = progress.seconds()
    if status:
        _fail("the build failed", log_path, "mend it and run the command again", quietly)
    if did_something and not quietly:
        say(f"Built {shown(build_directory)} in {seconds:.0f} s.")


def _short(step: str) -> str:
    """"Building CXX object common/simt/CMakeFiles/simt.dir/engine/copy.cc.o" -> "common/simt/engine/copy.cc"."""
    found = re.match(r"Building \w+ object (.*?)CMakeFiles/[^/]+\.dir/(.*)\.o$", step)
    return found[1] + found[2] if found else step


def first_errors(log_text: str, limit: int = 5) -> list[str]:
    """The lines of a build log that say what is wrong, or the last ones if none looks like an error."""
    lines = [line for line in log_text.splitlines() if line.strip()]
    pattern = re.compile(r"(^|\s|:)(fatal )?error\b.*:|undefined reference|multiple definition|ninja: error", re.I)
    errors = [number for number, line in enumerate(lines) if pattern.search(line) and not line.startswith("FAILED:")]
    if not errors:
        return lines[-limit:]
    if lines[errors[0]].startswith("CMake Error"):  # says on the following lines what is wrong
        return lines[errors[0] : errors[0] + limit]
    return [lines[number] + _reason(lines[number + 1 : end])
            for number, end in zip(errors, [*errors[1:], len(lines)])][:limit]


def _reason(below: list[str]) -> str:
    """Why the one function that could be meant does not fit, which the compiler says in a note below its error."""
    notes = [found[1] for found in (re.search(r": note: +(.+)", line) for line in below) if found]
    why = [note for note in notes if re.match(r"cannot convert|no known conversion|candidate expects|couldn.t", note)]
    return f" ({why[0]})" if len(why) == 1 and sum(note.startswith("candidate: ") for note in notes) == 1 else ""


def _fail(what: str, log_path: Path, advice: str, quietly: bool = False) -> None:
    errors = [line.replace(f"{ROOT}/", "") for line in first_errors(log_path.read_text(errors="replace"))]
    for line in errors if not quietly else []:
        say(line)
    raise DoesNotBuild(f"{what}: {advice} (log: {shown(log_path)})", errors)
