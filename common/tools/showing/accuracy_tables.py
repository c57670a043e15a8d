"""How far from fp64: what ./workbook dev accuracy prints about what tools/measuring/accuracy.py has measured."""

import re

from tools.base import table
from tools.record import Problem


def table_of_ratios(worst: dict) -> str:
    """A line for each rung: its largest ratios. `worst`: {(name, tensor): (ratio, problem)}."""
    tensors = ("o", "dq", "dk", "dv")
    names = dict.fromkeys(name for name, _ in worst)
    rows = [["", *tensors]]
    for name in names:
        cells = [worst.get((name, tensor)) for tensor in tensors]
        rows.append([name, *("" if cell is None else "?" if cell[0] is None else f"{cell[0]:.3f}" for cell in cells)])
    return table(rows)


def remarks(report: dict) -> list:
    """Why anything is missing."""
    lines = [f"{name} is not here: {why}" for name, why in report["absent"].items()]
    reasons = {}
    for one in report["errors"]:
        for result in one["results"]:
            if "skipped" in result:
                # The same reason with another number in it is the same reason.
                key = result["name"], re.sub(r"[\d.e+-]+", "#", result["skipped"])
                reasons.setdefault(key, (result["skipped"], []))[1].append(Problem(**one["problem"]).seq_k)
    for (name, _), (why, keys) in reasons.items():
        lines.append(f"{name} skipped at Nk={', '.join(map(str, dict.fromkeys(keys)))}: {why}")
    return lines
