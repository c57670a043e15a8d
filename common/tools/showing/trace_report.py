"""What `./workbook trace` prints: totals, the worst source lines, three levels of bytes, and a roofline."""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.base import ROOT, JsonObject, bold, columns, table


@dataclass(frozen=True)
class Gpu:
    """Peaks as the vendor publishes them, at the boost clock, without sparsity."""

    name: str
    sms: int
    clock: float  # Hz
    fp32: float  # FLOP/s outside tensor cores
    tensor: float  # FLOP/s, fp16 in, fp32 out
    dram: float  # bytes/s
    l2: float  # bytes/s, read

    @property
    def lsu(self) -> float:
        """Wavefronts per second: each SM's load and store unit moves one of 128 bytes a clock cycle."""
        return self.sms * self.clock


# SMs, clocks and peaks: NVIDIA's H100/H200, A100 (80 GB SXM), Ada and T4 data sheets and architecture white papers. T4
# and RTX 4090 tensor peaks are those for fp32 accumulation. L2: the A100 white paper gives 5120 bytes a clock cycle;
# the same is assumed for H100 and H200, for which none is published; RTX 4090 and T4 (Jia et al. 2019) are others'
# measurements.
GPUS = {
    "h200": Gpu("NVIDIA H200", 132, 1.98e9, 66.9e12, 989e12, 4.8e12, 5120 * 1.98e9),
    "h100": Gpu("NVIDIA H100 SXM", 132, 1.98e9, 66.9e12, 989e12, 3.35e12, 5120 * 1.98e9),
    "a100": Gpu("NVIDIA A100 80GB SXM", 108, 1.41e9, 19.5e12, 312e12, 2.039e12, 5120 * 1.41e9),
    "4090": Gpu("NVIDIA RTX 4090", 128, 2.52e9, 82.6e12, 165.2e12, 1.008e12, 5.0e12),
    "t4": Gpu("NVIDIA T4", 40, 1.59e9, 8.1e12, 65e12, 0.32e12, 1.27e12),
}

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
    """The least time that each part of the GPU would need for this launch if it alone were the limit."""
    moved = launch["bytes"]
    least = {
        "DRAM": (moved["read"]["launch"] + moved["written"]["launch"]) / gpu.dram,
        "L2": (moved["read"]["blocks"] + moved["written"]["warps"]) / gpu.l2,  # a perfect L1, which passes stores on
        "load/store unit": sum(wavefronts(counts) for counts in launch["totals"].values()) / gpu.lsu,
    }
    if launch["matrix_flops"]:
        least["tensor cores"] = launch["matrix_flops"] / gpu.tensor
    return least


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


def _per_request(counts: JsonObject) -> list[str]:
    n = counts["requests"]
    return [f"{units(counts) / n:.2f}", f"{counts['ideal'] / n:.2f}"]


def totals_table(launch: JsonObject) -> str:
    rows = [["", "requests", "moves", "", "a request", "ideal", "too many"]]
    for op, counts in launch["totals"].items():
        unit = "sectors" if is_global(counts) else "wavefronts"
        excess = units(counts) - counts["ideal"]
        rows.append([OP_NAMES[op], f"{counts['requests']:,}", f"{units(counts):,}", unit, *_per_request(counts),
                     f"{excess:,}" if excess else "-"])
    return table(rows)


def bytes_table(launch: JsonObject) -> str:
    rows = [["global memory", "all requests", "different in a block", "different in the launch"]]
    for what in ("read", "written"):
        level = launch["bytes"][what]
        rows.append([what, amount(level["warps"]), amount(level["blocks"]), amount(level["launch"])])
    return table(rows)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most - 3] + "..."


def lines_table(launch: JsonObject, most: int, roots: tuple[Path, ...] = CHAPTERS) -> str:
    """The lines that keep the load and store unit busiest, first, with their source (below in a narrow terminal)."""
    total = sum(map(wavefronts, launch["lines"])) or 1
    worst = sorted(launch["lines"], key=lambda line: (-wavefronts(line), line["line"], line["op"]))
    rows = [["line", "", "share", "a request", "ideal", "source"]]
    for line in worst[:most]:
        place = line["line"] + (f" > {line['within'].rpartition(':')[2]}" if line["within"] else "")
        rows.append([place, OP_NAMES[line["op"]], f"{100 * wavefronts(line) / total:.0f}%", *_per_request(line),
                     source_text(line["line"], roots)])
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    room = columns() - sum(widths) - 2 * len(widths)
    between = "  "
    if room < 30:
        room, between, rows[0][5] = columns() - 4, "\n    ", ""
    lines = []
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])] + [row[i].rjust(widths[i]) for i in (2, 3, 4)]
        text = ("  ".join(cells) + between + cut(row[5], min(room, 76))).rstrip()
        lines.append(bold(text) if number == 0 else text)
    for line in worst[:most]:
        if line.get("neighbours"):
            lines.append(f"{line['line']}: {line['neighbours']:,} of {line['requests']:,} requests go on where the one "
                         "before ended: nvcc may join them, g++ does not")
    if len(worst) > most:
        lines.append(f"and {len(worst) - most} more; --lines N shows N of them")
    return "\n".join(lines)


def launch_report(launch: JsonObject, gpu: Gpu, most_lines: int, roots: tuple[Path, ...] = CHAPTERS) -> str:
    grid, block = (" x ".join(str(n) for n in launch[what] if n > 1) or "1" for what in ("grid", "block"))
    extras = [f"{launch[key]:,} {name}" for key, name in
              (("barriers", "barriers"), ("shuffles", "shuffles"), ("matrix_flops", "FLOP in mma")) if launch[key]]
    if "matrix_flops_alone" in launch:
        extras.append(f"{launch['matrix_flops_alone']:,} of them with no cp.async on its way")
    least = seconds(launch, gpu)
    times = ", ".join(f"{part} {duration(t)}" for part, t in least.items())
    return "\n".join([
        bold(f"{launch['kernel']}   {grid} blocks of {block} threads") + (f"   {', '.join(extras)}" if extras else ""),
        "", totals_table(launch), "", lines_table(launch, most_lines, roots), "", bytes_table(launch), "",
        f"At least: {times}. Bound by: {bound(least)}.",
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
    arithmetic = flops / peak
    memory = sum(max(least.values()) for least in each)
    if arithmetic >= memory:
        limit = f"the {unit}"
    else:
        limit = bound(max(each, key=lambda least: max(least.values())))
        limit = limit if limit in ("DRAM", "L2", "tensor cores") else f"the {limit}"
    moved = sum(launch["bytes"][what]["launch"] for launch in rung["launches"] for what in ("read", "written"))
    return (f"Predicted for an {gpu.name}: at least {duration(max(arithmetic, memory))}, bound by {limit} "
            f"({flops:.3g} FLOP on the {unit}: {duration(arithmetic)}; the kernels' memory: {duration(memory)}; "
            f"{flops / moved:.3g} FLOP a byte of DRAM).")
