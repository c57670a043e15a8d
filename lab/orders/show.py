import json,sys
last=None
for l in open(sys.argv[1]):
    r=json.loads(l); k=tuple(r[x] for x in('kind','head_dim','batch','heads','seq_q','seq_k','causal'))
    if k!=last: print(*k); base=r; last=k
    print(f"   {r['name']:8s} {r['us']:9.1f} {r['us_in_slices']:9.1f}  {base['us']/r['us']:.3f} {base['us_in_slices']/r['us_in_slices']:.3f} off {r['off']}")
