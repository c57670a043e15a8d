"""Taking measurements: of chapters, beside peers, under the profiler, on the engine that counts, all in pieces."""

from tools.measuring import (
    accuracy,
    agreement,
    documents,
    engine_counts,
    launches,
    model_sweep,
    ncu,
    nvml,
    peers,
    pieces,
    problem_flags,
    profile,
    session,
)
from tools.measuring.timing import Outcome, measure
