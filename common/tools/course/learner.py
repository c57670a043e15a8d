"""Whose are the exercises? In a clone they are the book's solutions, until ./workbook start makes them the learner's.

The sources themselves are changed, and git's history is not. What is remembered stands in .learner at the top of the
tree, which git ignores:

    started.json       {"05.rescale": the book's text of it, ..}: the exercises that are the learner's
    before/FILE        the files as they were before the first exercise in them was started, byte for byte
    planted/FILE       the files of debugging exercises, as they were at the beginning
    kept/ID-1.cu, ..   what was taken away: the learner's versions, the newest last
    away/FILE          the learner's files, while git fetches a newer version of the course
    progress.json      hints and results: see progress.py

In a tree that was handed out all exercises are the student's, and common/course/handed_out says how they began.
"""

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.base import Failure, shown
from tools.course import markers, planted
from tools.course.exercises import HANDED_OUT, LEARNER, PLANTED, Course, Exercise


class Learner:
    def __init__(self, course: Course):
        self.course, self.root, self._place = course, course.root, course.root / LEARNER
        self.was_handed_out = (self.root / HANDED_OUT).is_dir()
        self._started: dict[str, str] = self._read_started()
        self._committed: dict[str, str] = self._read_committed()

    def _read_started(self) -> dict[str, str]:
        path = self._place / "started.json"
        try:
            known = json.loads(path.read_text())
            if not isinstance(known, dict) or not all(isinstance(text, str) for text in known.values()):
                raise ValueError
            return known
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError):
            raise Failure(f"{shown(path)} cannot be read: remove it, and ./workbook start goes on with what stands in "
                          "your files", status=2) from None

    def _read_committed(self) -> dict[str, str]:
        """{file: its text in git's last commit} of the exercises' files that differ from it."""
        files = sorted({one.file for one in self.course.exercises if one.kind != "measure"})
        if not files or not (self.root / ".git").exists():
            return {}
        listed = self._git("diff", "--name-only", "-z", "HEAD", "--", *files)
        changed = listed.stdout.split("\0") if listed.returncode == 0 else []
        return {file: self._git("show", f"HEAD:./{file}").stdout for file in changed if file}

    def _git(self, *words: str) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(["git", *words], cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True)
        except OSError:  # there is no git
            return subprocess.CompletedProcess(words, 1, "", "there is no git")

    def has_started(self) -> bool:
        return self.was_handed_out or bool(self._started)

    def started(self, exercise: Exercise) -> bool:
        return exercise.kind == "measure" or self.was_handed_out or exercise.id in self._started

    def require_none_started(self, what: str) -> None:
        """Failure if an exercise is started: `what` needs the book's solutions."""
        if self._started:
            raise Failure(f"{what} needs the book's solutions, and exercises are started here ({len(self._started)}); "
                          "./workbook start --undo puts the solutions back", status=2)

    def theirs(self, exercise: Exercise) -> bool:
        """Whether the exercise is the learner's: it was started, or its text is not the one that git has."""
        return self.started(exercise) or self._changed(exercise)

    def _changed(self, exercise: Exercise) -> bool:
        committed = self._committed.get(exercise.file)
        return committed is not None and (exercise.file in self.course.damaged or self._part(exercise, committed)
                                          != self.course.written(exercise))

    def _part(self, exercise: Exercise, text: str) -> str:
        """The exercise's part of a text of its file."""
        return text if exercise.kind == "debug" else markers.inside(text, self.course.region(exercise, text))

    def has_the_books(self, exercise: Exercise) -> bool:
        """Whether the learner's text stands in the place of the book's, which is known."""
        return exercise.id in self._started

    def with_the_books(self, others: list[Exercise]) -> dict[str, str]:
        """{file: its text for a compiler} with the book's text of these exercises, as far as it is known here. The
        files stay as they are."""
        texts = {}
        for file in sorted({one.file for one in others if one.id in self._started}):
            here = {one.name: one for one in others if one.file == file and one.id in self._started}
            debug = next((one for one in here.values() if one.kind == "debug"), None)
            text = self._started[debug.id] if debug else (self.root / file).read_text()
            texts[file] = markers.for_a_compiler(str(self.root / file), text, {} if debug else {
                name: self._started[one.id] for name, one in here.items()})
        return texts

    # --- Starting, and back -------------------------------------------------------------------------------------------

    def start(self, chosen: list[Exercise]) -> tuple[list[Exercise], list[Exercise]]:
        """Puts those that are the book's into their initial state: (these, those that the learner has changed before,
        which stay as they are). Nothing is changed if not all can be written."""
        new = [one for one in chosen if not self.started(one)]
        changed = [one for one in new if self._changed(one)]
        begun = [one for one in new if one not in changed]
        if not new:
            return [], []
        texts = self.course.begun(begun)
        started = {**self._started, **{one.id: self._part(one, self._committed[one.file]) if one in changed
                                       else self.course.written(one) for one in new}}
        known = {one.file for one in self.course.exercises if one.id in self._started}
        before = {file: (self.root / file).read_bytes() for file in sorted({one.file for one in new})}
        copies = [one.file for one in begun if one.kind == "debug"]
        try:
            for file in before:
                if not os.access(self.root / file, os.W_OK):
                    raise PermissionError(errno.EACCES, "it is read-only", file)
            for file in before.keys() - known:
                self._write(self._place / "before" / file, before[file])
            for file in copies:
                self._write(self.root / PLANTED / file, texts[file].encode())
            for file, text in texts.items():
                self._write(self.root / file, text.encode())
            self._write_started(started)
        except OSError as error:
            for file, content in before.items():
                if (self.root / file).read_bytes() != content:
                    (self.root / file).write_bytes(content)
            for file in copies:
                with contextlib.suppress(OSError):
                    (self.root / PLANTED / file).unlink()
            where = error.filename2 or error.filename or LEARNER
            raise Failure(f"cannot write {shown(self.root / where)}: {error.strerror}; no exercise was changed",
                          status=2) from None
        return begun, changed

    def undo(self) -> tuple[list[Exercise], list[str]]:
        """Puts back what was there before, byte for byte: (the exercises whose attempts were kept, the files that
        differ from what they were because something outside of the exercises has been changed)."""
        exercises = [one for one in self.course.exercises if one.id in self._started]
        kept = [one for one in exercises if self.course.attempted(one) and self._keep(one)]
        differ = []
        for file in sorted({one.file for one in exercises}):
            before, text = self._before(file), self._without_attempts(file)
            same = text.splitlines() == before.decode().splitlines()
            self._write(self.root / file, before if same else text.encode())
            differ += [] if same else [file]
        self._write_started({})
        for directory in (self._place / "before", self.root / PLANTED):
            shutil.rmtree(directory, ignore_errors=True)
        return kept, differ

    def _before(self, file: str) -> bytes:
        try:
            return (self._place / "before" / file).read_bytes()
        except OSError as error:
            raise Failure(f"cannot read {LEARNER}/before/{file}: {error.strerror}; git checkout {file} brings the "
                          "book's file back", status=2) from None

    def _without_attempts(self, file: str) -> str:
        """The file's text with its started exercises as they were before."""
        before = self._before(file).decode()
        text = (self.root / file).read_text()
        for one in (one for one in self.course.exercises if one.file == file and one.id in self._started):
            text = before if one.kind == "debug" else markers.filled(text, self.course.region(one, text),
                                                                     self._part(one, before))
        return text

    def reset(self, exercise: Exercise) -> "Path | None":
        """Puts the exercise back to its initial state, and starts it if need be. What the learner had written is
        kept in a file, which is returned; None if there was nothing."""
        if exercise.file in self.course.damaged:
            kept = self._begin_again(exercise.file)
            self.start([exercise])
            return kept
        self.start([exercise])
        if not self.course.attempted(exercise):
            return None
        initial = self.course.start_of(exercise)
        kept = self._keep(exercise)
        if exercise.kind == "debug" and not self.was_handed_out:
            self._write(self.root / PLANTED / exercise.file, initial.encode())
        self._put(exercise, initial)
        return kept

    def _begin_again(self, file: str) -> Path:
        """Puts a file whose markers are damaged back to its initial state, all of its exercises. It is kept."""
        here = [one for one in self.course.exercises if one.file == file and one.kind != "measure"]
        if self.was_handed_out:
            text = (self.root / HANDED_OUT / file).read_text()
        else:
            started = [one for one in here if one.id in self._started]
            if not started and file not in self._committed:  # nobody knows what it was
                raise Failure(self.course.damaged[file], status=2)
            text = self._before(file).decode() if started else self._committed[file]
            for one in (one for one in started if one.kind == "code"):
                region = self.course.region(one, text)
                text = markers.filled(text, region, markers.indented_stub(text, region))
            if started and started[0].kind == "debug":
                text = (self.root / PLANTED / file).read_text()
        number = next(number for number in itertools.count(1) if not self._whole(file, number).exists())
        self._write(self._whole(file, number), (self.root / file).read_bytes())
        self._write(self.root / file, text.encode())
        del self.course.damaged[file]
        return self._whole(file, number)

    def _whole(self, file: str, number: int) -> Path:
        kept = self._place / "kept" / file
        return kept.with_name(f"{kept.stem}-{number}{kept.suffix}")

    def mine(self, exercise: Exercise) -> Path:
        """Gives back the learner's version that was taken away last; what stands there instead is kept too."""
        versions = self._versions(exercise)
        if not versions:
            raise Failure(f"no version of {exercise.id} has been kept", status=2)
        text = versions[-1].read_text()
        self.start([exercise])
        if self.course.attempted(exercise) and self.course.written(exercise).split() != text.split():
            self._keep(exercise)
        self._put(exercise, text)
        return versions[-1]

    def book(self, exercise: Exercise) -> "Path | None":
        """Puts the book's solution there, and the exercise is the book's again. The learner's version is kept, in the
        file that is returned; None if there was none."""
        if self.was_handed_out:
            raise Failure("this tree was handed out: it has no solutions", status=2)
        if exercise.id not in self._started:
            raise Failure(f"{exercise.id} has not been started: what stands in {exercise.file} is the book's, or git "
                          "has the book's", status=2)
        kept = self._keep(exercise) if self.course.attempted(exercise) else None
        self._put(exercise, self._started[exercise.id])
        self._write_started({id: text for id, text in self._started.items() if id != exercise.id})
        if exercise.kind == "debug":
            (self.root / PLANTED / exercise.file).unlink(missing_ok=True)
        return kept

    def _versions(self, exercise: Exercise) -> list[Path]:
        return sorted((self._place / "kept").glob(f"{exercise.id}-*.cu"), key=_number)

    def _keep(self, exercise: Exercise) -> Path:
        versions = self._versions(exercise)
        number = _number(versions[-1]) + 1 if versions else 1
        kept = self._place / "kept" / f"{exercise.id}-{number}.cu"
        self._write(kept, (self.course.written(exercise).rstrip("\n") + "\n").encode())
        return kept

    def _put(self, exercise: Exercise, written: str) -> None:
        self._write(self.root / exercise.file, self.course.replaced(exercise, written).encode())

    def _write_started(self, started: dict[str, str]) -> None:
        self._write(self._place / "started.json", (json.dumps(started, indent=1) + "\n").encode())
        self._started = started

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """All of it or nothing; the file keeps its mode."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".unfinished")
        unfinished.write_bytes(content)
        if path.exists():
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)

    # --- A newer version of the course --------------------------------------------------------------------------------

    def pull(self) -> str:
        """Fetches the newest version of the course with git, while the book's text stands in the learner's files.
        Returns what git says of it, in a line; come_back() then puts the learner's text in again, in a process that has
        the new version's modules. If git fails, everything is as it was."""
        if not (self.root / ".git").exists():
            raise Failure("this tree is no git clone: there is nowhere to fetch a newer version from", status=2)
        files = sorted({one.file for one in self.course.exercises if one.id in self._started} & self._committed.keys())
        for one in self.course.exercises:  # what the learner has committed, git merges
            if one.id in self._started and one.file in files and (
                    self._part(one, self._committed[one.file]) != self._started[one.id]):
                raise Failure(f"you have committed a part of your changes to {one.file}: commit the others, too, and "
                              "git pull merges the course's", status=2)
        theirs = {file: (self.root / file).read_bytes() for file in files}
        without = {file: self._without_attempts(file) for file in files}
        for file, content in theirs.items():
            self._write(self._place / "away" / file, content)
            before = self._before(file)
            same = without[file].splitlines() == before.decode().splitlines()
            self._write(self.root / file, before if same else without[file].encode())
        (self._place / "away").mkdir(parents=True, exist_ok=True)
        busy = [name for name in ("MERGE_HEAD", "rebase-merge", "rebase-apply") if self._in_git(name)]
        chosen = self._git("config", "pull.rebase").returncode == 0
        done = self._git(*([] if chosen else ["-c", "pull.rebase=false"]), "pull", "--no-edit")  # else git only asks
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        if done.returncode == 0:
            return next((line for line in said if re.match(r"\d+ files? changed", line)), "There is nothing new.")
        if not busy:
            for name, command in (("MERGE_HEAD", "merge"), ("rebase-merge", "rebase"), ("rebase-apply", "rebase")):
                if self._in_git(name):
                    self._git(command, "--abort")
        for file, content in theirs.items():
            self._write(self.root / file, content)
        shutil.rmtree(self._place / "away")
        why = next((line for line in said if line.startswith(("error:", "fatal:", "CONFLICT"))), " ".join(said[-1:]))
        raise Failure(f"git pull failed, and all is as it was: {why}")

    def _in_git(self, name: str) -> bool:
        where = self._git("rev-parse", "--git-path", name).stdout.strip()
        return bool(where) and (self.root / where).exists()

    def is_away(self) -> bool:
        return (self._place / "away").is_dir()

    def come_back(self) -> list[str]:
        """Puts the learner's text into the files of the newer version; says what could not be put there and is
        kept."""
        away, said = self._place / "away", []
        for copy in sorted(path for path in away.rglob("*") if path.is_file()):
            file, started = str(copy.relative_to(away)), dict(self._started)
            here = [one for one in self.course.exercises if one.file == file and one.id in started]
            if here:
                self._write(self._place / "before" / file, (self.root / file).read_bytes())
            for one in here:
                started[one.id] = self.course.written(one)
                text = self._written_in(copy, one) if one.kind == "code" else None
                if text is not None:
                    self._put(one, text)
                elif one.kind == "debug":
                    said += self._merge(one, copy)
            if not here or said:
                self._write(self._place / "kept" / file, copy.read_bytes())
            if not here:
                said.append(f"{file} has no exercise of yours any more: your file is {LEARNER}/kept/{file}")
            self._write_started(started)
            copy.unlink()
        known = {one.id for one in self.course.exercises}
        self._write_started({id: text for id, text in self._started.items() if id in known})
        shutil.rmtree(away)
        return said

    def _written_in(self, copy: Path, exercise: Exercise) -> "str | None":
        """What the learner's file has for this exercise; the new stub, if that is the old one."""
        text = copy.read_text()
        region = next((one for one in markers.regions(exercise.file, text) if one.name == exercise.name), None)
        if region is None:
            return None
        written = markers.inside(text, region)
        untouched = written.split() == markers.indented_stub(text, region).split()
        return self.course.start_of(exercise) if untouched else written

    def _merge(self, exercise: Exercise, theirs: Path) -> list[str]:
        """Puts the learner's changes to a file with a planted mistake into the new version of that file."""
        initial = planted.in_text(self.course.text(exercise), planted.read(self.root, exercise.id))
        if initial is None:
            raise Failure(f"{exercise.file} has no place for the mistake of {exercise.id}")
        old, newer = self.root / PLANTED / exercise.file, self._place / "away" / f"{exercise.file}.newer"
        self._write(newer, initial.encode())
        done = self._git("merge-file", "-p", str(theirs), str(old if old.exists() else theirs), str(newer))
        merged = done.stdout if done.returncode == 0 else initial
        newer.unlink()
        self._write(old, initial.encode())
        self._put(exercise, merged)
        return [] if done.returncode == 0 else [f"{exercise.id} begins again, because the course has changed the same "
                                                f"lines as you: your file is {LEARNER}/kept/{exercise.file}"]


def _number(version: Path) -> int:
    """05.rescale-2.cu -> 2."""
    return int(version.stem.rpartition("-")[2])
