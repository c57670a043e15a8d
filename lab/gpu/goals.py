import json,sys,math
R='common/results/nvidia-h200/'
def load(f): return json.load(open(f if f.startswith('common') else R+f+'.json'))
def key(p):
    q=p['problem']; return f"B{q['batch']} H{q['heads']}/{q['kv_heads']} N{q['seq_q']}x{q['seq_k']} D{q['head_dim']} {q['dtype']} {'c' if q['causal'] else 'f'} {q.get('extras','')} {p['direction']}"
def rate(r): return r.get('flop_rate') or (r.get('joules') and 0)
def table(f,peers,mine='default',direction=None):
    d=load(f)
    for peer in peers:
        rs=[]
        for p in d['points']:
            if p.get('rope'): continue
            if direction and p['direction']!=direction: continue
            by={r['name']:r.get('flop_rate') for r in p['results'] if not r.get('skipped')}
            if peer=='best':
                o=[v for k,v in by.items() if v and not k[0].isdigit() and k!='default' and k not in('FA4',) ] if 'backward' in p['direction'] else [v for k,v in by.items() if v and not k[0].isdigit() and k!='default']
                b=max(o) if o else None
            else: b=by.get(peer)
            if by.get(mine) and b: rs.append((by[mine]/b,key(p)))
        if rs:
            rs.sort(); print(f"{f:28s} {mine}/{peer:20s} n={len(rs):3d} mean {math.exp(sum(math.log(r) for r,_ in rs)/len(rs)):.3f} least {rs[0][0]:.3f} {rs[0][1]} | {rs[1][0]:.3f} below1 {sum(r<1 for r,_ in rs)}")
for dt in('fp16','bf16'):
    for b in('','-b2b'):
        table(f'sweep-{dt}-forward{b}',['CUDNN','CUDNN-9.28','FA4','FLASH'])
        table(f'sweep-{dt}-backward{b}',['CUDNN','CUDNN-9.28','FA4','FA4-deterministic','FLASH'])
for b in('','-b2b'):
    table(f'models-forward{b}',['best','CUDNN','CUDNN-9.28','FA4','FLASH'])
    table(f'models-backward{b}',['CUDNN','CUDNN-9.28','FA4','FA4-deterministic','FLASH'])
for dr in ('forward','backward'):
    table('common/results/nvidia-h200/2026-11-30-random.json',['best','CUDNN','CUDNN-9.28','FA4','FA4-deterministic','FLASH'],direction=dr)
