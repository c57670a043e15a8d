"""Programs with Thrust, CUB, libcu++ and wgmma in PTX, which check their results themselves, and of which nothing may be said."""

import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from tools.user_files import Asked, cccl
from tools.user_files.running import program_of, run_program

HERE = Path(__file__).parent / "libraries"
BUILD = Path(os.environ["WORKBOOK_BUILD"])
NEEDS_CCCL = unittest.skipUnless(cccl.headers(), "NVIDIA's CCCL headers are not here: nvidia-cuda-cccl has them")


class Libraries(unittest.TestCase):
    def expect_right(self, file: str, traced: bool = True, orders: tuple = ("forward", "shuffled:1")) -> None:
        asked = Asked([str(HERE / file)], [], None, 30)
        with tempfile.TemporaryDirectory() as place:
            program = program_of(asked, traced, BUILD, Path(place))
            for order in orders:
                with self.subTest(file, traced=traced, order=order), unittest.mock.patch.dict(os.environ, SIMT_ORDER=order):
                    ran = run_program(program, asked, Path(place), quietly=True, counted=False)
                    self.assertEqual((ran.status, ran.failures, ran.mistakes), (0, [], []))
                    self.assertGreater(ran.launched, 0)

    def test_cub(self):
        with unittest.mock.patch.object(cccl, "headers", return_value=None):
            self.expect_right("cub.cu")

    def test_barriers_pipelines_semaphores_and_tiles(self):
        with unittest.mock.patch.object(cccl, "headers", return_value=None):
            self.expect_right("waits.cu")

    def test_wgmma_as_inline_ptx(self):
        self.expect_right("wgmma.cu")
        self.expect_right("wgmma.cu", traced=False)

    @NEEDS_CCCL
    def test_thrust(self):
        self.expect_right("thrust.cu")


@NEEDS_CCCL
class WithNvidiasHeaders(unittest.TestCase):
    """The same beside libcu++, and without looking for races."""

    def test_all(self):
        for file in ("cub.cu", "waits.cu", "thrust.cu"):
            for traced in (False, True):
                Libraries.expect_right(self, file, traced, ("reverse",))  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
