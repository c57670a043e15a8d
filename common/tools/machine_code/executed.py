"""How often each machine instruction of a launch is executed, without a GPU.

The machine code is nvcc's; how often the kernel did what it says is the engine's. The two meet at the instructions that
the engine counts by source line: accesses to memory, and by kernel shuffles, barriers and mma. A basic block of the
machine code, whose instructions are all executed equally often, has a count, and the counts of all blocks have to

  - agree with the engine: 64 copies of a load in an unrolled loop, in a block that runs 8 times, are 512 of its loads;
  - flow: a block runs as often as the blocks before it lead to it. A warp whose lanes part counts as two for a while.

Many counts do so. Of these the most plausible is taken, as the cheapest solution of a linear program (COST):

  - nvcc has a loop once for many iterations at a time and once more for what remains. The first runs as often as it
    can, and never in the middle: where an entry of the loop makes 4 loads, a block with 32 of them does not run;
  - a branch forward is not taken if it skips memory instructions that the engine saw, and rather not otherwise;
  - a predicated access is made, subroutines for rare values (a division of a denormal number) are not called.

What it cannot know: branches that the data decides and that hold no access to memory (a rescaling that is rarely
needed, a mask) count as not skipped; loops without an access to memory, as run once; subroutines for rare values, as
never called. And no count is made of kernels whose warps wait at mbarriers (chapters 10 and 11): tried, each wait as
one round, it is far off: forwards of chapter 10 came out at 1.33 to 1.48 times what Nsight Compute counted on an H200
(profile-10_hopper.json), backwards at 10 to 12 times. Why has not been found out. The likely reasons are a mask without
an access to memory, whose lines count as not skipped, and warps of several roles, of which the blocks hold no access.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path

from tools.base import ROOT, Failure, JsonObject, Progress, build, output_of
from tools.machine_code import code
from tools.machine_code.compiling import HOW_TO_GET, Tools, find, machine_code
from tools.machine_code.linear_program import LinearProgram

# What a solution costs, for each time that a warp does it. The engine's counts stand above all else.
COST = {"other count": 1000.0,  # than the engine's
        "parts": 30.0,  # lanes of a warp part or meet
        "diverges": 5.0,  # takes the way that is there for lanes that have parted
        "calls": 0.5, "leaves": 0.3,  # calls a subroutine; returns early
        "skips": 0.1, "skips all": 3.0,  # takes a branch forward; over all copies of an access, which could be made
        "again": 1.0,  # runs a block with an access: rather few with many of them
        "idle": 0.01}  # makes no access where a predicate allows for that
GUESS = 0.001  # of "again", as long as it is not known how often loops are entered

MEMORY = {"LDG": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store", "LDS": "shared_load",
          "STS": "shared_store", "LDSM": "ldmatrix", "LDGSTS": "copy_store", "ATOMG": "global_atomic",
          "RED": "global_atomic", "REDG": "global_atomic", "ATOMS": "shared_atomic"}
BY_WIDTH = ("global_load", "global_store", "shared_load", "shared_store")  # which nvcc may join or divide
WAITS_IN_LOOPS = {"SYNCS", "HGMMA"}  # instructions of kernels that wait at mbarriers
NEAR = 3  # lines by which two compilers may differ about where a statement is

WORDS = ("Machine instructions: nvcc's basic blocks, each as often as the accesses in it that the engine counted. "
         "Branches without an access count as not skipped, subroutines for rare values as never called.")

# Addresses are integers; special are exp2, rcp and the like.
KINDS = {"memory": r"LD|ST(?!ACK)|ATOM|RED|CCTL|UBLK|UTMA", "tensor": r"[HIBD]G?MMA", "fp32": r"F(?!2|LO|CHK)|RRO",
         "special": r"MUFU|FCHK", "conversion": r"H|F2|I2|BF", "shuffle": r"SHFL|VOTE|REDUX|MATCH",
         "control": r"BRA|BRX|BS|BREAK|EXIT|RET|CALL|BAR|NOP|WARPSYNC|DEPBAR|LDGDEPBAR|MEMBAR|ERRBAR|NANOSLEEP|YIELD",
         "integer": r""}  # a regular expression of how the name begins; the first that fits

Key = tuple[str, str]  # (source line, operation), or ("", what is counted for the whole launch)


@dataclass
class Counted:
    """What the engine counted, and the blocks that hold it: n copies each, of which some have a predicate."""

    times: float
    copies: dict[int, float]
    predicated: dict[int, float]


def kind_of(instruction: code.Instruction) -> str:
    name = instruction.name
    if name in ("LDC", "LDCU", "ULDC"):  # parameters: no access to memory that anybody counts
        return "integer"
    if name == "LDGDEPBAR":
        return "control"
    if name == "HADD2" and "F32" in instruction.modifiers:
        return "conversion"
    return next(kind for kind, begins in KINDS.items() if re.match(begins, name))


def width(instruction: code.Instruction) -> int:
    """Bytes of a lane."""
    for modifier in instruction.modifiers:
        if modifier in ("64", "128", "256"):
            return int(modifier) // 8
        if modifier in ("U8", "S8", "U16", "S16"):
            return 1 if modifier.endswith("8") else 2
    return 4


def warps_of(launch: JsonObject) -> int:
    return prod(launch["grid"]) * -(-prod(launch["block"]) // 32)


def _copies(graph: code.Graph, launch: JsonObject) -> dict[Key, tuple[Counter[int], Counter[int]]]:
    """{what the engine may have counted: (copies by block, those of them with a predicate)}"""
    found: dict[Key, tuple[Counter[int], Counter[int]]] = defaultdict(lambda: (Counter(), Counter()))
    for block, one in code.every(graph):
        operation = MEMORY.get(one.name)
        if operation:
            unit = width(one) if operation in BY_WIDTH else 1
            found[one.place, operation][0][block] += unit
            if one.predicate:
                found[one.place, operation][1][block] += unit
        elif one.name == "SHFL":
            found["", "shuffles"][0][block] += 1
        elif one.name == "HMMA":
            found["", "matrix_flops"][0][block] += 4096 if "16816" in one.modifiers else 2048
        elif one.name == "BAR" and "SYNC" in one.modifiers and one.operands == "0x0":
            found["", "barriers"][0][block] += 1
    if any(one.name == "BAR" and one.operands != "0x0" for _, one in code.every(graph)):
        found.pop(("", "barriers"), None)  # others than the engine's
    return dict(found)


def _counted(graph: code.Graph, launch: JsonObject) -> list[Counted]:
    """Both together. Copies of several lines in the same blocks are one, as nvcc may exchange their lines."""
    copies = _copies(graph, launch)
    times: Counter[Key] = Counter()
    for line in launch["lines"]:
        file, _, number = line["line"].rpartition(":")
        file = "/".join(Path(file).parts[-2:])
        near = {key: abs(int(key[0].rpartition(":")[2]) - int(number)) for key in copies
                if key[1] == line["op"] and key[0].rpartition(":")[0] == file}
        nearest = min(near, key=near.__getitem__, default=None)
        if nearest and near[nearest] <= NEAR:
            times[nearest] += line["lane_bytes"] if line["op"] in BY_WIDTH else line["requests"]
    of_launch = {"shuffles": launch["shuffles"], "matrix_flops": launch["matrix_flops"],
                 "barriers": launch["barriers"] * -(-prod(launch["block"]) // 32)}
    for what, count in of_launch.items():
        if ("", what) in copies and count:
            times["", what] = count
    together: dict[Hashable, Counted] = {}
    for key, count in times.items():
        of_all, predicated = copies[key]
        one = together.setdefault((key[1], frozenset(of_all)), Counted(0, {}, {}))
        one.times += count
        for into, of in ((one.copies, of_all), (one.predicated, predicated)):
            for block, n in of.items():
                into[block] = into.get(block, 0) + n
    for one in together.values():  # so that all weigh the same
        unit = max(one.copies.values())
        one.times /= unit
        one.copies = {block: n / unit for block, n in one.copies.items()}
        one.predicated = {block: n / unit for block, n in one.predicated.items()}
    return list(together.values())


class Flow:
    """The counts of a kernel's blocks, for each warp of the launch."""

    def __init__(self, graph: code.Graph, counted: list[Counted], warps: int):
        self._graph, self._warps = graph, warps
        self._counted = [Counted(one.times / warps, one.copies, one.predicated) for one in counted]
        self._into: dict[int, list[Hashable]] = {block: [] for block in graph.reached}
        for block in graph.reached:
            for way, after in enumerate(graph.successors[block]):
                self._into[after].append((block, way))
        for block, called in graph.calls.items():
            if block in self._into:
                self._into[called] += self._into[block]

    def solve(self) -> dict[int, float]:
        first = self._solve(GUESS, {})
        return self._solve(COST["again"], self._most(first))

    def _most(self, guessed: dict[int, float]) -> dict[tuple[int, int], float]:
        """{(a block, the block where its accesses begin): how often it runs at most for each time of that one}"""
        most: dict[tuple[int, int], float] = {}
        for one in self._counted:
            begin = self._graph.common_dominator(list(one.copies))
            if begin in self._graph.loops:
                begin = self._graph.dominator[begin]
            if guessed.get(begin, 0.0) <= 0:
                continue
            each = one.times / guessed[begin]  # what an entry makes
            for block, copies in one.copies.items():
                always = copies - one.predicated.get(block, 0)
                if block == begin or always <= 0:
                    continue
                times = each / always
                unit = min(one.copies.values())
                if abs(each / unit - round(each / unit)) < 1e-6:  # the same every time, it seems
                    times = float(int(times + 1e-6))
                most[block, begin] = min(times, most.get((block, begin), times))
        return most

    def _solve(self, again: float, most: dict[tuple[int, int], float]) -> dict[int, float]:
        program = LinearProgram()
        self._must_flow(program)
        for number, one in enumerate(self._counted):
            self._must_agree(program, one, number)
        for (block, begin), times in most.items():
            self._must_not_pass(program, block, begin, times)
        self._costs(program, again, {block for (block, _), times in most.items() if times <= 0})
        solution = program.solve()
        return {block: self._once(block) + sum(solution.get(way, 0.0) for way in self._into[block])
                for block in self._graph.reached}

    def _once(self, block: int) -> float:
        return 1.0 if block == 0 else 0.0

    def _must_flow(self, program: LinearProgram) -> None:
        for block in self._graph.reached:
            factors: dict[Hashable, float] = defaultdict(float)
            for way in self._into[block]:
                factors[way] += 1
            for way, _ in enumerate(self._graph.successors[block]):
                factors[block, way] -= 1
            if self._graph.blocks[block][-1].name in ("EXIT", "RET", "BRX", "JMP") or not self._graph.successors[block]:
                factors["leaves", block] -= 1
            program.add_equation(factors, -self._once(block), ("parts", block), ("meets", block))
            for what in ("parts", "meets"):
                program.add_cost((what, block), COST["parts"])

    def _must_agree(self, program: LinearProgram, one: Counted, number: int) -> None:
        factors: dict[Hashable, float] = defaultdict(float)
        for block, copies in one.copies.items():
            for way in self._into[block]:
                factors[way] += copies
        for block, copies in one.predicated.items():
            idle = ("idle", number, block)  # at most as often as the copies come by
            factors[idle] -= 1
            program.add_cost(idle, COST["idle"])
            program.add_equation({idle: 1.0, **dict.fromkeys(self._into[block], -copies)},
                                 copies * self._once(block), ("not idle", number, block))
        program.add_equation(factors, one.times - sum(copies * self._once(block)
                                                      for block, copies in one.copies.items()),
                             ("too few", number), ("too many", number))
        for what in ("too few", "too many"):
            program.add_cost((what, number), COST["other count"])

    def _must_not_pass(self, program: LinearProgram, block: int, begin: int, times: float) -> None:
        """The block runs at most so often for each time of where it begins, and of the entries of its loop."""
        factors: dict[Hashable, float] = defaultdict(float)
        for way in self._into[block]:
            factors[way] += 1
        loop = self._graph.outermost_loop(block, begin)
        if loop is not None:
            entered = dict(factors)
            body = self._graph.loops[loop]
            for before in self._graph.before[loop]:
                if before not in body:
                    for way, after in enumerate(self._graph.successors[before]):
                        if after == loop:
                            entered[before, way] = entered.get((before, way), 0.0) - max(times, 1.0)
            program.add_equation(entered, 0.0, ("below entries", block, begin))
        for way in self._into[begin]:
            factors[way] -= times
        program.add_equation(factors, times * self._once(begin), ("below", block, begin))

    def _costs(self, program: LinearProgram, again: float, never: set[int]) -> None:
        with_access = {block for one in self._counted for block in one.copies}
        for block in self._graph.reached:
            last, after = self._graph.blocks[block][-1], self._graph.successors[block]
            if len(after) == 2 and after[0] > block:
                program.add_cost((block, 0), COST["diverges"] if "DIV" in last.modifiers
                                 else COST["skips"] + COST["skips all"] * self._share(after[1], never) ** 2)
            if last.name == "EXIT" and after:
                program.add_cost(("leaves", block), COST["leaves"])
            for way in self._into[block]:
                if block in with_access:
                    program.add_cost(way, again)
                if last.name == "CALL":
                    program.add_cost(way, COST["calls"])

    def _share(self, first: int, never: set[int]) -> float:
        """The largest share of the copies of an access that only this block leads to."""
        most = 0.0
        for one in self._counted:
            possible = {block: copies for block, copies in one.copies.items() if block not in never}
            led_to = sum(copies for block, copies in possible.items() if self._graph.dominates(first, block))
            most = max(most, led_to / sum(possible.values()) if led_to else 0.0)
        return most


def instructions_of(graph: code.Graph, launch: JsonObject) -> JsonObject:
    """{"executed": N, "kinds": {kind: N}, "lines": [{"line", "executed", "kinds": {kind: N}}, ..]}, most first."""
    warps = warps_of(launch)
    times = Flow(graph, _counted(graph, launch), warps).solve()
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for block, one in code.every(graph):
        lines[one.place][kind_of(one)] += round(times[block] * warps)
    kinds = sum(lines.values(), Counter())
    most_first = sorted(lines.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return {"executed": sum(kinds.values()), "kinds": dict(kinds.most_common()),
            "lines": [{"line": line, "executed": sum(of.values()), "kinds": dict(of.most_common())}
                      for line, of in most_first if sum(of.values())]}


# --- Which machine code is a launch's --------------------------------------------------------------------------------


def comparable(name: str) -> str:
    """"void a::_GLOBAL__N__1234::f<__half, 64>(Problem, ..)" and "a::f<__half, 64>" -> "a::f<__half,64>"."""
    name = re.sub(r"_GLOBAL__N_\w*::|\(anonymous namespace\)::|^void |\((?:\w|::)+\)(?=\d)", "", name)
    depth = 0
    for at, letter in enumerate(name):  # the parameters are what the first ( outside of <> begins
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            name = name[:at]
            break
    return re.sub(r"\s", "", name)


def by_name(text: str) -> dict[str, list[str]]:
    found = code.kernels(text)
    names = output_of(["c++filt", *found]) if found else ""
    return dict(zip(map(comparable, (names or "").splitlines()), found.values()))


def sources_of(launches: list[JsonObject]) -> list[Path]:
    """The files, below the project or absolute, whose lines the launches name; and of kernels that stand in headers,
    those that have them, as few as can be."""
    places = [dict.fromkeys(filter(None, map(_place, launch["lines"]))) for launch in launches]
    found = dict.fromkeys(place for of_launch in places for place in of_launch if place.suffix == ".cu")
    missing = {comparable(launch["kernel"]) for launch, of_launch in zip(launches, places)
               if not any(place in found for place in of_launch)}
    directories = {place.parent for of_launch in places for place in of_launch if place.is_relative_to(ROOT)}
    with_them = _instantiated(missing, directories) if missing else {}
    missing = missing.difference(*(with_them.get(source, set()) for source in found))
    while missing:
        best = max(with_them, key=lambda source: len(with_them[source] & missing), default=None)
        if best is None or not with_them[best] & missing:
            break
        found[best] = None
        missing -= with_them[best]
    return list(found)


def _place(line: JsonObject) -> "Path | None":
    file = line["line"].rpartition(":")[0]
    return next((place for place in (ROOT / file, ROOT / "common" / file) if place.is_file()), None)


def _instantiated(kernels: set[str], directories: set[Path]) -> dict[Path, set[str]]:
    """{a chapter's file: which of the kernels g++ has made of it, for the engine}"""
    found = {}
    for directory in sorted(directories):
        for objects in (build.directory("cpu") / directory.relative_to(ROOT)).glob("CMakeFiles/*_traced_kernels.dir"):
            for made in sorted(objects.glob("**/*.cu.o")):
                source = directory / made.relative_to(objects).with_suffix("")
                names = (output_of(["nm", "-C", "--defined-only", made]) or "").splitlines()
                if source.is_file():
                    found[source] = kernels & {comparable(line.split(maxsplit=2)[-1]) for line in names}
    return found


def add_instructions(rungs: list[list[JsonObject]], architecture: str) -> list[str]:
    """Puts launch["instructions"] into the launches of each rung for which there can be some. Says what to know of
    them, and why there are none for others."""
    tools, why = find()
    if not tools:
        return [f"Machine instructions are not counted: {why}. No GPU is needed for them: {HOW_TO_GET}"]
    reasons: dict[str, None] = {}
    with Progress("Counting machine instructions"):
        for launches in rungs:
            reasons |= dict.fromkeys(_add_to(launches, tools, architecture))
    any_counted = any("instructions" in launch for launches in rungs for launch in launches)
    return [*([WORDS] if any_counted else []), *reasons]


def _add_to(launches: list[JsonObject], tools: Tools, architecture: str) -> list[str]:
    known: dict[str, list[str]] = {}
    sources = sources_of(launches)
    reasons = []
    with ThreadPoolExecutor(build.cores()) as pool:
        for made in [pool.submit(machine_code, tools, source, architecture) for source in sources]:
            try:
                known.update(by_name(made.result()))
            except Failure as failure:
                reasons.append(str(failure))
    for launch in launches:
        lines = known.get(comparable(launch["kernel"]))
        if lines is None:
            reasons += [] if reasons else [f"{launch['kernel']} is not in the machine code of "
                                           f"{', '.join(path.name for path in sources) or 'any file'}"]
            continue
        graph = code.graph_of(lines)
        if any(one.name in WAITS_IN_LOOPS for _, one in code.every(graph)):
            reasons.append(f"{launch['kernel']} waits at mbarriers. Of such kernels this way counts 1.3 to 12 times "
                           "what Nsight Compute does: its machine instructions are not counted")
            continue
        launch["instructions"] = {**instructions_of(graph, launch), "by": f"{tools}, {architecture}"}
    return reasons
