"""The results of common/python/examples/gpt.py: losses and speeds of a small GPT, by the attention it trained with."""

import statistics

from tools.base import JsonObject, NotUnderstood
from tools.record.measurements import Missing, Record

FILE = "2026-11-23-gpt.json"
PYTORCHS = "scaled_dot_product_attention"


class Training:
    """Runs with the same positions are compared with the first of them that has PyTorch's attention."""

    @staticmethod
    def of(record: Record, file: str = FILE) -> "Training":
        return Training(record.file(file))

    def __init__(self, report: JsonObject):
        self.model = report["model"]
        self._runs = {run["name"]: run for run in report["runs"]}

    def names(self, positions: "str | None" = None) -> list[str]:
        return [name for name, run in self._runs.items() if positions in (None, run["positions"])]

    def positions(self) -> list[str]:
        return list(dict.fromkeys(run["positions"] for run in self._runs.values()))

    def pytorchs(self, name: str) -> "str | None":
        """The run that this one is compared with, if there is one."""
        positions = self._run(name)["positions"]
        return next((other for other in self.names(positions) if self._runs[other]["attention"] == PYTORCHS), None)

    def validation(self, name: str) -> dict[int, float]:
        """{step: loss}"""
        found = self._run(name)["validation"]
        return dict(zip(found["steps"], found["losses"]))

    def apart(self, name: str) -> dict[int, float]:
        """{step: how much larger the validation loss is than that with PyTorch's attention}"""
        other = self.pytorchs(name)
        expected = self.validation(other) if other else {}
        return {step: loss - expected[step] for step, loss in self.validation(name).items() if step in expected}

    def value(self, name: str, what: str) -> float:
        """"loss": of the last validation; "apart", "most_apart": the mean and the largest distance from PyTorch's
        validation losses; "tokens_per_second"; "speed": as a multiple of PyTorch's."""
        if what == "loss":
            return list(self.validation(name).values())[-1]
        if what == "tokens_per_second":
            return self._run(name)["tokens_per_second"]
        if what not in ("apart", "most_apart", "speed"):
            raise NotUnderstood(f"there is no {what} of a run: there are loss, apart, most_apart, tokens_per_second "
                                "and speed")
        other = self.pytorchs(name)
        if other is None:
            raise Missing(f"{FILE} has no run with PyTorch's attention to compare {name} with")
        if what == "speed":
            return self._run(name)["tokens_per_second"] / self._run(other)["tokens_per_second"]
        distances = [abs(one) for one in self.apart(name).values()]
        return statistics.fmean(distances) if what == "apart" else max(distances)

    def _run(self, name: str) -> JsonObject:
        if name not in self._runs:
            raise Missing(f"{name} is no run of {FILE} (it has {', '.join(self._runs) or 'none'})")
        return self._runs[name]
