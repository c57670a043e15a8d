"""The text that nvdisasm prints, as instructions with their source lines, and these as a graph of basic blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

KERNEL = re.compile(r"^\.text\.(\S+):$")
PLACE = re.compile(r'//## File "([^"]+)", line (\d+)')
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*(?P<address>[0-9a-f]+)\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<name>[A-Z]\w*)"
                         r"(?P<modifiers>(?:\.\w+)*)\s*(?P<operands>.*?)\s*;")
TARGET = re.compile(r"`\((\.L_x_\d+|\$\S+?)\)")
HEADERS = (".h", ".hpp", ".cuh")


@dataclass(frozen=True)
class Instruction:
    predicate: str  # "@P0", or empty
    name: str  # "LDG"
    modifiers: tuple[str, ...]  # "E", "128"
    operands: str
    places: tuple[str, ...]  # "common/device/numeric.h:61", from the innermost inlined function out

    @property
    def place(self) -> str:
        """The kernel's own line: the outermost that is not a header's, or else the outermost."""
        own = [place for place in self.places if not place.rpartition(":")[0].endswith(HEADERS)]
        return (own or list(self.places) or [""])[-1]

    @property
    def target(self) -> str:
        found = TARGET.search(self.operands)
        return found[1] if found else ""

    @property
    def conditional(self) -> bool:
        return bool(self.predicate) or self.name == "BRA" and (
            "DIV" in self.modifiers or re.match(r"!?U?P\d", self.operands) is not None)


def kernels(text: str) -> dict[str, list[str]]:
    """{mangled name: the lines of its code}"""
    found: dict[str, list[str]] = {}
    lines: "list[str] | None" = None
    for line in text.splitlines():
        begins = KERNEL.match(line)
        if begins:
            lines = found.setdefault(begins[1], [])
        elif line.startswith("\t.section"):
            lines = None
        elif lines is not None:
            lines.append(line)
    return found


@dataclass
class Graph:
    """The basic blocks of a kernel that can be reached, by number; 0 is where it begins."""

    blocks: list[list[Instruction]]
    successors: list[list[int]]  # of a branch: where it goes to first, and then what follows if it is not taken
    calls: dict[int, int]  # {block that ends in a call: the first block of what it calls}
    reached: list[int] = field(init=False)

    def __post_init__(self) -> None:
        found, ahead = {0}, [0]
        while ahead:
            for block in self.after(ahead.pop()):
                if block not in found:
                    found.add(block)
                    ahead.append(block)
        self.reached = sorted(found)

    def after(self, block: int) -> list[int]:
        return self.successors[block] + ([self.calls[block]] if block in self.calls else [])

    @cached_property
    def before(self) -> dict[int, list[int]]:
        """The blocks that may come before each."""
        found: dict[int, list[int]] = {block: [] for block in self.reached}
        for block in self.reached:
            for after in self.after(block):
                found[after].append(block)
        return found

    @cached_property
    def _last_first(self) -> list[int]:
        """In the order in which a search in depth leaves them."""
        order: list[int] = []
        seen, path = {0}, [(0, iter(self.after(0)))]
        while path:
            block, rest = path[-1]
            new = next((after for after in rest if after not in seen), None)
            if new is None:
                order.append(block)
                path.pop()
            else:
                seen.add(new)
                path.append((new, iter(self.after(new))))
        return order

    @cached_property
    def dominator(self) -> dict[int, int]:
        """The nearest block that every way to a block goes through; of 0, itself."""
        rank = {block: number for number, block in enumerate(self._last_first)}
        found = {0: 0}

        def meet(one: int, other: int) -> int:
            while one != other:
                while rank[one] < rank[other]:
                    one = found[one]
                while rank[other] < rank[one]:
                    other = found[other]
            return one

        changed = True
        while changed:
            changed = False
            for block in reversed(self._last_first[:-1]):
                known = [before for before in self.before[block] if before in found]
                nearest = known[0]
                for before in known[1:]:
                    nearest = meet(nearest, before)
                changed = changed or found.get(block) != nearest
                found[block] = nearest
        return found

    def dominates(self, one: int, other: int) -> bool:
        while other not in (one, 0):
            other = self.dominator[other]
        return one == other

    def common_dominator(self, blocks: list[int]) -> int:
        common = blocks[0]
        while not all(self.dominates(common, block) for block in blocks):
            common = self.dominator[common]
        return common

    @cached_property
    def loops(self) -> dict[int, set[int]]:
        """{first block: all blocks of the loop}"""
        found: dict[int, set[int]] = {}
        for last in self.reached:
            for first in self.after(last):
                if not self.dominates(first, last):
                    continue
                body, ahead = found.setdefault(first, {first}), [last]
                while ahead:
                    block = ahead.pop()
                    if block not in body:
                        body.add(block)
                        ahead += self.before[block]
        return found

    def outermost_loop(self, block: int, without: int) -> "int | None":
        """The first block of the largest loop that has the one and not the other."""
        around = [first for first, body in self.loops.items() if block in body and without not in body]
        return max(around, key=lambda first: len(self.loops[first]), default=None)


def graph_of(lines: list[str]) -> Graph:
    instructions, starts = _instructions(lines)
    ends = {"BRA", "EXIT", "RET", "BRX", "JMP", "CALL"}
    begins = sorted({0, *starts.values(), *(number + 1 for number, one in enumerate(instructions) if one.name in ends)}
                    - {len(instructions)})
    number_of = {begin: number for number, begin in enumerate(begins)}
    blocks = [instructions[begin:end] for begin, end in zip(begins, [*begins[1:], len(instructions)])]
    successors: list[list[int]] = []
    calls = {}
    for number, block in enumerate(blocks):
        last, following = block[-1], [number + 1] if number + 1 < len(blocks) else []
        target = number_of.get(starts.get(last.target, -1))
        if last.name == "BRA" and target is not None:
            successors.append([target, *(following if last.conditional else [])])
        elif last.name in ("EXIT", "RET", "BRX", "JMP"):
            successors.append(following if last.conditional else [])
        else:
            successors.append(following)
        if last.name == "CALL" and target is not None:
            calls[number] = target
    return Graph(blocks, successors, calls)


def _instructions(lines: list[str]) -> tuple[list[Instruction], dict[str, int]]:
    """The instructions, and {label: the number of the instruction that it stands before}."""
    instructions: list[Instruction] = []
    starts: dict[str, int] = {}
    places: list[str] = []
    complete = False  # the places are those of an instruction that has come
    for line in lines:
        place, label = PLACE.search(line), LABEL.match(line) or re.match(r"^(\$\S+):", line)
        if place:
            places = [] if complete else places
            complete = False
            places.append("/".join(Path(place[1]).parts[-2:]) + ":" + place[2])
        elif label:
            starts[label[1]] = len(instructions)
        else:
            found = INSTRUCTION.match(line)
            if found:
                complete = True
                instructions.append(Instruction((found["predicate"] or "").strip(), found["name"],
                                                tuple(found["modifiers"].split(".")[1:]), found["operands"],
                                                tuple(places)))
    return instructions, {label: number for label, number in starts.items() if number < len(instructions)}


def every(graph: Graph) -> Iterator[tuple[int, Instruction]]:
    for block in graph.reached:
        for instruction in graph.blocks[block]:
            yield block, instruction
