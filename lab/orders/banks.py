# per function and innermost HGMMA loop: FFMA with a uniform or constant operand and two GPRs of one parity without reuse
import re,sys
from collections import Counter
def load(f):
    fn=None;out={};lines=open(f).read().split('\n')
    for i,l in enumerate(lines):
        if l.startswith('.text.'): fn=l[6:].rstrip(':'); out[fn]=[]; continue
        if fn is None: continue
        m=re.match(r'\s*(\.L_x_\d+):',l)
        if m: out[fn].append((m.group(1),None,0)); continue
        m=re.match(r'\s*/\*([0-9a-f]{4,})\*/\s+(.*?);',l)
        if m: out[fn].append((m.group(2).strip(),int(m.group(1),16),0))
    return out
def loops(o):
    lab={t:i for i,(t,a,_) in enumerate(o) if a is None}
    r=[]
    for i,(t,a,_) in enumerate(o):
        m=re.search(r'BRA.*`\((\.L_x_\d+)\)',t)
        if m and m.group(1) in lab and lab[m.group(1)]<i:
            s=o[lab[m.group(1)]:i+1]
            if any('HGMMA' in x[0] for x in s) and sum('MUFU.EX2' in x[0] for x in s)>=16: r.append((lab[m.group(1)],i))
    # innermost
    return [o[a:b+1] for a,b in r if not any((c,d)!=(a,b) and c>=a and d<=b for c,d in r)]
def conflicts(s):
    held={} # slot -> reg in reuse cache
    n=Counter()
    for t,a,_ in s:
        if a is None: held={}; continue
        t=re.sub(r'^@!?U?P\d+ ','',t); op=t.split()[0]
        if not op.split('.')[0] in ('FFMA','FADD','FMUL','VIMNMX3','F2FP','FMNMX','FSEL','ISETP','FSETP'): held={}; continue
        args=[x.strip() for x in t[len(op):].split(',')]
        srcs=args[1:]
        new={};regs=[]
        for k,x in enumerate(srcs):
            m=re.match(r'[-|~!]*R(\d+)',x)
            if not m: continue
            r=int(m.group(1))
            if held.get(k)!=r: regs.append(r)
            if 'reuse' in x: new[k]=r
        held=new
        u=set(regs); 
        c=Counter(r%2 for r in u)
        if op.startswith('FFMA'): n['FFMA']+=1
        if max(c.values(),default=0)>=2: n['2 '+op.split('.')[0]]+=1
        if max(c.values(),default=0)>=3: n['3 '+op.split('.')[0]]+=1
    return n
if __name__=='__main__':
    for f in sys.argv[1:]:
        for fn,o in load(f).items():
            for s in loops(o):
                n=conflicts(s)
                m=Counter(re.search(r'-(R\d+)',t).group(1) for t,a,_ in s if t.startswith('FFMA') and re.search(r'-(R\d+)',t))
                print(f, re.sub(r'.*?(forward|backward|attend)','\\1',fn)[:60], dict(n), dict(m.most_common(3)))
