"""verify: which differences count, and which are explained."""

import json
import tempfile
import unittest
from pathlib import Path

from tools.base import Failure, chapters
from tools.measuring import agreement, engine_counts


def verdict(kernel: str, name: str, engine: int, measured: int) -> str:
    return agreement.judged(kernel, name, {name: engine}, {name: measured})[0]


class Verdicts(unittest.TestCase):
    def test_equal_means_equal(self):
        self.assertEqual(verdict("tiling::scores<__half>", "global load requests", 7, 7), "equal")
        self.assertEqual(verdict("tiling::scores<__half>", "global load requests", 7, 8), "different")

    def test_what_caches_decide_is_a_bound(self):
        self.assertEqual(verdict("tiling::scores<__half>", "L2 sectors", 7, 800), "beside")

    def test_an_explanation_goes_by_the_kernel_and_in_one_direction(self):
        for kernel in ("backward::gradients<__half, backward::Shape<64, 128, 64, 2> >", "another::gradients"):
            self.assertEqual(verdict(kernel, "global load requests", 7, 9), "explained")
            self.assertEqual(verdict(kernel, "global load requests", 7, 6), "different")
            self.assertEqual(verdict(kernel, "global store requests", 7, 9), "different")

    def test_an_explanation_may_be_of_one_instance_of_a_template(self):
        counted = [{"shared store wavefronts": 43008 + more, "shared store conflicts": 16384 + more}
                   for more in (0, 12321)]
        for kernel, expected in [("online_softmax::attention_forward<__half>", "explained"),
                                 ("online_softmax::attention_forward<__half, 64>", "different")]:
            for name in counted[0]:
                self.assertEqual(agreement.judged(kernel, name, *counted)[0], expected)

    def test_conflicts_counted_too_high_are_noise(self):
        engine = {"shared load wavefronts": 100, "shared load conflicts": 0}
        for conflicts, expected in [(3, "equal but for noise"), (9, "different")]:
            measured = {"shared load wavefronts": 100 + conflicts, "shared load conflicts": conflicts}
            self.assertEqual(agreement.judged("k", "shared load conflicts", engine, measured)[0], expected)

    def test_conflicts_are_noise_beside_fewer_wavefronts_that_are_explained(self):
        engine = {"shared load wavefronts": 1000, "shared load conflicts": 0}
        measured = {"shared load wavefronts": 970 + 20, "shared load conflicts": 20}
        for kernel, of_wavefronts, of_conflicts in [("gradients", "explained", "equal but for noise"),
                                                    ("forward", "different", "different")]:
            self.assertEqual(agreement.judged(kernel, "shared load wavefronts", engine, measured)[0], of_wavefronts)
            self.assertEqual(agreement.judged(kernel, "shared load conflicts", engine, measured)[0], of_conflicts)

    def test_noise_does_not_hide_fewer_wavefronts_that_are_explained(self):
        engine = {"shared store wavefronts": 3592, "shared store conflicts": 512}
        measured = {"shared store wavefronts": 3588 + 11, "shared store conflicts": 512 + 11}
        for kernel, expected in [("gradients", "explained"), ("forward", "different")]:
            self.assertEqual(agreement.judged(kernel, "shared store wavefronts", engine, measured)[0], expected)
        why = agreement.beside("gradients", "shared store wavefronts", engine, measured)["why"]
        self.assertIn("block's place together; 11 more are noise", why)

    def test_only_a_launch_with_hoppers_instructions_is_asked_for_hoppers_counters(self):
        self.assertFalse(any("tma" in metric for metric in agreement.metrics_for([{"totals": {"global_load": {}}}])))
        launch = {"totals": {"bulk_load": {"bytes": 160, "sectors": 4},
                             "wgmma": {"requests": 8, "wavefronts": 96, "ideal": 96}},
                  "bytes": {"read": {"launch": 0, "blocks": 0}, "written": {"launch": 0, "warps": 0}}}
        asked = agreement.metrics_for([{"totals": {}}, launch])
        self.assertTrue(all(metric in asked for metrics in agreement.HOPPER.values() for metric in metrics))
        counted = agreement.engine_counters(launch)
        self.assertEqual([counted[name] for name in agreement.HOPPER], [160, 0, 8, 96, 0])
        self.assertEqual(agreement.measured_counters({"sm__inst_executed_pipe_tensor_op_gmma.sum": 8.0}),
                         {"wgmma instructions": 8})

    def test_more_wavefronts_beside_products_are_explained_and_fewer_are_not(self):
        def of(kernel, measured):
            return agreement.beside(kernel, "shared load wavefronts",
                                    {"shared load wavefronts": 4096, "shared load conflicts": 0},
                                    {"shared load wavefronts": measured, "shared load conflicts": 0})

        self.assertIn("beside products of wgmma", of("hopper::gradients<__half, 64>", 6458)["why"])
        self.assertEqual(of("hopper::forward<__half, 64>", 4000)["verdict"], "different")
        self.assertEqual(of("other::scale<__half, 64>", 6458)["verdict"], "different")

    def test_copies_with_a_plain_predicate_have_fewer_wavefronts_but_one_a_pass(self):
        def of(kernel, engine, measured, instructions):
            return agreement.judged(kernel, "cp.async wavefronts",
                                    {"cp.async wavefronts": engine, "cp.async instructions": instructions},
                              {"cp.async wavefronts": measured})[0]

        fused = "rope_fused::forward<__half, 64>"
        self.assertEqual(of(fused, 5120, 3584, 640), "explained")
        self.assertEqual(of(fused, 5120, 2559, 640), "different")
        self.assertEqual(of(fused, 3584, 5120, 640), "different")
        self.assertEqual(of("flashattn2_fwd::forward<__half, 64>", 5120, 3584, 640), "different")
        self.assertEqual(of("patterns::copy_halves_async<0>", 8, 4, 1), "explained")
        self.assertEqual(of("patterns::copy_halves_async<16>", 8, 4, 1), "different")
        self.assertEqual(of("patterns::copy_halves_async_predicate<0>", 8, 4, 1), "explained")
        self.assertEqual(of("patterns::copy_halves_async_predicate<1>", 8, 4, 1), "different")

    def test_the_least_of_three_counts(self):
        ours = [{"kernel": "a::k<x>", "totals": {"shared_store": {"wavefronts": 100, "ideal": 100, "requests": 100}},
                 "bytes": {"read": {"launch": 0, "blocks": 0}, "written": {"launch": 0, "warps": 0}}}]
        wavefronts, conflicts = agreement.METRICS[
            "shared store wavefronts"], agreement.METRICS["shared store conflicts"]

        def compared(*noise):
            runs = iter(noise)
            taken = []

            def take():
                taken.append(next(runs))
                return [{"kernel": "void a::<unnamed>::k<x>(int)", **dict.fromkeys(wavefronts, 100 + taken[-1]),
                         **dict.fromkeys(conflicts, taken[-1])}]

            (launch,) = agreement.side_by_side("k", ours, take)
            return len(taken), {counter["verdict"] for counter in launch["counters"].values()}, launch

        self.assertEqual(compared(0)[:2], (1, {"equal"}))
        self.assertEqual(compared(50, 0)[:2], (2, {"equal"}))
        times, verdicts, launch = compared(50, 40, 60)
        self.assertEqual((times, verdicts), (3, {"different"}))
        self.assertEqual(launch["counters"]["shared store conflicts"]["ncu"], 40)
        with self.assertRaisesRegex(Failure, "0 launches on the GPU, 1 on the engine"):
            agreement.side_by_side("k", ours, list)
        with self.assertRaisesRegex(Failure, "other on the GPU, k on the engine"):
            agreement.side_by_side("k", ours, lambda: [{"kernel": "void other(int)"}])

    def test_a_kernel_by_its_own_name(self):
        for kernel in ("a::k<x::y<3>, z>", "void a::<unnamed>::k<__half, 64>(a::p, const T1 *)", "k(int)",
                       "void k<2>(x::y)",
                       "void a::(anonymous namespace)::k<float>(int)", "void <unnamed>::k<__half, 64>(a::p)"):
            self.assertEqual(agreement.own_name(kernel), "k", kernel)

    def test_a_file_of_counts_that_lacks_something(self):
        of_05 = {"chapter": "05_a", "problem": "B1_H2_N64_D64_fp16_causal", "direction": "forward",
                 "rungs": [{"rung": "r", "launches": []}]}
        patterns = {**of_05, "chapter": "patterns"}
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "counts.json"

            def read(counts, *names):
                path.write_text(json.dumps(counts))
                return engine_counts.read(path, [chapters.Chapter(name) for name in names])

            every = {"chapters": [of_05, {**of_05, "chapter": "07_c"}, patterns]}
            self.assertEqual(read(every, "05_a")["chapters"], [of_05, patterns])
            with self.assertRaisesRegex(Failure, "holds no counts of 06_b"):
                read({"chapters": [of_05]}, "05_a", "06_b")
            with self.assertRaisesRegex(Failure, "does not hold the engine's counts"):
                read({}, "05_a")
            for missing in ("problem", "direction", "rungs"):
                with self.assertRaisesRegex(Failure, "does not hold the engine's counts"):
                    read({"chapters": [{key: value for key, value in of_05.items() if key != missing}]}, "05_a")
            for wrong in ({"problem": "p"}, {"problem": 7}, {"rungs": 7}, {"rungs": [{"launches": 7}]},
                          {"rungs": [{"launches": ["k"]}]}, {"rungs": [{"launches": [{"kernel": "k"}]}]}):
                with self.assertRaisesRegex(Failure, "does not hold the engine's counts"):
                    read({"chapters": [{**of_05, **wrong}]}, "05_a")
            path.write_text(100_000 * "[")
            with self.assertRaisesRegex(Failure, "does not hold the engine's counts"):
                engine_counts.read(path, [])

    def test_the_reason_is_kept(self):
        name = "global load requests"
        self.assertIn("semaphore", agreement.beside("a::gradients<x>", name, {name: 1}, {name: 2})["why"])
        self.assertNotIn("why", agreement.beside("a::gradients<x>", name, {name: 1}, {name: 1}))


if __name__ == "__main__":
    unittest.main()
