"""merge_mutants.py OUTPUT-of-some_mutants: its lines come into the GPU's table of common/tests/mutants/README.md"""
import json, re, sys
from pathlib import Path
out = Path(sys.argv[1]).read_text()
readme = Path("/work/main/common/tests/mutants/README.md")
text = readme.read_text()
head, rest = text.split("<!-- kills: gpu -->\n"); table, tail = rest.split("<!-- /kills -->", 1)
new = dict(re.findall(r"^\| `(\w+)` (\| .*)$", out.split("| kind of test")[0], re.M))
engine = re.findall(r"^\| `(\w+)`", head.split("<!-- kills: engine -->")[1].split("| kind of test")[0], re.M)
lines = table.strip().split("\n"); cut = lines.index("")
old = dict(re.findall(r"^\| `(\w+)` (\| .*)$", "\n".join(lines[:cut]), re.M))
# order: that of old, with the new ones before refuses_everything in the engine's order
names = [n for n in old if not n.startswith("refuses_")] + [n for n in engine if n in new] + [n for n in old if n.startswith("refuses_")]
both = {**old, **new}
kinds_old = {m[0]: m[1] for m in re.findall(r"^\| (\w+) \| (.*?) \| \d+ \| .*\|$", "\n".join(lines[cut:]), re.M)}
kinds_new = {m[0]: m[1] for m in re.findall(r"^\| (\w+) \| (.*?) \| \d+ \| \d+ \| \d+ \| .*\|$", out, re.M)}
order = list(kinds_new)
assert set(kinds_old) <= set(order), set(kinds_old) - set(order)
killers = {n: [k.strip() for k in both[n].rstrip(" |").split("|")[-1].split(",")] for n in names}
result = ["| mutant | its mistake | rejected by |", "|---|---|---|"] + [f"| `{n}` {both[n]}" for n in names]
result += ["", "| kind of test | looks for | rejects | and nobody else rejects |", "|---|---|--:|---|"]
for k in order:
    r = [n for n in names if k in killers[n]]
    alone = [f"`{n}`" for n in r if killers[n] == [k]]
    result.append(f"| {k} | {kinds_new[k]} | {len(r)} | {', '.join(alone)} |")
    if not alone: print("nothing alone:", k)
readme.write_text(head + "<!-- kills: gpu -->\n\n" + "\n".join(result) + "\n\n<!-- /kills -->" + tail)
print(len(new), "new lines;", [n for n in new if not killers[n] or killers[n] == ['']])
