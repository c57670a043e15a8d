"""Taking measurements: of chapters, beside peers, under the profiler and on the engine that counts; and all of them in pieces."""

from tools.measuring import accuracy, agreement, engine_counts, ncu, peers, pieces, problem_flags, profile, session
from tools.measuring.timing import measure
