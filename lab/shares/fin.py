exec(open('fit.py').read().split("if __name__")[0])
R={64:((6.2,8.8,12.1),(13,12.8),(9.4,9.4)),128:((9.4,12.9,15.4),(15.9,16.8),(9.6,15.9)),192:((11.9,16.2),(17.1,23.5),()),256:((15.2,20.8),(23.9,32.4),())}
st=(4.7,23,10.7,23)
judge(R,show=5,starts=st); judge(R,'us_in_slices',show=5,starts=st)
def judge2(mar,which):
    out=[]
    for p in L:
        if not ok(p): continue
        if p['causal'] and 2*p['seq_q']>=p['seq_k']: c='prompt'
        else:
            t={n:x for n,x in times(p,R,st).items() if n in p[which]}
            o={n:x for n,x in t.items() if n!='prompt'}; c=min(o,key=o.get)
            if t['prompt']<mar*o[c]: c='prompt'
        u=p[which]; out.append((u[c]/min(u.values()),c,p['batch'],p['heads'],p['kv_heads'],p['seq_q'],p['seq_k'],p['head_dim'],p['causal'],u))
    out.sort(key=lambda o:-o[0])
    print(mar,which,sum(o[0] for o in out)/len(out),sum(o[0]>1.03 for o in out),out[:3])
for m in (1,1.02,1.03,1.05): judge2(m,'us'); judge2(m,'us_in_slices')
