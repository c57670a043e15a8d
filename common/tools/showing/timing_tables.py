"""The tables of ours beside peers, timed in both ways, on each GPU that has a record."""

import statistics
from collections.abc import Iterator

from tools.base import JsonObject, significant
from tools.record import Missing, Problem, Record, beside_peers
from tools.showing.markdown import NOT_YET, markdown

WAYS = {"launch by launch": "", "back to back": beside_peers.B2B}
ALONE = "back to back, each alone"
FASTEST = {beside_peers.FASTEST_PEER: "the fastest peer", beside_peers.FASTEST_OWN: "the fastest rung of ours"}
NAMES = {"FLASH": "FlashAttention-2", "FLASH-deterministic": "FlashAttention-2, deterministic",
         "FA3": "FlashAttention-3", "FA4": "FlashAttention-4", "FA4-deterministic": "FlashAttention-4, deterministic",
         **FASTEST}


def records(record: Record) -> list[Record]:
    """This one, and those of other GPUs."""
    others = [path for path in sorted(record.directory.parent.iterdir())
              if path.is_dir() and path != record.directory and any(path.glob("[a-z]*.json"))]
    return [record, *map(Record, others)]


def sweeps(record: Record, direction: str) -> str:
    """FlashAttention's sweep: ours against each peer, and clock, power and energy of launches back to back."""
    pieces = [(f"sweep-{dtype}-{direction}", dtype) for dtype in ("fp16", "bf16")]
    return _compared(record, direction, pieces, ("CUDNN", "FA3", "FA4", "FA4-deterministic"))


def models(record: Record, direction: str) -> str:
    """The sweep of models, likewise."""
    return _compared(record, direction, [(f"models-{direction}", "")],
                     (beside_peers.FASTEST_PEER, "CUDNN", "FLASH", "FA4", "FA4-deterministic",
                      beside_peers.FASTEST_OWN))


def model_points(record: Record, direction: str) -> str:
    """Each point of the sweep of models: ours in both ways, and against the fastest peer, whose name stands there."""
    by_way = [_points(record, f"models-{direction}{suffix}", direction) for suffix in WAYS.values()]
    rows = [["", *(f"TFLOP/s, {way}" for way in WAYS), *(f"against the fastest peer, {way}" for way in WAYS),
             "MHz, back to back", "W", "mJ a launch"]]
    for problem in dict.fromkeys(Problem(**point["problem"]) for points in by_way for point in points):
        found = [next((one for one in points if Problem(**one["problem"]) == problem), None) for points in by_way]
        mine = [_result(point, beside_peers.ours(points)) for point, points in zip(found, by_way)]
        rows.append([_label(problem), *(significant(1e-12 * one["flop_rate"]) if one else "–" for one in mine),
                     *(_against_fastest(point, beside_peers.ours(points)) for point, points in zip(found, by_way)),
                     *(_number(mine[1], field, factor) for field, factor in
                       (("sm_clock_mhz", 1), ("power_w", 1), ("joules", 1e3)))])
    return markdown(rows)


def _compared(record: Record, direction: str, pieces: list[tuple[str, str]], rivals: tuple[str, ...]) -> str:
    lines = list(_lines(record, direction, pieces))
    there = {result["name"] for *_, points in lines for point in points for result in point["results"]}
    versions = sorted(name for name in there if name.startswith("CUDNN-"))
    columns = [name for rival in rivals for name in ([rival, *versions] if rival == "CUDNN" else [rival])
               if name in there or name in FASTEST]
    if not any(points for *_, points in lines):
        return NOT_YET
    rows = [[direction, *(f"against {_name(rival)}" for rival in columns), "MHz (cuDNN)", "W (cuDNN)",
             "joules, of cuDNN's"]]
    for title, points in lines:
        mine = beside_peers.ours(points)
        if mine is None:
            rows.append([f"{title}: not measured yet", *["–"] * (len(rows[0]) - 1)])
            continue
        clocks = [*(_with_cudnns(points, mine, field) for field in ("sm_clock_mhz", "power_w")), _energy(points, mine)]
        rows.append([title, *(_cell(points, mine, rival) for rival in columns),
                     *(clocks if title.endswith(ALONE) else ["–"] * len(clocks))])
    return markdown(rows)


def _lines(record: Record, direction: str, pieces: list[tuple[str, str]]) -> Iterator[tuple[str, list[JsonObject]]]:
    for one in records(record):
        for piece, what in pieces:
            for way, suffix in WAYS.items():
                points = _points(one, f"{piece}{suffix}", direction)
                alone = {ALONE: beside_peers.alone(points)} if suffix and points else {}
                for title, measured in {way: points, **alone}.items():
                    yield ", ".join(part for part in (_gpu(one), what, title) if part), measured


def _gpu(record: Record) -> str:
    try:
        return record.gpu.removeprefix("NVIDIA ")
    except Missing:
        return record.directory.name


def _points(record: Record, piece: str, direction: str) -> list[JsonObject]:
    """Those without RoPE; none where the piece is not there."""
    try:
        return [point for point in record.piece(piece)["points"]
                if point["direction"] == direction and not point.get("rope")]
    except Missing:
        return []


def _name(rival: str) -> str:
    return NAMES.get(rival) or rival.replace("CUDNN-", "cuDNN ").replace("CUDNN", "cuDNN")


def _cell(points: list[JsonObject], mine: str, rival: str) -> str:
    """1.10× (0.99 at least, behind at 2 of 24)"""
    found = beside_peers.compared(points, mine, rival)
    if not found:
        return "–"
    behind = f"behind at {found.behind} of {found.points}" if found.behind else f"{found.points} points"
    return f"{found.mean:.3f}× ({found.least:.2f} at least, {behind})"


def _result(point: "JsonObject | None", name: "str | None") -> "JsonObject | None":
    return next((one for one in point["results"] if one["name"] == name and "seconds" in one), None) if point else None


def _known(points: list[JsonObject], name: str, field: str) -> list[tuple[float, float]]:
    """(its value, cuDNN's) of the field, where both are known."""
    pairs = [(_result(point, name), _result(point, "CUDNN")) for point in points]
    return [(one[field], other[field]) for one, other in pairs
            if one and other and one.get(field) is not None and other.get(field) is not None]


def _with_cudnns(points: list[JsonObject], name: str, field: str) -> str:
    """The mean over all points where both are known: 1410 (1455)."""
    known = _known(points, name, field)
    return "{:.0f} ({:.0f})".format(*map(statistics.fmean, zip(*known))) if known else "–"


def _energy(points: list[JsonObject], name: str) -> str:
    known = _known(points, name, "joules")
    return f"{statistics.geometric_mean([mine / other for mine, other in known]):.3f}×" if known else "–"


def _against_fastest(point: "JsonObject | None", mine: "str | None") -> str:
    ratio = beside_peers.faster(point, mine, beside_peers.FASTEST_PEER) if point and mine else None
    if point is None or ratio is None:
        return "–"
    rivals = beside_peers.rivals(point, beside_peers.FASTEST_PEER)
    return f"{ratio:.2f}× ({_name(min(rivals, key=lambda name: rivals[name]))})"


def _number(result: "JsonObject | None", field: str, factor: float) -> str:
    value = result.get(field) if result else None
    return "–" if value is None else significant(factor * value)


def _label(problem: Problem) -> str:
    heads = f"{problem.heads}" + (f" on {problem.kv_heads}" if problem.kv_heads != problem.heads else "")
    return (f"{problem.dtype}, B = {problem.batch}, {heads} heads, D = {problem.head_dim}, N = "
            f"{problem.length().replace('x', ' × ')}, {'causal' if problem.causal else 'full'}")
