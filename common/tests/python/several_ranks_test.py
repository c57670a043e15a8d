"""The ring for PyTorch, on CPU ranks: with the mathematics in place of the kernels, against attention over the whole
sequence.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch.
"""

import os
import sys
import tempfile
import types
import unittest

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)
import context_parallel as cp
import torch.distributed as dist
import torch.multiprocessing


def scores(q, k, causal, scale):
    group = q.shape[1] // k.shape[1]
    s = q @ k.repeat_interleave(group, 1).transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(k.shape[2] - q.shape[2] + 1)
        s = s.masked_fill(hidden, -torch.inf)
    return s


def forward(q, k, v, causal=False, scale=None, chapter=None):
    s = scores(q, k, causal, scale)
    p = s.softmax(-1).nan_to_num(0)
    return p @ v.repeat_interleave(q.shape[1] // k.shape[1], 1), s.logsumexp(-1).float()


def backward(q, k, v, o, lse, d_o, causal=False, scale=None, chapter=None):
    """From the LSE that it is given, as the kernels do."""
    group, factor = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5 if scale is None else scale
    s = scores(q, k, causal, scale)
    p = (s - lse.unsqueeze(-1)).exp().nan_to_num(0)
    wide_k, wide_v = (x.repeat_interleave(group, 1) for x in (k, v))
    d_s = p * (d_o @ wide_v.transpose(-1, -2) - (d_o * o).sum(-1, keepdim=True)) * factor
    narrow = lambda x: x.unflatten(1, (k.shape[1], group)).sum(2)
    return d_s @ wide_k, narrow(d_s.transpose(-1, -2) @ q), narrow(p.transpose(-1, -2) @ d_o)


CASES = [dict(heads=4, kv_heads=2, seq_q=37, seq_k=37, causal=True),
         dict(heads=2, kv_heads=2, seq_q=11, seq_k=30, causal=True),
         dict(heads=2, kv_heads=1, seq_q=30, seq_k=11, causal=True),
         dict(heads=2, kv_heads=2, seq_q=9, seq_k=20, causal=False)]


def tensors(heads, kv_heads, seq_q, seq_k, causal):
    torch.manual_seed(1)
    return [torch.randn(2, h, n, 8, dtype=torch.float64) for h, n in
            ((heads, seq_q), (kv_heads, seq_k), (kv_heads, seq_k), (heads, seq_q))]


def rank_main(rank, ranks, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    cp._kernels = lambda: types.SimpleNamespace(forward=forward, backward=backward)
    for case in CASES:
        causal, seq_q, seq_k = case["causal"], case["seq_q"], case["seq_k"]
        whole = tensors(**case)
        q, k, v, d_o = (cp.deal(x, causal, seq_k if x.shape[2] == seq_q else seq_q) for x in whole)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        o = cp.ring_attention(*leaves, causal=causal, seq_q=seq_q, seq_k=seq_k)
        o.backward(d_o)
        expected = [x.clone().requires_grad_() for x in whole[:3]]
        expected_o = forward(*expected, causal=causal)[0]
        expected_o.backward(whole[3])
        for got, want, rows, other in ((o.detach(), expected_o.detach(), seq_q, seq_k),
                                       (q.grad, expected[0].grad, seq_q, seq_k),
                                       (k.grad, expected[1].grad, seq_k, seq_q),
                                       (v.grad, expected[2].grad, seq_k, seq_q)):
            torch.testing.assert_close(cp.gather(got, causal, rows, other), want.nan_to_num(0), rtol=1e-5, atol=1e-5)
    dist.destroy_process_group()


class Ranks(unittest.TestCase):
    def test_any_number_of_ranks_makes_what_one_makes(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks), tempfile.TemporaryDirectory() as directory:
                torch.multiprocessing.spawn(rank_main, (ranks, os.path.join(directory, "meeting")), ranks)


if __name__ == "__main__":
    unittest.main()
