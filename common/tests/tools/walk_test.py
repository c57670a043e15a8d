"""The page of a walk: which tiles the rows that a block reads make, what is too large, and how the page is put
together."""

import argparse
import base64
import copy
import io
import json
import math
import re
import struct
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools.base import Failure, chapters
from tools.commands import walk as command
from tools.record import Problem
from tools.showing import walk, walk_opening


def problem(**changes) -> Problem:
    return Problem(**{"batch": 1, "heads": 1, "kv_heads": 1, "seq_q": 12, "seq_k": 12, "head_dim": 8, "dtype": "fp16",
                      "causal": True, **changes})


def launch(*blocks) -> dict:
    """Of blocks, each the list of its steps."""
    return {"blocks": [{"steps": list(steps)} for steps in blocks]}


def tiles(of: Problem, *blocks) -> list:
    """Of each block [(queries, keys, kind)], and the skipped ones [(queries, keys)]."""
    made = launch(*blocks)
    walk.add_tiles(of, made)
    return [([(*tile["queries"], *tile["keys"], tile["kind"]) for tile in block["tiles"]],
             [(*tile["queries"], *tile["keys"]) for tile in block["skipped"]]) for block in made["blocks"]]


def read(**rows) -> dict:
    return {"read": {name: [list(span)] for name, span in rows.items()}}


class Kinds(unittest.TestCase):
    def test_by_the_first_and_the_last_query(self):
        for queries, keys, expected in [((4, 7), (0, 3), "whole"), ((4, 7), (4, 7), "partly"),
                                        ((4, 7), (8, 11), "masked"),
                                        ((4, 7), (7, 7), "partly"), ((3, 7), (0, 3), "whole"),
                                        ((2, 7), (0, 3), "partly")]:
            self.assertEqual(walk.kind(problem(), queries, keys), expected, (queries, keys))
            self.assertEqual(walk.kind(problem(causal=False), queries, keys), "whole")

    def test_the_last_query_sees_the_last_key(self):
        self.assertEqual(walk.kind(problem(seq_q=4), (0, 3), (0, 8)), "whole")  # query 0 sees keys 0 to 8
        self.assertEqual(walk.kind(problem(seq_q=4), (0, 3), (0, 9)), "partly")
        self.assertEqual(walk.kind(problem(seq_k=4), (0, 7), (0, 3)), "masked")  # queries 0 to 7 see none

    def test_of_a_packed_sequence_its_own_rows_count(self):
        where = walk.Where(((0, 4, 0, 4), (4, 0, 4, 3), (4, 6, 7, 8)))  # the last one's query 4 sees keys 7 to 9
        for queries, keys, expected in [((2, 3), (0, 2), "whole"), ((2, 3), (0, 3), "partly"),
                                        ((2, 3), (4, 6), "elsewhere"), ((4, 9), (3, 7), "elsewhere"),
                                        ((4, 9), (7, 9), "whole"), ((4, 9), (7, 14), "partly"), ((4, 5), (12, 14), "masked")]:
            self.assertEqual(walk.kind(problem(), queries, keys, 0, where), expected, (queries, keys))

    def test_of_a_block_mask_its_list_counts(self):
        where = walk.Where(listed={(0, 0, 0): True, (0, 1, 0): False, (0, 1, 1): False, (1, 0, 0): False})
        whole = problem(seq_q=256, seq_k=256, causal=False)
        for queries, keys, head, expected in [((0, 63), (0, 127), 0, "partly"), ((0, 63), (0, 127), 1, "whole"),
                                              ((0, 63), (128, 191), 0, "masked"), ((128, 191), (0, 63), 0, "whole"),
                                              ((128, 191), (0, 255), 0, "whole"), ((64, 191), (0, 63), 0, "partly")]:
            self.assertEqual(walk.kind(whole, queries, keys, head, where), expected, (queries, keys))
        self.assertEqual(walk.kind(problem(seq_q=256, seq_k=256), (128, 191), (128, 255), 0, where), "partly")  # and causal


class Tiles(unittest.TestCase):
    q = [read(Q=(4 * i, 4 * i + 3)) for i in range(3)]
    k = [read(K=(4 * j, 4 * j + 3)) for j in range(3)]

    def test_every_tile_is_computed_unless_skipped(self):
        (first, second) = tiles(problem(), [self.q[1], *self.k], [self.q[2], *self.k])
        self.assertEqual(first, ([(4, 7, 0, 3, "whole"), (4, 7, 4, 7, "partly"), (4, 7, 8, 11, "masked")], []))
        self.assertEqual(second[0][2], (8, 11, 8, 11, "partly"))

    def test_what_only_others_read_is_skipped(self):
        first, second = tiles(problem(), [self.q[0], self.k[0]], [self.q[2], *self.k])
        self.assertEqual(first, ([(0, 3, 0, 3, "partly")], [(0, 3, 4, 7), (0, 3, 8, 11)]))
        self.assertEqual(second[1], [])

    def test_a_tile_that_another_block_computes_is_not_skipped(self):
        no_block = tiles(problem(causal=False), [self.q[0], self.k[0]], [self.q[0], self.k[1]])
        self.assertEqual([skipped for _, skipped in no_block], [[], []])

    def test_what_could_be_seen_is_not_called_skipped(self):
        first, second = tiles(problem(causal=False), [self.q[0], self.k[0]], [self.q[1], self.k[0], self.k[1]])
        self.assertEqual((first[1], second[1]), ([], []))

    def test_backward_stays_with_its_keys(self):
        first, last = tiles(problem(), [self.k[0], *self.q], [self.k[2], self.q[2]])
        self.assertEqual([kind for *_, kind in first[0]], ["partly", "whole", "whole"])
        self.assertEqual(last, ([(8, 11, 8, 11, "partly")], [(0, 3, 8, 11), (4, 7, 8, 11)]))

    def test_the_same_rows_again_are_the_same_tile(self):
        ((found, _),) = tiles(problem(), [self.q[0], self.k[0], {}, self.k[0], read(V=(0, 3))])
        self.assertEqual(found, [(0, 3, 0, 3, "partly")])

    def test_a_copy_counts_after_the_barrier_before_which_it_lands(self):
        made = launch([{"read": {"Q": [[0, 11]]}, "started": {"K": [[0, 3]]}},
                       {"landed": {"K": [[0, 3]]}, "started": {"K": [[4, 7]]}}, {"landed": {"K": [[4, 7]]}}, {}])
        walk.add_tiles(problem(), made)
        self.assertEqual([(tile["step"], tile["keys"]) for tile in made["blocks"][0]["tiles"]],
                         [(2, [0, 3]), (3, [4, 7])])

    def test_each_party_has_the_rows_that_it_reads_from_shared_memory(self):
        def step(by: int, *uses) -> dict:
            return {"by": [by, by], "after": [], "landed": {"Q": [[0, 7]], "K": [[0, 5]]},
                    "uses": [list(use) for use in uses]}

        def fill(*fills) -> dict:
            return {"by": [8, 8], "fills": [[place, tensor, ranges, 0, 0] for place, tensor, ranges in fills]}

        q = ([0, "Q", [[0, 3]]], [0, "Q", [[4, 7]]])
        ((found, _),) = tiles(problem(causal=False), [
            fill([0, "Q", [[0, 7]]], [1, "K", [[0, 5]]]), step(0, q[0], [1, "K", [[0, 5]]]),
            step(4, q[1], [1, "K", [[0, 5]]]),
            step(0, [1, "K", [[0, 5]]]),  # again, for another product
            fill([1, "K", [[6, 11]]]), step(4, q[1], [1, "K", [[6, 11]]]),
            fill([2, "Q", [[8, 11]]], [1, "K", [[0, 5]]]), step(0, [2, "Q", [[8, 11]]], [1, "K", [[0, 5]]]),
            step(4, [2, "Q", []], [1, "K", [[0, 5]]]),  # of the zeros below the last row nobody makes a tile
        ])
        self.assertEqual([tile[:4] for tile in found], [(0, 3, 0, 5), (4, 7, 0, 5), (4, 7, 6, 11), (8, 11, 0, 5)])

    def test_a_tile_is_what_a_product_multiplies_with_one_another(self):
        """Of a backward whose dQ needs all keys of the block: the party's own ones are those that it multiplies with
        queries."""
        def step(first: int, uses: list, *products) -> dict:
            return {"by": [0, 3], "after": [], "landed": {"Q": [[first, first + 3]], "K": [[0, 11]]},
                    "uses": [[0, "K", [uses]], [1, "Q", [[first, first + 3]]]], "products": list(products)}

        ((found, _),) = tiles(problem(causal=False), [
            {"by": [8, 8], "fills": [[0, "K", [[0, 11]], 0, 0], [1, "Q", [[0, 11]], 0, 0]]},
            step(0, [4, 7], ["V", [[4, 7]], "dO", [[0, 3]]], ["K", [[4, 7]], "Q", [[0, 3]]]), step(0, [0, 11]),
            step(4, [4, 7], ["K", [[4, 7]], "Q", [[4, 7]]]), step(4, [0, 11])])
        self.assertEqual([tile[:4] for tile in found], [(0, 3, 4, 7), (4, 7, 4, 7)])

    def test_a_persistent_block_stays_with_no_queries(self):
        both = [read(Q=(4, 7)), self.k[0], self.k[1], {"read": {**self.q[2]["read"], **self.k[0]["read"]}}, self.k[1],
                self.k[2]]
        ((_, skipped),) = tiles(problem(), both)
        self.assertEqual(skipped, [(4, 7, 8, 11)])

    def test_without_queries_the_rows_that_are_written(self):
        ((found, _),) = tiles(problem(causal=False), [read(V=(0, 11)), {"written": {"O": [[4, 7]]}}])
        self.assertEqual(found, [(4, 7, 0, 11, "whole")])

    def test_a_head_goes_with_its_kv_head(self):
        of = problem(heads=4, kv_heads=2, causal=False)
        made = launch([read(Q=(24, 35)), read(K=(12, 23))], [read(Q=(24, 35)), read(K=(0, 11))])
        walk.add_tiles(of, made)
        self.assertEqual([[tile["head"] for tile in block["tiles"]] for block in made["blocks"]], [[2], []])

    def test_a_kernel_without_keys_has_no_tiles(self):
        self.assertEqual(tiles(problem(), [{"read": {"workspace": [[0, 3]]}}]), [([], [])])


class Names(unittest.TestCase):
    def test_of_mbarriers_and_places(self):
        with tempfile.TemporaryDirectory() as directory:
            source = ["mbarrier_init(&smem.q_full, 1);",
                      "for (int i = 0; i < 2; i++) mbarrier_init(&smem->full[i], 4 * n);", "mbarrier_init(gate, 1);"]
            (Path(directory) / "a.cu").write_text("\n".join(source))
            of = {"mbarriers": ["a.cu:1", "a.cu:2", "a.cu:2", "a.cu:3", "a.cu:9", "b.cu:1"],
                  "places": [[512, 64], [0, 64], [256, 64], [900, 64]],
                  "blocks": [{"steps": [{"fills": [[0, "K", [[0, 1]], 0, 0], [1, "Q", [[0, 1]], 0, 0]]},
                                        {"fills": [[2, "K", [[2, 3]], 0, 0]]}]}]}
            walk.add_names(of, Path(directory))
        self.assertEqual(of["mbarriers"], ["q_full", "full[0]", "full[1]", "gate", "mbarrier[0]", "mbarrier[1]"])
        self.assertEqual(of["places"], [[512, 64, "k[1]"], [0, 64, "q"], [256, 64, "k[0]"], [900, 64, "zeros"]])

    def test_a_kernel_without_them(self):
        of = launch([read(Q=(0, 3))])
        walk.add_names(of)
        self.assertEqual((of["mbarriers"], of["places"]), ([], []))


class Sizes(unittest.TestCase):
    def test_the_largest_fits_and_one_more_does_not(self):
        of = problem(heads=2, kv_heads=2, head_dim=64, seq_q=4096, seq_k=4096)
        for direction, largest in [("forward", 192), ("backward", 128)]:
            with self.assertRaisesRegex(Failure,
                                        f"--seq-q={largest} --seq-k={largest} is the largest that fits") as raised:
                walk.require_small(of, direction)
            self.assertEqual(raised.exception.status, 2)
            fits = problem(heads=2, kv_heads=2, head_dim=64, seq_q=largest, seq_k=largest)
            walk.require_small(fits, direction)
            with self.assertRaises(Failure):
                walk.require_small(problem(heads=2, kv_heads=2, head_dim=64, seq_q=largest + 1, seq_k=largest + 1),
                                   direction)

    def test_what_is_counted(self):
        # 2 heads x 192 rows, each with 192 elements of S and P and five times 64 of O: after three tiles, written,
        # expected
        self.assertEqual(walk.numbers(problem(heads=2, head_dim=64, seq_q=192, seq_k=192), "forward"),
                         2 * 192 * (2 * 192 + 5 * 64) + 2 * 9 * walk.TILE_STEPS)
        # P, dP and dS; dQ in two parts, written, expected; of the one kv head dK and dV after each of 2 x 2 tiles,
        # written, expected
        self.assertEqual(walk.numbers(problem(heads=2, kv_heads=1, head_dim=64, seq_q=128, seq_k=128), "backward"),
                         2 * 128 * (3 * 128 + 4 * 64) + 2 * 128 * 64 * 6 + 2 * 4 * walk.TILE_STEPS)
        # with tiles of 4: an O for each of 2, and the steps of 2 x 2
        self.assertEqual(walk.numbers(problem(head_dim=8, seq_q=8, seq_k=8), "forward", tile=4),
                         8 * (2 * 8 + 8 * 4) + 4 * walk.TILE_STEPS)

    def test_nothing_fits(self):
        with self.assertRaisesRegex(Failure, "take fewer heads"):
            walk.require_small(problem(heads=3000, head_dim=64), "forward")

    def test_two_have_half_the_room(self):
        of = problem(heads=2, kv_heads=2, head_dim=64, seq_q=130, seq_k=130)
        walk.require_small(of, "forward")
        with self.assertRaisesRegex(
                Failure, "--seq-q=128 --seq-k=128 is the largest that fits; with --no-numbers longer ones do"):
            walk.require_small(of, "forward", walks=2)

    def test_without_numbers_only_the_steps_count(self):
        of = problem(heads=4, kv_heads=4, head_dim=64, seq_q=512, seq_k=512)
        walk.require_small(of, "forward", with_numbers=False)
        self.assertEqual(walk.numbers(of, "forward", with_numbers=False), 4 * 64 * walk.TILE_STEPS)

    def test_nothing_runs_that_is_too_large(self):
        with mock.patch.object(command.build, "ensure_built"), \
                mock.patch.object(command, "_steps",
                                  return_value=("forward", [command.Step(chapters.Chapter("05_x"), "tiles")])), \
                mock.patch.object(command.problem_flags, "resolved",
                                  return_value=(problem(seq_q=9999, seq_k=9999), {})), \
                mock.patch.object(command.engine_counts, "counts_of", side_effect=AssertionError("it runs")), \
                self.assertRaisesRegex(Failure, "too large for a page"):
            command.run(arguments("05"))


def arguments(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


class Command(unittest.TestCase):
    """With a recorder that knows one small page by heart."""

    def run_with(self, *words, opens=True):
        with mock.patch.object(command.problem_flags, "resolved", return_value=(problem(), {})):
            return self.run_resolved(*words, opens=opens)

    def run_resolved(self, *words, opens=True):
        said = []
        with mock.patch.object(command.build, "ensure_built"), mock.patch.object(command, "_naive",
                                                                                 return_value=None), \
                mock.patch.object(command, "_steps", side_effect=lambda asked_for, *_: (
                    "forward", [command.Step(chapter, "r") for chapter, _ in asked_for])), \
                mock.patch.object(command.engine_counts, "counts_of",
                                  side_effect=lambda *_: copy.deepcopy(Page.recorded)), \
                mock.patch.object(command, "say", said.append), mock.patch.object(command.webbrowser, "open",
                                                                                  return_value=opens) as browser:
            status = command.run(arguments(*words))
        return status, said, browser

    def test_two_steps_are_two_walks_of_a_page(self):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "page.html"
            status, _, browser = self.run_with("03", "05", f"--out={out}", "--no-browser")
            self.assertEqual((status, browser.called), (0, False))
            held = json.loads(re.findall(r'id="walks">(.*?)</script>', out.read_text(), re.DOTALL)[0])
            self.assertEqual(len(held["walks"]), 2)

    def test_a_browser_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as directory:
            status, said, _ = self.run_with("05", f"--out={directory}/page.html", opens=False)
        self.assertEqual((status, said[-1]), (0, "No browser answers here: open it yourself."))

    def test_directories_that_are_not_there_are_made(self):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "none" / "yet" / "page.html"
            self.run_with("05", f"--out={out}", "--no-browser")
            self.assertEqual([path.name for path in out.parent.iterdir()], ["page.html"])

    def test_what_turns_out_too_large_is_shorter_unless_a_length_is_asked_for(self):
        for words, lengths in [((), ["--seq-q=192", "--seq-q=128"]), (("--seq-q=100",), ["--seq-q=100"])]:
            tried = []

            def page(walks):
                if len(tried) == 1 or words:
                    raise walk.TooLarge("too large", status=2)
                return "the page"

            with tempfile.TemporaryDirectory() as directory, mock.patch.object(walk, "page", page), \
                    mock.patch.object(command.problem_flags, "resolved",
                                      side_effect=lambda _, flags: tried.append(flags[-1]) or (problem(), {})):
                out = Path(directory) / "page.html"
                if words:
                    with self.assertRaises(walk.TooLarge):
                        self.run_resolved("05", *words, f"--out={out}")
                else:
                    self.run_resolved("05", f"--out={out}")
                    self.assertEqual(out.read_text(), "the page")
            self.assertEqual(tried, lengths)

    def test_three_steps_are_too_many(self):
        with mock.patch("sys.stderr", io.StringIO()) as said, self.assertRaises(SystemExit):
            arguments("03", "04", "05")
        self.assertIn("3 steps: one page has room for two", said.getvalue())


class Steps(unittest.TestCase):
    described = chapters.Description("", [{"name": "a", "forward": True, "backward": False},
                                          {"name": "b", "forward": True, "backward": True},
                                          {"name": "c", "forward": False, "backward": True}])

    def steps(self, *rungs, direction=None):
        with mock.patch.object(chapters, "describe", return_value=self.described):
            direction, steps = command._steps([(chapters.Chapter("08_x"), rung) for rung in rungs], direction, None)
        return (direction, *(step.rung for step in steps))

    def test_the_last_rung_with_the_direction(self):
        self.assertEqual(self.steps(""), ("forward", "b"))
        self.assertEqual(self.steps("", direction="backward"), ("backward", "c"))
        self.assertEqual(self.steps("c"), ("backward", "c"))
        self.assertEqual(self.steps("a"), ("forward", "a"))

    def test_an_example_is_asked_for_by_name(self):
        described = chapters.Description("", self.described.rungs, "e")
        with mock.patch.object(chapters, "describe", return_value=described):
            chapter = chapters.Chapter("08_x")
            self.assertEqual(command._steps([(chapter, "e")], None, None),
                             ("forward", [command.Step(chapter, "e", True)]))
            self.assertEqual(command._steps([(chapter, "")], None, None), ("forward", [command.Step(chapter, "b")]))
            with self.assertRaisesRegex(Failure, "08_x/e has no backward"):
                command._steps([(chapter, "e")], "backward", None)

    def test_what_nobody_asks_for_is_small(self):
        small = command._small("forward", 1)
        self.assertEqual(command._flags(arguments("05"), small), ["--heads=2", "--seq-q=192"])
        self.assertEqual(command._flags(arguments("05", "--kv-heads=3", "--seq-q=9"), small),
                         ["--heads=3", "--kv-heads=3", "--seq-q=9"])
        self.assertEqual(command._flags(arguments("05/example"), command.EXAMPLE),
                         ["--batch=4", "--heads=2", "--head-dim=8", "--seq-q=8"])

    def test_keys_of_11_are_divided_where_no_length_is_asked_for(self):
        chapter, other = chapters.Chapter(command.SPLIT), chapters.Chapter("05_online_softmax")
        for asked_for, flags, divided in [([chapter], [], True), ([chapter], ["--seq-q=64"], False), ([other], [], False),
                                          ([chapter], ["--seq-k=64"], False), ([chapter, other], [], False)]:
            self.assertEqual(command._divides_keys(asked_for, arguments("11", *flags)), divided, (asked_for, flags))
        self.assertEqual(command._flags(arguments("11"), command.FEW_QUERIES), ["--heads=2", "--seq-k=1000", "--seq-q=1"])

    def test_what_nobody_asks_for_fits(self):
        for direction in ("forward", "backward"):
            for steps in (1, 2):
                small = command._small(direction, steps)
                (n,), heads = small["seq_q"], small["heads"]
                walk.require_small(problem(seq_q=n, seq_k=n, heads=heads, kv_heads=heads, head_dim=64), direction,
                                   steps)

    def test_packed_sequences_that_nobody_asks_for_fit(self):
        for direction, n in command.SEQUENCES.items():
            total = 3 * n // 2  # five sequences have less
            walk.require_small(problem(batch=5, seq_q=n, seq_k=n, head_dim=64, extras=f"packed{total}_{total}"), direction)
        for direction, n in command.MASKED.items():
            walk.require_small(problem(seq_q=n, seq_k=n, head_dim=64, causal=False, extras="blocks_documents"), direction)
        with self.assertRaisesRegex(Failure, "^heads is 2: a page of packed sequences has room for one$"):
            command.run(arguments("12/packed", "--packed", "--heads=2"))

    def test_two_go_in_the_same_direction(self):
        self.assertEqual(self.steps("b", "c"), ("backward", "b", "c"))
        with self.assertRaisesRegex(Failure, "the two steps share no direction"):
            self.steps("a", "c")
        with self.assertRaisesRegex(Failure, "08_x/a has no backward"):
            self.steps("a", "c", direction="backward")

    def test_what_is_not_there(self):
        for rung, direction, expected in [("a", "backward", "08_x/a has no backward"),
                                          ("d", None, r"08_x has no rung d \(rungs: a, b, c\)")]:
            with self.assertRaisesRegex(Failure, expected) as raised:
                self.steps(rung, direction=direction)
            self.assertEqual(raised.exception.status, 2)


class Openings(unittest.TestCase):
    """Where a page opens, of records made by hand."""

    def opens(self, *launches, of=None, **shape):
        of = of or problem(seq_q=4, seq_k=8, heads=1, kv_heads=1, head_dim=8, **shape)
        return walk_opening.opening(of, "forward", [{"blocks": blocks} for blocks in launches])

    def block(self, *steps, tiles=1, skipped=0):
        tile = {"head": 0, "queries": [0, 3], "keys": [0, 3]}
        return {"tiles": [tile] * tiles, "skipped": [tile] * skipped,
                "steps": [{"work": [0] * 6, "watched": watched} for watched in steps]}

    def shown(self, m: dict, correction: dict) -> dict:
        return {name: [[row, 0, [value]] for row, value in values.items()]
                for name, values in (("m", m), ("correction", correction))}

    def test_the_smallest_correction_after_the_first_tile(self):
        first, second = self.shown({0: 1, 1: 2}, {0: 0, 1: 0.001}), self.shown({0: 3, 1: 2}, {0: 0.5, 1: 1})
        third = self.shown({0: 3, 1: 4}, {0: 1, 1: 0.25})
        found = self.opens([self.block({}, first, {}, second, {}, third), self.block(first, second)])
        self.assertEqual((found.block, found.step, found.row), (0, 5, "q1"))
        self.assertIn("Its third tile", found.watch)
        self.assertIn("by 0.25 corrects it", found.watch)

    def test_the_block_that_skips_most_of_its_tiles(self):
        found = self.opens([self.block({}, tiles=2, skipped=1), self.block({}, {}, tiles=1, skipped=2), self.block({})])
        self.assertEqual((found.block, found.step), (1, 1))
        self.assertIn("has stopped after 1 tile, at key 3.", found.watch)
        self.assertIn("the 2 dotted tiles are never loaded", found.watch)

    def test_the_merge_whose_second_part_weighs_most(self):
        alone = {"LSE of a part": [[0, 0, [5.0, -20.0]]]}
        matters = {"LSE of a part": [[1, 0, [math.log(3), math.log(1)]]]}
        found = self.opens([self.block({})], [self.block(alone), self.block(matters)])
        self.assertEqual((found.launch, found.block, found.step, found.row), (1, 1, -1, "q1"))
        self.assertIn("with weights of 0.75 and 0.25:", found.watch)

    def test_a_thread_that_makes_rows_and_columns_of_scores(self):
        scores = {"blocks": [self.block({}, {"S": [[0, 0, [1.0]]]})], "owners": [[0, 0, [0, 1, 0, 1]], [1, 0, [0, 1, 0, 1]]]}
        softmax = {"blocks": [self.block({}, tiles=0)]}
        found = walk_opening.opening(problem(), "forward", [scores, softmax])
        self.assertEqual((found.launch, found.step, found.alone), (0, 1, True))
        self.assertIn("It makes 4 scores of a tile: 2 queries by 2 keys", found.watch)
        scores["owners"] = [[0, 0, [0, 1, 0, 1]]]  # one row: nothing is shared
        self.assertIsNone(walk_opening.opening(problem(), "forward", [scores, softmax]))

    def test_the_party_that_waits_for_a_copy(self):
        copies = {"by": [12, 12], "fills": [[0, "K", [[0, 3]], 0, 0]], "work": [0] * 6}
        waits = {"by": [0, 3], "landed": {"K": [[0, 3]]}, "after": [{"on": 0, "steps": [0]}], "work": [0] * 6}
        found = self.opens([{"tiles": [], "skipped": [], "steps": [copies, waits]}])
        self.assertEqual((found.block, found.step), (0, 1))
        self.assertIn("Warp 12 only starts copies, and warpgroup 0 only computes. Here it has just waited for K,", found.watch)

    def test_the_key_whose_gradient_is_largest_where_dq_gets_a_part(self):
        adds = {"dK": [[0, 0, [1.0]]], "dV": [[0, 0, [0.5, -1.0]], [1, 0, [0.0, -3.0]], [2, 0, [2.0, 2.0]]]}
        later = {"dV": [[3, 0, [9.0]]]}
        block = self.block({}, adds, {"dQ": [[0, 0, [1.0]]]}, later)
        found = walk_opening.opening(problem(), "backward", [{"blocks": [block]}])
        self.assertEqual((found.block, found.step, found.row), (0, 2, "k1"))

    def test_nothing_stands_out(self):
        self.assertIsNone(self.opens([self.block({})]))

    def test_the_source_of_a_step_ends_where_the_next_begins(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "a.cu").write_text('void f() {\n  watch_step("a");\n  if (x) {\n    y();\n    watch("S", z);\n  }\n\n'
                                                  '  watch_step("b");\n  z();\n}\n')
            header = Path(directory) / "common" / "device" / "h.h"
            header.parent.mkdir(parents=True)
            header.write_text('void g() {\n  for (;;) {\n    watch_step("d");\n    w();\n  }\n}\n')
            launch = {"names": [["a", "a.cu:2"], ["b", "a.cu:8"], ["c", "gone.cu:1"], ["d", "a.cu:4"]]}
            walk.add_sources(launch, Path(directory))
        self.assertEqual([(name["line"], name["source"]) for name in launch["names"]],
                         [("a.cu:2", ["if (x) {", "  y();", "}"]), ("a.cu:8", ["z();"]), ("gone.cu:1", []),
                          ("common/device/h.h:3", ["w();"])])  # called in line 4 of the kernel

    def test_the_source_of_a_step_that_has_another_name_in_other_warps(self):
        """And of a kernel in a folder of its chapter, of which the engine names that folder alone."""
        with tempfile.TemporaryDirectory() as directory:
            kernel = Path(directory) / "10_hopper" / "wide" / "k.cu"
            kernel.parent.mkdir(parents=True)
            kernel.write_text('void f() {\n  if (p)\n    watch_step("a");\n  else\n    watch_step("b");\n  x();\n  if (p)\n'
                              '    watch_step("c");\n  else\n    watch_step("d");\n  mbarrier_init(&smem.full, 1);\n}\n')
            launch = {"names": [["a", "wide/k.cu:3"], ["b", "wide/k.cu:5"], ["c", "wide/k.cu:8"]], "mbarriers": ["wide/k.cu:11"],
                      "blocks": []}
            walk.add_sources(launch, Path(directory))
            walk.add_names(launch, Path(directory))
        self.assertEqual([(name["line"], name["source"]) for name in launch["names"]],
                         [("10_hopper/wide/k.cu:3", ["x();"]), ("10_hopper/wide/k.cu:5", ["x();"]),
                          ("10_hopper/wide/k.cu:8", ["mbarrier_init(&smem.full, 1);"])])
        self.assertEqual(launch["mbarriers"], ["full"])


def unpacked(packed: str) -> list:
    raw = base64.b64decode(packed)
    return [struct.unpack("<f", b"\0" + raw[at:at + 3])[0] for at in range(0, len(raw), 3)]


class Page(unittest.TestCase):
    recorded = {
        "chapter": "05_x", "problem": "B1_H1_N4_D8_fp16_causal", "direction": "forward",
        "rungs": [{"rung": "r", "tensors": [{"name": "Q", "rows": 4, "row_bytes": 16},
                                            {"name": "K", "rows": 4, "row_bytes": 16}],
                   "launches": [{"kernel": "x::</script><b>&", "grid": [1, 1, 1], "block": [32, 1, 1],
                                 "dynamic_shared_bytes": 0,
                                 "blocks": [{"block": [0, 0, 0],
                                             "steps": [{"until": "", "work": [1, 2, 3, 4, 5, 6],
                                                        "read": {"Q": [[0, 3]], "K": [[0, 3]]},
                                        "watched": {"m": [[2, 0, [1.5]], [3, 0, ["-inf"]]]}}]}]}],
                   "results": {"LSE": {"made": [0.5], "expected": [0.25]}}}],
    }

    def setUp(self):
        self.page = walk.page([walk.walk_of(copy.deepcopy(self.recorded), copy.deepcopy(self.recorded))])

    def test_holds_the_walk_and_its_tiles(self):
        (data,) = re.findall(r'<script type="application/json" id="walks">(.*?)</script>', self.page, re.DOTALL)
        (held,) = json.loads(data)["walks"]
        self.assertEqual(held["launches"][0]["kernel"], "x::</script><b>&")
        self.assertEqual(held["launches"][0]["blocks"][0]["tiles"],
                         [{"head": 0, "queries": [0, 3], "keys": [0, 3], "step": 0, "kind": "partly"}])
        self.assertEqual((held["step"], held["problem"]["seq_q"]), ("05_x/r", 4))
        self.assertEqual(held["naive"], [1, 2, 3, 4, 5, 6])

    def test_numbers_are_packed(self):
        (held,) = json.loads(re.findall(r'id="walks">(.*?)</script>', self.page, re.DOTALL)[0])["walks"]
        ((*place, packed),) = held["launches"][0]["blocks"][0]["steps"][0]["watched"]["m"]
        self.assertEqual((place, unpacked(packed)), ([2, 2, 0, 1], [1.5, -math.inf]))
        self.assertEqual(unpacked(held["results"]["LSE"]["expected"]), [0.25])

    def test_three_bytes_of_a_number_are_enough(self):
        values = [math.pi, -1e-30, 3e38, 65504.0, 0.1 + 1e-7, -0.0]
        for packed, value in zip(unpacked(walk.base64_of(values)), values):
            self.assertAlmostEqual(packed, value, delta=abs(value) * 2 ** -16)
        self.assertTrue(math.isnan(unpacked(walk.base64_of([math.nan]))[0]))

    def test_without_numbers(self):
        held = walk.walk_of(copy.deepcopy(self.recorded), None, with_numbers=False)
        self.assertEqual((held["results"], held["numbers"], "watched" in held["launches"][0]["blocks"][0]["steps"][0]),
                         ({}, False, False))

    def test_rectangles(self):
        runs = [[0, 8, [1, 2]], [1, 8, [3, 4]], [2, 8, [5]], [4, 8, [6]]]
        self.assertEqual([place for *place, _ in walk.rectangles(runs)], [[0, 2, 8, 2], [2, 1, 8, 1], [4, 1, 8, 1]])

    def test_says_what_it_is_where_others_link_to_it(self):
        self.assertIn('<meta name="description" content="A run of 05_x/r, forward, replayed step by step with its numbers.', self.page)
        self.assertIn("<h1>05_<wbr>x/<wbr>r, forward</h1>", self.page)  # may break there on a phone
        self.assertIn('<link rel="icon" href="data:image/svg+xml;base64,', self.page)

    def test_needs_nothing_else(self):
        self.assertNotIn("{{", self.page)
        # a name, not an address
        self.assertEqual(set(re.findall(r"https?://[^\"' ]*", self.page)), {"http://www.w3.org/2000/svg"})
        self.assertEqual(re.findall(r"<(?:link|img|script|iframe)[^>]*(?:href|src)=\"(?!data:)", self.page), [])
        self.assertIn("default-src 'none'", self.page)

    def test_is_never_too_large(self):
        with mock.patch.object(walk, "LARGEST_PAGE", 1000), self.assertRaisesRegex(Failure, "more than 1,000"):
            walk.page([walk.walk_of(copy.deepcopy(self.recorded))])

    def test_every_place_that_the_script_asks_for_is_there(self):
        html = (walk.PARTS / "page.html").read_text()
        for asked, there in [(r'\$\("([a-z-]+)"\)', r'\bid="([a-z-]+)"'),
                             (r'\.part\("([a-z-]+)"\)', r'\bdata-part="([a-z-]+)"')]:
            places = re.findall(there, html)
            self.assertEqual(set(re.findall(asked, walk.script())) - set(places), set())
            self.assertEqual(len(places), len(set(places)))

    def test_every_script_is_in_the_page(self):
        self.assertEqual({f"{name}.js" for name in walk.SCRIPTS}, {path.name for path in walk.PARTS.glob("*.js")})


if __name__ == "__main__":
    unittest.main()
