"""Do exponentials run beside a product in the machine code, too?

ptxas moves a wait for products of wgmma up, past everything that does not need their results. Exponentials that the
source has in front of the wait are then behind it, and nothing says so. So a line of a kernel whose exponentials are
to run beside a product ends in a comment (MARK), and this looks where the machine code has them: on every way back
from each, the last that happened to the products is that one was started, or a wait that lets one run on.

    python3 -m tools.machine_code.order SOURCE OBJECT

is asked by common/cmake/refuse_serialised.sh, with the object file that nvcc has made of the source, for one GPU.
"""

import re
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tools.base import Failure
from tools.machine_code import code
from tools.machine_code.compiling import HOW_TO_GET, disassemble, find
from tools.machine_code.executed import by_name

MARK = "// beside a product, in machine code too"


def marked(source: Path) -> list[str]:
    """["10_hopper/17_ahead.cu:175", ..], also in headers beside the source that it includes."""
    headers = [source.parent / name for name in re.findall(r'^#include "([^"/]+)"$', source.read_text(), re.M)]
    return [f"{file.parent.name}/{file.name}:{number}" for file in [source, *filter(Path.exists, headers)]
            for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith(MARK)]


def misplaced(text: str, places: list[str]) -> list[str]:
    """What is wrong, a line for each kernel and place; nvdisasm has said the text."""
    behind: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for kernel, lines in by_name(text).items():
        if not any("MUFU.EX2" in line for line in lines):
            continue
        graph = code.graph_of(lines)
        for block in graph.reached:
            for at, one in enumerate(graph.blocks[block]):
                if one.name == "MUFU" and "EX2" in one.modifiers:
                    for place in set(places).intersection(one.places):
                        behind[place, kernel][not _beside_a_product(graph, block, at)] += 1
    found = [f"{place}: in {kernel} {count[True]} of {count[True] + count[False]} exponentials stand behind the wait "
             "for the product that they should run beside"
             for (place, kernel), count in sorted(behind.items()) if count[True]]
    unseen = sorted(place for place in set(places) - {place for place, _ in behind}
                    if ".h:" not in place)  # a header may have what this source does not use
    return found + [f"{place}: the machine code has no exponential of this line" for place in unseen]


def _beside_a_product(graph: code.Graph, block: int, at: int) -> bool:
    """Whether a product may run when this instruction does, whichever way led to it."""
    seen: set[int] = set()
    ahead = [graph.blocks[block][:at]]
    ahead_of = [block]
    while ahead:
        instructions, number = ahead.pop(), ahead_of.pop()
        runs = next((state for state in map(_runs_after, reversed(instructions)) if state is not None), None)
        if runs is False or runs is None and number == 0:
            return False
        if runs is None:
            for before in set(graph.before[number]) - seen:
                seen.add(before)
                ahead.append(graph.blocks[before])
                ahead_of.append(before)
    return True


def _runs_after(one: code.Instruction) -> "bool | None":
    """Whether a product runs after this instruction; None if the instruction does not say."""
    if one.name == "HGMMA":
        return True
    if one.name == "WARPGROUP" and "DEPBAR" in one.modifiers:
        return int(one.operands.rpartition(",")[2], 16) > 0
    return None


def machine_code_in(nvdisasm: str, made: Path) -> str:
    """What nvdisasm says of the code for a GPU that an object file has in it, where nvcc has not compressed it."""
    content = made.read_bytes()
    at = content.find(b"\x7fELF", 1)
    while at >= 0 and int.from_bytes(content[at + 18:at + 20], "little") != 190:  # the number of NVIDIA's GPUs
        at = content.find(b"\x7fELF", at + 1)
    if at < 0:
        raise Failure(f"no machine code can be read in {made.name}")
    with tempfile.TemporaryDirectory() as directory:
        binary = Path(directory) / "kernels.cubin"
        binary.write_bytes(content[at:])
        return disassemble(nvdisasm, binary)


def main(source: Path, made: Path) -> int:
    tools, why = find()
    try:
        if not tools:
            raise Failure(f"{why}. {HOW_TO_GET} gets what is needed")
        wrong = misplaced(machine_code_in(tools.nvdisasm, made), marked(source))
    except Failure as failure:  # no reason not to build
        print(f"{source.name}: whether exponentials stand beside products is not checked: {failure}")
        return 0
    if wrong:
        print(*wrong, "This fails the build (common/tools/machine_code/order.py says why)", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
