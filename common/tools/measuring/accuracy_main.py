"""Compares chapters and PyTorch's attention with fp64, on the same tensors. Needs PyTorch and a GPU.

    python3 -m tools.measuring.accuracy_main REQUEST OUT      (tools/measuring/accuracy.py says what is written to OUT)

Lines on stdout and exit status: as those of peers_main.
"""

import itertools
import math
import sys
import time
from dataclasses import asdict
from types import ModuleType
from typing import Any

import torch

from tools.base import JsonObject, cuda
from tools.measuring.accuracy import (
    EXPONENTS,
    PEERS,
    ROPE_BASELINE,
    add_ratios,
    problems,
    problems_with_extras,
    rounded,
    scaled_problems,
)
from tools.measuring.peers_check import Reference
from tools.measuring.peers_main import (
    DTYPES,
    Candidate,
    Refusal,
    context,
    first_line,
    main,
    make_extras,
    sdpa,
    the_workbook,
    uuid,
)
from tools.record import Problem

GRADIENTS = ("dq", "dk", "dv")


class Rung:
    """Of a chapter. Its backward starts from the O and LSE of the book's last forward."""

    kind = "chapter"

    def __init__(self, workbook: ModuleType, chapter: str, rung: str, has: JsonObject):
        self.name, self.rope = f"{chapter}/{rung}", has["rope"]
        self.workbook, self.where = workbook, {"chapter": chapter, "rung": rung}
        self.has_forward, self.has_backward = has["forward"], has["backward"]

    def results(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_o: torch.Tensor,
                tables: Any, **extras: Any) -> dict[str, torch.Tensor]:
        found = {}
        if self.has_forward:
            found["o"] = self.workbook.forward(q, k, v, rope=tables, **self.where, **extras)[0]
        if self.has_backward:
            o, lse = self.workbook.forward(q, k, v, rope=tables, **extras)
            found.update(zip(GRADIENTS, self.workbook.backward(q, k, v, o, lse, d_o, rope=tables, **self.where,
                                                               **extras)))
        return found


class Peer:
    """Of PyTorch; with RoPE, q and k are rotated in fp32 before, and rounded."""

    kind = "peer"

    def __init__(self, candidate: Candidate, name: "str | None" = None, rope: bool = False):
        self.candidate, self.name, self.rope = candidate, name or candidate.name, rope

    def results(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_o: torch.Tensor,
                tables: Any, **extras: Any) -> dict[str, torch.Tensor]:
        leaves = [tensor.detach().requires_grad_(True) for tensor in (q, k, v)]
        q, k, v = leaves
        if self.rope:
            q, k = rotated(q, tables, k.shape[2] - q.shape[2]), rotated(k, tables, 0)
        with torch.enable_grad():
            o = self.candidate.attend(q, k, v, False, **extras)
        with self.candidate.mode():
            found = dict(zip(GRADIENTS, torch.autograd.grad(o, leaves, d_o)))
        return {"o": o, **found} if "forward" in self.candidate.directions else found


def rotated(x: torch.Tensor, tables: Any, first: int) -> torch.Tensor:
    """Rows of x [.., N, D], which stand at the positions first, first + 1, .., in fp32; rounded at the end."""
    with torch.enable_grad():
        cos, sin = (table[first:first + x.shape[2]] for table in tables)
        low, high = x.float().chunk(2, dim=-1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1).to(x.dtype)


def candidates(workbook: ModuleType, chapters: list[str]) -> "tuple[list[Rung | Peer], dict[str, str]]":
    """(candidates, {peer: why it is not there})"""
    found: "list[Rung | Peer]" = []
    absent = {}
    for name in PEERS:
        try:
            found.append(Peer(sdpa(name)))
        except Exception as error:  # this PyTorch knows no such backend
            absent[name] = first_line(error)
    found.append(Peer(sdpa("FLASH"), ROPE_BASELINE, rope=True))
    found += [Rung(workbook, chapter, rung, has) for chapter in chapters
              for rung, has in workbook.chapters()[chapter].items() if not has.get("eight_bits")]
    return found, absent


def make_inputs(problem: Problem, seed: int) -> list[torch.Tensor]:
    """q, k, v and dO: standard normal numbers, the same ones with extras and without. As views they lie as
    [B, N, H, D]."""
    random = torch.Generator("cuda").manual_seed(seed)
    q = (problem.batch, problem.heads, problem.seq_q, problem.head_dim)
    k = (problem.batch, problem.kv_heads, problem.seq_k, problem.head_dim)
    made = [torch.randn(shape, device="cuda", dtype=DTYPES[problem.dtype], generator=random) for shape in (q, k, k, q)]
    return [x.transpose(1, 2).contiguous().transpose(1, 2) for x in made] if "views" in problem.asked() else made


def relative(got: torch.Tensor, exact: torch.Tensor) -> "tuple[float | None, ...]":
    """(norm, largest) of the error, relative; None where got is not finite everywhere."""
    error = got.double() - exact
    found = (error.norm() / exact.norm()).item(), (error.abs().max() / exact.abs().max()).item()
    return tuple(rounded(value) if math.isfinite(value) else None for value in found)


def compared(candidate: "Rung | Peer", inputs: list[torch.Tensor], exact: dict[str, torch.Tensor],
             tables: Any, **extras: Any) -> JsonObject:
    """The result of one candidate on one problem."""
    result = {"name": candidate.name, "kind": candidate.kind}
    try:
        found = candidate.results(*[*inputs, tables], **extras)
    except torch.cuda.OutOfMemoryError:
        return {**result, "skipped": "there is not enough device memory"}
    except Exception as error:  # what a backend or a chapter does not take; each has errors of its own
        if "CUDA error" in str(error):
            raise  # the device is lost to this process
        return {**result, "skipped": first_line(error)}
    errors = {tensor: relative(got, exact[tensor]) for tensor, got in found.items()}
    return {**result, "norms": {tensor: norm for tensor, (norm, _) in errors.items()},
            "largest": {tensor: largest for tensor, (_, largest) in errors.items()}}


def of_every_problem(workbook: ModuleType, every: "list[Rung | Peer]", seed: int) -> list[JsonObject]:
    errors = []
    plan = list(itertools.product(problems(), (False, True)))
    for number, (problem, rope) in enumerate(plan, start=1):
        chosen = [one for one in every if one.rope == rope]
        if not any(one.kind == "chapter" for one in chosen):
            continue
        print(f"progress\t{problem}{' RoPE' if rope else ''} ({number} of {len(plan)})")
        inputs = make_inputs(problem, seed)
        tables = workbook.rope_tables(*inputs[:2]) if rope else None
        exact = Reference(inputs[0], inputs[1], inputs[2], causal=False, rope=rope).of_every_head(inputs[3])
        errors.append({"problem": asdict(problem), "rope": rope,
                       "results": [compared(one, inputs, exact, tables) for one in chosen]})
        del exact
        torch.cuda.empty_cache()
    return errors


def with_extras(workbook: ModuleType, every: "list[Rung | Peer]", chapters: list[str], seed: int) -> list[JsonObject]:
    """Of what runs where no chapter is named, if its chapter is asked for, beside the peers that have the extra."""
    errors = []
    plan = problems_with_extras()
    for number, problem in enumerate(plan, start=1):
        chapter, rung = workbook.default_rung(problem.asked(), backward=False)
        if chapter not in chapters:
            continue
        print(f"progress\t{problem} ({number} of {len(plan)} with extras)")
        extras = make_extras(problem, seed)
        chosen: "list[Rung | Peer]" = [one for one in every if isinstance(one, Peer) and not one.rope
                                       and not one.candidate.lacks(problem)]
        inputs = make_inputs(problem, seed)
        exact = Reference(inputs[0], inputs[1], inputs[2], causal=False, **extras).of_every_head(inputs[3])
        chosen.append(Rung(workbook, chapter, rung, workbook.chapters()[chapter][rung]))
        errors.append({"problem": asdict(problem), "rope": False,
                       "results": [compared(one, inputs, exact, None, **extras) for one in chosen]})
    return errors


def of_scaled_losses(every: "list[Rung | Peer]", seed: int) -> list[JsonObject]:
    """The gradients of FLASH and of every rung without RoPE that has a backward."""
    found = []
    chosen = [one for one in every if not one.rope and (one.name == "FLASH" or isinstance(one, Rung)
                                                        and one.has_backward)]
    if not any(one.kind == "chapter" for one in chosen):
        return []
    for problem in scaled_problems():
        print(f"progress\tdO times a power of two, {problem}")
        *qkv, d_o = make_inputs(problem, seed)
        norms: dict[str, dict[str, list["float | None"]]] = {one.name: {tensor: [] for tensor in GRADIENTS}
                                                             for one in chosen}
        for exponent in EXPONENTS:
            scaled = (d_o.double() * 2.0**exponent).to(d_o.dtype)
            exact = Reference(qkv[0], qkv[1], qkv[2], causal=False).of_every_head(scaled)
            for one in chosen:
                result = compared(one, [*qkv, scaled], exact, None)
                for tensor, values in norms[one.name].items():
                    values.append(result.get("norms", {}).get(tensor))
        found.append({"problem": asdict(problem), "exponents": EXPONENTS,
                      "results": [{"name": one.name, "kind": one.kind, "norms": norms[one.name]} for one in chosen]})
    return found


def run(request: JsonObject) -> JsonObject:
    """request: chapters, seed, commit."""
    workbook = the_workbook("accuracy")
    begin = time.monotonic()
    about = context(request)
    report: JsonObject = {"context": {key: value for key, value in about.items() if key not in ("time", "l2_bytes")}}
    report["context"]["before"] = cuda.machine_state(uuid())
    every, report["absent"] = candidates(workbook, request["chapters"])
    with torch.no_grad():
        report["errors"] = of_every_problem(workbook, every, request["seed"])
        report["errors"] += with_extras(workbook, every, request["chapters"], request["seed"])
        report["loss_scaling"] = of_scaled_losses(every, request["seed"])
    results = [result for one in report["errors"] for result in one["results"] if result["kind"] == "chapter"]
    if all("skipped" in result for result in results):
        raise Refusal(f"{results[0]['name']}: {results[0]['skipped']}")
    add_ratios(report["errors"])
    report["context"]["after"] = cuda.machine_state(uuid())
    report["context"]["measuring_seconds"] = round(time.monotonic() - begin, 1)
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], run))
