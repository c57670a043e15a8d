"""Is the rung that runs where nobody names one the fastest of ours, wherever their times are recorded? It may be 1.03
times as slow as another one that may be taken: that solves the same problem, and gives the same bits in every run.

The library is asked which rung it takes, with the multiprocessors of the GPU that was measured: what was the default
then need not be it today. `chosen` has no kernels of its own, and is no rung beside those that it takes."""

import ctypes
import json
import os
import unittest
from pathlib import Path

from tools.base import GPUS

ROOT = Path(__file__).resolve().parents[3]
# The pieces, without files of a date. Back to back the default is measured alone.
RECORDS = [record for record in sorted((ROOT / "common" / "results").glob("*/[a-z]*.json"))
           if not record.stem.endswith("-b2b")]
LIBRARY = ctypes.CDLL(os.environ["FLASH_ATTENTION_WORKBOOK_LIBRARY"])
AS_FAST = 1.03
# Points where it is not, as recorded. Where launches are long, launches of the same kernels under other names are 0.95
# to 1.09 times as long: the clock changes. At H64/8 N4096x4096 full `columns` was 0.99 and 1.04 times as fast as `prompt`
# when the two were timed alone (2026-11-29-10-deferred.json).
OPEN = {
    "nvidia-h100-80gb-hbm3/models-forward.json": [
        "B1 H32/8 N4096x131072 D128 causal: 11_split_kv/even",
        "B1 H64/8 N4096x32768 D128 causal: 11_split_kv/even",  # as it was before whole tiles came first
        "B1 H64/8 N32768x32768 D128 full: 10_hopper/prompt",
    ],
    "nvidia-h100-80gb-hbm3/sweep-bf16-forward.json": [
        "B32 H16/16 N512x512 D128 causal: 09_rope_fused/overlapped",
    ],
    "nvidia-h100-80gb-hbm3/sweep-fp16-forward.json": [
        "B32 H16/16 N512x512 D128 causal: 09_rope_fused/overlapped",
    ],
    "nvidia-h200/models-backward.json": [
        "B1 H64/8 N4096x4096 D128 full: 10_hopper/columns",
        "B1 H64/8 N16384x16384 D128 causal: 10_hopper/columns",
        "B1 H64/8 N32768x32768 D128 causal: 10_hopper/columns",
        "B1 H64/8 N32768x32768 D128 full: 10_hopper/columns",
    ],
    "nvidia-h200/sweep-bf16-backward.json": [  # 1.034 to 1.039; back to back, `columns` gains there
        "B1 H16/16 N16384x16384 D128 full: 10_hopper/columns",
        "B2 H16/16 N8192x8192 D128 causal: 10_hopper/columns",
        "B1 H16/16 N16384x16384 D128 causal: 10_hopper/columns",
    ],
    "nvidia-h200/sweep-fp16-forward.json": [  # 1.036 times as long as `late`, which has the same kernel there
        "B1 H16/16 N16384x16384 D128 full: 10_hopper/prompt",
    ],
    "nvidia-h200/sweep-fp16-backward.json": [  # where 2026-11-29-10-deferred.json has it 1.03 times `deferred`
        "B1 H32/32 N16384x16384 D64 full: 10_hopper/columns",
    ],
}
# Rungs that are younger than the record: where one of them is the default, it has no time there.
YOUNGER = {
    "nvidia-h100-80gb-hbm3/models-backward.json": {"10_hopper/columns"},
    "nvidia-h100-80gb-hbm3/models-forward.json": {"10_hopper/beside"},
}
NUMBERS = ("batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim")


class Problem(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_int) for name in (*NUMBERS, "head_dim_v", "dtype", "causal")),
                ("scale", ctypes.c_float), ("rope_cos", ctypes.c_void_p), ("rope_sin", ctypes.c_void_p),
                ("extras", ctypes.c_void_p)]


LIBRARY.faw_error.restype = ctypes.c_char_p


def taken(point: dict) -> str:
    """"10_hopper/prompt", where nobody names one."""
    said = point["problem"]
    problem = Problem(ctypes.sizeof(Problem), *(said[name] for name in NUMBERS), 0, ["fp16", "bf16"].index(said["dtype"]), said["causal"],
                      said["head_dim"]**-0.5)
    chapter, rung = ctypes.c_char_p(), ctypes.c_char_p()
    status = LIBRARY.faw_default_rung(ctypes.byref(problem), int(point["rope"]), int(point["direction"] == "backward"),
                                      ctypes.byref(chapter), ctypes.byref(rung))
    assert status == 0 and chapter.value and rung.value, LIBRARY.faw_error()
    return f"{chapter.value.decode()}/{rung.value.decode()}"


def problem_of(point: dict) -> str:
    said = point["problem"]
    return (f"B{said['batch']} H{said['heads']}/{said['kv_heads']} N{said['seq_q']}x{said['seq_k']} "
            f"D{said['head_dim']} {'causal' if said['causal'] else 'full'}")


def may_be_taken(name: str, backward: bool) -> bool:
    """A rung that has kernels of its own."""
    chapter, _, rung = name.partition("/")
    return bool(rung and rung != "chosen"
                and LIBRARY.faw_is_deterministic(chapter.encode(), rung.encode(), int(backward)))


def slower(point: dict) -> "str | None":
    """What is wrong with the point; None if nothing is. KeyError if the rung that is taken has no time there."""
    backward = point["direction"] == "backward"
    rung = taken(point)
    own = [one for one in point["results"] if one.get("kind") == "chapter" and "seconds" in one]
    times = {one["name"]: one["seconds"]["median"] for one in own if may_be_taken(one["name"], backward)}
    runs = [one["seconds"]["median"] for one in own if one.get("runs") == rung]  # without a name, recorded as such
    time, best = max([times[rung], *runs]), min(times, key=times.__getitem__)
    if time <= AS_FAST * times[best]:
        return None
    return (f"{problem_of(point)}: {rung} is the default and takes {time * 1e6:.1f} us, {time / times[best]:.3f} times "
            f"as long as {best}")



class FastestDefault(unittest.TestCase):
    def judged(self, record: Path) -> int:
        """How many of its points have a time of the default."""
        content, name = json.loads(record.read_text()), f"{record.parent.name}/{record.name}"
        judged, wrong = 0, []
        for point in content.get("points", []):
            try:
                found = slower(point) if "results" in point else None
            except KeyError:
                judged += taken(point) in YOUNGER.get(name, ())
                continue
            judged += "results" in point
            wrong += [found] if found else []
        known = OPEN.get(name, [])
        self.assertEqual([one for one in wrong if not any(one.startswith(of) for of in known)], [], name)
        self.assertEqual([of for of in known if not any(one.startswith(of) for one in wrong)], [],
                         f"{name}: these points are as fast now, and no longer open")
        return judged

    def test_at_all_points_that_models_have(self) -> None:
        records = [record for record in RECORDS if record.name.startswith("models-")]
        self.assertGreaterEqual(len(records), 2)
        for record in records:
            self.assertEqual(self.judged(record), len(json.loads(record.read_text())["points"]), record)

    def test_wherever_the_default_was_measured(self) -> None:
        """Other sweeps may be older than it, or have one rung of each chapter."""
        for record in RECORDS:
            if not record.name.startswith("models-"):
                self.judged(record)


class Judging(unittest.TestCase):
    POINT = {"problem": {"batch": 1, "heads": 32, "kv_heads": 8, "seq_q": 512, "seq_k": 512, "head_dim": 128,
                         "dtype": "bf16", "causal": True}, "rope": False, "direction": "backward"}

    def point(self, **times: float) -> dict:
        return {**self.POINT, "results": [{"name": f"10_hopper/{rung}", "kind": "chapter", "seconds": {"median": time}}
                                          for rung, time in times.items()]}

    def test_what_may_be_taken_counts(self) -> None:
        self.assertEqual(taken(self.POINT), "10_hopper/prompt")
        self.assertIsNone(slower(self.point(prompt=1.03, shared=1.0)))
        self.assertIn("10_hopper/prompt is the default", slower(self.point(prompt=1.04, shared=1.0)) or "")
        self.assertIsNone(slower(self.point(prompt=1.04, shared=1.02, bulk=1.0)))  # which has other bits in every run

    def test_a_time_without_a_name_counts_if_the_same_rung_ran(self) -> None:
        point = self.point(prompt=1.0, shared=1.0)
        point["results"].append({"name": "default", "kind": "chapter", "seconds": {"median": 1.1},
                                 "runs": "10_hopper/prompt"})
        self.assertIn("1.100 times", slower(point) or "")
        point["results"][-1]["runs"] = "10_hopper/shared"
        self.assertIsNone(slower(point))

    def test_half_the_head_dim(self) -> None:
        """Up to there 10_hopper/beside was measured to be faster."""
        def forward(**said: int) -> str:
            problem = {**self.POINT["problem"], "batch": 4, "seq_q": 4096, "seq_k": 4096, "head_dim": 64, **said}
            return taken({"problem": problem, "rope": False, "direction": "forward"})
        for causal in (False, True):
            self.assertEqual(forward(causal=causal), "10_hopper/beside")
            self.assertEqual(forward(causal=causal, head_dim=40), "10_hopper/beside")
            self.assertEqual(forward(causal=causal, head_dim=72), "10_hopper/prompt")
            self.assertEqual(forward(causal=causal, seq_q=512, seq_k=512), "10_hopper/beside")

    def test_the_default_has_no_time(self) -> None:
        with self.assertRaises(KeyError):
            slower(self.point(shared=1.0))

    def test_the_gpus(self) -> None:
        """One library is asked for all of them."""
        of_capability_9 = {str(gpu.sms) for gpu in GPUS.values() if gpu.capability == 90}
        self.assertEqual(of_capability_9, {os.environ["SIMT_THREADS"]})
        for record in RECORDS:
            if record.name.startswith("models-"):
                self.assertEqual(json.loads(record.read_text())["context"]["capability"], "9.0", record)


if __name__ == "__main__":
    unittest.main()
