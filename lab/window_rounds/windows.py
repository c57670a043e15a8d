"""The backward with windows of 256 to 4096 keys, ours beside FlashAttention-4 (both modes) and cuDNN through its frontend, launch by
launch, as `./workbook dev peers --sweep=extras` measures: python3 windows.py REPOSITORY OUT.json [WINDOW ..]
time = a + b tiles, by least squares."""
import json, os, sys
from pathlib import Path

root, out, windows = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:] or ["256", "512", "1024", "2048", "4096"]
sys.path[:0] = [str(root / "common"), str(root / "common/python")]
os.environ.setdefault("FLASH_ATTENTION_WORKBOOK_LIBRARY", str(root / "build/cuda/common/capi/libflash_attention_workbook.so"))
os.environ.setdefault("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1")
from tools.measuring import peers, peers_main

peers.EXTRAS = [f"window{window}_0" for window in windows]
request = {"sweep": "extras", "said": {"dtype": "bf16"}, "draw": None, "chapters": ["12_variants"], "named": True, "rung": None,
           "all_rungs": False, "directions": ["backward"], "seed": 0, "timing": peers.LAUNCH_BY_LAUNCH, "own": False,
           "default": False, "only": ["FA4", "FA4-deterministic", "CUDNN-WINDOW", "12_variants"], "patience": 0.3, "within": 100,
           "commit": os.environ.get("WORKBOOK_COMMIT", "")}
available = {one.name for group in peers_main.candidates_for(
    peers.sweep("extras", request["said"], peers_main.Problem(**peers_main.the_workbook("peers").default_problem())),
    peers_main.the_workbook("peers"), {**request, "only": []})[:2] for one in group}
request["only"] = [name for name in request["only"] if name in available]
status = peers_main.main([json.dumps(request), out])
if status: sys.exit(status)
report = json.load(open(out))
for head_dim in (64, 128):
    rows = {}
    for point in report["points"]:
        if point["problem"]["head_dim"] != head_dim: continue
        window, keys, queries = int(point["problem"]["extras"][6:].split("_")[0]), 128, 8192 // head_dim
        of_head = sum(-(-min(16384, j + keys + window) // queries) - j // queries for j in range(0, 16384, keys))
        tiles = of_head * (2048 // head_dim) / 132  # of a multiprocessor
        for result in point["results"]:
            if "seconds" in result: rows.setdefault(result["name"], []).append((window, tiles, 1e6 * result["seconds"]["median"]))
            else: print(head_dim, window, result["name"], result.get("wrong") or result.get("skipped"))
    for name, points in rows.items():
        text = " ".join(f"{window}: {us:.1f}" for window, _, us in points)
        if len(points) > 1:
            mean_x, mean_y = (sum(one[axis] for one in points) / len(points) for axis in (1, 2))
            b = sum((x - mean_x) * (y - mean_y) for _, x, y in points) / sum((x - mean_x) ** 2 for _, x, _ in points)
            text += f"   a = {mean_y - b * mean_x:.1f} us, b = {b:.3f} us"
        print(f"D = {head_dim} {name:18} {text}")
