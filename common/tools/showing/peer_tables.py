"""Chapters beside peers: the tables and remarks about what tools/measuring/peers.py has measured."""

import re
import statistics

from tools.base import significant, table
from tools.record import Problem


def tables(report: dict) -> str:
    """One for each direction and each problem but its length: TFLOP/s, or microseconds where queries are few, and the ratio to FLASH
    below each chapter's."""
    groups, few_queries = {}, report["what"].startswith("decode")
    for point in report["points"]:
        problem = Problem(**point["problem"])
        same_but_length = ((problem.batch, problem.kv_heads, problem.head_dim) if few_queries else
                           (problem.heads, problem.head_dim) if report["what"].startswith("custom") else (problem.head_dim,))
        key = point["direction"], problem.causal, problem.dtype, bool(point.get("rope")), same_but_length
        groups.setdefault(key, []).append(point)
    blocks = []
    for (direction, causal, dtype, rope, _), points in groups.items():
        first, baseline = Problem(**points[0]["problem"]), points[0]["baseline"]
        title = f"{direction}, D={first.head_dim} {dtype} {'causal' if causal else 'full'}{' RoPE' if rope else ''}, TFLOP/s"
        if few_queries:
            title = f"{direction}, {first.without_length()}, us"
        rows = [[title, *(f"N={Problem(**point['problem']).length()}" for point in points)]]
        for number, result in enumerate(points[0]["results"]):
            column = [point["results"][number] for point in points]
            rows.append([f"  {result['name']}", *(_shown(one, few_queries) for one in column)])
            if result["name"] != baseline and any(one.get("ratio") for one in column):
                rows.append([f"    x {baseline}", *(f"{one['ratio']:.2f}" if one.get("ratio") else "-" for one in column)])
        blocks.append(table(rows))
    return "\n\n".join(blocks)


def _shown(result: dict, in_microseconds: bool) -> str:
    if "seconds" in result:
        return significant(result["seconds"]["median"] * 1e6 if in_microseconds else result["flop_rate"] * 1e-12)
    return "wrong" if "wrong" in result else "-"


def wrong_chapters(report: dict) -> list:
    """Names of those that were not right somewhere. Of a peer that is a remark: no chapter can mend it."""
    return sorted({result["name"] for point in report["points"] for result in point["results"]
                   if "wrong" in result and result["kind"] == "chapter"})


def remarks(report: dict) -> list:
    """The geometric means, how steady the times were, and why anything is missing."""
    lines = [f"{one['name']}, {one['direction']}: {one['geometric_mean']:.3f} x {one['baseline']} (geometric mean of "
             f"{one['points']} points, {one['lowest']:.2f} to {one['highest']:.2f})" for one in report["summary"]]
    widths = [(s["p90"] - s["p10"]) / s["median"] for point in report["points"] for result in point["results"]
              if "seconds" in result for s in [result["seconds"]]]
    if widths:
        lines.append(f"From the 10th to the 90th percentile of a point's launches: {100 * statistics.median(widths):.1f}% of "
                     f"the median in the middle, {100 * max(widths):.1f}% at most.")
    lines += [f"{name} is not here: {why}" for name, why in report["absent"].items()]
    reasons = {}
    for point in report["points"]:
        for result in point["results"]:
            why = result.get("skipped") or result.get("wrong")
            if why:
                # The same reason with another number in it is the same reason.
                key = (result["name"], "wrong" if "wrong" in result else "skipped", re.sub(r"[\d.e+-]+", "#", why))
                reasons.setdefault(key, (why, []))[1].append(Problem(**point["problem"]))
    for (name, verdict, _), (why, where) in reasons.items():
        at = ", ".join(dict.fromkeys(f"N={problem.length()}" for problem in where))
        lines.append(f"{name} {verdict} at {at}: {why}")
    return lines
