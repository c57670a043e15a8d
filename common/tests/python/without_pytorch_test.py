"""The Python module where there is no PyTorch: its errors, and whether it declares the library as the C header does.

FLASH_ATTENTION_WORKBOOK_LIBRARY names the library.
"""

import ctypes
import importlib
import os
import re
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
HEADER = (ROOT / "common" / "capi" / "flash_attention_workbook.h").read_text()
MODULE = "flash_attention_workbook"


def stand_in_for_torch():
    """As much of PyTorch as the module touches while it is imported."""
    return mock.MagicMock(Tensor=type("Tensor", (), {}), autograd=types.SimpleNamespace(Function=object))


def imported(torch, **environment):
    """The module, freshly imported with that for PyTorch (None: there is none)."""
    with mock.patch.dict(sys.modules, {"torch": torch}), mock.patch.dict(os.environ, environment):
        return importlib.import_module(MODULE)  # mock.patch.dict forgets it, too


class Imports(unittest.TestCase):
    def test_no_pytorch(self):
        with self.assertRaisesRegex(ImportError, "^flash_attention_workbook needs PyTorch: .*common/capi$"):
            imported(None)

    def test_no_library(self):
        with self.assertRaisesRegex(ImportError, "^cannot load /nowhere/lib.so .*: build it with .*cmake --preset cuda"):
            imported(stand_in_for_torch(), FLASH_ATTENTION_WORKBOOK_LIBRARY="/nowhere/lib.so")

    def test_an_engine_that_comes_too_late(self):
        late = OSError("lib.so: cannot allocate memory in static TLS block")
        with mock.patch.object(ctypes, "CDLL", side_effect=late), self.assertRaisesRegex(
                ImportError, "^cannot load .*: it is the SIMT engine's, and Python has to be started with GLIBC_TUNABLES=[^\\n]*$"):
            imported(stand_in_for_torch())


class Declarations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = imported(stand_in_for_torch())

    def test_the_problem(self):
        body = re.sub(r"/\*.*?\*/", "", re.search(r"typedef struct \{(.*?)\} faw_problem;", HEADER, re.S)[1], flags=re.S)
        declared = re.findall(r"(int|float|const float\*) (\w+);", body)
        types_ = {"int": ctypes.c_int, "float": ctypes.c_float, "const float*": ctypes.c_void_p}
        self.assertEqual([(name, types_[type_]) for type_, name in declared], list(self.module.library.Problem._fields_))

    def test_the_functions(self):
        declared = re.findall(r"^[a-z_ ]+[ *]+(faw_\w+)\(([^)]*)\);", HEADER, re.M | re.S)
        self.assertEqual(len(declared), 16)
        for name, parameters in declared:
            count = 0 if parameters == "void" else len(parameters.split(","))
            function = getattr(self.module.library._library, name)
            self.assertEqual(len(function.argtypes), count, name)

    def test_the_book(self):
        directories = sorted(path.parent.name for path in ROOT.glob("[0-9][0-9]_*/CMakeLists.txt"))
        book = self.module.chapters()
        self.assertEqual(list(book), directories)
        rung = {"forward": True, "backward": False, "lse": True, "rope": False}
        self.assertEqual(book["05_online_softmax"], {"online": rung, "tiles": rung})
        self.assertFalse(book["04_fusion"]["fused"]["lse"])

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
        with self.assertRaisesRegex(self.module.Error, "^kv-heads is 0: it must be at least 1$"):
            self.module.flops({**given, "kv_heads": 0})


class Refusals(unittest.TestCase):
    def test_what_is_no_tensor(self):
        module = imported(stand_in_for_torch())
        with self.assertRaisesRegex(module.Error, "^q is a list: it must be a torch.Tensor$"):
            module.attention([], [], [])


if __name__ == "__main__":
    unittest.main()
