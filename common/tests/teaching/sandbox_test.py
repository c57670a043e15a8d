"""The sandbox stops what it has to stop, and says what holds on this machine."""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

from tools.teaching.sandbox import Limits, Sandbox, python


class InTheSandbox(unittest.TestCase):
    def run_python(self, code: str, seconds: float = 20, **limits):
        return Sandbox().run([python(), "-c", code], Limits(seconds, **limits), {"PATH": os.environ["PATH"]})

    def test_an_ordinary_program(self):
        done = self.run_python("print('hello')")
        self.assertEqual((done.status, done.output, done.stopped), (0, "hello\n", ""))
        self.assertEqual(self.run_python("raise SystemExit(3)").status, 3)

    def test_one_that_hangs(self):
        begin = time.monotonic()
        self.assertEqual(self.run_python("while True: pass", seconds=1).stopped, "time")
        self.assertLess(time.monotonic() - begin, 10)

    def test_one_that_prints_without_end(self):
        done = self.run_python("while True: print('x' * 1000)")
        self.assertEqual(done.stopped, "output")
        self.assertLess(len(done.output), 2 * 1024**2)

    def test_one_that_allocates_without_end(self):
        done = self.run_python("kept = []\nwhile True: kept.append(bytearray(1 << 24))", memory=256 * 1024**2)
        self.assertEqual((done.status, done.stopped), (1, ""))
        self.assertIn("MemoryError", done.output)

    def test_one_that_writes_a_file_without_end(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            self.run_python(f"f = open('{directory}/x', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()", file_bytes=4 * 1024**2)
            written = Path(directory) / "x"
            self.assertLessEqual(written.stat().st_size if written.exists() else 0, 4 * 1024**2)

    def test_one_that_crashes(self):
        done = self.run_python("import ctypes\nctypes.string_at(0)")
        self.assertEqual((done.status, done.stopped), (-11, ""))

    def test_one_that_leaves_others_behind(self):
        begin = time.monotonic()
        done = self.run_python("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(100)")
        self.assertEqual(done.status, 0)
        self.assertLess(time.monotonic() - begin, 20)

    @unittest.skipIf(os.geteuid() != 0, "NOT RUN: needs root, for a user of its own")
    def test_one_that_forks_without_end(self):
        done = self.run_python("import os\nwhile True:\n    os.fork()", seconds=10)
        self.assertTrue("BlockingIOError" in done.output or done.stopped)

    def test_what_is_said_to_hold_holds(self):
        held = Sandbox().held(Path("/tmp"))
        self.assertTrue(held["runs"], held)
        if os.geteuid() == 0:
            self.assertEqual((held["user"], held["files"]), ("its own", "read only"))
        self.assertRegex(held["memory"], "at most [0-9]+ MiB")
        who = self.run_python("import os; print(os.getuid())").output.strip()
        self.assertEqual(held["user"] == "its own", who != str(os.geteuid()))


if __name__ == "__main__":
    unittest.main()
