"""./workbook dev peers: what is measured, and the arithmetic on it."""

import contextlib
import importlib
import io
import json
import os
import queue
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from tools import cli
from tools.base import ROOT, Failure, build, cuda, with_python_path
from tools.commands import peers as command
from tools.measuring import documents, launches, model_sweep, nvml, peers
from tools.record import Problem
from tools.showing import peer_tables

DEFAULT = Problem(2, 16, 16, 4096, 4096, 64, "fp16", True)


class Sweeps(unittest.TestCase):
    def test_flash_attentions(self):
        points = peers.sweep("fa", {}, DEFAULT)
        self.assertEqual(len(points), 24)
        self.assertEqual(points[0], Problem(32, 32, 32, 512, 512, 64, "fp16", False))
        self.assertEqual(points[-1], Problem(1, 16, 16, 16384, 16384, 128, "fp16", True))
        for point in points:
            self.assertEqual((point.batch * point.seq_q, point.heads * point.head_dim), (16384, 2048))

    def test_the_ladders(self):
        points = peers.sweep("ladder", {"dtype": "bf16"}, DEFAULT)
        self.assertEqual([point.seq_k for point in points], [512, 1024, 2048, 4096, 8192])
        self.assertEqual({(p.batch, p.heads, p.head_dim, p.dtype, p.causal) for p in points},
                         {(2, 16, 64, "bf16", True)})

    def test_of_few_queries(self):
        points = peers.sweep("decode", {"dtype": "bf16"}, DEFAULT)
        self.assertEqual(len(points), 2 * 11 * 3)
        self.assertEqual(points[0], Problem(1, 32, 32, 1, 8192, 64, "bf16", False))
        self.assertEqual(points[-1], Problem(64, 32, 8, 16, 65536, 128, "bf16", False))
        self.assertEqual({(p.batch, p.kv_heads) for p in points if p.seq_k == 262144}, {(1, 32), (1, 8), (8, 8)})
        self.assertEqual({p.kv_heads for p in peers.sweep("decode", {"heads": 16}, DEFAULT)}, {16})
        self.assertEqual({p.kv_heads for p in peers.sweep("decode", {"kv_heads": 4}, DEFAULT)}, {4})

    def test_of_head_dims(self):
        points = peers.sweep("dims", {}, DEFAULT)
        self.assertEqual(len(points), 7 * 2 * 2)
        self.assertEqual(points[0], Problem(8, 51, 51, 2048, 2048, 40, "fp16", False))
        self.assertEqual(points[-1], Problem(2, 8, 8, 8192, 8192, 256, "fp16", True))
        self.assertEqual({p.heads for p in points if p.head_dim == 192}, {11})
        self.assertEqual({p.head_dim for p in peers.sweep("dims", {"head_dim": 88}, DEFAULT)}, {88})

    def test_of_extras(self):
        points = peers.sweep("extras", {"dtype": "bf16", "head_dim": 128}, DEFAULT)
        self.assertEqual(points[2], Problem(1, 16, 16, 16384, 16384, 128, "bf16", True, "window1024_0"))
        self.assertEqual([point.extras for point in points], peers.EXTRAS)
        self.assertEqual({name: value for point in points for name, value in point.asked().items()
                          if name not in vars(DEFAULT)},
                         {"views": True, "window": (1024, 0), "softcap": 20.0, "alibi": True, "sink": True})
        self.assertEqual([point.batch for point in peers.sweep("extras", {"seq_q": [4096]}, DEFAULT)], [4] * 12)

    def test_of_packed_sequences(self):
        """Beside ordinary ones of one length, which have as many tokens and pairs."""
        dense, packed, *_ = points = peers.sweep("packed", {"dtype": "bf16"}, DEFAULT)
        self.assertEqual([(p.head_dim, p.extras) for p in points],
                         [(64, ""), (64, "packed65536_65536"), (128, ""), (128, "packed65536_65536")])
        self.assertEqual(packed, Problem(40, 16, 16, 5918, 5918, 64, "bf16", True, "packed65536_65536"))
        lengths = documents.lengths_of(packed)
        self.assertEqual((len(lengths), max(lengths), sum(lengths)), (40, 5918, 65536))
        self.assertEqual(dense, Problem(23, 16, 16, 2816, 2816, 64, "bf16", True))
        self.assertAlmostEqual(dense.batch * dense.seq_q / sum(lengths), 1, delta=0.02)
        self.assertAlmostEqual(dense.batch * dense.seq_q**2 / sum(length**2 for length in lengths), 1, delta=0.02)

    def test_of_block_masks(self):
        points = peers.sweep("blocks", {"head_dim": 128}, DEFAULT)
        self.assertEqual([p.extras for p in points], ["", "blocks_documents", "blocks_prefix", "blocks_dilated"])
        self.assertEqual(points[0], Problem(1, 16, 16, 16384, 16384, 128, "fp16", False))
        one = {"head_dim": 64, "block_mask": "prefix"}
        self.assertEqual([p.extras for p in peers.sweep("blocks", one, DEFAULT)], ["", "blocks_prefix"])
        self.assertEqual(peers.word_for("blocks", one, points), "blocks-fp16-d64-prefix")
        with mock.patch.multiple(documents, PREFIX=30, WINDOW=40, LENGTHS=(33, 7, 60)):
            for pattern in documents.PATTERNS:
                shown = documents.seen(pattern, list, 100)
                pairs = sum(bool(shown(0, 0, i, j)) for i in range(100) for j in range(100))
                self.assertEqual(documents.pairs(pattern, 100), pairs, pattern)
            self.assertEqual(documents.lengths(120), [33, 7, 60, 20])

    def test_of_eight_bits(self):
        points = peers.sweep("fp8", {"dtype": "bf16"}, DEFAULT)
        self.assertEqual(len(points), 3 * 2 * 4)
        self.assertEqual(points[0], Problem(8, 32, 32, 2048, 2048, 64, "bf16", False))
        self.assertEqual(points[-1], Problem(1, 8, 8, 16384, 16384, 256, "bf16", True))
        self.assertEqual(peers.word_for("fp8", {"head_dim": 128}, points), "fp8-bf16-d128")

    def test_operations_are_those_of_pairs_that_are_seen(self):
        plain = lambda p: 4.0 * p.batch * p.heads * p.seq_q * p.seq_k * p.head_dim / (2 if p.causal else 1)
        dense, packed = peers.sweep("packed", {"head_dim": 64}, DEFAULT)
        self.assertEqual(documents.flops(dense, plain), plain(dense))
        self.assertAlmostEqual(documents.flops(packed, plain) / plain(dense), 1, delta=0.02)
        whole, _, prefix, _ = peers.sweep("blocks", {"head_dim": 64}, DEFAULT)
        self.assertAlmostEqual(documents.flops(prefix, plain) / plain(whole), 0.53125, delta=1e-4)  # 1/2 + (1/4)^2 / 2

    def test_lengths_of_their_own_are_not_said(self):
        for words, expected in [
                (["packed", "--batch=3"], "batch is 3: the sweep packed has lengths of its own, and takes none"),
                (["blocks", "--seq-q=64,128"], "seq-q is 64,128: the sweep blocks has lengths of its own, and takes none"),
                (["blocks", "--block-mask=scattered"], "block-mask is scattered: the sweep blocks has documents, prefix, "
                                                       "dilated"),
                (["packed", "--block-mask=prefix"], "peers takes no --block-mask: .*--sweep=blocks"),
                (["fp8", "--direction=backward"], "direction is backward: in eight bits there is a forward alone"),
                (["fa", "--window=5,0"], "peers takes no --window: .*--sweep=extras")]:
            with contextlib.redirect_stderr(io.StringIO()) as error:
                self.assertEqual(cli.main(["dev", "peers", f"--sweep={words[0]}", words[1]]), 2)
            self.assertRegex(error.getvalue(), f"^.*{expected}.*\n$")

    def test_restrictions(self):
        self.assertEqual(len(peers.sweep("fa", {"head_dim": 128, "causal": True}, DEFAULT)), 6)
        self.assertEqual(peers.sweep("ladder", {"head_dim": 128, "causal": False}, DEFAULT)[0],
                         Problem(2, 16, 16, 512, 512, 128, "fp16", False))
        self.assertEqual(peers.sweep("fa", {"head_dim": 96, "seq_q": [32768]}, DEFAULT)[0],
                         Problem(1, 21, 21, 32768, 32768, 96, "fp16", False))

    def test_what_the_user_says(self):
        for name, said, count, word in [
            ("fa", {}, 24, "fa-fp16"),
            ("ladder", {"dtype": "bf16"}, 5, "ladder-bf16"),
            ("fa", {"head_dim": 64, "causal": False}, 6, "fa-fp16-d64-full"),
            ("decode", {"head_dim": 64}, 33, "decode-fp16-d64"),
            ("decode", {"seq_q": [2]}, 22, "custom-fp16"),
            ("ladder", {"seq_q": [1000], "kv_heads": 4}, 1, "custom-fp16"),
            ("ladder", {"seq_q": [1000, 7], "seq_k": 9, "batch": 3}, 2, "custom-fp16"),
        ]:
            points = peers.sweep(name, said, DEFAULT)
            self.assertEqual((len(points), peers.word_for(name, said, points)), (count, word))
        self.assertEqual(points[1], Problem(3, 16, 16, 7, 9, 64, "fp16", True))

    def test_as_many_kv_heads_as_heads_unless_said(self):
        heads = {(p.heads, p.kv_heads) for p in peers.sweep("ladder", {"heads": 8}, DEFAULT)}
        self.assertEqual(heads, {(8, 8)})
        heads = {(p.heads, p.kv_heads) for p in peers.sweep("ladder", {"kv_heads": 4}, DEFAULT)}
        self.assertEqual(heads, {(16, 4)})


class OfModels(unittest.TestCase):
    """The sweep of models, and the one that is drawn at random from the same space."""

    def in_the_space(self, problems):
        for one in problems:
            self.assertIn(one.batch, model_sweep.BATCHES)
            self.assertIn((one.heads, one.kv_heads), model_sweep.HEADS)
            self.assertIn(one.head_dim, model_sweep.HEAD_DIMS)
            self.assertIn(one.dtype, model_sweep.DTYPES)
            queries, keys = ((model_sweep.LENGTHS, model_sweep.LENGTHS) if one.seq_q == one.seq_k else
                             (model_sweep.CHUNK_QUERIES, model_sweep.CHUNK_KEYS))
            self.assertTrue(queries[0] <= one.seq_q <= queries[1] and keys[0] <= one.seq_k <= keys[1], one)

    def test_it_keeps_to_its_space_and_takes_each_part_of_it(self):
        training, chunks = model_sweep.training(), model_sweep.chunks()
        self.in_the_space([*training, *chunks])
        self.assertTrue(all(one.seq_q == one.seq_k for one in training))
        self.assertTrue(all(one.seq_q < one.seq_k for one in chunks))
        for values, of in [(model_sweep.HEADS, lambda one: (one.heads, one.kv_heads)),
                           (model_sweep.DTYPES, lambda one: one.dtype),
                           (model_sweep.HEAD_DIMS, lambda one: one.head_dim), ([False, True], lambda one: one.causal)]:
            self.assertEqual({of(one) for one in [*training, *chunks]}, set(values))
        self.assertEqual({min(p.seq_q for p in training), max(p.seq_q for p in training)}, set(model_sweep.LENGTHS))
        self.assertEqual({1, 4096, 131072}, {min(p.seq_q for p in chunks), max(p.seq_q for p in chunks),
                                             max(p.seq_k for p in chunks)})
        nvidias = [p for p in training
                   if (p.batch, p.heads, p.kv_heads, p.head_dim, p.dtype) == (1, 64, 8, 128, "bf16")]
        self.assertLessEqual({(16384, True), (16384, False), (32768, True), (32768, False)},
                             {(p.seq_q, p.causal) for p in nvidias})

    def test_its_points_and_its_time(self):
        problems = [*model_sweep.training(), *model_sweep.chunks()]
        points = model_sweep.with_directions(problems)
        self.assertEqual(len(points), len(set(points)))
        self.assertLessEqual(len(points), model_sweep.MOST_POINTS)
        self.assertLess(model_sweep.expected_seconds(problems), 0.8 * model_sweep.MOST_SECONDS)
        self.assertEqual({direction for problem, direction in points if problem.seq_q < problem.seq_k}, {"forward"})
        # What FlashAttention-4 has compiled for training serves the chunks, too.
        self.assertEqual(model_sweep.compilations(problems), model_sweep.compilations(model_sweep.training()))
        work = [model_sweep.work(*point) for point in points]
        self.assertEqual(work, sorted(work))

    def test_what_is_drawn(self):
        for seed in range(5):
            problems = model_sweep.drawn(40, seed)
            self.assertEqual(len(model_sweep.with_directions(problems)), 40)
            self.assertEqual(problems, model_sweep.drawn(40, seed))
            self.assertNotEqual(problems, model_sweep.drawn(40, seed + 1))
            self.in_the_space(problems)
            self.assertLess(model_sweep.expected_seconds(problems), model_sweep.MOST_SECONDS)
        many = model_sweep.drawn(400, 0)
        self.assertLess(len(model_sweep.with_directions(many)), 400)
        self.assertLess(model_sweep.expected_seconds(many), model_sweep.MOST_SECONDS)
        self.assertEqual(peers.sweep("random", {}, DEFAULT, {"points": 40, "seed": 4}), problems)

    def test_what_the_user_says_chooses_among_the_points(self):
        points = peers.sweep("models", {"dtype": "fp16", "seq_q": [256, 4096]}, DEFAULT)
        self.assertEqual({(p.dtype, p.seq_q) for p in points}, {("fp16", 256), ("fp16", 4096)})
        self.assertEqual(peers.word_for("models", {"heads": 16, "causal": True}, points), "models-heads16-causal")
        self.assertEqual(peers.word_for("models", {}, points), "models")
        self.assertEqual(peers.sweep("models", {"heads": 3}, DEFAULT), [])

    def test_ours_are_what_the_library_has_from_a_rung_on(self):
        book = {"08_causal_earlystop": dict.fromkeys(("masked", "balanced", "ordered")),
                "10_hopper": dict.fromkeys(("dynamic", "narrow", "new")), "11_split_kv": dict.fromkeys(("only",))}
        self.assertEqual(model_sweep.own_rungs(book), [
            ("08_causal_earlystop", "balanced"), ("08_causal_earlystop", "ordered"), ("10_hopper", "narrow"),
            ("10_hopper", "new"), ("11_split_kv", "only")])
        long, short = Problem(1, 64, 8, 8192, 8192, 128, "bf16", True), Problem(1, 32, 8, 512, 512, 128, "bf16", True)
        chunk = Problem(1, 32, 8, 4096, 131072, 128, "bf16", True)
        asked = {(chapter, name) for chapter in book
                 for name, problem in [("long", long), ("short", short), ("chunk", chunk)]
                 if not model_sweep.not_asked(chapter, chapter != "11_split_kv", problem)}
        self.assertEqual(asked, {("08_causal_earlystop", "short"), ("11_split_kv", "short"), ("11_split_kv", "chunk"),
                                 *(("10_hopper", name) for name in ("long", "short", "chunk"))})


class BesideAStandInForTorch(unittest.TestCase):
    def setUp(self):
        self.torch = mock.MagicMock(__version__="2")
        modules = dict.fromkeys(("torch", "torch.nn", "torch.nn.functional", "torch.nn.attention", "torch.nested",
                                 "torch._dynamo", "torch.nn.attention.varlen", "torch.nn.attention.flex_attention"), self.torch)
        modules |= {"tools.measuring.peers_check": mock.MagicMock()}
        loaded = mock.patch.dict(sys.modules, modules)
        loaded.start()
        self.addCleanup(loaded.stop)
        sys.modules.pop("tools.measuring.peers_main", None)
        self.peers_main = importlib.import_module("tools.measuring.peers_main")

    def lane(self, candidate, direction, *tensors, causal=False, **extras):
        return self.peers_main.Lane(candidate, direction, [list(tensors)] * 2, causal, extras)


class Tensor:
    """Remembers its shape, and whether it lies in memory as it is read."""

    def __init__(self, shape, contiguous=True):
        self.shape, self.is_contiguous = shape, contiguous

    def squeeze(self, axis):
        return Tensor(self.shape[1:] if self.shape[axis] == 1 else self.shape, self.is_contiguous)

    def unsqueeze(self, axis):
        return Tensor((*self.shape[:axis], 1, *self.shape[axis:]), self.is_contiguous)

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return Tensor(tuple(shape), not self.is_contiguous)

    def values(self):
        return self

    def contiguous(self):
        return Tensor(self.shape)

    def detach(self):
        return self

    def requires_grad_(self, _):
        return self


class Peers(BesideAStandInForTorch):
    def test_fewer_queries_than_keys_have_a_mask_that_is_aligned_bottom_right(self):
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        asked = []
        attend = self.peers_main.F.scaled_dot_product_attention = lambda *_, **said: asked.append(said)
        bias = mock.MagicMock(causal_lower_right=lambda *lengths: lengths)
        flash, cudnn = self.peers_main.sdpa("FLASH"), self.peers_main.sdpa("CUDNN")
        with mock.patch.dict(sys.modules, {"torch.nn.attention.bias": bias}), \
                mock.patch.object(self.peers_main.F, "scaled_dot_product_attention", attend):
            for keys, causal in ((70, True), (70, False), (50, True)):
                flash.attend(Tensor((1, 8, 50, 64)), Tensor((1, 8, keys, 64)), None, causal)
        self.assertEqual(asked, [{"attn_mask": (50, 70)}, {"is_causal": False}, {"is_causal": True}])
        chunk, square = Problem(1, 8, 8, 50, 70, 64, "fp16", True), Problem(1, 8, 8, 70, 70, 64, "fp16", True)
        more = Problem(1, 8, 8, 70, 50, 64, "fp16", True)
        self.assertEqual([flash.refuses(one) for one in (chunk, square)], [None, None])
        self.assertRegex(flash.refuses(more), "more queries than keys")
        self.assertRegex(cudnn.refuses(chunk), "top-left")
        self.assertIsNone(cudnn.refuses(square))

    def test_flash_has_a_window_through_the_operator_beneath_it(self):
        asked = []
        operator = self.torch.ops.aten._flash_attention_forward
        operator.side_effect = lambda q, k, v, *said, **window: asked.append((q.shape, k.shape, said, window)) or [q, "lse"]
        flash = self.peers_main.sdpa("FLASH")
        o = flash.attend(Tensor((1, 8, 50, 64)), Tensor((1, 2, 70, 64)), Tensor((1, 2, 70, 64)), True, window=(9, 0))
        self.assertEqual(asked, [((1, 50, 8, 64), (1, 70, 2, 64), (None, None, 50, 70, 0.0, True, False),
                                  {"window_size_left": 9, "window_size_right": 0})])
        self.assertEqual(o.shape, (1, 8, 50, 64))
        windowed = Problem(1, 2, 2, 4, 4, 64, "bf16", True, "window3_0")
        self.assertEqual([self.peers_main.sdpa(name).lacks(windowed) for name in ("FLASH", "FLASH-deterministic", "CUDNN")],
                         [None, None, "it has no window"])

    def test_what_is_not_installed_says_why(self):
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        with mock.patch.dict(sys.modules, {"flash_attn_interface": None, "flash_attn": None}):
            candidates, absent = self.peers_main.peer_candidates()
        self.assertEqual([one.name for one in candidates], ["FLASH", "FLASH-deterministic", "CUDNN", "MATH"])
        self.assertEqual(set(absent), {"FA3", "FA4", "FA4-deterministic"})

    def test_an_old_gpu(self):
        self.torch.cuda.get_device_capability.return_value = (7, 5)
        candidates, absent = self.peers_main.peer_candidates()
        self.assertEqual([one.name for one in candidates], ["MATH"])
        self.assertEqual(absent["FLASH-deterministic"], "it needs compute capability 8.0, and this GPU has 7.5")

    def test_flash_attention_4(self):
        """As its package has it: on [B, N, H, D], fewer kv heads as they are, and the LSE beside the result."""
        asked = []

        def flash_attn_func(q, k, v, qv=None, gather_kv_indices=None, softmax_scale=None, causal=False,
                            return_lse=False):
            asked.append(([(one.shape, one.is_contiguous) for one in (q, k, v)], causal))
            return Tensor(q.shape), None

        package = mock.MagicMock(flash_attn_func=flash_attn_func)
        with mock.patch.dict(sys.modules, {"flash_attn": mock.MagicMock(cute=package), "flash_attn.cute": package}):
            candidate = self.peers_main.package("FA4")
        self.assertEqual(candidate.directions, ("forward", "backward"))
        self.assertIsNone(candidate.refuses(Problem(2, 8, 2, 50, 70, 64, "bf16", True)))
        q, k, d_o = Tensor((2, 8, 50, 64)), Tensor((2, 2, 70, 64)), Tensor((2, 8, 50, 64))
        o = candidate.output(self.lane(candidate, "forward", q, k, k, causal=True).launch(0))
        self.assertEqual(asked, [([((2, 50, 8, 64), True)] + [((2, 70, 2, 64), True)] * 2, True)])
        self.assertEqual(o.shape, (2, 8, 50, 64))
        lane = self.lane(candidate, "backward", q, k, k, d_o)
        lane.launch(1)
        (o, inputs, gradient), options = self.torch.autograd.grad.call_args
        self.assertEqual([one.shape for one in (o, *inputs, gradient)],
                         [(2, 50, 8, 64), (2, 50, 8, 64), (2, 70, 2, 64), (2, 70, 2, 64), (2, 50, 8, 64)])
        self.assertEqual((gradient.is_contiguous, options), (True, {"retain_graph": True}))

    def test_flash_attention_4_has_names_of_its_own_for_extras(self):
        asked = []
        package = mock.MagicMock(flash_attn_func=lambda q, *_, **said: asked.append(said) or q)
        with mock.patch.dict(sys.modules, {"flash_attn": mock.MagicMock(cute=package), "flash_attn.cute": package}):
            candidate = self.peers_main.package("FA4")
        self.lane(candidate, "forward", *[Tensor((1, 2, 4, 64))] * 3, window=(3, 0), softcap=20.0).launch(0)
        self.assertEqual(asked, [{"causal": False, "window_size": (3, 0), "softcap": 20.0}])
        problem = Problem(1, 2, 2, 4, 4, 64, "bf16", True, "softcap20_alibi_views")
        self.assertEqual(candidate.lacks(problem), "it has no alibi")
        self.assertEqual(self.peers_main.sdpa("CUDNN").lacks(problem), "it has no softcap")
        self.assertIsNone(candidate.lacks(Problem(1, 2, 2, 4, 4, 64, "bf16", True, "window3_0_sink_views")))

    def test_flash_attention_4_is_deterministic_if_it_is_told(self):
        asked = []
        package = mock.MagicMock(flash_attn_func=lambda *tensors, **said: asked.append(said)
                                 or Tensor(tensors[0].shape))
        with mock.patch.dict(sys.modules, {"flash_attn": mock.MagicMock(cute=package), "flash_attn.cute": package}):
            plain, fixed = self.peers_main.package("FA4"), self.peers_main.package("FA4-deterministic")
        self.assertEqual(fixed.directions, ("backward",))
        for candidate in (plain, fixed):
            self.lane(candidate, "backward", *[Tensor((1, 2, 4, 64))] * 4)  # two sets of inputs
        self.assertEqual(asked, [{"causal": False}] * 2 + [{"causal": False, "deterministic": True}] * 2)

    def test_packed_sequences(self):
        """Each is asked on [total, H, D], which is how the tensors lie, and gives [1, H, total, D]; and where they
        begin is the same list for all."""
        packed = self.peers_main.Packed("begins", 7, 2, None)
        q, k = Tensor((1, 4, 9, 64), contiguous=False), Tensor((1, 2, 9, 64), contiguous=False)
        asked = []

        def remembers(q, k, v, *words, **said):
            asked.append(([(one.shape, one.is_contiguous) for one in (q, k, v)], words, said))
            return q

        fa4 = mock.MagicMock(flash_attn_varlen_func=remembers)
        nested = mock.MagicMock(nested_tensor_from_jagged=lambda x, begins, min_seqlen, max_seqlen: asked.append(
            (begins, min_seqlen, max_seqlen)) or x)
        modules = {"flash_attn": mock.MagicMock(cute=fa4), "flash_attn.cute": fa4, "torch.nested": nested,
                   "torch.nn.attention.varlen": mock.MagicMock(varlen_attn=remembers)}
        workbook = mock.MagicMock(attention_packed=remembers)
        with mock.patch.dict(sys.modules, modules), \
                mock.patch.object(self.peers_main.F, "scaled_dot_product_attention", remembers):
            candidates = [self.peers_main.default_candidate(workbook), self.peers_main.package("FA4-deterministic"),
                          self.peers_main.variable_length(), self.peers_main.nested("NESTED-CUDNN")]
            o = [one.output(self.lane(one, "forward", q, k, k, causal=True, packed=packed).launch(0))
                 for one in candidates]
        self.assertEqual([one.shape for one in o], [(1, 4, 9, 64)] * 4)
        rows = [((9, 4, 64), True)] + [((9, 2, 64), True)] * 2
        lengths = {"cu_seqlens_q": "begins", "cu_seqlens_k": "begins", "max_seqlen_q": 7, "max_seqlen_k": 7}
        self.assertEqual(asked, [
            (rows, ("begins", "begins", 7, 7, True), {}),
            (rows, (), {"causal": True, **lengths, "deterministic": True}),
            (rows, ("begins", "begins", 7, 7), {"window_size": (-1, 0)}),
            *[("begins", 2, 7)] * 3,
            ([((9, 64, 4), False)] + [((9, 64, 2), False)] * 2, (), {"is_causal": True})])  # of nested ones another axis
        plain, sequences = Problem(1, 4, 2, 9, 9, 64, "bf16", True), Problem(3, 4, 2, 7, 7, 64, "bf16", True, "packed9_9")
        for one in candidates:
            self.assertIsNone(one.lacks(sequences) or one.refuses(sequences), one.name)
        self.assertEqual([one.refuses(plain) for one in candidates], [None] * 2 + ["it is for packed sequences"] * 2)
        self.assertEqual(self.peers_main.sdpa("CUDNN").lacks(sequences), "it has no packed")
        named = self.peers_main.Chapter(workbook, "12/views", "12_variants", "views", ("forward",), rope=False)
        self.assertRegex(named.refuses(sequences), "what runs where no chapter is named")
        self.assertIsNone(named.refuses(plain))

    def test_a_block_mask_is_ours_for_us_and_a_function_for_flex_attention(self):
        blocks = self.peers_main.Blocks("lists", lambda b, h, i, j: i % 3 == 0)
        workbook, flex = mock.MagicMock(), mock.MagicMock()
        ours = self.peers_main.default_candidate(workbook)
        ours.forward(*[Tensor((1, 2, 9, 64))] * 3, False, blocks=blocks)
        self.assertEqual(workbook.forward.call_args.kwargs["blocks"], "lists")
        self.torch.compile.side_effect = lambda function, **_: function
        with mock.patch.dict(sys.modules, {"torch.nn.attention.flex_attention": flex}):
            candidate = self.peers_main.flexible()
        for causal, expected in ((False, [True, False, True]), (True, [True, False, False])):
            candidate.attend(*[Tensor((1, 2, 9, 64))] * 3, causal, blocks=blocks)
            shown, *_ = flex.create_block_mask.call_args.args
            self.assertEqual([shown(0, 0, i, j) for i, j in ((3, 2), (4, 2), (3, 5))], expected)

    def test_the_chapter_of_tensors_that_are_in_eight_bits(self):
        """They become so before any timing, each with its scale."""
        workbook, torch = mock.MagicMock(), self.torch
        with mock.patch.object(self.peers_main, "in_eight_bits", lambda x: (f"{x}8", f"{x}_scale")):
            lane = self.lane(self.peers_main.FromEightBits(workbook, "13_e", "bf16"), "forward", "q", "k", "v", causal=True)
        lane.launch(1)
        workbook.attention_fp8.assert_called_once_with("q8", "k8", "v8", True, q_scale="q_scale", k_scale="k_scale",
                                                       v_scale="v_scale", out_dtype=torch.bfloat16)

    def test_cudnn_in_eight_bits(self):
        """One graph for both sets of inputs; o is scaled by the largest element that it had before."""
        cudnn, written = mock.MagicMock(), {}
        graph = cudnn.pygraph.return_value
        graph.sdpa_fp8.return_value = [mock.MagicMock() for _ in range(4)]
        graph.get_workspace_size_plan_at_index.return_value = 0

        class Numbers:
            def __setitem__(self, place, number):
                written[place] = number

            def __getitem__(self, place):
                return mock.MagicMock(**{"data_ptr.return_value": f"number {place}", "item.return_value": 0.875})

        self.torch.zeros.side_effect = lambda *_, **__: Numbers()
        q, k, v = (mock.MagicMock(shape=(1, 2, 9, 64), **{"data_ptr.return_value": name}) for name in "qkv")
        scales = {q: 2.0, k: 3.0, v: 5.0}
        with mock.patch.dict(sys.modules, {"cudnn": cudnn}), \
                mock.patch.object(self.peers_main, "in_eight_bits", lambda x: (x, scales[x])):
            sys.modules.pop("tools.measuring.cudnn_fp8", None)
            candidate = self.peers_main.CudnnOfEightBits()
            module = sys.modules["tools.measuring.cudnn_fp8"]
            module.E4M3_MAX = 448.0
            lane = self.lane(candidate, "forward", q, k, v, causal=True)
            o, unscale = lane.launch(0)
        self.assertEqual((cudnn.pygraph.call_count, graph.build_plan_at_index.call_args_list), (1, [mock.call(0)]))
        said = graph.sdpa_fp8.call_args.kwargs
        self.assertEqual((said["attn_scale"], said["use_causal_mask"]), (0.125, True))
        self.assertEqual(written, {(0, 0): 2.0, (1, 0): 3.0, (2, 0): 5.0, (3, 0): 1 / 256, (4, 0): 256.0,
                                   (5, 0): 448 / 0.875})
        self.assertEqual(unscale * written[5, 0], 1)
        (pointers, *_), _ = graph.execute_plan_at_index.call_args
        self.assertEqual([pointers[uid] for uid in (module.Q, module.K, module.V, module.SCALARS["scale_o"])],
                         ["q", "k", "v", "number 5"])
        self.assertEqual(pointers[module.RESULT], o.data_ptr())
        self.assertEqual(len(pointers), 3 + 6 + 2 + 1)
        o.float.return_value = 7
        self.assertEqual(candidate.output((o, 0.5)), 3.5)

    def test_cudnn_has_a_window_through_its_frontend(self):
        """Its left bound is the first key that a query does not see; -1 is no bound."""
        asked = []
        operators = mock.MagicMock(scaled_dot_product_attention=lambda q, k, v, **said: asked.append(said) or q)
        modules = {"cudnn": mock.MagicMock(), "cudnn.experimental": mock.MagicMock(), "cudnn.experimental.ops": operators}
        with mock.patch.dict(sys.modules, modules):
            candidate = self.peers_main.CudnnWithWindow()
        q, k = Tensor((1, 8, 50, 64)), Tensor((1, 2, 70, 64))
        for keys, causal, window in ((k, True, (9, -1)), (k, False, (0, 3)), (q, False, (-1, 0)), (q, True, (9, 5))):
            self.lane(candidate, "forward", q, keys, keys, causal=causal, window=window).launch(0)
        self.assertEqual([tuple(said.values()) for said in asked],
                         [(True, 1, 10, 0), (True, 1, 1, 3), (True, 0, -1, 0), (True, 0, 10, 0)])
        self.assertEqual(set(map(tuple, asked)), {("enable_gqa", "diagonal_alignment", "left_bound", "right_bound")})
        plain, windowed = (Problem(1, 8, 8, 50, 50, 64, "bf16", True, extra) for extra in ("views", "window9_0_views"))
        self.assertEqual([candidate.lacks(windowed) or candidate.refuses(windowed), candidate.refuses(plain)],
                         [None, "it is for windows"])
        self.assertEqual(candidate.lacks(Problem(1, 8, 8, 50, 50, 64, "bf16", True, "window9_0_sink")), "it has no sink")

    def test_cudnn_without_its_frontend(self):
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        sys.modules.pop("tools.measuring.cudnn_fp8", None)
        for names, there, missing in ((peers.IN_EIGHT_BITS, ["CUDNN"], "CUDNN-FP8"),
                                      (peers.WITH_EXTRAS, ["FLEX"], "CUDNN-WINDOW")):
            with mock.patch.dict(sys.modules, {"cudnn": None}):
                candidates, absent = self.peers_main.peer_candidates(names)
            self.assertEqual([one.name for one in candidates], there)
            self.assertRegex(absent[missing], "cudnn.*: pip install -U nvidia-cudnn-frontend$")
            self.assertNotIn("\n", absent[missing])

    def test_flash_attention_2_is_deterministic_while_it_is_launched(self):
        candidate = self.peers_main.sdpa("FLASH-deterministic")
        self.assertEqual(candidate.directions, ("backward",))
        self.assertIs(self.torch.utils.deterministic.fill_uninitialized_memory, False)
        lanes = [self.lane(one, "backward", *[Tensor((1, 2, 4, 64))] * 4)
                 for one in (candidate, self.peers_main.sdpa("FLASH"))]
        mode = self.torch.use_deterministic_algorithms
        in_mode = []
        self.torch.autograd.grad.side_effect = lambda *_, **__: in_mode.append([call.args[0]
                                                                                for call in mode.call_args_list])
        mode.assert_not_called()  # the forward is, as it is
        for lane in lanes:
            lane.launch(0)
        self.assertEqual(in_mode, [[True], [True, False]])
        self.torch.autograd.grad.side_effect = RuntimeError
        with self.assertRaises(RuntimeError):
            lanes[0].launch(0)
        mode.assert_called_with(False)


class Overhead(BesideAStandInForTorch):
    """tools/measuring/overhead_main.py: what a call costs the CPU."""

    def test_candidates_take_turns_in_their_modes_and_are_compared_with_pytorchs_choice(self):
        sys.modules.pop("tools.measuring.overhead_main", None)
        overhead = importlib.import_module("tools.measuring.overhead_main")
        now, order = [0.0], []

        def candidate(name, seconds):
            def call():
                order.append((name, mode_of.get("mode")))
                now[0] += seconds
            return call

        mode_of = {}

        @contextlib.contextmanager
        def flash():
            now[0] += 1000.0  # entering is not timed
            mode_of["mode"] = "flash"
            yield
            mode_of.clear()

        calls = {name: (candidate(name, seconds), mode) for name, seconds, mode in
                 [("workbook", 2.0, contextlib.nullcontext), ("SDPA", 3.0, contextlib.nullcontext),
                  ("FLASH", 4.0, flash)]}
        with mock.patch.object(overhead.time, "perf_counter", lambda: now[0]):
            self.torch.cuda.synchronize.side_effect = lambda: now.__setitem__(0, now[0] + 0.5)  # the GPU has to finish
            times = overhead.in_turn(calls, 3)
        self.assertEqual(order[:3], [("workbook", None), ("SDPA", None), ("FLASH", "flash")])
        self.assertEqual(len(order), 3 * (100 + 3))
        self.assertEqual({name: (returned["median"], done["median"]) for name, (returned, done) in times.items()},
                         {"workbook": (2.0, 2.5), "SDPA": (3.0, 3.5), "FLASH": (4.0, 4.5)})
        self.assertEqual(overhead.compared(times)["workbook"]["ratio"], 1.5)


class Runs(BesideAStandInForTorch):
    """From what the user said to what is measured: the library names the default problem and counts the operations."""

    rungs = {"last": {"forward": True, "backward": True, "lse": True, "rope": False, "general": True}}

    def run_with(self, said, directions=("forward", "backward"), chapters=("08_c",), named=True, rung=None,
                 instead=None, **more):
        workbook = mock.MagicMock()
        few = {"last": {**self.rungs["last"], "general": False}}
        back = {"alone": {**self.rungs["last"], "forward": False}}
        eight = {rung: {**few["last"], "eight_bits": True} for rung in ("first", "last")}
        workbook.chapters.return_value = {"07_b": back, "08_c": self.rungs, "11_f": few, "13_e": eight}
        workbook.default_problem.return_value = asdict(DEFAULT)
        workbook.flops.side_effect = lambda problem, backward: problem["seq_q"] * (10 if backward else 1)
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        self.torch.cuda.OutOfMemoryError = MemoryError
        measured = []

        def measure(problem, flops, rope, direction, candidates, *_, **__):
            measured.append((direction, problem.seq_q, problem.dtype, flops, [one.name for one in candidates]))
            return [{"name": one.name, "kind": one.kind, "seconds": launches.percentiles([2.0])} for one in candidates]

        request = {"sweep": "ladder", "said": said, "chapters": list(chapters), "named": named,
                   "rung": rung, "all_rungs": False, "directions": directions, "seed": 0, "patience": 1.0,
                   "commit": "abc", "draw": None, "own": False, "default": False, "only": [], "within": None,
                   "timing": peers.LAUNCH_BY_LAUNCH, "out": None, **more}
        sys.modules.pop("tools.measuring.cudnn_fp8", None)
        modules = {"flash_attention_workbook": workbook, "flash_attn": None, "flash_attn_interface": None, "cudnn": None}
        with mock.patch.dict(sys.modules, modules), \
                mock.patch.multiple(self.peers_main, measure=instead or measure, Flush=mock.Mock(),
                                    ceilings=mock.Mock()), \
                contextlib.redirect_stdout(io.StringIO()):
            return measured, self.peers_main.run(request)

    def test_each_point_with_its_problem_its_flops_and_its_candidates(self):
        measured, report = self.run_with({"seq_q": [64, 32], "dtype": "bf16"})
        self.assertEqual(measured, [
            ("forward", 64, "bf16", 64, ["FLASH", "CUDNN", "MATH", "08_c"]),
            ("forward", 32, "bf16", 32, ["FLASH", "CUDNN", "MATH", "08_c"]),
            ("backward", 64, "bf16", 640, ["FLASH", "FLASH-deterministic", "CUDNN", "MATH", "08_c"]),
            ("backward", 32, "bf16", 320, ["FLASH", "FLASH-deterministic", "CUDNN", "MATH", "08_c"])])
        self.assertEqual(report["what"], "custom-bf16")
        self.assertEqual([(point["flops"], point["problem"]["seq_q"], point["baseline"]) for point in report["points"]],
                         [(64, 64, "FLASH"), (32, 32, "FLASH"), (640, 64, "FLASH"), (320, 32, "FLASH")])
        self.assertEqual(set(report["absent"]), {"FA3", "FA4", "FA4-deterministic"})
        self.assertLessEqual({"gpu", "driver", "torch", "cuda", "commit", "before", "after"}, set(report["context"]))
        self.assertIn("08_c, backward: 1.000 x FLASH", "\n".join(peer_tables.remarks(report)))

    def test_packed_sequences_beside_those_who_take_them(self):
        """And the ordinary ones beside them are asked of us alone."""
        packed = self.peers_main.Packed(mock.MagicMock(), 5918, 73, None)
        packed.begins.diff().tolist.return_value = [1, 2]
        with mock.patch.object(self.peers_main, "make_packed", return_value=packed):
            measured, report = self.run_with({"head_dim": 64}, ["forward"], sweep="packed")
        self.assertEqual([(n, names) for _, n, _, _, names in measured],
                         [(2816, ["default", "08_c"]),
                          (5918, ["VARLEN", "NESTED", "NESTED-CUDNN", "FLEX", "default", "08_c"])])
        self.assertEqual([point.get("lengths") for point in report["points"]], [None, [1, 2]])
        self.assertEqual(measured[1][3], 65536)  # a sum over the documents: the stand-in counts rows
        self.assertEqual(report["what"], "packed-fp16-d64")
        self.assertIn("B40 H16 N5918 D64 fp16 causal packed65536_65536", peer_tables.tables(report))

    def test_problems_with_extras_have_further_peers(self):
        """Of cuDNN with a window nobody hears elsewhere."""
        measured, report = self.run_with({"head_dim": 64}, ["forward"], sweep="extras")
        self.assertEqual(measured[0][-1], ["FLASH", "CUDNN", "MATH", "FLEX", "08_c"])
        self.assertRegex(report["absent"]["CUDNN-WINDOW"], "pip install -U nvidia-cudnn-frontend$")
        _, report = self.run_with({"seq_q": [64]}, ["forward"])
        self.assertNotIn("CUDNN-WINDOW", report["absent"])

    def test_eight_bits_beside_sixteen(self):
        """All rungs in eight bits, and the chapter of tensors in eight bits; back to back the last rung alone."""
        for timing, rungs in ((peers.LAUNCH_BY_LAUNCH, ["13_e/first", "13_e/last"]), (peers.BACK_TO_BACK, ["13_e/last"])):
            measured, report = self.run_with({"head_dim": 256, "seq_q": [64]}, ["forward"], ["08_c", "13_e"], named=False,
                                             sweep="fp8", timing=timing)
            self.assertEqual(measured[0][-1], ["CUDNN", "default", *rungs, "13_e/e4m3"])
            self.assertEqual((report["points"][0]["baseline"], list(report["absent"])), ("CUDNN-FP8", ["CUDNN-FP8"]))
        measured, _ = self.run_with({"seq_q": [64]}, ["forward"], ["08_c", "13_e"], sweep="fp8")
        self.assertEqual(measured[0][-1], ["CUDNN", "08_c", "13_e"])
        measured, _ = self.run_with({"seq_q": [64]}, ["forward"], ["08_c", "13_e"], named=False, rung="first", sweep="fp8")
        self.assertEqual(measured[0][-1], ["CUDNN", "13_e/first"])
        measured, report = self.run_with({"seq_q": [64]}, ["forward"], ["08_c", "13_e"])
        self.assertEqual((measured[0][-1][-1], report["absent"]["13_e"]),
                         ("08_c", "its results are those of eight bits: --sweep=fp8 has peers for it"))

    def test_a_chapter_for_few_queries_is_asked_about_many_by_name_only(self):
        def asked(said, **more):
            measured, report = self.run_with({"seq_q": [64], **said}, ["forward"], ["08_c", "11_f"], **more)
            return measured[0][-1][-1], "11_f" in report["absent"]

        self.assertEqual(asked({}, named=False), ("08_c", True))
        self.assertEqual(asked({"seq_k": 256}, named=False), ("11_f", False))
        self.assertEqual(asked({}, named=True), ("11_f", False))

    def test_a_rung_of_all_chapters_is_that_of_those_that_have_it(self):
        measured, _ = self.run_with({"seq_q": [64]}, chapters=["07_b", "08_c"], named=False, rung="alone")
        self.assertEqual([(point[0], point[-1][-1]) for point in measured], [("backward", "07_b/alone")])

    def test_a_direction_that_nobody_has_is_refused_by_its_name(self):
        for rung, name in ((None, "07_b"), ("alone", "07_b/alone")):
            with self.assertRaisesRegex(self.peers_main.Refusal,
                                        f"^no forward in {name}: chapters that have one: 08_c, 11_f, 13_e$"):
                self.run_with({}, ["forward"], ["07_b"], rung=rung)
        with self.assertRaisesRegex(self.peers_main.Refusal, "^rung is alone: 08_c has last$"):
            self.run_with({}, chapters=["08_c"], rung="alone")

    def run_of_models(self, **more):
        """Two problems, of which one has no backward."""
        with mock.patch.multiple(model_sweep, TRAINING="B1_H4_N512_D64_fp16_full", OWN={"08_c": "last"},
                                 CHUNKS="B1_H4_Nq1_Nk4096_D64_fp16_full"):
            return self.run_with({}, named=False, sweep="models", own=True, **more)

    def test_a_sweep_of_models_has_the_default_and_each_rung_that_may_be_it(self):
        measured, report = self.run_of_models()
        fast = ["FLASH", "CUDNN", "default", "08_c/last"]
        self.assertEqual([(direction, n, names) for direction, n, _, _, names in measured],
                         [("forward", 1, fast), ("forward", 512, fast),
                          ("backward", 512, ["FLASH", "FLASH-deterministic", *fast[1:]])])
        self.assertEqual(report["what"], "models")

    def test_only_some_candidates(self):
        for words, expected in [(["CUDNN", "default"], ["CUDNN", "default"]), (["08"], ["08_c/last"]),
                                (["08/last", "FLASH"], ["FLASH", "08_c/last"])]:
            measured, _ = self.run_of_models(only=words)
            self.assertEqual(measured[0][-1], expected)
        with self.assertRaisesRegex(self.peers_main.Refusal, "^only is x: there are FLASH, .*default, 08_c/last$"):
            self.run_of_models(only=["x"])
        with self.assertRaisesRegex(self.peers_main.Refusal, "^only is FA3: .*flash_attn_interface"):
            self.run_of_models(only=["CUDNN", "FA3"])

    def test_the_default_beside_chapters(self):
        measured, _ = self.run_with({"seq_q": [64]}, ["forward"], default=True)
        self.assertEqual(measured[0][-1][-2:], ["08_c", "default"])

    def test_what_there_is_no_time_for_is_left_out(self):
        with self.assertRaisesRegex(self.peers_main.Refusal, "the 0 s for all points were over"):
            self.run_of_models(within=1e-9)

    def test_a_lost_gpu_leaves_what_was_measured(self):
        calls = []

        def measure(problem, flops, rope, direction, candidates, *_):
            calls.append(problem)
            if len(calls) == 2:
                raise self.peers_main.Lost("FA4: CUDA error: misaligned address")
            return [{"name": one.name, "kind": one.kind, "seconds": launches.percentiles([2.0])} for one in candidates]

        with contextlib.redirect_stderr(io.StringIO()):
            _, report = self.run_of_models(instead=measure)
        self.assertEqual((len(calls), [point["problem"]["seq_q"] for point in report["points"]]), (2, [1]))
        self.assertEqual(report["ended"], "forward N=512 B=1 H=4 D=64 fp16 full: FA4: CUDA error: misaligned address")
        self.assertTrue(report["summary"])

    def test_a_watchdog_barks_once_it_hears_nothing(self):
        heard = queue.Queue()
        with self.peers_main.Watchdog(heard.put, longest=0.05) as at:
            at("here")
            self.assertEqual(heard.get(timeout=10), "here: it has not answered for 0 s")
        with self.peers_main.Watchdog(heard.put, longest=0.05):
            pass
        time.sleep(0.1)
        self.assertTrue(heard.empty())

    def test_where_nothing_is_said(self):
        measured, report = self.run_with({}, ["forward"])
        self.assertEqual([point[:2] for point in measured], [("forward", n) for n in (512, 1024, 2048, 4096, 8192)])
        self.assertEqual(report["what"], "ladder-fp16")


class Launches(BesideAStandInForTorch):
    """The stand-in's events say when the GPU was there first."""

    def setUp(self):
        super().setUp()
        self.flush = mock.Mock(seconds=1e-4)
        self.lane = self.lane(mock.MagicMock(), "forward")
        self.lane.cover = 2e-4

    def gpu_was_there(self, *answers):
        self.torch.cuda.Event.return_value.query.side_effect = answers

    def test_one_in_time_counts(self):
        self.gpu_was_there(False)
        self.lane.take_turn(self.flush)
        self.assertEqual((len(self.lane.events), self.lane.turn, self.lane.late), (1, 1, 0))
        self.flush.assert_called_once_with(2e-4)

    def test_late_ones_are_repeated_with_more_time(self):
        self.gpu_was_there(True, True, False)
        self.lane.take_turn(self.flush)
        self.assertEqual((len(self.lane.events), self.lane.turn, self.lane.late), (1, 1, 2))
        self.assertEqual([round(call.args[0] * 1e6) for call in self.flush.call_args_list], [200, 300, 450])

    def test_what_never_is_in_time_is_left_out(self):
        self.gpu_was_there(*[True] * self.lane.ATTEMPTS)
        with self.assertRaisesRegex(self.peers_main.Skipped, "does not enqueue it"):
            self.lane.take_turn(self.flush)
        self.assertEqual(self.lane.events, [])


class BackToBack(BesideAStandInForTorch):
    """The stand-in's clock: the CPU needs so long to enqueue a launch, and the GPU so long for one."""

    def setUp(self):
        super().setUp()
        self.module = self.peers_main.back_to_back
        self.now, self.gpu_until, self.launched = 0.0, 0.0, []
        case = self

        class Event:
            def __init__(self, **_):
                self.at = 0.0

            def record(self):
                self.at = max(case.now, case.gpu_until)

            def query(self):
                return self.at <= case.now

            def elapsed_time(self, other):
                return 1e3 * (other.at - self.at)

        self.torch.cuda.Event.side_effect = Event
        self.torch.cuda.synchronize.side_effect = lambda: setattr(self, "now", max(self.now, self.gpu_until))
        self.torch.cuda._sleep.side_effect = lambda cycles: self.busy(cycles / self.module.CYCLES)
        for patch in (mock.patch.object(self.module.time, "perf_counter", lambda: self.now),
                      mock.patch.object(self.module, "torch", self.torch)):  # of whichever test imported it
            patch.start()
            self.addCleanup(patch.stop)

    def busy(self, seconds):
        self.gpu_until = max(self.now, self.gpu_until) + seconds

    def bursts(self, name, host, gpu):
        def launch(number):
            self.launched.append((name, number))
            self.now += host
            self.busy(gpu)

        return self.module.Bursts(mock.MagicMock(launch=launch), gpu)

    def test_the_time_of_a_launch_is_the_gpus(self):
        for host, gpu, covered in [(1e-5, 1e-3, False), (5e-5, 1e-5, True)]:
            bursts = self.bursts("x", host, gpu)
            self.assertEqual(bursts.covered, covered)
            seconds, busy = bursts.slice()
            self.assertAlmostEqual(seconds, gpu, delta=1e-3 * gpu)
            self.assertEqual(busy > 0.9, not covered)
            self.assertEqual(bursts.late, 0)

    def test_a_slice_is_long_enough_and_of_long_launches_there_are_few(self):
        for gpu, many, least, most in [(1e-4, 20, 320, 380), (4e-3, 20, 20, 20), (0.031, 4, 4, 4), (0.3, 1, 1, 1)]:
            bursts = self.bursts("x", 1e-6, gpu)
            self.launched.clear()
            bursts.slice()
            self.assertEqual(bursts.many, many)
            self.assertTrue(least <= len(self.launched) <= most, (gpu, len(self.launched)))
            self.assertEqual(len({number for _, number in self.launched}), min(many, 2))

    def test_launches_that_were_enqueued_late_are_repeated(self):
        bursts = self.bursts("x", 5e-5, 1e-5)
        bursts.host = 2e-4  # it was lucky once
        self.assertAlmostEqual(bursts.slice(1e-6)[0], 1e-5)
        self.assertGreater(bursts.late, 0)

    def test_slices_take_turns_and_then_each_has_the_gpu_alone(self):
        results = [{"name": "a"}, {"name": "b"}]
        lanes = [(self.bursts(one["name"], 1e-6, gpu), one) for one, gpu in zip(results, (2e-3, 4e-3))]
        self.launched.clear()
        heard, turns, a_slice = [], [], self.module.Bursts.slice

        def slice_of(bursts, *seconds):
            turns.append(next(one["name"] for of, one in lanes if of is bursts))
            return a_slice(bursts, *seconds)

        with mock.patch.object(self.module, "Watching", mock.MagicMock()), \
                mock.patch.object(self.module.Bursts, "slice", slice_of):
            self.module.measure(lanes, 1e9, 3, None, heard.append)
        rounds = ["".join(turns[i:i + 2]) for i in range(0, 8, 2)]
        self.assertEqual((sorted(set(rounds[:3])), rounds[3]), (["ab", "ba"], "ab"))  # each has what another one left
        self.assertEqual([round(one["seconds"]["median"], 6) for one in results], [0.002, 0.004])
        self.assertEqual([(len(one["samples"]), one["launches"]) for one in results], [(3, 20)] * 2)
        self.assertAlmostEqual(results[1]["flop_rate"], 1e9 / 0.004, delta=1e6)
        self.assertEqual(heard, ["the slices in turn"] * 3 + ["a", "b"])

    def test_clock_and_power_are_of_its_time_alone_without_the_beginning(self):
        def look(number):  # energy is counted up every fourth time
            return nvml.Look(0.005 * number, 1000.0 if number < 10 else 1500.0, 300.0, 12.0 * (number // 4))

        watching = mock.MagicMock()
        watching.return_value.__enter__.return_value.looks = [look(i) for i in range(80)]
        bursts = self.bursts("x", 1e-6, 1e-3)
        self.now = self.gpu_until = 0.0
        with mock.patch.object(self.module, "Watching", watching):
            found = self.module.alone(bursts, None)
            self.assertEqual((found["sm_clock_mhz"], found["power_w"]), (1500.0, 600.0))
            self.assertAlmostEqual(found["joules"], 0.6)
            waits = self.module.alone(self.bursts("y", 1e-4, 1e-5), None)  # the CPU cannot keep the GPU at work
        self.assertEqual([waits[name] for name in ("sm_clock_mhz", "power_w", "joules")], [None] * 3)
        self.assertAlmostEqual(waits["alone_seconds"], 1e-5)


class Nvml(unittest.TestCase):
    def library(self, **status):
        def answer(value):
            def function(*words):
                words[-1]._obj.value = value
                return status.get("every", 0)
            return function

        return mock.MagicMock(nvmlInit_v2=lambda: 0,
                              nvmlDeviceGetHandleByUUID=lambda uuid, _: status.get(uuid.decode(), 0),
                              nvmlDeviceGetTotalEnergyConsumption=answer(5000), nvmlDeviceGetPowerUsage=answer(650000),
                              nvmlDeviceGetClockInfo=answer(1755))

    def test_a_look(self):
        seen = nvml.Nvml("GPU-1", self.library()).look()
        self.assertEqual((seen.sm_clock_mhz, seen.power_w, seen.energy_j), (1755, 650.0, 5.0))
        seen = nvml.Nvml("GPU-1", self.library(every=3)).look()  # not supported
        self.assertEqual((seen.sm_clock_mhz, seen.power_w, seen.energy_j), (None, None, None))
        with self.assertRaisesRegex(OSError, "NVML answers 6 for GPU-2"):
            nvml.Nvml("GPU-2", self.library(**{"GPU-2": 6}))

    def test_power_is_energy_between_the_times_at_which_it_was_counted_up(self):
        counted = [nvml.Look(0.01 * i, 1.0, 1.0, 10.0 * (i // 4)) for i in range(11)]  # 10 J each 40 ms
        self.assertAlmostEqual(nvml.mean_power(counted), 250.0)
        self.assertAlmostEqual(nvml.mean_power([nvml.Look(i, 1.0, 100.0 + i, None) for i in range(3)]), 101.0)
        self.assertIsNone(nvml.mean_power(counted[:4]))  # it was not counted up
        self.assertIsNone(nvml.mean_power([]))
        self.assertIsNone(nvml.mean_clock([]))

    def test_looking_beside_something(self):
        with nvml.Watching(lambda: time.perf_counter(), every=0.001) as watching:
            time.sleep(0.05)
        count = len(watching.looks)
        self.assertGreater(count, 2)
        time.sleep(0.01)
        self.assertEqual(len(watching.looks), count)
        with nvml.Watching(None) as nobody:
            pass
        self.assertEqual(nobody.looks, [])


class Arithmetic(unittest.TestCase):
    full = Problem(1, 16, 16, 16384, 16384, 128, "fp16", False)
    causal = Problem(1, 16, 16, 16384, 16384, 128, "fp16", True)
    short = Problem(4, 16, 16, 4096, 4096, 128, "fp16", False)
    other = Problem(1, 32, 32, 16384, 16384, 64, "fp16", False)

    def test_predictions(self):
        self.assertIsNone(launches.predicted_seconds([], self.full))
        self.assertAlmostEqual(launches.predicted_seconds([(self.short, 0.1)], self.full), 0.4)
        known = [(self.other, 9.0), (self.causal, 2.0), (self.short, 0.1)]
        self.assertAlmostEqual(launches.predicted_seconds(known, self.full), 0.4)
        self.assertAlmostEqual(launches.predicted_seconds(known[:2], self.full), 2.0)
        self.assertAlmostEqual(launches.predicted_seconds(known[:1], self.full), 9.0)

    def test_how_many_launches(self):
        self.assertEqual([launches.launches(seconds) for seconds in (1e-5, 0.05, 0.6)], [40, 10, 3])
        self.assertIsNone(launches.too_slow(0.5))
        self.assertRegex(launches.too_slow(1.234), "about 1.2 s")

    def test_turns_are_spread_evenly(self):
        for count, rounds in [(3, 40), (40, 40), (7, 10), (1, 5)]:
            turns = [number for number in range(rounds) if launches.has_turn(count, rounds, number)]
            self.assertEqual(len(turns), count)
            gaps = [after - before for before, after in zip(turns, turns[1:])]
            self.assertLessEqual(max(gaps, default=1) - min(gaps, default=1), 1)

    def test_percentiles(self):
        self.assertEqual(launches.percentiles([3.0, 1.0, 2.0]),
                         {"median": 2, "p10": 1.2, "p90": 2.8, "min": 1, "max": 3})
        self.assertEqual(set(launches.percentiles([5.0]).values()), {5.0})
        ten = launches.percentiles([float(i) for i in range(11)])
        self.assertEqual((ten["p10"], ten["p90"]), (1, 9))


def report(*rows) -> dict:
    """rows: {name: seconds, "skipped" text or "wrong" text} for N = 512, 1024, ..."""
    points = []
    for number, row in enumerate(rows):
        problem = Problem(1, 16, 16, 512 << number, 512 << number, 128, "fp16", False)
        results = []
        for name, value in row.items():
            result = {"name": name, "kind": "peer" if name.isupper() else "chapter"}
            if isinstance(value, float):
                result.update(seconds=launches.percentiles([value, value]), samples=[value, value],
                              flop_rate=1e12 / value)
            else:
                result["wrong" if value.startswith("o ") else "skipped"] = value
            results.append(result)
        points.append({"problem": asdict(problem), "direction": "forward", "flops": 1e12, "results": results})
    peers.add_ratios(points)
    return {"what": "fa-fp16", "absent": {"FA3": "No module"}, "points": points, "summary": peers.summary(points)}


class Reports(unittest.TestCase):
    def test_ratios_are_speed_against_flash(self):
        made = report({"FLASH": 2.0, "MATH": 8.0, "06": 1.0}, {"FLASH": 2.0, "MATH": "no memory", "06": 4.0})
        ratios = [[result.get("ratio") for result in point["results"]] for point in made["points"]]
        self.assertEqual(ratios, [[1, 0.25, 2], [1, None, 0.5]])
        by_name = {one["name"]: one for one in made["summary"]}
        self.assertEqual(set(by_name), {"MATH", "06"})
        self.assertEqual((by_name["06"]["points"], by_name["06"]["lowest"], by_name["06"]["highest"]), (2, 0.5, 2))
        self.assertAlmostEqual(by_name["06"]["geometric_mean"], 1)

    def test_without_flash_there_are_no_ratios(self):
        made = report({"FLASH": "too old", "06": 1.0})
        self.assertIsNone(made["points"][0]["results"][1]["ratio"])
        self.assertEqual(made["summary"], [])
        self.assertIn("06", peer_tables.tables(made))

    def test_in_eight_bits_ratios_are_speed_against_cudnns(self):
        made = report({"CUDNN": 4.0, "CUDNN-FP8": 2.0, "13_fp8/e4m3": 1.0})
        for point in made["points"]:
            point["baseline"] = "CUDNN-FP8"
            for result, norm in zip(point["results"], (0.002, 0.06, 0.05)):
                result["norm"] = norm
        peers.add_ratios(made["points"])
        made["summary"] = peers.summary(made["points"])
        self.assertEqual([result["ratio"] for result in made["points"][0]["results"]], [0.5, 1, 2])
        said = peer_tables.remarks(made)
        self.assertIn("13_fp8/e4m3, forward: 2.000 x CUDNN-FP8 (geometric mean of 1 points, 2.00 to 2.00)", said)
        self.assertIn("13/e4m3: |o - exact| / |exact| is at most 0.05", said)
        self.assertIn("x CUDNN-FP8", peer_tables.tables(made))

    def test_few_queries_are_a_table_for_each_shape_in_microseconds(self):
        made = report({"FLASH": 2e-5, "11": 1e-5}, {"FLASH": 3e-5, "11": 1.5e-5}, {"FLASH": 4e-5, "11": 4e-5})
        for point, (batch, queries) in zip(made["points"], [(1, 1), (1, 4), (8, 1)]):
            point["problem"].update(batch=batch, kv_heads=8, seq_q=queries, seq_k=8192)
        lines = [line.split() for line in peer_tables.tables({**made, "what": "decode-fp16"}).split("\n")]
        self.assertEqual(lines, [
            ["forward,", "B=1", "H=16", "(kv", "8)", "D=128", "fp16", "full,", "us", "N=1x8192", "N=4x8192"],
            ["FLASH", "20.0", "30.0"], ["11", "10.0", "15.0"], ["x", "FLASH", "2.00", "2.00"], [],
            ["forward,", "B=8", "H=16", "(kv", "8)", "D=128", "fp16", "full,", "us", "N=1x8192"],
            ["FLASH", "40.0"], ["11", "40.0"], ["x", "FLASH", "1.00"]])

    def test_of_models_a_line_for_each_point(self):
        made = report({"FLASH": 2e-5, "CUDNN": 1e-5, "default": 1.25e-5, "10_hopper/x": 1e-5},
                      {"FLASH": 4e-5, "CUDNN": "it is refused", "default": 2e-5, "10_hopper/x": 2.5e-5})
        made["what"] = "models"
        self.assertEqual([" ".join(line.split()) for line in peer_tables.tables(made).split("\n")], [
            "forward, us FLASH CUDNN default 10/x x FLASH x CUDNN x peers x own",
            "B1 H16 N512 D128 fp16 full 20.0 10.0 12.5 10.0 1.60 0.80 0.80 0.80",
            "B1 H16 N1024 D128 fp16 full 40.0 - 20.0 25.0 2.00 - 2.00 1.25"])
        said = peer_tables.remarks(made)
        self.assertEqual(said[1], "default, forward: 0.800 x CUDNN (geometric mean of 1 points), at least 0.80 "
                         "(B1 H16 N512 D128 fp16 full); behind at 1")
        self.assertIn("default, forward: 1.265 x the fastest peer (geometric mean of 2 points), at least 0.80", said[2])
        self.assertIn("default, forward: 1.000 x the fastest own rung", said[3])
        self.assertIn("CUDNN skipped at B1 H16 N1024 D128 fp16 full: it is refused", said)
        del made["points"][0]["results"][2], made["points"][1]["results"][2]  # as with --only: the last of ours instead
        self.assertIn("10/x, forward: 1.000 x CUDNN", "\n".join(peer_tables.remarks(made)))

    def test_the_table_and_the_remarks(self):
        made = report({"FLASH": 2.0, "01": "one launch would take about 1.2 s", "06": 1.0},
                      {"FLASH": 2.0, "01": "one launch would take about 4.7 s", "06": "o differs by 1"})
        lines = peer_tables.tables(made).split("\n")
        self.assertEqual(lines[0].split(), ["forward,", "D=128", "fp16", "full,", "TFLOP/s", "N=512", "N=1024"])
        self.assertEqual([line.split() for line in lines[1:]],
                         [["FLASH", "0.500", "0.500"], ["01", "-", "-"], ["06", "1.00", "wrong"],
                          ["x", "FLASH", "2.00", "-"]])
        said = "\n".join(peer_tables.remarks(made))
        self.assertIn("06, forward: 2.000 x FLASH (geometric mean of 1 points, 2.00 to 2.00)", said)
        self.assertIn("01 skipped at N=512, N=1024: one launch would take about 1.2 s", said)
        self.assertIn("06 wrong at N=1024: o differs by 1", said)
        self.assertIn("FA3 is not here: No module", said)

    def test_another_cudnn_beside_pytorchs(self):
        made = report({"FLASH": 4.0, "CUDNN": 2.0, "default": 1.0}, {"FLASH": 4.0, "CUDNN": 2.0, "default": 1.0})
        other = report({"CUDNN": 1.6, "default": 1.1})
        for one, version in ((made, 91900), (other, 92801)):
            one["context"] = {"cudnn": version, "date": "d"}
            for point in one["points"]:
                point["rope"] = False
        peers.add_cudnn(made, other)
        names = ["FLASH", "CUDNN", "CUDNN-9.28", "default"]
        self.assertEqual([[result["name"] for result in point["results"]] for point in made["points"]], [names] * 2)
        first, second = (point["results"][2] for point in made["points"])
        self.assertEqual((first["ratio"], second["skipped"]), (2.5, "it was not asked"))
        self.assertEqual({one["name"] for one in made["summary"]}, set(names[1:]))
        self.assertEqual(made["context"]["other_cudnn"]["cudnn"], 92801)
        self.assertAlmostEqual(made["context"]["other_cudnn"]["ours_there"], 1.1)
        self.assertEqual(made["context"]["cudnn"], 91900)
        self.assertIn("default, forward: 1.600 x CUDNN-9.28",
                      "\n".join(peer_tables.remarks({**made, "what": "models"})))
        with self.assertRaisesRegex(Failure, "has the version that PyTorch brings, 91900"):
            peers.add_cudnn(made, made)

    def measured(self, program, **more) -> dict:
        """By this function in the place of peers_main."""
        def follow(words, log, on_line, cwd, **said):
            return program(words, log, **said)

        with tempfile.TemporaryDirectory() as scratch, \
                mock.patch.multiple(peers, BUILD=Path(scratch), follow=follow):
            return peers.measure("python", Path("/built"), {}, **more)

    def test_its_libraries_are_preloaded(self):
        with tempfile.TemporaryDirectory() as scratch:
            with self.assertRaisesRegex(Failure, f"^--cudnn is {scratch}: it has no libcudnn.so.9$"):
                peers.cudnn_in(Path(scratch))
            for name in peers.CUDNN_LIBRARIES:
                (Path(scratch) / name).touch()
            found = peers.cudnn_in(Path(scratch))
        asked = []

        def ends(words, *_, environment):
            asked.append(environment)
            words[-1].write_text("{}")
            return 0

        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/x"}):
            os.environ.pop("LD_PRELOAD", None)
            self.measured(ends, preloaded=found)
            self.measured(ends)
        self.assertEqual([asked[0][name] for name in ("LD_PRELOAD", "LD_LIBRARY_PATH")],
                         [f"{found[0]}:{found[1]}", f"{scratch}:/x"])
        self.assertEqual(asked[1]["LD_LIBRARY_PATH"], "/x")

    def test_a_process_that_dies_leaves_the_points_before(self):
        def dies(words, *_, **__):
            words[-1].write_text(json.dumps({key: made[key] for key in ("what", "points")}))
            return -11

        made = report({"FLASH": 2.0, "06": 1.0})
        found = self.measured(dies)
        self.assertRegex(found["ended"], "^the process .*SIGSEGV")
        self.assertEqual((found["points"], found["summary"]), (made["points"], made["summary"]))

    def test_back_to_back_has_clocks(self):
        made = report({"CUDNN": 2.0, "default": 1.0}, {"CUDNN": 2.0, "default": 1.0})
        for point, mhz in zip(made["points"], (1500, 1400)):
            point["results"][1].update(sm_clock_mhz=mhz, power_w=700.0)
            point["results"][0].update(sm_clock_mhz=None, power_w=None)
        self.assertIn("default, forward: 1450 MHz, 700 W (mean of 2 points)", peer_tables.remarks(made))

    def test_a_wrong_peer_is_a_remark_and_a_wrong_chapter_a_failure(self):
        self.assertEqual(peer_tables.wrong_chapters(report({"FA4": "o is not finite", "06": 1.0})), [])
        self.assertIn("FA4 wrong at N=512: o is not finite",
                      peer_tables.remarks(report({"FA4": "o is not finite", "06": 1.0})))
        self.assertEqual(peer_tables.wrong_chapters(report({"FLASH": 2.0, "06": 1.0},
                                                           {"FLASH": 2.0, "06": "o differs by 1"})), ["06"])


class BadInput(unittest.TestCase):
    def ending_of(self, *words) -> tuple:
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            return cli.main(["dev", "peers", *words]), stderr.getvalue()

    def test_one_line(self):
        hidden = {"CUDA_VISIBLE_DEVICES": ""}
        for words, status, expected in [
            (["--preset=cpu"], 2, "unknown argument --preset=cpu"),
            (["--benchmark_filter=x"], 2, "unknown argument --benchmark_filter=x"),
            (["--keep"], 2, "unknown argument --keep"),
            (["--rung=x", "--all-rungs"], 2, "not allowed with argument --rung"),
            (["--patience=-1"], 2, "-1 is not a number of seconds above 0"),
            (["--patience=nan"], 2, "nan is not a number of seconds above 0"),
            (["--sweep=x"], 2, "invalid choice: 'x'"),
            (["--points=0"], 2, "0 is not a whole number of at least 1"),
            (["--within=0"], 2, "0 is not a number of seconds above 0"),
            (["--cudnn=/nowhere"], 2, "--cudnn is /nowhere: it has no libcudnn.so.9"),
            (["--heads=3", "--kv-heads=2"], 2, "heads must be a multiple of kv-heads"),
            (["99"], 2, "no chapter 99"),
            ([], 1, "peers needs a GPU: CUDA_VISIBLE_DEVICES hides every GPU"),
        ]:
            with mock.patch.dict(os.environ, hidden):
                ended, stderr = self.ending_of(*words)
            self.assertEqual(ended, status, words)
            self.assertIn(expected, stderr)
            self.assertEqual(stderr.count("\n"), 1, stderr)

    def test_no_pytorch(self):
        for named, expected in [("", "^peers needs PyTorch with CUDA, which .* lack: install it"),
                                ("/nowhere/python", "which /nowhere/python .WORKBOOK_PYTHON. lacks")]:
            with mock.patch.dict(os.environ, {"WORKBOOK_PYTHON": named}), self.assertRaisesRegex(Failure, expected), \
                    mock.patch.object(cuda, "output_of", return_value=None):
                peers.python_with_torch()


class TheCommand(unittest.TestCase):
    """What it asks for, and where the answer goes."""

    def answered(self, words, *answers) -> tuple:
        """(status, the requests, {path below the scratch directory: report}, what was said)"""
        left, asked, said = list(answers), [], io.StringIO()

        def measure(python, built, request, **more):
            asked.append({**request, **more})
            answer = left.pop(0)
            if isinstance(answer, Failure):
                raise answer
            about = {"gpu": "G", "torch": "2", "cudnn": 91900 + 901 * len(asked)}
            return {"context": about, "timing": request["timing"], **answer}

        with tempfile.TemporaryDirectory() as scratch:
            here = Path(scratch)
            for name in peers.CUDNN_LIBRARIES:
                (here / name).touch()
            words = [word.replace("HERE", scratch) for word in words]
            with contextlib.ExitStack() as stack:
                for patch in (mock.patch.object(cuda, "find_gpu", return_value=(cuda.Gpu("NVIDIA H100 80GB", "1"), "")),
                              mock.patch.object(cuda, "choose_preset"), mock.patch.object(build, "ensure_built"),
                              mock.patch.object(build, "directory", return_value=here / "build"),
                              mock.patch.multiple(peers, python_with_torch=mock.Mock(), measure=measure),
                              mock.patch.multiple(command, RESULTS=here / "results", shown=str),
                              contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)):
                    stack.enter_context(patch)
                status = cli.main(["dev", "peers", *words])
            files = {str(path.relative_to(here)): json.loads(path.read_text()) for path in here.rglob("*.json")}
        return status, asked, files, said.getvalue()

    def made(self, **seconds) -> dict:
        made = report(seconds)
        made["points"][0]["rope"] = False
        return {**made, "what": "models"}

    def test_a_sweep_of_models_is_ours_that_may_be_the_default(self):
        status, asked, files, said = self.answered(["--sweep=models", "--back-to-back"],
                                                   self.made(FLASH=2.0, CUDNN=2.0, default=1.0))
        self.assertEqual((status, list(files)), (0, ["results/nvidia-h100-80gb/peers-models-b2b.json"]))
        self.assertEqual([(one["own"], one["timing"], one["within"], one["draw"]) for one in asked],
                         [(True, "back to back", 450.0, None)])
        self.assertIn("default, forward: 2.000 x CUDNN", said)
        _, (asked,), files, _ = self.answered(["10", "--sweep=random", "--draw-seed=7", "--only=default"],
                                              {**self.made(default=1.0), "what": "random"})
        self.assertEqual((asked["own"], asked["draw"], asked["only"]), (False, {"points": 40, "seed": 7}, ["default"]))
        self.assertEqual(list(files), ["build/bench/peers-random-10_hopper-default.json"])

    def test_another_cudnn_is_asked_with_ours_by_a_second_process(self):
        words = ["--sweep=models", "--cudnn=HERE"]
        first = self.made(FLASH=2.0, CUDNN=2.0, default=1.0)
        status, asked, files, _ = self.answered(words, first, self.made(CUDNN=1.5, default=1.0))
        self.assertEqual([one["only"] for one in asked], [[], ["CUDNN", "default"]])
        self.assertEqual([path.name for path in asked[1]["preloaded"]], list(peers.CUDNN_LIBRARIES))
        (found,) = files.values()
        self.assertEqual([one["name"] for one in found["points"][0]["results"]],
                         ["FLASH", "CUDNN", "CUDNN-9.37", "default"])
        status, asked, files, said = self.answered(words, self.made(CUDNN=2.0, default=1.0),
                                                   Failure("it does not load"))
        self.assertEqual((status, len(files)), (0, 1))
        self.assertIn("is not here: it does not load", said)

    def test_a_part_of_a_record_is_no_record(self):
        status, _, files, said = self.answered(["--sweep=models"],
                                               {**self.made(FLASH=2.0, default=1.0), "ended": "FA4 at x"})
        self.assertEqual((status, list(files)), (1, ["build/bench/peers-models.json"]))
        self.assertIn("it ended early, at FA4 at x", said)


class Environment(unittest.TestCase):
    def test_the_users_python_path_is_kept(self):
        with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, {"PYTHONPATH": scratch}):
            (Path(scratch) / "only_the_users.py").touch()
            (Path(scratch) / "tools.py").touch()  # ours comes first
            program = "import only_the_users, tools.base; print(tools.__file__)"
            found = subprocess.run([sys.executable, "-B", "-c", program], env=with_python_path(ROOT / "common"),
                                   text=True, capture_output=True)
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn(str(ROOT / "common"), found.stdout)
        with mock.patch.dict(os.environ):
            os.environ.pop("PYTHONPATH", None)
            self.assertEqual(with_python_path("/a", "/b")["PYTHONPATH"], "/a:/b")


if __name__ == "__main__":
    unittest.main()
