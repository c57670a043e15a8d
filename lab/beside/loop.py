# loop.py FILE [MARK]: of the first kernel (no polynomial, bf16): the lines of the main loop, branches and kinds
import re,sys
t=open(sys.argv[1]).read().split('\t.section\t.text')[1]
lines=[re.sub(r'\s*/\*[0-9a-f]{4,}\*/\s*','',l).strip() for l in t.split('\n')]
lines=[l for l in lines if l and not l.startswith(('.headerflags','.sectionflags','.align','.type','.size'))]
# the loop: label..branch that contains a 64x128x16 and 64x64x16 HGMMA with the branch back
lab={l[:-1]:i for i,l in enumerate(lines) if re.match(r'^\.L_x?_?\d+:$|^\.L\w+:$',l)}
best=None
for i,l in enumerate(lines):
    m=re.search(r'BRA\S*\s+.*`\((\.L\w+)\)',l)
    if m and m.group(1) in lab and lab[m.group(1)]<i:
        body=lines[lab[m.group(1)]:i+1]
        if any('64x128x16' in x for x in body) and any('64x64x16' in x for x in body) and (best is None or len(body)<len(best)): best=body
if best is None: print('no loop'); sys.exit()
def kind(x):
    x=re.sub(r'^@!?U?P\d+\s+','',x)
    o=x.split()[0].rstrip(';')
    for a,b in (('MUFU','X'),('HGMMA','H'),('F2FP','c'),('FADD','+'),('FFMA','f'),('FMUL','*'),('VIMNMX','m'),('FMNMX','m'),('SYNCS','Y'),('BAR','B'),('WARPGROUP.DEPBAR','W'),('WARPGROUP','w'),('BRA','J'),('.L','L'),('SHFL','s'),('SEL','l'),('MOV','v'),('IMAD','i')):
        if o.startswith(a): return b
    return '.'
s=''.join(kind(x) for x in best)
s=re.sub('L','\nL',s); print(len(best)); print(s)
if len(sys.argv)>2: print('\n'.join(best))
