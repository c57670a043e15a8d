import sys; sys.argv=['x']
exec(open('fit.py').read().split("if __name__")[0])
import random, itertools
def group(p): D=p['head_dim']; return 64 if D<=64 else 128 if D<=128 else D
use=[p for p in L if ok(p) and not (p['causal'] and 2*p['seq_q']>=p['seq_k'])]
def loss(R,starts,G,power=2):
    tot=0;n=0
    for p in use:
        if group(p) not in G: continue
        for w in ('us','us_in_slices'):
            u=p[w]; t={n_:x for n_,x in times(p,R,starts).items() if n_ in u}
            c=min(t,key=t.get); m=min(u.values())
            l=u[c]/m-1
            tot+=l+ (20*max(0,l-.03)) ; n+=1
            # keep predicted ratios near truth
            for k in t: tot+=0.01*abs(math.log(u[k]/t[k]) )
    return tot/n
random.seed(1)
R={64:[[5.8,9.3,12.3],[12.5,13.5],[9.1,9.6]],128:[[8.7,12.1,15.2],[15.8,16.5],[9.7,16.0]],192:[[11.4,16.0],[16.5,22]],256:[[15,21.5],[22,32]]}
R={k:[list(map(float,x)) for x in v] for k,v in R.items()}
starts=[5.4,17.3,8.3,20.]
def get(R): return {k:(tuple(v[0]),tuple(v[1]),tuple(v[2]) if len(v)>2 else ()) for k,v in R.items()}
best=loss(get(R),starts,(64,128,192,256)); print(best)
for it in range(8000):
    if random.random()<.12:
        i=random.randrange(4); old=starts[i]; starts[i]*=math.exp(random.gauss(0,.08)); G=(64,128,192,256)
        l=loss(get(R),starts,G)
        if l<best: best=l
        else: starts[i]=old
    else:
        D=random.choice((64,128,192,256)); a=random.randrange(len(R[D])); b=random.randrange(len(R[D][a]))
        old=R[D][a][b]; R[D][a][b]*=math.exp(random.gauss(0,.04))
        l=loss(get(R),starts,(64,128,192,256))
        if l<best: best=l
        else: R[D][a][b]=old
print(best,{k:[[round(y,1) for y in x] for x in v] for k,v in R.items()},[round(s,1) for s in starts])
RR={k:tuple(tuple(round(y,1) for y in x) for x in v) for k,v in R.items()}
RR={k:v if len(v)>2 else v+((),) for k,v in RR.items()}
st=[round(s,1) for s in starts]
judge(RR,show=12,starts=st); judge(RR,'us_in_slices',show=12,starts=st)
