import csv,sys,re,collections
def load(f):
    rows=list(csv.reader(open(f+'.source.csv')))
    h=rows[1]; return [dict(zip(h,r)) for r in rows[2:]]
def loop(f):
    rows=load(f)
    n=[int(r['Instructions Executed'] or 0) for r in rows]
    mx=max(n)
    return rows,n
STALL=[ 'stall_barrier','stall_branch_resolving','stall_dispatch','stall_imc','stall_long_sb','stall_math','stall_mio','stall_no_inst','stall_not_selected','stall_selected','stall_short_sb','stall_sleep','stall_wait','stall_misc']
for f in (sys.argv[1:] if __name__=="__main__" else []):
    rows,n=loop(f)
    c=collections.Counter(n).most_common(8); print(f,[x for x in c if x[0]>1000][:6])
    tot=sum(int(r['# Samples']) for r in rows); print('samples',tot)
    # hot loop: instructions executed per step count
    steps=12*2752*63 if 'fa4' in f else None
    s=collections.Counter(); byop=collections.Counter(); cnt=collections.Counter(); st=collections.Counter()
    for r,k in zip(rows,n):
        op=r['Source'].split()
        o=op[1] if op[0].startswith('@') else op[0]
        o=o.split('.')[0]+('.'+o.split('.')[1] if o.startswith(('MUFU','HGMMA','BAR','WARPGROUP','SYNCS')) and '.' in o else '')
        byop[o]+=int(r['# Samples']); cnt[o]+=k
        for x in STALL: st[x]+=int(r[x] or 0)
    print('  stalls', {k:round(100*v/tot,1) for k,v in st.most_common()})
    for o,v in byop.most_common(26): print(f"   {o:20} {100*v/tot:5.1f}%  exec {cnt[o]/1e6:8.1f}M")
