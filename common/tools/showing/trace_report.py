"""What `./workbook trace` prints: totals, the worst source lines, three levels of bytes, instructions, a roofline."""

import json
from math import prod
from pathlib import Path

from tools.base import (
    L2_BYTES,
    ROOT,
    SCHEDULERS,
    Gpu,
    JsonObject,
    bold,
    columns,
    flush_left,
    flush_right,
    good,
    lost,
    table,
    width_of,
)

OP_NAMES = {
    "global_load": "global load",
    "global_store": "global store",
    "global_atomic": "global atomic",
    "copy_load": "cp.async from global",
    "bulk_load": "bulk load",
    "bulk_store": "bulk store",
    "bulk_add": "bulk reduction",
    "shared_load": "shared load",
    "shared_store": "shared store",
    "shared_atomic": "shared atomic",
    "copy_store": "cp.async to shared",
    "ldmatrix": "ldmatrix",
    "wgmma": "wgmma",
    "distributed": "other blocks' shared memory",
}


CHAPTERS = (ROOT, ROOT / "common")  # below which the sources of chapters are


def is_global(counts: JsonObject) -> bool:
    return "sectors" in counts


def units(counts: JsonObject) -> int:
    """Sectors of global memory, wavefronts of shared memory."""
    return counts["sectors"] if is_global(counts) else counts["wavefronts"]


def wavefronts(counts: JsonObject) -> int:
    """Cycles of one SM's load and store unit."""
    return counts["lines"] if is_global(counts) else counts["wavefronts"]


def seconds(launch: JsonObject, gpu: Gpu) -> dict[str, float]:
    """The least time that each part of the GPU would need for this launch if it alone were the limit. What each
    multiprocessor has of its own counts as far as the grid lets them all work, if all blocks are alike."""
    moved = launch["bytes"]
    cycles = gpu.sms * gpu.clock * gpu.sm_share(prod(launch["grid"]))  # of all multiprocessors with work, a second
    from_l2 = moved["read"]["blocks"] + moved["written"]["warps"]  # a perfect L1, which passes stores on
    least = {
        "DRAM": (moved["read"]["launch"] + moved["written"]["launch"]) / gpu.dram,
        "L2": max(from_l2 / gpu.l2, from_l2 / (L2_BYTES * cycles)),
        # It moves one wavefront of 128 bytes a cycle.
        "load unit": sum(wavefronts(counts) for counts in launch["totals"].values()) / cycles,
    }
    if launch["matrix_flops"]:
        least["tensor cores"] = launch["matrix_flops"] / (gpu.tensor * gpu.sm_share(prod(launch["grid"])))
    if "instructions" in launch:
        least["issue slots"] = launch["instructions"]["executed"] / (SCHEDULERS * cycles)
    return least


def grid_line(launch: JsonObject, gpu: Gpu) -> str:
    """How much of the GPU the grid can use; empty if nearly all."""
    blocks = prod(launch["grid"])
    if blocks < gpu.sms:
        return f"{blocks} of {gpu.sms} multiprocessors {'has' if blocks == 1 else 'have'} work."
    each, left = divmod(blocks, gpu.sms)
    lost = 1 - gpu.sm_share(blocks)
    return "" if lost < 0.05 else (
        f"{blocks:,} blocks on {gpu.sms} multiprocessors: {left} of these get {each + 1}, the others {each}. If all "
        f"blocks take equally long, {100 * lost:.0f}% of the multiprocessors' time is lost in the tail.")


def bound(least: dict[str, float]) -> str:
    return max(least, key=lambda part: least[part])


def source_text(place: str, roots: tuple[Path, ...] = CHAPTERS) -> str:
    """The line of source that "03_tiling/3_padded.cu:93" names, below one of the roots; empty if it is not there."""
    path, _, number = place.rpartition(":")
    for root in roots:
        if (root / path).is_file() and number.isdigit():
            lines = (root / path).read_text(errors="replace").splitlines()
            return lines[int(number) - 1].strip() if int(number) <= len(lines) else ""
    return ""


def amount(n: float) -> str:
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n:.0f} B"


def duration(t: float) -> str:
    return f"{t * 1e3:.3g} ms" if t >= 1e-3 else f"{t * 1e6:.3g} us"


def wasted(counts: JsonObject) -> float:
    """Of its wavefronts, those beyond the ideal."""
    return wavefronts(counts) * (1 - counts["ideal"] / units(counts)) if units(counts) else 0.0


def _per_request(counts: JsonObject) -> list[str]:
    n = counts["requests"]
    moved = f"{units(counts) / n:.2f}"
    return [lost(moved) if units(counts) > counts["ideal"] else moved, f"{counts['ideal'] / n:.2f}"]


def totals_table(launch: JsonObject) -> str:
    rows = [["", "requests", "moves", "", "a request", "ideal", "too many"]]
    for op, counts in launch["totals"].items():
        unit = "sectors" if is_global(counts) else "wavefronts"
        excess = units(counts) - counts["ideal"]
        rows.append([OP_NAMES[op], f"{counts['requests']:,}", f"{units(counts):,}", unit, *_per_request(counts),
                     lost(f"{excess:,}") if excess else "-"])
    return table(rows)


def _place(line: JsonObject) -> str:
    return line["line"] + (f" > {line['within'].rpartition(':')[2]}" if line["within"] else "")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else "less than 1%"


def worst_line(launches: list[JsonObject], roots: tuple[Path, ...] = CHAPTERS) -> str:
    """Where the load and store units lose most, of all these launches; empty if nothing is accessed."""
    lines = [line for launch in launches for line in launch["lines"]]
    if not any(map(wavefronts, lines)):
        return ""
    total = sum(map(wavefronts, lines))
    worst = max(lines, key=wasted)
    if wasted(worst):
        unit = "sectors" if is_global(worst) else "wavefronts"
        moved, ideal = _per_request(worst)
        head, words = lost("Worst line:"), (f"{moved} {unit} a request, ideal {ideal}: "
                                            f"{_percent(wasted(worst) / total)} of the cycles of the load and store "
                                            "units are lost here")
    else:
        worst = max(lines, key=wavefronts)
        head = f"{good('No line loses anything.')} The busiest:"
        words = f"{_percent(wavefronts(worst) / total)} of the cycles of the load and store units"
    source = source_text(worst["line"], roots)
    below = f"\n    {cut(source, min(columns() - 4, 76))}" if source else ""
    return f"{head} {_place(worst)}, {OP_NAMES[worst['op']]}, {words}.{below}"


def bytes_table(launch: JsonObject) -> str:
    rows = [["global memory", "all requests", "different in a block", "different in the launch"]]
    for what in ("read", "written"):
        level = launch["bytes"][what]
        rows.append([what, amount(level["warps"]), amount(level["blocks"]), amount(level["launch"])])
    return table(rows)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most - 3] + "..."


def _with_sources(rows: list[list[str]], left: int, sources: list[str]) -> list[str]:
    """The rows, of which the first is the head, each with its line of source beside it (below in a narrow terminal).
    Of the columns so many are words, the others numbers."""
    widths = [max(width_of(row[i]) for row in rows) for i in range(len(rows[0]))]
    room = columns() - sum(widths) - 2 * len(widths)
    between, sources = "  ", ["source", *sources]
    if room < 30:
        room, between, sources[0] = columns() - 4, "\n    ", ""
    lines = []
    for number, (row, source) in enumerate(zip(rows, sources)):
        cells = [flush_left(cell, width) if i < left else flush_right(cell, width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        text = ("  ".join(cells) + between + cut(source, min(room, 76))).rstrip()
        lines.append(bold(text) if number == 0 else text)
    return lines


def lines_table(launch: JsonObject, most: int, roots: tuple[Path, ...] = CHAPTERS) -> str:
    """The lines that keep the load and store unit busiest, first, with their source."""
    total = sum(map(wavefronts, launch["lines"])) or 1
    worst = sorted(launch["lines"], key=lambda line: (-wavefronts(line), line["line"], line["op"]))
    rows = [["line", "", "share", "a request", "ideal"]]
    for line in worst[:most]:
        rows.append([_place(line), OP_NAMES[line["op"]], f"{100 * wavefronts(line) / total:.0f}%", *_per_request(line)])
    lines = _with_sources(rows, 2, [source_text(line["line"], roots) for line in worst[:most]])
    for line in worst[:most]:
        if line.get("neighbours"):
            lines.append(f"{line['line']}: {line['neighbours']:,} of {line['requests']:,} requests go on where the one "
                         "before ended: nvcc may join them, g++ does not")
    if len(worst) > most:
        lines.append(f"and {len(worst) - most} more; --lines N shows N of them")
    return "\n".join(lines)


def _kinds(counts: JsonObject, most: int) -> str:
    """"fp32 61%, memory 9%", the most frequent ones."""
    return ", ".join(f"{kind} {100 * n / counts['executed']:.0f}%"
                     for kind, n in list(counts["kinds"].items())[:most] if n >= 0.005 * counts["executed"])


def instructions_table(launch: JsonObject, most: int, roots: tuple[Path, ...] = CHAPTERS) -> str:
    """What was executed of the machine code, and the lines with most of it."""
    counts = launch["instructions"]
    rows = [["line", "executed", "share", "mostly"]]
    for line in counts["lines"][:most]:
        rows.append([line["line"], f"{line['executed']:,}", f"{100 * line['executed'] / counts['executed']:.0f}%",
                     _kinds(line, 2)])
    words = [[row[0], row[3], row[1], row[2]] for row in rows]
    return "\n".join([f"Machine instructions ({counts['by']}): {counts['executed']:,} executed by warps, "
                      f"{_kinds(counts, 5)}",
                      *_with_sources(words, 2, [source_text(line["line"], roots) for line in counts["lines"][:most]])])


def launch_report(launch: JsonObject, gpu: Gpu, most_lines: int, roots: tuple[Path, ...] = CHAPTERS) -> str:
    grid, block = (" x ".join(str(n) for n in launch[what] if n > 1) or "1" for what in ("grid", "block"))
    extras = [f"{launch[key]:,} {name}" for key, name in
              (("dynamic_shared_bytes", "bytes of dynamic shared memory a block"), ("barriers", "barriers"),
               ("shuffles", "shuffles"), ("matrix_flops", "FLOP in mma")) if launch.get(key)]
    if "cluster" in launch:
        extras.insert(0, f"clusters of {prod(launch['cluster'])} blocks")
    if "matrix_flops_alone" in launch:
        extras.append(f"{launch['matrix_flops_alone']:,} of them with no copy to shared memory on its way")
    least = seconds(launch, gpu)
    times = ", ".join(f"{part} {duration(t)}" for part, t in least.items())
    instructions = ["", instructions_table(launch, most_lines, roots)] if "instructions" in launch else []
    return "\n".join([
        bold(f"{launch['kernel']}   {grid} block{'' if grid == '1' else 's'} of {block} threads")
        + (f"   {', '.join(extras)}" if extras else ""),
        "", totals_table(launch), "", lines_table(launch, most_lines, roots), *instructions, "",
        bytes_table(launch), "",
        f"At least: {times}. Bound by: {bound(least)}.", *filter(None, [grid_line(launch, gpu)]),
    ])


def alike(launches: list[JsonObject]) -> list[tuple[JsonObject, int]]:
    """[(launch, how many there are of which every count is the same)], in the order of the first of each."""
    groups: dict[str, list[JsonObject]] = {}
    for launch in launches:
        groups.setdefault(json.dumps(launch, sort_keys=True), []).append(launch)
    return [(group[0], len(group)) for group in groups.values()]


def rung_summary(rung: JsonObject, flops: float, gpu: Gpu) -> str:
    """All launches of a rung, one after the other, and its arithmetic: the roofline."""
    each = [seconds(launch, gpu) for launch in rung["launches"]]
    on_tensor_cores = any(launch["matrix_flops"] for launch in rung["launches"])
    peak, unit = (gpu.tensor, "tensor cores") if on_tensor_cores else (gpu.fp32, "fp32 units")
    arithmetic = flops / (peak * max(gpu.sm_share(prod(launch["grid"])) for launch in rung["launches"]))
    done = sum(max(least.values()) for least in each)
    if arithmetic >= done:
        limit = f"the {unit}"
    else:
        limit = bound(max(each, key=lambda least: max(least.values())))
        limit = limit if limit in ("DRAM", "L2", "tensor cores") else f"the {limit}"
    moved = sum(launch["bytes"][what]["launch"] for launch in rung["launches"] for what in ("read", "written"))
    return (f"Predicted for an {gpu.name}: at least {duration(max(arithmetic, done))}, bound by {limit} "
            f"({flops:.3g} FLOP on the {unit}: {duration(arithmetic)}; what the kernels do: {duration(done)}; "
            f"{flops / moved:.3g} FLOP a byte of DRAM).")
