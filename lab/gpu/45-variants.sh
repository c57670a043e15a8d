# in the tree's root; .carry/45b is a copy of /tmp/h2/45-carry2. About 30 s, no build needed. -> $OUT/wide3.jsonl
for i in 1 2; do for v in halves held0 held2 held3 held4 halves_early held0_early held3_early held4_early never_early; do timeout 20 .carry/45b/$v | sed "s/\"never\"/\"never of $v\"/"; done; done > $OUT/wide3.jsonl 2>&1
python3 - <<'P'
import json, os
for l in open(os.environ["OUT"] + "/wide3.jsonl"):
    try: r = json.loads(l.strip().rstrip(","))
    except ValueError: print(l[:200]); continue
    print(f"{r['sums']:24}", *[f"{r[k]:6.0f}" for k in r if "tflops" in k or "back" in k], r.get("error_4096_mean1"), r.get("failed", ""))
P
