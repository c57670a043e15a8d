"""What the SIMT engine counts of every kernel, as common/tests/trace records it and `NN.trace.counts` checks it.

All of one problem: B=1, H=2, N=256, D=64, fp16, no mask. ./workbook dev counts writes the files.
"""

import re
from pathlib import Path

from tools.base import COUNTS
from tools.record import result_files
from tools.record.measurements import Missing

LaunchCounts = tuple[str, dict[str, int]]  # (kernel, {what: count})


class Counts:
    PROBLEM = "N=256 B=1 H=2 D=64 fp16 full"

    def __init__(self, directory: Path = COUNTS):
        self._directory = directory
        self._chapters: dict[str, dict[tuple[str, str], list[LaunchCounts]]] = {}

    def _chapter(self, number: str) -> dict[tuple[str, str], list[LaunchCounts]]:
        """{(direction, rung): launches}, the rungs in order. A chapter with only one direction does not name it."""
        if number not in self._chapters:
            self._chapters[number] = self._read(number)
        return self._chapters[number]

    def _read(self, number: str) -> dict[tuple[str, str], list[LaunchCounts]]:
        found: dict[tuple[str, str], list[LaunchCounts]] = {}
        for path in self._directory.glob(f"{number}_*.json"):
            report = result_files.read(path) or {}
            both = any(", backward: " in title for title in report)
            for title, counts in report.items():
                ((rung, backward, kernel),) = re.findall(r"^(.*?)(, backward)?: (.*), launch \d+$", title)
                direction = "backward" if backward else "forward" if both else ""
                own = report[counts] if isinstance(counts, str) else counts  # the name of a launch that counts the same
                numbers = {what: count for what, count in own.items() if isinstance(count, int)}
                found.setdefault((direction, rung), []).append((kernel, numbers))
        return found

    def launches(self, step: str, direction: "str | None" = None) -> list[LaunchCounts]:
        """The launches of "06/mma", or of the last rung of "06"; the forward's if it has both."""
        number, _, rung = step.partition("/")
        every = self._chapter(number.partition("_")[0])
        rungs = {name: launches for (one, name), launches in every.items() if one in ("", direction or "forward")}
        if not rungs or rung and rung not in rungs:
            raise Missing(f"{step}{f', {direction},' if direction else ''} has not been counted: ./workbook dev counts "
                          f"{number} does")
        return rungs[rung] if rung else list(rungs.values())[-1]

    def sum(self, step: str, what: str, kernel: str = "", direction: "str | None" = None) -> int:
        """Over all launches of the step, or over those of the kernels whose names contain `kernel`."""
        chosen = [counts for name, counts in self.launches(step, direction) if kernel in name]
        known = sorted({one for counts in chosen for one in counts})
        if what not in known:
            raise Missing(f"{step} counts no {what}{f' in {kernel}' if kernel else ''} (it counts "
                          f"{', '.join(known) or 'nothing'})")
        return sum(counts.get(what, 0) for counts in chosen)
