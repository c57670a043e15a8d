"""The sweep of models: attention as models ask for it. What is measured, and about how long that takes.

A point is a problem in one direction. Training has both; a chunk of queries on the keys before it is forward alone.
FlashAttention-4 compiles for seconds for each class of problems: heads per kv head, D, dtype and mask. So a sweep has
few classes, and its chunks are of the classes that training has.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from tools.measuring.launches import ALONE, SLICE, launches, launches_in_a_burst
from tools.record import Problem, read_label

# Among them are the shapes of NVIDIA's own table of cuDNN: bf16, D = 128, 64 heads on 8, B = 1.
TRAINING = """
    B1_H64_Hkv8_N512_D128_bf16_causal    B1_H64_Hkv8_N2048_D128_bf16_causal   B1_H64_Hkv8_N8192_D128_bf16_causal
    B1_H64_Hkv8_N16384_D128_bf16_causal  B1_H64_Hkv8_N32768_D128_bf16_causal  B1_H64_Hkv8_N1024_D128_bf16_full
    B1_H64_Hkv8_N4096_D128_bf16_full     B1_H64_Hkv8_N16384_D128_bf16_full    B1_H64_Hkv8_N32768_D128_bf16_full
    B1_H32_Hkv8_N512_D128_bf16_causal    B1_H32_Hkv8_N2048_D128_bf16_causal   B2_H32_Hkv8_N4096_D128_bf16_causal
    B8_H32_Hkv8_N1024_D128_bf16_causal   B1_H32_Hkv8_N512_D128_bf16_full      B1_H32_Hkv8_N2048_D128_bf16_full
    B8_H40_N256_D128_fp16_causal         B1_H40_N4096_D128_fp16_causal
    B1_H28_Hkv4_N1024_D128_bf16_causal   B2_H28_Hkv4_N8192_D128_bf16_causal
    B1_H16_Hkv1_N2048_D256_bf16_causal   B1_H16_Hkv1_N8192_D256_bf16_causal
    B1_H32_Hkv8_N512_D64_fp16_causal     B4_H32_Hkv8_N2048_D64_fp16_causal
    B1_H32_Hkv8_N4096_D192_bf16_causal
"""
CHUNKS = """
    B1_H32_Hkv8_Nq16_Nk32768_D128_bf16_full     B1_H32_Hkv8_Nq64_Nk32768_D128_bf16_full
    B1_H32_Hkv8_Nq256_Nk32768_D128_bf16_full    B1_H32_Hkv8_Nq1024_Nk32768_D128_bf16_full
    B1_H32_Hkv8_Nq1_Nk131072_D128_bf16_causal   B1_H32_Hkv8_Nq128_Nk16384_D128_bf16_causal
    B1_H32_Hkv8_Nq2048_Nk4096_D128_bf16_causal  B1_H32_Hkv8_Nq4096_Nk131072_D128_bf16_causal
    B1_H64_Hkv8_Nq4_Nk65536_D128_bf16_causal    B1_H64_Hkv8_Nq512_Nk32768_D128_bf16_causal
    B1_H64_Hkv8_Nq4096_Nk32768_D128_bf16_causal
    B8_H28_Hkv4_Nq1_Nk4096_D128_bf16_causal     B1_H28_Hkv4_Nq256_Nk8192_D128_bf16_causal
    B1_H16_Hkv1_Nq64_Nk16384_D256_bf16_causal
    B4_H32_Hkv8_Nq16_Nk8192_D64_fp16_causal     B1_H32_Hkv8_Nq1024_Nk65536_D64_fp16_causal
"""

MOST_POINTS, MOST_SECONDS = 64, 480.0
WITHIN = 450.0  # begins no point later than that, so that the last one is done in time
PATIENCE = 2.0  # as --patience, of these sweeps: FlashAttention-2's longest backward takes a third of a second
PEERS = ("FLASH", "FLASH-deterministic", "CUDNN", "FA3", "FA4", "FA4-deterministic")  # MATH would take the most time

# Our kernels that may be the one that runs where no chapter is named: of these chapters the rungs from this one on, in
# the library's order. A chapter that is not last is asked about short launches and few queries only.
OWN = {"08_causal_earlystop": "balanced", "10_hopper": "narrow", "11_split_kv": "tall"}
SHORT = 2e11  # work of a forward


def training() -> list[Problem]:
    return [read_label(label)[0] for label in TRAINING.split()]


def chunks() -> list[Problem]:
    return [read_label(label)[0] for label in CHUNKS.split()]


def directions(problem: Problem) -> tuple[str, ...]:
    return ("forward", "backward") if problem.seq_q == problem.seq_k else ("forward",)


# --- Drawn at random --------------------------------------------------------------------------------------------------

BATCHES, HEADS = range(1, 9), [(32, 8), (64, 8), (40, 40), (28, 4), (16, 1)]
HEAD_DIMS, DTYPES = [64, 128, 192, 256], ["bf16", "fp16"]
LENGTHS, CHUNK_QUERIES, CHUNK_KEYS = (256, 32768), (1, 4096), (4096, 131072)
CLASSES_OF_A_HEAD_DIM = 2
MOST_WORK = 1e13  # of one of them
TRIES = 1000


def drawn(points: int, seed: int) -> list[Problem]:
    """Problems from the same space, so many that they have this many points, or as many as fit the time."""
    numbers = random.Random(seed)
    classes = [(numbers.choice(HEADS), head_dim, numbers.choice(DTYPES), numbers.random() < 0.7)
               for head_dim in HEAD_DIMS for _ in range(CLASSES_OF_A_HEAD_DIM)]
    found: list[Problem] = []
    for _ in range(TRIES):
        left = points - len(with_directions(found))
        if left <= 0:
            break
        (heads, kv_heads), head_dim, dtype, causal = numbers.choice(classes)
        seq_q, seq_k = _length(numbers, *CHUNK_QUERIES), _length(numbers, *CHUNK_KEYS)
        if left > 1 and numbers.random() < 0.6:  # training, which is two points
            seq_q = seq_k = _length(numbers, *LENGTHS)
        problem = Problem(numbers.choice(BATCHES), heads, kv_heads, seq_q, seq_k, head_dim, dtype, causal)
        fits = seq_q <= seq_k and problem not in found and work(problem, "forward") <= MOST_WORK
        if fits and expected_seconds([*found, problem]) <= MOST_SECONDS:
            found.append(problem)
    return found


def _length(numbers: random.Random, least: int, most: int) -> int:
    """Evenly on a scale of logarithms; half of them whole tiles, others anything."""
    length = round(math.exp(numbers.uniform(math.log(least), math.log(most))))
    return max(least, length - length % 128) if numbers.random() < 0.5 else length


# --- Ours -------------------------------------------------------------------------------------------------------------


def own_rungs(book: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """[(chapter, rung)] of the library's {chapter: {rung: what it has}}."""
    found = []
    for chapter, first in OWN.items():
        rungs = list(book.get(chapter, {}))
        found += [(chapter, rung) for rung in rungs[rungs.index(first) if first in rungs else 0:]]
    return found


def not_asked(chapter: str, general: bool, problem: Problem) -> "str | None":
    """Why one of our rungs is left out at a problem; None if it is not."""
    last = [name for name in OWN if name != "11_split_kv"][-1]
    if chapter == last or work(problem, "forward") <= SHORT or not general and problem.seq_q < problem.seq_k:
        return None
    return "it is asked about short launches only" if general else "it is asked about few queries, or short launches"


# --- How long it takes ------------------------------------------------------------------------------------------------

# What the times of an H200 amount to, rounded up: of a candidate in the middle between cuDNN and FlashAttention-2.
RATES = {"forward": 380e12, "backward": 270e12}
SHORTEST = 20e-6  # of a launch
BETWEEN = 0.5e-3  # of a launch: the flush before it, and the CPU
OF_A_CANDIDATE = {"forward": 0.06, "backward": 0.12}  # of a candidate at a point: making it ready, and its check
CANDIDATES = {"forward": 7, "backward": 9}
CHECKING = 5e-10  # a score of the heads whose gradients are compared, in fp64
COMPILING = 2.5  # one kernel of FlashAttention-4; of a class: forward, forward for training, and two backwards
STARTING = 20.0  # PyTorch, the ceilings


def work(problem: Problem, direction: str) -> float:
    """Floating-point operations that no mask hides."""
    whole = 4.0 * problem.batch * problem.heads * problem.seq_q * problem.seq_k * problem.head_dim
    hidden = 2 if problem.causal and problem.seq_q == problem.seq_k else 1
    return whole / hidden * (2.5 if direction == "backward" else 1)


def fa4_class(problem: Problem) -> tuple[object, ...]:
    return problem.heads // problem.kv_heads, problem.head_dim, problem.dtype, problem.causal


def with_directions(problems: list[Problem], wanted: Sequence[str] = ("forward", "backward")
                    ) -> list[tuple[Problem, str]]:
    """The points, the quick ones first: when time runs out, the long ones are missing."""
    points = [(problem, direction) for problem in problems for direction in directions(problem) if direction in wanted]
    return sorted(points, key=lambda point: work(*point))


def point_seconds(problem: Problem, direction: str, rounds: "int | None" = None) -> float:
    """rounds: of slices, back to back."""
    seconds = SHORTEST + work(problem, direction) / RATES[direction]
    count = 6 if rounds else launches(seconds, PATIENCE) + 6  # to check, to warm up
    each = count * (seconds + BETWEEN) + OF_A_CANDIDATE[direction]
    if rounds:
        burst = launches_in_a_burst(seconds) * seconds
        each += 2 * burst + rounds * max(SLICE, burst) + max(ALONE, burst)
    scores = min(2.0**34, problem.batch * problem.heads * problem.seq_q * problem.seq_k) * (direction == "backward")
    return CANDIDATES[direction] * each + scores * CHECKING


def compilations(problems: list[Problem], wanted: Sequence[str] = ("forward", "backward")) -> int:
    kernels = {"forward": ("forward",), "backward": ("training", "backward", "deterministic")}
    return len({(fa4_class(problem), kernel) for problem, direction in with_directions(problems, wanted)
                for kernel in kernels[direction]})


def expected_seconds(problems: list[Problem], rounds: "int | None" = None,
                     wanted: Sequence[str] = ("forward", "backward")) -> float:
    """Of a whole sweep, with the fast peers and ours that may be the default, on an H200."""
    return (STARTING + sum(point_seconds(*point, rounds) for point in with_directions(problems, wanted))
            + COMPILING * compilations(problems, wanted))
