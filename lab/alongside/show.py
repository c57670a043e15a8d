import sys, json, collections
rows=[json.loads(l) for l in open(sys.argv[1]) if l.startswith("{")]
by=collections.OrderedDict()
for r in rows: by.setdefault((r["head_dim"],r["seq"],r["causal"],r["grouped"]),{})[r["name"]]=r
names=list(dict.fromkeys(r["name"] for r in rows))
print("point", *names)
for k,v in by.items():
    b=v["followed"]
    print("%3d %5d %s%s"%(k[0],k[1],"c" if k[2] else "-",k[3]), "%7.1f %7.1f"%(b["us"],b["us_in_slices"]), " | ".join("%.3f %.3f%s"%(b["us"]/v[n]["us"],b["us_in_slices"]/v[n]["us_in_slices"]," OFF%.4f"%v[n]["off"] if v[n]["off"]>0 else "") for n in names[1:]))
