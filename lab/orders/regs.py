import re,sys
from collections import Counter
for n in sys.argv[1:]:
    L=open(n+'.s.loop').read().split('\n')
    T=[re.sub(r'.*\*/\s+','',x).strip().rstrip(' ;') for x in L if '/*' in x]
    m=[re.search(r'-(R\d+)',t).group(1) for t in T if t.startswith('FFMA')][:3:2]
    vm=[t for t in T if t.startswith('VIMNMX3')]
    ex=[re.match(r'MUFU.EX2 (R\d+), (R\d+)',t).groups() for t in T if t.startswith('MUFU.EX2')][2:]
    print(n,'m',m,'l',re.search(r', (R\d+), R24',vm[0]).group(1),re.search(r', (R\d+), R26',vm[1]).group(1),'t',vm[0].split()[1],vm[1].split()[1],'ex->other',' '.join(f"{d}<{s}" for d,s in ex if d!=s and int(d[1:])<120),'n',len(T))
