"""PyTorch's own context parallelism on the problems of 11_split_kv_ring --measure, one JSON a line on rank 0.

    torchrun --nproc-per-node 2 11_split_kv/parallel/pytorch.py --seconds 60 --out FILE
"""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, HEAD_DIM = 16, 128
BACKENDS = {"FLASH": SDPBackend.FLASH_ATTENTION, "CUDNN": SDPBackend.CUDNN_ATTENTION}


def milliseconds(call) -> float:
    """As the program measures: the slowest rank's median of rounds of several calls."""
    def round_of(calls: int) -> float:
        dist.barrier()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call()
        stop.record()
        stop.synchronize()
        slowest = torch.tensor([start.elapsed_time(stop) / calls], device="cuda")
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.item()

    round_of(1)
    once = round_of(1)
    if once > 500:
        return once
    calls = max(1, min(20, int(30 / once)))
    return statistics.median(round_of(calls) for _ in range(5))


def measure(mesh, n: int, backend: str, backward: bool) -> dict:
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, HEADS, n, HEAD_DIM, device="cuda", dtype=torch.float16) for _ in range(3))
    torch.cuda.reset_peak_memory_stats()
    with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]), sdpa_kernel(BACKENDS[backend]):
        if backward:
            for tensor in (q, k, v):
                tensor.requires_grad = True
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            d_o = torch.randn_like(o)
            ms = milliseconds(lambda: torch.autograd.grad(o, (q, k, v), d_o, retain_graph=True))
            for tensor in (q, k, v):
                tensor.requires_grad = False
        else:
            with torch.no_grad():
                ms = milliseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return {"series": "pytorch", "way": f"context_parallel+{backend}", "direction": "backward" if backward else "forward",
            "seq": n, "heads": HEADS, "head_dim": HEAD_DIM, "dtype": "fp16", "causal": True, "ranks": dist.get_world_size(),
            "ms": ms, "torch": torch.__version__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="that it may take")
    parser.add_argument("--out", required=True, help="the file that is written")
    arguments = parser.parse_args()
    begin = time.monotonic()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("cp",))
    measured = []
    for n in (8192, 16384, 32768, 65536, 131072, 262144, 524288):
        for backward in (False, True):
            for backend in BACKENDS:
                late = torch.tensor([float(time.monotonic() - begin > arguments.seconds)], device="cuda")
                dist.all_reduce(late, dist.ReduceOp.MAX)
                if late.item():
                    continue
                try:
                    record = measure(mesh, n, backend, backward)
                except Exception as error:  # what this PyTorch cannot do is part of the answer
                    record = {"series": "pytorch", "way": f"context_parallel+{backend}", "seq": n,
                              "direction": "backward" if backward else "forward", "error": str(error).splitlines()[0]}
                measured.append(record)
                if dist.get_rank() == 0:
                    print(json.dumps(record), flush=True)
                    with open(arguments.out, "w") as file:
                        json.dump({"measured": measured}, file, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
