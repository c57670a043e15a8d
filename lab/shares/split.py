import re,sys
for f in ('even.s','whole.s'):
    t=open(f).read()
    parts=re.split(r'\n\s*//-+ (\.text\.\S+)',t)
    for n,b in zip(parts[1::2],parts[2::2]):
        m=re.search(r'forwardI(\S+?)Li(\d+)E',n)
        if m: open(f"{f[:-2]}_{'bf' if 'bfl' in m.group(1) else 'hf'}{m.group(2)}.k.s",'w').write(b)
