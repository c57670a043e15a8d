"""How many instructions a tile takes: the ways round the loop with the products, and what each costs every unit.

    cd common && python3 -B -m tools.machine_code.ways ../12_variants/hopper_views.cu "forward<__nv_bfloat16, 128, 3,"

compiles the source for Hopper, and of each kernel whose name has these words it prints the ways from the first block of
the innermost loop with products of wgmma back to it, the shortest first: how many instructions a warp executes on it,
and for how many cycles they occupy each unit of the scheduler that the warp belongs to. Not those on which a mask hides
scores. A consumer has one warp with each of the four schedulers, so these are the cycles of a consumer's tile, beside
those of the tensor cores. Of ways with as many multiply-adds and as many exponentials only the shortest is there.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.base import Failure
from tools.machine_code import code
from tools.machine_code.compiling import HOW_TO_GET, find, machine_code
from tools.machine_code.executed import by_name

ARCHITECTURE = "sm_90a"  # the only one that has wgmma
# CUDA C++ Programming Guide, "Arithmetic Instructions", capability 9.0: of 32 lanes, each scheduler's share takes this
# many cycles. What is in no list of these has an issue slot and no more, as instructions of uniform registers.
FMA = ("FFMA", "FMUL", "FADD", "IMAD")
ALU = ("FMNMX", "FSEL", "FSETP", "ISETP", "SEL", "LOP3", "PLOP3", "IADD3", "VIADD", "SHF", "LEA", "F2FP", "VIMNMX",
       "VIMNMX3", "VIADDMNMX", "PRMT", "MOV", "VOTE")
CYCLES = {"FMA": 1, "ALU": 2, "MUFU": 8}


def unit(name: str) -> str:
    return "FMA" if name in FMA else "ALU" if name in ALU else name


def loop_with_products(graph: code.Graph) -> "tuple[int, set[int]] | None":
    """(its first block, all its blocks), of the innermost loops with products the one that has most."""
    products = {first: sum(one.name == "HGMMA" for block in body for one in graph.blocks[block])
                for first, body in graph.loops.items()}
    innermost = [first for first, body in graph.loops.items() if products[first]
                 and not any(products[other] and other != first and other in body for other in graph.loops)]
    return max(((first, graph.loops[first]) for first in innermost), key=lambda loop: products[loop[0]], default=None)


def ways_round(graph: code.Graph, first: int, body: set[int]) -> Iterator[list[code.Instruction]]:
    """The instructions of each way from the first block back to it that goes through no block twice."""
    ahead = [[first]]
    while ahead:
        way = ahead.pop()
        for block in graph.successors[way[-1]]:
            if block == first:
                yield [one for block in way for one in graph.blocks[block]]
            elif block in body and block not in way:
                ahead.append([*way, block])


def counts(way: list[code.Instruction]) -> Counter[str]:
    found = Counter(unit(one.name) for one in way)
    return Counter({"instructions": len(way), **{name: found[name] for name in CYCLES}})


def ways(text: str, words: str) -> "dict[str, list[Counter[str]]]":
    """{kernel: the ways of its loop}; nvdisasm has said the text."""
    found = {}
    for kernel, lines in by_name(text).items():
        graph = code.graph_of(lines) if words.replace(" ", "") in kernel else None
        loop = graph and loop_with_products(graph)
        if graph and loop:
            every = [counts(way) for way in ways_round(graph, *loop) if not any("-INF" in one.operands for one in way)]
            every.sort(key=lambda way: way["instructions"], reverse=True)
            found[kernel] = sorted({(way["FMA"], way["MUFU"]): way for way in every}.values(),
                                   key=lambda way: way["instructions"])
    return found


def main(source: Path, words: str) -> int:
    tools, why = find()
    if not tools:
        raise Failure(f"{why}. {HOW_TO_GET} gets what is needed")
    found = ways(machine_code(tools, source.resolve(), ARCHITECTURE), words)
    if not found:
        raise Failure(f"no kernel of {source.name} has {words} in its name and wgmma in a loop")
    for kernel, every in found.items():
        print(kernel)
        for way in every:
            print(f"  {way['instructions']} instructions; " +
                  ", ".join(f"{name} {way[name]}: {way[name] * cycles} cycles" for name, cycles in CYCLES.items()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
    except Failure as failure:
        sys.exit(f"ways: {failure}")
