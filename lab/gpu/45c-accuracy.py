# How far O of each rung of chapter 13 is from fp64 of the bf16 inputs: python3 -B 45c-accuracy.py OUT.json COMMIT [keys at most]
import json, math, sys
import torch
import flash_attention_workbook as faw
device = "cuda" if torch.cuda.is_available() else "cpu"
RUNGS = ("direct", "inside", "lazy", "unscanned", "turns", "held", "sums", "blocks", "rotated", "offset")
ROWS, DRAWS = 32, 8
most = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 30
def inputs(kind, N, D, seed):
    g = torch.Generator(device=device).manual_seed(seed)
    normal = lambda n: torch.randn(n, D, generator=g, device=device, dtype=torch.float64)
    q, k, v = normal(128), normal(N), normal(N)
    if kind == "outliers":
        for x in (q, k, v):
            x += 10 * torch.randn(x.shape, generator=g, device=device, dtype=torch.float64) * (
                torch.rand(x.shape, generator=g, device=device) < 1e-3)
    if kind == "needle":  # the shortest key that has half of the weight of each of the rows
        s = q[:ROWS] @ k.T / math.sqrt(D); at = int(torch.randint(N, (1,), generator=g, device=device)); s[:, at] = -math.inf
        k[at] = torch.linalg.pinv(q[:ROWS]) @ (torch.logsumexp(s, 1) * math.sqrt(D))
    if kind == "mean1":
        v = 1 + v / 2
    return [x.bfloat16()[None, None].contiguous() for x in (q, k, v)]
points = []
for D in (64, 128, 256):
    for kind, all_keys in (("normal", (1024, 4096, 16384, 131072)), ("outliers", (1024, 4096, 16384)),
                           ("needle", (1024, 131072)), ("mean1", (1024, 4096, 16384, 131072))):
        for N in all_keys:
            if N > most: continue
            squares = {}
            for seed in range(DRAWS):
                q, k, v = inputs(kind, N, D, 1000 * seed + N + D)
                exact = torch.softmax(q.double() @ k.double().mT * D**-.5, -1) @ v.double()
                exact = exact[:, :, :ROWS]
                def add(name, o):
                    error = ((o[:, :, :ROWS].double() - exact).norm() / exact.norm()).item()
                    squares.setdefault(name, []).append(error**2)
                for rung in RUNGS:
                    if rung == "inside" and D == 256: continue
                    add(rung, faw.attention_fp8(q, k, v, rung=rung))
                add("16_bits", faw.attention(q, k, v) if device == "cuda" else faw.attention(q, k, v, chapter="08_causal_earlystop"))
            point = {"head_dim": D, "keys": N, "inputs": kind, "draws": DRAWS}
            point |= {f"{name}_error": round(math.sqrt(sum(s) / DRAWS), 5) for name, s in squares.items()}
            points.append(point); print(point, flush=True)
context = {"commit": sys.argv[2], "date": "2026-11-30", "gpu": torch.cuda.get_device_name() if device == "cuda" else "the SIMT engine",
           "errors": "norm of the error of O over that of O, against fp64 of the bf16 inputs, 32 rows of one head, no mask; the root of the mean square over so many draws. normal: Q, K and V; outliers: one element in a thousand with another normal number, ten times as large, added; needle: one key, the shortest of those that have half of the weight of each of the 32 rows; mean1: V is 1 + N(0, 1) / 2. sums added up after every tile; 16_bits: the default kernel"}
with open(sys.argv[1], "w") as f:
    f.write('{\n "context": ' + json.dumps(context) + ',\n "points": [\n' + ",\n".join("  " + json.dumps(p) for p in points) + "\n ]\n}\n")
