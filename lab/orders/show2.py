import json,sys,math
from collections import defaultdict
rows=[json.loads(l) for l in open(sys.argv[1]) if l.startswith('{')]
acc=defaultdict(list)
for a,b in zip(rows[::2],rows[1::2]):
    k=(a['kind'],a['head_dim'],a['heads'],a['seq_q'],a['seq_k'],'c' if a['causal'] else 'f',b['off'])
    acc[k].append((a['us']/b['us'],a['us_in_slices']/b['us_in_slices'],b['us']))
for k,v in acc.items(): print(*k,' '.join(f"{x:.3f}/{y:.3f}" for x,y,_ in v), f"{v[0][2]:.1f}us")
for x in (0,1): print('mean',math.exp(sum(math.log(v[x]) for l in acc.values() for v in l)/sum(map(len,acc.values()))))
