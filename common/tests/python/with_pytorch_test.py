"""The Python module where its library's kernels run, a GPU or the engine: values and gradients against fp64,
torch.compile, CUDA graphs, autograd, and every refusal.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants
one.
"""

import functools
import itertools
import os
import sys
import unittest
import unittest.mock

try:
    import torch
    import torch._dynamo.compiled_autograd
    import torch.utils.checkpoint
    import torch.utils.flop_counter
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw
from flash_attention_workbook.library import DEVICE

from refusals import ON_DEVICE, Refused
from tools.measuring.peers_check import OfEightBits, Reference, in_eight_bits

ON_ENGINE = DEVICE == "cpu"
if not ON_ENGINE and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)
needs_a_gpu = unittest.skipIf(ON_ENGINE, "the engine has no streams")


def with_ability(ability):
    """(chapter, rung) of all that have it; on the engine, which other tests put through all, the last of few
    chapters."""
    chapters = {chapter: [rung for rung, has in rungs.items() if has[ability] and not has["eight_bits"]]
                for chapter, rungs in faw.chapters().items()}
    few = ("04_fusion", "05_online_softmax", "08_causal_earlystop", "09_rope_fused") if ON_ENGINE else chapters
    return [(chapter, rung) for chapter in few for rung in (chapters[chapter][-1:] if ON_ENGINE else chapters[chapter])]


FORWARDS, BACKWARDS = with_ability("forward"), with_ability("backward")


def rope_of(chapter, q, k):
    """The tables, if the chapter rotates."""
    return faw.rope_tables(q, k) if any(rung["rope"] for rung in faw.chapters()[chapter].values()) else None


def tensors(batch=2, heads=4, kv_heads=4, seq_q=100, seq_k=100, head_dim=64, dtype=torch.float16, gradients=False):
    torch.manual_seed(1)
    shapes = [(batch, heads, seq_q, head_dim)] + 2 * [(batch, kv_heads, seq_k, head_dim)]
    return [torch.randn(shape, device=DEVICE, dtype=dtype).mul_(1.5).requires_grad_(gradients) for shape in shapes]


SHAPES = [
    dict(),
    dict(heads=6, kv_heads=2, seq_q=70, seq_k=131),
    dict(heads=4, kv_heads=1, seq_q=131, seq_k=70, head_dim=128),
    dict(heads=4, kv_heads=1, seq_q=70, seq_k=131, head_dim=72),
    dict(batch=1, heads=1, kv_heads=1, seq_q=1, seq_k=257),
]
if ON_ENGINE:
    SHAPES = [dict(batch=1, heads=2, kv_heads=1, seq_q=40, seq_k=70)]


class Values(unittest.TestCase):
    def test_agree_with_fp64(self):
        for shape, dtype, causal in itertools.product(SHAPES, (torch.float16, torch.bfloat16), (False, True)):
            q, k, v = tensors(**shape, dtype=dtype)
            references = {rope: Reference(q, k, v, causal, rope=rope) for rope in (False, True)}
            for chapter, rung in FORWARDS:
                with self.subTest(chapter=chapter, rung=rung, causal=causal, dtype=dtype, **shape):
                    rope = rope_of(chapter, q, k)
                    o, lse = faw.forward(q, k, v, causal, chapter=chapter, rung=rung, rope=rope)
                    self.assertIsNone(references[rope is not None].wrong_forward(o, lse))
                    self.assertEqual(lse is not None, faw.chapters()[chapter][rung]["lse"])

    def test_the_check_itself_notices(self):
        q, k, v = tensors(seq_q=70)
        reference = Reference(q, k, v, True)
        for wrong in (faw.forward(q, k, v, False), faw.forward(q, k, v, True, scale=0.2)):
            self.assertRegex(reference.wrong_forward(*wrong), "^o differs")
        o, lse = faw.forward(q, k, v, True)
        self.assertRegex(reference.wrong_forward(o, lse + 0.01), "^lse differs")
        o[0, 0, 0, 0] = float("nan")
        self.assertRegex(reference.wrong_forward(o, lse), "^o is not finite")

    def test_a_scale_and_rows_that_see_no_key(self):
        q, k, v = tensors(seq_q=90, seq_k=40)
        reference = Reference(q, k, v, True, scale=0.3)
        o, lse = faw.forward(q, k, v, True, scale=0.3, chapter="05_online_softmax")
        self.assertIsNone(reference.wrong_forward(o, lse))
        self.assertEqual(o[:, :, :50].abs().max().item(), 0)
        self.assertTrue((lse[:, :, :50] == float("-inf")).all())


    @needs_a_gpu
    def test_other_streams(self):
        q, k, v = tensors()
        expected = faw.attention(q, k, v)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            o = faw.attention(q, k, v)
        stream.synchronize()
        self.assertTrue(torch.equal(o, expected))

    @needs_a_gpu
    def test_cuda_graphs(self):
        for chapter, rung in FORWARDS:
            with self.subTest(chapter=chapter, rung=rung):
                q, k, v = tensors()
                attention = functools.partial(faw.attention, chapter=chapter, rung=rung, rope=rope_of(chapter, q, k))
                attention(q, k, v, True)
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    o = attention(q, k, v, True)
                q.copy_(torch.randn_like(q))
                o.fill_(float("nan"))
                graph.replay()
                self.assertTrue(torch.equal(o, attention(q, k, v, True)))

    @needs_a_gpu
    def test_a_cuda_graph_of_both_directions(self):
        inputs = tensors(batch=1, gradients=True)
        d_o = torch.randn_like(inputs[0])

        def step():
            return torch.autograd.grad(faw.attention(*inputs, causal=True), inputs, d_o)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        with torch.no_grad():
            inputs[0].copy_(torch.randn_like(inputs[0]))
        for gradient in captured:
            gradient.fill_(float("nan"))
        graph.replay()
        for got, expected in zip(captured, step()):
            self.assertTrue(torch.equal(got, expected))


def scales_of_tiles(x, about):
    """One for each 128 rows of a head, any numbers near this one."""
    shape = *x.shape[:2], -(-x.shape[2] // 128)
    return about * (0.3 + torch.rand(shape, device=DEVICE))


def times_scales(x, scales):
    """In fp64: a scale, or one for each 128 rows of a head."""
    wide = scales.double() if scales.dim() < 3 else scales.double().repeat_interleave(128, 2)[:, :, :x.shape[2], None]
    return x.double() * wide


@unittest.skipIf(not ON_ENGINE and torch.cuda.get_device_capability() != (9, 0), "needs compute capability 9.0")
class EightBits(unittest.TestCase):
    def test_from_sixteen(self):
        for dtype, shape in itertools.product((torch.float16, torch.bfloat16), SHAPES):
            with self.subTest(dtype=dtype, **shape):
                q, k, v = tensors(**shape, dtype=dtype)
                reference = OfEightBits(q, k, v, False)
                o = faw.attention_fp8(q, k, v)
                self.assertIsNone(reference.wrong_forward(o))
                self.assertGreater(reference.norm, 0.01)
                self.assertEqual((o.dtype, o.shape), (dtype, q.shape))

    def test_the_check_itself_notices(self):
        q, k, v = tensors(batch=1, seq_q=70)
        reference = OfEightBits(q, k, v, True)
        self.assertIsNone(reference.wrong_forward(faw.forward(q, k, v, True)[0]))
        for wrong in (faw.attention_fp8(q, k, v), faw.attention_fp8(q, k, v, True, scale=0.15),
                      1.15 * faw.attention_fp8(q, k, v, True)):
            self.assertRegex(reference.wrong_forward(wrong), "^o differs by .* in the norm where .* is allowed$")

    def compared_from_e4m3(self, shape, causal, of_tiles, **options):
        """The reference, of the values that the tensors stand for, once o has been compared."""
        q, k, v = ((x8, scales_of_tiles(x8, scale) if of_tiles else scale)
                   for x8, scale in map(in_eight_bits, tensors(**shape)))
        reference = OfEightBits(*(times_scales(*x) for x in (q, k, v)), causal)
        o = faw.attention_fp8(q[0], k[0], v[0], causal, q_scale=q[1], k_scale=k[1], v_scale=v[1], **options)
        self.assertEqual((o.dtype, o.shape), (options.get("out_dtype", torch.bfloat16), q[0].shape))
        reference.wrong_forward(o)
        return reference

    def test_from_e4m3(self):
        """Then nothing is rounded but the weights, and o."""
        for shape, causal, of_tiles in itertools.product(
                (dict(batch=1, heads=4, kv_heads=2, seq_q=70, seq_k=300),
                 dict(batch=2, heads=2, kv_heads=1, seq_q=150, seq_k=131, head_dim=128),
                 dict(batch=1, heads=1, kv_heads=1, seq_q=70, seq_k=140, head_dim=256)), (False, True), (False, True)):
            with self.subTest(causal=causal, of_tiles=of_tiles, **shape):
                self.assertLess(self.compared_from_e4m3(shape, causal, of_tiles).norm, 0.03)
        compared = self.compared_from_e4m3(shape, True, False, out_dtype=torch.float16, rung="followed")
        self.assertLess(compared.norm, 0.03)

    def test_the_heaviest_of_the_first_keys_is_exact(self):
        """m follows the row maximum there: O is no worse than if P alone were rounded, its largest being 1."""
        for head_dim, seq_k in ((64, 384), (128, 256), (256, 256)):
            with self.subTest(head_dim=head_dim):
                shape = dict(batch=1, heads=2, kv_heads=1, seq_q=64, seq_k=seq_k, head_dim=head_dim)
                error, allowed = self.compared_from_e4m3(shape, False, False, out_dtype=torch.float16).worst
                self.assertLess(error, allowed / 2)

    def test_scales_are_numbers_or_tensors(self):
        (q, a), (k, b), (v, c) = map(in_eight_bits, tensors(batch=1))
        expected = faw.attention_fp8(q, k, v, q_scale=a, k_scale=b, v_scale=c)
        several = torch.full((1, 4, 1), c.item(), device=DEVICE)
        for q_scale, k_scale, v_scale in ((a.item(), b[None], c.reshape(1, 1)), (a, b.item(), several)):
            o = faw.attention_fp8(q, k, v, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale)
            self.assertTrue(torch.equal(o, expected))

    def test_empty(self):
        for shape in (dict(batch=0), dict(seq_q=0), dict(seq_k=0), dict(heads=0, kv_heads=0)):
            q, k, v = (x.to(torch.float8_e4m3fn) for x in tensors(**{"batch": 1, **shape}))
            o = faw.attention_fp8(q, k, v, q_scale=1.0, k_scale=1.0, v_scale=1.0)
            self.assertEqual((o.shape, o.count_nonzero().item()), (q.shape, 0))

    def test_inside_pytorch(self):
        (q, a), (k, b), (v, c) = map(in_eight_bits, tensors(batch=1, heads=2, kv_heads=1, seq_q=40, seq_k=70))
        torch.library.opcheck(  # but for test_schema, which compares inputs by operations that PyTorch has none of for e4m3
            torch.ops.flash_attention_workbook.forward_e4m3.default,
            (q, k, v, *(x.reshape(1) for x in (a, b, c)), True, None, "13_fp8", None, torch.float16),
            test_utils=("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"))
        torch._dynamo.reset()

        def function(q, k, v, k_scale):
            return faw.attention_fp8(q, k, v, True, q_scale=a, k_scale=k_scale, v_scale=0.01)

        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(q, k, v, b), function(q, k, v, b)))

    @needs_a_gpu
    def test_a_cuda_graph(self):
        (q, a), (k, b), (v, c) = map(in_eight_bits, tensors())
        call = functools.partial(faw.attention_fp8, q, k, v, True, q_scale=a, k_scale=0.01, v_scale=c)
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            o = call()
        c.mul_(2)
        graph.replay()
        self.assertTrue(torch.equal(o, call()))

    @needs_a_gpu
    def test_no_scale_makes_nan(self):
        (q, a), (k, b), (v, c) = map(in_eight_bits, tensors())
        for scales in ((-a, b, c), (a, 0 * b, c), (a, b, c * float("nan"))):
            self.assertTrue(faw.attention_fp8(q, k, v, q_scale=scales[0], k_scale=scales[1],
                                              v_scale=scales[2]).isnan().all())


class Refusals(Refused):
    def test_tensors(self):
        q, k, v = tensors()
        if not ON_ENGINE:
            self.refused("^q is on cpu: it must be a CUDA tensor$", *(x.cpu() for x in (q, k, v)), call=faw.forward,
                         values=True)
            self.refused("^v is on cpu: it must be a CUDA tensor$", q, k, v.cpu(), values=True)
        self.refused("^v is on meta and q is on (cpu|cuda:0): all tensors must be on one device$", q, k, v.to("meta"))
        self.refused(r"^k has strides .25600, 6400, 1, 100.: the last must be 1: pass k.contiguous\(\)$", q, k.transpose(2, 3).contiguous().transpose(2, 3), v)
        self.refused("^05_online_softmax: it takes only contiguous tensors; chapters that take this problem: 12_variants$",
                     q, k.transpose(1, 2).contiguous().transpose(1, 2), v, chapter="05_online_softmax")
        self.refused("^q is torch.float32: supported are torch.float16 and torch.bfloat16$", q.float(), k, v)
        self.refused("^v is torch.bfloat16 and q is torch.float16: all tensors must have one dtype$", q, k,
                     v.bfloat16())
        self.refused("^v is a NoneType: it must be a torch.Tensor$", q, k, None)
        self.refused("^q has shape .*: it must be .batch, heads, sequence, head_dim.$", q[0], k, v)
        self.refused("^k has shape .*: batch and head_dim must be equal$", q, k[:1], v[:1])
        self.refused("^v has shape .*: it must be", q, k, v[:, :, :50].contiguous())
        self.refused("^q has 4 heads and k 3: those of q must be a multiple of those of k$", q, k[:, :3].contiguous(),
                     v[:, :3].contiguous())
        self.refused("^q has 4 heads and k 0: those of q must be a multiple of those of k$", q, k[:, :0], v[:, :0])
        self.refused("^head_dim is 0: it must be at least 1$", q[..., :0], k[..., :0], v[..., :0])
        self.refused("^scale is nan: it must be finite$", q[:0], k[:0], v[:0], scale=float("nan"))
        memory = torch.empty(q.numel() + 1, dtype=q.dtype, device=DEVICE)
        self.refused("^05_online_softmax: it takes only rows that begin at multiples of 16 bytes; chapters that take this "
                     "problem: 12_variants$", memory[1:].view(q.shape), k, v, chapter="05_online_softmax")

    def test_what_is_no_tensor(self):
        o, lse = faw.forward(*tensors())
        q, k, v = tensors()
        calls = [(faw.attention, (q, k, v), "qkv", {}),
                 (faw.attention, (q, k, v), "qkv", dict(chapter="05_online_softmax")),
                 (faw.forward, (q, k, v), "qkv", {}),
                 (faw.backward, (q, k, v, o, lse, o), ["q", "k", "v", "o", "lse", "d_o"], {}),
                 (faw.sdpa, (q, k, v), ["query", "key", "value"], {}), (faw.rope_tables, (q, k), "qk", {})]
        for (call, inputs, names, options), wrong in itertools.product(calls, (None, 1, "x", [q])):
            for i, name in enumerate(names):
                with self.subTest(call=call.__name__, argument=name, is_a=type(wrong).__name__):
                    self.refused(f"^{name} is a {type(wrong).__name__}: it must be a torch.Tensor$",
                                 *inputs[:i], wrong, *inputs[i + 1:], call=call, **options)

    def test_tensors_of_other_layouts(self):
        q, k, v = tensors()
        for other in (q.to_sparse(), torch.nested.nested_tensor([q[0], q[0]]),
                      torch.nested.nested_tensor([q[0, 0], q[0, 0, :5]], layout=torch.jagged),
                      torch.quantize_per_tensor(q.float(), 0.1, 0, torch.qint8)):
            self.refused("^k is a sparse, nested or quantized tensor: it must be an ordinary one$", q, other, v)
            for i, name in enumerate(("query", "key", "value")):
                inputs = [q, k, v]
                inputs[i] = other
                self.refused(f"^{name} is a sparse, nested or quantized tensor: it must be", *inputs, call=faw.sdpa)

    def test_options_of_the_backward(self):
        q, k, v = tensors()
        o, lse = faw.forward(q, k, v)
        self.refused("^scale is 'x': it must be a number$", q, k, v, o, lse, o, scale="x", call=faw.backward)
        self.refused("^causal is 'x': it must be True or False$", q, k, v, o, lse, o, causal="x", call=faw.backward)

    def test_gradients_of_the_forward_mode(self):
        text = "^{} has a tangent: gradients are of the reverse mode alone, as torch.autograd.grad takes them$"
        inputs = tensors(seq_q=20, seq_k=20)
        for call, names in ((faw.attention, "qkv"), (faw.sdpa, ("query", "key", "value")),
                            (lambda *some: faw.forward(*some)[0], "qkv")):
            self.refused(text.format(names[0]), call, tuple(inputs), tuple(inputs), call=torch.func.jvp)
            for i, name in enumerate(names):
                for wanted in (False, True):  # gradients of the reverse mode, too
                    with torch.autograd.forward_ad.dual_level():
                        some = [x.clone().requires_grad_(wanted) for x in inputs]
                        some[i] = torch.autograd.forward_ad.make_dual(some[i], inputs[i])
                        self.refused(text.format(name), *some, call=call, values=True)

    def test_options(self):
        q, k, v = tensors()
        self.refused("^chapter is 'none': there are 01_naive, ", q, k, v, chapter="none")
        self.refused("^chapter is 5: it must be a name$", q, k, v, chapter=5)
        self.refused("^rung is 'x': 05_online_softmax has online, tiles$", q, k, v, chapter="05_online_softmax",
                     rung="x")
        self.refused("^rung is 'x' and no chapter is given", q, k, v, rung="x")
        self.refused("^scale is 'x': it must be a number$", q, k, v, scale="x")
        self.refused("^scale is inf: it must be finite$", q, k, v, scale=float("inf"))
        self.refused("^scale is inf: it must be finite$", q, k, v, scale=10**400)
        self.refused("^scale is 0: it must be another number, or None for 1 / sqrt.D.$", q, k, v, scale=0)
        self.refused("^causal is 'False': it must be True or False$", q, k, v, causal="False")
        self.refused("^causal is (tensor|FakeTensor)", q, k, v, causal=torch.zeros(2))

    def test_names_where_gradients_are_wanted(self):
        q, k, v = tensors(gradients=True)
        self.refused("^chapter is 'none': there are 01_naive, ", q, k, v, chapter="none")
        self.refused("^rung is 'x': 06_flashattn2_fwd has mma, ", q, k, v, chapter="06_flashattn2_fwd", rung="x")
        self.refused("^rung is 'final' and no chapter is given", q, k, v, rung="final")
        self.refused("^chapter is 'none': there are 01_naive, ", q, k, v, backward_chapter="none")
        self.refused("^rung is 'x' and no chapter is given", q, k, v, backward_rung="x")

    def test_tables_of_rope(self):
        q, k, v = tensors(seq_q=70)
        cos, sin = faw.rope_tables(q, k)
        self.assertEqual(cos.shape, (100, 32))
        rotating = [chapter for chapter, rungs in faw.chapters().items()
                    if any(rung["rope"] for rung in rungs.values())]
        self.refused("^rope is not a pair of tensors", q, k, v, rope=cos)
        self.refused(f"^rope's cos is torch.float32 .70, 32. on {ON_DEVICE}: it must be torch.float32 .100, 32., "
                     "contiguous", q, k,
                     v, rope=(cos[:70], sin))
        self.refused("^rope's sin is torch.float16", q, k, v, rope=(cos, sin.half()))
        self.refused("^05_online_softmax does not rotate q and k: pass no rope, or name a chapter that does: 09_rope_fused$", q, k, v, rope=(cos, sin),
                     chapter="05_online_softmax")
        for chapter in rotating:
            self.refused(f"^{chapter} rotates q and k: pass rope, such as", q, k, v, chapter=chapter)
        views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
        self.refused("^09_rope_fused: it takes no window: rotate Q and K before the call, and give no rope$", *views, rope=(cos, sin), window=(3, 0))
        for base in (0, -1.0, float("nan"), "x"):
            self.refused("^base is .*: it must be a number above 0$", q, k, base, call=faw.rope_tables)
        operator = torch.ops.flash_attention_workbook.forward.default
        self.refused("^rope's cos is given alone: pass both tables$", q, k, v, cos, None, False, *5 * [None],
                     call=operator)

    def test_what_a_chapter_cannot_do(self):
        q, k, v = tensors(head_dim=60)
        for inputs in (q, k, v), tensors(head_dim=264, gradients=True):
            self.refused(f"^no chapter takes it: head_dim is {inputs[0].shape[-1]}: supported are the multiples of 8 up to "
                         "256$", *inputs)
        self.refused("^05_online_softmax: head_dim is 60: supported are", q, k, v, chapter="05_online_softmax")
        q, k, v = tensors(batch=1, heads=1, kv_heads=1, seq_q=1, seq_k=10**6)
        self.refused("^04_fusion: seq_k is 1000000: ", q, k, v, chapter="04_fusion")

    def test_what_a_backward_cannot_do_is_refused_by_the_forward(self):
        q, k, v = tensors(head_dim=60, gradients=True)
        self.refused("^08_causal_earlystop: head_dim is 60: supported are", q, k, v, chapter="05_online_softmax",
                     backward_chapter="08_causal_earlystop", values=True)  # else what the forward cannot do comes first

    def test_tensors_in_e4m3(self):
        (q, a), (k, b), (v, c) = map(in_eight_bits, tensors(seq_q=70, seq_k=131))
        scales = dict(q_scale=a, k_scale=b, v_scale=c)

        def refused(text, *inputs, **options):
            self.refused(text, *inputs, call=faw.attention_fp8, **{**scales, **options})

        half = tensors(seq_q=70, seq_k=131)
        refused("^k is torch.float8_e4m3fn and k_scale is not given: pass what its elements are to be multiplied by$", q,
                k, v, k_scale=None)
        refused("^v is torch.float16 and another tensor is torch.float8_e4m3fn: q, k and v must have one dtype$", q, k,
                half[2])
        refused("^q_scale is given and q is torch.float16: scales are of torch.float8_e4m3fn tensors$", *half)
        for other in (torch.float8_e5m2, torch.float32):
            refused(f"^q is {other}: supported are torch.float16, torch.bfloat16 and, with scales, torch.float8_e4m3fn$",
                    *(x.to(other) for x in half))
        refused(r"^k_scale has shape \[2, 4\]: it must have one element, or be \[2, 4, 2\], with one for each 128 rows of "
                "a head$", q, k, v, k_scale=torch.ones(2, 4, device=DEVICE))
        refused("^q_scale is 0: it must be at least 2.-126 and finite, as fp32 has it$", q, k, v, q_scale=0)
        for wrong in (-1e50, 1e-46, 1e39):
            refused(f"^q_scale is {wrong!r}: it must be at least 2".replace("+", "[+]"), q, k, v, q_scale=wrong)
        refused("^q_scale is a bool: it must be a number or a torch.Tensor$", q, k, v, q_scale=True)
        refused("^q_scale is a str: it must be a number or a torch.Tensor$", q, k, v, q_scale="x")
        refused("^v_scale is torch.float64 .1. on .*: it must be torch.float32 .1., contiguous, on ", q, k, v,
                v_scale=c.double())
        refused(r"^q has strides \[.*\]: pass q.contiguous\(\)$", q.transpose(1, 2).contiguous().transpose(1, 2), k, v)
        refused("^q has shape .*: it must be .batch, heads, sequence, head_dim.$", q[0], k, v)
        refused("^k has shape .*: batch and head_dim must be equal$", q, k[:1], v[:1])
        refused("^v has shape ", q, k, v[:, :, :50].contiguous())
        refused("^13_fp8: head_dim is 72: of tensors in e4m3 supported are 64, 128 and 256$",
                *(torch.zeros(1, 1, 8, 72, device=DEVICE).to(torch.float8_e4m3fn) for _ in range(3)))
        refused("^13_fp8, rung direct, has no forward of tensors in e4m3$", q, k, v, rung="direct")
        refused("^out_dtype is torch.float32: supported are torch.float16 and torch.bfloat16$", q, k, v,
                out_dtype=torch.float32)
        refused("^out_dtype is 'x': it must be torch.float16 or torch.bfloat16$", q, k, v, out_dtype="x")
        refused("^out_dtype is torch.bfloat16 and q is torch.float16: o has another dtype", *half, out_dtype=torch.bfloat16,
                **dict.fromkeys(scales))
        refused("^causal is 'x': it must be True or False$", q, k, v, "x")
        refused("^scale is inf: it must be finite$", q, k, v, scale=10**400)
        refused("^v is on meta and q is on (cpu|cuda:0): all tensors must be on one device$", q, k, v.to("meta"))
        refused("^k_scale is on meta and q is on (cpu|cuda:0): all tensors must be on one device$", q, k, v,
                k_scale=b.to("meta"))
        refused("^k_scale requires gradients and attention_fp8 has none: use", q, k, v, k_scale=b.clone().requires_grad_())
        if ON_ENGINE:
            for wrong in (-1.0, 2.0**-130):
                refused(f"^a scale of v is {wrong:g}: it must be at least 2.-126 and finite$", q, k, v,
                        v_scale=torch.tensor(wrong), values=True)

    def test_a_call_that_is_recorded(self):
        """Where a length is a symbol, too; which the check leaves free."""
        class Module(torch.nn.Module):
            def forward(self, q, k, v):
                return faw.attention(q, k, v)

        def recorded(head_dim):
            length = {2: torch.export.Dim("length")}
            return torch.export.export(Module(), tuple(tensors(head_dim=head_dim)), dynamic_shapes=[length] * 3)

        (lengths,) = recorded(64).range_constraints.values()
        self.assertTrue(lengths.lower <= 2 and lengths.upper > 10**9, lengths)
        self.refused("^no chapter takes it: head_dim is 60: supported are the multiples of 8 up to 256$", 60, call=recorded)

    def test_an_axis_beyond_an_int(self):
        q, k, v = (torch.empty(1, 0, 2**31, 64, dtype=torch.float16, device=DEVICE) for _ in range(3))
        self.refused("^q has shape .1, 0, 2147483648, 64.: no axis may be longer than 2147483647$", q, k, v)

    def test_gradients_of_a_chapter_that_has_none(self):
        q, k, v = tensors(gradients=True)
        self.refused("^05_online_softmax has no backward and a tensor requires gradients: use torch.no_grad.., or",
                     q, k, v, chapter="05_online_softmax")
        self.refused("^10_hopper, rung narrow, has no backward and a tensor requires gradients: .* backward_chapter "
                     "of: .*10_hopper, 12_variants$",
                     q, k, v, chapter="10_hopper", rung="narrow")
        with torch.no_grad():
            faw.attention(q, k, v, chapter="05_online_softmax")
        o, lse = faw.forward(q, k, v)
        self.refused("^q, k, v require gradients and attention_fp8 has none: use torch.no_grad.., or attention",
                     q, k, v, call=faw.attention_fp8)
        self.refused("^05_online_softmax has no backward$", q, k, v, o, lse, o, chapter="05_online_softmax",
                     call=faw.backward)
        if not BACKWARDS:
            self.refused("^the workbook has no backward and a tensor requires gradients: .*none yet", q, k, v)
            self.refused("^no chapter has a backward yet$", q, k, v, o, lse, o, call=faw.backward)
        else:
            self.refused("^04_fusion writes no LSE, which a backward needs", q, k, v, chapter="04_fusion",
                         backward_chapter=BACKWARDS[0][0])


class TheCheckOfGradients(unittest.TestCase):
    """Against PyTorch's own."""

    def test_accepts_right_ones_and_no_others(self):
        for causal in (False, True):
            q, k, v = tensors(gradients=True)
            d_o = torch.randn_like(q)
            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            gradients = torch.autograd.grad(o, (q, k, v), d_o)
            reference = Reference(q, k, v, causal)
            self.assertIsNone(reference.wrong_backward(d_o, *gradients))
            self.assertRegex(reference.wrong_backward(d_o, gradients[0], gradients[1] * 1.1, gradients[2]),
                             "^dk differs")
            self.assertRegex(reference.wrong_backward(d_o, gradients[0], gradients[1], gradients[0]), "^dv differs")


@unittest.skipUnless(BACKWARDS, "no chapter has a backward yet")
class Autograd(unittest.TestCase):
    def test_gradients_agree_with_fp64(self):
        for shape, dtype, causal in itertools.product(SHAPES, (torch.float16, torch.bfloat16), (False, True)):
            q, k, v = tensors(**shape, dtype=dtype, gradients=True)
            d_o = torch.randn_like(q)
            references = {rope: Reference(q, k, v, causal, rope=rope) for rope in (False, True)}
            for chapter, rung in BACKWARDS:
                with self.subTest(chapter=chapter, rung=rung, causal=causal, dtype=dtype, **shape):
                    rope = rope_of(chapter, q, k)
                    o = faw.attention(q, k, v, causal, backward_chapter=chapter, backward_rung=rung, rope=rope)
                    reference = references[rope is not None]
                    self.assertIsNone(reference.wrong_backward(d_o, *torch.autograd.grad(o, (q, k, v), d_o)))

    def test_the_gradient_of_a_sum(self):
        """It comes expanded, with stride 0."""
        q, k, v = tensors(gradients=True)
        faw.attention(q, k, v).sum().backward()
        self.assertIsNone(Reference(q, k, v, False).wrong_backward(torch.ones_like(q), q.grad, k.grad, v.grad))

    def test_a_small_model_trains(self):
        torch.manual_seed(2)
        project = torch.nn.Linear(64, 3 * 64, device=DEVICE, dtype=torch.bfloat16)
        x, wanted = torch.randn(2, 32, 64, device=DEVICE, dtype=torch.bfloat16), torch.randn(2, 32, 64, device=DEVICE)
        optimizer = torch.optim.Adam(project.parameters(), lr=1e-2)
        losses = []
        for _ in range(15 if ON_ENGINE else 30):
            q, k, v = (part.unsqueeze(1).contiguous() for part in project(x).chunk(3, dim=-1))
            loss = (faw.attention(q, k, v, causal=True).squeeze(1).float() - wanted).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.9 * losses[0])


def band(seq_q, seq_k, first, last):
    """The mask by which query i sees keys i + first to i + last."""
    distance = torch.arange(seq_k, device=DEVICE) - torch.arange(seq_q, device=DEVICE)[:, None]
    return (distance >= first) & (distance <= last)


def gradients(function, *inputs):
    """The result and the gradients of q, k and v for a d_o that is the same each time."""
    o = function(*inputs)
    d_o = torch.randn(o.shape, generator=torch.Generator().manual_seed(3)).to(o)
    return [o, *torch.autograd.grad(o, inputs, d_o)]


@unittest.skipUnless(BACKWARDS, "no chapter has a backward yet")
class InsidePyTorch(unittest.TestCase):
    def assertSame(self, got, expected):
        self.assertEqual([torch.equal(*pair) for pair in zip(got, expected)], len(expected) * [True])

    def test_compiled_without_a_graph_break(self):
        functions = {
            "default": lambda q, k, v: faw.attention(q, k, v, causal=True),
            "chapters": lambda q, k, v: faw.attention(q, k, v, scale=0.2, chapter="05_online_softmax",
                                                      backward_chapter="08_causal_earlystop"),
            "rope": lambda q, k, v: faw.attention(q, k, v, rope=faw.rope_tables(q, k)),
            "sdpa": lambda q, k, v: faw.sdpa(q, k, v, is_causal=True) + faw.sdpa(k, v, q),
        }
        backends = ["aot_eager"] if ON_ENGINE else ["aot_eager", "inductor"]  # which compiles with Triton
        for backend, (name, function) in itertools.product(backends, functions.items()):
            with self.subTest(name, backend=backend):
                inputs = tensors(batch=1, heads=2, kv_heads=2, seq_q=40, seq_k=40, gradients=True)
                torch._dynamo.reset()
                got = gradients(torch.compile(function, fullgraph=True, backend=backend), *inputs)
                if name == "rope" and backend == "inductor":  # whose cosines are its own
                    torch.testing.assert_close(got, gradients(function, *inputs), rtol=1e-2, atol=1e-2)
                else:
                    self.assertSame(got, gradients(function, *inputs))

    def test_rope_of_tensors_that_are_not_contiguous(self):
        """They are copied: the bits are those of contiguous ones, and results lie as their tensors do."""
        def transposed(x):
            return x.transpose(1, 2).contiguous().transpose(1, 2)

        def unaligned(x):
            return torch.empty(x.numel() + 1, dtype=x.dtype, device=x.device)[1:].view(x.shape).copy_(x)

        wide = tensors(kv_heads=2, seq_q=40, seq_k=50)
        rope = faw.rope_tables(*wide[:2])
        call = functools.partial(faw.attention, causal=True, rope=rope)
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        expected = gradients(call, *[x.requires_grad_() for x in wide])
        with torch.no_grad():
            o, lse = faw.forward(*wide, causal=True, rope=rope)
        for name, (of_q, of_k) in {"[B, N, H, D]": 2 * [transposed], "q alone": [transposed, torch.Tensor.clone],
                                   "rows that begin anywhere": 2 * [unaligned]}.items():
            with torch.no_grad():
                inputs = [change(x) for change, x in zip((of_q, of_k, of_k), wide)]
                got = faw.forward(*inputs, causal=True, rope=rope, chapter="09_rope_fused")
                explicit = faw.backward(*inputs, *got, o, causal=True, rope=rope)
            with self.subTest(name):
                self.assertSame(got, (o, lse))
                self.assertEqual([x.stride() for x in (got[0], *explicit)], [inputs[i].stride() for i in (0, 0, 1, 2)])
                for x in inputs:
                    x.requires_grad_()
                self.assertSame(gradients(call, *inputs), expected)
                self.assertSame(gradients(compiled, *inputs), expected)
                torch.library.opcheck(torch.ops.flash_attention_workbook.forward.default,
                                      (*inputs, *rope, True, None, None, None, None, None))

    def test_compiled_for_any_length(self):
        compiled = torch.compile(faw.attention, fullgraph=True, backend="aot_eager", dynamic=True)
        with torch.no_grad():
            for length in (30, 41):
                inputs = tensors(batch=1, heads=2, kv_heads=2, seq_q=length, seq_k=length)
                self.assertTrue(torch.equal(compiled(*inputs), faw.attention(*inputs)))

    def test_compiled_autograd(self):
        """Which compiles the backward of what was not compiled."""
        inputs = tensors(batch=1, heads=2, kv_heads=2, seq_q=40, seq_k=40, gradients=True)
        with torch._dynamo.compiled_autograd._enable(torch.compile(fullgraph=True, backend="aot_eager")):
            got = gradients(faw.attention, *inputs)
        self.assertSame(got, gradients(faw.attention, *inputs))

    def test_operators(self):
        """torch.library's own check: schema, fake kernels, autograd's registration, and what a compiler makes of
        them."""
        small = dict(batch=1, heads=2, kv_heads=1, seq_q=17, seq_k=20)
        operators = torch.ops.flash_attention_workbook
        for names in ((None, None, None, None), ("05_online_softmax", "tiles", "08_causal_earlystop", None)):
            inputs = tensors(**small, gradients=True)
            torch.library.opcheck(operators.forward.default, (*inputs, None, None, True, None, *names))
        rope = faw.rope_tables(*inputs[:2])
        torch.library.opcheck(operators.forward.default, (*inputs, *rope, False, 0.3, None, None, None, None))
        inputs = tensors(**small)
        torch.library.opcheck(operators.forward.default, (*inputs, None, None, False, None, "04_fusion", None, None,
                                                          None))
        o, lse = faw.forward(*inputs)
        torch.library.opcheck(operators.backward.default, (o, *inputs, o, lse, None, None, False, None, None, None))

    def test_who_watches_operators_sees_them(self):
        seen = []

        class Watching(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, operator, types, arguments=(), options=None):
                seen.append(str(operator))
                return operator(*arguments, **(options or {}))

        inputs = tensors(batch=1, heads=1, kv_heads=1, seq_q=17, seq_k=17, gradients=True)
        expected = gradients(faw.attention, *inputs)
        with Watching():
            self.assertSame(gradients(faw.attention, *inputs), expected)
        for direction in ("forward", "backward"):
            self.assertEqual(seen.count(f"flash_attention_workbook.{direction}.default"), 1)

    def test_flops_are_counted_as_of_pytorchs_own(self):
        def counted(call):
            with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
                call()
            return counter.get_total_flops()

        inputs = tensors(batch=2, seq_q=20, seq_k=30, gradients=True)
        pytorchs = torch.nn.functional.scaled_dot_product_attention
        ours = counted(lambda: faw.attention(*inputs, True).sum().backward())
        self.assertEqual(ours, 3.5 * 4 * 2 * 4 * 20 * 30 * 64)
        self.assertIn(counted(lambda: pytorchs(*inputs).sum().backward()), (ours, 0))  # 0 of older ones on the CPU
        self.assertEqual(counted(lambda: faw.attention(*inputs)), 4 * 2 * 4 * 20 * 30 * 64)
        begin = torch.tensor([0, 12, 20], dtype=torch.int32, device=DEVICE)
        packed = [x.detach()[0].transpose(0, 1)[:20].contiguous() for x in inputs]
        self.assertEqual(counted(lambda: faw.attention_packed(*packed, begin, begin, 12, 12)), 4 * 2 * 4 * 12 * 12 * 64)

    def test_autocast(self):
        inputs = [x.float().requires_grad_() for x in tensors(batch=1, seq_q=40, seq_k=40)]
        for dtype in (torch.float16, torch.bfloat16):
            with torch.autocast(DEVICE, dtype=dtype):
                got = gradients(faw.attention, *inputs)
            stored = [x.detach().to(dtype).requires_grad_() for x in inputs]
            self.assertEqual([x.dtype for x in got], [dtype] + 3 * [torch.float32])
            self.assertSame(got, [x.to(y.dtype) for x, y in zip(gradients(faw.attention, *stored), got)])

    def test_checkpoint(self):
        inputs = tensors(batch=1, seq_q=40, seq_k=40, gradients=True)
        for again in (False, True):
            for x in inputs:
                x.grad = None
            o = torch.utils.checkpoint.checkpoint(faw.attention, *inputs, use_reentrant=again)
            o.sum().backward()
            got = [x.grad for x in inputs]
            self.assertSame(got, torch.autograd.grad(faw.attention(*inputs).sum(), inputs))

    def test_lse_has_no_gradient(self):
        inputs = tensors(batch=1, heads=1, kv_heads=1, seq_q=17, seq_k=17, gradients=True)
        o, lse = torch.ops.flash_attention_workbook.forward.default(*inputs, None, None, False, None, None, None, None,
                                                                    None)
        self.assertEqual((o.requires_grad, lse.requires_grad), (True, False))

    def test_second_gradients_are_refused(self):
        inputs = tensors(batch=1, heads=1, kv_heads=1, seq_q=17, seq_k=17, gradients=True)
        operator = torch.ops.flash_attention_workbook.forward.default
        for o in faw.attention(*inputs), operator(*inputs, None, None, False, None, None, None, None, None)[0]:
            first, = torch.autograd.grad(o.sum(), inputs[:1], create_graph=True)
            with self.assertRaisesRegex(RuntimeError,
                                        "^derivative for flash_attention_workbook::backward is not implemented$"):
                first.sum().backward()


    def test_the_transforms_of_torch_func_are_refused(self):
        """But for vmap, which has no gradients."""
        inputs = tensors(batch=1, heads=1, kv_heads=1, seq_q=17, seq_k=17)
        for transform in torch.func.grad, torch.func.jacrev, torch.func.hessian:
            with self.assertRaisesRegex(ValueError,
                                        "^a transform of torch.func wants gradients: torch.autograd.grad has them$"):
                transform(lambda *some: faw.attention(*some).sum())(*inputs)
        twice = [torch.stack([x, 2 * x]) for x in inputs]
        self.assertSame(torch.func.vmap(faw.attention)(*twice), [faw.attention(*some) for some in zip(*twice)])


@unittest.skipUnless(BACKWARDS, "no chapter has a backward yet")
class Empty(unittest.TestCase):
    """No batch, no head, no query: nothing comes out. No key: every row is one that sees none."""

    SHAPES = [dict(batch=0), dict(heads=0, kv_heads=0), dict(heads=0), dict(seq_q=0), dict(seq_k=0),
              dict(seq_q=0, seq_k=0)]

    def test_both_directions(self):
        sink = torch.randn(4, device=DEVICE)
        for shape, gradients_wanted, options in itertools.product(
                self.SHAPES, (False, True),
                (dict(), dict(causal=True), dict(window=(3, 0), sink=sink), dict(alibi=sink.exp(), sink=sink),
                 dict(chapter="08_causal_earlystop"))):
            with self.subTest(**shape, gradients=gradients_wanted, options=list(options)):
                q, k, v = inputs = tensors(**{"seq_q": 10, "seq_k": 20, **shape}, gradients=gradients_wanted)
                options = {name: value[:q.shape[1]].requires_grad_(gradients_wanted and name == "sink")
                           if isinstance(value, torch.Tensor) else value for name, value in options.items()}
                o, lse = faw.forward(*inputs, **options)
                self.assertEqual((o.shape, o.count_nonzero()), (q.shape, 0))
                alone = options["sink"].detach()[:, None] if "sink" in options else torch.tensor(float("-inf"))
                self.assertTrue(torch.equal(lse, alone.to(lse).expand(q.shape[:3])))
                o = faw.attention(*inputs, **options)
                self.assertEqual((o.shape, o.count_nonzero()), (q.shape, 0))
                if gradients_wanted:
                    inputs += [options["sink"]] if "sink" in options else []
                    for x, gradient in zip(inputs, torch.autograd.grad(o, inputs, torch.ones_like(o))):
                        self.assertEqual((gradient.shape, gradient.count_nonzero()), (x.shape, 0))

    def test_a_rung_without_lse(self):
        self.assertIsNone(faw.forward(*tensors(batch=0), chapter="04_fusion")[1])

    def test_through_sdpa_and_compiled(self):
        def function(q, k, v):
            return faw.sdpa(q, k, v, is_causal=True) + faw.attention(q, k, v, window=(3, 0))

        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        for shape in self.SHAPES[:2] + self.SHAPES[3:]:  # sdpa() wants as many heads of key
            inputs = tensors(**{"seq_q": 10, "seq_k": 20, **shape}, gradients=True)
            for f in (function, compiled):
                with self.subTest(compiled=f is compiled, **shape):
                    torch._dynamo.reset()
                    for x, got in zip(inputs[:1] + inputs, gradients(f, *inputs)):
                        self.assertEqual((got.shape, got.count_nonzero()), (x.shape, 0))

    def test_operators(self):
        for shape in (dict(batch=0), dict(seq_k=0)):
            inputs = tensors(**{"heads": 2, "kv_heads": 2, "seq_q": 10, "seq_k": 20, **shape}, gradients=True)
            torch.library.opcheck(torch.ops.flash_attention_workbook.forward.default,
                                  (*inputs, None, None, True, *5 * [None]))


class AsPyTorchsOwn(unittest.TestCase):
    def sdpa(self, *inputs, **options):
        """PyTorch's, in fp64."""
        return torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in inputs), **options)

    def test_values(self):
        for shape, options in [(dict(seq_q=40, seq_k=40), dict(is_causal=True)),
                               (dict(seq_q=40, seq_k=70), dict(is_causal=True, scale=0.2)),
                               (dict(seq_q=70, seq_k=40), dict()), (dict(seq_q=70, seq_k=40), dict(is_causal=True)),
                               (dict(seq_q=20, seq_k=40, kv_heads=2), dict(is_causal=True, enable_gqa=True))]:
            with self.subTest(**shape, **options):
                inputs = tensors(**shape)
                got = faw.sdpa(*inputs, **options).double()
                torch.testing.assert_close(got, self.sdpa(*inputs, **options), rtol=2e-3, atol=2e-3)

    def test_masks_that_are_bands(self):
        """Causal ones of both alignments, windows, and bands of which the first or the last rows see nothing."""
        for seq_q, seq_k in ((40, 40), (30, 70), (70, 30)):
            inputs = tensors(batch=1, heads=2, kv_heads=2, seq_q=seq_q, seq_k=seq_k, gradients=True)
            for first, last in ((-70, 70), (-70, 0), (-70, seq_k - seq_q), (-9, 0), (-5, 5), (0, 70), (12, 20),
                                (-60, -20), (25, 25), (9, -9)):
                with self.subTest(seq_q=seq_q, seq_k=seq_k, first=first, last=last):
                    mask = band(seq_q, seq_k, first, last)
                    got = gradients(lambda *some: faw.sdpa(*some, attn_mask=mask), *inputs)
                    expected = gradients(lambda *some: self.sdpa(*some, attn_mask=mask), *inputs)
                    for one, other in zip(got, expected):
                        torch.testing.assert_close(one.double(), other.double(), rtol=1e-2, atol=1e-2)
                    seen = mask.any(1)
                    self.assertEqual(got[0][:, :, ~seen].count_nonzero(), 0)

    def test_what_a_mask_becomes(self):
        """A chapter that knows no window takes what is plain or causal."""
        for seq_q, seq_k, first, last, causal, window in [
                (40, 50, -40, 50, False, None), (40, 50, -40, 10, True, None), (50, 40, -50, -10, True, None),
                (40, 50, -40, 0, True, None), (40, 50, -9, 10, False, (19, 0)), (50, 40, -50, 0, False, (-1, 10)),
                (40, 50, 10, 50, False, (0, -1)), (40, 50, -40, -40, True, None)]:
            with unittest.mock.patch.object(faw.operators, "attention", wraps=faw.attention) as called:
                faw.sdpa(*tensors(batch=1, seq_q=seq_q, seq_k=seq_k), attn_mask=band(seq_q, seq_k, first, last))
            self.assertEqual((called.call_args.args[3], called.call_args.kwargs["window"]), (causal, window))

    def test_how_a_mask_lies(self):
        q, k, v = tensors(seq_q=40, seq_k=50)
        mask = band(40, 50, -9, 3)
        expected = faw.sdpa(q, k, v, attn_mask=mask)
        wide = torch.zeros(80, 51, dtype=torch.bool, device=DEVICE)
        wide[::2, 1:] = mask
        for same in (mask[None], mask[None, None], mask.expand(2, 4, 40, 50), mask.expand(2, 1, 40, 50),
                     mask.repeat(2, 4, 1, 1), mask.repeat(4, 1, 1),
                     mask.t().contiguous().t(), wide[::2, 1:]):
            self.assertTrue(torch.equal(faw.sdpa(q, k, v, attn_mask=same), expected))
        for shape in ((), (50,), (1, 1), (40, 1), (1, 1, 1, 50)):  # which PyTorch expands
            everything = torch.ones(shape, dtype=torch.bool, device=DEVICE)
            self.assertTrue(torch.equal(faw.sdpa(q, k, v, attn_mask=everything), faw.sdpa(q, k, v)))
        for empty in (dict(batch=0), dict(seq_q=0), dict(seq_k=0)):
            q, k, v = tensors(**empty)
            mask = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool, device=DEVICE)
            got = faw.sdpa(q, k, v, attn_mask=mask[:1] if len(mask) else mask)
            self.assertEqual((got.shape, got.count_nonzero()), (q.shape, 0))

    def test_every_mask_of_three_queries_and_four_keys(self):
        q, k, _ = tensors(seq_q=3, seq_k=4)
        bands = {tuple(band(3, 4, first, last).flatten().tolist()): (first, last)
                 for first, last in itertools.product(range(-2, 4), range(-3, 4))}
        for bits in itertools.product((False, True), repeat=12):
            mask = torch.tensor(bits, device=DEVICE).view(3, 4)
            try:
                first, last = faw.operators._band(mask, q, k)
                found = band(3, 4, -2 if first is None else first, 3 if last is None else last)
                self.assertTrue(bits in bands and torch.equal(found, mask), mask)
            except ValueError:
                self.assertNotIn(bits, bands)

    def test_masks_that_are_refused(self):
        q, k, v = tensors(seq_q=40, seq_k=50)
        mask = band(40, 50, -9, 3)
        hole, padded, heads = mask.clone(), torch.ones_like(mask), mask.repeat(1, 4, 1, 1)
        hole[20, 20], padded[:, 45:], heads[0, 1] = False, False, True
        inverted = band(40, 50, -9, 3).logical_not()
        no_band = (r"^attn_mask \[.*40, 50\] is not one band for all heads: supported is that query i sees keys i . first to "
                   r"i . last, as far as there are such; attention\(query, key, value, blocks=block_mask\(attn_mask, "
                   r"seq_q=40, seq_k=50\)\) takes others$")
        no_values = "^attn_mask has no values while torch.compile or a CUDA graph records the call, or on the device "
        with torch._subclasses.FakeTensorMode() as mode:
            fake = mode.from_tensor(mask)
        refused = [(no_band, hole), (no_band, padded), (no_band, heads), (no_band, inverted),
                   (no_values, mask.to("meta")), (no_values, fake),
                   ("^attn_mask is torch.float16: supported is torch.bool, True where a query sees a key$",
                    mask.half()),
                   ("^attn_mask is torch.uint8: supported is torch.bool", mask.byte()),
                   ("^attn_mask is a sparse or nested tensor: it must be an ordinary one$", mask.to_sparse()),
                   ("^attn_mask is a sparse or nested tensor: it must be an ordinary one$",
                    torch.nested.nested_tensor([mask, mask])),
                   ("^attn_mask is a list: it must be a torch.Tensor$", [True]),
                   (r"^attn_mask has shape .50, 40.: it must be .2, 4, 40, 50., or have 1 for some of these "
                    "numbers$", mask.t()),
                   (r"^attn_mask has shape \[3, 1, 40, 50\]: ", mask.expand(3, 1, 40, 50)),
                   (r"^attn_mask has shape \[1, 1, 1, 40, 50\]: ", mask[None, None, None])]
        if not ON_ENGINE:
            refused.append(("^attn_mask is on cpu and query is on cuda:0: all tensors must be on one device$",
                            mask.cpu()))
        for text, given in refused:
            with self.assertRaisesRegex(ValueError, text) as caught:
                faw.sdpa(q, k, v, attn_mask=given)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(ValueError, "^attn_mask and is_causal=True are both given: pass one of them$"):
            faw.sdpa(q, k, v, attn_mask=mask, is_causal=True)

    def test_a_mask_where_compiled(self):
        """Its values cannot be seen: with fullgraph=True a line says so, without, the call is not compiled."""
        def function(q, k, v, mask):
            return 2 * faw.sdpa(q, k, v, attn_mask=mask)

        inputs = *tensors(batch=1, seq_q=20, seq_k=20), band(20, 20, -9, 3)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "attn_mask has no values while torch.compile"):
            torch.compile(function, fullgraph=True, backend="eager")(*inputs)
        torch._dynamo.reset()
        self.assertTrue(torch.equal(torch.compile(function, backend="eager")(*inputs), function(*inputs)))

    def test_refusals(self):
        q, k, v = tensors()
        wide = [torch.cat([x] * 3, -1) for x in (q, k, v)]
        for text, inputs, options in [
            ("^value has shape .*: it must be", (q[:, :, :50], k, v[:, :, :90]), dict(is_causal=True)),
            ("^query is torch.float32: supported are torch.float16 and torch.bfloat16$", (q.float(), k, v), dict()),
            ("^key is torch.bfloat16 and query is torch.float16: all tensors must have one dtype$", (q, k.bfloat16(), v),
             dict()),
            (r"^key has shape .* and query .*: batch and head_dim must be equal$", (q, k[:1], v[:1]), dict()),
            (r"^key has strides .*: the last must be 1: pass key.contiguous\(\)$",
             (q, k.transpose(2, 3).contiguous().transpose(2, 3), v), dict()),
            ("^12_variants: the head dim of value is 32 beside 64: supported are the same as of query and key, and 128 "
             "beside 192$", (q, k, v[..., :32]), dict()),
            ("^12_variants: head_dim is 192: above 128 it takes no window, which is_causal with more queries than keys is$",
             (wide[0], *(x[:, :, :50] for x in wide[1:])), dict(is_causal=True)),
            ("^12_variants: head_dim is 192: above 128 it takes no window, which this attn_mask is$", wide,
             dict(attn_mask=band(q.shape[2], k.shape[2], -9, 3))),
            ("^is_causal is 'x': it must be True or False$", (q, k, v), dict(is_causal="x")),
            ("^dropout_p is 0.1: supported is 0, no dropout$", (q, k, v), dict(dropout_p=0.1)),
            ("^query has 4 heads and key 2: enable_gqa=True lets", (q, k[:, :2].contiguous(), v[:, :2].contiguous()),
             dict()),
        ]:
            with self.assertRaisesRegex(ValueError, text) as caught:
                faw.sdpa(*inputs, **options)
            self.assertNotIn("\n", str(caught.exception))
            if "attn_mask" not in options:  # which has no values there
                for dynamic in (False, True):
                    compiled = text.strip("^$").replace("dropout_p is 0.1", "dropout_p is not 0")
                    with self.subTest(text, dynamic=dynamic), self.assertRaisesRegex(Exception, compiled):
                        torch._dynamo.reset()
                        torch.compile(faw.sdpa, fullgraph=True, backend="eager", dynamic=dynamic)(*inputs, **options)


if __name__ == "__main__":
    unittest.main()
