"""The rung `clusters` beside `chosen`: right, and how fast, launch by launch and back to back. python3 clusters.py OUT COMMIT
forward|backward;
PYTHONPATH is the repository's `common`."""
import ctypes, json, math, statistics, subprocess, sys, time
from pathlib import Path
import torch
from tools.measuring.back_to_back import Bursts, alone
from tools.measuring.nvml import Nvml

HERE = Path(__file__).parent
lib = ctypes.CDLL(str(HERE / "clusters.so"))
stream = torch.cuda.current_stream().cuda_stream
RUNGS = ("chosen", "clusters")
DTYPE = torch.float16 if "fp16" in sys.argv else torch.bfloat16


def p(x): return ctypes.c_void_p(x.data_ptr() if hasattr(x, "data_ptr") else x)


class Inputs:
    def __init__(self, B, H, Hkv, Nq, Nk, D, dtype, seed):
        gen = torch.Generator("cuda").manual_seed(seed)
        self.shape, self.bf16 = (B, H, Hkv, Nq, Nk, D), dtype == torch.bfloat16
        make = lambda heads, n: torch.randn(B, heads, n, D, generator=gen, device="cuda").to(dtype)
        self.q, self.k, self.v = make(H, Nq), make(Hkv, Nk), make(Hkv, Nk)
        self.o = torch.full_like(self.q, float("nan"))
        self.lse = torch.full((B, H, Nq), float("nan"), device="cuda")
        self.workspace = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")

    def run(self, rung, causal):
        if lib.rung_forward(rung.encode(), *self.shape, ctypes.c_bool(causal), ctypes.c_bool(self.bf16), p(self.q), p(self.k), p(self.v),
                            p(self.o), p(self.lse), p(self.workspace), p(stream)):
            sys.exit("launch failed")


class Lane:
    def __init__(self, rung, inputs, causal): self.rung, self.inputs, self.causal = rung, inputs, causal
    def launch(self, number): self.inputs[number].run(self.rung, self.causal)


def reference(s, causal):
    B, H, Hkv, Nq, Nk, D = s.shape
    k, v = (x.double().repeat_interleave(H // Hkv, 1) for x in (s.k, s.v))
    S = s.q.double() @ k.transpose(-1, -2) / math.sqrt(D)
    if causal:
        hidden = torch.arange(Nk, device="cuda")[None] > torch.arange(Nq, device="cuda")[:, None] + Nk - Nq
        S.masked_fill_(hidden, -math.inf)
    return torch.nan_to_num(S.softmax(-1), 0.0) @ v, S.logsumexp(-1)


def check():
    """Against fp64, and the same bits in 10 launches."""
    worst = 0
    for B, H, Hkv, Nq, Nk in ((1, 2, 1, 64, 64), (1, 2, 2, 385, 129), (2, 4, 2, 1000, 777), (1, 3, 1, 777, 1000), (1, 40, 40, 1025, 65),
                              (1, 1, 1, 1, 1), (1, 64, 8, 513, 2000), (4, 16, 16, 640, 640), (1, 4, 4, 2304, 2304)):
        for D in (64, 128):
            for causal in (False, True):
                s = Inputs(B, H, Hkv, Nq, Nk, D, torch.float16 if Nq % 2 else torch.bfloat16, Nq + D)
                o, lse = reference(s, causal)
                far = {}
                for rung in RUNGS:
                    s.o.fill_(math.nan), s.lse.fill_(math.nan)
                    s.run(rung, causal)
                    torch.cuda.synchronize()
                    far[rung] = float((s.o.double() - o).norm() / o.norm()), float(torch.nan_to_num(s.lse.double() - lse, 0.0).abs().max())
                    assert not torch.isnan(s.lse).any() and not torch.isnan(s.o).any(), ("NaN", rung, s.shape, causal)
                    assert (torch.isinf(s.lse) == torch.isinf(lse)).all(), ("rows without keys", rung, s.shape, causal)
                first = s.o.clone()
                for _ in range(10):
                    s.run("clusters", causal)
                torch.cuda.synchronize()
                assert torch.equal(first, s.o), ("other bits", s.shape, causal)
                good = far["clusters"][0] <= 1.05 * far["chosen"][0] + 1e-5 and far["clusters"][1] < 1e-3
                worst = max(worst, far["clusters"][0] / (far["chosen"][0] + 1e-9))
                if not good:
                    print("WRONG", s.shape, causal, far, flush=True)
    print(f"checked; error of clusters over chosen at most {worst:.3f}", flush=True)


def look_of():
    uuid = "GPU-" + str(torch.cuda.get_device_properties(0).uuid).removeprefix("GPU-")
    try:
        return Nvml(uuid).look
    except OSError:
        return Nvml(subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()).look


def one_by_one(lanes, seconds, flush):
    many = max(5, min(15, int(0.05 / seconds)))
    times = [[] for _ in lanes]
    for number in range(many):
        for lane, mine in zip(lanes, times):
            flush.zero_()
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(300000)  # until all is enqueued
            start.record()
            lane.launch(number % 2)
            stop.record()
            torch.cuda.synchronize()
            mine.append(1e-3 * start.elapsed_time(stop))
    return [statistics.median(mine) for mine in times]


class Gradients:
    """What a backward has beside an Inputs."""
    def __init__(self, s, causal, seed=0):
        self.s, self.causal = s, causal
        gen = torch.Generator("cuda").manual_seed(seed)
        self.d_o = torch.randn(s.q.shape, generator=gen, device="cuda").to(s.q.dtype)
        self.dq, self.dk, self.dv = (torch.full_like(x, float("nan")) for x in (s.q, s.k, s.v))
        B, H, Hkv, Nq, Nk, D = s.shape
        self.workspace = torch.empty(4 * (B * H * (Nq + 256) * (D + 4) + 2 * B * H * Nk * D) + (1 << 20), dtype=torch.uint8, device="cuda")
        s.run("chosen", causal)

    def run(self, rung, causal):
        s = self.s
        if lib.rung_backward(rung.encode(), *s.shape, ctypes.c_bool(causal), ctypes.c_bool(s.bf16), p(s.q), p(s.k), p(s.v), p(s.o), p(s.lse),
                             p(self.d_o), p(self.dq), p(self.dk), p(self.dv), p(self.workspace), ctypes.c_size_t(self.workspace.numel()), p(stream)):
            sys.exit("launch failed")


def check_backward():
    """Both rungs add up in the same order: the same bits as `prompt`, where that is not cyclic, else nearly so."""
    for B, H, Hkv, Nq, Nk in ((1, 2, 1, 64, 64), (1, 2, 2, 385, 129), (2, 4, 2, 1000, 777), (1, 3, 1, 777, 1000), (1, 64, 8, 513, 2000),
                              (4, 16, 16, 640, 640), (1, 16, 16, 2304, 2304), (1, 1, 1, 1, 1)):
        for D in (64,):
            for causal in (False, True):
                g = Gradients(Inputs(B, H, Hkv, Nq, Nk, D, torch.bfloat16 if Nq % 2 else torch.float16, Nq + D), causal)
                kept = {}
                for rung in ("prompt", "columns"):
                    for x in (g.dq, g.dk, g.dv):
                        x.fill_(math.nan)
                    g.run(rung, causal)
                    torch.cuda.synchronize()
                    kept[rung] = [x.clone() for x in (g.dq, g.dk, g.dv)]
                for _ in range(10):
                    g.run("columns", causal)
                torch.cuda.synchronize()
                same = all(torch.equal(a, b) for a, b in zip(kept["columns"], (g.dq, g.dk, g.dv)))
                far = [float((a.float() - b.float()).norm() / (b.float().norm() + 1e-9)) for a, b in zip(kept["columns"], kept["prompt"])]
                if not same or not max(far) < 2e-3:
                    print("WRONG" if not max(far) < 2e-3 else "OTHER BITS", (B, H, Hkv, Nq, Nk, D), causal, far, flush=True)
    print("backward checked", flush=True)


def compare(direction, names, lanes, flops, flush, look, point):
    one = one_by_one(lanes, flops / 5e14, flush)
    bursts = [Bursts(lane, seconds) for lane, seconds in zip(lanes, one)]
    slices = [[] for _ in lanes]
    for _ in range(3):
        for burst, mine in zip(bursts, slices):
            mine.append(burst.slice()[0])
    point = {"direction": direction, **point}
    for name, seconds, burst, mine in zip(names, one, bursts, slices):
        point[name] = {"seconds": round(seconds, 9), "back_to_back": round(statistics.median(mine), 9)}
        if point["seq"] == 8192:
            point[name].update(alone(burst, look))
    base = point[names[0]]
    for name in names[1:]:
        point[name].update(ratio=round(base["seconds"] / point[name]["seconds"], 4),
                           ratio_back_to_back=round(base["back_to_back"] / point[name]["back_to_back"], 4))
    print(f"{direction:8} D={point['head_dim']:3} {'causal' if point['causal'] else 'full':6} N={point['seq']:5} "
          + "  ".join(f"{name} {1e3 * point[name]['seconds']:.4f} {1e3 * point[name]['back_to_back']:.4f}"
                      + (f" ({point[name]['ratio']:.3f} {point[name]['ratio_back_to_back']:.3f})" if "ratio" in point[name] else "")
                      + (f" {1e3 * point[name]['joules']:.0f} mJ {point[name]['sm_clock_mhz']:.0f} MHz" if point[name].get("joules") else "")
                      for name in names), flush=True)
    return point


def main():
    out, commit, direction = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    check() if direction == "forward" else check_backward()
    look, points = look_of(), []
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    context = {"gpu": torch.cuda.get_device_name(0), "date": time.strftime("%Y-%m-%d"), "commit": commit,
               "problem": "FlashAttention's sweep: 16384 tokens, H * D = 2048, bf16",
               "timing": "launch by launch with a flushed L2 (median of 5 to 15); back to back in slices of 1/30 s in turn (median of 3)"}
    lengths = ((8192, 4096, 2048, 1024, 512), (16384,))  # the longest last, in case one does not end
    for N, D, causal in ((N, D, causal) for some in lengths for D in (64,) for causal in (False, True) for N in some):
        H = 2048 // D
        inputs = [Inputs(16384 // N, H, H, N, N, D, DTYPE, seed) for seed in (1, 2)]
        flops = 4 * 16384 * N * 2048 / (2 if causal else 1)
        at = {"head_dim": D, "causal": causal, "seq": N}
        if direction == "forward":
            names = ["chosen", "clusters"] + (["clusters_fenced"] if N == 8192 else [])
            lanes = [Lane(name, inputs, causal) for name in names]
        else:
            names, flops = ["prompt", "columns"], 2.5 * flops
            gradients = [Gradients(s, causal, seed) for seed, s in enumerate(inputs)]
            lanes = [Lane(name, gradients, causal) for name in names]
        points.append(compare(direction, names, lanes, flops, flush, look, at))
        out.write_text(json.dumps({"context": context, "points": points}, indent=1) + "\n")


main()
