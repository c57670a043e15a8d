"""Further variants of chapter 10's kernels: each alone on the GPU, back to back, and launch by launch with an L2 that was
overwritten. python3 variants.py OUT [SECONDS [COMMIT]]; PYTHONPATH is the repository's `common`."""
import ctypes, json, math, statistics, subprocess, sys, time
from pathlib import Path
import torch
import torch.nn.functional as F
from tools.measuring.nvml import Nvml, Watching, mean_clock, mean_power

HERE = Path(__file__).parent
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
SETTLING, ROUNDS, TOKENS, N = 0.2, 2, 16384, 8192
lib = ctypes.CDLL(str(HERE / "variants.so"))
stream = torch.cuda.current_stream().cuda_stream
BF16 = torch.bfloat16


def p(x): return ctypes.c_void_p(x.data_ptr() if hasattr(x, "data_ptr") else x)


class Set:
    """Inputs and outputs of one problem."""
    def __init__(self, D, seed, zeros=False):
        self.D, self.B, self.H = D, TOKENS // N, 2048 // D
        gen = torch.Generator("cuda").manual_seed(seed)
        make = (lambda: torch.zeros(self.B, self.H, N, D, dtype=BF16, device="cuda")) if zeros else \
               (lambda: torch.randn(self.B, self.H, N, D, generator=gen, device="cuda").to(BF16))
        self.q, self.k, self.v, self.d_o = make(), make(), make(), make()
        self.o, self.dq, self.dk, self.dv = (torch.zeros_like(self.q) for _ in range(4))
        self.out_o = torch.zeros_like(self.q)
        self.lse = torch.zeros(self.B, self.H, N, device="cuda")
        self.out_lse = torch.zeros_like(self.lse)
        self.workspace = torch.empty(self.B * self.H * N * (D + 4) * 4 + (1 << 20), dtype=torch.uint8, device="cuda")
        self.forward("whole", self.o, self.lse)

    def forward(self, variant, o=None, lse=None):
        getattr(lib, f"forward{self.D}_{variant}")(
            self.B, self.H, N, p(self.q), p(self.k), p(self.v), p(self.out_o if o is None else o),
            p(self.out_lse if lse is None else lse), p(self.workspace), p(stream))

    def backward(self, variant):
        getattr(lib, f"backward{self.D}_{variant}")(
            self.B, self.H, N, p(self.q), p(self.k), p(self.v), p(self.o), p(self.lse), p(self.d_o), p(self.dq),
            p(self.dk), p(self.dv), p(self.workspace), p(stream))


def far(x, y): return float((x.float() - y.float()).norm() / y.float().norm())


def reference(s):
    q, k, v = (x.detach().clone().requires_grad_() for x in (s.q, s.k, s.v))
    o = F.scaled_dot_product_attention(q, k, v)
    o.backward(s.d_o)
    return o.detach(), q.grad, k.grad, v.grad


def look_of():
    uuid = "GPU-" + str(torch.cuda.get_device_properties(0).uuid).removeprefix("GPU-")
    try:
        return Nvml(uuid).look
    except OSError:  # in a virtual machine the UUID may be written otherwise
        uuid = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True,
                              text=True).stdout.strip()
        return Nvml(uuid).look


def alone(launch, look):
    """Seconds of a launch, and what NVML said, of a variant that has the GPU to itself."""
    for i in range(2):
        launch(i)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(4):
        launch(i)
    torch.cuda.synchronize()
    many = max(1, int(0.02 / ((time.perf_counter() - begin) / 4)))

    def run(seconds):
        events, begin, count = [], time.perf_counter(), 0
        first = torch.cuda.Event(enable_timing=True)
        first.record()
        while time.perf_counter() - begin < seconds:
            for i in range(many):
                launch(i)
            count += many
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()
            if len(events) > 3:
                events[-4].synchronize()
        return first, events[-1], count

    with Watching(look) as watching:
        run(SETTLING)
        start = time.perf_counter()
        first, last, count = run(SECONDS)
        last.synchronize()
        end = time.perf_counter()
    looks = [one for one in watching.looks if start + 0.03 <= one.at <= end - 0.03]
    return 1e-3 * first.elapsed_time(last) / count, mean_clock(looks), mean_power(looks), count


VARIANTS = {("forward", 64): ("whole",), ("forward", 128): ("whole",),
            ("backward", 64): ("whole", "columns", "apart", "columns_apart", "columns_larger", "columns_232", "columns_larger_232"),
            ("backward", 128): ("whole", "columns", "no_stats")}


def singles(launch, flush, times):
    """Seconds of launches, each after the L2 cache has been overwritten."""
    got = []
    for i in range(times):
        flush.zero_()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        launch(i)
        last.record()
        last.synchronize()
        got.append(1e-3 * first.elapsed_time(last))
        time.sleep(0.004)
    return got


def main():
    look, flop = look_of(), 4 * TOKENS // N * 2048 * N * N
    todo, errors = [], {}
    for D in (64, 128):
        sets = [Set(D, 1), Set(D, 2)]
        torch.cuda.synchronize()
        o, dq, dk, dv = reference(sets[0])
        s = sets[0]
        for variant in VARIANTS["forward", D]:
            s.out_o.zero_()
            s.forward(variant)
            torch.cuda.synchronize()
            errors["forward", D, variant] = {"o": far(s.out_o, o), "o_as_whole": bool(torch.equal(s.out_o, s.o))}
            todo.append(("forward", D, variant, lambda i, s=sets, v=variant: s[i % 2].forward(v)))
        for variant in VARIANTS["backward", D]:
            for x in (s.dq, s.dk, s.dv):
                x.zero_()
            s.backward(variant)
            torch.cuda.synchronize()
            errors["backward", D, variant] = {"dq": far(s.dq, dq), "dk": far(s.dk, dk), "dv": far(s.dv, dv)}
            if variant == "whole":
                kept = s.dq.clone()
            errors["backward", D, variant]["dq_as_whole"] = bool(torch.equal(kept, s.dq))
            todo.append(("backward", D, variant, lambda i, s=sets, v=variant: s[i % 2].backward(v)))
        print(D, {k[2] + " " + k[0]: v for k, v in errors.items() if k[1] == D}, flush=True)
        del o, dq, dk, dv, kept
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    got, single = {}, {}
    for turn in range(6):  # launch by launch: all in turn
        for at in todo if turn % 2 == 0 else reversed(todo):
            single.setdefault(at[:3], []).extend(singles(at[3], flush, 7)[2:])
    for turn in range(ROUNDS):
        for at in todo if turn % 2 == 0 else reversed(todo):
            got.setdefault(at[:3], []).append(alone(at[3], look))
    points = []
    for direction, D, variant, _ in todo:
        samples, key = got[direction, D, variant], (direction, D, variant)
        seconds = statistics.fmean(s[0] for s in samples)
        one = statistics.median(single[key])
        point = {"direction": direction, "head_dim": D, "variant": variant, "seconds": round(seconds, 9), "one_launch": round(one, 9),
                 "sm_clock_mhz": round(statistics.fmean(s[1] or 0 for s in samples), 1),
                 "power_w": round(statistics.fmean(s[2] or 0 for s in samples), 1),
                 "joules": round(statistics.fmean((s[2] or 0) * s[0] for s in samples), 5),
                 "flop": flop * (2.5 if direction == "backward" else 1),
                 "samples": [[round(s[0], 9), s[1] and round(s[1], 1), s[2] and round(s[2], 1), s[3]] for s in samples],
                 "launches": [round(x, 9) for x in single[key]],
                 "error": {k: v if isinstance(v, bool) else float(f"{v:.3g}") if math.isfinite(v) else None for k, v in errors[key].items()}}
        points.append(point)
        whole = next(p for p in points if (p["direction"], p["head_dim"], p["variant"]) == (direction, D, "whole"))
        print(f"{direction:9}{D:5} {variant:9}{seconds * 1e3:8.4f} ms ({whole['seconds'] / seconds:.3f}x) {point['sm_clock_mhz']:7.1f} MHz {point['power_w']:6.1f} W"
              f"{point['joules'] * 1e3:9.1f} mJ  one launch {one * 1e3:8.4f} ms ({whole['one_launch'] / one:.3f}x)  {point['error']}", flush=True)
    context = {"gpu": torch.cuda.get_device_name(0), "date": time.strftime("%Y-%m-%d"), "commit": sys.argv[3] if len(sys.argv) > 3 else None,
               "problem": f"{TOKENS} tokens, N = {N}, H * D = 2048, bf16, no mask; copies of chapter 10's kernels, each with one change",
               "timing": f"seconds: back to back, each alone for {SECONDS} s, {ROUNDS} times, after {SETTLING} s, clock and energy by NVML; "
                         "one_launch: the median of 30, each after the L2 cache was overwritten",
               "variants": {"early": "turns, passed on when the products have started", "late": "turns, passed on when S is there",
                            "regs152": "152 registers for each thread of a consumer, not 160",
                            "regs224": "224 and not 240", "regs232": "232 and not 240",
                            "split": "one pair of mbarriers for Q with LSE, another for dO with delta",
                            "columns": "LSE and delta as columns of the products S and dP: eight further columns of Q and dO, each in three bf16 parts",
                            "no_stats": "the same LSE and delta everywhere (wrong): what a kernel without these loads could gain at most",
                            "apart": "dQ of a tile is made with dV and dK of the next one",
                            "no_ds": "dS is not written to shared memory (wrong dQ): what a layout that spares this could gain at most"}}
    Path(sys.argv[1]).write_text(json.dumps({"context": context, "points": points}, indent=1) + "\n")


main()
