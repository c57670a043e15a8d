"""What is missing, which preset a machine gets, and when it is configured."""

import contextlib
import fcntl
import io
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools.machine import Failure, build, system
from tools.machine.system import Gpu, Nvcc, Package, choose_preset, missing_packages

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
        self.assertEqual(cpu - cuda, {"libboost-context-dev"})
        self.assertIn("libeigen3-dev", cuda)

    def test_without_what_is_not_necessary_everything_else_goes_on(self):
        def refuse(packages):
            raise Failure("no network")

        for root, reason in [(lambda: None, "needs the packages"), (lambda: [], "no network")]:
            said = []
            with tempfile.TemporaryDirectory() as build, mock.patch.multiple(
                    system, COMPILER_CACHE=[Package("ccache", program="no-such-program")], BUILD=Path(build), _become_root=root,
                    _install=refuse, say=said.append, shutil=mock.Mock(which=lambda name: name)):
                with mock.patch.object(Package, "present", lambda *_: False):
                    system.install_compiler_cache()
                    system.install_compiler_cache()
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


class TwoGpus(unittest.TestCase):
    """Of the one that programs use, the measurements tell."""

    UUIDS = {"0": "GPU-aaaaaaaa-1", "1": "GPU-bbbbbbbb-2", "GPU-bbbbbbbb-2": "GPU-bbbbbbbb-2"}

    def told(self, visible, uuid=""):
        def nvidia_smi(command, timeout):
            asked = [word.removeprefix("--id=") for word in command if str(word).startswith("--id=")]
            return "\n".join([self.UUIDS[one] for one in asked] if asked else ["GPU-aaaaaaaa-1", "GPU-bbbbbbbb-2"])

        visible = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        with mock.patch.object(system, "output_of", nvidia_smi), mock.patch.dict(os.environ, visible):
            if not visible:
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            return system.smi({"uuid": "uuid"}, uuid)["uuid"], system.gpu_identity()

    def test_the_first_that_is_visible(self):
        first, second = ("GPU-aaaaaaaa-1", "aaaaaaaa"), ("GPU-bbbbbbbb-2", "bbbbbbbb")
        for visible, expected in [(None, first), ("0", first), ("1", second), ("1,0", second), ("GPU-bbbbbbbb-2", second)]:
            self.assertEqual(self.told(visible), expected, visible)

    def test_or_the_one_that_is_named(self):
        self.assertEqual(self.told("0", "GPU-bbbbbbbb-2")[0], "GPU-bbbbbbbb-2")


class Configuring(unittest.TestCase):
    def test_two_commands_build_one_after_the_other(self):
        with tempfile.TemporaryDirectory() as scratch:
            def locked(*_):
                with open(Path(scratch) / "cuda.lock") as other, self.assertRaises(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

            with mock.patch.multiple(build, BUILD=Path(scratch), require_packages=mock.Mock(), _build=mock.Mock(side_effect=locked),
                                     _configure=mock.Mock(side_effect=locked)):
                build.ensure_built("cuda")
            with open(Path(scratch) / "cuda.lock") as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_again_for_the_pytorch_of_another_python(self):
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()), \
                mock.patch.multiple(build, BUILD=Path(scratch), require_packages=mock.Mock(), _build=mock.Mock()), \
                mock.patch.object(build, "follow") as follow:
            here = Path(scratch) / "cuda"

            def configure(command, *_, **__):
                settings = [word[2:] for word in command if word.startswith("-D")]
                (here / "CMakeCache.txt").write_text("\n".join(["WORKBOOK_ONE_ARCHITECTURE:BOOL=OFF", *settings, ""]))
                (here / "build.ninja").touch()
                return 0

            follow.side_effect = configure
            for python, times in [(None, 1), ("python3", 2), ("python3", 2), (None, 2), ("sh", 3)]:
                build.ensure_built("cuda", python=python)
                self.assertEqual(follow.call_count, times, python)
            self.assertIn(f"-DPython3_EXECUTABLE:FILEPATH={shutil.which('sh')}", follow.call_args.args[0])
