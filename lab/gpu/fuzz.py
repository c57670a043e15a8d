"""fuzz.py OUT: problems of chapter 12 drawn at random through PyTorch, against fp64: how many, and how many are wrong."""
import builtins, json, os, subprocess, sys
KINDS = {"random": ("test_problems_drawn_at_random", 3), "packed": ("test_packed_sequences", 1), "blocks": ("test_block_masks", 1)}
if len(sys.argv) == 5:
    out, kind, part, parts = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    os.environ["WORKBOOK_PROBLEMS"] = "3000"
    import unittest
    import variants_test
    seen = 0
    def sliced(*n):
        global seen
        if n in ((3000,), (1000,)):
            mine = builtins.range(part, n[0], parts)
            seen += len(mine)
            return mine
        return builtins.range(*n)
    variants_test.range = sliced
    def tests(suite):
        for t in suite:
            if isinstance(t, unittest.TestSuite): yield from tests(t)
            elif t._testMethodName == KINDS[kind][0]: yield t
    r = unittest.TextTestRunner().run(unittest.TestSuite(tests(unittest.defaultTestLoader.loadTestsFromModule(variants_test))))
    json.dump({"kind": kind, "problems": seen, "wrong": len(r.failures) + len(r.errors)}, open(out, "w"))
    sys.exit(not r.wasSuccessful())
running = [(f"/tmp/fuzz.{kind}.{part}", subprocess.Popen([sys.executable, "-B", __file__, f"/tmp/fuzz.{kind}.{part}", kind, str(part), str(parts)]))
           for kind, (_, parts) in KINDS.items() for part in range(parts)]
done = [(json.load(open(name)) if not p.wait() or os.path.exists(name) else {"kind": name, "problems": 0, "wrong": -1}) for name, p in running]
json.dump(done, open(sys.argv[1], "w"))
print(done)
