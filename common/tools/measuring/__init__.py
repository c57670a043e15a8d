"""Taking measurements: of chapters, beside peers, under the profiler and on the engine that counts; and all of them in pieces."""

from tools.measuring import accuracy, agreement, asked, engine, ncu, peers, pieces, profile, session
from tools.measuring.program import measure
