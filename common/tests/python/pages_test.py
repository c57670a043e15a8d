"""The lines of Python that pages show, as they stand there, on the library's device. Their values are compared elsewhere.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants
one.
"""

import itertools
import os
import re
import sys
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw
from variants_test import reference_with_lse, wrong

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "common/book/reference.md", "common/python/README.md")
if faw.DEVICE == "cuda" and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)
HOPPER = faw.DEVICE == "cpu" or torch.cuda.get_device_capability() == (9, 0)
N = 40


def names(packed: bool) -> dict:
    """What the lines take for granted."""
    torch.manual_seed(1)
    q, k, v = (torch.randn((2 * N, 2, 64) if packed else (1, 2, N, 64), dtype=torch.float16, device=faw.DEVICE)
               for _ in range(3))
    q8, k8, v8 = (torch.randn(1, 2, N, 64, device=faw.DEVICE).to(torch.float8_e4m3fn) for _ in range(3))
    return {"torch": torch, "faw": faw, "q": q, "k": k, "v": v, "query": q, "key": k, "value": v, "N": N, "n": N,
            "q8": q8, "k8": k8, "v8": v8, "a": 1.0, "b": 0.5, "c": 0.25, "longest": N,
            "begin": torch.tensor([0, N, 2 * N], dtype=torch.int32, device=faw.DEVICE),
            "seen": lambda b, h, i, j: (i - j).abs() < 9, "sink": torch.zeros(2, device=faw.DEVICE),
            "slopes": torch.ones(2, device=faw.DEVICE), "numbers": torch.zeros(2, device=faw.DEVICE),
            "mask": torch.ones(N, N, dtype=torch.bool, device=faw.DEVICE).tril(2)}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table of a section of the package's page."""
    section = (ROOT / "common/python/README.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


NOT_CONTIGUOUS = "tensors that are not contiguous"


def options(names_of: list[str], q: torch.Tensor, k: torch.Tensor) -> dict:
    """The arguments for options of the table."""
    heads, (seq_q, seq_k) = q.shape[1], (q.shape[2], k.shape[2])
    made = {"causal": lambda: True, "window": lambda: (9, 0), "softcap": lambda: 30.0,
            "rope": lambda: faw.rope_tables(q, k),
            "alibi": lambda: torch.ones(heads, device=faw.DEVICE), "sink": lambda: torch.ones(heads, device=faw.DEVICE),
            "blocks": lambda: faw.block_mask(lambda b, h, i, j: j <= i, seq_q=seq_q, seq_k=seq_k, device=faw.DEVICE)}
    return {name: made[name]() for name in names_of if name != NOT_CONTIGUOUS}


class Takes(unittest.TestCase):
    """The table of what works where says what the package does."""

    def taken(self, names_of: list[str], head_dim: int, head_dim_v: int, backward: bool, **others: str) -> bool:
        def random(width: int) -> torch.Tensor:
            x = torch.randn(1, 20, 2, width, dtype=torch.float16, device=faw.DEVICE).transpose(1, 2)
            return (x if NOT_CONTIGUOUS in names_of else x.contiguous()).requires_grad_(backward)

        q, k, v = random(head_dim), random(head_dim), random(head_dim_v)
        begin = torch.tensor([0, 8, 20], dtype=torch.int32, device=faw.DEVICE)
        try:
            if names_of == ["attention_packed"]:
                o = faw.attention_packed(*(x[0].transpose(0, 1) for x in (q, k, v)), begin, begin, 12, 12)
            elif names_of == ["attention_fp8"]:
                o = faw.attention_fp8(q, k, v)
            else:
                o = faw.attention(q, k, v, **options(names_of, q, k), **others)
        except ValueError as error:
            self.assertNotIn("\n", str(error))
            return False
        if backward:
            self.assertTrue(all(x.isfinite().all() for x in torch.autograd.grad(o.sum(), (q, k, v))))
        return True

    def rows(self) -> dict[str, list[str]]:
        return {row[0].replace(", on Hopper", "").strip("`"): row[1:] for row in table("What works where")}

    def test_head_dims_and_directions(self):
        head_dims = ([(d, d) for d in (8, 64, 72, 128)], [(d, d) for d in (136, 192, 256)], [(192, 128)])
        for name, cells in self.rows().items():
            if "fp8" in name and not HOPPER:
                continue
            for said, cases in zip(cells, head_dims):
                self.assertIn(said, ("forward, backward", "forward", "no"))
                for head_dim, head_dim_v in cases:
                    for direction in ("forward", "backward"):
                        with self.subTest(name, direction=direction, head_dim=head_dim, head_dim_v=head_dim_v):
                            taken = self.taken([name], head_dim, head_dim_v, direction == "backward")
                            self.assertEqual(taken, direction in said)

    def test_options_beside_one_another(self):
        rows = {name: cells[3] for name, cells in self.rows().items() if not name.startswith("attention")}
        self.assertEqual(len(rows), 8)
        for one, other in itertools.combinations(rows, 2):
            with self.subTest(one=one, other=other):
                said = [name in rows[of] for name, of in ((one, other), (other, one))]
                self.assertEqual(said, [not self.taken([one, other], 64, 64, backward) for backward in (False, True)])

    def test_chapters(self):
        for name, (*_, said) in self.rows().items():
            if said:
                with self.subTest(name):
                    self.assertEqual([one for one in faw.chapters() if self.taken([name], 64, 64, False, chapter=one)],
                                     re.findall(r"`(\w+)`", said))


class FlashAttention:
    """The functions of the package flash-attn, by the formulas, in fp64."""

    def flash_attn_func(self, q, k, v, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                        alibi_slopes=None, deterministic=False, return_attn_probs=False):
        o, lse = reference_with_lse(*(x.transpose(1, 2) for x in (q, k, v)), causal, window_size, softcap, alibi_slopes,
                                    scale=softmax_scale)
        return (o.transpose(1, 2), lse, None) if return_attn_probs else o.transpose(1, 2)

    def flash_attn_qkvpacked_func(self, qkv, **options):
        return self.flash_attn_func(*qkv.unbind(2), **options)

    def flash_attn_kvpacked_func(self, q, kv, **options):
        return self.flash_attn_func(q, *kv.unbind(2), **options)

    def flash_attn_varlen_func(self, q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, **options):
        parts = [itertools.pairwise(begin.tolist()) for begin in (cu_seqlens_q, cu_seqlens_k)]
        return torch.cat([self.flash_attn_func(q[None, i:i_end], k[None, j:j_end], v[None, j:j_end], **options)[0]
                          for (i, i_end), (j, j_end) in zip(*parts)])

    def flash_attn_varlen_qkvpacked_func(self, qkv, cu_seqlens, max_seqlen, **options):
        return self.flash_attn_varlen_func(*qkv.unbind(1), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, **options)

    def flash_attn_with_kvcache(self, q, k_cache, v_cache, cache_seqlens, **options):
        return self.flash_attn_func(q, k_cache[:, :cache_seqlens], v_cache[:, :cache_seqlens], **options)


class FromFlashAttention(unittest.TestCase):
    def test_every_row(self):
        rows = table("From flash-attn")
        theirs = FlashAttention()
        for name in (name for name in dir(theirs) if name.startswith("flash_attn")):
            self.assertTrue([row for row in rows if row[0].startswith(f"`{name}(")], name)
        for left, right in rows:
            with self.subTest(left):
                known = {**names("varlen" in left), "t": lambda x: x.transpose(1, 2)}
                if "varlen" not in left:
                    known |= {name: known[name].transpose(1, 2).contiguous() for name in "qkv"}
                known |= {"qkv": torch.stack([known[name] for name in "qkv"], -3),
                          "kv": torch.stack([known[name] for name in "kv"], -3), "slopes": known["slopes"] * 0.1}
                theirs_o, ours = (eval(re.match("`(.*?)`", cell)[1], globals(), {**known, **{
                    name: getattr(theirs, name) for name in dir(theirs) if name.startswith("flash")}})
                                  for cell in (left, right))
                if isinstance(ours, tuple):
                    torch.testing.assert_close(ours[1].double(), theirs_o[1], rtol=1e-3, atol=1e-3)
                    ours, theirs_o = ours[0].transpose(1, 2), theirs_o[0]
                self.assertEqual(ours.shape, theirs_o.shape)
                self.assertIsNone(wrong(ours, theirs_o, ours.dtype))
                if "deterministic" in left:
                    inputs = [known[name].requires_grad_() for name in "qkv"]
                    both = [torch.autograd.grad(eval(re.match("`(.*?)`", right)[1], globals(), known).sum(), inputs)
                            for _ in range(2)]
                    self.assertTrue(all(map(torch.equal, *both)))


class Pages(unittest.TestCase):
    def require(self, line: str) -> None:
        with self.subTest(line=line):
            if "fp8" in line and not HOPPER:
                self.skipTest("NOT RUN: eight bits are for Hopper")
            known = names("packed" in line)
            exec(line, known)
            if line.startswith("o = "):
                self.assertEqual(known["o"].shape, known["q"].shape)
                self.assertTrue(known["o"].isfinite().all())

    def test_every_line(self):
        for page in PAGES:
            blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks, page)
            for line in filter(None, "".join(blocks).splitlines()):
                self.require(line)

    def test_what_the_comments_offer(self):
        """also alibi=slopes, sink=numbers"""
        text = (ROOT / "common/book/reference.md").read_text()
        offered = re.search(r"also (alibi=\w+), (sink=\w+)$", text, re.MULTILINE)
        for option in offered.groups():
            self.require(f"o = faw.attention(q, k, v, {option})")

    def test_the_modules_own_text(self):
        lines = re.findall(r"^    (o = .*)$", faw.__doc__, re.MULTILINE)
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.require(line)


if __name__ == "__main__":
    unittest.main()
