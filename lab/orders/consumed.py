# where an answer of test_wait is waited for: exponentials (MUFU) between the question and the first instruction that waits for its scoreboard
import re,sys
from ctl import load,loop
def look(f,key):
    o=load(f,key)
    # hottest: find all non-TRYWAIT PHASECHK
    L=[(t,c) for t,c in o]
    for i,(t,c) in enumerate(L):
        if c and 'SYNCS.PHASECHK.TRANS64 P' in t:
            b=c['wb']; n=0
            for u,d in L[i+1:i+400]:
                if d is None: continue
                if d['wait']>>b&1: print('   question at %x, w%d: %d exponentials, then %x %s'%(c['addr'],b,n,d['addr'],u[:50])); break
                if u.startswith('MUFU.EX2'): n+=1
for a in sys.argv[1:]:
    f,k=a.split(':'); print(f,k); look(f,k)
