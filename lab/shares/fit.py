import json,math
SM=132
L=[json.loads(l) for l in open('LAB/rates.json')]
ceil=lambda a,b:-(-a//b)
def keys(p,i): return p['seq_k'] if not p['causal'] else max(0,min(p['seq_k'],i+1+p['seq_k']-p['seq_q']))
def rounds(p,Br):
    n=p['batch']*p['heads']*ceil(p['seq_q'],Br)/SM
    if n<=1: return 1
    miss=math.ceil(n)-n
    if not miss: return n
    return n+miss*max(1,keys(p,int((1-miss)/n*p['seq_q'])))/max(1,keys(p,p['seq_q']-1))
old={64:((6.3,12,12.8),(14.9,14.6),(9.8,9.8)),128:((9.3,11.9,14.3),(15.4,16),(8.6,14)),192:((10.3,14.8),(19.6,22.1),()),256:((13.6,21),(27.2,30.2),())}
def wparts(p):
    D=p['head_dim']; tiles=p['batch']*p['kv_heads']*ceil(p['heads']//p['kv_heads']*p['seq_q'],64)
    return None
def times(p,R,starts=(4.6,18,8.2),mean=False,avgkeys=False):
    D=p['head_dim']; r=R[64 if D<=64 else 128 if D<=128 else D]
    k=p['seq_k']/1000
    if avgkeys and p['causal']: k=(p['seq_k']-p['seq_q']/2)/1000
    rows=p['heads']//p['kv_heads']*p['seq_q']; kv=p['batch']*p['kv_heads']
    wide=D>128
    fm=4*kv*p['seq_k']*D>60*2**20
    ev=r[1][1 if fm and len(r[1])>1 else 0]
    n=kv*ceil(rows,128 if wide else 192)/SM; wr=max(0,math.ceil(n)-1)
    even=starts[3 if wide else 1]+(wr*r[1][0]+(n-wr)*ev)*k
    if wide: return dict(even=even,prompt=starts[0]+rounds(p,128)*r[0][p['seq_q']>64]*k)
    tiles=kv*ceil(rows,64)
    parts=max(1,min(int(SM*(2 if D<=64 else 1)/tiles),ceil(p['seq_k'],128)))
    rd=tiles*parts/SM
    wg=r[2][0] if rd<=1 else math.ceil(rd/2)*r[2][1]
    return dict(even=even,prompt=min(starts[0]+rounds(p,64*(i+1))*r[0][i]*k for i in range(3)),warpgroup=starts[2]+wg/parts*k)
def ok(p):
    rows=p['heads']//p['kv_heads']*p['seq_q']
    return rows>(16 if p['head_dim']<=128 else 0)
def judge(R,which='us',show=0,**kw):
    out=[]
    for p in L:
        if not ok(p): continue
        if p['causal'] and 2*p['seq_q']>=p['seq_k']: c='prompt'
        else:
            t={n:x for n,x in times(p,R,**kw).items() if n in p[which]}; c=min(t,key=t.get)
        u=p[which]
        out.append((u[c]/min(u.values()),c,min(u,key=u.get),p['batch'],p['heads'],p['kv_heads'],p['seq_q'],p['seq_k'],p['head_dim'],p['causal'],u))
    out.sort(key=lambda o:-o[0])
    print(which,len(out),'mean',sum(o[0] for o in out)/len(out),'>1.03:',sum(o[0]>1.03 for o in out),'>1.05',sum(o[0]>1.05 for o in out))
    for o in out[:show]: print('  ',round(o[0],3),*o[1:])
if __name__=='__main__':
    judge(old,show=12); judge(old,'us_in_slices',show=12)
    # ratio of measured to predicted per kind
    import collections
    for w in ('us','us_in_slices'):
        d=collections.defaultdict(list)
        for p in L:
            if p['causal'] and 2*p['seq_q']>=p['seq_k']: continue
            if not ok(p): continue
            t=times(p,old)
            for n in t:
                if n in p[w] and p[w][n]>60: d[n,p['head_dim'], 4*p['batch']*p['kv_heads']*p['seq_k']*p['head_dim']>60*2**20].append(p[w][n]/t[n])
        for k,v in sorted(d.items()): v.sort(); print(w,k,len(v),[round(v[int(len(v)*q)],3) for q in (0,.1,.5,.9)],round(v[-1],3))
