"""What models add to attention (chapter 12), through PyTorch, against the formulas in fp64 and their derivatives: each
extra, their refusals, and problems drawn at random. WORKBOOK_PROBLEMS says how many of those: 3000 are for a GPU.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants
one.
"""

import itertools
import os
import random
import sys
import unittest

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw
from flash_attention_workbook.library import DEVICE
from refusals import Refused
from tools.measuring.peers_check import Reference

ON_ENGINE = DEVICE == "cpu"
if not ON_ENGINE and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)
PROBLEMS = int(os.environ.get("WORKBOOK_PROBLEMS", 20 if ON_ENGINE else 300))


def reference(q, k, v, **options):
    return reference_with_lse(q, k, v, **options)[0]


def reference_with_lse(q, k, v, causal=False, window=(-1, -1), softcap=None, alibi=None, sink=None, seen=None,
                       scale=None):
    """The formulas in fp64, of tensors that may require gradients; `seen` is a mask as a tensor."""
    (batch, heads, seq_q, head_dim), seq_k = q.shape, k.shape[2]
    q, k, v = q.double(), *(x.double().repeat_interleave(heads // k.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (scale or head_dim**-0.5)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    distance = (torch.arange(seq_q)[:, None] + seq_k - seq_q - torch.arange(seq_k)).to(DEVICE)
    if alibi is not None:
        scores = scores - alibi.double().expand(batch, heads)[:, :, None, None] * distance.abs()
    left, right = window[0], 0 if causal else window[1]
    hidden = ((distance > left) & (left >= 0)) | ((-distance > right) & (right >= 0))
    if seen is not None:
        hidden = hidden | ~seen
    # A score of -inf would make NaN of a row without keys, whose gradients would then be NaN, too.
    scores = scores.masked_fill(hidden, -1e9)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[:, None, None].expand(batch, heads, seq_q, 1)], -1)
    weights = torch.softmax(scores, -1)[..., :seq_k].masked_fill(hidden, 0)
    return weights @ v, torch.logsumexp(scores, -1)


def tensors(batch=2, heads=4, kv_heads=2, seq_q=70, seq_k=90, head_dim=64, dtype=torch.float16, layout="bhnd",
            head_dim_v=None):
    """q, k and v that require gradients: one behind the other, as projections leave them, or as parts of one tensor."""
    shapes = [(batch, seq_q, heads, head_dim), (batch, seq_k, kv_heads, head_dim),
              (batch, seq_k, kv_heads, head_dim_v or head_dim)]
    made = [torch.randn(shape, device=DEVICE, dtype=dtype).mul_(1.5).transpose(1, 2) for shape in shapes]
    if layout == "bhnd":
        made = [x.contiguous() for x in made]
    elif layout == "packed":
        wide = [torch.zeros(*x.shape[:3], x.shape[3] + 8 * (n + 1), device=DEVICE, dtype=dtype)
                for n, x in enumerate(made)]
        made = [to[..., :x.shape[3]].copy_(x) for to, x in zip(wide, made)]
    elif layout == "odd":  # rows begin anywhere
        made = [torch.zeros(*x.shape[:3], x.shape[3] + 3, device=DEVICE, dtype=dtype)[..., 1:-2].copy_(x) for x in made]
    return [x.detach().requires_grad_() for x in made]


def packed_problem(draw, longest):
    """Lengths [(of queries, of keys)], q, k and v [total, heads, head_dim] that require gradients, options, and these
    without tensors."""
    length = lambda: draw.choice([0, 1, int(longest**draw.random()), int(longest**draw.random())])
    lengths = [(length(), length()) for _ in range(draw.randint(1, 7))] + [(draw.randint(1, longest),) * 2]
    kv_heads, group = draw.choice([1, 2]), draw.choice([1, 3])
    head_dim, dtype = draw.choice([64, 128, 64, 128, 8 * draw.randint(1, 16)]), draw.choice([torch.float16, torch.bfloat16])
    behind = draw.choice([0, 9])
    inputs = [torch.randn(sum(one) + behind, heads, head_dim, device=DEVICE, dtype=dtype).mul_(1.5)
              for one, heads in zip((*zip(*lengths), [k for _, k in lengths]),
                                    (kv_heads * group, kv_heads, kv_heads))]
    if draw.random() < 0.5:  # as parts of one tensor
        inputs = [torch.cat([x, x], -1)[..., :head_dim] for x in inputs]
    options = dict(causal=draw.random() < 0.5)
    if draw.random() < 0.5:
        options["window"] = tuple(draw.choice([-1, 0, draw.randint(0, longest)]) for _ in range(2))
    if draw.random() < 0.3:
        options["softcap"] = draw.choice([1.0, 5.0, 30.0])
    elif draw.random() < 0.4:
        options["alibi"] = torch.rand(len(lengths), kv_heads * group, device=DEVICE) / 2
    if draw.random() < 0.4:
        options["sink"] = (torch.randn(kv_heads * group, device=DEVICE) * 2).requires_grad_()
    if draw.random() < 0.3:
        options["scale"] = 0.1
    said = dict(head_dim=head_dim, dtype=dtype, heads=kv_heads * group, **{
        name: value for name, value in options.items() if not isinstance(value, torch.Tensor)})
    return lengths, [x.detach().requires_grad_() for x in inputs], options, said


def block_problem(draw, longest):
    """A function of (b, h, i, j), the numbers of its masks, q, k and v that require gradients, and other options."""
    batch, kv_heads, group = draw.choice([1, 2]), draw.choice([1, 2]), draw.choice([1, 2])
    shape = dict(batch=batch, heads=kv_heads * group, kv_heads=kv_heads, seq_q=draw.randint(1, longest),
                 seq_k=draw.randint(1, longest), head_dim=draw.choice([64, 128, 64, 128, 8 * draw.randint(1, 16)]),
                 dtype=draw.choice([torch.float16, torch.bfloat16]), layout=draw.choice(["bhnd", "bnhd", "packed"]))
    masks = dict(batch=draw.choice([None, batch]), heads=draw.choice([None, kv_heads * group]))
    document = torch.randint(0, draw.choice([2, 5, 20]), (longest,)).sort().values.to(DEVICE)
    prefix, step, few = draw.randint(0, longest), draw.randint(1, 9), draw.randint(2, 4)
    shift = shape["seq_k"] - shape["seq_q"]
    name, mask = draw.choice([
        ("documents", lambda b, h, i, j: (document[i] == document[j]) & (j <= i + shift + b)),
        ("prefix", lambda b, h, i, j: (j < prefix + 20 * h) | (j <= i + shift)),
        ("dilated", lambda b, h, i, j: ((i - j) % (step + h) == 0) & ((i - j).abs() < 300)),
        ("tiles", lambda b, h, i, j: (i // 128 * 5 + j // 128 * 3 + b + h) % few == 0),
        ("both", lambda b, h, i, j: ((i // 128 + j // 128 + h) % few == 0) | (i * (b + 2) % 7 == j % 11))])
    options = dict(causal=draw.random() < 0.3)
    if draw.random() < 0.4:
        options["sink"] = torch.randn(shape["heads"], device=DEVICE) * 2
    if draw.random() < 0.3:
        options["scale"] = 0.1
    said = dict(mask=name, masks=masks, prefix=prefix, step=step, few=few, **shape, causal=options["causal"],
                sink="sink" in options, scale=options.get("scale"))
    return mask, masks, tensors(**shape), options, said


def seen_by(mask, masks, q, k):
    """The same as a tensor, [B, H, Nq, Nk]."""
    sizes = [*q.shape[:3], k.shape[2]]
    b, h, i, j = torch.meshgrid(*[torch.arange(size, device=DEVICE) for size in sizes], indexing="ij")
    return mask(b if masks["batch"] else b * 0, h if masks["heads"] else h * 0, i, j)


def wrong(got, expected, dtype, floor=1e-4):
    """What is wrong with a result, in a line; None if nothing is. Two bounds: the norm of the error and the largest, as
    storage in 16 bits makes them. An error of `floor` an element is none."""
    norm, largest = (4e-3, 2e-2) if dtype == torch.float16 else (3e-2, 0.15)
    if not torch.isfinite(got).all():
        return "is not finite"
    error, size = (got.double() - expected), expected.abs().max().item()
    if error.norm().item() > norm * expected.norm().item() + floor * expected.numel()**0.5:
        return f"has an error of norm {error.norm().item():.3g} beside {expected.norm().item():.3g}"
    if error.abs().max().item() > largest * max(size, 0.1) + floor:
        return f"has an error of {error.abs().max().item():.3g} where the largest number is {size:.3g}"
    return None


def captured(call):
    """The CUDA graph of a call that has been made once before, on another stream, and what replays write to."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = call()
    return graph, recorded


class Checks(unittest.TestCase):
    def check(self, inputs, options, seen=None):
        sinks = [options["sink"].requires_grad_()] if "sink" in options else []
        o = faw.attention(*inputs, **options)
        options = {name: value for name, value in options.items() if name != "blocks"}
        self.check_results(o, [*inputs, *sinks], *reference_with_lse(*inputs, **options, seen=seen))
        return o

    def check_results(self, o, inputs, expected, lse):
        """O, and its gradients with respect to q, k, v and perhaps the sink. A backward begins with D, the sums of
        dO * O over rows: what O's own error makes of D and of the gradients is right (dlse / dscores is P)."""
        self.assertIsNone(wrong(o, expected, o.dtype), "o")
        d_o = torch.randn_like(o)
        got = torch.autograd.grad(o, inputs, d_o)
        exact = torch.autograd.grad(expected, inputs, d_o.double(), retain_graph=True)
        too_much = (d_o * (o - expected)).detach().sum(-1)
        of_its_d = torch.autograd.grad(lse, inputs, too_much, allow_unused=True)
        for name, one, other, less in zip(("dq", "dk", "dv", "dsink"), got, exact, of_its_d):
            self.assertIsNone(wrong(one, other if less is None else other - less, o.dtype), name)

    def check_packed(self, lengths, inputs, options):
        """Of sequences of so many (queries, keys): o and the gradients, against the formulas for each of them."""
        begins = [torch.tensor([0, *itertools.accumulate(one)], device=DEVICE, dtype=torch.int32)
                  for one in zip(*lengths)]
        o = faw.attention_packed(*inputs, *begins, *[max(one) for one in zip(*lengths)], **options)
        of_each = []
        for n, (i, j, i_end, j_end) in enumerate(zip(*[begin.tolist()[e:] for e in (0, 1) for begin in begins])):
            its = {name: value[n:n + 1] if name == "alibi" else value for name, value in options.items()}
            rows = [x[part].transpose(0, 1)[None]
                    for x, part in zip(inputs, (slice(i, i_end), slice(j, j_end), slice(j, j_end)))]
            of_each.append([x[0].transpose(0, 1) for x in reference_with_lse(*rows, **its)])
        behind = o.new_zeros(o.shape[0] - begins[0][-1].item(), *o.shape[1:])
        expected, lse = (torch.cat([*parts, rest]) for parts, rest in zip(zip(*of_each), (behind, behind[..., 0])))
        self.check_results(o, [*inputs, *([options["sink"]] if "sink" in options else [])], expected, lse)


class Values(Checks):
    def test_each_extra(self):
        for number, options in enumerate([
                dict(window=(20, 5)), dict(softcap=2.0), dict(alibi=torch.tensor([0.5, 0.25, 0.125, 0.1])),
                dict(alibi=torch.rand(2, 4)), dict(sink=torch.randn(4)),
                dict(window=(30, 0), softcap=5.0, sink=torch.randn(4)),
                # One key a row, and next to nothing in the sink: dQ is what O's error makes of D.
                dict(window=(0, 0), softcap=1.0, sink=torch.full((4,), -6.0))]):
            with self.subTest(options=list(options)):
                options = {name: value.to(DEVICE) if isinstance(value, torch.Tensor) else value
                           for name, value in options.items()}
                inputs = tensors(head_dim=(64, 128)[number % 2], layout=("bhnd", "bnhd")[number // 2 % 2])
                self.assertEqual(self.check(inputs, options).stride(), inputs[0].stride())

    def test_a_v_with_its_own_head_dim(self):
        for number, options in enumerate([dict(), dict(causal=True), dict(window=(20, 5)),
                                          dict(causal=True, sink=torch.randn(4, device=DEVICE))]):
            for layout in ("bhnd", "bnhd", "packed"):
                with self.subTest(options=list(options), layout=layout):
                    inputs = tensors(head_dim=192, head_dim_v=128, layout=layout,
                                     dtype=(torch.float16, torch.bfloat16)[number % 2])
                    o = self.check(inputs, options)
                    self.assertEqual(o.shape, (2, 4, 70, 128))
                    order = [sorted(range(4), key=x.stride, reverse=True) for x in (o, inputs[0])]
                    self.assertEqual(*order)

    def test_views_with_head_dims_above_128(self):
        for number, (head_dim, layout) in enumerate(itertools.product((192, 256, 200), ("bnhd", "packed", "odd"))):
            with self.subTest(head_dim=head_dim, layout=layout):
                inputs = tensors(head_dim=head_dim, layout=layout, dtype=(torch.float16, torch.bfloat16)[number % 2])
                o = self.check(inputs, dict(causal=number % 3 == 0))
                if layout != "odd":
                    problem = dict(batch=2, heads=4, kv_heads=2, seq_q=70, seq_k=90, head_dim=head_dim, dtype="fp16",
                                   causal=False, views=True)
                    self.assertEqual(faw.default_rung(problem)[0], "12_variants")
                    self.assertEqual(o.shape, inputs[0].shape)
        q, k, v = tensors(kv_heads=4, head_dim=256, layout="bnhd")
        expanded = [x[:, :1].detach().expand(-1, 4, -1, -1).requires_grad_() for x in (k, v)]  # heads that are one
        self.check([q, *expanded], dict(causal=True))
        with self.assertRaisesRegex(ValueError, "^12_variants: head_dim is 256: above 128 it takes no window$"):
            faw.attention(q, k, v, window=(5, 0))

    def test_sdpa_takes_a_v_with_its_own_head_dim(self):
        band = torch.ones(70, 90, dtype=torch.bool, device=DEVICE).tril(25)
        q, k, v = tensors(head_dim=192, head_dim_v=128, layout="bnhd")
        for said, options in ((dict(), dict()), (dict(attn_mask=band), dict(window=(-1, 5))),
                              (dict(attn_mask=torch.zeros_like(band)), None)):
            o = faw.sdpa(q, k, v, enable_gqa=True, **said)
            expected = reference(q, k, v, **options) if options is not None else torch.zeros(2, 4, 70, 128).to(DEVICE)
            self.assertEqual(o.shape, expected.shape)
            self.assertIsNone(wrong(o, expected, q.dtype), list(said))
        expected = torch.nn.functional.scaled_dot_product_attention(q.double(), *(
            x.double().repeat_interleave(2, 1) for x in (k, v)), is_causal=True)
        self.assertIsNone(wrong(faw.sdpa(q, k, v, is_causal=True, enable_gqa=True), expected, q.dtype))

    def test_an_empty_v_with_its_own_head_dim(self):
        q, k, v = (x.detach() for x in tensors(head_dim=192, head_dim_v=128))
        self.assertEqual(faw.attention(q, k[:, :, :0], v[:, :, :0]).shape, (2, 4, 70, 128))
        self.assertEqual(faw.attention(q[:, :, :0], k, v).shape, (2, 4, 0, 128))
        o, lse = faw.forward(q, k[:, :, :0], v[:, :, :0])
        self.assertEqual([x.shape for x in faw.backward(q, k[:, :, :0], v[:, :, :0], o, lse, o)],
                         [q.shape, k[:, :, :0].shape, v[:, :, :0].shape])

    def test_problems_drawn_at_random(self):
        for seed in range(PROBLEMS):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            longest = 200 if ON_ENGINE else draw.choice([200, 700, 1500])
            kv_heads, group = draw.choice([1, 2, 3]), draw.choice([1, 2, 4])
            shape = dict(batch=draw.choice([1, 2]), heads=kv_heads * group, kv_heads=kv_heads,
                         seq_q=draw.randint(1, longest), seq_k=draw.randint(1, longest),
                         head_dim=draw.choice([64, 128, 64, 128, 8 * draw.randint(1, 16)]),
                         dtype=draw.choice([torch.float16, torch.bfloat16]),
                         layout=draw.choice(["bhnd", "bnhd", "packed", "odd"]))
            options = dict(causal=draw.random() < 0.3)
            if draw.random() < 0.6:
                options["window"] = tuple(draw.choice([-1, 0, draw.randint(0, longest)]) for _ in range(2))
            score = draw.random()
            if score < 0.3:
                options["softcap"] = draw.choice([1.0, 5.0, 30.0])
            elif score < 0.6:
                options["alibi"] = torch.rand(*draw.choice([(shape["batch"],), ()]), shape["heads"], device=DEVICE) / 2
            if draw.random() < 0.4:
                options["sink"] = torch.randn(shape["heads"], device=DEVICE) * 2
            said = {name: list(value.shape) if isinstance(value, torch.Tensor) else value
                    for name, value in options.items()}
            with self.subTest(seed=seed, **shape, **said):
                self.check(tensors(**shape), options)

    def test_packed_sequences(self):
        for seed in range(max(PROBLEMS // 3, 8)):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            lengths, inputs, options, said = packed_problem(draw, 100 if ON_ENGINE else draw.choice([100, 1500]))
            with self.subTest(seed=seed, lengths=lengths, **said):
                self.check_packed(lengths, inputs, options)

    def test_packed_sequences_in_themselves(self):
        """Without any, without tokens, and in one piece: as attention() has it."""
        q, k, v = (x.detach()[0].transpose(0, 1) for x in tensors(batch=1, seq_q=40, seq_k=60))
        begin = lambda *numbers: torch.tensor(numbers, device=DEVICE, dtype=torch.int32)
        whole = faw.attention(*(x.transpose(0, 1)[None] for x in (q, k, v)), causal=True)[0].transpose(0, 1)
        o = faw.attention_packed(q, k, v, begin(0, 40), begin(0, 60), 40, 60, True)
        self.assertIsNone(wrong(o, whole.double(), q.dtype))
        for lengths in ((begin(0), begin(0)), (begin(0, 0), begin(0, 0)), (begin(0, 40), begin(0, 0))):
            self.assertFalse(faw.attention_packed(q, k, v, *lengths, 40, 60).any())
        self.assertEqual(faw.attention_packed(q[:0], k, v, begin(0, 0), begin(0, 60), 0, 60).shape, (0, 4, 64))

    def test_packed_sequences_of_very_unequal_lengths(self):
        """From 1 to 100,000 tokens: as attention() has each by itself."""
        lengths = [3, 400, 1, 129, 60] if ON_ENGINE else [7, 100_000, 1, 3000, 1, 129, 20_000, 64]
        begin = torch.tensor([0, *itertools.accumulate(lengths)], device=DEVICE, dtype=torch.int32)
        for head_dim in (64, 128):
            q, k, v, d_o = (torch.randn(sum(lengths), heads, head_dim, device=DEVICE, dtype=torch.bfloat16)
                            for heads in (4, 2, 2, 4))
            inputs = [x.requires_grad_() for x in (q, k, v)]
            o = faw.attention_packed(*inputs, begin, begin, max(lengths), max(lengths), causal=True)
            got = [o, *torch.autograd.grad(o, inputs, d_o)]
            for n, length in enumerate(lengths):
                rows = slice(begin[n].item(), begin[n].item() + length)
                its = [x.detach()[rows].transpose(0, 1)[None].requires_grad_() for x in inputs]
                its_o = faw.attention(*its, causal=True)
                wanted = [its_o, *torch.autograd.grad(its_o, its, d_o[rows].transpose(0, 1)[None])]
                for name, one, other in zip(("o", "dq", "dk", "dv"), got, wanted):
                    with self.subTest(head_dim=head_dim, length=length, name=name):
                        self.assertIsNone(wrong(one[rows].transpose(0, 1)[None], other.double(), o.dtype))

    def test_what_is_in_one_packed_sequence_is_nothing_to_others(self):
        begin = torch.tensor([0, 70, 101, 230], device=DEVICE, dtype=torch.int32)
        for head_dim in (64, 128):
            results = []
            for middle in (1.0, float("nan")):
                torch.manual_seed(head_dim)
                q, k, v, d_o = (torch.randn(230, 2, head_dim, device=DEVICE, dtype=torch.float16) for _ in range(4))
                for x in (q, k, v, d_o):
                    x[70:101] = middle
                inputs = [x.requires_grad_() for x in (q, k, v)]
                o = faw.attention_packed(*inputs, begin, begin, 129, 129, causal=True)
                results.append([torch.cat([x[:70], x[101:]]) for x in (o, *torch.autograd.grad(o, inputs, d_o))])
            for numbers, beside_nan in zip(*results):
                self.assertTrue(torch.equal(numbers, beside_nan))

    def test_block_masks(self):
        for seed in range(max(PROBLEMS // 3, 8)):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            mask, masks, inputs, options, said = block_problem(draw, 400 if ON_ENGINE else draw.choice([400, 2000]))
            with self.subTest(seed=seed, **said):
                seen = seen_by(mask, masks, *inputs[:2])
                blocks = faw.block_mask(mask, **masks, seq_q=inputs[0].shape[2], seq_k=inputs[1].shape[2], device=DEVICE)
                some = seen[:None if masks["batch"] else 1, :None if masks["heads"] else 1]
                of_tensor = faw.block_mask(some)
                self.assertEqual(blocks[3:], of_tensor[3:])
                self.assertTrue(all(map(torch.equal, blocks[:3], of_tensor[:3])))
                self.check(inputs, {**options, "blocks": blocks}, seen)

    def test_what_a_block_mask_lists(self):
        """Tiles of documents of 200 tokens: by rows, and by columns."""
        blocks = faw.block_mask(lambda b, h, i, j: (i // 200 == j // 200) & (j <= i), seq_q=600, seq_k=600)
        self.assertEqual(blocks.begin.flatten().tolist(), [0, 1, 3, 5, 8, 10] + [0, 2, 5, 7, 9, 10])
        tiles = blocks.tiles.tolist()
        self.assertEqual([tile for tile, _ in tiles[0]], [0, 0, 1, 1, 2, 1, 2, 3, 3, 4])
        self.assertEqual([tile for tile, _ in tiles[1]], [0, 1, 1, 2, 3, 2, 3, 3, 4, 4])
        self.assertEqual([cut for _, cut in tiles[0]], list(range(10)))  # of the last tile of a row, no pair is missing
        self.assertEqual(blocks.share(), 10 / 25)
        whole = faw.block_mask(torch.ones(130, 70, dtype=torch.bool))
        self.assertEqual(whole.tiles[0].tolist(), [[0, -1], [0, -1]])
        self.assertEqual(whole.bits.shape[1], 0)

    def test_a_function_is_not_asked_for_all_pairs_at_once(self):
        asked = []

        def mask(b, h, i, j):
            asked.append(i.numel() * j.numel())
            return i // 128 == j // 128

        faw.block_mask(mask, seq_q=9000, seq_k=9000)
        self.assertLessEqual(max(asked), 1 << 24)
        self.assertEqual(sum(asked), 9000 * 9000)

    def test_masks_that_expand(self):
        q, k, v = (x.detach() for x in tensors(seq_q=150, seq_k=140))
        keys = torch.arange(140, device=DEVICE) < torch.tensor([140, 90], device=DEVICE)[:, None]  # of a padded batch
        queries = torch.arange(150, device=DEVICE) % 3 > 0
        for mask, sizes, seen in ((keys[:, None, None], dict(seq_q=150), keys[:, None, None]),
                                  (queries[:, None], dict(seq_k=140), queries[:, None]),
                                  (keys[0, :1, None], dict(seq_q=150, seq_k=140), True)):
            blocks = faw.block_mask(mask, **sizes)
            seen = torch.as_tensor(seen, device=DEVICE).expand(2, 4, 150, 140)
            o = faw.attention(q, k, v, blocks=blocks)
            self.assertIsNone(wrong(o, reference(q, k, v, seen=seen), o.dtype), sizes)
        asked = faw.block_mask(lambda b, h, i, j: keys[b, None, None], batch=2, seq_q=150, seq_k=140, device=DEVICE)
        of_tensor = faw.block_mask(keys[:, None, None], seq_q=150)
        self.assertTrue(all(map(torch.equal, asked[:3], of_tensor[:3])))

    def test_what_is_not_contiguous(self):
        """Slopes, sinks, tables of RoPE and the beginnings of sequences: as if they were, compiled and not."""
        q, k, v = tensors()
        apart = lambda x: torch.stack([x, torch.full_like(x, 7)], -1)[..., 0]
        slopes, sink = torch.rand(2, 4, device=DEVICE), torch.randn(4, device=DEVICE)
        compiled = torch.compile(faw.attention, fullgraph=True, backend="aot_eager")
        for options in (dict(alibi=slopes), dict(alibi=slopes[0]), dict(sink=sink)):
            (name, tensor), = options.items()
            expected = faw.attention(q, k, v, **options)
            self.assertFalse(apart(tensor).is_contiguous())
            for attention in (faw.attention, compiled):
                torch._dynamo.reset()
                self.assertTrue(torch.equal(attention(q, k, v, **{name: apart(tensor)}), expected), name)
        for same in (slopes[:1], slopes[:1].expand(2, 4)):
            self.assertTrue(torch.equal(faw.attention(q, k, v, alibi=same), faw.attention(q, k, v, alibi=slopes[0])))
        d_sink = [torch.autograd.grad(faw.attention(q, k, v, sink=lie(leaf)).sum(), leaf)[0]
                  for lie in (apart, lambda x: x) for leaf in (sink.clone().requires_grad_(),)]
        self.assertTrue(torch.equal(*d_sink))
        tables = faw.rope_tables(q, k)
        turned = [faw.attention(q, k, v, rope=rope) for rope in (tables, [apart(table) for table in tables])]
        self.assertTrue(torch.equal(*turned))
        begin = torch.tensor([0, 20, 70], dtype=torch.int32, device=DEVICE)
        rows = torch.randn(70, 4, 64, dtype=torch.float16, device=DEVICE)
        packed = [faw.attention_packed(rows, rows, rows, one, one, 50, 50) for one in (begin, apart(begin))]
        self.assertTrue(torch.equal(*packed))

    def test_what_a_block_mask_leaves_out_is_nothing_to_the_rest(self):
        """NaN in tiles that are not listed, forward and backward."""
        for head_dim in (64, 128):
            results = []
            for other in (1.0, float("nan")):
                torch.manual_seed(head_dim)
                q, k, v, d_o = (torch.randn(1, 2, 400, head_dim, device=DEVICE, dtype=torch.float16) for _ in range(4))
                for x in (q, k, v, d_o):
                    x[:, :, 128:256] = other
                inputs = [x.requires_grad_() for x in (q, k, v)]
                blocks = faw.block_mask(lambda b, h, i, j: (i // 128 == 1) == (j // 128 == 1), seq_q=400, seq_k=400,
                                        device=DEVICE)
                o = faw.attention(*inputs, blocks=blocks)
                results.append([torch.cat([x[:, :, :128], x[:, :, 256:]], 2)
                                for x in (o, *torch.autograd.grad(o, inputs, d_o))])
            for numbers, beside_nan in zip(*results):
                self.assertTrue(torch.equal(numbers, beside_nan))

    def test_block_masks_compiled_and_as_operators(self):
        q, k, v = tensors(batch=1, heads=2, kv_heads=1, seq_q=150, seq_k=140)
        blocks = faw.block_mask(lambda b, h, i, j: i // 64 >= j // 64, seq_q=150, seq_k=140, device=DEVICE)
        torch._dynamo.reset()
        both = []
        for attention in (faw.attention, torch.compile(faw.attention, fullgraph=True, backend="aot_eager")):
            o = attention(q, k, v, blocks=blocks)
            both.append([o, *torch.autograd.grad(o, (q, k, v), torch.ones_like(o))])
        for plain, other in zip(*both):
            self.assertTrue(torch.equal(plain, other))
        extras = faw.operators._extras(q, None, None, None, None, blocks=blocks)
        operators = torch.ops.flash_attention_workbook
        torch.library.opcheck(operators.forward.default,
                              (q, k, v, None, None, False, None, None, None, None, None, *extras))
        inputs = [x.detach() for x in (q, k, v)]
        o, lse = operators.forward(*inputs, None, None, False, None, None, None, None, None, *extras)
        torch.library.opcheck(operators.backward.default,
                              (o, *inputs, o, lse, None, None, False, None, None, None, *extras))

    def test_default_rung_of_a_block_mask(self):
        self.assertEqual(faw.default_rung({**faw.default_problem(), "blocks": True, "causal": False})[0], "12_variants")

    @unittest.skipIf(ON_ENGINE, "the engine has no graphs")
    def test_lengths_may_change_between_replays_of_a_graph(self):
        begin = torch.tensor([0, 60, 100, 190], device=DEVICE, dtype=torch.int32)
        inputs = [torch.randn(200, heads, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
                  for heads in (4, 2, 2)]
        d_o = torch.randn(200, 4, 64, device=DEVICE, dtype=torch.float16)

        def both():
            o = faw.attention_packed(*inputs, begin, begin, 200, 200, causal=True, window=(50, 0))
            return [o, *torch.autograd.grad(o, inputs, d_o)]

        graph, recorded = captured(both)
        for lengths in ([0, 60, 100, 190], [0, 1, 1, 200], [0, 150, 160, 161]):
            begin.copy_(torch.tensor(lengths))
            graph.replay()
            for replayed, direct in zip(recorded, both()):
                self.assertTrue(torch.equal(replayed, direct), lengths)

    @unittest.skipIf(ON_ENGINE, "the engine has no graphs")
    def test_block_masks_may_change_between_replays_of_a_graph(self):
        """In the same lists: another mask with as many tiles."""
        masks = [faw.block_mask(mask, seq_q=384, seq_k=384, device=DEVICE)
                 for mask in (lambda b, h, i, j: i // 128 == j // 128, lambda b, h, i, j: i // 128 + j // 128 == 2)]
        blocks = masks[0]._replace(begin=masks[0].begin.clone(), tiles=masks[0].tiles.clone())
        inputs = [torch.randn(1, heads, 384, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
                  for heads in (4, 2, 2)]
        d_o = torch.randn(1, 4, 384, 64, device=DEVICE, dtype=torch.float16)

        def both():
            o = faw.attention(*inputs, blocks=blocks)
            return [o, *torch.autograd.grad(o, inputs, d_o)]

        graph, recorded = captured(both)
        results = []
        for mask in (masks[1], masks[0]):
            blocks.begin.copy_(mask.begin)
            blocks.tiles.copy_(mask.tiles)
            graph.replay()
            for replayed, direct in zip(recorded, both()):
                self.assertTrue(torch.equal(replayed, direct))
            results.append(recorded[0].clone())
        self.assertFalse(torch.equal(*results))

    def test_packed_compiled_and_as_an_operator(self):
        begin = torch.tensor([0, 5, 5, 17], device=DEVICE, dtype=torch.int32)
        inputs = [torch.randn(20, heads, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
                  for heads in (2, 1, 1)]
        both = []
        for attention in (faw.attention_packed,
                          torch.compile(faw.attention_packed, fullgraph=True, backend="aot_eager")):
            o = attention(*inputs, begin, begin, 12, 12, causal=True)
            both.append([o, *torch.autograd.grad(o, inputs, torch.ones_like(o))])
        for plain, other in zip(*both):
            self.assertTrue(torch.equal(plain, other))
        compiled = torch.compile(faw.attention_packed, fullgraph=True, backend="aot_eager")
        for longest in range(1, 13):  # more of them than torch.compile makes for one function
            begin = torch.tensor([0, 2, 2, 2 + longest], device=DEVICE, dtype=torch.int32)
            o = compiled(*inputs, begin, begin, longest, longest, window=(longest, 0))
            direct = faw.attention_packed(*inputs, begin, begin, longest, longest, window=(longest, 0))
            self.assertTrue(torch.equal(o, direct))
        begin = torch.tensor([0, 5, 5, 17], device=DEVICE, dtype=torch.int32)
        rows = [x.detach().transpose(0, 1).unsqueeze(0).requires_grad_() for x in inputs]
        extras = faw.operators._extras(rows[0], None, None, None, None, (begin, begin, 12, 12))
        operators = torch.ops.flash_attention_workbook
        torch.library.opcheck(operators.forward.default,
                              (*rows, None, None, True, None, None, None, None, None, *extras))
        rows = [x.detach() for x in rows]
        o, lse = operators.forward(*rows, None, None, True, None, None, None, None, None, *extras)
        torch.library.opcheck(operators.backward.default,
                              (o, *rows, o, lse, None, None, True, None, None, None, *extras))

    def test_what_peers_are_judged_by_knows_extras(self):
        """tools/measuring/peers_check.py, which has no autograd in it."""
        slopes, sink = (torch.rand(4, device=DEVICE) + more for more in (0.5, 2))  # not small
        prompts = lambda b, h, i, j: (i // 30 == j // 30) | (j < 8)
        for options in (dict(causal=True, window=(9, 0)), dict(softcap=2.0), dict(alibi=slopes), dict(sink=sink),
                        dict(window=(9, 5), softcap=3.0, sink=sink), dict(seen=prompts),
                        dict(seen=lambda b, h, i, j: (j <= i) & (j // 20 == i // 20) & (i % 9 > 0), sink=sink)):
            with self.subTest(options=list(options)):
                q, k, v = tensors(seq_q=70, seq_k=90)
                d_o = torch.randn_like(q)
                said = {"causal": False, **options}
                judge = Reference(q, k, v, **said)
                if seen := said.pop("seen", None):
                    said["blocks"] = faw.block_mask(seen, seq_q=70, seq_k=90, device=DEVICE)
                o, lse = faw.forward(q, k, v, **said)
                gradients = faw.backward(q, k, v, o, lse, d_o, **said)[:3]
                self.assertIsNone(judge.wrong_forward(o, lse))
                self.assertIsNone(judge.wrong_backward(d_o, *gradients))
                plain = Reference(q, k, v, causal=said["causal"])
                self.assertIsNotNone(plain.wrong_forward(o, lse))
                self.assertIsNotNone(plain.wrong_backward(d_o, *gradients))

    def test_packed_tensors_are_not_copied(self):
        qkv = torch.randn(2, 50, 3, 4, 64, device=DEVICE, dtype=torch.float16)
        q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
        self.assertIsNone(wrong(faw.attention(q, k, v), reference(q, k, v), torch.float16))

    def for_a_compiler(self):
        """(layout, q, k, v, options) of each extra, small, contiguous and not, and of a V with its own head dim; in the
        layout "expanded" the heads of keys are one."""
        for layout in ("bhnd", "bnhd", "packed"):
            yield layout, *tensors(batch=1, heads=2, kv_heads=1, seq_q=17, seq_k=20, layout=layout, head_dim=192,
                                   head_dim_v=128), {}
        for other, options in (("bnhd", dict(window=(5, 0))), ("packed", dict(softcap=2.0)),
                               ("expanded", dict(alibi=torch.rand(2, device=DEVICE))),
                               ("packed", dict(window=(9, 3), sink=torch.randn(2, device=DEVICE, requires_grad=True)))):
            for layout in ("bhnd", other):
                q, k, v = tensors(batch=1, heads=2, kv_heads=1, seq_q=17, seq_k=20,
                                  layout="bnhd" if layout == "expanded" else layout)
                if layout == "expanded":
                    k, v = (x.detach().expand(-1, 2, -1, -1).requires_grad_() for x in (k, v))
                yield layout, q, k, v, options

    def test_compiled_they_give_the_same(self):
        for layout, q, k, v, options in self.for_a_compiler():
            with self.subTest(layout=layout, options=list(options)):
                torch._dynamo.reset()
                compiled = torch.compile(faw.attention, fullgraph=True, backend="aot_eager")
                inputs = [q, k, v, *([options["sink"]] if "sink" in options else [])]
                of_both = []
                for attention in (faw.attention, compiled):
                    o = attention(q, k, v, **options)
                    of_both.append([o, *torch.autograd.grad(o, inputs, torch.ones_like(o))])
                for plain, other in zip(*of_both):
                    self.assertTrue(torch.equal(plain, other))
                    self.assertEqual(plain.stride(), other.stride())

    def test_operators(self):
        """torch.library's own check: schema, fake kernels, autograd's registration, and what a compiler makes of
        them."""
        operators = torch.ops.flash_attention_workbook
        for layout, *inputs, options in self.for_a_compiler():
            with self.subTest(layout=layout, options=list(options)):
                extras = faw.operators._extras(inputs[0], *map(options.get, ("window", "softcap", "alibi", "sink")))
                torch.library.opcheck(operators.forward.default,
                                      (*inputs, None, None, False, None, None, None, None, None, *extras))
                inputs, extras = ([x.detach() if isinstance(x, torch.Tensor) else x for x in some]
                                  for some in (inputs, extras))
                o, lse = operators.forward(*inputs, None, None, False, None, None, None, None, None, *extras)
                torch.library.opcheck(operators.backward.default,
                                      (o, *inputs, o, lse, None, None, False, None, None, None, *extras))


class FlashAttentionAsks(Checks):
    """What FlashAttention's own tests look for in these options, with problems of our own. In brackets, the names of its
    tests: of packed sequences in tests/test_flash_attn.py and tests/cute/test_flash_attn.py, of block masks in
    tests/cute/test_mask_mod.py."""
    REPETITIONS = 2 if ON_ENGINE else 50

    def packed(self, lengths, heads, kv_heads, head_dim, dtype, factor=1, **options):
        torch.manual_seed(0)
        inputs = [(torch.randn(sum(one), count, head_dim, device=DEVICE, dtype=dtype) * factor).requires_grad_()
                  for one, count in zip((*zip(*lengths), [k for _, k in lengths]), (heads, kv_heads, kv_heads))]
        return lengths, inputs, options

    def seen(self, mask, inputs):
        return seen_by(mask, dict(batch=None, heads=None), *inputs[:2])

    def equal(self, inputs, o):
        """The gradients are the same again and again."""
        d_o = torch.randn_like(o)
        first = torch.autograd.grad(o, inputs, d_o, retain_graph=True)
        for _ in range(self.REPETITIONS):
            again = torch.autograd.grad(o, inputs, d_o, retain_graph=True)
            self.assertTrue(all(map(torch.equal, first, again)))

    def test_packed_lengths_beside_those_of_tiles_and_none(self):
        """[varlen_output, varlen_qkvpacked]"""
        lengths = [(0, 70), (129, 0), (63, 65), (0, 0), (1, 127), (128, 128), (193, 191)]
        for head_dim, options in ((64, dict(causal=True)), (128, dict(window=(40, 0))),
                                  (128, dict(softcap=15.0, window=(-1, 20)))):
            for dtype in (torch.float16, torch.bfloat16):
                with self.subTest(head_dim=head_dim, dtype=dtype, **options):
                    self.check_packed(*self.packed(lengths, 4, 2, head_dim, dtype, **options))

    def test_packed_with_many_more_queries_than_keys_and_the_other_way_round(self):
        """[varlen_causal]: the mask ends with the last query and the last key."""
        for lengths in ([(1, 239), (3, 299)], [(239, 1), (299, 3), (108, 256)]):
            self.check_packed(*self.packed(lengths, 3, 1, 64, torch.bfloat16, causal=True))

    def test_packed_gradients_do_not_overflow(self):
        """[bwd_varlen_overflow]: scores far from 0, and one key for many queries."""
        for causal in (False, True):
            lengths = [(76, 1), (34, 1), (146, 1)]
            self.check_packed(*self.packed(lengths, 5, 5, 64, torch.float16, factor=3, causal=causal))

    def test_packed_gradients_are_the_same_every_time(self):
        """[varlen_deterministic]"""
        lengths, inputs, options = self.packed([(113, 203), (108, 256), (255, 1)], 9, 9, 128, torch.bfloat16,
                                               window=(90, 30))
        begins = [torch.tensor([0, *itertools.accumulate(one)], device=DEVICE, dtype=torch.int32)
                  for one in zip(*lengths)]
        self.equal(inputs, faw.attention_packed(*inputs, *begins, 255, 256, **options))

    def test_block_masks_whose_last_tiles_are_not_whole(self):
        """[q_boundary_masking_block_sparse_bwd, single_doc_bwd_minimal, mask_mod_ima_partial_block]: listed as whole, cut,
        and with one row or key more than a tile."""
        document = torch.arange(500, device=DEVICE) // 150
        for seq_q, seq_k in (200, 200), (129, 129), (255, 255), (384, 300), (257, 257), (333, 444):
            for mask in (lambda b, h, i, j: i // 128 == j // 128, lambda b, h, i, j: document[i] == document[j],
                         lambda b, h, i, j: i + j >= 0):
                inputs = tensors(1, 2, 1, seq_q, seq_k, 128, torch.bfloat16)
                blocks = faw.block_mask(mask, seq_q=seq_q, seq_k=seq_k, device=DEVICE)
                with self.subTest(seq_q=seq_q, seq_k=seq_k):
                    self.check(inputs, dict(blocks=blocks), self.seen(mask, inputs))

    def test_block_masks_of_which_most_rows_have_no_tile(self):
        """[persistent_blocksparse_empty_tiles, block_sparse_sink_all_masked]: zeros, or what the sink leaves."""
        near = lambda b, h, i, j: (i - j).abs() < 64
        none = lambda b, h, i, j: i < 0 * j
        inputs = tensors(2, 8, 1, 700 if ON_ENGINE else 8192, 128, 128)
        for mask in near, none:
            blocks = faw.block_mask(mask, seq_q=inputs[0].shape[2], seq_k=128, device=DEVICE)
            for options in {}, dict(sink=torch.full((8,), 0.5, device=DEVICE)):
                self.check(inputs, dict(options, blocks=blocks), self.seen(mask, inputs))

    def test_block_masks_give_the_same_gradients_every_time(self):
        """[block_sparse_bwd_deterministic, gqa_block_sparse_broadcast_pattern_recompilation, gqa_expand_stride_zero_bug]"""
        for kv_heads in (1, 4):
            inputs = tensors(batch=2, heads=4, kv_heads=kv_heads, seq_q=383, seq_k=400, head_dim=128)
            blocks = faw.block_mask(lambda b, h, i, j: (j <= i) & (i - j < 256), seq_q=383, seq_k=400, device=DEVICE)
            self.equal(inputs, faw.attention(*inputs, blocks=blocks))


class Refusals(Refused):
    def test_what_is_wrong_in_itself(self):
        q, k, v = (x.detach() for x in tensors())
        numbers = torch.ones(3, device=DEVICE)
        for text, options in [
                ("^a side of the window is -2: it must be a number of keys, or -1 for all$", dict(window=(-2, 0))),
                ("^window is 5: it must be a pair .left, right. of numbers of keys, -1 for all$", dict(window=5)),
                ("^softcap is 0: it must be a number from 0.1 to 1000, or None$", dict(softcap=0)),
                ("^softcap is 1000000.0: it must be a number from 0.1 to 1000, or None$", dict(softcap=1e6)),
                ("^softcap and alibi are both given: a problem has one score function$",
                 dict(softcap=1.0, alibi=torch.ones(4, device=DEVICE))),
                ("^alibi has shape .3.: it must be .heads. or .batch, heads., and there are 4 heads$", dict(alibi=numbers)),
                ("^alibi has shape .3, 4, 1.: it must be .heads. or .batch, heads., and there are 4 heads$",
                 dict(alibi=torch.ones(3, 4, 1, device=DEVICE))),
                (r"^alibi is torch.float32 .3, 4. on .*: it must be torch.float32 .2, 4., contiguous",
                 dict(alibi=torch.ones(3, 4, device=DEVICE))),
                (r"^sink is torch.float32 .3. on .*: it must be torch.float32 .4., contiguous", dict(sink=numbers)),
                ("^12_variants: the head dim of V is 128 beside 64: supported are the same as of Q and K, and 128 "
                 "beside 192$", dict(v=torch.cat([v, v], -1))),
                (r"^v has shape .2, 2, 90, 0.: its head_dim must be at least 1$", dict(v=v[..., :0])),
                ("^05_online_softmax: it takes no V with a head_dim of its own .32 beside 64.$", dict(v=v[..., :32].contiguous(), chapter="05_online_softmax")),
                ("^05_online_softmax: it takes no window; chapters that take this problem: 12_variants$",
                 dict(window=(1, 1), chapter="05_online_softmax")),
                ("^05_online_softmax: it takes no window and no sink; chapters that take this problem: 12_variants$",
                 dict(window=(1, 1), sink=torch.ones(4, device=DEVICE), chapter="05_online_softmax")),
                ("^09_rope_fused: it takes no window: rotate Q and K before the call, and give no rope$",
                 dict(window=(1, 1), rope=faw.rope_tables(q, k)))]:
            self.refused(text, **{"q": q, "k": k, "v": v, **options})

    def test_what_is_wrong_about_packed_sequences(self):
        q = torch.zeros(20, 2, 64, device=DEVICE, dtype=torch.float16)
        begin = torch.tensor([0, 5, 20], device=DEVICE, dtype=torch.int32)
        for text, other in [
                (r"^q is of shape .1, 20, 2, 64.: it must be .total, heads, head_dim.$", dict(q=q[None])),
                (r"^q is a sparse or nested tensor: it must be an ordinary one, .total, heads, head_dim.$",
                 dict(q=q.to_sparse())),
                (r"^k has shape .20, 2, 32. and q .20, 2, 64.: head_dim must be equal$",
                 dict(k=q[..., :32].contiguous(), v=q[..., :32].contiguous())),
                (r"^v has shape .19, 2, 64.: it must be .20, 2, 64.$", dict(v=q[1:])),
                (r"^v has shape .20, 2, 0.: its head_dim must be at least 1$", dict(v=q[..., :0])),
                (r"^v has strides .256, 128, 2.: the last must be 1: pass v.contiguous..$",
                 dict(v=torch.cat([q, q], -1)[..., ::2])),
                ("^12_variants: head_dim is 60: supported are the multiples of 8 up to 128$",
                 dict.fromkeys("qkv", q[..., :60].contiguous())),
                ("^cu_seqlens_q is torch.int64: it must be torch.int32$", dict(cu_seqlens_q=begin.long())),
                (r"^cu_seqlens_k is on meta and q is on .*: all tensors must be on one device$",
                 dict(cu_seqlens_k=begin.to("meta"))),
                ("^cu_seqlens_q has 3 numbers and cu_seqlens_k has 2: both must have one more than there are sequences$",
                 dict(cu_seqlens_k=begin[:2])),
                (r"^cu_seqlens_q has shape .3, 1.: it must be .sequences . 1., contiguous$",
                 dict(cu_seqlens_q=begin[:, None])),
                (r"^cu_seqlens_q has shape .0.: it must be .sequences . 1., contiguous$",
                 dict(cu_seqlens_q=begin[:0], alibi=torch.ones(2, device=DEVICE))),
                ("^cu_seqlens_q is a list: it must be a torch.Tensor$", dict(cu_seqlens_q=[0, 5, 20])),
                ("^max_seqlen_q is -1: it must be the number of tokens of the longest sequence$",
                 dict(max_seqlen_q=-1)),
                ("^softcap and alibi are both given", dict(softcap=1.0, alibi=torch.ones(2, device=DEVICE))),
                ("^12_variants: the problem has a V with its own head dim and packed sequences: supported is one of them "
                 "alone$", dict(q=torch.cat([q] * 3, -1), k=torch.cat([q] * 3, -1), v=torch.cat([q] * 2, -1))),
                ("^12_variants: head_dim is 192: above 128 it takes no packed sequences$",
                 dict.fromkeys("qkv", torch.cat([q] * 3, -1)))]:
            with self.subTest(text):
                self.refused(text, call=faw.attention_packed,
                             **{**dict(q=q, k=q, v=q, cu_seqlens_q=begin, cu_seqlens_k=begin, max_seqlen_q=15,
                                       max_seqlen_k=15), **other})

    def test_what_is_wrong_about_a_block_mask(self):
        q, k, v = (x.detach() for x in tensors(seq_q=150, seq_k=200))
        mask = lambda b, h, i, j: j <= i
        blocks = faw.block_mask(mask, seq_q=150, seq_k=200, device=DEVICE)
        numbers = torch.ones(2, 2, dtype=torch.int32, device=DEVICE)
        beside = "^12_variants: beside blocks it takes no {}: supported there are causal and a sink$"
        for text, other in [
                ("^blocks is of 100 queries, and there are 150$", dict(blocks=blocks._replace(seq_q=100))),
                ("^blocks is of 100 keys, and there are 200$", dict(blocks=blocks._replace(seq_k=100))),
                (r"^blocks is of 1 queries, and there are 150: block_mask.mask, seq_q=150. expands it$",
                 dict(blocks=blocks._replace(seq_q=1))),
                ("^blocks is a (Fake)?Tensor: it must be a BlockMask, as block_mask.mask. makes it$", dict(blocks=q)),
                (r"^blocks.begin is torch.int64 .1, 1, 6. on .*: it must be torch.int32 .1, 1, 6., contiguous",
                 dict(blocks=blocks._replace(begin=blocks.begin.long()))),
                (r"^blocks.tiles is torch.int32 .2, 2. on .*: it must be torch.int32 .2, 2, 2., contiguous",
                 dict(blocks=blocks._replace(tiles=numbers))),
                ("^blocks.begin is a NoneType: it must be a torch.Tensor$",
                 dict(blocks=blocks._replace(begin=None, tiles=None, bits=None))),
                ("^blocks.bits is a NoneType: it must be a torch.Tensor$", dict(blocks=blocks._replace(bits=None))),
                ("^blocks lists 9 tiles: there are 4$",
                 dict(blocks=blocks._replace(tiles=blocks.tiles[:, :1].repeat(1, 9, 1)))),
                (r"^blocks.bits is on meta and q is on .*: all tensors must be on one device$",
                 dict(blocks=blocks._replace(bits=blocks.bits.to("meta")))),
                ("^blocks has masks of 3 heads: it must have 1 or 4$",
                 dict(blocks=faw.block_mask(mask, None, 3, 150, 200, DEVICE))),
                (beside.format("window"), dict(blocks=blocks, window=(9, 0))),
                (beside.format("softcap"), dict(blocks=blocks, softcap=2.0)),
                (beside.format("alibi"), dict(blocks=blocks, alibi=torch.ones(4, device=DEVICE))),
                ("^05_online_softmax: it takes no blocks; chapters that take this problem: 12_variants$",
                 dict(blocks=blocks, chapter="05_online_softmax"))]:
            with self.subTest(text):
                self.refused(text, **{"q": q, "k": k, "v": v, **other})
        for text, arguments in [
                ("^mask is a list: it must be a function of .b, h, i, j. or a torch.Tensor$", ([[True]],)),
                (r"^mask is torch.float32 .2, 2.: it must be torch.bool, .seq_q, seq_k. or with axes",
                 (torch.ones(2, 2),)),
                ("^mask is a sparse or nested tensor: it must be an ordinary one$", (torch.ones(2, 2).bool().to_sparse(),)),
                (r"^mask has shape .0, 3, 3.: its axes of heads and batches must be at least 1$",
                 (torch.ones(0, 3, 3, dtype=torch.bool),)),
                (r"^mask has shape .0, 1, 3, 3.: its axes of heads and batches must be at least 1$",
                 (torch.ones(0, 1, 3, 3, dtype=torch.bool),)),
                ("^mask is a tensor, which has its own batch, heads and device: give none$",
                 (torch.ones(2, 2, dtype=torch.bool), 1)),
                (r"^mask has shape .2, 3. and seq_k is 4: there it must have 1 or 4$",
                 (torch.ones(2, 3, dtype=torch.bool), None, None, 2, 4)),
                ("^seq_q is -1: it must be a whole number from 0 to 2147483647$",
                 (torch.ones(1, 3, dtype=torch.bool), None, None, -1)),
                ("^seq_q is None: it must be a whole number from 0 to 2147483647$", (mask,)),
                ("^heads is 0: it must be a whole number from 1 to 2147483647, or None$", (mask, 1, 0, 4, 4)),
                ("^batch is 1000000000000: it must be a whole number from 1 to 2147483647, or None$", (mask, 10**12, 1, 4, 4)),
                (r"^mask.b, h, i, j. is of shape .5, 3.: it must broadcast as i .3, 1. and j .1, 5. do$",
                 (lambda b, h, i, j: (j <= i).T, 1, 1, 3, 5)),
                (r"^mask.b, h, i, j. is a sparse or nested tensor: it must be an ordinary one$",
                 (lambda b, h, i, j: (j <= i).to_sparse(), 1, 1, 3, 5)),
                (r"^mask.b, h, i, j. is on meta: it must be on (cpu|cuda:0), where i and j are$",
                 (lambda b, h, i, j: (j <= i).expand(3, 5).to("meta"), 1, 1, 3, 5)),
                (r"^mask.b, h, i, j. is torch.int64: it must be a tensor of torch.bool$",
                 (lambda b, h, i, j: i - j, 1, 1, 4, 4)),
                (r"^mask.b, h, i, j. is of shape .2, 4, 4.: it must broadcast as i .4, 1. and j .1, 4. do$",
                 (lambda b, h, i, j: (i >= j).expand(2, 4, 4), 1, 1, 4, 4))]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                faw.block_mask(*arguments)

    def test_lists_that_only_the_device_can_know(self):
        """The engine's are the host's; a GPU's become NaN."""
        q = torch.randn(1, 2, 300, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
        blocks = faw.block_mask(lambda b, h, i, j: j <= i, seq_q=300, seq_k=300, device=DEVICE)

        def changed(name, *place):
            *place, value = place
            tensor = getattr(blocks, name).clone()
            tensor[tuple(place)] = value
            return blocks._replace(**{name: tensor})

        for text, wrong_one, of_backward in [
                ("tile 2, of row 1 of mask 0, is 0 and stands behind 0: they must rise", changed("tiles", 0, 2, 0, 0),
                 False),
                ("tile 5, of row 2 of mask 0, is 3: it must be from 0 to 2", changed("tiles", 0, 5, 0, 3), False),
                ("tile 0, of row 0 of mask 0, has the bits of number 9: it must be from -1 to 2",
                 changed("tiles", 0, 0, 1, 9), False),
                ("block_begin of row 3 of mask 0 is 7: it must be from 3 to 6", changed("begin", 0, 0, 3, 7), False),
                ("the rows have 5 tiles and 6 are listed: it must be as many", changed("begin", 0, 0, 3, 5), False),
                ("tile 1, of column 0 of mask 0, is 1: that row does not have it", changed("tiles", 1, 1, 1, 0), True),
                ("of cut tile 1, query 0 sees key 0, and the keys' bits say otherwise", changed("bits", 1, 1, 0, 0, 0),
                 True)]:
            with self.subTest(text):
                gradient = lambda: torch.autograd.grad(o, q, torch.ones_like(o))[0]
                if not ON_ENGINE:
                    o = faw.attention(q, q, q, blocks=wrong_one)
                    self.assertTrue(of_backward or o.isnan().all())
                    self.assertTrue(gradient().isnan().all())
                elif of_backward:
                    o = faw.attention(q, q, q, blocks=wrong_one)
                    self.assertRaisesRegex(ValueError, text, gradient)
                else:
                    self.assertRaisesRegex(ValueError, text, lambda: faw.attention(q, q, q, blocks=wrong_one))

    def test_cu_seqlens_that_only_the_device_can_know(self):
        """The engine's are the host's; a GPU's become NaN."""
        q = torch.randn(20, 2, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
        begin = torch.tensor([0, 5, 20], device=DEVICE, dtype=torch.int32)
        for text, wrong_one in [(r"cu_seqlens_k.1. is 25 and cu_seqlens_k.2. is 20: they must not fall", [0, 25, 20]),
                                (r"cu_seqlens_k.0. is 1: it must be 0", [1, 5, 20]),
                                (r"cu_seqlens_k.2. is 21: it must be at most total_k, 20", [0, 5, 21])]:
            wrong_one = torch.tensor(wrong_one, device=DEVICE, dtype=torch.int32)
            call = lambda: faw.attention_packed(q, q, q, begin, wrong_one, 15, 15)
            if ON_ENGINE:
                self.assertRaisesRegex(ValueError, text, call)
            else:
                o = call()
                self.assertTrue(o.isnan().all())
                self.assertTrue(torch.autograd.grad(o, q, torch.ones_like(o))[0].isnan().all())

    def test_lists_where_nothing_is_computed(self):
        """Without a query, a key or a sequence no kernel looks at them: PyTorch's operations do, on the device."""
        row = torch.randn(9, 2, 64, device=DEVICE, dtype=torch.float16)
        sink = torch.ones(2, device=DEVICE, requires_grad=True)
        right = [0, 0, 0, 0]
        packed = [(text, len_q, len_k, *[torch.tensor(x, device=DEVICE, dtype=torch.int32) for x in begins])
                  for text, len_q, len_k, begins in [
                      (r"cu_seqlens_k.3. is 9: it must be at most total_k, 0", 9, 0, ([0, 5, 6, 9], [0, 5, 6, 9])),
                      (r"cu_seqlens_q.1. is 6 and cu_seqlens_q.2. is 5: they must not fall", 9, 0, ([0, 6, 5, 9], right)),
                      (r"cu_seqlens_q.3. is 99: it must be at most total_q, 9", 9, 0, ([0, 5, 6, 99], right)),
                      (r"cu_seqlens_q.3. is 9: it must be at most total_q, 0", 0, 9, ([0, 5, 6, 9], right)),
                      (r"cu_seqlens_q.0. is 7: it must be 0", 9, 9, ([7], [7])),
                      (r"cu_seqlens_k.0. is -1: it must be 0", 9, 9, ([0], [-1])),
                      (None, 9, 0, ([0, 5, 6, 9], right)), (None, 0, 9, (right, [0, 5, 6, 9])), (None, 9, 9, ([0], [0]))]]
        blocks = {sizes: faw.block_mask(lambda b, h, i, j: j <= i, seq_q=sizes[0], seq_k=sizes[1], device=DEVICE)
                  for sizes in ((300, 0), (0, 300))}
        off = "^blocks.begin has {} in it: without a query or a key there are no tiles, and all must be 0$"
        for text, len_q, len_k, *begins in [
                *packed, *[(text, *sizes, mask._replace(begin=mask.begin + add))
                           for sizes, mask in blocks.items() for text, add in ((None, 0), (off.format(5), 5))]]:
            with self.subTest(text, len_q=len_q, len_k=len_k):
                inputs = [x.detach().clone().requires_grad_() for x in (row[:len_q], row[:len_k], row[:len_k])]
                if len(begins) == 2:
                    call = lambda: faw.attention_packed(*inputs, *begins, 9, 9, sink=sink)
                else:
                    inputs = [torch.zeros(1, 2, n, 64, device=DEVICE, dtype=torch.float16, requires_grad=True)
                              for n in (len_q, len_k, len_k)]
                    call = lambda: faw.attention(*inputs, sink=sink, blocks=begins[0])
                if text and ON_ENGINE:
                    self.assertRaisesRegex(ValueError, text, call)
                    continue
                o = call()
                for result in (o, *torch.autograd.grad(o, [*inputs, sink], torch.ones_like(o))):
                    self.assertTrue(result.isnan().all() if text else not result.any())


if __name__ == "__main__":
    unittest.main()
