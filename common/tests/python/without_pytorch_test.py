"""The Python module where there is no PyTorch: its errors, and whether it declares the library as the C header does.

FLASH_ATTENTION_WORKBOOK_LIBRARY names the library.
"""

import ctypes
import importlib
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
HEADER = (ROOT / "common" / "capi" / "flash_attention_workbook.h").read_text()
MODULE = "flash_attention_workbook"


def pytorch(version="2.11.0"):
    return mock.MagicMock(__version__=version)


def imported(torch, operators=mock.Mock(), **environment):
    """The module, freshly imported with these for PyTorch and for the compiled operators (None: there is none; "there":
    those that are found)."""
    modules = {"torch": torch, "torch.utils": torch, "torch.utils.flop_counter": torch}
    if operators != "there":
        modules[f"{MODULE}._operators"] = operators
    with mock.patch.dict(sys.modules, modules), mock.patch.dict(os.environ, environment):
        return importlib.import_module(MODULE)  # mock.patch.dict forgets it, too


class Imports(unittest.TestCase):
    def test_no_pytorch(self):
        with self.assertRaisesRegex(ImportError, "^flash_attention_workbook needs PyTorch: .*common/capi$"):
            imported(None)

    def test_no_library(self):
        with self.assertRaisesRegex(ImportError,
                                    "^cannot load /nowhere/lib.so .*: build it with .*cmake --preset cuda"):
            imported(pytorch(), FLASH_ATTENTION_WORKBOOK_LIBRARY="/nowhere/lib.so")

    def test_another_library(self):
        with self.assertRaisesRegex(ImportError,
                                    "^libc.so.6 is not the workbook's library, or not of this version: it has no "
                                    "faw_version$"):
            imported(pytorch(), FLASH_ATTENTION_WORKBOOK_LIBRARY="libc.so.6")

    def test_where_it_is_installed(self):
        """Right below the root, too, as `pip install --target /app` does."""
        library = os.environ["FLASH_ATTENTION_WORKBOOK_LIBRARY"]
        module = imported(pytorch()).library
        with tempfile.TemporaryDirectory(dir="/tmp") as place, \
                mock.patch.dict(os.environ, FLASH_ATTENTION_WORKBOOK_LIBRARY=""), \
                mock.patch.object(module, "__file__", f"{place}/library.py"):
            beside = Path(place) / module.LIBRARY
            beside.symlink_to(library)
            self.assertEqual(module._find(), beside)

    def test_no_operators(self):
        with self.assertRaisesRegex(
                ImportError, r"^cannot load the operators for PyTorch 2\.11 .*: they are compiled for one Python, and "
                             r"for one PyTorch or a few; install the package again \(pip install \.\)[^\n]*$"):
            imported(pytorch("2.11"), operators=None)

    def test_each_pytorch_has_its_operators(self):
        """Those of the build stand beside the library, those of another one in a directory of its own."""
        with tempfile.TemporaryDirectory() as place:
            library = Path(place) / "libflash_attention_workbook.so.1"
            library.symlink_to(os.environ["FLASH_ATTENTION_WORKBOOK_LIBRARY"])
            for below in (".", "torch_2_9", "torch_2_10"):
                (Path(place) / below).mkdir(exist_ok=True)
                (Path(place) / below / "_operators.py").write_text(f"WHOSE = {below!r}\n")
            for version, whose in (("2.9.1+cpu", "torch_2_9"), ("2.10.0", "torch_2_10"), ("2.1.0", "."), ("2.15.0+cu132", ".")):
                module = imported(pytorch(version), operators="there", FLASH_ATTENTION_WORKBOOK_LIBRARY=str(library))
                self.assertEqual(module.operators._operators.WHOSE, whose, version)


class Declarations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = imported(pytorch())

    def test_the_problem(self):
        header = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
        body = re.search(r"typedef struct \{([^}]*)\} faw_problem;", header)[1]
        declared = re.findall(r"(size_t|int|float|const \w+\*) (\w+);", body)
        types_ = {"size_t": ctypes.c_size_t, "int": ctypes.c_int, "float": ctypes.c_float, "const float*": ctypes.c_void_p,
                  "const faw_extras*": ctypes.c_void_p}
        self.assertEqual([(name, types_[type_]) for type_, name in declared],
                         list(self.module.library.Problem._fields_))

    def test_the_functions(self):
        declared = dict(re.findall(r"^[a-z_ ]+[ *]+(faw_\w+)\(([^)]*)\);", HEADER, re.M | re.S))
        library = self.module.library
        self.assertEqual(len(library.FUNCTIONS), 15)
        for name, _, arguments in library.FUNCTIONS:
            parameters = declared[name].replace("void", "").split(",")
            self.assertEqual(len(arguments), len(list(filter(None, parameters))), name)
            self.assertEqual(getattr(library._library, name).argtypes, arguments)

    def test_the_code_in_cpp_that_a_page_shows(self):
        page = (ROOT / "common" / "book" / "reference.md").read_text()
        (code,) = re.findall(r"^```cpp\n(const faw_problem .*?)^```$", page, re.M | re.S)
        given = "const void *q, const void *k, const void *v, void *o, float *lse, void *workspace, void *stream"
        program = f'#include <cstdio>\n#include "capi/flash_attention_workbook.h"\nvoid shown({given}) {{\n{code}}}\n'
        done = subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-I",
                               ROOT / "common", "-fsyntax-only", "-x", "c++", "-"], input=program, capture_output=True,
                              text=True)
        self.assertEqual(done.stderr, "")

    def test_the_version(self):
        numbers = re.findall(r"^#define FAW_VERSION_[A-Z]+ (\d+)$", HEADER, re.M)
        self.assertEqual(self.module.__version__, ".".join(numbers))

    def test_the_book(self):
        directories = sorted(path.parent.name for path in ROOT.glob("[0-9][0-9]_*/CMakeLists.txt"))
        book = self.module.chapters()
        self.assertEqual(list(book), directories)
        rung = {"forward": True, "backward": False, "lse": True, "rope": False, "e4m3": False, "eight_bits": False,
                "general": True}
        self.assertEqual(book["05_online_softmax"], {"online": rung, "tiles": rung})
        self.assertFalse(book["04_fusion"]["fused"]["lse"])
        self.assertFalse(book["11_split_kv"]["tall"]["general"])
        self.assertEqual([rung for rung, has in book["13_fp8"].items() if has["e4m3"]], list(book["13_fp8"])[-1:])

    def test_the_book_is_read_once_and_is_the_callers_own(self):
        self.module.chapters()["05_online_softmax"]["tiles"]["forward"] = False
        with mock.patch.object(self.module.library, "_library", None):
            self.assertTrue(self.module.chapters()["05_online_softmax"]["tiles"]["forward"])

    def test_a_problem_and_its_flops(self):
        problem = self.module.default_problem()
        self.assertEqual((problem["head_dim"], problem["dtype"], problem["causal"]), (64, "fp16", True))
        given = dict(batch=1, heads=4, kv_heads=2, seq_q=50, seq_k=70, head_dim=128, dtype="bf16", causal=False)
        self.assertEqual(self.module.flops(given), 4 * 4 * 50 * 70 * 128)
        self.assertEqual(self.module.flops({**given, "causal": True}, backward=True), 4 * 4 * 50 * 70 * 128 * 1.25)
        window = {**given, "seq_q": 70, "window": (9, 0)}
        self.assertEqual(self.module.flops(window), 4 * 4 * (70 * 10 - 45) * 128)
        self.assertEqual(self.module.default_rung({**given, "sink": True, "views": True})[0], "12_variants")
        with self.assertRaisesRegex(ValueError, "^kv_heads is 0: it must be at least 1$"):
            self.module.flops({**given, "kv_heads": 0})
        with self.assertRaisesRegex(ValueError, "^dtype is 'fp32': supported are fp16 and bf16$"):
            self.module.flops({**given, "dtype": "fp32"})


if __name__ == "__main__":
    unittest.main()
