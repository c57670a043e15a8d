import re,sys
from collections import Counter
L=open(sys.argv[1]).read().split('\n')
lab={}
for i,l in enumerate(L):
    m=re.match(r'\s*(\.L_x_\d+):',l)
    if m: lab[m.group(1)]=i
best=None
for i,l in enumerate(L):
    m=re.search(r'BRA.*`\((\.L_x_\d+)\)',l)
    if m and m.group(1) in lab and lab[m.group(1)]<i:
        s=L[lab[m.group(1)]:i+1]; e=sum('MUFU.EX2' in x for x in s); g=sum('HGMMA' in x for x in s)
        if e>=60 and g and (best is None or len(s)<best[2]): best=(lab[m.group(1)],i,len(s))
print(best)
s=L[best[0]:best[1]+1]
ops=[re.sub(r'.*\*/\s+','',x).strip() for x in s if '/*' in x]
c=Counter(re.sub(r'^@!?U?P\d+ ','',o).split()[0].rstrip(';') for o in ops)
print(len(ops),c.most_common(40))
open(sys.argv[1]+'.loop','w').write('\n'.join(s))
# condensed sequence
seq=[];
for x in s:
    if re.match(r'\s*\.L_x',x): seq.append(x.strip()); continue
    o=re.sub(r'.*\*/\s+','',x).strip(); o=re.sub(r'^@!?U?P\d+ ','@',o).split(' ')[0].rstrip(';')
    k=o.split('.')[0]
    if o.startswith('MUFU.EX2'): k='EX2'
    if seq and seq[-1][0]==k: seq[-1][1]+=1
    else: seq.append([k,1])
print(' '.join(x if isinstance(x,str) else f'{x[0]}*{x[1]}' if x[1]>1 else x[0] for x in seq))
