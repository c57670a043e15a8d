"""The GPU's table for those mutants alone that README has not: some_mutants.py gpu|engine [NAME..]"""
import json, re, sys, time
sys.path.insert(0, "common")
from pathlib import Path
from tools.base import build
from tools.commands import mutants as m
device, names = sys.argv[1], sys.argv[2:]
preset, programs = m.PROGRAMS[device]
directory = build.ensure_built(preset, programs) if device == "engine" else Path("build/cuda")
programs = [Path(directory) / "common/tests/mutants" / name for name in programs]
plain = m._output
if not names:
    text = m.README.read_text().split(f"<!-- kills: {device} -->")[1]
    have = set(re.findall(r"^\| `(\w+)`", text, re.M))
    names = [n for n in json.loads(plain([programs[0], "list"]))["mutants"] if n not in have]
def of_some(command, *more):
    out = plain(command, *more)
    if command[1] == "list":
        d = json.loads(out); d["mutants"] = {k: v for k, v in d["mutants"].items() if k in names}; out = json.dumps(d)
    return out
m._output = of_some
begin = time.time()
found = m.matrix(programs, device == "gpu")
print(m.as_markdown(found))
print(json.dumps({"rejected": {k: {a: list(b) for a, b in v.items()} for k, v in found.rejected.items()}, "seconds": time.time() - begin}))
