"""Reading what is handed in: nothing of it is trusted, whatever it is called and however large it says it is."""

import io
import os
import sys
import tarfile
import tempfile
import time
import tracemalloc
import unittest
import zipfile
from functools import partial
from pathlib import Path
from unittest import mock

from tests.tiers import at_length
from tools.base import build
from tools.grading import read_submission, submission
from tools.grading.kernels import Kernels
from tools.grading.sandbox import Done

sys.path.insert(0, str(Path(__file__).parent / "hostile"))
from archives import ARCHIVES  # noqa: E402

KERNEL, ANSWERS = "05_online/1_online.cu", "answers.json"
TEXT = "// a kernel\n"


class Handed(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def in_a_directory(self, files: dict) -> Path:
        for file, content in files.items():
            path = self.directory / "ada" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (self.directory / "ada").mkdir(exist_ok=True)
        return self.directory / "ada"

    def in_a_zip(self, files: dict, name: str = "ada.zip") -> Path:
        with zipfile.ZipFile(self.directory / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in files.items():
                archive.writestr(file, content)
        return self.directory / name

    def in_a_tar(self, *entries) -> Path:
        with tarfile.open(self.directory / "ada.tar.gz", "w:gz") as archive:
            for name, content, link in entries:
                entry = tarfile.TarInfo(name)
                entry.size = 0 if link else len(content)
                entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
                archive.addfile(entry, io.BytesIO(content))
        return self.directory / "ada.tar.gz"

    def read(self, path: Path):
        return read_submission(path, [KERNEL, ANSWERS])

    def test_a_directory_a_zip_and_a_tar_archive_are_the_same(self):
        for path in (self.in_a_directory({KERNEL: TEXT, "x": "y"}), self.in_a_zip({KERNEL: TEXT, "x": "y"}),
                     self.in_a_tar((KERNEL, TEXT.encode(), None))):
            read = self.read(path)
            self.assertEqual((read.name, read.texts, read.wrong, read.refused), ("ada", {KERNEL: TEXT}, {}, None))

    def test_in_the_one_directory_that_is_there(self):
        self.assertEqual(self.read(self.in_a_zip({f"workbook/{KERNEL}": TEXT, "workbook/README.md": ""})).texts,
                         {KERNEL: TEXT})

    def test_beside_what_a_mac_adds(self):
        self.assertEqual(self.read(self.in_a_zip({f"workbook/{KERNEL}": TEXT, "__MACOSX/workbook/._x": "x",
                                                  ".DS_Store": "x"})).texts,
                         {KERNEL: TEXT})

    def test_names_that_are_long_or_have_more_than_one_line(self):
        self.assertEqual(self.read(self.in_a_zip({KERNEL: TEXT}, "a\nb.zip")).name, "a?b")
        names = {self.read(self.in_a_zip({KERNEL: TEXT}, f"{name * 125}.zip")).name for name in "éö"}
        self.assertEqual([len(name) for name in names], [53, 53])

    def test_what_cannot_be_read_is_said_and_raises_nothing(self):
        self.assertEqual(self.read(self.in_a_zip({".": "", KERNEL: TEXT})).texts, {KERNEL: TEXT})
        whole = self.in_a_zip({KERNEL: TEXT * 999}).read_bytes()
        damaged = bytearray(whole)
        damaged[60:90] = bytes(30)
        for name, content in [("damaged.zip", bytes(damaged)), ("half.zip", whole[: len(whole) // 2]),
                              ("none.tar.gz", b"\x1f\x8b\0")]:
            path = self.directory / name
            path.write_bytes(content)
            self.assertIsNotNone(self.read(path).refused or self.read(path).wrong, name)
        name = os.fsdecode(b"\xff.zip")
        self.in_a_zip({KERNEL: TEXT}).rename(self.directory / name)
        self.read(self.directory / name).name.encode()

    def test_empty(self):
        self.assertEqual(self.read(self.in_a_zip({})).refused, ("empty", "there is no file in it"))
        self.assertEqual(self.read(self.in_a_directory({})).refused[0], "empty")
        for files, there in [(["other.txt"], "other.txt"),
                             (["a.txt", "b.txt", "c.txt", "d.txt"], "a.txt, b.txt, c.txt, ..")]:
            self.assertEqual(self.read(self.in_a_zip(dict.fromkeys(files, "x"))).refused,
                             ("other files", f"it has none of {KERNEL}, {ANSWERS}: it has {there}"))

    @at_length
    def test_hostile_archives(self):
        """In little time and memory, each in one line that can be printed."""
        for name, (_, becomes, make) in ARCHIVES.items():
            if name == "archive-digits":
                continue  # which only a limit stops, with an older Python: see below
            with self.subTest(name=name), tempfile.TemporaryDirectory() as directory:
                path = make(Path(directory), KERNEL, TEXT)
                tracemalloc.start()
                begin = time.process_time()
                read = submission.read_here(path, [KERNEL, ANSWERS])
                seconds, (_, most) = time.process_time() - begin, tracemalloc.get_traced_memory()
                tracemalloc.stop()
                state, line = read.refused or read.wrong.get(KERNEL) or ("", "")
                self.assertEqual((state, read.texts), (becomes, {} if becomes else {KERNEL: TEXT}), line)
                self.assertTrue(len(line) <= 300 and (line.isprintable() or not line), line)
                self.assertLess(most, 200 * 1024**2)
                self.assertLess(seconds, 10)

    @at_length
    def test_what_takes_too_long_or_too_much_to_read_is_not_readable(self):
        """Whatever it is, and whatever a library does with it."""
        here = self.in_a_directory({KERNEL: TEXT})
        with mock.patch.object(submission, "_SECONDS", 1):
            self.assertEqual(self.read(ARCHIVES["archive-digits"][2](self.directory, KERNEL, TEXT)).refused[0], "not readable")
            for does in (lambda *_: [None for _ in iter(int, 1)], lambda *_: os.abort(), lambda *_: bytearray(1 << 30)):
                with mock.patch.object(submission, "read_here", side_effect=does):
                    read = self.read(here)
                self.assertEqual((read.name, read.texts), ("ada", {}))
                self.assertRegex(read.refused[1], "^it cannot be read in 1 s and 512 MiB$")
        self.assertEqual(self.read(here).texts, {KERNEL: TEXT})

    def test_an_archive_of_100_MB(self):
        large = self.directory / "large.zip"
        with open(large, "wb") as file:
            file.truncate(100 * 1024**2)
        self.assertEqual(self.read(large).refused[0], "too large")

    def test_members_are_counted_while_they_are_read(self):
        """Directories, too."""
        path = self.directory / "ada.tar"
        with tarfile.open(path, "w") as archive:
            for number in range(20_000):
                entry = tarfile.TarInfo(f"{number}")
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
        with mock.patch.object(tarfile.TarFile, "next", autospec=True, side_effect=tarfile.TarFile.next) as read:
            self.assertEqual(self.read(path).refused, ("too large", "it has more than 5000 files"))
        self.assertLess(read.call_count, 5010)

    def test_a_file_that_is_a_link(self):
        elsewhere = self.directory / "solution.cu"
        elsewhere.write_text("secret")
        tree = self.in_a_directory({ANSWERS: "{}"})
        (tree / "05_online").mkdir()
        (tree / KERNEL).symlink_to(elsewhere)
        read = self.read(tree)
        self.assertEqual((read.texts, read.wrong[KERNEL][0]), ({ANSWERS: "{}"}, "a link"))
        self.assertEqual(self.read(self.in_a_tar((KERNEL, b"", "/etc/passwd"),
                                                 (ANSWERS, b"{}", None))).wrong[KERNEL][0], "a link")

    @at_length
    def test_many_links_take_no_time_and_show_nothing(self):
        tree = self.directory / "eve"
        (self.directory / "instructors").mkdir()
        (self.directory / "instructors" / "solutions-2027.txt").write_text("x")
        tree.mkdir()
        for number in range(2000):
            (tree / f"{number}").symlink_to(".")
        (tree / "notes").symlink_to(self.directory / "instructors")
        begin = time.process_time()
        read = submission.read_here(tree, [KERNEL, ANSWERS])
        self.assertLess(time.process_time() - begin, 2)
        self.assertEqual(read.refused[0], "other files")
        self.assertNotIn("solutions", read.refused[1])

    def test_a_directory_that_is_a_link(self):
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "1_online.cu").write_text("secret")
        tree = self.in_a_directory({ANSWERS: "{}"})
        (tree / "05_online").symlink_to(elsewhere)
        read = self.read(tree)
        self.assertEqual((read.texts, read.wrong[KERNEL][0]), ({ANSWERS: "{}"}, "a link"))
        (self.directory / "grace").symlink_to(tree)
        self.assertEqual(self.read(self.directory / "grace").refused[0], "a link")

    def test_a_pipe_is_not_waited_for(self):
        tree = self.in_a_directory({ANSWERS: "{}"})
        (tree / "05_online").mkdir()
        os.mkfifo(tree / KERNEL)
        self.assertEqual(self.read(tree).wrong[KERNEL][0], "a link")

    def test_not_utf_8(self):
        read = self.read(self.in_a_directory({KERNEL: "// f\u00fcr".encode("latin-1"), ANSWERS: b"{\xff"}))
        self.assertEqual(read.wrong, {ANSWERS: ("not UTF-8", f"{ANSWERS} is not UTF-8: byte 1 is 0xff")})
        self.assertEqual(read.texts, {KERNEL: "// f\ufffdr"}, "where it matters, kernelcode.py says so")

    def test_a_mark_of_utf_8_at_the_beginning(self):
        mark = b"\xef\xbb\xbf"
        read = self.read(self.in_a_directory({KERNEL: mark + TEXT.encode(), ANSWERS: mark + b"{}"}))
        self.assertEqual((read.texts, read.wrong), ({KERNEL: TEXT, ANSWERS: "{}"}, {}))

    def test_how_large_is_too_large(self):
        most = submission.MOST_BYTES_OF_A_FILE
        read = self.read(self.in_a_directory({KERNEL: "x" * most, ANSWERS: "x" * (most + 1)}))
        self.assertEqual((list(read.texts), read.wrong), ([KERNEL], {ANSWERS: (
            "too large", f"{ANSWERS}: the file has more than 1,048,576 bytes")}))
        archive = self.directory / "ada.tar"
        archive.write_bytes(bytes(submission.MOST_BYTES + 1))
        self.assertEqual(self.read(archive).refused, ("too large", "the archive has 20,971,521 bytes: 20,971,520 are allowed"))

    def test_in_other_directories(self):
        nested, flat = {f"hw/workbook/{KERNEL}": TEXT, "hw/notes.txt": ""}, {"1_online.cu": TEXT, "x": ""}
        for files in (nested, flat):
            self.assertEqual(self.read(self.in_a_zip(files)).texts, {KERNEL: TEXT})
        twice = {f"first/{KERNEL}": TEXT, f"second/{KERNEL}": "other"}
        self.assertEqual(self.read(self.in_a_zip(twice)).refused[0], "other files")

    def test_an_archive_in_a_directory_of_moodles_and_one_in_capitals(self):
        inside = self.in_a_zip({KERNEL: TEXT}, "HOMEWORK.ZIP")
        read = self.read(inside)
        self.assertEqual((read.name, read.texts), ("HOMEWORK", {KERNEL: TEXT}))
        moodle = self.in_a_directory({"HOMEWORK.ZIP": inside.read_bytes()})
        self.assertEqual(self.read(moodle).texts, {KERNEL: TEXT})

    def test_no_archive_at_all(self):
        for name in ("ada.zip", "ada.tar.gz"):
            (self.directory / name).write_bytes(b"nothing of the kind")
            self.assertEqual(self.read(self.directory / name).refused[0], "not readable")


class Compiling(unittest.TestCase):
    """What a compiler says, which here is a sentence."""

    def compiled(self, output: str, stopped: str = "", status: int = 1) -> build.DoesNotBuild:
        with tempfile.TemporaryDirectory() as directory:
            sandbox = mock.Mock()
            sandbox.run_within.return_value = Done(status, output.replace("PLACE", directory), stopped)
            with self.assertRaises(build.DoesNotBuild) as raised:
                Kernels(Path(directory), Path(directory), sandbox, 60)._run(["g++"], KERNEL)
        return raised.exception

    def test_what_stops_it_is_said(self):
        for stopped, state, line in [("output", "too many messages", "the compiler was stopped after 1.0 MiB of messages"),
                                     ("time", "hangs the compiler", "the compiler was stopped after 300 s")]:
            with self.subTest(stopped=stopped):
                failure = self.compiled("a.s:1: Error: garbage\n" * 9, stopped)
                self.assertEqual((str(failure), failure.errors), (state, [line]))

    def test_lines_are_short_and_few_and_can_be_printed(self):
        long = "".join(f"{KERNEL}:{line}:3: error: " + "\033[2J\0\u202e" + "x" * 5000 + "\n" for line in range(1000))
        for output in (f"PLACE/handed_in/{long}", "x" * 900_000, "\n" * 900_000 + "y"):
            errors = self.compiled(output).errors
            self.assertTrue(1 <= len(errors) <= 5)
            self.assertTrue(all(len(line) <= 300 and line.isprintable() for line in errors), errors)

    def test_the_source_is_gone_when_it_is_compiled(self):
        """Also where it does not compile, or the compiler is stopped."""
        for done, failure in [(Done(0, ""), None), (Done(1, f"{KERNEL}:1:1: error: x"), build.DoesNotBuild),
                              (Done(0, "", "time"), build.DoesNotBuild)]:
            with self.subTest(done=done), tempfile.TemporaryDirectory() as directory:
                source, sandbox, seen = Path(directory) / "handed_in" / KERNEL, mock.Mock(), []
                sandbox.run_within.side_effect = lambda *_: (seen.append(source.read_text()), done)[1]
                compiles = partial(Kernels(Path(directory), Path(directory), sandbox, 60)._compile, source, TEXT, ["g++"], KERNEL)
                if failure:
                    self.assertRaises(failure, compiles)
                else:
                    compiles()
                self.assertEqual((seen, [path for path in Path(directory).rglob("*") if path.is_file()]), ([TEXT], []))

    def test_of_other_files_nothing_is_shown(self):
        for output, shown in [
                (f"PLACE/handed_in/{KERNEL}:9:3: error: 'x' was not declared", f"{KERNEL}:9:3: error: 'x' was not declared"),
                (f"PLACE/handed_in/{KERNEL}:9: undefined reference to `fork'", f"{KERNEL}:9: undefined reference to `fork'"),
                ("ld: PLACE/made/kernels.o: undefined reference to `fork'", "ld: made/kernels.o: undefined reference to `fork'"),
                ("ld: a.o: in function `f': a.cc:9: multiple definition of `f'",
                 "ld: a.o: in function `f': a.cc:9: multiple definition of `f'"),
                ("cc1plus: fatal error: no space: stopped", "cc1plus: fatal error: no space: stopped"),
                (f"handed_in/{KERNEL}:9: Error: no such instruction: `return secret'", f"an error in handed_in/{KERNEL}"),
                (f"PLACE/handed_in/{KERNEL}:9: Error: no such instruction: `return secret'", f"an error in {KERNEL}"),
                ("/root/secret.json:1: Error: junk `secret'", "an error in /root/secret.json"),
                ("/root/secret.json:1: Error: undefined reference to `secret'", "an error in /root/secret.json"),
                ("/root/secret.json:1:1: error: secret does not name a type", "an error in /root/secret.json"),
                ("/root/secret.json: Error: junk `secret'", "an error in assembly"),
                ("{standard input}:7: Error: out of memory `secret'", "an error in {standard input}")]:
            with self.subTest(output=output):
                self.assertEqual(self.compiled(output).errors, [shown])


if __name__ == "__main__":
    unittest.main()
