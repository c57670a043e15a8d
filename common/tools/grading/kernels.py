"""A submission's kernels: compiled and linked where nothing of them runs, run where they can do nothing but compute.

What was handed in becomes one object and, linked with the rest of the engine, one program that no other student's has a
part in. The program is started by confine (common/harness/judge/confine.cc) in layers, each of which is enough by
itself; which of them hold, the results say.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import Command, Failure, amount_of_memory, build
from tools.course import AS_GRADED, Exercise
from tools.grading.compiler_root import CompilerRoot, headers_of
from tools.grading.sandbox import MADE, MOST_OUTPUT, Done, Limits, Sandbox, own_program

LAYERS = {"user": "another user than the judge", "root": "no files", "namespaces": "no network, no other processes",
          "limits": "limits of memory, time, files and processes", "calls": "no system calls but those of computing"}
# One of those that --require-isolation can do without: seccomp and the empty root directory do its work.
REQUIRED = tuple(layer for layer in LAYERS if layer != "namespaces")
_HEADERS = ("attention", "device", "simt")
_CAPITALS = {"Rung": "rung", "Backward": "pass", "Chapter": "chapter"}
_ENTRY = re.compile(r"^extern const attention::(Rung|Backward|Chapter) (\w+);$", re.M)
_ADDRESSES = re.compile(r"\{@([0-9a-f,]{1,400})\}?")
_LONGEST_LINE = 300
# Or an object that says that it is one of -flto starts a compiler once more, with options of its own.
_NO_PLUGIN = ("-fno-lto", "-fno-use-linker-plugin")
# Where an object is passed or returned by value, the call reads or writes it untold. Which calls do, the compiler
# writes down (calls_untold).
_WRITE_DOWN, _MOST_WRITTEN_DOWN = "-fdump-tree-tsan1=", 32 * 1024**2
_CALL = re.compile(r"  (?:([^=]*?) = )?(?!if |switch |return |goto )(.*?[\w>)\]}]) \((.*)\)(?: \[[^\]]*\])*;")
_IN_MEMORY = re.compile(r"(?<![&\w.])(?:\*+\w|MEM\b|[\w.]+(?:->|\[))")
_ADDRESS = re.compile(r"&(?:MEM\b[^,]*|[\w.>\-\[\]]+)")
_LAUNCHER = "_ZZN4simt4BodyC"  # what the engine calls a kernel with: no region can define it
_TO_COMPILE, _TO_COMPILE_A_LOT = 4 * 1024**3, 512 * 1024**2
MEMORY = 4 * 1024**3


@dataclass
class Attempt:
    """One text of an exercise's file."""

    exercise: Exercise
    text: str
    programs: dict[bool, Path] = field(default_factory=dict)  # {are its kernels traced: the program}
    ended: int = 0  # the status of the last process of kernels
    unsure: bool = False  # has the text more than a kernel needs
    untold: str = ""  # what its traced kernels do that the engine is not told of


class Kernels:
    """Compiles, links and runs what is handed in, one after the other, with the libraries of a tree that is built."""

    def __init__(self, tree: Path, place: Path, sandbox: Sandbox, patience: float, without: Iterable[str] = ()):
        self.tree, self.place, self.sandbox, self.patience = tree, place, sandbox, patience
        self.without = frozenset(without)  # layers, for tests
        self.layers: "frozenset[str] | None" = None  # that held the last time
        self._made = place / MADE  # the one directory that the compiler can write to
        self._digest = ""
        self._last: "Attempt | None" = None

    # --- What is there before anything is handed in ---

    def prepare(self) -> None:
        """Copies what a kernel's file may include and be linked with; nothing of a solution is among it."""
        self.prepare_place("cpu")
        judge = self.tree / "build/cpu/common/harness/judge"
        self._copy(judge / "confine", self.place / "confine")
        self._engine: dict[bool, list[str]] = {}  # words for the linker
        for traced in (False, True):
            listed = (judge / f"kernel_host_{'traced' if traced else 'plain'}.txt").read_text().split("\n")
            self._engine[traced] = [word if word.startswith("-") else str(self._kept(Path(word)))
                                    for word in listed if word]
        self._commands = json.loads((self.tree / "build/cpu/compile_commands.json").read_text())
        self._needed: dict[tuple[str, bool], list[Path]] = {}
        self._clear()
        self._digest = self._found()

    def prepare_place(self, preset: str) -> None:
        """The compiler's root directory, with what a kernel's file may include."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.compiler = CompilerRoot(self.place)
        self._shown: set[tuple[str, ...]] = set()
        self._show_to_compiler(self.tree / "build" / preset, ["-static", "-pthread"])
        probe = self.tree / "build" / preset / "common/harness/judge/probe"
        self._copy(probe, self.place / "probe")
        for folder in _HEADERS:
            for path in (self.tree / "common" / folder).rglob("*.h"):
                self._copy(path, self.place / path.relative_to(self.tree))
        self._clear()

    def _show_to_compiler(self, directory: Path, flags: "list[str]") -> None:
        """What compiling as in this build directory, and linking with these flags, takes of the system."""
        if (str(directory), *flags) not in self._shown:
            self._shown.add((str(directory), *flags))
            commands = json.loads((directory / "compile_commands.json").read_text())
            for one in sorted({command["command"].partition(" ")[0] for command in commands}):
                self.compiler.add_compiler(one, flags)
            self.compiler.add_headers(file for file in headers_of(directory)
                                      if not Path(file).is_relative_to(self.tree))
            self.compiler.add_program("addr2line")

    def _copy(self, source: Path, to: Path) -> Path:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
        to.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
        return to

    def _kept(self, path: Path) -> Path:
        return self._copy(path, self.place / "libraries" / f"{hashlib.sha256(bytes(path)).hexdigest()[:8]}-{path.name}")

    @property
    def _handed_in(self) -> Path:
        """The text that is being judged while it is compiled, and the programs that it makes."""
        return self.place / "handed_in"

    def _clear(self) -> None:
        """An empty directory for the next one's object, program and temporary files; an empty one to run in."""
        shutil.rmtree(self._made, ignore_errors=True)
        self._made.mkdir()
        self.sandbox.own(self._made)
        (self.place / "empty").mkdir(exist_ok=True)

    def _found(self) -> str:
        """What is there, in one number."""
        found = hashlib.sha256()
        for top in (self.place, self.tree / "build/cpu"):
            for path in sorted(top.rglob("*")):
                inside = path.relative_to(top).parts[0] not in (MADE, "handed_in")
                of_a_judge = top == self.place or "_tests" in path.name or path.name.endswith("_traced")
                if inside and of_a_judge and path.is_file():
                    found.update(f"{path}\0{path.stat().st_mode}\0".encode())
                    found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()

    def require_as_prepared(self) -> None:
        """Failure if anything has changed by which the next one would be judged."""
        if self._found() != self._digest:
            raise Failure(f"what grading needs in {self.place} is not as it was made: remove it, and grade again")

    def attempt(self, exercise: Exercise, text: str) -> Attempt:
        """With the programs of the last one, if it is the same again."""
        if not self._last or (self._last.exercise.file, self._last.text) != (exercise.file, text):
            self._last = Attempt(exercise, text)
            shutil.rmtree(self._handed_in, ignore_errors=True)  # what the next one's compiler might read
        self._last.exercise = exercise
        return self._last

    # --- Compiling ---

    def entry(self, exercise: Exercise) -> tuple[str, str]:
        """(rung, pass or chapter; the mangled name) of what the exercise's file ends in."""
        text = (self.tree / exercise.file).read_text()
        kind, name = _ENTRY.findall(text)[-1]
        namespace = re.sub(r"^\d+_", "", exercise.chapter)
        return _CAPITALS[kind], f"_ZN{len(namespace)}{namespace}{len(name)}{name}E"

    def program(self, attempt: Attempt, traced: bool) -> Path:
        """Compiled and linked, if it is not yet; DoesNotBuild."""
        if traced in attempt.programs:
            return attempt.programs[traced]
        exercise, source = attempt.exercise, self._handed_in / attempt.exercise.file
        self._clear()
        made = self._made / "kernels.o"
        words, their_object = self._command(exercise, traced)
        written = self._made / "kernels.tree"
        more = [f"{_WRITE_DOWN}{written}"] if traced else []
        self._compile(source, attempt.text, [*words, *more, "-o", str(made), "-c", str(source)], exercise.file)
        if traced:
            attempt.untold = calls_untold(written, attempt.text)
        program = self._made / "kernels"
        if (exercise.file, traced) not in self._needed:
            self._needed[exercise.file, traced] = self._others(their_object, traced)
        needed = self._needed[exercise.file, traced]
        # The engine first, and, with traced kernels, all of it (common/harness/judge/CMakeLists.txt).
        self._run([words[0], *_NO_PLUGIN, "-static", "-pthread", "-o", str(program),
                   f"-Wl,--defsym=handed_in={self.entry(exercise)[1]}", "-Wl,--start-group", *self._engine[traced],
                   str(made), *map(str, needed), "-Wl,--end-group"], exercise.file)
        if not stat.S_ISREG(program.lstat().st_mode):
            raise build.DoesNotBuild("the build failed", ["the linker has made no program"])
        kept = self._handed_in / f"kernels-{'traced' if traced else 'plain'}"
        kept.unlink(missing_ok=True)
        # Another process writes it. What is open for writing cannot be executed, and if it were open here, so it would
        # be in each process that another thread starts meanwhile, for a moment.
        with os.fdopen(os.open(program, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source_file:
            subprocess.run(["cp", "/dev/stdin", kept], stdin=source_file, check=True)
        kept.chmod(0o755)
        self._clear()
        attempt.programs[traced] = kept
        return kept

    def _command(self, exercise: Exercise, traced: bool) -> tuple[list[str], Path]:
        """(The compiler's words without source and object, what it makes of the workbook's own file)"""
        library = f"{exercise.chapter}{'_traced' if traced else ''}_kernels.dir/"
        (command,) = [one for one in self._commands if one["file"] == str(self.tree / exercise.file)
                      and library in one["command"]]
        words = shlex.split(command["command"].replace(f"-I{self.tree}/", f"-I{self.place}/"))
        made = words[words.index("-o") + 1]
        return [*words[: words.index("-o")], *(AS_GRADED if traced else [])], Path(command["directory"]) / made

    def _others(self, their_object: Path, traced: bool) -> list[Path]:
        """Objects of other files that the workbook's own file needs as well, as chapter 09's those of chapter 08."""
        pattern = f"[0-9][0-9]_*/CMakeFiles/*{'_traced' if traced else ''}_kernels.dir/**/*.o"
        files = {file: _symbols(file) for file in (self.tree / "build/cpu").glob(pattern)
                 if traced == ("_traced_kernels.dir" in str(file))}
        needed, open_ones = [], [their_object]
        while open_ones:
            _, missing = files.get(open_ones.pop(), (set(), set()))
            for file, (has, _) in files.items():
                if has & missing and file != their_object and file not in needed:
                    needed.append(file)
                    open_ones.append(file)
        return [self._kept_later(file) for file in needed]

    def _kept_later(self, path: Path) -> Path:
        kept = self._kept(path)
        self._digest = self._found()
        return kept

    def _compile(self, source: Path, text: str, words: list[str], own: str = "") -> None:
        """The source is there for its own compiler alone: the next one must find neither a solution nor what another
        student has written."""
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        try:
            self._run(words, own)
        finally:
            source.unlink()

    def _run(self, words: list[str], own: str = "") -> None:
        """Runs a compiler or a linker; DoesNotBuild, with what it says of the file `own` if one is named."""
        limits = Limits(5 * self.patience, memory=_TO_COMPILE, file_bytes=_TO_COMPILE_A_LOT)
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "TMPDIR": str(self._made),
                       "HOME": str(self._made)}
        done = self.sandbox.run_within(self.place, words, limits, environment)
        if done.stopped == "output":
            raise CompilerStopped("too many messages",
                                  [f"the compiler was stopped after {amount_of_memory(MOST_OUTPUT)} of messages"])
        if done.stopped:
            raise CompilerStopped("hangs the compiler", [f"the compiler was stopped after {5 * self.patience:g} s"])
        if done.status != 0:
            said = done.output.replace(f"{self.place}/", "/")
            lines = [re.sub(r"(?<![\w.])/(handed_in/|(?=made/|common/|libraries/))", "", line)
                     for line in build.first_errors(said)]
            lines = [_about(own, line) for line in lines] if own else lines
            if re.search(NO_MEMORY, done.output):
                raise CompilerStopped("too much memory", [as_line(line) for line in lines])
            raise build.DoesNotBuild("the build failed", [as_line(line) for line in lines])

    def linked_as(self, directory: Path, target: str, file: Path, text: str) -> Path:
        """The target of this build directory with another text of one of its files: by ninja's own commands, in which
        the compiler sees copies of what they read and writes nothing but a program."""
        told = subprocess.run(["ninja", "-C", str(directory), "-t", "commands", target], capture_output=True, text=True)
        commands = [shlex.split(line) for line in told.stdout.splitlines() if line.strip()]
        compiles = next(words for words in commands if str(file) in words)
        links = commands[-1]
        links = links[links.index("&&") + 1 :] if "&&" in links else links
        links = links[: links.index("&&")] if "&&" in links else links
        self._last = None  # its programs are in the way
        source = self.place / "handed_in" / file.relative_to(self.tree)
        self._clear()
        theirs, mine = compiles[compiles.index("-o") + 1], self._made / "handed_in.o"
        compiler = next(at for at, word in enumerate(compiles) if re.search(r"(\+\+|cc|nvcc)[-\d.]*$", word))
        words = [word.replace(f"-I{self.tree}/", f"-I{self.place}/") for word in compiles[compiler:]]
        words = [str(mine) if word == theirs else str(source) if word == str(file) else word for word in words]
        for flag in ("-MF", "-MT"):
            if flag in words:
                words[words.index(flag) : words.index(flag) + 2] = []
        for flag in [word for word in links if "--dependency-file" in word]:  # from CMake 3.27 on: it is nobody's here
            at = links.index(flag)
            del links[at - (links[at - 1] == "-Xlinker") : at + 1]
        program = links[links.index("-o") + 1]
        made = self._made / "program"
        links = [str(made) if word == program else str(mine) if word == theirs
                 else str(self._kept(directory / word)) if word[:1] not in "-/" and (directory / word).is_file()
                 else word for word in links]
        of_the_system = [word for word in links if word.startswith(("-l", "-L", "-W")) or word.startswith("/")
                         and not Path(word).is_relative_to(self.place)]
        self._show_to_compiler(directory, of_the_system)
        self._digest = self._found()
        self._compile(source, text, [word for word in words if word not in ("-MD", "-MMD")])
        self._run([links[0], *_NO_PLUGIN, *links[1:]])
        kept = self._copy(made, self.place / "handed_in" / target)
        kept.chmod(0o755)
        self._clear()
        return kept

    # --- Running ---

    @contextlib.contextmanager
    def running(self, attempt: Attempt, traced: bool) -> Iterator[socket.socket]:
        """The kernels' process, and this end of its socket. When it is left the process is ended."""
        program = self.program(attempt, traced)
        kind, _ = self.entry(attempt.exercise)
        wishes = {"user": {"CONFINE_USER": str(self.sandbox.user(1))},
                  "root": {"CONFINE_ROOT": str(self.place / "empty")},
                  "namespaces": {"CONFINE_NAMESPACES": "1"}, "calls": {"CONFINE_CALLS": "1"},
                  "limits": {"CONFINE_MEMORY": str(MEMORY), "CONFINE_SECONDS": str(int(4 * self.patience) + 1)}}
        environment = {name: value for layer, wish in wishes.items() if layer not in self.without
                       for name, value in wish.items()}
        ours, theirs = socket.socketpair()
        words = [str(self.place / "confine"), str(program), kind, attempt.exercise.rung]
        with ours, subprocess.Popen(words, stdin=theirs.fileno(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env=environment, cwd="/", start_new_session=True) as process:
            theirs.close()
            attempt.ended = 0
            try:
                yield ours
                ours.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    attempt.ended = process.wait(timeout=5)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self.sandbox.end_all(1)
            assert process.stdout is not None
            first = os.read(process.stdout.fileno(), 1000).decode(errors="replace").partition("\n")[0]
            if attempt.ended in (125, 126):
                raise Failure(f"the kernels' process did not start: {first}")
            self.layers = frozenset(first.split()) & LAYERS.keys()

    def judged(self, attempt: Attempt, traced: bool, command: Command, environment: dict[str, str]) -> Done:
        """What the judge says, a program of the workbook's own, who has the kernels run in their process."""
        with self.running(attempt, traced) as ours:
            environment = {**environment, "WORKBOOK_KERNELS": str(ours.fileno()), "SIMT_THREADS": "1",
                           **({"WORKBOOK_KERNELS_UNSURE": "1"} if attempt.unsure else {})}
            done = own_program(command, environment, self.tree, self.patience, (ours.fileno(),),
                               **self.sandbox.as_judge())
        said = done.output if attempt.unsure else self._with_lines(attempt, traced, done.output)
        lines = "\n".join(said.splitlines())
        gone = done.status != 0 and attempt.ended != 0
        return Done(attempt.ended if gone else done.status, lines, done.stopped)

    def _with_lines(self, attempt: Attempt, traced: bool, text: str) -> str:
        """With the lines of the source that the kernels' process could not look up."""
        known: dict[str, str] = {}

        def line(found: re.Match[str]) -> str:
            if found[1] not in known and len(known) < 4:
                known[found[1]] = self._line(attempt.programs[traced], found[1].strip(",").split(","))
            return known.get(found[1], "an unknown line")

        return _ADDRESSES.sub(line, text)

    def _line(self, program: Path, addresses: list[str]) -> str:
        """The first that is no header's."""
        done = self.sandbox.run_within(self.place, ["addr2line", "-i", "-e", program, *addresses], Limits(10),
                                       {"PATH": "/usr/bin:/bin"})
        lines = [line.split(" ")[0] for line in done.output.splitlines() if re.match(r"/[^:]+:[1-9]", line)]
        of_sources = [line for line in lines if not re.search(r"\.h:|/include/c\+\+/", line)]
        best = (of_sources or lines or ["an unknown line"])[0]
        return as_line("/".join(best.split("/")[-2:]))


def calls_untold(written: Path, text: str) -> str:
    """The first call, in what the compiler has written down of this text, that reads or writes an object in memory by
    value: as an argument, or to put its result there. Empty if there is none."""
    try:
        with os.fdopen(os.open(written, os.O_RDONLY | os.O_NOFOLLOW), errors="replace") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            tree = file.read(_MOST_WRITTEN_DOWN + 1) if regular else ""
    except OSError:
        tree = ""
    if not 0 < len(tree) <= _MOST_WRITTEN_DOWN:
        return "the compiler has not written down, or not briefly, what its calls read"
    shared = set(re.findall(r"__shared__[^;]*?(\w+)\s*(?:\[[^;]*)?[;={]", text))
    inside = ""
    for line in tree.splitlines():
        if line.startswith(";; Function "):
            name = re.search(r"\((\w+), funcdef_no=", line)
            inside = name[1] if name else ""
        elif (call := _CALL.fullmatch(line)) and not (inside.startswith(_LAUNCHER) and re.fullmatch(r"_\d+", call[2])):
            for part in (call[1] or "", call[3]):
                if _IN_MEMORY.search(_ADDRESS.sub("", part)) or shared & set(re.findall(r"(?<![&\w.])\w+", part)):
                    return "an object in memory is passed or returned by value, which is not counted"
    return ""


class CompilerStopped(build.DoesNotBuild):
    """With a verdict of its own."""


NO_MEMORY = ("bad_alloc|annot allocate memory|out of memory|virtual memory exhausted|cudaErrorMemoryAllocation|"
             ": stack overflow: ")


def as_line(text: str) -> str:
    """One line for a page: letters that can be printed, and not too many."""
    line = "".join(letter if letter.isprintable() else "?" for letter in text)
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 3] + ".."


def _about(own: str, line: str) -> str:
    """The line if it is the compiler's or the linker's about this file, or about none. Of others it names the file and
    does not say what stands there: assembly can include whatever file the compiler may read, and the assembler's
    messages, also of this file, quote it."""
    place = re.match(r"(.+?):\d+:", line)
    of_own = re.match(rf"{re.escape(own)}:\d+:\d+: (fatal )?error: ", line)
    error = re.search(r"\b(Error|error): |\bAssembler messages:", line)
    linkers = not error and re.search(r": (undefined reference to|multiple definition of) ", line)
    if of_own or linkers or not place and not (error and error[0] != "error: "):
        return line
    return f"an error in {place[1] if place else 'assembly'}"


def _symbols(file: Path) -> tuple[set[str], set[str]]:
    """(what an object of the workbook's own has for others, what it needs of them)."""
    told = subprocess.run(["nm", "-P", str(file)], capture_output=True, text=True).stdout
    has, needs = set(), set()
    for line in told.splitlines():
        name, kind = line.split()[:2]
        if kind in "BDRTG":
            has.add(name)
        elif kind == "U":
            needs.add(name)
    return has, needs
