import subprocess,re,sys
N='/work/main/build/nvidia/nvidia/cu13/bin/nvdisasm'
for cub in sys.argv[1:]:
    t=subprocess.run([N,'-c',cub],capture_output=True,text=True).stdout
    for sec in re.split(r'\n(?=\.section\s+\.text\.)|\n(?=//-+ \.text\.)',t):
        m=re.search(r'\.text\.(\S+)',sec)
        if not(m and re.search('bfloat16',m[1]) and 'forward' in m[1]): continue
        L=[re.sub(r'/\*[0-9a-f]+\*/\s+','',x.strip()) for x in re.findall(r'^\s+/\*[0-9a-f]+\*/\s+.*?;',sec,re.M)]
        ev=[(n,re.sub(r'^@\S+ ','',i).split()[0]) for n,i in enumerate(L) if re.search(r'WARPGROUP.DEPBAR|BAR\.ARV|BAR\.SYNC|QGMMA.*gsb0',i)]
        D=re.search(r'bfloat16Li(\d+)',m[1])[1]
        print(cub.split('/')[-1],'D',D,len(L),' '.join(f'{n}:{e[:12].replace("WARPGROUP.","")}' for n,e in ev))
