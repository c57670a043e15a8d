import json,collections
c=collections.Counter()
for l in open('/tmp/h41/pub1.jsonl'):
    d=json.loads(l); n=d['new']
    if 'compile' in n: k='no compile'
    elif 'link' in n: k='no link'
    elif n.get('rc')==124: k='timeout'
    elif n.get('wrong'): k='mistake/large'
    elif n.get('rc')==0: k='right'
    else: k='rc'
    c[k]+=1
    new=[x[:200] for x in n.get('notes',[]) if 'undefined' in x or 'or the old one' in x]
    if d.get('differs') or new:
        if n.get('wrong') and all('would take about' in w for w in n['wrong']): continue
        print(d['program']); print('   new ',n.get('compile') or n.get('rc'),[w[:260] for w in n.get('wrong',[])],new)
        b=d.get('base',{}); print('   base',b.get('compile') or b.get('rc'),[w[:260] for w in b.get('wrong',[])])
print(c)
