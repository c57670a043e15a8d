"""pieces.py SECONDS PIECE=EXPECTED..: two GPUs take pieces (or @SCRIPTS) in turn; none begins that would not end by then."""
import os, subprocess, sys, threading, time
begin, limit = time.time(), float(sys.argv[1])
left = [(p.split("=")[0], float(p.split("=")[1])) for p in sys.argv[2:]]
lock = threading.Lock()
def work(gpu):
    if gpu: time.sleep(0.1)
    while True:
        with lock:
            now = time.time() - begin
            at = next((i for i, (_, s) in enumerate(left) if now + s < limit), None)
            if at is None: return
            piece, _ = left.pop(at)
        log = open(f"{os.environ['OUT']}/{piece}.txt", "w")
        start = time.time()
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
        if piece.startswith("extras"): env.pop("WORKBOOK_CUDNN", None)
        command = ["bash", f".carry/m/{piece[1:]}.sh"] if piece[0] == "@" else ["./workbook", "dev", "measure", piece]
        try:
            code = subprocess.run(command, env=env, stdout=log, stderr=log, timeout=limit - (start - begin) + 15).returncode
        except subprocess.TimeoutExpired: code = "timeout"
        print(f"gpu {gpu} {piece}: {code} {time.time() - start:.0f} s, at {time.time() - begin:.0f}", flush=True)
threads = [threading.Thread(target=work, args=(g,)) for g in (0,)]
[t.start() for t in threads]; [t.join() for t in threads]
print("left:", *(p for p, _ in left))
