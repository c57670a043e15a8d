"""Taking measurements: of chapters, beside peers, under the profiler, and all of them in pieces."""

from tools.measuring import asked, ncu, peers, pieces, profile, session
from tools.measuring.program import measure
