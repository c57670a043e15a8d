import re,sys
def load(f,first):
    out=[];on=False;lines=open(f).read().split('\n')
    for i,l in enumerate(lines):
        if l.startswith('.text.'):
            on = first in l
        if not on: continue
        m=re.match(r'\s*(\.L_x_\d+):',l)
        if m: out.append((m.group(1),None)); continue
        m=re.match(r'\s*/\*([0-9a-f]{4,})\*/\s+(.*?);\s*/\* 0x([0-9a-f]{16}) \*/',l)
        if m:
            n=re.search(r'/\* 0x([0-9a-f]{16}) \*/',lines[i+1])
            hi=int(n.group(1),16); c=hi>>41&0x1fffff
            out.append((m.group(2).strip(),dict(addr=int(m.group(1),16),stall=c&15,yld=c>>4&1,wb=c>>5&7,rb=c>>8&7,wait=c>>11&63,reuse=hi>>58&15)))
    return out
def loop(o):
    lab={}
    for i,(t,c) in enumerate(o):
        if c is None: lab[t]=i
    best=None
    for i,(t,c) in enumerate(o):
        m=re.search(r'BRA.*`\((\.L_x_\d+)\)',t)
        if m and m.group(1) in lab and lab[m.group(1)]<i:
            s=o[lab[m.group(1)]:i+1]
            if sum('MUFU.EX2' in x for x,_ in s)>=60 and any('HGMMA' in x for x,_ in s) and (best is None or len(s)<len(best)): best=s
    return best
if __name__=='__main__':
    s=loop(load(sys.argv[1],sys.argv[2]))
    for t,c in s:
        if c is None: print(t+':'); continue
        print(f"{c['addr']:6x} st{c['stall']:2d} {'Y' if not c['yld'] else '-'} w{c['wb'] if c['wb']!=7 else '-'} r{c['rb'] if c['rb']!=7 else '-'} {c['wait']:06b} {t}")
