"""Tables of what the experiments of common/microbenchmarks found, in Markdown."""

from tools.base import amount_of_memory, significant
from tools.record import LATENCY, Microbenchmarks
from tools.showing.markdown import factor, known, markdown

NAMES = {"registers": "registers (a multiply-add)", "shared": "shared memory"}
WAYS = {"all_up": "nobody", "all_down": "everybody", "by_warp": "every second warp", "by_lane": "every second lane",
        "one_lane": "one lane of a warp"}
DIVIDED = {"queries": "the queries", "queries_same_memory": "the queries, with as much shared memory as the line below",
           "keys": "the keys"}


def levels(of: Microbenchmarks) -> str:
    """Each memory: size, latency, bandwidth."""

    def per_cycle(level: str) -> float:
        return of.value(f"bandwidth/{level}",
                        "bytes/s") / (of.size("multiprocessors") * 1e6 * of.size("sm_clock_max_mhz"))

    def of_each(size: float) -> str:
        return f"{of.size('multiprocessors')} × {amount_of_memory(size)}"

    sizes = {"registers": lambda: of_each(4 * of.size("registers_of_multiprocessor")),
             "shared": lambda: of_each(of.size("shared_bytes_of_multiprocessor")),
             "L1": lambda: "what shared memory leaves", "L2": lambda: amount_of_memory(of.size("l2_bytes")),
             "DRAM": lambda: amount_of_memory(of.size("dram_bytes"))}
    rows = [["", "size", "latency, cycles", "latency, ns", "TB/s", "bytes a cycle and multiprocessor"]]
    for level, experiment in LATENCY.items():
        rows.append([NAMES.get(level, level), known(sizes[level], str), known(lambda: of.value(experiment, "cycles")),
                     known(lambda: of.value(experiment, "ns")),
                     known(lambda: 1e-12 * of.value(f"bandwidth/{level}", "bytes/s")), known(lambda: per_cycle(level))])
    return markdown(rows)


def latencies(of: Microbenchmarks) -> str:
    """Of a load from global memory, by how much of it is used."""
    rows = [["bytes in use", "cycles", "ns"]]
    for name in of.names("latency/global/"):
        size = int(name.rpartition("/")[2])
        if size & (size - 1) == 0:  # the picture has those in between
            rows.append([amount_of_memory(size), *(significant(of.value(name, unit)) for unit in ("cycles", "ns"))])
    return markdown(rows)


def branches(of: Microbenchmarks) -> str:
    """What it costs when lanes go two ways."""
    rows = [["who goes the other way", "ms", "times as long"]]
    for way, words in WAYS.items():
        rows.append([words, known(lambda: of.value(f"branch/{way}", "ms")),
                     known(lambda: of.value(f"branch/{way}", "ms") / of.value("branch/all_up", "ms"), factor)])
    return markdown(rows)


def sums(of: Microbenchmarks) -> str:
    """Sums of products in fp16 and in fp32, and how fast they are."""
    rows = [["", "fp16 sums", "fp32 sums"]]
    for name in of.names("sum/fp16/"):
        keys = name.rpartition("/")[2]
        rows.append([f"relative error over {int(keys):,} keys".replace(",", " "),
                     *(known(lambda: of.value(f"sum/{dtype}/{keys}", "error"), "{:.1e}".format)
                       for dtype in ("fp16", "fp32"))])
    return markdown(rows + [["TFLOP/s",
                             *(known(lambda: 1e-12 * of.value(f"rate/{dtype}", "FLOP/s"))
                               for dtype in ("fp16", "fp32"))]])


def divisions(of: Microbenchmarks) -> str:
    """Attention whose warps divide a tile by queries, or by keys."""
    rows = [["the warps of a block divide", "shared memory of a block", "ms", "TFLOP/s"]]
    for how, words in DIVIDED.items():
        name = f"split/{how}"
        rows.append([words, known(lambda: of.value(name, "shared_bytes"), amount_of_memory),
                     known(lambda: of.value(name, "ms")), known(lambda: 1e-12 * of.value(name, "FLOP/s"))])
    return markdown(rows)


def products(of: Microbenchmarks) -> str:
    """Products of wgmma with nothing else to do, by the numbers that are multiplied. Of Hopper alone."""
    rows = [["the numbers", "TFLOP/s", "of the tensor cores' cycles", "clock, MHz"]]
    for name in of.names("products/"):
        rows.append([name.partition("/")[2], significant(1e-12 * of.value(name, "flop/s")),
                     f"{100 * of.value(name, 'tensor cores'):.0f}%", f"{of.value(name, 'MHz'):.0f}"])
    return markdown(rows)


def sums_in_eight_bits(of: Microbenchmarks) -> str:
    """The error of sums in eight bits, by how often they are taken from the tensor core. Of Hopper alone."""
    every = sorted({int(name.split("/")[1]) for name in of.names("fp8_sum/")}, key=lambda n: (n == 0, n))
    lengths = sorted({int(name.split("/")[2]) for name in of.names("fp8_sum/")})
    rows = [["added up in fp32", *(f"{keys} keys" for keys in lengths)]]
    for n in every:
        rows.append([f"every {n * 32} keys" if n else "never",
                     *(known(lambda: of.value(f"fp8_sum/{n}/{keys}", "error"), "{:.1e}".format) for keys in lengths)])
    kept = of.value("fp8_bits", "bits")
    return f"The tensor core keeps {kept:.0f} bits behind the leading one.\n\n" + markdown(rows)
