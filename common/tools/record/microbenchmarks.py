"""What the experiments of common/microbenchmarks found, by name: "latency/shared", "latency/global/16384",
"bandwidth/L2", "branch/by_lane"."""

from tools.base import JsonObject
from tools.record import result_files
from tools.record.measurements import MACHINE, Missing, Record

# Where each memory's latency is read off: with so many bytes in use, global memory is served by it on every GPU that we
# know.
LATENCY = {"registers": "latency/registers", "shared": "latency/shared", "L1": "latency/global/16384",
           "L2": "latency/global/2097152", "DRAM": "latency/global/1073741824"}
LEVELS = tuple(LATENCY)


class Microbenchmarks:
    @staticmethod
    def of(record: Record) -> "Microbenchmarks":
        return Microbenchmarks(record.piece(MACHINE))

    def __init__(self, report: JsonObject):
        """From Google Benchmark's report: where runs were repeated, their medians."""
        runs, self._context = report.get("benchmarks", []), report.get("context", {})
        repeated = result_files.repetitions(runs)
        self._found = {run["name"].partition("/iterations:")[0]: run for run in runs
                       if run["name"] not in repeated and run.get("aggregate_name", "median") == "median"}

    def names(self, beginning: str) -> list[str]:
        return [name for name in self._found if name.startswith(beginning)]

    def value(self, experiment: str, what: str) -> float:
        """A counter: "ns" and "cycles" of a load, "bytes/s", "FLOP/s", "ms", "error", as the experiment has it."""
        found = self._found.get(experiment)
        if found is None:
            raise Missing(f"{experiment} is no experiment of machine.json (it has {', '.join(self._found) or 'none'})")
        if what not in found:
            raise Missing(f"{experiment} has no {what}")
        return found[what]

    def size(self, what: str) -> int:
        """Of the GPU, as its driver says it: "multiprocessors", "registers_of_multiprocessor", "l2_bytes", .."""
        if what not in self._context:
            raise Missing(f"machine.json does not say {what}")
        return int(self._context[what])
