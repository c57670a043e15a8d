import random, sys, torch, json
import flash_attention_workbook as faw
random.seed(7); torch.manual_seed(7)
wrong = n = 0; worst = 0
begin = __import__("time").time()
while __import__("time").time() - begin < 25:
    D = random.choice((40, 64, 96, 128, 160, 192, 256)); g = random.choice((1, 2, 4, 8)); kv = random.choice((1, 2, 4, 8, 16)); b = random.choice((1, 2, 3))
    nq = random.choice((65, 130, 300, 512, 700, 1000, 1024, 2048)); nk = random.choice((200, 777, 1500, 4096, 5000, 8192)); causal = random.random() < .5
    if causal and nk < nq: continue
    if b * kv * g * nq * nk > 2e9: continue
    dt = random.choice((torch.float16, torch.bfloat16))
    q = torch.randn(b, kv * g, nq, D, device="cuda", dtype=dt); k, v = (torch.randn(b, kv, nk, D, device="cuda", dtype=dt) for _ in "kv")
    try: o = faw.attention(q, k, v, causal=causal, chapter="11_split_kv", rung="even")
    except TypeError: o = faw.attention(q, k, v, causal=causal, rung="11_split_kv/even")
    kk, vv = (x.repeat_interleave(g, 1).float() for x in (k, v))
    mask = torch.ones(nq, nk, device="cuda", dtype=torch.bool).tril(nk - nq) if causal else None
    want = torch.nn.functional.scaled_dot_product_attention(q.float(), kk, vv, attn_mask=mask)
    e = float((o.float() - want).norm() / want.norm()); worst = max(worst, e * (1 if dt == torch.bfloat16 else 8)); n += 1
    if not e < (6e-3 if dt == torch.bfloat16 else 1e-3): wrong += 1; print("WRONG", e, D, g, kv, b, nq, nk, causal, dt)
print("even:", n, "problems,", wrong, "wrong, worst", worst)
