"""The sandbox stops what it has to stop, and says what holds on this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from tools.base import ROOT, Failure
from tools.grading import sandbox
from tools.grading.compiler_root import CompilerRoot
from tools.grading.sandbox import Limits, Sandbox, python


# It says where it can.
LEAVES = """import ctypes, os
for place in ("/tmp", "/var/tmp", "/dev/shm", "/dev", "/run/lock"):
    try:
        os.makedirs(f"{place}/of-a-student/inside")
        open(f"{place}/of-a-student/inside/file", "w").close()
        open(f"{place}/.of-a-student", "w").close()
        os.symlink("/etc", f"{place}/link-of-a-student")
        print(place)
    except OSError:
        pass
ctypes.CDLL(None).shmget(0x1234567, 4096, 0o1666)
"""


def a_root(case) -> Path:
    """A compiler's root directory with nothing but the probe in it, which goes away with the test case's class."""
    directory = tempfile.TemporaryDirectory()
    case.addClassCleanup(directory.cleanup)
    Path(directory.name).chmod(0o755)
    root = Path(directory.name) / "root"
    (root / sandbox.MADE).mkdir(parents=True)
    CompilerRoot(root)
    Sandbox().own(root / sandbox.MADE)
    subprocess.run(["g++", "-std=c++20", "-static", "-o", root / "probe", ROOT / "common/harness/judge/probe.cc"], check=True)
    return root


class InTheSandbox(unittest.TestCase):
    """With namespaces and users of our own."""

    bubblewrap = False

    @classmethod
    def setUpClass(cls):
        cls.root = a_root(cls)

    def setUp(self):
        if self.bubblewrap and not sandbox._bubblewrap():
            self.skipTest("NOT RUN: bubblewrap is not here, or does not work")
        patch = mock.patch.object(sandbox, "_bubblewrap", return_value=self.bubblewrap)
        patch.start()
        self.addCleanup(patch.stop)

    def run_python(self, code: str, seconds: float = 20, **limits):
        return Sandbox().run([python(), "-c", code], Limits(seconds, **limits), {"PATH": os.environ["PATH"]})

    @unittest.skipIf(os.geteuid() != 0, "NOT RUN: needs root, for users of its own")
    def test_a_tree_that_the_other_user_cannot_reach_is_refused_before_it_is_built(self):
        with tempfile.TemporaryDirectory() as directory:
            tree = Path(directory) / "not there yet" / "tree"
            Path(directory).chmod(0o755)
            Sandbox().require_entry(tree)
            Path(directory).chmod(0o700)
            with self.assertRaisesRegex(Failure,
                                        f"{tree} as another user, who may not enter {directory}: chmod o.x {directory}"):
                Sandbox().require_entry(tree)

    @unittest.skipIf(os.geteuid() != 0, "NOT RUN: needs root, for users of its own")
    def test_two_at_the_same_time_are_two_users(self):
        """Or the processes of the one would count for the other."""
        first, second = Sandbox(), Sandbox()
        self.assertEqual(len({one.user(which) for one in (first, second) for which in range(3)}), 6)

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
            self.run_python(f"f = open('{directory}/x', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()",
                            file_bytes=4 * 1024**2)
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

    def test_one_that_leaves_files_behind(self):
        if os.geteuid() != 0 and not self.bubblewrap:
            self.skipTest("NOT RUN: needs root, for a user of its own")
        box = Sandbox()
        done = box.run([python(), "-c", LEAVES], Limits(20), {"PATH": os.environ["PATH"]})
        self.assertRegex(done.output, "^$" if self.bubblewrap else "^/tmp\n")
        if os.geteuid() == 0:
            self.assertEqual((sandbox.left_by(box.user()), sandbox._shared_by(box.user())), ([], []))

    def test_what_others_remove_meanwhile_hides_nothing(self):
        with tempfile.TemporaryDirectory() as place:
            own = Path(place) / "own"
            own.touch()
            with mock.patch.object(sandbox, "_FOR_EVERYBODY", (place,)), \
                    mock.patch.object(Path, "iterdir", return_value=iter([Path(place) / "gone", own])):
                self.assertEqual(sandbox.left_by(os.geteuid()), [own])

    @unittest.skipIf(os.geteuid() != 0, "NOT RUN: needs root, for a user of its own")
    def test_one_that_forks_without_end(self):
        done = self.run_python("import os\nwhile True:\n    os.fork()", seconds=10)
        self.assertTrue("BlockingIOError" in done.output or done.stopped)

    def test_what_is_said_to_hold_holds(self):
        held = Sandbox().held(self.root, self.root / "probe")
        self.assertTrue(held["runs"], held)
        if os.geteuid() == 0:
            self.assertEqual((held["user"], held["files"], held["other files"]), ("its own", "read only", "not seen"))
        self.assertEqual(held["bubblewrap"], self.bubblewrap)
        self.assertRegex(held["memory"], "at most [0-9]+ MiB")
        who = self.run_python("import os; print(os.getuid())").output.strip()
        self.assertEqual(held["user"] == "its own", who != str(os.geteuid()))

    def test_what_is_said_not_to_hold_does_not(self):
        """As of an ordinary user without namespaces."""
        with mock.patch.object(Sandbox, "_walls_of", return_value=None), mock.patch.object(sandbox, "_bubblewrap", return_value=False):
            held = Sandbox().held(self.root, self.root / "probe")
        self.assertEqual((held["files"] == "read only", held["other files"]), (False, "seen"))


@unittest.skipIf(os.geteuid() != 0 or not shutil.which("setpriv"), "NOT RUN: needs root")
class InAContainer(unittest.TestCase):
    """Root that may have no namespaces."""

    def run_there(self, code: str, *words) -> str:
        capabilities = "-all,+chown,+dac_override,+fowner,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot"
        done = subprocess.run(["setpriv", "--bounding-set", capabilities, "--inh-caps=-all", sys.executable, "-c",
                               code, *words],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "common")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_holds(self):
        code = ("from pathlib import Path; from tools.grading.sandbox import Sandbox; import sys; root = Path(sys.argv[1]); "
                "print(Sandbox().held(root, root / 'probe'))")
        held = self.run_there(code, str(a_root(type(self))))
        for holds in ("'user': 'its own'", "'files': 'read only'", "'other files': 'not seen'"):
            self.assertIn(holds, held)

    def test_one_that_leaves_others_behind(self):
        left = ("import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n    "
                "print(os.getpid())")
        code = f"""from tools.grading import sandbox
sandbox._works = lambda *_: False  # no namespaces for the other user, too
box = sandbox.Sandbox()
done = box.run([sandbox.python(), "-c", {left!r}], sandbox.Limits(5), sandbox._environment())
print(done.status, sandbox._processes_of(box.user()))"""
        begin = time.monotonic()
        self.assertEqual(self.run_there(code), "0 []\n")
        self.assertLess(time.monotonic() - begin, 30)


    def test_one_that_leaves_files_behind(self):
        code = f"""from tools.grading import sandbox
sandbox._works = lambda *_: False
box = sandbox.Sandbox()
box.run([sandbox.python(), "-c", {LEAVES!r}], sandbox.Limits(5), sandbox._environment())
print(sandbox.left_by(box.user()), sandbox._shared_by(box.user()))"""
        self.assertEqual(self.run_there(code), "[] []\n")


class InBubblewrap(InTheSandbox):
    bubblewrap = True

    def test_what_holds_whoever_we_are(self):
        held = Sandbox().held(self.root, self.root / "probe")
        self.assertEqual((held["network"], held["files"], held["others"], held["other files"]),
                         ("none", "read only", "not seen", "not seen"))

    def test_a_tree_among_temporary_files_is_seen_and_the_others_are_not(self):
        with tempfile.TemporaryDirectory() as directory, tempfile.NamedTemporaryFile() as other:
            tree = Path(directory) / "tree"
            (tree / "build").mkdir(parents=True)
            for path in (Path(directory), tree / "build"):
                path.chmod(0o777)
            (tree / "source").write_text("x")
            code = (f"import os; open('{tree}/source'); open('{tree}/build/made', 'w'); "
                    f"print(os.path.exists('{other.name}'))")
            done = Sandbox().run([python(), "-c", code], Limits(20), {"PATH": os.environ["PATH"]}, cwd=tree,
                                 writable=(tree / "build",))
            self.assertEqual((done.status, done.output), (0, "False\n"))
            self.assertTrue((tree / "build/made").exists())

    def test_a_tree_below_a_directory_that_is_somebody_s_own(self):
        with tempfile.TemporaryDirectory(dir=ROOT) as directory:
            home = Path(directory) / "home"
            (home / "tree").mkdir(parents=True)
            (home / "secret").write_text("x")
            (home / "tree/source").write_text("x")
            home.chmod(0o700)
            code = (f"import os; print(open('{home}/tree/source').read(), os.geteuid() and "
                    f"os.path.exists('{home}/secret'))")
            done = Sandbox().run([python(), "-c", code], Limits(20), {"PATH": os.environ["PATH"]}, cwd=home / "tree")
        self.assertEqual((done.status, done.output), (0, f"x {os.geteuid() != 0}\n"))


if __name__ == "__main__":
    unittest.main()
