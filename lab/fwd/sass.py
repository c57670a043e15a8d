import subprocess,sys,re,itertools
for n in sys.argv[1:]:
    t=subprocess.run(['/tmp/h2/sass/nvidia/cu13/bin/cuobjdump','-sass',f'obj/{n}.o'],capture_output=True,text=True).stdout
    f=[x for x in t.split('Function :') if 'forward' in x.split('\n')[0]][0]
    ops=[]; total=0
    for line in f.split('\n'):
        m=re.match(r'\s+/\*([0-9a-f]{4,5})\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)',line)
        if not m: continue
        o=m.group(2); b=o.split('.')[0]
        tgt=re.search(r'BRA.*0x([0-9a-f]+)',line)
        if b=='BRA' and tgt: b='BRA^' if int(tgt.group(1),16)<int(m.group(1),16) else 'BRA'
        if b=='MUFU': b=o
        ops.append((int(m.group(1),16),b))
    ops=[b for _,b in ops]
    # main loop: print from the second HGMMA run
    keep=[b for b in ops if b in('HGMMA','MUFU.EX2','WARPGROUP','SYNCS','BAR','BRA^','FADD','FFMA','VIMNMX','VIMNMX3','F2FP','VOTE','VOTEU','FMUL','FSEL','IMNMX','FMNMX','R2UR','FSETP','ISETP','DEPBAR')]
    print('==',n,len(ops)); print(' '.join((f'{c}x' if c>1 else '')+k for k,c in ((k,len(list(g))) for k,g in itertools.groupby(keep)))[:int(3500)])
