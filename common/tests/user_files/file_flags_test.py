"""./workbook run and trace of files: bad input ends with one line and status 2, before anything is built."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from tools import cli
from tools.user_files import files_of

HERE = Path(__file__).parent
KERNELS = str(HERE / "kernels.cu")


def answer(*words) -> tuple:
    """(status, what is complained of)"""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = cli.main(list(words))
    return status, errors.getvalue()


class BadInput(unittest.TestCase):
    def test_one_line_names_the_value_and_what_is_allowed(self):
        launch = ["trace", KERNELS, "--kernel", "scale", "--grid", "1", "--block", "32"]
        for words, expected in [
            (["trace", "none.cu"], "there is no file none.cu"),
            (["run", KERNELS, "05"], "05 is not: name files or chapters"),
            (["trace", KERNELS, "--batch", "2"], "--batch is for chapters"),
            (["run", KERNELS, "--preset", "cpu"], "--preset is for chapters"),
            (["run", KERNELS, "--no-causal"], "--causal is for chapters"),
            (["run", KERNELS, "--seed", "0"], "--seed is for chapters"),
            (["trace", KERNELS, "--patterns"], "--patterns is for chapters"),
            (["trace", "05", "--kernel", "scale"], "--kernel is for a file of your own"),
            (["run", "05", "--", "3"], "-- 3: what follows -- goes to the main of a file"),
            (["run", "05", "-fopenmp"], "-fopenmp is for a file of your own"),
            (["run", KERNELS, "--frobnicate"], "unknown argument --frobnicate"),
            (["run", KERNELS, "-ptx"], "unknown argument -ptx"),
            (["list", "--", "3"], "nothing can follow -- here, and 3 does"),
            (["trace", KERNELS, "--grid", "2"], "--grid is for a launch, whose kernel --kernel names"),
            (["trace", KERNELS, "--kernel", "scale"], "--kernel scale needs --grid"),
            (["trace", KERNELS, "--kernel", "s(", "--grid", "1", "--block", "1"],
             "--kernel s(: must be a kernel's name"),
            (["trace", KERNELS, "--kernel", "scale", "--grid", "0", "--block", "1"],
             "--grid 0: 0 is not in 1 to 2147483647"),
            (["trace", KERNELS, "--kernel", "scale", "--grid", "a", "--block", "1"],
             "--grid a: must be one to three numbers"),
            (["trace", KERNELS, "--kernel", "scale", "--grid", "1", "--block", "64,32"],
             "--block 64,32: 2048 threads; a block has at most 1024"),
            ([*launch, "--shared", "-1"], "--shared"),
            ([*launch, "--shared", ""], "--shared : must be a number of bytes"),
            ([*launch, "--shared", "99999999"], "--shared 99999999: must be a number of bytes, below 10000000"),
            ([*launch, "--buffer", "x=12"], "--buffer x=12: must be NAME=COUNTxTYPE"),
            ([*launch, "--buffer", "x=0xfloat"], "--buffer x=0xfloat: must be NAME=COUNTxTYPE"),
            ([*launch, "--buffer", "x=4xfloat:noise"], "noise is not one of random, iota, zero, one"),
            ([*launch, "--buffer", "x=4xfloat", "--buffer", "x=5xfloat"], "x has a value already"),
            ([*launch, "--arg", "n=system()"], "--arg n=system(): must be NAME=NUMBER"),
            (["trace", KERNELS, "--seconds", "0"], "--seconds 0: must be a number of seconds above 0"),
            (["run", KERNELS, "--blocks", "0"], "--blocks 0: must be a whole number from 1 to 9999999999"),
            (["trace", KERNELS, "-I", "/nowhere"], "-I /nowhere: there is no such directory"),
            (["trace", KERNELS, "-D", "3=4"], "-D 3=4: a macro is NAME or NAME=VALUE"),
            (["trace", KERNELS, "--std", "c++98"], "c++98"),
            (["trace", KERNELS, "--no-races"], "--no-races is for run: trace counts every access"),
            (["run", "/usr"], "workbook: /usr is a folder: name files or chapters"),
            (["trace", "../user_files/planted/"],
             "planted/ is a folder: name files (../user_files/planted/correct.cu, ..) or chapters"),
            (["run", "/nowhere/mine"], "workbook: there is no /nowhere/mine: name a CUDA file, as in mine.cu, or a chapter"),
            (["trace", "sub/"], "workbook: there is no sub/: name a CUDA file"),
            (["run", "CMakeLists.txt"], "CMakeLists.txt is no file to compile: its name must end in .cu, .cuh, .cpp,"),
        ]:
            with self.subTest(" ".join(words)):
                status, errors = answer(*words)
                self.assertEqual(status, 2, errors)
                self.assertIn(expected, errors)
                self.assertEqual(errors.count("\n"), 1, errors)

    def test_a_program_is_no_source(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "program.cu"
            file.write_bytes(b"\x7fELF\x02\x01\x01\0")
            status, errors = answer("run", str(file))
            self.assertEqual((status, errors), (2, f"workbook: {file} is no source: it has bytes that no text has\n"))

    def test_a_directory_is_no_file(self):
        with tempfile.TemporaryDirectory() as place:
            self.assertEqual(answer("trace", f"{place}.cu")[0], 2)


class Flags(unittest.TestCase):
    def asked(self, *words):
        _, arguments = cli._parse("run", [KERNELS, *words])
        return files_of(arguments, {}, 0)

    def test_nvccs_are_sorted(self):
        asked = self.asked("-Xcompiler", "-fopenmp,-Wall", "-O3", "-arch=sm_80", "-lm", "-lcublas", "-lineinfo", "-std=c++14", "-D", "N=4",
                           "--", "-lines")
        self.assertEqual((asked.flags, asked.libraries, asked.arguments), (["-DN=4", "-fopenmp", "-Wall"], ["-lm"], ["-lines"]))

    def test_as_people_paste_them(self):
        for words, flags, libraries in [
            ("-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90]", [], []),
            ("-arch sm_80 -code sm_80 -rdc=true -rdc true -dc -dlto -maxrregcount 32 --maxrregcount=64 -t 4", [], []),
            ("-Xptxas -v -Xptxas -O3,-v --ptxas-options=-v -lineinfo --use_fast_math -ftz=true -fmad=false -res-usage", [], []),
            ("-o name --output-file name -c -g -G -O2 -O 3 -m64 --std c++17 -std c++17 -ccbin g++-12 -cudart shared", [], []),
            ("-Xcompiler -fopenmp --compiler-options=-fno-math-errno,-Wextra", ["-fopenmp", "-fno-math-errno", "-Wextra"], []),
            ("-Xcudafe --diag_suppress=177 -Xfatbin -compress-all -MD -MMD -MP -MF f.d -MT f.o -noprof -forward-unknown-opts", [], []),
            ("-Werror all-warnings -Wno-deprecated-gpu-targets -diag-suppress 177 -w -std=c++23", ["-w", "-std=gnu++23"], []),
            ("-isystem there -U NDEBUG -include mine.h -march=native", ["-isystemthere", "-UNDEBUG", "-includemine.h", "-march=native"], []),
            ("-L /usr/lib -l m -lcublas -lcudart -L/usr/local/cuda/lib64 -Xlinker -s", [], ["-L/usr/lib", "-lm", "-Wl,-s"]),
        ]:
            with self.subTest(words):
                asked = self.asked(*words.split())
                self.assertEqual((asked.flags, asked.libraries), (flags, libraries))
        asked = self.asked("-Xcompiler", "-Wall -Wextra", "-x", "cu")
        self.assertEqual((asked.flags, asked.cuda), (["-Wall", "-Wextra"], [KERNELS]))


if __name__ == "__main__":
    unittest.main()
