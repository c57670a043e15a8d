"""The problem that a measurement is of, and its name. Which one is measured by default, the chapters' programs know."""

import re
from dataclasses import dataclass
from typing import Any

LENGTHS = [512, 1024, 2048, 4096, 8192]  # N of the ladder
DEFAULT = "default"  # the name of what runs where no chapter is named


@dataclass(frozen=True)
class Problem:
    batch: int
    heads: int
    kv_heads: int
    seq_q: int
    seq_k: int
    head_dim: int
    dtype: str
    causal: bool
    extras: str = ""  # as attention::label has them: window64_0_softcap20_alibi_sink_views_dv128_packed900_900,
    # or at the end blocks_documents

    def asked(self) -> dict[str, Any]:
        """As the package flash_attention_workbook wants it, extras by their names: "window" (left, right), "softcap",
        "head_dim_v", True for "alibi", "sink" and "views", and what is true of "packed" (the total of queries, of
        keys) and "blocks" (the mask's name)."""
        named: dict[str, Any] = {}
        for left, right, cap, head_dim_v, pattern, total_q, total_k, name in self._extras():
            which = ("window" if left else "softcap" if cap else "head_dim_v" if head_dim_v else
                     "blocks" if pattern else "packed" if total_q else name)
            named[which] = ((int(left), int(right)) if left else float(cap) if cap else
                            int(head_dim_v) if head_dim_v else pattern if pattern else
                            (int(total_q), int(total_k)) if total_q else True)
        return {**{field: value for field, value in vars(self).items() if field != "extras"}, **named}

    def _extras(self) -> list[tuple[str, ...]]:
        return re.findall(r"window(-?\d+)_(-?\d+)|softcap([\d.e+-]+)|dv(\d+)|blocks_([a-z]+)|packed(\d+)_(\d+)|"
                          r"([a-z]+)", self.extras)

    def flags(self) -> list[str]:
        """For a chapter's program, every one of them."""
        values = {
            "batch": self.batch,
            "heads": self.heads,
            "kv-heads": self.kv_heads,
            "seq-q": self.seq_q,
            "seq-k": self.seq_k,
            "head-dim": self.head_dim,
            "dtype": self.dtype,
        }
        return [*(f"--{name}={value}" for name, value in values.items()), "--causal" if self.causal else "--no-causal",
                *(f"--window={left},{right}" if left else f"--softcap={cap}" if cap else
                  f"--head-dim-v={head_dim_v}" if head_dim_v else f"--block-mask={pattern}" if pattern else
                  "--packed" if total_q else f"--{name}"
                  for left, right, cap, head_dim_v, pattern, total_q, _, name in self._extras())]

    def length(self) -> str:
        return str(self.seq_q) if self.seq_q == self.seq_k else f"{self.seq_q}x{self.seq_k}"

    def without_length(self) -> str:
        heads = str(self.heads) if self.kv_heads == self.heads else f"{self.heads} (kv {self.kv_heads})"
        mask = "causal" if self.causal else "full"
        extras = f" {self.extras}" if self.extras else ""
        return f"B={self.batch} H={heads} D={self.head_dim} {self.dtype} {mask}{extras}"

    def __str__(self) -> str:
        return f"N={self.length()} {self.without_length()}"


def label(problem: Problem, rope: bool) -> str:
    """As attention::label names it: B2_H16_N512_D64_fp16_causal."""
    heads = f"H{problem.heads}" + (f"_Hkv{problem.kv_heads}" if problem.kv_heads != problem.heads else "")
    length = f"N{problem.seq_q}" if problem.seq_q == problem.seq_k else f"Nq{problem.seq_q}_Nk{problem.seq_k}"
    mask = "causal" if problem.causal else "full"
    extras = ("_rope" if rope else "") + (f"_{problem.extras}" if problem.extras else "")
    return f"B{problem.batch}_{heads}_{length}_D{problem.head_dim}_{problem.dtype}_{mask}{extras}"


def read_label(text: str) -> tuple[Problem, bool]:
    """(problem, rope) of the name that attention::label gives a problem: B2_H16_N512_D64_fp16_causal."""
    found = re.fullmatch(r"B(\d+)_H(\d+)(?:_Hkv(\d+))?_(?:N(\d+)|Nq(\d+)_Nk(\d+))"
                         r"_D(\d+)_(fp16|bf16)_(causal|full)(_rope)?"
                         r"((?:_window-?\d+_-?\d+)?(?:_softcap[\d.e+-]+)?(?:_alibi)?(?:_sink)?(?:_views)?(?:_dv\d+)?"
                         r"(?:_packed\d+_\d+)?(?:_blocks_[a-z]+)?)",
                         text)
    if not found:
        raise ValueError(f"{text} names no problem")
    batch, heads, kv_heads, n, nq, nk, head_dim, dtype, mask, rope, extras = found.groups()
    return Problem(int(batch), int(heads), int(kv_heads or heads), int(n or nq), int(n or nk), int(head_dim), dtype,
                   mask == "causal", extras.lstrip("_")), bool(rope)
