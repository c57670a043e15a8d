import sys,re
from collections import Counter
from banks import load,loops
for f in sys.argv[1:]:
    for fn,o in load(f).items():
        if 'forwardI6__half' in fn or 'backward' in fn: continue
        lab={t:i for i,(t,a,_) in enumerate(o) if a is None}; best=None
        for i,(t,a,_) in enumerate(o):
            m=re.search(r'BRA.*`\((\.L_x_\d+)\)',t)
            if m and m.group(1) in lab and lab[m.group(1)]<i:
                s=o[lab[m.group(1)]:i+1]
                if sum('MUFU.EX2' in x[0] for x in s)>=30 and any('HGMMA' in x[0] for x in s) and (best is None or len(s)<len(best)): best=s
        if not best: continue
        ff=[re.search(r', -?(R\d+)(\.reuse)?$',x[0]) for x in best if x[0].startswith('FFMA')]
        c=Counter(x.group(1) for x in ff if x)
        k=re.sub(r'^.*?(forward|attend)','\\1',fn)[:70].replace('13__nv_bfloat16','B')
        print(f.split('/')[-1][12:28],k,'loop',len(best),c.most_common(2))
