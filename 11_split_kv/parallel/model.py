"""What the ring should take: its steps, from what one GPU computes, what the link carries and what DRAM moves.

    python3 11_split_kv/parallel/model.py > common/results/nvidia-h200/2026-11-23-11-ring-predicted.json

The rates are chapter 08's on one GPU: of short sequences from the recorded sweep, of long ones from the first measurement of the ring,
where two GPUs work without a pause and are limited by their power. That measurement also has how long exchanges take when nothing
else is done: NVLink 4 has 450 GB/s in each direction, and seven tenths of them are reached. Of a network of 400 Gb/s, which has 50,
four fifths are assumed.
"""

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "common" / "results" / "nvidia-h200"
HEADS, HEAD_DIM = 16, 128  # B = 1, fp16, causal
DRAM = 4.0e12  # bytes a second that a copy moves, read and write together
LINKS = {"NVLink": 0.7 * 450e9, "400 Gb/s": 0.8 * 50e9}
LATENCY = 45e-6  # seconds that an exchange takes beside its bytes
TAKEN = 32 / 132  # of the multiprocessors: the share that NCCL has while the bytes go over NVLink
LAUNCHES = 10e-6  # seconds between the kernels of a step
TILE, SLOTS = 128, {"forward": 264, "backward": 132}  # rows or keys of a thread block, and how many blocks an H200 has at a time
KERNELS = {"forward": 2, "backward": 4}  # of a step, one behind the other


def recorded(direction: str, rung: str) -> dict:
    """{(causal, rows): FLOP/s} of one GPU, in the sweep."""
    points = json.loads((RESULTS / f"sweep-fp16-{direction}.json").read_text())["points"]
    return {(point["problem"]["causal"], point["problem"]["seq_q"]): result["flop_rate"]
            for point in points if point["problem"]["head_dim"] == HEAD_DIM
            for result in point["results"] if result["name"] == rung}


def rates(direction: str, rung: str) -> dict:
    """The same; for long sequences the rate that two GPUs can keep up, which their power limits, with a mask or without."""
    kept_up = recorded(direction, rung)
    for one in json.loads((RESULTS / "2026-11-23-11-ring-first.json").read_text())["measured"]:
        if (one["series"], one.get("way"), one.get("direction")) == ("strong", "one", direction):
            for causal in (True, False):
                kept_up[causal, one["seq"]] = one["tflops"] * 1e12
    return kept_up


RATES = {"forward": rates("forward", "08_causal_earlystop/balanced"), "backward": rates("backward", "08_causal_earlystop/ordered")}
PRODUCTS = {"forward": 4, "backward": 10}  # FLOP for a score and an element of D


def rate(direction: str, causal: bool, rows: float) -> float:
    """FLOP/s of the longest known problem that is not longer than `rows`."""
    known = [length for is_causal, length in RATES[direction] if is_causal == causal]
    return RATES[direction][causal, max([one for one in known if one <= rows], default=min(known))]


def compute(direction: str, scores: float, causal: bool, rows: float) -> float:
    """Seconds that so many scores of each head take."""
    return HEADS * scores * PRODUCTS[direction] * HEAD_DIM / rate(direction, causal, rows)


def predict(direction: str, rows: int, ranks: int, link: float) -> dict:
    """Milliseconds of the ring and of its parts, on the rank that has most to do."""
    n = rows / ranks  # of a rank
    elements = n * HEADS * HEAD_DIM  # of one of its tensors
    one = compute(direction, rows * rows / 2, True, rows)
    own = compute(direction, n * n / 2, True, n)
    step = compute(direction, n * n / 2, False, n / 2)  # as many scores, without a mask
    back = direction == "backward"
    # Beside attention a step copies half of K and V, or of what belongs to the queries; more than two ranks have a sum of O or dQ;
    # and backward dK and dV are added to their sums. At the end the sums meet what the own keys have made.
    beside = ((4 if not back else 6) + (10 if ranks > 2 else 0) + (20 if back else 0)) * elements / DRAM + LAUNCHES
    join = ((8 if ranks > 2 else 6) + (16 if back else 0)) * elements / DRAM + LAUNCHES
    keys, sums = LATENCY + 4 * elements / link, LATENCY + 8 * elements / link  # two tensors in fp16; in fp32
    exchange = keys + (sums if back and ranks > 2 else 0)
    home = sums if back else 0
    # A multiprocessor is never idle while the own keys are left to compute with. But no step begins before its keys are there.
    sent = (4 * (ranks - 1) + (8 * (ranks - 1) if back else 0)) * elements
    taken = TAKEN * sent / LINKS["NVLink"]
    work = own + (ranks - 1) * (step + beside) + taken
    # And each of its kernels finds blocks of the own keys on all multiprocessors. It waits for half of one in the mean, until there
    # are none left.
    block = TILE * n / 2 * PRODUCTS[direction] * HEAD_DIM * SLOTS[direction] / rate(direction, True, n)  # the mean: half of the longest
    waits = min((ranks - 1) * KERNELS[direction] * block, max(0, own + taken - keys))
    chain = keys + (ranks - 2) * max(step + beside, exchange) + step + beside + waits + home
    total = max(work, chain) + join if ranks > 1 else one
    return {"direction": direction, "seq": rows, "ranks": ranks, "ms": 1e3 * total, "one_gpu_ms": 1e3 * one,
            "speedup": one / total, "own_ms": 1e3 * own, "step_ms": 1e3 * step, "exchange_ms": 1e3 * exchange,
            "beside_ms": 1e3 * beside, "home_ms": 1e3 * home, "join_ms": 1e3 * join, "taken_ms": 1e3 * taken,
            "waits_ms": 1e3 * waits, "chain_ms": 1e3 * chain}


def main() -> None:
    predicted = []
    for name, ranks in (("NVLink", 2), ("NVLink", 4), ("NVLink", 8), ("400 Gb/s", 64)):
        for direction in ("forward", "backward"):
            predicted += [{"link": name, **predict(direction, 8192 << i, ranks, LINKS[name])} for i in range(10)]
    print(json.dumps({"context": {"link_bytes_per_second": LINKS, "dram_bytes_per_second": DRAM, "latency_s": LATENCY, "taken": TAKEN,
                                  "launches_s": LAUNCHES, "heads": HEADS, "head_dim": HEAD_DIM},
                      "predicted": [{key: round(value, 4) if isinstance(value, float) else value for key, value in one.items()}
                                    for one in predicted]}, indent=0))


if __name__ == "__main__":
    main()
