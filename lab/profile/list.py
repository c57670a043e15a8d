import sys
from prof import load, STALL
f=sys.argv[1]; lo=int(sys.argv[2])
rows=load(f); tot=sum(int(r['# Samples']) for r in rows)
for i,r in enumerate(rows):
    k=int(r['Instructions Executed'] or 0); s=int(r['# Samples'])
    if k>=2000000:
        st=sorted(((int(r[x] or 0),x[6:]) for x in STALL),reverse=True)[:3]
        if s>=lo: print(i,s,f"{100*s/tot:.2f}%",r['Source'][:90],' '.join(f"{b}:{a}" for a,b in st if a>20))
