"""Where a wrong kernel goes wrong first: in S, m, P, l, dS, .. as it shows them, before a result is wrong.

Its program with traced kernels compares them with the reference (--diagnose: common/harness/diagnosis.h).
"""

import re

from tools.base import JsonObject

_CASE = re.compile(r"B(?P<batch>\d+)_H(?P<heads>\d+)_Hkv(?P<kv_heads>\d+)_Nq(?P<seq_q>\d+)_Nk(?P<seq_k>\d+)_"
                   r"D(?P<head_dim>\d+)_(?P<dtype>fp16|bf16)_(?P<mask>none|causal)_(?P<inputs>[a-z_]+?)(?:_rope)?"
                   r"(?:_window_(?P<left>all|\d+)_(?P<right>all|\d+))?(?:_softcap(?P<softcap>\d+(?:\.\d+)?))?"
                   r"(?P<alibi>_alibi)?(?P<sink>_sink)?(?P<views>_views)?(?P<packed>_packed)?"
                   r"(?:_blocks_(?P<blocks>[a-z]+))?(?:_scale(?P<scale>\d+(?:\.\d+)?))?\b")
# The names that kernels give them, in the order in which they are made of one another.
_ORDER = ("S", "m", "m base 2", "correction", "P", "l", "-l", "O", "dP", "delta", "dS", "dV", "dK", "dQ")
_PLAIN = ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "dtype")
EXTRAS = ("window", "softcap", "alibi", "sink", "views", "packed", "block_mask")  # of chapter 12, by their flags


def problem_of_case(text: str) -> "JsonObject | None":
    """The flags of a program for the suite's problem that the text names; None if it names none."""
    found = _CASE.search(text)
    if not found:
        return None
    problem: JsonObject = {name: found[name] for name in _PLAIN}
    problem |= {"causal": found["mask"] == "causal", "inputs": found["inputs"]}
    if found["left"]:
        problem["window"] = f"{found['left']},{found['right']}".replace("all", "-1")
    problem |= {name: True for name in ("alibi", "sink", "views", "packed") if found[name]}
    problem |= {"block_mask": found["blocks"]} if found["blocks"] else {}
    return problem | {name: float(found[name]) for name in ("softcap", "scale") if found[name]}


def in_words(diagnosis: JsonObject) -> list[str]:
    """What is wrong first, and where; or that nothing is that the kernel shows. KeyError, TypeError or ValueError if it
    is no diagnosis."""
    if "wrong" not in diagnosis:
        right = ", ".join(sorted(diagnosis["right"], key=_ORDER.index))
        return [f"{right}: all right, as the kernel shows them; what is made of them is not"] if right else []
    wrong = diagnosis["wrong"]
    order = _ORDER[: _ORDER.index(wrong["name"])]
    before = [name for name in order if name in diagnosis["right"]]
    if wrong.get("keys", [0])[0] > 0:
        before.append("the tiles before")
    if wrong["how"] in ("missing", "again"):
        return [f"{_what(wrong)}; what they make is right ({', '.join(diagnosis['right'])})"]
    name = wrong["name"]
    return [f"{_what(wrong)}; " + (f"everything before it is right ({', '.join(before)})" if before
                                   else f"the kernel shows nothing before {name}: look at how {name} is made"),
            *_where(wrong)]


def stage(diagnosis: JsonObject) -> str:
    """The name of what is wrong first; empty if only a result is."""
    return str(diagnosis["wrong"]["name"]) if "wrong" in diagnosis else ""


def _what(wrong: JsonObject) -> str:
    row, column = wrong["row"], wrong.get("column")
    place = f"[{row}]" if column is None else f"[{row}, {column}]"
    head = f" of b={wrong['b']}, h={wrong['h']}" if wrong["b"] or wrong["h"] else ""
    name, got = f"{wrong['name']}{place}{head}", wrong["got"]
    return {"differs": f"{name} is {got} and should be {wrong['want']}",
            "hidden": f"{name} is {got} and should be 0: row {row} does not see key {column}",
            "implied": f"{name}, with which dS was made, must have been {got} and should be {wrong['want']}",
            "grows": f"{name} is {got}, and a correction is at most 1",
            "again": f"{name} is made twice, and counts twice",
            "missing": f"no thread block makes {name}, and row {row} sees key {column}"}[wrong["how"]]


def _where(wrong: JsonObject) -> list[str]:
    tile = "in the tile of keys {} to {}, ".format(*wrong["keys"]) if "keys" in wrong else ""
    return [f"{tile}shown by thread {wrong['thread']} of block {wrong['block']} at {wrong['line']}"]
