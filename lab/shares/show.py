import json,collections,sys
g=collections.OrderedDict()
for l in open(sys.argv[1]):
    d=json.loads(l); k=(d['head_dim'],d['batch'],d['heads'],d['kv_heads'],d['seq_q'],d['seq_k'],d['causal'])
    g.setdefault(k,{})[d['name']]=(d['us'],d['us_in_slices'],d['off'])
base=sys.argv[2]
for k,v in g.items():
    b=v[base]
    print(k, ' '.join(f"{n} {x[0]:.1f}/{x[1]:.1f} ({x[0]/b[0]:.2f}/{x[1]/b[1]:.2f})" +(f' off {x[2]:.4f}' if x[2]>.004 else '') for n,x in v.items()))
