"""The pictures: what is in each, as plain data that tools/showing/draw.py draws.

A picture is {title, note, kind, panels}; a panel {title, x, y, series}, perhaps with marks: [[x, text], ..], upright
lines with their names at the left; an axis {label, log}, perhaps with ticks: [[place, text], ..], and with from and to,
where it begins and ends; one of the series {name, color, style, x, y}. `color` is a chapter's index, a peer's name, or
a colour of the drawings (lesson_pictures/canvas.py) for what is neither.

Of the kind "steps" each of the series is one row with one x, its time, and `before`, the time of the step before. Of
the kind "spans" x and y are where bars begin and end, one row of them for each of the series; or for each `row` that
they name, and then a legend says what is of which colour.
"""

import contextlib
import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.base import GPUS, ROOT, Failure, JsonObject, amount_of_memory, significant, with_python_path
from tools.record import LENGTHS, Microbenchmarks, Missing, Quantities, Record, Training
from tools.showing.lesson_pictures import canvas
from tools.showing.lesson_tables import PEER_NAMES

ADDED_IN_NO_ORDER = ["07_backward/atomic", "08_causal_earlystop/balanced", "10_hopper/bulk"]
UNORDERED = {"forward": "", "backward": "; dotted: dQ added up in no order"}
# (on a light card, on a dark one). One colour a chapter, in every picture and on the site: neighbours lie 150 degrees
# of hue apart and differ in lightness, and each can be read as text on its card.
COLORS = [("#0465af", "#6fb6fe"), ("#be4a1b", "#eb7a52"), ("#0a726e", "#0dcbc3"), ("#af4791", "#da76bb"),
          ("#497106", "#91c456"), ("#5a5ac6", "#8d92f9"), ("#8a5601", "#ed9e2f"), ("#00799b", "#0cb0d4"),
          ("#aa2e4e", "#fe879c"), ("#0a7f53", "#23ba7d"), ("#7f42a6", "#ce94f8"), ("#7b6b02", "#b39f12"),
          ("#5d5300", "#c8b222")]
GREYS = [("#4d4d4d", "#c4c4c4"), ("#767676", "#9a9a9a"), ("#6b6b6b", "#a8a8a8"), ("#1f1f1f", "#e8e8e8"),
         ("#c9c5bb", "#4a4f57")]
PEERS = {"FLASH": 0, "FLASH-deterministic": 0, "CUDNN": 1, "FA3": 2, "FA4": 3, "FA4-deterministic": 3, "SDPA": 0,
         "SDPA, other seed": 1, "roof": 2, "wait": 4, "eager+FLASH": 1, "compiled+FLASH": 0}
RING, RING_PREDICTED = "2026-11-23-11-ring.json", "2026-11-23-11-ring-predicted.json"
RING_PYTORCH = "2026-11-23-11-ring-pytorch.json"
POSITIONS = {"learned": "learned positions", "rope": "RoPE"}
HOPPER_TIMELINE = "2026-11-23-10-timeline.json"
# What warps do there, and its colour.
DOES: dict[str, JsonObject] = {"wait": {"name": "waits", "color": "wait"},
                               "copy": {"name": "starts copies", "color": "green"},
                               "products": {"name": "products, and nothing else", "color": "blue"},
                               "x": {"name": "x, while P V runs", "color": "purple"},
                               "exp": {"name": "P", "color": "orange"}}
DIGITS = 6  # of the numbers in a picture: more than can be seen


def color(index: "int | str") -> tuple[str, str]:
    """(on a light card, on a dark one)"""
    if isinstance(index, int):
        return COLORS[index % len(COLORS)]
    return GREYS[PEERS[index]] if index in PEERS else canvas.COLORS.get(index, GREYS[1])[:2]


def all_pictures(record: Record) -> dict[str, JsonObject]:
    """name -> data; the note of each begins with the GPU."""
    pictures, found = Pictures(record), {}
    for name in [name for name in dir(pictures) if not name.startswith("_")]:
        data = _rounded(getattr(pictures, name)())
        with contextlib.suppress(Missing):  # without a GPU nothing has been measured, either
            data["note"] = "; ".join(filter(None, [record.gpu, data["note"]]))
        found[name.replace("_", "-")] = data
    return found


def own_pictures(record: Record, recorded: Record) -> dict[str, JsonObject]:
    """Of a ladder of the user's own GPU: its times beside the recorded ones, which are dashed."""
    found = {}
    for direction in ("forward", "backward"):
        series: list[JsonObject] = []
        for one, style in ((record, "solid"), (recorded, "dashed")):
            for step in record.results(direction):
                rows = sorted((row for row in one.rows if (row.source, row.step, row.direction)
                               == ("ladder", step, direction)), key=lambda row: row.problem.seq_q)
                rows = [row for row in rows if any(row.problem == mine.problem for mine in record.rows)]
                spreads = [row.seconds_from_to or (row.seconds, row.seconds) for row in rows]
                series.append({"name": step[:2] + (f", {one.gpu}" if one is recorded else ""), "color": _chapter(step),
                               "style": style, "x": [row.problem.seq_q for row in rows],
                               "y": [1e3 * row.seconds for row in rows],
                               "from": [1e3 * low for low, _ in spreads], "to": [1e3 * high for _, high in spreads]})
        if _present(series):
            lengths = sorted({n for one in series for n in one["x"]})
            found[f"time-{direction}"] = _rounded({
                "kind": "lines", "title": f"Time of the {direction}: {record.gpu}",
                "note": "the band: the fastest and the slowest repetition; both axes logarithmic",
                "panels": [{"title": "", "x": {"label": "N", "log": True, "ticks": _lengths(lengths)},
                            "y": {"label": "ms", "log": True}, "series": _present(series)}]})
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return {key: _rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


def fingerprint(data: JsonObject) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def fingerprint_in(path: Path) -> "str | None":
    """Of the data that a picture was made from."""
    try:
        found = re.search(r"<!-- data ([0-9a-f]{16}) -->", path.read_text())
    except FileNotFoundError:
        return None
    return found[1] if found else None


def run_matplotlib(python: "str | Path", module: str, wanted: JsonObject, directory: Path, *flags: str) -> None:
    """`module` is draw or share, `python` has matplotlib."""
    done = subprocess.run([python, "-B", "-m", f"tools.showing.{module}", directory, *flags], input=json.dumps(wanted),
                          text=True, capture_output=True, cwd=ROOT, env=with_python_path(ROOT / "common"))
    if done.returncode:
        raise Failure(f"drawing failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")


def draw(python: "str | Path", data_of: dict[str, JsonObject], directory: Path, *flags: str) -> None:
    """Writes these pictures, and deletes others; `python` has matplotlib."""
    wanted = {name: {"data": data, "fingerprint": fingerprint(data)} for name, data in data_of.items()}
    run_matplotlib(python, "draw", wanted, directory, *flags)
    for path in directory.glob("*.svg"):
        if path.stem.removesuffix(".narrow") not in wanted:
            path.unlink()


def stale(record: Record, directory: Path) -> list[str]:
    """The pictures that are missing, or are of other data."""
    return [name for name, data in all_pictures(record).items()
            if fingerprint_in(directory / f"{name}.svg") != fingerprint(data)]


def _lengths(values: list[int]) -> list[list[object]]:
    return [[n, f"{n // 1024}k" if n % 1024 == 0 else str(n)] for n in values]


def _chapter(step: str) -> "int | str":
    return int(step.split("_")[0]) - 1 if step[0].isdigit() else step


def _short(step: str) -> str:
    return PEER_NAMES.get(step, step.split("/")[0].replace("_", " ")).replace("FlashAttention-2, ",
                                                                              "FA-2, ").replace("FlashAttention-4, ",
                                                                                                "FA-4, ")


def _rung(step: str) -> str:
    """"07_backward/atomic" -> "07 atomic"."""
    return f"{step.split('_')[0]} {step.split('/')[1]}"


class Pictures:
    """Each public method is one."""

    def __init__(self, record: Record):
        self._record, self._of = record, Quantities(record)

    def _series(self, step: str, direction: str, lengths: list[int], value: Callable[[int], float], name: str = "",
                style: str = "") -> JsonObject:
        """value(n) for those lengths for which there is one."""
        x, y = [], []
        for n in lengths:
            try:
                found = value(n)
            except Missing:
                continue
            if found > 0:  # a difference of two times may be lost in their noise, and the axis be logarithmic
                x.append(n)
                y.append(found)
        style = style or ("solid" if step[0].isdigit() else "dashdot" if step.endswith("-deterministic") else "dashed")
        return {"name": name or _short(step), "color": _chapter(step), "style": style, "x": x, "y": y}

    def _unordered(self, direction: str, source: str) -> list[str]:
        """Of each chapter's backwards, the last that adds up dQ in no order."""
        measured = self._record.steps(direction, source) if direction == "backward" else []
        return [step for step in ADDED_IN_NO_ORDER if step in measured]

    def _time(self, direction: str) -> JsonObject:
        series = [self._series(step, direction, LENGTHS, lambda n: self._of.ms(step, n, direction))
                  for step in self._record.results(direction)]
        series += [self._series(step, direction, LENGTHS, lambda n: self._of.ms(step, n, direction), _rung(step),
                                "dotted")
                   for step in self._unordered(direction, "ladder")]
        series += [self._series(peer, direction, LENGTHS, lambda n: self._of.peer_ms(peer, n, direction))
                   for peer in self._record.peers(direction, "peers-ladder")]
        return {"kind": "lines", "title": f"Time of the {direction}",
                "note": "B=2 H=16 D=64 fp16 causal; both axes logarithmic" + UNORDERED[direction],
                "panels": [{"title": "", "x": {"label": "N", "log": True, "ticks": _lengths(LENGTHS)},
                            "y": {"label": "ms", "log": True}, "series": _present(series)}]}

    def time_forward(self):
        return self._time("forward")

    def time_backward(self):
        return self._time("backward")

    def _tflops(self, direction: str) -> JsonObject:
        lengths, panels, source = [*LENGTHS, 16384], [], f"sweep-fp16-{direction}"
        steps = [step for step in self._record.results(direction, source) if not self._record.rope(step)]
        unordered = self._unordered(direction, source)
        steps, slow, most = self._apart(steps, source, direction)
        for mask in ("full", "causal"):
            for head_dim in (64, 128):
                series = [self._series(step, direction, lengths,
                                       lambda n: self._of.tflops(step, n, head_dim, mask, "fp16", direction),
                                       *([_rung(step), "dotted"] if step in unordered else []))
                          for step in [*steps, *unordered, *self._record.peers(direction, source)]]
                panels.append({"title": f"{'no mask' if mask == 'full' else 'causal'}, D = {head_dim}",
                               "x": {"label": "N", "log": True, "ticks": _lengths(lengths)},
                               "y": {"label": "TFLOP/s", "log": False}, "series": _present(series)})
        return {"kind": "lines", "title": f"TFLOP/s of the {direction}",
                "note": "16k tokens, H·D = 2048, fp16" + UNORDERED[direction]
                        + (f"; left out: {' to '.join(dict.fromkeys([slow[0][:2], slow[-1][:2]]))}, at most "
                           f"{significant(most)} TFLOP/s" if slow else ""), "panels": panels}

    def _apart(self, steps: list[str], source: str, direction: str) -> tuple[list[str], list[str], float]:
        """(steps that can be told from zero beside the fastest, the others, the highest TFLOP/s of these)"""
        top = {step: max((1e-12 * row.flop_rate for row in self._record.rows
                          if (row.source, row.step, row.direction) == (source, step, direction)), default=0)
               for step in steps}
        slow = [step for step in steps if top[step] < 0.1 * max(top.values())]
        return [step for step in steps if step not in slow], slow, max((top[step] for step in slow), default=0)

    def tflops_forward(self):
        return self._tflops("forward")

    def tflops_backward(self):
        return self._tflops("backward")

    def memory(self):
        """Steps that need nearly the same are one line."""
        lengths = sorted({row.problem.seq_q for row in self._record.rows if row.source == "memory"})
        groups: list[tuple[str, JsonObject, list[str]]] = []  # [(direction, the first one's series, [steps])]
        for direction in ("forward", "backward"):
            for step in self._record.steps(direction, "memory"):
                one = self._series(step, direction, lengths, lambda n: float(self._of.device_bytes(step, n, direction)))
                for of, first, steps in groups:
                    if of == direction and one["x"] == first["x"] and all(
                            abs(a / b - 1) < 0.1 for a, b in zip(one["y"], first["y"])):
                        steps.append(step)
                        break
                else:
                    groups.append((direction, one, [step]))
        series = []
        for direction, first, steps in groups:
            names: dict[str, list[str]] = {}
            for step in steps:
                names.setdefault(step[:2], []).append(step.split("/")[1])
            alone = direction == "backward" and len(names) == 1
            text = " ".join([*names, ", ".join(*names.values())]) if alone else ", ".join(names)
            series.append({**first, "name": f"{text} ({direction})", "style": "solid" if direction == "forward"
                           else "dashed"})
        powers = [1 << i for i in range(20, 38, 2)]
        return {"kind": "lines", "title": "Device memory", "note": "B=1 H=8 D=64 fp16: inputs, results and workspace",
                "panels": [{"title": "", "x": {"label": "N", "log": True, "ticks": _lengths(lengths)},
                            "y": {"label": "", "log": True,
                                  "ticks": [[size, amount_of_memory(size)] for size in powers]},
                            "series": _present(series)}]}

    def roofline(self):
        """FLOP for a byte of DRAM, and FLOP/s, N = 4096."""
        points = []
        for direction in ("forward", "backward"):
            for step in self._record.results(direction):
                try:
                    points.append({"name": _short(step) if direction == "forward" else f"{_short(step)[:2]} backward",
                                   "color": _chapter(step), "style": "point" if direction == "forward" else "hollow",
                                   "x": [self._of.intensity(step, direction)],
                                   "y": [self._of.rate(step, 4096, direction)]})
                except Missing:
                    continue
        roofs = []
        try:
            copy, matmul = self._of.copy_tbytes(), self._of.matmul_tflops()
            scalar = next((1e-12 * gpu.fp32 for short, gpu in GPUS.items()
                           if short in self._record.directory.name.split("-")), None)
            for name, top in [(f"tensor cores: {matmul:.0f} TFLOP/s (a matrix product, measured)", matmul)] + (
                    [(f"fp32 without tensor cores: {scalar:.0f} TFLOP/s (data sheet)", scalar)] if scalar else []):
                roofs.append({"name": name, "color": "roof", "style": "roof", "x": [0.1, top / copy, 1e5],
                              "y": [0.1 * copy, top, top]})
            roofs[0]["slope"] = f"DRAM: {copy:.2f} TB/s (a copy, measured)"
        except Missing:
            pass
        return {"kind": "roofline", "title": "Roofline",
                "note": "B=2 H=16 N=4096 D=64 fp16 causal; DRAM bytes as Nsight Compute counts them",
                "panels": [{"title": "", "x": {"label": "FLOP for a byte of DRAM", "log": True},
                            "y": {"label": "TFLOP/s", "log": True}, "series": roofs + points if points else []}]}

    def _staircase(self, direction: str, steps: list[tuple[str, str]], title: str, peers: list[str]) -> JsonObject:
        """Of each (step, name): its time, from the time of the one before; then the peers."""
        n, series, before = 4096, [], None
        for step, name in steps:
            try:
                ms = self._of.ms(step, n, direction)
            except Missing:
                continue
            series.append({"name": name, "color": _chapter(step), "style": "point", "x": [ms], "y": [0],
                           "before": before or ms, "text": significant(ms),
                           "gain": f"{significant(before / ms)}×" if before else ""})
            before = ms
        for peer in peers if series else []:
            try:
                ms = self._of.peer_ms(peer, n, direction)
            except Missing:
                continue
            series.append({"name": _short(peer), "color": peer, "style": "point", "x": [ms], "y": [0], "before": ms,
                           "text": significant(ms)})
        return {"kind": "steps", "title": title,
                "note": f"B=2 H=16 N={n} D=64 fp16 causal; logarithmic: the length of a stair is the gain over the one "
                        "above it",
                "panels": [{"title": "", "x": {"label": "ms", "log": True}, "y": {"label": "", "log": False},
                            "series": series}]}

    def chapters_forward(self):
        """The results of the chapters without RoPE: the ladder at a glance."""
        steps = [(step, _short(step)) for step in self._record.results("forward") if not self._record.rope(step)]
        return self._staircase("forward", steps, "The forward, chapter by chapter",
                          self._record.peers("forward", "peers-ladder"))

    def _steps(self, direction: str) -> JsonObject:
        """Every rung on the way to the last one without RoPE."""
        steps, first = [], self._record.results("forward")[:1]
        for step in self._record.steps(direction):
            chapter = step.split("/")[0]
            if self._record.rope(step) or step not in first and chapter == first[0].split("/")[0]:
                continue  # the ladder begins with the first chapter's result
            steps.append((step, _short(step) if len(self._record.rungs(chapter, direction)) == 1 else _rung(step)))
        return self._staircase(direction, steps, f"Every step of the {direction}",
                          self._record.peers(direction, "peers-ladder"))

    def steps_forward(self):
        return self._steps("forward")

    def steps_backward(self):
        return self._steps("backward")

    def earlystop(self):
        """What leaving out hidden tiles gains over masking them: a claim about chapter 08."""
        panels = []
        for title, lengths, seconds in [
                ("B=2 H=16 D=64", LENGTHS, lambda step, n: self._of.peer_ms(step, n, "forward")),
                ("16k tokens, D = 128", [*LENGTHS, 16384],
                 lambda step, n: 1 / self._of.tflops(step, n, 128, "causal", "fp16", "forward"))]:
            rungs = self._record.rungs("08", "forward")
            series = [self._series(step, "forward", lengths, lambda n: seconds(rungs[0], n) / seconds(step, n),
                                   name=step.split("/")[1], style="solid" if step == rungs[-1] else "dotted")
                      for step in rungs[1:]]
            tiles = {"name": "tiles left to do", "color": "roof", "style": "dashed", "x": lengths,
                     "y": [2 * (n / 128) / (n / 128 + 1) for n in lengths]}
            panels.append({"title": title, "x": {"label": "N", "log": True, "ticks": _lengths(lengths)},
                           "y": {"label": "times as fast as masking", "log": False, "from": 1.0},
                           "series": _present(series) and [*_present(series), tiles]})
        return {"kind": "lines", "title": "Early stop against masking",
                "note": "forward, fp16, causal; dashed: by the number of tiles alone", "panels": panels}

    def rope(self):
        """What rotating Q and K adds to attention without it."""
        direction = "forward"
        steps = [step for step in self._record.steps(direction) if self._record.rope(step)]
        alone = [step for step in self._record.results(direction) if steps
                 and step.split("/")[0] < steps[0].split("/")[0]][-1:]
        of = self._of
        series = [self._series(peer, direction, LENGTHS,
                               lambda n: 1e3 * (of.peer_ms(peer, n, direction) - of.peer_ms("FLASH", n, direction)),
                               name=peer.split("+")[0] + ", then FA-2") for peer in ("eager+FLASH", "compiled+FLASH")]
        styles = ["dotted", "dashdot", "dashed"]
        series += [self._series(step, direction, LENGTHS,
                                lambda n: 1e3 * (of.peer_ms(step, n, direction) - of.peer_ms(alone[0], n, direction)),
                                name=step.split("/")[1], style="solid" if step == steps[-1] else styles[number % 3])
                   for number, step in enumerate(steps) if alone]
        return {"kind": "lines", "title": "The price of RoPE",
                "note": "µs more than the same attention without it; B=2 H=16 D=64 fp16 causal",
                "panels": [{"title": "", "x": {"label": "N", "log": True, "ticks": _lengths(LENGTHS)},
                            "y": {"label": "µs", "log": True}, "series": _present(series)}]}

    def latency(self):
        """Of a load, by how much memory is in use: where it is found."""
        try:
            of = Microbenchmarks.of(self._record)
            marks = [[of.size("shared_bytes_of_multiprocessor"), "L1 "], [of.size("l2_bytes"), "L2 "]]
        except Missing:
            of, marks = Microbenchmarks({}), []
        names = of.names("latency/global/")
        bytes_in_use = [int(name.rpartition("/")[2]) for name in names]
        chase = {"name": "global memory", "color": "blue", "style": "solid", "x": bytes_in_use,
                 "y": [of.value(name, "ns") for name in names]}
        others = [{"name": text, "color": color, "style": "dashed", "x": bytes_in_use[::len(names) - 1],
                   "y": [of.value(f"latency/{name}", "ns")] * 2}
                  for name, text, color in (("shared", "shared memory", "orange"),
                                              ("registers", "a multiply-add", "green"))
                  if len(names) > 1]
        sizes, times = [8192 << i for i in range(0, 18, 3)], [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
        return {"kind": "lines", "title": "Latency of a load",
                "note": "one thread follows a chain of addresses, one in every 128 bytes, in random order",
                "panels": [{"title": "", "x": {"label": "bytes in use", "log": True,
                                               "ticks": [[size, amount_of_memory(size).replace(".0 ", " ")]
                                                         for size in sizes]},
                            "y": {"label": "ns", "log": True, "ticks": [[ns, str(ns)] for ns in times]},
                            "marks": [*marks, [bytes_in_use[-1], "DRAM "]] if bytes_in_use else [],
                            "series": _present([chase, *others])}]}

    def _ring(self, file: str, part: str, **where: object) -> list[JsonObject]:
        """The entries of one of chapter 11's files that are like that; none if there is no such file."""
        try:
            entries = self._record.file(file)[part]
        except Missing:
            return []
        return [one for one in entries if all(one.get(key) == value for key, value in where.items())]

    def ring_speedup(self):
        """How many times as fast as one GPU two are, and what was predicted."""
        panels, lengths = [], [8192 << i for i in range(8)]
        for direction in ("forward", "backward"):
            measured = self._ring(RING, "measured", series="strong", direction=direction)
            one = {each["seq"]: each["ms"] for each in measured if each["way"] == "one"}
            series: list[JsonObject] = []

            def line(name: str, color: "int | str", style: str, entries: list[JsonObject]) -> None:
                points = [(each["seq"], one[each["seq"]] / each["ms"]) for each in entries if each["seq"] in one
                          and "ms" in each]
                series.append({"name": name, "color": color, "style": style, "x": [x for x, _ in points],
                               "y": [y for _, y in points]})

            line("ring", 10, "solid", [each for each in measured if each["way"] == "ring"])
            line("all-to-all", "orange", "solid", [each for each in measured if each["way"] == "all_to_all"])
            series.append({"name": "ring, predicted", "color": "roof", "style": "dashed", "x": [], "y": []})
            for each in self._ring(RING_PREDICTED, "predicted", direction=direction, ranks=2):
                if each["seq"] in one:
                    series[-1]["x"].append(each["seq"])
                    series[-1]["y"].append(each["speedup"])
            line("PyTorch, FLASH", "FLASH", "dashdot",
                 self._ring(RING_PYTORCH, "measured", direction=direction, way="context_parallel+FLASH"))
            panels.append({"title": direction, "x": {"label": "N", "log": True, "ticks": _lengths(lengths)},
                           "y": {"label": "times one GPU with chapter 08", "log": False}, "series": _present(series)})
        return {"kind": "lines", "title": "Two GPUs against one", "note": "B=1 H=16 D=128 fp16 causal",
                "panels": panels}

    def ring_scaling(self):
        """How many times as fast as one GPU several are: the model's curves, and what was measured."""
        panels, numbers = [], [1, 2, 4, 8]
        for direction in ("forward", "backward"):
            series = []
            for paint, rows in zip(("blue", "orange", "green", "purple"), (8192, 32768, 131072, 1048576)):
                name = f"N = {rows // 1024}k"
                modelled = {one["ranks"]: one["speedup"]
                            for one in self._ring(RING_PREDICTED, "predicted", link="NVLink", direction=direction,
                                                  seq=rows)}
                measured = {one["ranks"]: one["speedup"]
                            for one in self._ring(RING, "measured", series="strong", way="ring", direction=direction,
                                                  seq=rows)}
                if modelled:
                    series.append({"name": name, "color": paint, "style": "dashed", "x": [1, *modelled],
                                   "y": [1, *modelled.values()]})
                if measured:
                    series.append({"name": f"{name}, measured", "color": paint, "style": "point",
                                   "x": list(measured), "y": list(measured.values())})
            panels.append({"title": direction,
                           "x": {"label": "GPUs", "log": True, "ticks": [[n, str(n)] for n in numbers]},
                           "y": {"label": "times one GPU with chapter 08", "log": False}, "series": series})
        return {"kind": "lines", "title": "More GPUs",
                "note": "B=1 H=16 D=128 fp16 causal, the ring over NVLink; dashed: the model; dots: measured",
                "panels": panels}

    def ring_timeline(self):
        """What each of two ranks computes and exchanges, and when."""
        panels = []
        for direction in ("forward", "backward"):
            lanes: dict[tuple[int, str], JsonObject] = {}
            for found in self._ring(RING, "measured", series="timeline", direction=direction, seq=32768):
                for rank, spans in enumerate(found["ranks"]):
                    for number, (name, of) in enumerate({"own": ["own"], "others'": ["compute", "add", "join"],
                                                         "exchange": ["exchange"]}.items()):
                        there = [span for span in spans if span["lane"] in of]
                        lanes[rank, name] = {"name": f"rank {rank}, {name}", "style": "solid",
                                             "color": ("blue", "orange", "green")[number],
                                             "x": [span["begin_ms"] for span in there],
                                             "y": [span["end_ms"] for span in there]}
            end = max((end for lane in lanes.values() for end in lane["y"]), default=1)
            ticks = [[ms, str(ms)] for ms in range(0, int(end) + 1, max(1, round(end / 8)))]
            panels.append({"title": direction, "x": {"label": "ms", "log": False, "ticks": ticks},
                           "y": {"label": "", "log": False}, "series": _present(list(lanes.values()))})
        return {"kind": "spans", "title": "What the ring does when",
                "note": "two GPUs, N=32768, B=1 H=16 D=128 fp16 causal; own: with the rank's own keys; others': with "
                        "the other's keys", "panels": panels}

    def training(self):
        """A small GPT with each attention: validation losses and, below, their distance from PyTorch's."""
        try:
            of = Training.of(self._record)
        except Missing:
            return {"kind": "lines", "title": "A small GPT with each attention", "note": "", "panels": []}
        panels: list[JsonObject] = []
        curve: Callable[[str], dict[int, float]]
        for what, label, curve in [("", "validation loss", of.validation),
                                   (", minus SDPA's", "difference of losses", of.apart)]:
            for positions in of.positions():
                series: list[JsonObject] = []
                for name in of.names(positions):
                    who = name if name[0].isdigit() else "SDPA, other seed" if name.endswith("other_seed") else "SDPA"
                    style = {"SDPA": "dashed", "SDPA, other seed": "dashdot"}.get(who, "solid")
                    found = curve(name)
                    series.append({"name": _short(who), "color": _chapter(who), "style": style, "x": list(found),
                                   "y": list(found.values())})
                values = [y for one in series for y in one["y"]] or [0]
                panels.append({"title": POSITIONS[positions] + what, "x": {"label": "step", "log": False},
                               "series": _present(series),
                               "y": {"label": label, "log": False, "from": min(values)
                                     - 0.05 * (max(values) - min(values))}})
        model = of.model
        return {"kind": "lines", "title": "A small GPT with each attention",
                "note": f"{model['layers']} layers, {model['width']} wide, N={model['length']}, bf16, {model['batch']} "
                        "sequences a step; "
                        "SDPA is PyTorch's attention; all but the other seeds start from the same one",
                "panels": panels}


    def hopper_timeline(self):
        """What a producer and the consumers of chapter 10 do, by the clock of their multiprocessor."""
        panels: list[JsonObject] = []
        try:
            runs = self._record.file(HOPPER_TIMELINE)["runs"]
        except Missing:
            runs = []
        for found in runs:
            if found["head_dim"] != 64:
                continue
            series: dict[tuple[str, str], JsonObject] = {}
            for lane in found["lanes"]:
                for span in lane["spans"]:
                    kind = DOES[span["what"]]
                    one = series.setdefault((lane["name"], kind["name"]),
                                            {**kind, "row": lane["name"], "style": "solid", "x": [], "y": []})
                    one["x"].append(span["begin"])
                    one["y"].append(span["end"])
            panels.append({"title": found["rung"], "x": {"label": "clock cycles", "log": False},
                           "y": {"label": "", "log": False}, "series": list(series.values())})
        end = max((place for panel in panels for one in panel["series"] for place in one["y"]), default=0)
        for panel in panels:  # one clock, one scale
            panel["x"].update({"to": end, "ticks": [[at, str(at)] for at in range(0, end + 1, 1000)]})
        return {"kind": "spans", "title": "Who waits for whom",
                "note": "chapter 10, a thread block in the middle of its keys, three tiles of them: "
                        "D=64, fp16, no mask",
                "panels": panels}


def _present(series: list[JsonObject]) -> list[JsonObject]:
    return [one for one in series if one["x"]]
