"""Where the joules go: each variant alone on the GPU, back to back. python3 joules.py OUT [SECONDS]; PYTHONPATH is the
repository's `common`."""
import ctypes, json, math, statistics, subprocess, sys, time
from pathlib import Path
import torch
import torch.nn.functional as F
from tools.measuring.nvml import Nvml, Watching, mean_clock, mean_power

HERE = Path(__file__).parent
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
SETTLING, ROUNDS, TOKENS, N = 0.2, 2, 16384, 8192
lib = ctypes.CDLL(str(HERE / "joules.so"))
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


def main():
    look, flop, bare = look_of(), 4 * TOKENS // N * 2048 * N * N, lib.bare
    todo, errors = [], {}
    for D in (64, 128):
        sets, nothing = [Set(D, 1), Set(D, 2)], [Set(D, 0, zeros=True)] * 2
        torch.cuda.synchronize()
        o, dq, dk, dv = reference(sets[0])
        for variant in ("whole", "no_exp", "no_copies", "p_shared", "products"):
            sets[0].forward(variant)
            torch.cuda.synchronize()
            errors["forward", D, variant] = {"o": far(sets[0].out_o, o)}
            todo.append(("forward", D, variant, lambda i, s=sets, v=variant: s[i % 2].forward(v)))
        todo.append(("forward", D, "zeros", lambda i, s=nothing: s[0].forward("whole")))
        for variant in ("whole", "no_exp", "no_copies", "no_dq", "larger"):
            s = sets[0]
            s.dq.zero_()
            s.backward(variant)
            torch.cuda.synchronize()
            errors["backward", D, variant] = {"dq": far(s.dq, dq), "dk": far(s.dk, dk), "dv": far(s.dv, dv)}
            if variant == "whole":
                kept = s.dq.clone()
            errors["backward", D, variant]["dq_as_whole"] = bool(torch.equal(kept, s.dq))
            todo.append(("backward", D, variant, lambda i, s=sets, v=variant: s[i % 2].backward(v)))
        todo.append(("backward", D, "zeros", lambda i, s=nothing: s[0].backward("whole")))
        del o, dq, dk, dv, kept
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    data = {"bare": torch.randn(1 << 18, device="cuda").to(BF16), "bare_zeros": torch.zeros(1 << 18, device="cuda", dtype=BF16)}
    out = torch.zeros(1, device="cuda")
    for D in (64, 128):
        for direction, block in (("forward", 4 * 192 * (64 * 128 // D) * D), ("backward", 10 * 128 * (64 * 128 // D) * D)):
            # as many iterations as make the FLOP of the whole, on all multiprocessors
            iterations = round(flop * (2.5 if direction == "backward" else 1) / (blocks * block))
            for kind in ("bare", "bare_zeros"):
                if direction == "backward" and kind == "bare_zeros":
                    continue
                todo.append((direction, D, kind, lambda i, x=data[kind], n=iterations, b=direction == "backward", D=D: bare(
                    ctypes.c_bool(b), D, n, blocks, p(x), p(out), p(stream))))
    c = torch.empty(8192, 8192, device="cuda", dtype=BF16)
    for kind, make in (("cublas", torch.randn), ("cublas_zeros", torch.zeros)):
        a, b = (make(8192, 8192, device="cuda").to(BF16) for _ in range(2))
        todo.append(("product", 8192, kind, lambda i, a=a, b=b: torch.mm(a, b.t(), out=c)))
    got = {}
    for turn in range(ROUNDS):
        for at in todo if turn % 2 == 0 else reversed(todo):
            got.setdefault(at[:3], []).append(alone(at[3], look))
    points = []
    for direction, D, variant, _ in todo:
        samples = got[direction, D, variant]
        seconds = statistics.fmean(s[0] for s in samples)
        clock = statistics.fmean(s[1] or 0 for s in samples)
        power = statistics.fmean(s[2] or 0 for s in samples)
        point = {"direction": direction, "head_dim": D, "variant": variant, "seconds": round(seconds, 9),
                 "sm_clock_mhz": round(clock, 1), "power_w": round(power, 1),
                 "joules": round(statistics.fmean((s[2] or 0) * s[0] for s in samples), 5),
                 "flop": flop * (2.5 if direction == "backward" else 1),
                 "samples": [[round(s[0], 9), s[1] and round(s[1], 1), s[2] and round(s[2], 1), s[3]] for s in samples]}
        if (direction, D, variant) in errors:
            point["error"] = {k: v if isinstance(v, bool) else float(f"{v:.3g}") if math.isfinite(v) else None for k, v in errors[direction, D, variant].items()}
        points.append(point)
        print(f"{direction:9}{D:5} {variant:13}{seconds * 1e3:8.4f} ms {clock:7.1f} MHz {power:6.1f} W {point['joules'] * 1e3:8.1f} mJ  {point.get('error', '')}", flush=True)
    commit = sys.argv[3] if len(sys.argv) > 3 else None
    context = {"gpu": torch.cuda.get_device_name(0), "date": time.strftime("%Y-%m-%d"), "commit": commit,
               "problem": f"{TOKENS} tokens, N = {N}, H * D = 2048, bf16, no mask; copies of chapter 10's kernels with parts left out",
               "timing": f"back to back, each alone for {SECONDS} s, {ROUNDS} times, after {SETTLING} s; clock and energy by NVML",
               "variants": {"no_exp": "2^x by an addition and a shift", "no_copies": "the first tiles of K and V (backward: of Q and dO) every time",
                            "p_shared": "P from shared memory (D = 128: 3 stages)", "products": "no copies, no softmax: P of the first tile",
                            "zeros": "the whole kernel, on zeros", "no_dq": "dQ to shared memory, and no further",
                            "larger": "both consumers' parts of dQ with one reduction of 32 KB", "bare": "the products alone, numbers at random",
                            "cublas": "torch.mm of 8192 x 8192 x 8192: the FLOP of the forward"}}
    Path(sys.argv[1]).write_text(json.dumps({"context": context, "points": points}, indent=1) + "\n")


main()
