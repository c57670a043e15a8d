import json
from pathlib import Path
from tools.record import result_files
R=Path('common/results/nvidia-h200'); rd=lambda n:[json.loads(l) for l in open(f'DEVICE/{n}/b.txt' if n!=1 else 'DEVICE/1/lab12.txt') if l.startswith('{')]
names8={'p0':'O after','pP':'O after, m in a pair','pX':'O before, m in a pair','w0':'O after','w1':'O before','wP':'O before, m in a pair','q0':'O after','q1':'O before','qP':'O before, m in a pair','r0':'O after','r1':'O before','rP':'O before, m in a pair','b0':'beside'}
names5={'q0':'O after','q1':'O before','q4':'O before, in turns','r0':'O after','r1':'O before','r3':'O before, in turns'}
def point(r,name,**more): return {'kind':r['kind'],'head_dim':r['head_dim'],'batch':r['batch'],'heads':r['heads'],'seq_q':r['seq_q'],'seq_k':r['seq_k'],'causal':r['causal'],'kernel':name,'us':r['us'],'us_in_slices':r['us_in_slices'],**more}
points=[point(r,names8[r['name']]) for r in rd(8)]
turns=[point(r,names5[r['name']]) for r in rd(5) if r['name'] in names5]
turns+=[point(r,{'p0':'O after','p1':'O before'}[r['name']]) for r in rd(1) if r['kind']=='plain' and r['head_dim']==128 and r['heads']==16 and r['seq_q']==16384 and r['name'] in('p0','p1')]
regs={'k0':('13, 9','with'),'j2':('10, 9','without'),'x1':('8, 9','with'),'y4':('2, 3','with'),'b0':('4, 5','beside')}
registers=[point(r,regs[r['name']][0],end=regs[r['name']][1]) for r in rd(7) if r['name'] in regs]
regs4={'k0':('13, 9','with'),'k8':('12, 10','with'),'j2':('10, 9','without'),'k2':('11, 10','without')}
registers2=[point(r,regs4[r['name']][0],end=regs4[r['name']][1]) for r in rd(6) if r['name'] in regs4]
b=rd(4); counter=[point(r,'4, 5' if r['name'].startswith('old') else '2, 3',end='beside') for r in b if r['kind']=='big' and r['head_dim']==64][:4]
S=lambda x:x['median'] if isinstance(x,dict) else x
blocks=[]
for path,kernel in (('common/results/nvidia-h200/blocks.json','as before'),('LAB/g2/common/results/nvidia-h200/blocks.json','asks')):
    for p in json.load(open(path))['points']:
        if p['direction']!='forward': continue
        by={r['name']:r for r in p['results'] if r.get('seconds')}; own=[k for k in by if k == 'default']; 
        if 'FLEX' in by and own: blocks.append({'head_dim':p['problem']['head_dim'],'blocks':p['problem'].get('extras'),'kernel':kernel,'us':round(1e6*S(by[own[0]]['seconds']),1),'over_flex':round(S(by['FLEX']['seconds'])/S(by[own[0]]['seconds']),3)})
short=[point(r,{'p0':'O after','w1':'O before'}[r['name']]) for r in rd(1) if r['heads']==15 and r['name'] in('p0','w1') and not (r['kind']=='plain' and r['head_dim']==64)]
context={'commit':'42b3719d','date':'2026-11-30','gpu':'NVIDIA H200','what':"chapter 12's forward for Hopper, bf16, three consumers: when O += P V is awaited, before the exponentials or after them, by kind of problem (a softcap of 20, ALiBi, a window of 1024 before)",
 'kernels':"O after: the loop of chapter 10's fitted, which chapter 12 had; O before: that of beside, which asks for the next K and V beside the exponentials; m in a pair: the two m of a lane are one 64-bit value between two tiles; in turns: as chapter 10's late, with named barriers",
 'us':'median of 15 launches with CUDA events, 256 MB written before each; us_in_slices: median of five slices of 10 ms','turns':'the same in other runs, with turns, and without an extra','registers':"D = 64, O before; kernel: in which registers the two m were in the loop; end: with or without the sink where a tile ends. The loops have the same instructions but for a few whose results no product needs. 2, 3: m is read from shared memory for each tile. registers_again: another run, where consumers begin 800 cycles apart in 12, 10 and in 11, 10. beside: chapter 10's own kernel, and with m in a pair, which had 2, 3",
 'blocks':'forward with block masks as chapter 12 has it, and with the next K and V asked for and, at D = 64, O before: launch by launch, two runs of the piece blocks, each beside flex_attention','short':'how long rows are: 15 heads with 16,896 queries, ten full rounds of 132 blocks of 192; without a mask against 1088 keys, 17 tiles of 64 (D = 128), and against 8192; with a window of 1024'}
result_files.write(R/'2026-11-30-12-orders.json',{'context':context,'points':points,'turns':turns,'registers':registers,'registers_again':registers2,'beside':counter,'short':short,'blocks':blocks})
fz=json.load(open('LAB/g1/fuzz.json'))
result_files.write(R/'2026-11-30-12-fuzz.json',{'context':{'commit':'48113ca1','date':'2026-11-30','gpu':'NVIDIA H200','what':'problems of chapter 12 drawn at random through PyTorch (common/tests/python/variants_test.py with WORKBOOK_PROBLEMS=3000), forward and backward, with any views, windows, score functions and sinks, packed sequences and block masks, against fp64'},
 'points':[{'kind':k,'problems':sum(f['problems'] for f in fz if f['kind']==k),'wrong':sum(f['wrong'] for f in fz if f['kind']==k)} for k in('random','packed','blocks')]})
