import subprocess,re,sys,collections
N,cub,pat=sys.argv[1:4]
t=subprocess.run([N,'-c',cub],capture_output=True,text=True).stdout
for sec in re.split(r'\n(?=\.section\s+\.text\.)|\n(?=//-+ \.text\.)',t):
    m=re.search(r'\.text\.(\S+)',sec)
    if not m or not re.search(pat,m[1]): continue
    ops=[x.split('.')[0] if not x.startswith(('HGMMA','WARPG','BAR')) else x for x in re.findall(r'^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)',sec,re.M)]
    c=collections.Counter(ops)
    print(m[1][:120],len(ops)); print('  ',{k:v for k,v in c.most_common(40)})
