"""What is missing, which preset a machine gets, when it is configured; and how programs are started, read and ended."""

import contextlib
import fcntl
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from tools.base import (
    ROOT,
    Failure,
    answer_of,
    build,
    cuda,
    ending_of,
    json_from,
    packages,
    processes,
    started,
    with_python_path,
    substitutes,
)
from tools.base.cuda import Gpu, Nvcc, choose_preset
from tools.base.packages import Package, missing_packages

H200 = (Gpu("NVIDIA H200", "580.1"), "")
NONE = (None, "no nvidia-smi")
NVCC = Nvcc("/usr/local/cuda/bin/nvcc", (13, 0))


class Packages(unittest.TestCase):
    def test_programs_are_looked_for_on_the_path(self):
        self.assertTrue(Package("any", program="sh").present([]))
        self.assertFalse(Package("any", program="no-such-program").present([]))

    def test_libraries_are_looked_for_below_every_prefix(self):
        with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as prefix:
            library = Path(prefix) / "lib" / "x86_64-linux-gnu" / "libboost_context.so"
            library.parent.mkdir(parents=True)
            package = Package("libboost-context-dev", files=("lib*/libboost_context*.so", "lib/*/libboost_context*.so"))
            self.assertFalse(package.present([empty, prefix]))
            library.touch()
            self.assertTrue(package.present([empty, prefix]))

    def test_cuda_needs_no_boost(self):
        with tempfile.TemporaryDirectory() as empty:
            cpu, cuda = ({package.name for package in missing_packages(preset, [empty])} for preset in ("cpu", "cuda"))
        self.assertEqual(cpu - cuda, {package.name for package in packages.ENGINE_LIBRARIES})
        self.assertIn("libeigen3-dev", cuda)

    def test_without_what_is_not_necessary_everything_else_goes_on(self):
        def refuse(_):
            raise Failure("no network")

        for root, reason in [(lambda: None, "needs the packages"), (lambda: [], "no network")]:
            said = []
            with tempfile.TemporaryDirectory() as build, mock.patch.multiple(
                    packages, COMPILER_CACHE=[Package("ccache", program="no-such-program")], BUILD=Path(build), _become_root=root,
                    _install=refuse, say=said.append, shutil=mock.Mock(which=lambda name: name)):
                with mock.patch.object(Package, "present", lambda *_: False):
                    packages.install_compiler_cache()
                    packages.install_compiler_cache()
            self.assertEqual(len(said), 1, said)
            self.assertIn("without ccache", said[0])
            self.assertIn(reason, said[0])


class Presets(unittest.TestCase):
    def test_a_gpu_and_nvcc(self):
        choice = choose_preset(None, H200, NVCC)
        self.assertEqual((choice.preset, choice.gpu.name), ("cuda", "NVIDIA H200"))

    def test_no_gpu(self):
        choice = choose_preset(None, NONE, NVCC)
        self.assertEqual((choice.preset, choice.gpu), ("cpu", None))
        self.assertIn("no nvidia-smi", choice.why)

    def test_a_gpu_but_no_usable_nvcc(self):
        for nvcc, reason in [(None, "no nvcc"), (Nvcc("nvcc", (11, 8)), "11.8 is too old")]:
            choice = choose_preset(None, H200, nvcc)
            self.assertEqual(choice.preset, "cpu")
            self.assertIn(reason, choice.why)

    def test_the_user_decides(self):
        self.assertEqual(choose_preset("cpu", H200, NVCC).preset, "cpu")
        self.assertEqual(choose_preset("cuda", NONE, NVCC).preset, "cuda")
        with self.assertRaisesRegex(Failure, "no nvcc"):
            choose_preset("cuda", H200, None)


class Jobs(unittest.TestCase):
    def test_no_more_compilers_than_memory_holds(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(build, "cores", return_value=2):
            limit = Path(directory) / "memory.max"
            with mock.patch.object(build, "_LIMITS", (limit, Path(directory) / "none")):
                for text, jobs in (("805306368", 1), ("1610612736", 2), ("100", 1), (str(64 * 1024**3), 2)):
                    limit.write_text(f"{text}\n")
                    self.assertEqual(build.jobs(), jobs, text)
                limit.write_text("max\n")
                self.assertEqual(build.memory(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


class TwoGpus(unittest.TestCase):
    """Of the one that programs use, the measurements tell."""

    UUIDS = {"0": "GPU-aaaaaaaa-1", "1": "GPU-bbbbbbbb-2", "GPU-bbbbbbbb-2": "GPU-bbbbbbbb-2"}

    def told(self, visible, uuid=""):
        def nvidia_smi(command, timeout):
            asked = [word.removeprefix("--id=") for word in command if str(word).startswith("--id=")]
            return "\n".join([self.UUIDS[one] for one in asked] if asked else ["GPU-aaaaaaaa-1", "GPU-bbbbbbbb-2"])

        visible = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        with mock.patch.object(cuda, "output_of", nvidia_smi), mock.patch.dict(os.environ, visible):
            if not visible:
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            return cuda.smi({"uuid": "uuid"}, uuid)["uuid"], cuda.gpu_identity()

    def test_the_first_that_is_visible(self):
        first, second = ("GPU-aaaaaaaa-1", "aaaaaaaa"), ("GPU-bbbbbbbb-2", "bbbbbbbb")
        for visible, expected in [(None, first), ("0", first), ("1", second), ("1,0", second),
                                  ("GPU-bbbbbbbb-2", second)]:
            self.assertEqual(self.told(visible), expected, visible)

    def test_or_the_one_that_is_named(self):
        self.assertEqual(self.told("0", "GPU-bbbbbbbb-2")[0], "GPU-bbbbbbbb-2")


class Configuring(unittest.TestCase):
    def test_two_commands_build_one_after_the_other(self):
        with tempfile.TemporaryDirectory() as scratch:
            def locked(*_):
                with open(Path(scratch) / "cuda.lock") as other, self.assertRaises(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

            with mock.patch.multiple(build, BUILD=Path(scratch), require_packages=mock.Mock(),
                                     build_targets=mock.Mock(side_effect=locked), configure=mock.Mock(side_effect=locked)):
                build.ensure_built("cuda")
            with open(Path(scratch) / "cuda.lock") as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_program_beside_the_usual_one_shares_all_but_the_source_that_is_another(self):
        source = substitutes._escaped(substitutes.ROOT / "05/1.cu")
        ninja = (f"build 05/k.dir/1.cu.o: CXX_05 {source} || order\n  DEP_FILE = 05/k.dir/1.cu.o.d\n  INCLUDES = -Ic\n\n"
                 f"build 05/k.dir/1.cu.other: CXX_05 {source}x\n\n"
                 "build 05/5_tests 05/x[1].cmake | 05/x[1].cmake: CXX_EXECUTABLE_LINKER 05/k.dir/1.cu.o 05/k.dir/2.cu.o | a.a || "
                 "05/k\n  LINK_LIBRARIES = a.a\n  POST_BUILD = cd 05 && list\n  TARGET_FILE = 05/5_tests\n\n")
        beside = Path("/b/cpu/beside/05.x")
        said, programs = substitutes._statements(ninja, ["5_tests"], ["05/1.cu"], beside, "")
        self.assertEqual(programs, ["beside/05.x/05/5_tests"])
        includes = substitutes.ROOT / "05"
        self.assertEqual(said, "include build.ninja\n"
                               "build beside/05.x/05/k.dir/1.cu.o: CXX_05 /b/cpu/beside/05.x/05/1.cu || order\n"
                               f"  DEP_FILE = beside/05.x/05/k.dir/1.cu.o.d\n  INCLUDES = -Ic -I{includes}\n\n"
                               "build beside/05.x/05/5_tests: CXX_EXECUTABLE_LINKER beside/05.x/05/k.dir/1.cu.o 05/k.dir/2.cu.o | a.a\n"
                               "  LINK_LIBRARIES = a.a\n  POST_BUILD = :\n  TARGET_FILE = beside/05.x/05/5_tests\n")

    def test_a_corrupt_cache_is_named(self):
        right = "# a comment\n//another\nCMAKE_GENERATOR:INTERNAL=Ninja\n\"a:b=c\":STRING=x\nA-ADVANCED:INTERNAL=1\n"
        with tempfile.TemporaryDirectory() as scratch:
            cache = Path(scratch) / "cpu" / "CMakeCache.txt"
            cache.parent.mkdir()
            cache.write_text(right)
            self.assertEqual(len(build._entries(cache)), 3)
            for content, what in [(b"", "it names no generator"),
                                  (right.encode() + b"CMAKE_CXX_FL", "line 6 is no NAME:TYPE=VALUE"),
                                  (right.encode() + b"\0\0\xff\n", "line 6 is no NAME"),
                                  (right[:30].encode(), "line 3 is no")]:
                cache.write_bytes(content)
                with mock.patch.multiple(build, BUILD=Path(scratch), require_packages=mock.Mock()), \
                        mock.patch.object(build, "follow", side_effect=AssertionError("CMake is not asked")), \
                        self.assertRaises(Failure) as raised:
                    build.ensure_built("cpu")
                self.assertRegex(str(raised.exception), rf"^{build.shown(cache)} is corrupt \({what}.*\): remove ")

    def test_again_for_the_pytorch_of_another_python(self):
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()), \
                mock.patch.multiple(build, BUILD=Path(scratch), require_packages=mock.Mock(), build_targets=mock.Mock()), \
                mock.patch.object(build, "follow") as follow:
            here = Path(scratch) / "cuda"

            def configure(command, *_, **__):
                settings = [word[2:] for word in command if word.startswith("-D")]
                (here / "CMakeCache.txt").write_text("\n".join(["CMAKE_GENERATOR:INTERNAL=Ninja",
                                                                "WORKBOOK_ONE_ARCHITECTURE:BOOL=OFF",
                                                                 *settings, ""]))
                (here / "build.ninja").touch()
                return 0

            follow.side_effect = configure
            for python, times in [(None, 1), ("python3", 2), ("python3", 2), (None, 2), ("sh", 3)]:
                build.ensure_built("cuda", python=python)
                self.assertEqual(follow.call_count, times, python)
            self.assertIn(f"-DPython3_EXECUTABLE:FILEPATH={shutil.which('sh')}", follow.call_args.args[0])


# A CMake whose build starts a compiler as Ninja does, in a process group of its own, and writes down which process that
# is.
CMAKE = """#!/usr/bin/env python3
import subprocess, sys, time
if "--build" in sys.argv:
    compiler = subprocess.Popen(["sleep", "300"], preexec_fn=__import__("os").setpgrp, stdout=subprocess.DEVNULL)
    open("SCRATCH/compiler", "w").write(str(compiler.pid))
    print("[1/2] compiling", flush=True)
    time.sleep(300)
"""
BUILDS = """
import sys
from pathlib import Path
from unittest import mock
from tools import cli
from tools.base import build
from tools.commands import counts
with mock.patch.multiple(build, BUILD=Path("SCRATCH"), require_packages=mock.Mock()):
    sys.exit(cli.main(["dev", "counts", "01"]))
"""


class Ends(unittest.TestCase):
    def is_there(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def test_compilers_end_with_the_command_that_started_them(self):
        for asked in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(asked.name), tempfile.TemporaryDirectory() as scratch:
                cmake = Path(scratch) / "bin" / "cmake"
                cmake.parent.mkdir()
                cmake.write_text(CMAKE.replace("SCRATCH", scratch))
                cmake.chmod(0o755)
                environment = {**with_python_path(ROOT / "common"), "PATH": f"{cmake.parent}:{os.environ['PATH']}"}
                command = subprocess.Popen([sys.executable, "-B", "-c", BUILDS.replace("SCRATCH", scratch)],
                                           env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                noted, deadline = Path(scratch) / "compiler", time.monotonic() + 60
                while not (noted.exists() and noted.read_text()) and time.monotonic() < deadline:
                    time.sleep(0.05)
                compiler = int(noted.read_text())
                self.assertTrue(self.is_there(compiler))
                command.send_signal(asked)
                _, said = command.communicate(timeout=60)
                self.assertEqual((command.returncode, said), (130, "workbook: stopped\n"))
                self.assertFalse(self.is_there(compiler))

    def test_who_does_not_want_to_end_is_made_to(self):
        with mock.patch.object(processes, "PATIENCE", 0.2), self.assertRaises(KeyboardInterrupt), \
                started(["sh", "-c", "trap '' TERM; echo ready; sleep 300 & wait; sleep 300"],
                        stdout=subprocess.PIPE) as stubborn:
            stubborn.stdout.readline()
            raise KeyboardInterrupt
        self.assertEqual(stubborn.returncode, -signal.SIGKILL)
        self.assertEqual(list(processes._session(stubborn.pid)), [])


class Words(unittest.TestCase):
    def test_how_a_program_ended(self):
        self.assertEqual([ending_of(status) for status in (3, -11, -6, -64)],
                         ["ended with status 3", "was killed by SIGSEGV", "was killed by SIGABRT",
                          "was killed by SIGRTMAX"])
        for script, words in [("exit 3", "sh ended with status 3"), ("echo why >&2; exit 3", "why"),
                              ("kill -SEGV $$", "sh was killed by SIGSEGV"),
                              ("echo before >&2; kill -SEGV $$", "sh was killed by SIGSEGV after: before")]:
            self.assertEqual(answer_of(["sh", "-c", script])[2], words)

    def test_json_that_is_none(self):
        self.assertEqual(json_from("p", "[1]"), [1])
        for text in ("", "{", "[" * 100000, "{} x"):
            with self.assertRaisesRegex(Failure, "^p printed no JSON that can be read: [^\n]+$"):
                json_from("p", text)


if __name__ == "__main__":
    unittest.main()
