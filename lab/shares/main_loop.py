import re,sys
# the inner loop: smallest backward branch region with 64+ EX2... prints ops between label and branch on straight path
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
        if e>=30 and g>=6 and (best is None or len(s)<best[2]): best=(lab[m.group(1)],i,len(s))
s=L[best[0]:best[1]+1]
ops=[re.sub(r'.*\*/\s+','',x).strip() for x in s if '/*' in x]
open(sys.argv[1]+'.ml','w').write('\n'.join(ops))
print(sys.argv[1],best,len(ops))
