"""What the user may say of files of their own, and whether it can be meant."""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import Failure, chapters

CUDA = (".cu", ".cuh")
SOURCES = (*CUDA, ".cpp", ".cc", ".cxx", ".c")
OLDEST = 11  # nvcc's --std=c++11
STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++23")
MOST_THREADS = 1024  # of a block
FILLS = ("random", "iota", "zero", "one")
# argparse's names of the flags that only make sense with files; all are None if they are not said.
FLAGS = {"include": "-I", "define": "-D", "std": "--std", "kernel": "--kernel", "grid": "--grid", "block": "--block",
         "shared": "--shared", "buffer": "--buffer", "arg": "--arg", "seconds": "--seconds",
         "blocks": "--blocks"}

# What nvcc's command may have besides. Most of it is nvcc's own: which GPU, how much to optimise, what to call the
# result. These have a value, after "=" or in the next word.
WITH_A_VALUE = frozenset("""
    o output-file odir output-directory x std arch gpu-architecture code gpu-code gencode generate-code rdc
    relocatable-device-code maxrregcount Xcompiler compiler-options Xlinker linker-options Xptxas ptxas-options Xnvlink
    nvlink-options Xarchive archive-options Xfatbin fatbin-options Xcudafe MF dependency-output MT
    dependency-target-name cudart ccbin compiler-bindir t threads O optimize m machine l library L
    library-path U undefine-macro isystem system-include include pre-include Werror diag-suppress diag-error diag-warn
    default-stream ftz prec-div prec-sqrt fmad split-compile keep-dir""".split())
ALONE = frozenset("""
    c compile dc device-c dlto dlink-time-opt lto link run g debug G device-debug pg profile lineinfo
    generate-line-info use_fast_math restrict expt-relaxed-constexpr expt-extended-lambda extended-lambda m64 v
    verbose time keep save-temps res-usage resource-usage src-in-ptx source-in-ptx no-compress compress
    extra-device-vectorization err-no display-error-number allow-unsupported-compiler
    forward-unknown-to-host-compiler forward-unknown-to-host-linker forward-unknown-opts noprof dont-use-profile MD
    generate-dependencies-with-compile MMD generate-nonsystem-dependencies-with-compile MP
    generate-dependency-targets Wno-deprecated-gpu-targets Wdefault-stream-launch Wmissing-launch-bounds
    Wext-lambda-captures-this dopt""".split())
# It asks for something else than a program.
ANOTHER_RESULT = frozenset("E M MM preprocess ptx cubin fatbin lib shared dlink device-link dryrun".split())
FOR_THE_COMPILER = re.compile(r"-(f|m|W|pthread|w$|U.|isystem|include)")
FOR_THE_LINKER = re.compile(r"-[lL].|-Wl,")
OF_THE_TOOLKIT = re.compile(r"-l(cu|nv)|-L.*cuda")
# nvcc's flags that g++ has too: how they are written there.
IN_THE_COMPILER = {"l": "-l", "library": "-l", "L": "-L", "library-path": "-L", "U": "-U", "undefine-macro": "-U",
                   "isystem": "-isystem", "system-include": "-isystem", "include": "-include",
                   "pre-include": "-include", "Xlinker": "-Wl,", "linker-options": "-Wl,"}


def _named(flag: str) -> tuple[str, str]:
    """(its name without hyphens, its value)"""
    name, _, value = flag.lstrip("-").partition("=")
    return ("O", name[1:]) if re.fullmatch("O[0-3a-z]+", name) else (name, value)


def in_one_word(words: list[str]) -> list[str]:
    """A command for nvcc has blanks where the others have "=": -gencode arch=compute_80,code=sm_80."""
    if not any(map(is_file, words)):
        return words
    joined: list[str] = []
    rest = iter(words)
    for word in rest:
        name = word.lstrip("-")
        takes = word.startswith("-") and name in WITH_A_VALUE and word != "--std"
        value = next(rest, None) if takes else None
        word = word if value is None else f"-{name}={value}"
        # argparse takes a word with a blank for no flag.
        joined.append(re.sub(r"\s+", ",", word) if re.match("--?(X|[a-z]+-options)", word) else word)
    return joined


def goes_to_a_compiler(flag: str) -> bool:
    """Whether a flag that is not the command's own can be one of nvcc's or the compiler's."""
    if flag == "--no-races":  # of run alone: files_of() says so
        return True
    name = _named(flag)[0]
    if name in ANOTHER_RESULT:
        return False
    return name in WITH_A_VALUE | ALONE or bool(FOR_THE_COMPILER.match(flag) or FOR_THE_LINKER.match(flag))


def _for_gcc(passed: list[str]) -> list[str]:
    """What g++ gets of them, as it is written there."""
    flags: list[str] = []
    for flag in passed:
        name, value = _named(flag)
        if name in ("Xcompiler", "compiler-options"):
            flags += [word for word in value.split(",") if word.startswith("-")]
        elif name in IN_THE_COMPILER:
            flags.append(IN_THE_COMPILER[name] + value)
        elif name == "expt-relaxed-constexpr":
            flags.append("-DSIMT_RELAXED_CONSTEXPR")  # simt-compile asks for it
        elif (name, value) == ("std", "c++23"):
            flags.append("-std=gnu++23")
        elif name not in WITH_A_VALUE | ALONE:
            flags.append(flag)
    return flags


@dataclass(frozen=True)
class Buffer:
    count: int
    type: str  # of an element: "float"
    fill: str


@dataclass(frozen=True)
class Launch:
    """A launch for which the user's files have no host code."""

    kernel: str  # "transpose", "fill<float, 4>"
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int  # bytes
    values: "dict[str, Buffer | str]"  # parameter -> Buffer, or the text of a number


@dataclass(frozen=True)
class Asked:
    files: list[str]  # as the user writes them
    flags: list[str]  # for the compiler
    launch: "Launch | None"
    seconds: float  # that kernels may take together; 0: any
    arguments: list[str] = field(default_factory=list)  # of the program
    blocks: int = 0  # of each launch, as a sample; 0: all
    races: bool = True  # are looked for, and whatever else needs to see every access
    libraries: list[str] = field(default_factory=list)  # for the linker: -lm
    all_are_cuda: bool = False  # -x cu: also what is called .cpp

    @property
    def cuda(self) -> list[str]:
        return self.files if self.all_are_cuda else [file for file in self.files if file.endswith(CUDA)]

    @property
    def name(self) -> str:
        return self.files[0]


def add_file_arguments(parser: argparse.ArgumentParser, seconds: float) -> None:
    group = parser.add_argument_group(
        "files of your own", "FILE.cu stands for CUDA C++ as nvcc takes it. What follows -- goes to its main. A file "
                             "without a "
        "main needs --kernel, --grid and --block, and a --buffer or an --arg for each parameter.")
    group.add_argument("-I", dest="include", action="append", metavar="DIR", help="look for its headers there too")
    group.add_argument("-D", dest="define", action="append", metavar="NAME[=VALUE]", help="define a macro")
    group.add_argument("--std", choices=STANDARDS,
                       help="what nvcc would be told; below c++20 it is compiled as c++20, as the engine needs")
    group.add_argument("--kernel", metavar="NAME",
                       help="launch this one, of a file without a main: scale, or 'scale<float>'")
    group.add_argument("--grid", metavar="X,Y,Z", help="blocks of the launch: 16 or 16,16")
    group.add_argument("--block", metavar="X,Y,Z", help="threads of a block: 256 or 32,8")
    group.add_argument("--shared", metavar="BYTES", help="dynamic shared memory of a block (default: 0)")
    group.add_argument("--buffer", action="append", metavar="NAME=COUNTxTYPE[:FILL]",
                       help="device memory for a parameter: a=4096xfloat or a=64x64xhalf:zero. FILL: "
                            f"{', '.join(FILLS)} (default: random)")
    group.add_argument("--arg", action="append", metavar="NAME=NUMBER", help="a number for a parameter: n=4096")
    group.add_argument("--blocks", metavar="N",
                       help="run only a sample of N blocks of each launch, spread over its grid: what the others would "
                            "write is missing then")
    group.add_argument("--seconds", metavar="S",
                       help="the processor time that kernels may take together before a launch is called too large "
                       f"(default: {f'{seconds:g}' if seconds else 'any time'})")


def add_no_races(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-races", action="store_true", default=None,
                        help="of files of your own: run faster, and do not look for races, reads of what was never "
                             "written, or pointers to the host's memory")


def is_file(word: str) -> bool:
    return word.endswith(CUDA) or (word.endswith(SOURCES) and Path(word).is_file())


def _refuse_other_paths(word: str) -> None:
    """Refuses what is neither a file to compile nor a chapter: another path."""
    path, first = Path(word), word.partition("/")[0]
    among = chapters.all_chapters() + chapters.of_exercises()  # none where the engine is installed by itself
    chapter = any(chapters.is_named(each, first) for each in among)
    if path.is_file():
        raise Failure(f"{word} is no file to compile: its name must end in {', '.join(SOURCES)}", status=2)
    if path.is_dir() and not (chapter and word.rstrip("/") == first):
        found = sorted(each.name for each in path.iterdir() if each.suffix in CUDA)
        has = f" ({path / found[0]}{', ..' if len(found) > 1 else ''})" if found else ""
        raise Failure(f"{word} is a folder: name files{has}{' or chapters' if among else ''}", status=2)
    if "/" in word and not chapter and not first.isdigit():  # 99/ordered: another line says that there is no 99
        or_chapter = ", or a chapter, as in 05" if among else ""
        raise Failure(f"there is no {word}: name a CUDA file, as in mine.cu{or_chapter}", status=2)


def refuse_without_files(arguments: argparse.Namespace) -> None:
    for name, flag in FLAGS.items():
        if getattr(arguments, name) is not None:
            raise Failure(f"{flag} is for a file of your own, FILE.cu, and there is none", status=2)
    if getattr(arguments, "no_races", None):
        raise Failure("--no-races is for a file of your own, FILE.cu, and there is none", status=2)
    if arguments.passed_on:
        raise Failure(f"{arguments.passed_on[0]} is for a file of your own, FILE.cu, and there is none", status=2)
    if arguments.after:
        raise Failure(f"-- {arguments.after[0]}: what follows -- goes to the main of a file of your own, FILE.cu, and "
                      "there is none",
                      status=2)


def files_of(arguments: argparse.Namespace, of_chapters: dict[str, str], seconds: float) -> "Asked | None":
    """What the user asks of files; None if no file is named. of_chapters: {argparse's name: flag} of chapters only."""
    words = arguments.chapters
    files = [word for word in words if is_file(word)]
    for word in words:
        if word not in files:
            _refuse_other_paths(word)
    if not files:
        return None
    for word in words:
        if word not in files:
            raise Failure(f"{files[0]} is a file and {word} is not: name files or chapters", status=2)
    for file in files:
        if not Path(file).is_file():
            raise Failure(f"there is no file {file}", status=2)
        with open(file, "rb") as content:
            if b"\0" in content.read(4096):
                raise Failure(f"{file} is no source: it has bytes that no text has", status=2)
    for name, flag in of_chapters.items():
        if getattr(arguments, name) is not None:
            raise Failure(f"{flag} is for chapters, and {files[0]} is a file", status=2)
    if "--no-races" in arguments.passed_on:
        raise Failure("--no-races is for run: trace counts every access, and looks for races among them", status=2)
    flags = [f"-I{directory}" for directory in arguments.include or []]
    for directory in arguments.include or []:
        if not Path(directory).is_dir():
            raise Failure(f"-I {directory}: there is no such directory", status=2)
    for macro in arguments.define or []:
        if not re.match(r"[A-Za-z_]\w*(\(|=|$)", macro):
            raise Failure(f"-D {macro}: a macro is NAME or NAME=VALUE", status=2)
        flags.append(f"-D{macro}")
    if arguments.std == "c++23":
        flags.append("-std=gnu++23")
    passed = _for_gcc(arguments.passed_on)
    libraries = [word for word in passed if FOR_THE_LINKER.match(word)]
    flags += [word for word in passed if word not in libraries]
    return Asked(files, flags, _launch(arguments), _seconds(arguments.seconds, seconds), arguments.after,
                 _blocks(arguments.blocks), not getattr(arguments, "no_races", None),
                 [word for word in libraries if not OF_THE_TOOLKIT.match(word)],
                 any(_named(flag) == ("x", "cu") for flag in arguments.passed_on))


def _launch(arguments: argparse.Namespace) -> "Launch | None":
    if arguments.kernel is None:
        for name in ("grid", "block", "shared", "buffer", "arg"):
            if getattr(arguments, name) is not None:
                raise Failure(f"{FLAGS[name]} is for a launch, whose kernel --kernel names", status=2)
        return None
    if not re.fullmatch(r"[\w:]+(<[\w:<>,.*& -]*>)?", arguments.kernel):
        raise Failure(f"--kernel {arguments.kernel}: must be a kernel's name, with its template's arguments: scale or "
                      "'scale<float, 4>'",
                      status=2)
    for name in ("grid", "block"):
        if getattr(arguments, name) is None:
            raise Failure(f"--kernel {arguments.kernel} needs {FLAGS[name]}", status=2)
    block = _extent("--block", arguments.block, (1024, 1024, 64))
    if block[0] * block[1] * block[2] > MOST_THREADS:
        raise Failure(f"--block {arguments.block}: {block[0] * block[1] * block[2]} threads; a block has at most "
                      f"{MOST_THREADS}", status=2)
    values: "dict[str, Buffer | str]" = {}
    for text in arguments.buffer or []:
        _add(values, "--buffer", text, _buffer(text))
    for text in arguments.arg or []:
        _add(values, "--arg", text, _number(text))
    shared = "0" if arguments.shared is None else arguments.shared
    if not re.fullmatch(r"[0-9]{1,7}", shared):
        raise Failure(f"--shared {shared}: must be a number of bytes, below 10000000", status=2)
    return Launch(arguments.kernel, _extent("--grid", arguments.grid, (2**31 - 1, 65535, 65535)), block, int(shared),
                  values)


def _extent(flag: str, text: str, most: tuple[int, ...]) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,10}([,x][0-9]{1,10}){0,2}", text):
        raise Failure(f"{flag} {text}: must be one to three numbers, as in 16 or 16,16,2", status=2)
    extent = (*map(int, re.split("[,x]", text)), 1, 1)[:3]
    for value, limit in zip(extent, most):
        if not 1 <= value <= limit:
            raise Failure(f"{flag} {text}: {value} is not in 1 to {limit}", status=2)
    return extent


def _add(values: "dict[str, Buffer | str]", flag: str, text: str, value: "Buffer | str") -> None:
    name = text.partition("=")[0]
    if name in values:
        raise Failure(f"{flag} {text}: {name} has a value already", status=2)
    values[name] = value


def _buffer(text: str) -> Buffer:
    found = re.fullmatch(r"[A-Za-z_]\w*=((?:\d+x)+)([A-Za-z_][\w:]*?(?: [a-z]+)*)(?::(\w+))?", text)
    count = 1
    for part in found[1].split("x")[:-1] if found else []:
        count *= int(part)
    if not found or not 1 <= count < 2**40:
        raise Failure(f"--buffer {text}: must be NAME=COUNTxTYPE, as in a=4096xfloat or a=64x64xfloat:zero", status=2)
    if found[3] and found[3] not in FILLS:
        raise Failure(f"--buffer {text}: {found[3]} is not one of {', '.join(FILLS)}", status=2)
    return Buffer(count, found[2], found[3] or "random")


def _number(text: str) -> str:
    found = re.fullmatch(r"[A-Za-z_]\w*=(-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?f?|0x[0-9a-fA-F]+|true|false))", text)
    if not found:
        raise Failure(f"--arg {text}: must be NAME=NUMBER, as in n=4096 or scale=0.5", status=2)
    return found[1] if re.search(r"[.eEx]|true|false", found[1]) else found[1].rstrip("f")


def _seconds(text: "str | None", default: float) -> float:
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < 1e9:
        raise Failure(f"--seconds {text}: must be a number of seconds above 0", status=2)
    return seconds


def _blocks(text: "str | None") -> int:
    if text is None:
        return 0
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", text):
        raise Failure(f"--blocks {text}: must be a whole number from 1 to 9999999999", status=2)
    return int(text)
