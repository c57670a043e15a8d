"""Times what a call costs the CPU: the package's attention() beside PyTorch's, on a problem too small for a GPU.

    python3 -m tools.measuring.overhead_main '{"calls": 2000, "commit": "..."}' OUT

Candidates take turns, call by call, and the GPU is idle when a call begins. OUT is JSON: context and problem as in the
report of tools/measuring/peers.py; sdpa, the backend that PyTorch chooses where nobody does; and modes, {mode:
{candidate: {returned, done, ratio}}}. `returned` is the time until the call has returned, `done` until the GPU has
finished what it enqueued, in seconds (median, p10, p90, min, max); `ratio` is PyTorch's choice / candidate, of the
medians of `returned`: above 1 is less time.
"""

import contextlib
import functools
import gc
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from tools.base import JsonObject
from tools.measuring import peers_main
from tools.measuring.launches import percentiles

PROBLEM = {"batch": 1, "heads": 4, "kv_heads": 4, "seq_q": 128, "seq_k": 128, "head_dim": 64, "dtype": "fp16",
           "causal": True}
CHOSEN = "SDPA"  # by PyTorch


def candidates(workbook: ModuleType) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """{name: (function of q, k and v, the mode of PyTorch in which it is called)}"""
    pytorchs = functools.partial(F.scaled_dot_product_attention, is_causal=True)
    return {"workbook": (functools.partial(workbook.attention, causal=True), contextlib.nullcontext),
            CHOSEN: (pytorchs, contextlib.nullcontext),
            "FLASH": (pytorchs, functools.partial(sdpa_kernel, SDPBackend.FLASH_ATTENTION))}


def modes(inputs: list[torch.Tensor], d_o: torch.Tensor) -> dict[str, Callable[..., Any]]:
    """{mode: what it makes of a candidate: a call without arguments}"""
    learning = [tensor.clone().requires_grad_() for tensor in inputs]

    def forward(attend):
        def call():
            with torch.no_grad():
                attend(*inputs)
        return call

    def forward_and_backward(attend):
        return lambda: torch.autograd.grad(attend(*learning), learning, d_o)

    def compiled(make):
        return lambda attend: make(torch.compile(lambda q, k, v: attend(q, k, v), fullgraph=True, dynamic=False))

    return {"forward": forward, "forward and backward": forward_and_backward, "compiled forward": compiled(forward),
            "compiled forward and backward": compiled(forward_and_backward)}


def in_turn(calls: dict[str, tuple[Callable[..., Any], Callable[..., Any]]],
            count: int) -> dict[str, tuple[dict[str, float], ...]]:
    """{name: (seconds until it returned, seconds until the GPU was done), as percentiles}, of {name: (call, mode)}."""
    samples: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in calls}
    gc.disable()
    for turn in range(-100, count):  # the first ones warm up
        for name, (call, mode) in calls.items():
            with mode():
                torch.cuda.synchronize()
                begin = time.perf_counter()
                call()
                returned = time.perf_counter()
                torch.cuda.synchronize()
                done = time.perf_counter()
            if turn >= 0:
                samples[name][0].append(returned - begin)
                samples[name][1].append(done - begin)
    gc.enable()
    return {name: tuple(map(percentiles, both)) for name, both in samples.items()}


def compared(times: dict[str, tuple[dict[str, float], ...]]) -> JsonObject:
    return {name: {"returned": returned, "done": done, "ratio": times[CHOSEN][0]["median"] / returned["median"]}
            for name, (returned, done) in times.items()}


def run(request: JsonObject) -> JsonObject:
    workbook = peers_main.the_workbook("overhead")
    shape = [PROBLEM[axis] for axis in ("batch", "heads", "seq_q", "head_dim")]
    *inputs, d_o = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(4))
    context = {**peers_main.context(request),
               "time": "the CPU's clock around each call, the GPU idle before it, candidates in turn"}
    report = {"context": context, "problem": PROBLEM,
              "sdpa": SDPBackend(torch._fused_sdp_choice(*inputs, is_causal=True)).name, "calls": request["calls"],
              "modes": {}}
    for mode, made in modes(inputs, d_o).items():
        print(f"progress\t{mode}")
        times = in_turn({name: (made(attend), within) for name, (attend, within) in candidates(workbook).items()},
                        request["calls"])
        report["modes"][mode] = compared(times)
    return report


if __name__ == "__main__":
    sys.exit(peers_main.main(sys.argv[1:], run))
