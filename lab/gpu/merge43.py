import json, re, sys
from pathlib import Path
readme = Path("/work/main/common/tests/mutants/README.md"); text = readme.read_text()
head, rest = text.split("<!-- kills: gpu -->\n"); table, tail = rest.split("<!-- /kills -->", 1)
listed = json.load(open("/tmp/o1/mut/list.json")); kinds_all = {k: v["looks_for"] for k, v in listed["kinds"].items()}
new = {}
for n in open("/tmp/o1/mut/names").read().split():
    f = Path(f"/tmp/oc/mut/{n}.tests"); f = f if f.exists() else Path(f"/tmp/o1/mut/{n}.tests")
    t = f.read_text(); assert re.search(rf"^{n}$", t, re.M), n
    got = set(re.findall(rf"^{n} (\w+) [\w.]+: ", t, re.M)); assert got, n
    new[n] = [k for k in kinds_all if k in got]
lines = table.strip().split("\n"); cut = lines.index("")
old = {m[0]: (m[1], m[2]) for m in re.findall(r"^\| `(\w+)` \| (.*) \| (.*?) \|$", "\n".join(lines[:cut]), re.M)}
names = list(listed["mutants"]); assert set(names) == set(old) | set(new), set(names) ^ (set(old) | set(new))
cell = lambda s: s.replace("|", "&#124;")
both = {n: (old[n][0], [k.strip() for k in old[n][1].split(",")]) if n in old else (cell(listed["mutants"][n]), new[n]) for n in names}
kinds_old = {m[0]: m[1] for m in re.findall(r"^\| (\w+) \| (.*?) \| \d+ \| .*\|$", "\n".join(lines[cut:]), re.M)}
order = list(kinds_all) + [k for k in kinds_old if k not in kinds_all]
result = ["| mutant | its mistake | rejected by |", "|---|---|---|"] + [f"| `{n}` | {both[n][0]} | {', '.join(both[n][1])} |" for n in names]
result += ["", "| kind of test | looks for | rejects | and nobody else rejects |", "|---|---|--:|---|"]
for k in order:
    r = [n for n in names if k in both[n][1]]; alone = [f"`{n}`" for n in r if both[n][1] == [k]]
    result.append(f"| {k} | {cell(kinds_all.get(k) or kinds_old[k])} | {len(r)} | {', '.join(alone)} |")
    if not alone: print("nothing alone:", k)
readme.write_text(head + "<!-- kills: gpu -->\n\n" + "\n".join(result) + "\n\n<!-- /kills -->" + tail)
for n in new: print(n, new[n])
