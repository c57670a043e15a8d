from prof import load
def ph(f,cuts,cyc):
    rows=load(f); hot=[(i,int(r['# Samples']),int(r['Instructions Executed'] or 0)) for i,r in enumerate(rows)]
    ent=[(i,s) for i,s,k in hot if k>=1900000 and i<2400]
    tot=sum(s for i,s in ent)
    print(f,tot)
    for (a,b,n) in cuts:
        s=sum(s for i,s in ent if a<=i<=b); c=sum(1 for i,_ in ent if a<=i<=b)
        print(f"  {n:34} {c:4} instr {s:7} samples {cyc*s/tot:7.0f} cycles")
ph('fa4rep',[(708,716,'K wait'),(717,726,'before turn'),(727,727,'turn'),(728,742,'S issue'),(743,744,'V wait'),(745,771,'PV issue'),(772,773,'pass turn, S wait'),(774,846,'max'),(847,1001,'x, first exps, rescale, some pack'),(1002,1125,'exps, pack')],2448)
ph('ours_late',[(1001,1012,'K wait'),(1013,1017,'V wait'),(1018,1028,'before turn'),(1029,1029,'turn'),(1030,1047,'S issue'),(1048,1064,'PV issue'),(1065,1065,'S wait'),(1066,1165,'x, max, pass turn'),(1166,1423,'decide'),(1581,1710,'exps'),(1711,1720,'K wait?, PV wait'),(1753,1790,'pack')],2575)
