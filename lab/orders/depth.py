import re,sys
from collections import Counter
def seq(n):
    out=[]
    for l in open(n):
        m=re.match(r'\s*([0-9a-f]+) st\s*(\d+) (.) w(.) r(.) ([01]{6}) (.*)',l)
        if m: out.append((int(m[2]),m[3],m[4],m[6],re.sub(r'^@!?U?P\d+ ','',m[7])))
    return out
for n in sys.argv[1:]:
    s=seq(n); v=[i for i,x in enumerate(s) if x[4].startswith('VOTE.ANY')][0]
    ex=[i for i,x in enumerate(s) if x[4].startswith('MUFU.EX2') and i>v][2:]
    s=s[ex[0]:]
    when={};k=0;ds=[]; conv=[]
    for st,y,w,wait,t in s:
        if t.startswith('MUFU.EX2'):
            k+=1; when[re.match(r'MUFU.EX2 (R\d+)',t)[1]]=k
        m=re.match(r'FADD R\d+, (R\d+)(?:\.reuse)?, (R\d+)',t)
        if m and m[1] in when and m[2] in when: ds.append(k-max(when[m[1]],when[m[2]]))
        m=re.match(r'F2FP\S+ (R\d+), (R\d+)(?:\.reuse)?, (R\d+)',t)
        if m: conv.append(k-max(when.get(m[2],0),when.get(m[3],0)))
    stalls=sum(x[0] for x in s)
    bars=Counter(x[2] for x in s if x[4].startswith('MUFU'))
    print(n.ljust(9),'FADD depth',dict(sorted(Counter(ds).items())),'F2FP',dict(sorted(Counter(conv).items())),'stalls',stalls,'muf bars',dict(bars))
