import numpy as np
rng=np.random.default_rng(1)
H,Nq,Nk=4,256,4096
def bf(x):
    u=x.astype(np.float32).view(np.uint32); u=(u+0x7fff+((u>>16)&1))&0xffff0000
    return u.view(np.float32).astype(np.float64)
def fp(x): return x.astype(np.float16).astype(np.float64)
for name,r,D in (('fp16',fp,64),('fp16',fp,128),('bf16',bf,64),('bf16',bf,128)):
    q,do=(r(rng.standard_normal((H,Nq,D))) for _ in range(2)); k,v=(r(rng.standard_normal((H,Nk,D))) for _ in range(2))
    i=np.arange(Nq)[:,None]+Nk-Nq; j=np.arange(Nk)[None]
    res={}
    for what in('plain','alibi'):
        s=q@k.transpose(0,2,1)/D**.5
        if what=='alibi': s=s-np.array([2.0**(-8*(h+1)/H) for h in range(H)])[:,None,None]*abs(i-j)
        s=np.where(j>i,-np.inf,s); p=np.exp(s-s.max(-1,keepdims=True)); l=p.sum(-1,keepdims=True)
        P=p/l; o=P@v; dP=do@v.transpose(0,2,1); d=(do*o).sum(-1,keepdims=True); dS=P*(dP-d); dq=dS@k/D**.5; dk=dS.transpose(0,2,1)@q/D**.5; dv=P.transpose(0,2,1)@do
        scale=2**7 # P to a range where it has its bits
        o2=r(r(p*scale)@v/l/scale); d2=(do*o2).sum(-1,keepdims=True)
        dS_=P*(dP-d2); f=2.0**10; dS2=r(dS_*f)/f
        P2=r(P*f)/f
        dq2=r(dS2@k/D**.5); dk2=r(dS2.transpose(0,2,1)@q/D**.5); dv2=r(P2.transpose(0,2,1)@do)
        e=lambda a,b: np.linalg.norm(a-b)/np.linalg.norm(b)
        # exact d: what D's share is
        dS3=r(P*(dP-d)*f)/f
        res[what]=[e(o2,o),e(dq2,dq),e(dk2,dk),e(dv2,dv),e(r(dS3@k/D**.5),dq)]
    print(name,D,'alibi over plain: o dq dk dv, dq with exact D:',[round(a/b,3) for a,b in zip(res['alibi'],res['plain'])],['%.3g'%x for x in res['plain']])
