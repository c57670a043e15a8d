"""Chapters beside peers: the tables and remarks about what tools/measuring/peers.py has measured."""

import re
import statistics

from tools.base import JsonObject, significant, table
from tools.record import DEFAULT, Problem, beside_peers

# So begins `what` of a sweep whose points have each a shape of their own.
OF_MODELS = ("models", "random", "packed", "blocks")
# What the default is compared with there; and the head of the column.
AGAINST = ("FLASH", "CUDNN", "FA3", "FA4", "FA4-deterministic", "VARLEN", "NESTED", "NESTED-CUDNN", "FLEX",
           beside_peers.FASTEST_PEER, beside_peers.FASTEST_OWN)
HEADS = {beside_peers.FASTEST_PEER: "peers", beside_peers.FASTEST_OWN: "own"}


def tables(report: JsonObject) -> str:
    """One for each direction and each problem but its length: TFLOP/s, or microseconds where queries are few, and
    the ratio to FLASH below each chapter's."""
    if report["what"].startswith(OF_MODELS):
        return point_tables(report)
    groups: dict[tuple[object, ...], list[JsonObject]] = {}
    few_queries = report["what"].startswith("decode")
    for point in report["points"]:
        problem = Problem(**point["problem"])
        same_but_length = ((problem.batch, problem.kv_heads, problem.head_dim) if few_queries else
                           (problem.heads, problem.head_dim) if report["what"].startswith("custom")
                           else (problem.head_dim,))
        key = point["direction"], problem.causal, problem.dtype, bool(point.get("rope")), same_but_length
        groups.setdefault(key, []).append(point)
    blocks = []
    for (direction, causal, dtype, rope, _), points in groups.items():
        first, baseline = Problem(**points[0]["problem"]), points[0]["baseline"]
        title = (f"{direction}, D={first.head_dim} {dtype} {'causal' if causal else 'full'}{' RoPE' if rope else ''}, "
                 "TFLOP/s")
        if few_queries:
            title = f"{direction}, {first.without_length()}, us"
        rows = [[title, *(f"N={Problem(**point['problem']).length()}" for point in points)]]
        for number, result in enumerate(points[0]["results"]):
            column = [point["results"][number] for point in points]
            rows.append([f"  {result['name']}", *(_shown(one, few_queries) for one in column)])
            if result["name"] != baseline and any(one.get("ratio") for one in column):
                rows.append([f"    x {baseline}",
                             *(f"{one['ratio']:.2f}" if one.get("ratio") else "-" for one in column)])
        blocks.append(table(rows))
    return "\n\n".join(blocks)


def point_tables(report: JsonObject) -> str:
    """One for each direction, a line for each point: microseconds, and how many times faster the default is, or else
    the last of ours."""
    blocks = []
    for direction in dict.fromkeys(point["direction"] for point in report["points"]):
        points = [point for point in report["points"] if point["direction"] == direction]
        names = list(dict.fromkeys(result["name"] for point in points for result in point["results"]))
        ours = beside_peers.ours(points)
        against = _rivals(points, ours)
        heads = [f"x {HEADS.get(than) or _short(than)}" for than in against]
        rows = [[f"{direction}, us", *map(_short, names), *heads]]
        for point in sorted(points, key=lambda one: one["flops"]):
            results = {result["name"]: result for result in point["results"]}
            ratios = [beside_peers.faster(point, str(ours), than) for than in against]
            rows.append([f"  {_label(Problem(**point['problem']))}",
                         *(_shown(results[name], True) if name in results else "" for name in names),
                         *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)])
        blocks.append(table(rows))
    return "\n\n".join(blocks)


def comparisons(report: JsonObject) -> list[str]:
    """The default, or else the last of ours, against each peer, over all points of a direction."""
    lines = []
    for direction in dict.fromkeys(point["direction"] for point in report["points"]):
        points = [point for point in report["points"] if point["direction"] == direction]
        ours = beside_peers.ours(points)
        for than in _rivals(points, ours):
            found = beside_peers.compared(points, str(ours), than)
            if found:
                lines.append(f"{_short(str(ours))}, {direction}: {found.mean:.3f} x {than} (geometric mean of "
                             f"{found.points} points), at least {found.least:.2f} ({_label(found.least_at)}); behind "
                             f"at {found.behind}")
    return lines


def clocks(report: JsonObject) -> list[str]:
    """Of each candidate the mean clock and power over all points where NVML told them."""
    known: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for point in report["points"]:
        for result in point["results"]:
            if result.get("sm_clock_mhz") and result.get("power_w"):
                of_one = known.setdefault((result["name"], point["direction"]), [])
                of_one.append((result["sm_clock_mhz"], result["power_w"]))
    return [f"{_short(name)}, {direction}: {statistics.fmean(mhz):.0f} MHz, {statistics.fmean(watts):.0f} W (mean of "
            f"{len(mhz)} points)" for (name, direction), pairs in known.items() for mhz, watts in [zip(*pairs)]]


def errors(report: JsonObject) -> list[str]:
    """Of each candidate the largest error in the norm, where norms were taken."""
    known: dict[str, float] = {}
    for point in report["points"]:
        for result in point["results"]:
            if "norm" in result:
                known[result["name"]] = max(result["norm"], known.get(result["name"], 0))
    return [f"{_short(name)}: |o - exact| / |exact| is at most {norm:.2g}" for name, norm in known.items()]


def _rivals(points: list[JsonObject], ours: "str | None") -> list[str]:
    """Those of AGAINST, and other versions of cuDNN, that were timed where ours was."""
    names = {result["name"] for point in points for result in point["results"]}
    versions = sorted(name for name in names if name.startswith("CUDNN-"))
    known = [name for one in AGAINST for name in ([one, *versions] if one == "CUDNN" else [one])]
    return [than for than in known if ours and beside_peers.compared(points, ours, than)]


def _short(name: str) -> str:
    """10_hopper/narrow -> 10/narrow"""
    chapter, slash, rung = name.replace("-deterministic", "-det.").partition("/")
    return f"{chapter.split('_')[0]}/{rung}" if slash else name


def _label(problem: Problem) -> str:
    heads = f"{problem.heads}" + (f"/{problem.kv_heads}" if problem.kv_heads != problem.heads else "")
    return (f"B{problem.batch} H{heads} N{problem.length()} D{problem.head_dim} {problem.dtype} "
            f"{'causal' if problem.causal else 'full'}{' ' if problem.extras else ''}{problem.extras}")


def _shown(result: JsonObject, in_microseconds: bool) -> str:
    if "seconds" in result:
        return significant(result["seconds"]["median"] * 1e6 if in_microseconds else result["flop_rate"] * 1e-12)
    return "wrong" if "wrong" in result else "-"


def wrong_chapters(report: JsonObject) -> list[str]:
    """Names of those that were not right somewhere. Of a peer that is a remark: no chapter can mend it."""
    return sorted({result["name"] for point in report["points"] for result in point["results"]
                   if "wrong" in result and result["kind"] == "chapter"})


def remarks(report: JsonObject) -> list[str]:
    """The geometric means, how steady the times were, and why anything is missing."""
    of_models = report["what"].startswith(OF_MODELS)
    with_default = any(result["name"] == DEFAULT for point in report["points"] for result in point["results"])
    lines = [] if of_models else [
             f"{one['name']}, {one['direction']}: {one['geometric_mean']:.3f} x {one['baseline']} (geometric mean of "
             f"{one['points']} points, {one['lowest']:.2f} to {one['highest']:.2f})" for one in report["summary"]]
    lines += comparisons(report) if of_models or with_default else []
    lines += clocks(report) + errors(report)
    widths = [(s["p90"] - s["p10"]) / s["median"] for point in report["points"] for result in point["results"]
              if "seconds" in result for s in [result["seconds"]]]
    if widths:
        lines.append("From the 10th to the 90th percentile of a point's launches: "
                     f"{100 * statistics.median(widths):.1f}% of "
                     f"the median in the middle, {100 * max(widths):.1f}% at most.")
    lines += [f"{name} is not here: {why}" for name, why in report["absent"].items()]
    reasons: dict[tuple[str, str, str], tuple[str, list[Problem]]] = {}
    for point in report["points"]:
        for result in point["results"]:
            why = result.get("skipped") or result.get("wrong")
            if why:
                # The same reason with another number in it is the same reason.
                key = (result["name"], "wrong" if "wrong" in result else "skipped", re.sub(r"[\d.e+-]+", "#", why))
                reasons.setdefault(key, (why, []))[1].append(Problem(**point["problem"]))
    for (name, verdict, _), (why, where) in reasons.items():
        at = ", ".join(dict.fromkeys(_label(problem) if of_models else f"N={problem.length()}" for problem in where))
        if of_models and len(where) > 3:
            at = f"{len(where)} points"
        lines.append(f"{name} {verdict} at {at}: {why}")
    return lines
