import sys,re,os,json,subprocess,hashlib,random
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
ROOT=Path('/tmp/h41/repos')
ENG={w:json.load(open(f'/tmp/h41/{w}/build/cpu/common/simt/front/settings.json')) for w in ('new','base')}
headers={}
def dirs_for(repo,src):
    if repo not in headers:
        idx={}
        for p in repo.rglob('*'):
            if p.suffix in ('.h','.cuh','.hpp','.inl','.hu') : idx.setdefault(p.name,[]).append(p)
        headers[repo]=idx
    seen=set(); dirs=[]
    todo=[src]
    while todo:
        f=todo.pop()
        try: t=f.read_text(errors='replace')
        except OSError: continue
        for inc in re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]',t):
            if (f.parent/inc).exists():
                q=f.parent/inc
                if q not in seen: seen.add(q); todo.append(q)
                continue
            c=headers[repo].get(Path(inc).name,[])
            c=[p for p in c if str(p).endswith('/'+inc)]
            if not c: continue
            if Path(inc).name.startswith(('helper_','exception.h')): continue
            best=max(c,key=lambda p: len(os.path.commonpath([str(p),str(src)])))
            d=str(best)[:-len(inc)-1]
            if d not in dirs: dirs.append(d)
            if best not in seen: seen.add(best); todo.append(best)
    return dirs
def one(which,src,place,secs):
    s=ENG[which]; place.mkdir(parents=True,exist_ok=True)
    repo=ROOT/src.relative_to(ROOT).parts[0]
    inc=[f'-I{d}' for d in dirs_for(repo,src)]
    cmd=['nice',s['front'],s['compiler'],*s['traced'],*inc,'-w','-c',str(src),'-o',str(place/'a.o')]
    r=subprocess.run(cmd,capture_output=True,text=True,errors='replace')
    if r.returncode: return {'compile':[l for l in r.stderr.splitlines() if 'error' in l][:3]}
    r=subprocess.run(['nice',s['compiler'],str(place/'a.o'),*s['link'],'-o',str(place/'p'),'-fopenmp'],capture_output=True,text=True)
    if r.returncode: return {'link':r.stderr.splitlines()[-2:]}
    env={**os.environ,'SIMT_REPORT':str(place/'r.json'),'SIMT_SECONDS':str(secs)}
    (place/'r.json').unlink(missing_ok=True)
    try:
        r=subprocess.run(['nice','timeout','-k','2',str(secs),str(place/'p')],capture_output=True,text=True,errors='replace',env=env,cwd=src.parent,stdin=subprocess.DEVNULL)
    finally: pass
    said=[l for l in r.stderr.splitlines() if re.match(r'(mistake|note|kernel)',l)]
    rep=json.load(open(place/'r.json')) if (place/'r.json').exists() and (place/'r.json').stat().st_size else None
    for f in ('p','a.o'): (place/f).unlink(missing_ok=True)
    return {'rc':r.returncode,'wrong':(rep['failures']+rep['mistakes']) if rep else [l for l in said if not l.startswith('note')],'notes':[l for l in said if l.startswith('note')],'launched':rep and rep['launched']}
def norm(x): return re.sub(r'0x[0-9a-f]+|block \([^)]*\)|thread \([^)]*\)|\d+ launches','',json.dumps(x,sort_keys=True))
def smaller(src):
    t=src.read_text(errors='replace')
    u=re.sub(r'1\s*<<\s*(1[5-9]|2[0-9])\b','1 << 13',t)
    def lit(m):
        v=int(m[2]); return m[0] if v<100000 or v>2**31 else m[1]+'16384'
    u=re.sub(r'(?m)(^\s*#\s*define\s+\w+\s+\(?\s*)(\d{6,10})\b',lit,u)
    u=re.sub(r'((?:int|size_t|long|unsigned)\s+\w+\s*=\s*)(\d{6,10})\b',lit,u)
    u=re.sub(r'(?m)(^\s*#\s*define\s+(?:N|M|K|NI|NJ|NK|NL|NM|NX|NY|WIDTH|HEIGHT|SIZE|DIM|N_\w+)\s+\(?\s*)(1024|2048|4096|8192|512)\b',lambda m:m[1]+'128',u)
    u=re.sub(r'\b(1024|2048|4096|8192)\s*\*\s*(1024|2048|4096|8192)\b','128 * 128',u)
    u=re.sub(r'((?:int|size_t|unsigned)\s+(?:N|M|K|n|m|k|nx|ny|width|height|rows|cols)\s*=\s*)(1\s*<<\s*1[0-4]|1024|2048|4096|8192)\b',lambda m:m[1]+'128',u)
    if u==t: return src
    made=src.with_name('small__'+src.name); made.write_text(u); return made
def work(rel):
    src=smaller(ROOT/rel); place=Path('/tmp/h41/pubout')/hashlib.md5(rel.encode()).hexdigest()[:10]
    try: new=one('new',src,place/'new',SECS)
    except Exception as e: new={'exception':repr(e)}
    out={'program':rel,'new':new}
    bad=new.get('compile') or new.get('wrong') or new.get('rc') not in (0,None,124) or any('undefined' in n or 'finds that or' in n for n in new.get('notes',[]))
    if bad or 'exception' in new:
        try: out['base']=one('base',src,place/'base',SECS)
        except Exception as e: out['base']={'exception':repr(e)}
        out['differs']= norm(out['new'])!=norm(out['base'])
    with open(OUT,'a') as f: f.write(json.dumps(out)+'\n')
SECS=int(os.environ.get('SECS','20'))
OUT=sys.argv[2]
done=set()
if os.path.exists(OUT): done={json.loads(l)['program'] for l in open(OUT)}
todo=[l.strip() for l in open(sys.argv[1]) if l.strip() and l.strip() not in done]
with ThreadPoolExecutor(int(os.environ.get('JOBS','2'))) as pool: list(pool.map(work,todo))
