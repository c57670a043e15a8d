"""Compiling the user's files for the engine, and running what comes of it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import BUILD, Failure, JsonObject, Progress, build, complain, ending_of, say, started
from tools.user_files import access_widths, cccl, generated_main
from tools.user_files.file_flags import Asked
from tools.user_files.unsupported import refused

TOO_LARGE = 2  # the status of a program that the engine has ended (common/simt/engine/pace.h): it reports nothing
WIDTHS = "widths.txt"
MOST_MESSAGES = 20  # lines of the compiler's


@dataclass
class Ran:
    """How a program ended, and what the engine reported."""

    status: int
    reported: bool  # it came to its end
    launched: int
    failures: list[str]  # messages
    launches: list[JsonObject]  # that did not fail, counted, if they are to be counted
    sampled: int = 0  # of the launched: those of which only a sample of their blocks ran
    mistakes: list[str] = field(default_factory=list)  # in spite of which the program went on; it has said them
    races: bool = False  # were looked for


def run_files(asked: Asked, counted: bool = False, quietly: bool = False, installed: "Path | None" = None) -> Ran:
    """Compiles the files, links them, runs the program with its output where it would go (stderr, if quietly). Its
    kernels are traced if they are to be counted, or searched for races.

    With the engine of the workbook, which is built if it has to be, or with that which is installed there.
    """
    traced = counted or asked.races
    directory = installed or build.ensure_built("cpu", ["simt", "simt-compile", "simt-prelude"])
    if not installed:
        (BUILD / "user_files").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=None if installed else BUILD / "user_files") as place:
        with Progress(f"Compiling {' '.join(asked.files)}"):
            program = program_of(asked, traced, directory, Path(place), shows=not counted)
            if counted:
                _note_widths(asked, Path(place))
        ran = run_program(program, asked, Path(place), quietly, counted)
        ran.races = traced
        return ran


def program_of(asked: Asked, traced: bool, build_directory: Path, place: Path, shows: bool = False) -> Path:
    """The files, their kernels traced or not, compiled with the engine of this build directory, or that is installed
    there; all that comes of it lies in `place`. `shows`: what a launch without host code has written is printed."""
    settings = _settings(build_directory)
    front, compiler = settings["front"], settings["compiler"]
    command = [compiler, *settings["traced" if traced else "plain"], *asked.flags]
    if found := cccl.headers():
        command += ["-idirafter", str(found)]
    cuda = asked.cuda
    if asked.all_are_cuda:
        command.append("-xcu")
    with ThreadPoolExecutor(build.cores()) as pool:
        sources = asked.files
        if asked.launch or not any(MAIN.search(_code(file)) for file in cuda):
            looked = list(pool.map(lambda file: json.loads(_output([front, "--kernels", *command, file], file)), cuda))
            sources = _sources(asked, cuda, looked, place, shows)
        objects = [place / f"{number}.o" for number in range(len(sources))]
        list(pool.map(lambda file, source, made: _output([*(_as_c(command, asked) if _is_c(file, asked) else
                                                            [front, *command]), "-c", source, "-o", str(made)], file),
                      asked.files, sources, objects))
    program = place / "program"
    _output([compiler, *map(str, objects), *settings["link"], *asked.flags, *asked.libraries, "-o", str(program)],
            asked.name, "does not link")
    return program


def _settings(directory: Path) -> JsonObject:
    """How to compile with the engine: common/simt/front/CMakeLists.txt."""
    installed = directory / "share" / "simt" / "settings.json"
    if not installed.exists():
        return json.loads((directory / "common" / "simt" / "front" / "settings.json").read_text())
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        raise Failure(f"there is no {compiler} here, which compiles the files: install g++, or name one in CXX")
    settings = json.loads(installed.read_text().replace("@PREFIX@", json.dumps(str(directory))[1:-1]))
    return {**settings, "compiler": compiler}


# What C has of CUDA is the runtime's functions (common/simt/cuda/runtime_api.h). The engine's other headers are C++,
# and so are kernels.
NOT_IN_C = re.compile(r'^\s*#\s*include\s*[<"](cu(?!da\w*\.h)|cuda_(fp|bf|pipe)|cooperative|helper_|nvT|nvtx)|'
                      r"__global__|<<<", re.MULTILINE)
# Where none of it counts: comments, strings and characters; but an include keeps what it names.
INCLUDE_OR_NO_CODE = re.compile(r'(^\s*#\s*include\s*[<"][^>"\n]*[>"])|/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                                r"'(?:\\.|[^'\\\n])*'", re.MULTILINE | re.DOTALL)


# Where it stands in the text, nobody need ask the preprocessor whether there is one.
MAIN = re.compile(r"\bint\s+main\s*\(")


def _code(file: str) -> str:
    text = Path(file).read_text(errors="replace")
    return INCLUDE_OR_NO_CODE.sub(lambda found: found[1] or " ", text)


def _is_c(file: str, asked: Asked) -> bool:
    """A .c file is C, but for one that asks for what the engine has in C++ alone."""
    if not file.endswith(".c") or asked.all_are_cuda:
        return False
    return not NOT_IN_C.search(_code(file))


def _as_c(command: list[str], asked: Asked) -> list[str]:
    headers = [flag for flag in command if re.match(r"-(I|idirafter)\S", flag)]
    return [command[0], "-xc", "-O2", "-g1", *headers, *(flag for flag in asked.flags if not flag.startswith("-std"))]


def _sources(asked: Asked, cuda: list[str], looked: list[JsonObject], place: Path, shows: bool) -> list[str]:
    """The sources to compile: the files or, to launch one of their kernels, a main in place of its file."""
    kernels = [kernel for each in looked for kernel in each["kernels"]]
    has_main = any(each["main"] for each in looked)
    if not kernels and (asked.launch or not has_main and len(cuda) == len(asked.files)):
        raise Failure(f"{', '.join(asked.files)}: no kernel (a function with __global__) in it, and no main", status=2)
    if not asked.launch:
        if not has_main and len(cuda) == len(asked.files):  # else a .cpp may have it: the linker knows
            raise Failure(f"{', '.join(asked.files)}: no main in it; name a kernel to launch: --kernel NAME --grid .. "
                          f"--block .. (kernels: {generated_main.names(kernels)})", status=2)
        return asked.files
    if has_main:
        raise Failure(f"--kernel {asked.launch.kernel}: {asked.name} has a main, which launches what it likes",
                      status=2)
    kernel = generated_main.find(asked.launch, kernels)
    owner = next(file for file, each in zip(cuda, looked) if kernel in each["kernels"])
    main = place / "main.cu"
    main.write_text(generated_main.text_of(asked.launch, kernel, Path(owner).resolve(), shows))
    return [str(main) if file == owner else file for file in asked.files]


def _output(command: list[str], file: str, failed: str = "does not compile") -> str:
    """What the command prints; a Failure with what it complains of if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        for line in messages(done.stderr):
            print(line, file=sys.stderr)
        raise Failure(f"{file} {failed}", status=2)
    if done.stderr.strip() and failed == "does not compile" and "-c" in command:
        print("\n".join(messages(done.stderr)), file=sys.stderr)
    return done.stdout


def messages(text: str) -> list[str]:
    """The compiler's messages, each with its source line; or one message for each thing that the engine lacks."""
    flag = re.search(r"^(--buffer .*?):\d+:\d+: error: (.*)", text, re.MULTILINE)
    if flag:  # all else follows from it
        return [f"{flag[1]}: {flag[2]}"]
    lines = []
    for file, number, message in refused(text):
        lines += [f"{file}:{number}: error: {message}", *_source_line(file, number)]
    if lines:
        return lines
    for line in text.splitlines():
        if len(lines) >= MOST_MESSAGES:
            lines.append("..")
            break
        if re.match(r"\s*\d* \|", line) or re.search(r"^collect2:|^compilation terminated|warning: #pragma once in "
                                                     r"main file", line):
            continue
        lines.append(line)
        found = re.match(r"(.+?):(\d+):\d+: (?:fatal )?error: ", line)
        if found:
            lines += _source_line(found[1], int(found[2]))
    return lines


def _source_line(file: str, number: int) -> list[str]:
    if not Path(file).is_file():
        return []
    source = Path(file).read_text(errors="replace").splitlines()
    return [f"    {source[number - 1].strip()}"] if 0 < number <= len(source) else []


def _note_widths(asked: Asked, place: Path) -> None:
    """How wide nvcc makes the accesses, where there is one, in a file for the engine (common/simt/trace/widths.h)."""
    if not access_widths.possible():
        return
    flags = [flag for flag in asked.flags if not flag.startswith("-std")]
    try:
        found = access_widths.of_files(asked.cuda, ["-x", "cu", "-std=c++20", "--extended-lambda", *flags])
    except Failure as failure:
        complain(str(failure))
        return
    if found:
        (place / WIDTHS).write_text(access_widths.text(found))


def run_program(program: Path, asked: Asked, place: Path, quietly: bool, counted: bool = True) -> Ran:
    report = place / "report.json"
    environment = {**os.environ, "SIMT_REPORT": str(report), "SIMT_SECONDS": f"{asked.seconds:g}",
                   "SIMT_PARENT": str(os.getpid())}
    if asked.blocks:
        environment["SIMT_BLOCKS"] = str(asked.blocks)
    environment.pop("SIMT_COUNTS", None)
    if counted:
        environment["SIMT_COUNTS"] = "1"
    if (place / WIDTHS).exists():
        environment.setdefault("SIMT_WIDTHS", str(place / WIDTHS))
    with started([program, *asked.arguments], env=environment, stdout=sys.stderr if quietly else None) as process:
        status = process.wait()
    if not report.exists():
        return Ran(status, False, 0, [], [])
    try:
        reported = json.loads(report.read_text())
    except ValueError:
        raise Failure(f"{asked.name}: its program was stopped while it wrote what it had done "
                      f"({ending_of(status)})") from None
    return Ran(status, True, reported["launched"], reported["failures"], reported["launches"],
               reported["sampled"], reported["mistakes"])


def conclude_files(asked: Asked, ran: Ran) -> int:
    """The exit status; Failure if the program did not succeed, with the reason."""
    if ran.status == TOO_LARGE and not ran.reported:
        return 2  # a launch is too large, as it said
    if ran.sampled:
        complain(f"{asked.name}: a sample: {asked.blocks} blocks of each launch that has more ({ran.sampled} of "
                 f"{ran.launched}); what the other blocks would write is missing")
    wrong = []
    if ran.failures:
        wrong.append(f"{len(ran.failures)} of {max(ran.launched, len(ran.failures))} launches failed")
    if ran.mistakes:
        wrong.append(f"{len(ran.mistakes)} mistake{'s' if len(ran.mistakes) > 1 else ''} found")
    if ran.status:
        wrong.append(f"its program {ending_of(ran.status)}")
    if wrong:
        raise Failure(f"{asked.name}: {' and '.join(wrong)}")
    if not ran.launched:
        complain(f"{asked.name}: it launched no kernel")
    return 0


def run_and_conclude(asked: Asked, installed: "Path | None" = None) -> int:
    """The program's exit status; Failure if it made a mistake. The last line says whether races were looked for."""
    ran = run_files(asked, installed=installed)
    status = conclude_files(asked, ran)
    if not status:
        say("No mistake found." if ran.races else "Races were not looked for (--no-races).")
    return status
