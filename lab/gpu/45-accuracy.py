# How far O of each rung of chapter 13, and of its peers, is from fp64 of the bf16 inputs.
# python3 -B accuracy.py OUT.json COMMIT [keys at most] [draws]      PYTHONPATH: common/python, common, cuDNN's frontend
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

import flash_attention_workbook as faw
from tools.measuring.peers_check import E4M3_MAX, in_eight_bits
from tools.record import result_files

out, commit = Path(sys.argv[1]), sys.argv[2]
most = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 30
DRAWS = int(sys.argv[4]) if len(sys.argv) > 4 else 8
device = "cuda" if torch.cuda.is_available() else "cpu"
RUNGS = ("direct", "inside", "lazy", "unscanned", "turns", "held", "sums", "blocks", "rotated", "offset", "followed")
ROWS = 32
try:
    import cudnn
    from tools.measuring.cudnn_fp8 import Attention, Graph
except ImportError as error:
    cudnn = None
    print("no cuDNN in eight bits:", error, flush=True)
graphs = {}


def cudnn_fp8(q, k, v, causal=False):
    """Each of q, k and v with one scale for the tensor, and o, too. Q is made as long as K: the graphs are of one length."""
    rows, keys = q.shape[2], k.shape[2]
    if rows < keys:
        q = q.repeat(1, 1, -(-keys // rows), 1)[:, :, :keys].contiguous()
    shape = tuple(q.shape)
    if (shape, causal) not in graphs:
        graphs.clear()
        graphs[shape, causal] = Graph(shape, causal)
    o, scale = Attention(graphs[shape, causal], *map(in_eight_bits, (q, k, v)))()
    return o.float() * scale


def flash(q, k, v, causal=False):
    if device == "cpu":
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def all_of(q, k, v, causal=False):
    """(name, o) of each."""
    for rung in RUNGS:
        if rung != "inside" or q.shape[-1] < 256:
            yield rung, faw.attention_fp8(q, k, v, rung=rung, causal=causal)
    (q8, a), (k8, b), (v8, c) = map(in_eight_bits, (q, k, v))
    yield "e4m3", faw.attention_fp8(q8, k8, v8, q_scale=a, k_scale=b, v_scale=c, causal=causal)
    yield "16_bits", (faw.attention(q, k, v, causal=causal) if device == "cuda"
                      else faw.attention(q, k, v, causal=causal, chapter="08_causal_earlystop"))
    yield "flash", flash(q, k, v, causal)
    if cudnn and device == "cuda":
        yield "cudnn_fp8", cudnn_fp8(q, k, v, causal)
    exact = exact_of(q, k, v, causal)  # what rounding O to e4m3 costs, of which cuDNN's O has its part
    o8, scale = in_eight_bits(exact)
    yield "o_in_e4m3", o8.double() * scale.double()


def exact_of(q, k, v, causal=False):
    s = q.double() @ k.double().mT * q.shape[-1] ** -0.5
    if causal:
        s.masked_fill_(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), -math.inf)
    return torch.softmax(s, -1) @ v.double()


def inputs(kind, N, D, seed):
    g = torch.Generator(device=device).manual_seed(seed)

    def normal(n):
        return torch.randn(n, D, generator=g, device=device, dtype=torch.float64)
    q, k, v = normal(128), normal(N), normal(N)
    if kind == "outliers":
        for x in (q, k, v):
            x += 10 * torch.randn(x.shape, generator=g, device=device, dtype=torch.float64) * (
                torch.rand(x.shape, generator=g, device=device) < 1e-3)
    if kind == "needle":  # the shortest key that has half of the weight of each of the rows
        s = q[:ROWS] @ k.T / math.sqrt(D)
        at = int(torch.randint(N, (1,), generator=g, device=device))
        s[:, at] = -math.inf
        k[at] = torch.linalg.pinv(q[:ROWS]) @ (torch.logsumexp(s, 1) * math.sqrt(D))
    if kind == "mean1":
        v = 1 + v / 2
    q[ROWS:] = q[:ROWS].repeat(3, 1)  # and so a peer that rounds O by its largest element sees these rows alone
    return [x.bfloat16()[None, None].contiguous() for x in (q, k, v)]


def measured(point, draws):
    """The point with the root mean square of each one's error. `draws`: q, k, v, causal, and the rows that count."""
    squares, count = {}, 0
    for q, k, v, causal, rows in draws:
        exact, count = exact_of(q, k, v, causal)[:, :, :rows], count + 1
        for name, o in all_of(q, k, v, causal):
            error = ((o[:, :, :rows].double() - exact).norm() / exact.norm()).item()
            squares.setdefault(name, []).append(error**2)
    points.append(point | {f"{name}_error": round(math.sqrt(sum(s) / count), 5) for name, s in squares.items()})
    print(points[-1], flush=True)


def trained(head_dim, steps, seconds):
    """Q, K and V of each layer of the small model of common/python/examples, after so many steps: one batch that it was
    not trained on."""
    sys.path.insert(0, str(Path(faw.__file__).resolve().parents[1] / "examples"))
    import gpt
    gpt.HEAD_DIM = head_dim
    tiny = ["--tiny"] if device == "cpu" else []
    options = gpt.arguments(["sdpa", "--steps", str(steps), "--seconds", str(seconds), *tiny])
    seen, attend = [], gpt.attend

    def watched(run, qkv, *rest):
        seen.append(qkv.detach())
        del seen[:-options.layers]
        return attend(run, qkv, *rest)
    gpt.attend = watched
    loss = gpt.train("sdpa", gpt.Text(gpt.files()), options, device)["validation"]["losses"][-1]
    gpt.attend = attend
    for layer, qkv in enumerate(seen):
        q, k, v = (x[:4].bfloat16().contiguous() for x in qkv)
        largest = {f"{name}_largest_over_rms": round((x.abs().max() / x.float().square().mean().sqrt()).item(), 1)
                   for name, x in zip("qkv", (q, k, v))}
        measured({"head_dim": head_dim, "keys": q.shape[2], "inputs": "trained", "layer": layer + 1,
                  "validation_loss": round(loss, 3), "draws": 1, **largest}, [(q, k, v, True, q.shape[2])])


points = []
context = {
    "commit": commit, "date": "2026-11-30",
    "gpu": torch.cuda.get_device_name() if device == "cuda" else "the SIMT engine",
    "errors": "norm of the error of O over that of O, against fp64 of the bf16 inputs, 32 rows of one head, no mask; the root of the mean square over so many draws",
    "inputs": "normal: Q, K and V; normal_in_e4m3: the same in e4m3 with one scale each, errors against fp64 of these tensors, all_keys where every step is exact but the rounding of P, whose heaviest weight is 1, first_tile where the heaviest weight of the first 128 keys is 8 and no other counts for m, ratio over all_keys_error; outliers: one element in a thousand with another normal number, ten times as large, added; needle: one key, the shortest of those that have half of the weight of each of the 32 rows; mean1: V is 1 + N(0, 1) / 2; trained: of a layer of common/python/examples/gpt.py, four sequences, all heads and rows, causal",
    "names": "a rung, sums added up after every tile; e4m3: followed, of tensors with one scale each; 16_bits: chapter 10's; flash: PyTorch's FLASH, 16 bits; cudnn_fp8: cuDNN's, of tensors with one scale each, O in e4m3; o_in_e4m3: what rounding the exact O to e4m3 with one scale costs alone"}


def write():
    result_files.write(out, {"context": context, "points": points})


for D in (128, 256, 64):
    for kind, all_keys in (("normal", (1024, 4096, 16384, 131072)), ("mean1", (1024, 4096, 16384, 131072)),
                           ("outliers", (1024, 4096, 16384)), ("needle", (1024, 131072))):
        for N in all_keys:
            if N <= most:
                measured({"head_dim": D, "keys": N, "inputs": kind, "draws": DRAWS},
                         ((*inputs(kind, N, D, 1000 * seed + N + D), False, ROWS) for seed in range(DRAWS)))
    write()
def beside_rounding(D, N, draws):
    """Of tensors in e4m3, against fp64 of the same: followed, and exact steps but for P, rounded with a heaviest weight of
    1; and with the heaviest weight of the first 128 keys at 8."""
    e4m3, squares = torch.float8_e4m3fn, []
    for seed in range(draws):
        g = torch.Generator(device=device).manual_seed(seed)
        q, k, v = (torch.randn(1, 1, n, D, generator=g, device=device).bfloat16() for n in (ROWS, N, N))
        (q8, a), (k8, b), (v8, c) = map(in_eight_bits, (q, k, v))
        Q, K, V = q8[0, 0].double(), k8[0, 0].double(), v8[0, 0].double() * c.double()
        x = Q @ K.T * (a.double() * b.double() * D ** -0.5 / math.log(2))
        p, w = torch.exp2(x - x.amax(-1, keepdim=True)), torch.exp2(x - x[:, :128].amax(-1, keepdim=True) + 3)
        exact = p @ V / p.sum(-1, keepdim=True)
        o = faw.attention_fp8(q8, k8, v8, q_scale=a, k_scale=b, v_scale=c, out_dtype=torch.float16)[0, 0].double()
        rounded = [one.float().clamp(max=E4M3_MAX).to(e4m3).double() @ V / one.sum(-1, keepdim=True) for one in (p, w)]
        squares.append([((one - exact).norm() / exact.norm()).item() ** 2 for one in (*rounded, o)])
    best, first, got = (math.sqrt(sum(column) / draws) for column in zip(*squares))
    points.append({"head_dim": D, "keys": N, "inputs": "normal_in_e4m3", "draws": draws, "all_keys_error": round(best, 5),
                   "first_tile_error": round(first, 5), "followed_error": round(got, 5), "followed_ratio": round(got / best, 3),
                   "first_tile_ratio": round(first / best, 3)})
    print(points[-1], flush=True)


for D in (64, 128, 256):
    for N in (1024, 4096, 16384, 131072):
        if N <= most:
            beside_rounding(D, N, 8 * DRAWS if N < 100000 else DRAWS)
write()
for D in (64, 128):
    trained(D, 300 if device == "cuda" else 10, 20)
    write()
