"""What --walk records of real kernels. Every number here can be worked out from the kernel with a pencil."""

import json
import math
import os
import subprocess
import unittest
from pathlib import Path

from tools.record import read_label
from tools.showing import walk

BUILD = Path(os.environ["WORKBOOK_BUILD"])


def recorded(chapter: str, *flags) -> dict:
    folder = BUILD / chapter if chapter[0].isdigit() else BUILD / "common" / "course" / chapter
    done = subprocess.run([folder / f"{chapter}_traced", "--walk", *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                          env={**os.environ, "SIMT_THREADS": "1"})  # one multiprocessor
    return json.loads(done.stdout)


def between_waits(steps: list) -> list:
    """The steps as they are without their names: each from one wait of its party to the next."""
    made, last = [], {}
    for step in steps:
        by = str(step.get("by"))
        if by in last and "after" not in step and "until" not in last[by]:
            before = last[by]
            for key, value in step.items():
                if key == "work":
                    before[key] = [a + b for a, b in zip(before[key], value)]
                elif isinstance(value, dict):
                    before[key] = {**before.get(key, {}), **value}
                elif isinstance(value, list) and key != "by":
                    before[key] = before.get(key, []) + value
                elif key == "until":
                    before[key] = value
        else:
            last[by] = {**step}
            made.append(last[by])
    return made


def rows(step: dict) -> dict:
    return {move: step[move] for move in ("read", "written", "started", "landed") if move in step}


class Tiles(unittest.TestCase):
    """05/tiles: Br = 64 rows, tiles of 64 keys. K comes in two chunks of 32 columns, V in two of 32 rows; before and after each
    there is a barrier."""

    @classmethod
    def setUpClass(cls):
        cls.walk = recorded("05_online_softmax", "--rung=tiles", "--heads=1", "--seq-q=128", "--head-dim=64", "--causal")
        (cls.rung,) = cls.walk["rungs"]
        (cls.launch,) = cls.rung["launches"]
        cls.blocks = [between_waits(block["steps"]) for block in cls.launch["blocks"]]

    def test_steps_have_names_of_the_algorithm(self):
        """Each phase of a tile begins a step, and goes on behind the barriers."""
        names = [name for name, _ in self.launch["names"]]
        self.assertEqual(names, ["1. S = Q K^T", "2. m, l and P; O *= correction", "3. O += P V", "O / l and LSE"])
        source = (Path(__file__).parents[3] / "05_online_softmax" / "2_tiles.cu").read_text().splitlines()
        for name, line in self.launch["names"]:
            file, _, number = line.rpartition(":")
            self.assertEqual((file, source[int(number) - 1].strip()), ("05_online_softmax/2_tiles.cu", f'watch_step("{name}");'))
        tile = [0] * 4 + [1] + [2] * 4
        for block in self.launch["blocks"]:
            self.assertEqual([step.get("name") for step in block["steps"]], [None, *tile, *tile, 3])
            for step in block["steps"]:
                self.assertEqual({"P": 1, "O": 2}.get(next(iter(step.get("watched", {})), ""), step.get("name")), step.get("name"))

    def test_every_kernel_names_its_steps(self):
        """Also those that prepare, convert, turn or copy, in folders of a chapter, and of exercises."""
        for chapter, rung, flags in [("07_backward", "materialised", "--direction=backward"), ("07_backward", "recompute", "--direction=backward"),
                                     ("07_backward", "atomic", "--direction=backward"), ("09_rope_fused", "separate", "--direction=backward"),
                                     ("09_rope_fused", "overlapped", ""), ("10_hopper", "bulk", "--direction=backward"),
                                     ("10_hopper", "prompt", ""), ("10_hopper", "prompt", "--direction=backward --head-dim=192"),
                                     ("08_causal_earlystop", "ordered", "--direction=backward --head-dim=192"),
                                     *((name, name, "") for name in ("lanes", "quads", "rows", "split"))]:
            (rung_,) = recorded(chapter, f"--rung={rung}", "--heads=1", "--seq-q=16", *flags.split())["rungs"]
            for launch in rung_["launches"]:
                with self.subTest(chapter, rung=rung, flags=flags, kernel=launch["kernel"]):
                    walk.add_sources(launch)
                    self.assertNotEqual(launch["names"], [])
                    self.assertEqual([name["name"] for name in launch["names"] if not name["source"]], [])

    def test_one_block_for_64_rows(self):
        self.assertEqual((self.launch["grid"], self.launch["block"]), ([2, 1, 1], [128, 1, 1]))
        self.assertEqual([block["block"] for block in self.launch["blocks"]], [[0, 0, 0], [1, 0, 0]])

    def test_rows_of_each_step(self):
        def of_tile(first: int) -> list:
            k, v = {"read": {"K": [[first, first + 63]]}}, [{"read": {"V": [[half, half + 31]]}} for half in (first, first + 32)]
            return [k, {}, k, {}, v[0], {}, v[1], {}]

        for number, block in enumerate(self.blocks):
            own = [64 * number, 64 * number + 63]
            expected = [{"read": {"Q": [own]}}, *of_tile(0), *of_tile(64)]
            expected[-1] = {"written": {"O": [own], "LSE": [own]}}
            self.assertEqual([rows(step) for step in block], expected)

    def test_a_step_ends_at_a_barrier_of_the_kernel_and_the_last_with_the_block(self):
        steps = self.blocks[0]
        source = (Path(__file__).parents[3] / "05_online_softmax" / "2_tiles.cu").read_text().splitlines()
        for step in steps[:-1]:
            file, _, line = step["until"].rpartition(":")
            self.assertEqual(file, "05_online_softmax/2_tiles.cu")
            self.assertIn("__syncthreads();", source[int(line) - 1])
        self.assertEqual(steps[-1]["until"], "")

    def test_bytes_of_each_step(self):
        first, second = ([step["work"] for step in block] for block in self.blocks)
        q = 64 * 64 * 2
        self.assertEqual(first[0], [q, q, q, 2 * q, 0, 0])  # shared memory has fp32
        half = 64 * 32 * 2
        self.assertEqual(first[1], [half, half, half, 2 * half, 0, 0])  # of K
        # Each thread reads 32 columns of 8 rows of Q and of 4 of K; the tile's first product makes no P.
        product = 128 * 32 * (8 + 4) * 4
        self.assertEqual(first[2], [0, 0, 0, product, 0, 0])
        # The second one does: 64 x 64 floats are stored. Maxima need 4 shuffles for each of 8 rows and 4 warps.
        self.assertEqual(first[4], [0, 0, 0, product + 64 * 64 * 4, 0, 8 * 4 * 4])
        # O and LSE: 64 floats are 8 sectors, but a warp stores two at a time.
        o, lse = 64 * 64 * 2, 64 * 4
        self.assertEqual(first[16][:3], [o + 32 * 32, o + lse, o + lse])
        # What the first block has brought, the second finds in a perfect L2.
        self.assertEqual(second[1], [half, half, 0, 2 * half, 0, 0])

    def test_the_watched_numbers_give_what_is_written(self):
        """l and O as they are after the last tile, and m: O / l is the result, and m + log l is LSE."""
        def of(step: dict, name: str, row: int) -> list:
            return [value for at, _, values in step["watched"].get(name, []) if at == row for value in values]

        results = self.rung["results"]
        for number, block in enumerate(self.blocks):
            state, final = block[12], block[16]
            for row in range(64 * number, 64 * number + 64):
                (m,), (l,) = of(state, "m", row), of(state, "l", row)
                self.assertAlmostEqual(m + math.log(l), results["LSE"]["made"][row], places=3)
                o = of(final, "O", row)
                self.assertEqual(len(o), 64)
                for d, value in enumerate(o):
                    self.assertAlmostEqual(value / l, results["O"]["made"][64 * row + d], delta=2e-3)

    def test_the_correction_and_p(self):
        first = self.blocks[1]
        for _, _, (correction,) in first[4]["watched"]["correction"]:
            self.assertEqual(correction, 0)  # nothing was there before the first tile
        for _, column, values in first[12]["watched"]["P"]:
            self.assertEqual((column, len(values)), (64, 64))
            self.assertLessEqual(max(values), 1)
        for row, _, values in first[12]["watched"]["P"]:
            self.assertEqual(set(values[row - 64 + 1:]), {0} if row < 127 else set())  # keys that the row does not see

    def test_results_are_near_what_is_expected(self):
        for name in ("O", "LSE"):
            result = self.rung["results"][name]
            difference = max(abs(a - b) for a, b in zip(result["made"], result["expected"]))
            self.assertLess(difference, 5e-3)

    def test_tiles(self):
        problem, _ = read_label(self.walk["problem"])
        walk.add_tiles(problem, self.launch)
        kinds = [[(tile["queries"], tile["keys"], tile["kind"]) for tile in block["tiles"]] for block in self.launch["blocks"]]
        self.assertEqual(kinds, [[([0, 63], [0, 63], "partly"), ([0, 63], [64, 127], "masked")],
                                 [([64, 127], [0, 63], "whole"), ([64, 127], [64, 127], "partly")]])
        self.assertEqual([block["skipped"] for block in self.launch["blocks"]], [[], []])


class Online(unittest.TestCase):
    def test_a_block_of_eight_rows_has_all_keys_in_one_tile(self):
        of = recorded("05_online_softmax", "--rung=online", "--heads=2", "--kv-heads=1", "--seq-q=20", "--seq-k=30", "--causal")
        (launch,) = of["rungs"][0]["launches"]
        walk.add_tiles(read_label(of["problem"])[0], launch)
        self.assertEqual([block["tiles"] for block in launch["blocks"]],
                         [[{"head": head, "queries": [i, min(i + 7, 19)], "keys": [0, 29], "step": 0, "kind": "partly"}]
                          for head in (0, 1) for i in (0, 8, 16)])


class Example(unittest.TestCase):
    """A published example: B = 4, H = 2, N = 8, D = 4, tiles of 4; program 11 is batch 1, head 1, rows 4 to 7. Zeros make D up to 8."""

    @classmethod
    def setUpClass(cls):
        cls.walk = recorded("05_online_softmax", "--rung=example", "--batch=4", "--heads=2", "--seq-q=8", "--head-dim=8", "--padded-from=4",
                            "--causal")
        (cls.rung,) = cls.walk["rungs"]
        (cls.launch,) = cls.rung["launches"]
        walk.add_tiles(read_label(cls.walk["problem"])[0], cls.launch)

    def test_program_11(self):
        block = self.launch["blocks"][11]
        head = 1 * 2 + 1
        self.assertEqual((self.launch["grid"], self.launch["block"], block["block"]), ([16, 1, 1], [4, 4, 1], [11, 0, 0]))
        self.assertEqual(block["tiles"], [{"head": head, "queries": [4, 7], "keys": [0, 3], "step": 1, "kind": "whole"},
                                          {"head": head, "queries": [4, 7], "keys": [4, 7], "step": 5, "kind": "partly"}])
        self.assertEqual(block["steps"][-1]["written"], {"O": [[28, 31]], "LSE": [[28, 31]]})
        self.assertEqual(block["steps"][0]["read"], {"Q": [[28, 31]]})
        lower = {(row, 4 + c): value > 0 for row, _, values in block["steps"][8]["watched"]["P"] for c, value in enumerate(values)}
        self.assertEqual(lower, {(28 + i, 4 + j): j <= i for i in range(4) for j in range(4)})

    def test_program_3_has_the_diagonal_alone(self):
        block = self.launch["blocks"][3]
        self.assertEqual([(tile["queries"], tile["keys"], tile["kind"]) for tile in block["tiles"]], [([0, 3], [0, 3], "partly")])
        self.assertEqual([(tile["queries"], tile["keys"]) for tile in block["skipped"]], [([0, 3], [4, 7])])

    def test_it_is_right(self):
        for name, result in self.rung["results"].items():
            self.assertLess(max(abs(a - b) for a, b in zip(result["made"], result["expected"])), 2e-3, name)

    def test_columns_4_to_7_are_padding(self):
        o = self.rung["results"]["O"]["made"]
        rows = [o[at:at + 8] for at in range(0, len(o), 8)]
        self.assertEqual({x for row in rows for x in row[4:]}, {0})
        self.assertTrue(all(any(row[:4]) for row in rows))


class EarlyStop(unittest.TestCase):
    """192 rows: 128 for the first block, 64 for the second one. Tiles have 64 keys, and no query before 128 sees the last of them."""

    def blocks(self, rung: str, direction: str) -> list:
        of = recorded("08_causal_earlystop", f"--rung={rung}", f"--direction={direction}", "--heads=1", "--seq-q=192", "--head-dim=64")
        launch = of["rungs"][0]["launches"][0 if direction == "forward" else 1]  # of a backward the first makes D
        walk.add_tiles(read_label(of["problem"])[0], launch)
        return launch["blocks"]

    def kinds(self, rung: str, direction: str) -> list:
        return [([tile["kind"] for tile in block["tiles"]], [(tile["queries"], tile["keys"]) for tile in block["skipped"]])
                for block in self.blocks(rung, direction)]

    def test_skipped_tiles_of_the_forward(self):
        last = (["whole", "whole", "partly"], [])
        self.assertEqual(self.kinds("masked", "forward"), [(["partly", "partly", "masked"], []), last])
        self.assertEqual(self.kinds("earlystop", "forward"), [(["partly", "partly"], [([0, 127], [128, 191])]), last])

    def test_skipped_tiles_of_the_backward(self):
        first, last = (["partly", "partly", "whole"], []), ([0, 63], [128, 191])
        self.assertEqual(self.kinds("masked", "backward"), [first, (["masked", "masked", "partly"], [])])
        self.assertEqual(self.kinds("earlystop", "backward"), [first, (["partly"], [last, ([64, 127], [128, 191])])])

    def test_products_are_made_while_their_tile_is_there(self):
        """Two products of a tile, S and O, each 2 x 128 x 64 x 64 operations; the first step only waits for Q."""
        block = self.blocks("earlystop", "forward")[0]
        launch_names = ["1. S = Q K^T", None, "3. P, and O += P V"]
        product = 2 * 128 * 64 * 64
        for tile, end in zip(block["tiles"], [each["step"] for each in block["tiles"][1:]] + [len(block["steps"])]):
            steps = block["steps"][tile["step"]:end]
            flops = [(launch_names[step["name"]], step["work"][4]) for step in steps if step["work"][4]]
            self.assertEqual(flops, [("1. S = Q K^T", product // 2), ("3. P, and O += P V", product // 2)] * 2)  # 32 keys at a time


FORWARDS_OF_10 = ("tma", "descriptors", "wgmma", "warpspec", "overlap", "pingpong", "stored", "listed", "persistent", "dynamic",
                  "narrow")


class Parties(unittest.TestCase):
    """10's kernels whose warps wait at mbarriers: three warpgroups of consumers with 64 rows each, and warp 12, which copies. With D = 64
    a tile has 128 keys, and there are four places for K and four for V."""

    LOADS, CONSUMERS = [12, 12], ([0, 3], [4, 7], [8, 11])

    def launch(self, rung: str, *flags) -> dict:
        of = recorded("10_hopper", f"--rung={rung}", "--heads=1", "--head-dim=64", *flags)
        launch = of["rungs"][0]["launches"][-1]  # the one before sets a counter, if there is one
        walk.add_tiles(read_label(of["problem"])[0], launch)
        walk.add_names(launch)
        for block in launch["blocks"]:
            for number, step in enumerate(block["steps"]):
                step.setdefault("at", number)
        return launch

    def steps(self, launch: dict, by: list) -> list:
        return [step for block in launch["blocks"] for step in between_waits(block["steps"]) if step.get("by") == by]

    def waits(self, launch: dict, step: dict) -> list:
        return [launch["mbarriers"][each["on"]] if each["on"] >= 0 else each["on"] for each in step.get("after", [])]

    def test_a_step_comes_after_those_that_it_waited_for(self):
        for rung in FORWARDS_OF_10:
            (block, *_) = self.launch(rung, "--seq-q=70", "--seq-k=700")["blocks"]
            before = {}
            for number, step in enumerate(block["steps"]):
                for each in step.get("after", []):
                    self.assertTrue(all(earlier < number for earlier in each.get("steps", [])))
                    self.assertTrue(all(block["steps"][earlier]["at"] < step["at"] for earlier in each.get("steps", [])))
                by = str(step.get("by"))
                self.assertLess(before.get(by, -1), step["at"])
                before[by] = step["at"]

    def test_warpspec(self):
        """Two tiles of keys: everything is copied at once. Then each consumer makes S of a tile when K is there, and O when V is."""
        launch = self.launch("warpspec", "--seq-q=192", "--seq-k=256", "--no-causal")
        (load,) = self.steps(launch, self.LOADS)
        everything = {"Q": [[0, 191]], "K": [[0, 255]], "V": [[0, 255]]}
        self.assertEqual(rows(load), {"started": everything})
        self.assertEqual(load["work"][:3], [(192 + 2 * 256) * 64 * 2] * 3)
        for number, by in enumerate(self.CONSUMERS):
            own = [64 * number, 64 * number + 63]
            steps = self.steps(launch, by)
            self.assertEqual([self.waits(launch, step) for step in steps], [["q_full", "k_full[0]"], ["v_full[0]"], ["k_full[1]"], ["v_full[1]"]])
            q, k, v = ([[0, 191]], *([[[0, 127]], [[128, 255]]] for _ in "KV"))
            self.assertEqual([step["landed"] for step in steps], [{"Q": q, "K": k[0]}, {"V": v[0]}, {"K": k[1]}, {"V": v[1]}])
            used = [{(tensor, launch["places"][place][2]): ranges for place, tensor, ranges in step["uses"]} for step in steps]
            self.assertEqual(used, [{("Q", "q"): [own], ("K", "k[0]"): k[0]}, {("V", "v[0]"): v[0]},
                                    {("Q", "q"): [own], ("K", "k[1]"): k[1]}, {("V", "v[1]"): v[1]}])
            self.assertEqual([step.get("products") for step in steps], [[["Q", [own], "K", k[0]]], None, [["Q", [own], "K", k[1]]], None])
            self.assertEqual({step["work"][4] for step in steps}, {2 * 64 * 128 * 64})  # S or O of a tile
            self.assertEqual(steps[-1]["written"], {"O": [own], "LSE": [own]})
            self.assertEqual([step["at"] for step in steps], [2, 4, 5, 7])  # as early as can be, all three alike; P comes after S
        tiles = [(tile["queries"], tile["keys"]) for tile in launch["blocks"][0]["tiles"]]
        self.assertEqual(tiles, [([i, i + 63], [j, j + 127]) for j in (0, 128) for i in (0, 64, 128)])

    def test_a_place_is_filled_again_when_all_three_are_done_with_it(self):
        launch = self.launch("warpspec", "--seq-q=192", "--seq-k=600", "--no-causal")  # five tiles, four places
        (block,) = launch["blocks"]
        (fifth,) = [step for step in self.steps(launch, self.LOADS) if step.get("started", {}).get("K") == [[512, 599]]]
        self.assertEqual(self.waits(launch, fifth), ["k_empty[0]"])
        done = [block["steps"][number] for number in fifth["after"][0]["steps"]]
        self.assertEqual(sorted(step["by"] for step in done), sorted(self.CONSUMERS))
        for step in done:
            self.assertIn([0, 127], [ranges[0] for _, tensor, ranges in step["uses"] if tensor == "K"])
        for by in self.CONSUMERS:  # zeros below the last key are nobody's rows
            of_place = [ranges for step in self.steps(launch, by) for place, _, ranges in step.get("uses", []) if launch["places"][place][2] == "k[0]"]
            self.assertEqual(of_place, [[[0, 127]], [[512, 599]]])

    def test_a_consumer_lets_pass_what_only_others_compute(self):
        """Rows 0 to 63 see no key of the second tile: their warpgroup waits for it, and says that it does not need it."""
        launch = self.launch("warpspec", "--seq-q=192", "--seq-k=192", "--causal")
        steps = self.steps(launch, self.CONSUMERS[0])
        self.assertEqual([self.waits(launch, step) for step in steps], [["q_full", "k_full[0]"], ["v_full[0]"], ["k_full[1]"], ["v_full[1]"]])
        self.assertEqual(["uses" in step for step in steps], [True, True, False, False])
        self.assertEqual([launch["mbarriers"][gate] for gate in steps[2]["arrives"]], ["k_empty[1]"])
        self.assertEqual(launch["blocks"][0]["skipped"], [{"head": 0, "queries": [i, i + 63], "keys": [128, 191]} for i in (0, 64)])

    def test_overlap_multiplies_for_two_tiles_at_once(self):
        launch = self.launch("overlap", "--seq-q=64", "--seq-k=384", "--no-causal")
        steps = self.steps(launch, self.CONSUMERS[0])
        self.assertEqual([[(tensor, ranges[0][0] // 128) for _, tensor, ranges in step["uses"] if tensor != "Q"] for step in steps],
                         [[("K", 0)], [("V", 0), ("K", 1)], [("V", 1), ("K", 2)], [("V", 2)]])

    def test_pingpong_takes_turns(self):
        launch = self.launch("pingpong", "--seq-q=192", "--seq-k=512", "--no-causal")
        products = [[step["at"] for step in self.steps(launch, by) if any(tensor == "K" for _, tensor, _ in step.get("uses", []))]
                    for by in self.CONSUMERS]
        turns = [at for round_ in zip(*products) for at in round_]
        self.assertEqual(turns, list(range(turns[0], turns[0] + 3 * 4)))
        self.assertEqual(self.waits(launch, self.steps(launch, self.CONSUMERS[1])[1])[-1], -2)  # barrier 2 is the second one's

    def test_persistent_walks_a_list(self):
        """One multiprocessor: rows 192 to 255 come after rows 0 to 191, in the other place for Q; warp 13 sends O from there."""
        launch = self.launch("persistent", "--seq-q=256", "--seq-k=128", "--no-causal")
        (block,) = launch["blocks"]
        self.assertEqual([(tile["queries"], tile["keys"]) for tile in block["tiles"]],
                         [([i, i + 63], [0, 127]) for i in (0, 64, 128, 192)])
        sends = self.steps(launch, [13, 13])
        self.assertEqual([(step["written"], [launch["places"][place][2] for place in step["sends"]]) for step in sends],
                         [({"O": [[0, 191]]}, ["q[0]"]), ({"O": [[192, 255]]}, ["q[1]"])])
        self.assertEqual([self.waits(launch, step) for step in sends], [["o_full[0]"], ["o_full[1]"]])
        self.assertEqual({str(block["steps"][number]["by"]) for number in sends[0]["after"][0]["steps"]}, set(map(str, self.CONSUMERS)))

    def test_work_of_a_launch_is_shared_out(self):
        """Whoever has the steps, together they have done what must be done."""
        for rung in ("warpspec", "overlap", "pingpong", "stored", "listed", "persistent"):
            (block,) = self.launch(rung, "--seq-q=192", "--seq-k=128", "--no-causal")["blocks"]
            total = [sum(numbers) for numbers in zip(*(step["work"] for step in block["steps"]))]
            self.assertEqual(total[2], (2 * 192 + 2 * 128) * 64 * 2 + 192 * 4)  # Q, K, V, O and LSE
            self.assertEqual(total[4], 2 * 2 * 192 * 128 * 64)


class Lists(unittest.TestCase):
    """12/packed and 12/blocks: what blocks take from a list."""

    def walk(self, rung: str, *flags) -> tuple:
        made = walk.walk_of(recorded("12_variants", f"--rung={rung}", "--heads=1", "--head-dim=64", *flags))
        return made, next(launch["blocks"] for launch in made["launches"] if any(block["tiles"] for block in launch["blocks"]))

    def test_packed(self):
        """Sequences of 100, 1, 34, 0 and 11 rows of Q: in rows of their own, those with the most keys first."""
        for direction in ("forward", "backward"):
            made, blocks = self.walk("packed", "--packed", "--batch=5", "--seq-q=100", "--causal", f"--direction={direction}")
            first_q, queries, first_k, keys = zip(*made["problem"]["sequences"])
            self.assertEqual((queries, first_q), ((100, 1, 34, 0, 11), (0, 100, 101, 135, 135)))
            self.assertEqual((keys, first_k), ((100, 6, 34, 2, 11), (0, 100, 106, 140, 142)))
            self.assertEqual((made["problem"]["batch"], made["problem"]["seq_q"], made["problem"]["seq_k"]), (1, 149, 158))
            tiles = [tile for block in blocks for tile in block["tiles"]]
            taken = [next(n for n in range(5) if first_q[n] <= tile["queries"][0] < first_q[n] + queries[n]) for tile in tiles]
            self.assertEqual(list(dict.fromkeys(taken)), [0, 2, 4, 1])
            for n, tile in zip(taken, tiles):
                self.assertLess(tile["queries"][1], first_q[n] + queries[n])
                self.assertTrue(first_k[n] <= tile["keys"][0] <= tile["keys"][1] < first_k[n] + keys[n])
                self.assertEqual(tile["kind"], "whole" if n == 1 else "partly")
            for block in blocks:  # scores are shown at the keys of their own sequence
                for step in block["steps"]:
                    for row, rows_, column, columns, _ in step.get("watched", {}).get("S", []):
                        n = next(n for n in range(5) if first_q[n] <= row < first_q[n] + queries[n])
                        self.assertLessEqual(row + rows_, first_q[n] + queries[n])
                        self.assertTrue(first_k[n] <= column and column + columns <= first_k[n] + keys[n])

    def test_blocks(self):
        """A tile of the list is computed, and no other; its kind is the list's."""
        for direction in ("forward", "backward"):
            made, blocks = self.walk("blocks", "--block-mask=documents", "--seq-q=288", "--no-causal", f"--direction={direction}")
            kinds = {(row, column): ("partly" if cut else "whole") for _, row, column, cut in made["problem"]["listed"]}
            self.assertEqual(set(kinds.values()), {"partly", "whole"})
            self.assertEqual({(tile["queries"][0] // 128, tile["keys"][0] // 128): tile["kind"]
                              for block in blocks for tile in block["tiles"]}, kinds)
            skipped = {(tile["queries"][0] // 128, tile["keys"][0] // 128) for block in blocks for tile in block["skipped"]}
            self.assertEqual(skipped, {(row, column) for row in range(3) for column in range(3)} - kinds.keys())


def last_numbers(blocks: list, name: str) -> dict:
    """{(row, column): what a kernel showed there last}"""
    return {(row, column + c): float(value) for block in blocks for step in block["steps"]
            for row, column, values in step.get("watched", {}).get(name, []) for c, value in enumerate(values)}


class Numbers(unittest.TestCase):
    """What kernels of which each thread has a fragment show."""

    def near(self, shown: dict, result: list, columns: int, delta: float):
        self.assertEqual(len(shown), len(result))
        for (row, column), value in shown.items():
            self.assertAlmostEqual(value, result[row * columns + column], delta=delta)

    def forward(self, chapter: str, rung: str):
        of = recorded(chapter, f"--rung={rung}", "--heads=2", "--kv-heads=1", "--seq-q=130", "--seq-k=100", "--head-dim=64", "--causal")
        (rung,) = of["rungs"]
        blocks, results = rung["launches"][-1]["blocks"], rung["results"]
        m, l, o = (last_numbers(blocks, name) for name in ("m base 2", "-l", "O"))
        l = {at: max(-value, 0) for at, value in l.items()}  # -l is inf for a row that sees no key
        lse = {at: m[at] * math.log(2) + math.log(l[at]) if l[at] else -math.inf for at in m}
        exact = [float(x) for x in results["LSE"]["made"]]
        self.assertEqual({row for (row, _), value in lse.items() if value == -math.inf}, {row for row, x in enumerate(exact) if x == -math.inf})
        for (row, _), value in lse.items():
            if value > -math.inf:
                self.assertAlmostEqual(value, exact[row], delta=2e-3)
        self.near({(row, d): value / l[row, 0] if l[row, 0] else 0 for (row, d), value in o.items()}, results["O"]["made"], 64, 2e-3)
        # P is 2^(log2(e) S - m) where the key is visible, with the m of its step; m as it is at the end is enough for the last tile.
        s, p = last_numbers(blocks, "S"), last_numbers(blocks, "P")
        self.assertTrue(set(p) <= set(s))
        for row in range(130):
            seen = max(row + 100 - 130 + 1, 0)
            for j in range(64, 100):
                if (row, j) in p:
                    expected = 2 ** (s[row, j] / math.log(2) - m[row, 0]) if j < seen else 0
                    self.assertAlmostEqual(p[row, j], expected, delta=1e-3 * expected)

    def test_06_final(self):
        self.forward("06_flashattn2_fwd", "final")

    def test_06_lazy(self):
        self.forward("06_flashattn2_fwd", "lazy")

    def test_09_fused(self):
        self.forward("09_rope_fused", "fused")

    def test_10(self):
        for rung in FORWARDS_OF_10:
            with self.subTest(rung):
                self.forward("10_hopper", rung)

    def test_08_balanced(self):
        self.forward("08_causal_earlystop", "balanced")

    def softmax(self, chapter: str, rung: str, normalised: bool = False, base2: bool = False):
        """Of a kernel whose m is the row's maximum: P is exp(S - m), or, normalised, exp(S - m) / l."""
        of = recorded(chapter, f"--rung={rung}", "--heads=2", "--kv-heads=1", "--seq-q=40", "--seq-k=35", "--head-dim=64", "--causal")
        (rung,) = of["rungs"]
        blocks = [block for launch in rung["launches"] for block in launch["blocks"]]
        s, p, m, l = (last_numbers(blocks, name) for name in ("S", "P", "m base 2" if base2 else "m", "l"))
        self.assertEqual((len(s), len(p), len(m), len(l)), (80 * 35, 80 * 35, 80, 80))
        for row in range(80):
            seen, exact = max(row % 40 + 35 - 40 + 1, 0), float(rung["results"]["LSE"]["expected"][row])
            maximum = m[row, 0] * (math.log(2) if base2 else 1)
            self.assertEqual(l[row, 0] == 0, seen == 0)
            if seen:
                self.assertAlmostEqual(maximum + math.log(l[row, 0]), exact, delta=2e-3)
            for j in range(35):
                expected = math.exp(s[row, j] - maximum) / (l[row, 0] if normalised else 1) if j < seen else 0
                self.assertAlmostEqual(p[row, j], expected, delta=2e-3 * expected)

    def test_01(self):
        self.softmax("01_naive", "naive", normalised=True)

    def test_02(self):
        self.softmax("02_coalescing", "vectors", normalised=True)

    def test_03(self):
        for rung in ("tiles", "padded"):
            self.softmax("03_tiling", rung, normalised=True)

    def test_04(self):
        for rung in ("fused", "streamed", "unrolled"):
            self.softmax("04_fusion", rung)

    def test_06(self):
        for rung in ("mma", "interleave"):  # 16 rows a warp, and 32
            self.softmax("06_flashattn2_fwd", rung, base2=True)

    def backward(self, chapter: str, rung: str, head_dim: int, seq_q: int = 100, seq_k: int = 150):
        of = recorded(chapter, f"--rung={rung}", "--direction=backward", "--heads=2", "--kv-heads=1", f"--seq-q={seq_q}",
                      f"--seq-k={seq_k}", f"--head-dim={head_dim}", "--causal")
        (rung,) = of["rungs"]
        blocks = [block for launch in rung["launches"] for block in launch["blocks"]]
        if rung["rung"] != "materialised":  # its gradients are written by the kernel that makes them
            for name in ("dK", "dV"):
                self.near(last_numbers(blocks, name), rung["results"][name]["made"], head_dim, 0.02)
            parts = [last_numbers([block], "dQ") for block in blocks]
            self.near({at: sum(part.get(at, 0) for part in parts) for part in parts for at in part}, rung["results"]["dQ"]["made"], head_dim, 0.02)
        # P of every row that sees its keys adds up to 1, and dS = P (dP - delta) to 0: delta is the sum of P dP.
        p, dp, ds = (last_numbers(blocks, name) for name in ("P", "dP", "dS"))
        for row in range(2 * seq_q):
            of_row = [p[row, j] for j in range(seq_k) if (row, j) in p]
            d = sum(p[row, j] * dp[row, j] for j in range(seq_k) if (row, j) in p)
            self.assertAlmostEqual(sum(of_row), 1, delta=2e-3)
            for j in range(seq_k):
                if (row, j) in ds:
                    self.assertAlmostEqual(ds[row, j], p[row, j] * (dp[row, j] - d), delta=2e-2)

    def test_07_before(self):
        for rung in ("materialised", "recompute", "mma", "one_loop", "late_dq"):
            self.backward("07_backward", rung, 64, 40, 70)

    def test_07_rows32(self):
        self.backward("07_backward", "rows32", 128, 40, 70)  # of which dk_dv has 16

    def test_07_final(self):
        self.backward("07_backward", "final", 64)

    def test_07_atomic(self):
        self.backward("07_backward", "atomic", 64)

    def test_10_backward(self):
        for rung in ("warpspec", "bulk", "turns", "reversed", "converted", "ordered"):
            with self.subTest(rung):
                self.backward("10_hopper", rung, 64, 40, 70)

    def test_pairs_of_warps(self):
        self.backward("08_causal_earlystop", "balanced", 128)


if __name__ == "__main__":
    unittest.main()
