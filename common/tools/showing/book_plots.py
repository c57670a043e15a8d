"""The pictures of tools/showing/pictures.py as plots to point at: the same data, for Plotly.

Pointing at a point shows its problem, and of N, ms, TFLOP/s and the ratio to FlashAttention-2 what belongs to it. A trace's `meta` has
its colour for a light and for a dark page; static/plots.js, in common/book/site, draws.
"""

import math
import re

from tools.base import amount_of_memory, significant
from tools.record import Record
from tools.showing.pictures import all_pictures, color

MARKERS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "triangle-left", "triangle-right"]
# Peers are all grey and dashed, and no name stands at the end of a line here.
PEER_MARKERS = {"FLASH": "circle-open", "FLASH-deterministic": "circle-open", "CUDNN": "square-open", "FA3": "triangle-up-open",
                "FA4": "diamond-open", "FA4-deterministic": "diamond-open"}
DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}
ON_DARK = {"#000000": "#ffffff", "#1f1f1f": "#e8e8e8", "#4d4d4d": "#c4c4c4", "#6b6b6b": "#a8a8a8", "#8a8a8a": "#9a9a9a",
           "#0072B2": "#3d9be0"}
LADDER = {"batch": 2, "heads": 16, "head_dim": 64, "causal": True}  # as the pictures' notes say
TOKENS, WIDTH = 16384, 2048  # B N and H D of FlashAttention's sweep


def flops(direction: str, batch: int, heads: int, head_dim: int, causal: bool, n: int) -> float:
    return 4 * batch * heads * n * n * head_dim * (0.5 if causal else 1) * (2.5 if direction == "backward" else 1)


def all_plots(record: Record) -> dict:
    """{name of the picture: figure}, of those that have been measured, bars of time aside."""
    return {name: figure(name, data) for name, data in all_pictures(record).items()
            if data["kind"] != "spans" and any(panel["series"] for panel in data["panels"])}


def figure(name: str, data: dict) -> dict:
    traces, layout = [], {"annotations": [], "shapes": []}
    for number, panel in enumerate(data["panels"]):
        axis = str(number + 1) if number else ""
        bars = data["kind"] == "bars"
        layout[f"xaxis{axis}"] = _axis(panel["x"])
        layout[f"yaxis{axis}"] = {"autorange": "reversed", "showgrid": False} if bars else _axis(panel["y"])
        if bars:
            layout[f"xaxis{axis}"]["range"] = _log_range([one["x"][0] for one in panel["series"]], 2, 6)
        if data["kind"] == "roofline":
            points = [one for one in panel["series"] if one["style"] != "roof"]
            layout["xaxis"]["range"] = _log_range([one["x"][0] for one in points], 4, 4)
            layout["yaxis"]["range"] = _log_range([one["y"][0] for one in points], 3, 3)
        layout["annotations"].append(_above(axis, f"x{axis} domain", 0, "left", panel["title"]))
        for place, text in panel.get("marks", []):
            layout["shapes"].append({"type": "line", "xref": f"x{axis}", "yref": f"y{axis} domain", "x0": place, "x1": place, "y0": 0,
                                     "y1": 1, "line": {"dash": "dot", "width": 1, "color": "#888888"}})
            layout["annotations"].append(_above(axis, f"x{axis}", math.log10(place), "right", text))
        for one in panel["series"]:
            trace = _bar(one) if bars else _line(one)
            shown = [_words(name, panel, one, x, y) for x, y in zip(one["x"], one["y"])]
            named = f"{one['slope']}<br>{one['name']}" if "slope" in one else one["name"]
            trace.update({"name": named, "xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": one["name"],
                          "showlegend": not bars and one["name"] not in [each["name"] for each in traces],
                          "customdata": shown, "hovertemplate": "%{customdata}<extra></extra>",
                          "meta": {"light": color(one["color"]), "dark": ON_DARK.get(color(one["color"]), color(one["color"]))}})
            traces.append(trace)
    layout["annotations"] = [one for one in layout["annotations"] if one["text"]]
    return {"title": data["title"], "note": data["note"], "panels": len(data["panels"]),
            "bars": len(traces) if data["kind"] == "bars" else 0, "data": traces, "layout": layout}


def _axis(axis: dict) -> dict:
    made = {"title": {"text": axis["label"]}, "type": "log" if axis["log"] else "linear"}
    if axis.get("ticks"):
        made.update({"tickvals": [place for place, _ in axis["ticks"]], "ticktext": [text for _, text in axis["ticks"]]})
    elif axis["log"]:
        made.update({"dtick": 1, "tickformat": "~g"})
    else:
        made["rangemode"] = "tozero" if not axis.get("from") else "normal"
    return made


def _log_range(values: list, below: float, above: float) -> list:
    return [math.log10(min(values) / below), math.log10(max(values) * above)]


def _above(axis: str, reference: str, x: float, anchor: str, text: str) -> dict:
    """Words on the upper edge of a panel."""
    return {"text": text, "xref": reference, "yref": f"y{axis} domain", "x": x, "y": 1, "xanchor": anchor, "yanchor": "bottom",
            "showarrow": False}


def _line(one: dict) -> dict:
    own = isinstance(one["color"], int)
    point = one["style"] in ("point", "hollow")
    symbol = MARKERS[one["color"] % len(MARKERS)] if own else PEER_MARKERS.get(one["color"])
    return {"type": "scatter", "x": one["x"], "y": one["y"], "mode": "markers" if point else "lines+markers" if symbol else "lines",
            "line": {"dash": DASHES.get(one["style"], "solid")},
            "marker": {"symbol": (symbol or "circle") + ("-open" if one["style"] == "hollow" else ""), "size": 11 if point else 7}}


def _bar(one: dict) -> dict:
    return {"type": "bar", "orientation": "h", "x": one["x"], "y": [one["name"]], "text": [one["text"]], "textposition": "outside",
            "cliponaxis": False}


# --- What is shown where one points ------------------------------------------------------------------------------------


def _words(name: str, panel: dict, one: dict, x: float, y: float) -> str:
    """Lines of HTML."""
    what, _, direction = name.rpartition("-")
    lines = [f"<b>{one['name']}</b>"]
    if what == "time":
        lines += [f"N = {x}", *_speed(flops(direction, **LADDER, n=x), 1e-3 * y, _peer(panel, x), 1e-3)]
    elif what == "tflops":
        head_dim = int(re.search(r"D = (\d+)", panel["title"])[1])
        work = flops(direction, TOKENS // x, WIDTH // head_dim, head_dim, "causal" in panel["title"], x)
        peer = _peer(panel, x)
        lines += [panel["title"], f"N = {x}", *_speed(work, work / (y * 1e12), peer and work / (peer * 1e12))]
    elif what in ("chapters", "steps"):
        peers = [each["x"][0] for each in panel["series"] if each["color"] == "FLASH"]
        lines += ["N = 4096", *_speed(flops(direction, **LADDER, n=4096), 1e-3 * x, peers[0] if peers else None, 1e-3)]
        lines += [f"{one['text'].partition(', ')[2]} the step before"] if ", " in one["text"] else []
    elif name == "memory":
        first = dict(zip(panel["series"][0]["x"], panel["series"][0]["y"])).get(x)
        lines += [f"N = {x}", amount_of_memory(y)] + ([f"{significant(y / first)} of {panel['series'][0]['name']}"] if first else [])
    elif name == "roofline":
        lines += [f"{significant(x)} FLOP for a byte of DRAM", f"{significant(y)} TFLOP/s"]
    else:
        place = amount_of_memory(x) + " in use" if panel["x"]["label"] == "bytes in use" else f"{panel['x']['label']} = {x}"
        lines += [panel["title"], place, f"{significant(y)} {panel['y']['label']}"]
    return "<br>".join(line for line in lines if line)


def _peer(panel: dict, x: float) -> "float | None":
    """FlashAttention-2's y at this x."""
    return next((dict(zip(one["x"], one["y"])).get(x) for one in panel["series"] if one["color"] == "FLASH"), None)


def _speed(work: float, seconds: float, peer: "float | None", unit: float = 1) -> list:
    """The lines for time, speed, and the ratio to FlashAttention-2, which takes `peer` units."""
    ratio = [f"{significant(peer * unit / seconds)}× FlashAttention-2"] if peer else []
    return [f"{significant(1e3 * seconds)} ms", f"{significant(work / seconds * 1e-12)} TFLOP/s", *ratio]
