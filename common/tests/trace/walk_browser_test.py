"""The page of a walk in a real browser, without a window: Chromium, driven by Selenium, looked over by axe.

Skipped, with a line that says why, where one of them is missing. CI puts the Python packages into build/browser (see .ci/run)."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tools.showing import walk

BUILD = Path(os.environ["WORKBOOK_BUILD"])
sys.path.insert(0, str(BUILD.parent / "browser"))
MISSING = 77  # CTest counts it as skipped
EVERY = "EVERY_PAGE" in os.environ  # every page is looked over at every width; else some of them


def program(*names) -> "str | None":
    return next((path for path in map(shutil.which, names) if path), None)


CHROMIUM, DRIVER = program("chromium", "chromium-browser", "google-chrome"), program("chromedriver")
try:
    from axe_core_python.selenium import Axe
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait
except ImportError as error:
    PACKAGE = error.name
else:
    PACKAGE = None


def missing() -> str:
    if PACKAGE:
        return f"no Python package {PACKAGE}: python3 -m pip install --target build/browser -r common/tests/trace/browser.txt"
    return "" if CHROMIUM and DRIVER else "no chromium and chromedriver: apt-get install chromium chromium-driver"


def recorded(chapter: str, *flags) -> dict:
    done = subprocess.run([BUILD / chapter / f"{chapter}_traced", "--walk", *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                          env={**os.environ, "SIMT_THREADS": "8" if chapter == "12_variants" else "1"})  # multiprocessors
    return json.loads(done.stdout)


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


class InBrowser(unittest.TestCase):
    SMALL = ("--heads=1", "--seq-q=128", "--head-dim=64")

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.recorded = recorded("05_online_softmax", "--rung=tiles", *cls.SMALL)
        cls.naive = recorded("01_naive", "--rung=naive", "--heads=1", "--seq-q=16", "--head-dim=64")
        alone = recorded("01_naive", "--rung=naive", "--heads=1", "--seq-q=64", "--head-dim=64")
        early = [recorded("08_causal_earlystop", f"--rung={rung}", "--heads=1", "--seq-q=192", "--head-dim=64") for rung in ("masked", "earlystop")]
        back = recorded("07_backward", "--rung=final", "--direction=backward", "--heads=1", "--seq-q=12", "--head-dim=64")
        cls.hopper = recorded("10_hopper", "--rung=persistent", "--heads=1", "--seq-q=256", "--head-dim=64")
        eight_and_ten = [recorded(chapter, f"--rung={rung}", "--heads=1", "--seq-q=192", "--head-dim=64")
                         for chapter, rung in [("08_causal_earlystop", "balanced"), ("10_hopper", "warpspec")]]
        both = [recorded(chapter, f"--rung={rung}", *cls.SMALL) for chapter, rung in [("03_tiling", "padded"), ("05_online_softmax", "tiles")]]
        back_two = recorded("08_causal_earlystop", "--rung=ordered", "--direction=backward", "--heads=1", "--seq-q=192", "--head-dim=64")
        balanced = recorded("08_causal_earlystop", "--rung=balanced", "--heads=1", "--seq-q=192", "--head-dim=64")
        packed = recorded("12_variants", "--rung=packed", "--packed", "--batch=5", "--heads=1", "--seq-q=200", "--head-dim=64")
        blocks = recorded("12_variants", "--rung=blocks", "--block-mask=documents", "--heads=1", "--seq-q=288", "--head-dim=64", "--no-causal")
        cls.pages = {name: cls.written(name, walks) for name, walks in [
            ("early", [walk.walk_of(balanced)]), ("backward two", [walk.walk_of(back_two)]), ("tiling", [walk.walk_of(json.loads(json.dumps(both[0])))]),
            ("one", [walk.walk_of(json.loads(json.dumps(cls.recorded)), cls.naive)]), ("two", [walk.walk_of(each) for each in early]),
            ("backward", [walk.walk_of(back)]), ("packed", [walk.walk_of(packed)]), ("blocks", [walk.walk_of(blocks)]),
            ("naive", [walk.walk_of(alone)]), ("materialised", [walk.walk_of(each) for each in both]),
            ("hopper", [walk.walk_of(json.loads(json.dumps(cls.hopper)))]), ("eight and ten", [walk.walk_of(each) for each in eight_and_ten])]}
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-prefers-reduced-motion"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        cls.addClassCleanup(cls.directory.cleanup)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def written(cls, name: str, walks: list) -> str:
        path = Path(cls.directory.name) / f"{name}.html"
        path.write_text(walk.page(walks))
        return path.as_uri()

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])

    def open(self, name: str, width: int = 1280, of: "int | None" = 0):
        """At the first step of block `of`; None: where it opens."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.get(self.pages[name.partition("#")[0]] + "".join(name.partition("#")[1:]))
        if of is not None:
            self.browser.execute_script("startAgain(() => sides.forEach((side) => enterBlock(side, arguments[0])))", of)

    def at(self, selector: str) -> list:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def part(self, name: str, side: int = 0):
        return self.at(".side")[side].find_element(By.CSS_SELECTOR, f'[data-part="{name}"]')

    def click(self, selector: str):
        self.at(selector)[0].click()

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def where(self) -> str:
        return self.at("#number")[0].text

    def scrub_to(self, tick: int):
        self.browser.execute_script("const s = document.getElementById('scrub'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", tick)

    # --- Opening and moving ---

    def test_nothing_is_asked_of_a_network(self):
        self.browser.get_log("performance")
        self.open("one")
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        self.assertIn(self.pages["one"], asked)
        self.assertEqual([url for url in asked if not url.startswith(("file:", "data:"))], [])

    def test_buttons_keys_and_the_slider_step(self):
        self.open("one")
        self.assertEqual(self.where(), "1 of 20")
        self.click("#forward")
        self.click("#forward")
        self.assertEqual(self.where(), "3 of 20")
        self.click("#back")
        self.assertEqual(self.where(), "2 of 20")
        self.at("h1")[0].click()
        for keys, expected in [(Keys.ARROW_RIGHT, 3), (Keys.ARROW_RIGHT, 4), (Keys.ARROW_LEFT, 3), (Keys.END, 20), (Keys.HOME, 1)]:
            self.press(keys)
            self.assertEqual(self.where(), f"{expected} of 20")
        self.scrub_to(9)
        self.assertEqual(self.where(), "9 of 20")
        self.assertIn("then the barrier at 05_online_softmax/2_tiles.cu:", self.part("moves").text)
        self.click("#last")
        self.assertFalse(self.at("#forward")[0].is_enabled())

    def test_it_plays_and_pauses(self):
        self.open("one")
        self.browser.execute_script("document.getElementById('speed').options[2].value = 20")
        self.at("#speed option")[2].click()
        self.at("h1")[0].click()
        self.press(" ")
        self.assertEqual(self.at("#play")[0].text, "Pause")
        WebDriverWait(self.browser, 5).until(lambda _: self.where() == "20 of 20")
        self.assertEqual(self.at("#play")[0].text, "Play")

    def test_a_block_is_chosen_by_mouse_and_by_keys(self):
        self.open("one")
        self.click("#forward")
        blocks = self.at('[role="radio"]')
        blocks[1].click()
        self.assertEqual((self.where(), blocks[1].get_attribute("aria-checked")), ("1 of 20", "true"))
        self.assertIn("queries 64–127", self.part("about-block").text)
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(blocks[0].get_attribute("aria-checked"), "true")
        self.assertEqual(self.browser.switch_to.active_element, blocks[0])

    # --- Where it opens, and what a step is called ---

    def test_it_opens_on_the_smallest_correction_after_the_first_tile(self):
        found = []
        for at_block, block in enumerate(self.recorded["rungs"][0]["launches"][0]["blocks"]):
            corrections = [(at, step["watched"]["correction"]) for at, step in enumerate(block["steps"]) if "correction" in step.get("watched", {})]
            found += [(float(factor), at_block, at, row) for at, of_step in corrections[1:] for row, _, (factor,) in of_step if float(factor) > 0]
        factor, block, step, row = min(found)
        self.assertLess(factor, 1)
        self.open("one", of=None)
        chosen = [radio.get_attribute("aria-checked") for radio in self.at('[role="radio"]')].index("true")
        self.assertEqual((chosen, self.where(), self.part("row").get_attribute("value")), (block, f"{step + 1} of 20", f"q{row}"))
        words = self.browser.execute_script("return shown(arguments[0])", factor)
        self.assertEqual(self.part("step-name").text, f"A new maximum: l and O × {words}")
        self.assertRegex(self.part("watch").text, rf"^Watch query {row}\. Its second tile has a score above m, .* by 0\.\d+ corrects it\.$")
        self.assertIn(f"So l and O × {words}", self.part("says").text)
        before, factor, added, after = map(number, re.search(r"l = (\S+) × (\S+) \+ (\S+) = (\S+)\.$", self.part("says").text).groups())
        self.assertAlmostEqual(before * factor + added, after, delta=0.51 * 10.0 ** (len(str(int(after))) - 4))  # as a reader calculates it
        self.assertFalse(self.part("show-me").is_displayed())
        self.click("#first")
        self.part("show-me").click()
        self.assertEqual((self.where(), self.part("row").get_attribute("value")), (f"{step + 1} of 20", f"q{row}"))
        self.assertEqual(self.part("elsewhere").text, "")
        self.at('[role="radio"]')[1 - block].click()
        self.assertEqual(self.part("elsewhere").text, f"That is about block {block}; what you see below is block {1 - block}.")

    def test_it_opens_on_a_block_that_skips(self):
        self.open("early", of=None)
        self.assertRegex(self.part("watch").text, r"^Block 1 has stopped .* the dotted tile is never loaded and never multiplied")
        self.assertIn("1 skipped", self.part("scores-words").text)
        self.assertEqual(len(self.at('.scores rect[fill="url(#dots)"]')), 2)  # in the picture and in its legend

    def test_it_opens_on_the_whole_launch_where_there_is_a_list(self):
        for name in ("packed#embed", "blocks", "packed", "blocks#embed"):
            self.open(name, 720 if "embed" in name else 1280, of=None)
            self.assertEqual(self.at("#view-launch")[0].get_attribute("aria-pressed"), "true")
            self.assertIn("and 9 of 9 tiles.", self.part("launch-words").text)
            self.assertTrue(self.part("taken").is_displayed())
            if "embed" in name:  # as high as its frame
                self.assertLessEqual(self.browser.execute_script("return document.body.scrollHeight"), 528, name)

    def test_keys_are_those_of_the_scores_in_the_step(self):
        """08 takes a tile of 64 keys in two halves: what a step says is by the scores that it shows, and after the barrier nothing is
        multiplied yet, whatever the step before was called."""
        self.open("early", of=1)
        told = self.browser.execute_script("return sides[0].steps().map((step, i) => { go(i); return [step.watched?.P?.[0].slice(2, 4) ?? null, step.work[4], "
                                           "sides[0].part('step-name').textContent, sides[0].part('says').textContent]; })")
        self.assertIn("each of keys 32–63: a part of the tile’s scores.", "".join(words for *_, words in told))
        products = [each for each in told if each[0]]
        self.assertEqual([first for (first, _), *_ in products], [0, 32, 64, 96])
        for (first, count), _, name, words in products:
            self.assertEqual(name, "P, and O += P V")
            if "keys" in words:
                self.assertIn(f"keys {first}–{first + count - 1}", words)
        self.assertEqual([words for _, flops, name, words in told if not flops and "P V" in name + words], [])
        arrived = [words for *_, words in told].index("K and V of keys 64–127 are in shared memory: the block goes on to them.")
        self.scrub_to(arrived + 1)
        self.assertEqual(self.part("step-name").text, "A tile has arrived")
        self.assertFalse(self.part("source-part").is_displayed())

    def test_it_opens_where_a_party_has_waited(self):
        self.open("hopper", of=None)
        self.assertIn("Warp 12 only starts copies, and warpgroup 0 only computes. Here it has just waited for Q and K,", self.part("watch").text)
        self.assertIn("S = Q Kᵀ", self.part("step-name").text)
        self.assertGreater(len(self.part("parties").find_elements(By.CSS_SELECTOR, "line.waited")), 0)

    def test_each_step_has_a_name_and_its_source(self):
        self.open("one", of=1)
        self.assertEqual(self.part("step-name").text, "Q on the way to shared memory")
        self.assertFalse(self.part("source-part").is_displayed())
        tile = ["S = Q Kᵀ: K on the way, first half", "S = Q Kᵀ, first half", "S = Q Kᵀ: K on the way, second half", "S = Q Kᵀ, second half",
                "The first maximum", "O += P V: V on the way, first half", "O += P V, first half", "O += P V: V on the way, second half", "O += P V, second half"]
        for number, name in enumerate(tile, 2):
            self.scrub_to(number)
            self.assertEqual(self.part("step-name").text, name)
        self.scrub_to(5)
        self.assertIn("for (int d0 = 0; d0 < HeadDim; d0 += depth) {", self.part("source").text)
        self.assertNotIn("watch(", self.part("source").text)
        line = int(self.part("source-where").text.rpartition(" ")[2].rstrip(")"))
        source = (Path(__file__).parents[3] / "05_online_softmax" / "2_tiles.cu").read_text().splitlines()
        self.assertIn("watch_step(", source[line - 1])
        self.assertIn("columns 32–63", self.browser.execute_script("go(3); return document.querySelector('.says').textContent"))

    def test_who_makes_which_score(self):
        """03's threads have 8 rows and 4 columns: thread 17 the rows 1, 9, .. and the columns 1, 17, .."""
        self.open("tiling", of=None)
        self.assertIn("It makes 32 scores of a tile: 8 queries by 4 keys.", self.part("watch").text)
        self.assertIn("each of keys 0–63: a tile of scores.", self.part("says").text)
        self.browser.execute_script("const t = arguments[0]; t.value = 17; t.dispatchEvent(new Event('input'))", self.part("thread"))
        self.assertIn("Thread 17 of 128 makes 32 scores", self.part("owners-words").text)
        self.assertIn("8 × 4 = 32 multiply-adds of these 12. Shared memory holds a chunk of Q and K at a time: columns 0–31", self.part("owners-words").text)
        at = self.browser.execute_script("return [...arguments[0].querySelectorAll('.whole')].map((r) => [r.x, r.y].map((a) => a.baseVal.value))", self.part("owners"))
        cell = 320 / 64
        self.assertEqual({(round((x - 58) / cell), round((y - 58) / cell)) for x, y in at},
                         {(1 + 16 * n, 1 + 8 * m) for n in range(4) for m in range(8)})

    # --- The launch as a whole ---

    def launch(self, name: str):
        self.open(name, of=None)
        self.click("#view-launch")

    def tiles_done(self) -> int:
        return len(self.at(".launch-matrices .whole, .launch-matrices .partly, .launch-matrices .masked"))

    def test_the_launch_fills_the_score_matrix(self):
        """08: the block with three tiles comes first; the other one, with two, leaves a dotted one."""
        self.launch("early")
        self.assertFalse(self.at(".now-section")[0].is_displayed())
        self.assertEqual((self.where().split()[0], self.tiles_done()), ("0", 0))
        self.assertEqual(len(self.at('.launch-matrices rect.skipped')), 1)  # from the start
        done = []
        for tick in range(1, int(self.where().split()[2]) + 2):
            self.scrub_to(tick)
            done.append(self.tiles_done())
            self.assertIn(f"and {done[-1]} of 5 tiles.", self.part("launch-words").text)
        self.assertEqual((done, done[-1]), (sorted(done), 5))
        self.assertEqual(len(self.at('.launch-matrices rect.skipped')), 1)
        self.assertIn("The longest blocks start first", self.part("plan-words").text)
        self.assertIn("1 tile (dotted) no block ever touches", self.part("plan-words").text)
        self.assertIn("2 of 2 blocks are done, and 5 of 5 tiles.", self.part("launch-words").text)

    def test_the_tail_of_a_wave(self):
        self.launch("early")
        self.assertEqual(len(self.at(".gantt .idle")), 0)  # on one multiprocessor
        self.browser.execute_script("const p = arguments[0]; p.value = '2'; p.dispatchEvent(new Event('change'))", self.part("processors"))
        self.assertEqual(len(self.at(".gantt .idle")), 1)
        self.assertRegex(self.part("plan-words").text, r"For the last \d+ steps one multiprocessor or more has nothing left: that is the tail\.")
        self.assertIn("All blocks start at once", self.part("plan-words").text)
        self.assertNotIn("The longest blocks start first", self.part("plan-words").text)
        self.browser.execute_script("const p = arguments[0]; p.value = '4'; p.dispatchEvent(new Event('change'))", self.part("processors"))
        self.assertRegex(self.part("plan-words").text, r"2 multiprocessors get no block\. For the last \d steps one multiprocessor or more of the others")

    def test_from_the_launch_into_a_block(self):
        self.launch("early")
        for block, marks in [(0, ["true", "false"]), (1, ["false", "true"])]:
            self.click("#view-launch")
            self.at(f"[data-bar='{block}']")[0].click()
            self.assertTrue(self.at(".now-section")[0].is_displayed())
            self.assertEqual([radio.get_attribute("aria-checked") for radio in self.at('[role="radio"]')], marks)

    def test_the_launch_plays(self):
        self.launch("early")
        self.browser.execute_script("document.getElementById('speed').options[2].value = 5")
        self.at("#speed option")[2].click()
        self.click("#play")
        WebDriverWait(self.browser, 5).until(lambda _: "2 of 2 blocks are done" in self.part("launch-words").text)

    def test_who_adds_to_dq(self):
        self.launch("backward two")
        self.assertIn("A block owns the keys of its column: their dK and dV stay with it", self.part("plan-words").text)
        self.assertEqual([item.text for item in self.part("dq").find_elements(By.TAG_NAME, "li")],
                         ["queries 0–63: block 0", "queries 64–127: block 0", "queries 128–191: block 0 + block 1"])
        self.assertEqual(len(self.part("dq").find_elements(By.CSS_SELECTOR, ".added")), 0)
        self.click("#last")
        self.assertEqual(len(self.part("dq").find_elements(By.CSS_SELECTOR, ".added")), 4)

    def taken(self) -> list:
        return [item.text for item in self.part("taken").find_elements(By.TAG_NAME, "li")]

    def test_who_takes_which_tile_of_a_packed_sequence(self):
        """The 200 rows of the first one are two tiles of up to 192; no tile stands outside of the frames."""
        self.launch("packed")
        self.assertEqual(self.taken(), [
            "block 0: sequence 0, queries 192–199: keys 0–127, keys 128–199 (cut)",
            "block 1: sequence 0, queries 0–191: keys 0–127 (cut), keys 128–199 (cut)",
            "block 2: sequence 2, queries 0–56: keys 0–56 (cut)", "block 3: sequence 4, queries 0–15: keys 0–15 (cut)",
            "block 4: sequence 1, query 0: keys 0–7", "1 block more: nothing is left for it"])
        self.click("#last")
        inside = self.browser.execute_script(
            "const box = (r) => [r.x, r.y, r.width, r.height].map((each) => each.baseVal.value), within = (a, b) => a[0] > b[0] - 1.5 && a[1] > b[1] - 1.5 && "
            "a[0] + a[2] < b[0] + b[2] + 1.5 && a[1] + a[3] < b[1] + b[3] + 1.5, all = (name) => [...document.querySelectorAll('.launch-matrices ' + name)].map(box);"
            "const frames = all('.sequence'); return [frames.length, ...all(':is(.whole, .partly, .skipped)').map((tile) => frames.some((frame) => within(tile, frame)))]")
        self.assertEqual((inside[0], len(inside) - 1, set(inside[1:])), (4, 11, {True}))

    def test_who_takes_which_tile_of_a_block_mask(self):
        self.launch("blocks")
        self.assertEqual(self.taken(), ["block 0: queries 256–287: keys 0–127 (cut), keys 128–255 (cut), keys 256–287 (cut)",
                                        "block 1: queries 128–255: keys 0–127, keys 128–255 (cut)", "block 2: queries 0–127: keys 0–127 (cut)"])
        self.launch("early")
        self.assertFalse(self.part("taken-section").is_displayed())

    def test_two_launches_have_one_scale_of_time(self):
        """Without the early stop all take longer: the last bar of the left side ends later than that of the right one."""
        self.launch("two")
        ends = self.browser.execute_script("return [...document.querySelectorAll('.gantt')].map((g) => Math.max(...[...g.querySelectorAll('.bar')].map("
                                           "(b) => b.x.baseVal.value + b.width.baseVal.value)))")
        wide = self.browser.execute_script("return document.querySelector('.gantt').viewBox.baseVal.width")
        self.assertAlmostEqual(ends[0], wide, delta=1)
        self.assertLess(ends[1], ends[0])

    def test_letters_of_pictures_can_be_read_at_every_width(self):
        for width in (390, 1440):
            for name, selector in [("early launch", ".gantt text"), ("early", '[data-part="scores"] text'), ("early#embed", '[data-part="scores"] text')]:
                self.open(name.removesuffix(" launch"), width, of=None)
                if name.endswith(" launch"):
                    self.click("#view-launch")
                sizes = self.browser.execute_script("return [...document.querySelectorAll(arguments[0])].map((one) => parseFloat(getComputedStyle(one).fontSize) "
                                                    "* one.getScreenCTM().a || parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().b)", selector)
                self.assertGreaterEqual(min(map(abs, sizes)), 8 if "embed" in name else 10, (name, width))
        self.open("early", 1440, of=None)
        self.click("#view-launch")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        WebDriverWait(self.browser, 5).until(lambda _: self.browser.execute_script(  # drawn again
            "return document.querySelector('.gantt').viewBox.baseVal.width < 390"))

    # --- In the frame of a lesson ---

    def test_the_embedded_form_fits_its_frame(self):
        for name, shows in [("one", ".values"), ("early", ".values"), ("hopper", ".now-section")]:
            self.open(f"{name}#embed", 720, of=None)
            self.assertFalse(self.at("header")[0].is_displayed() or self.at(".bytes")[0].is_displayed())
            for selector in (".scores svg", shows, "#play", "[data-part=step-name]"):
                place = self.at(selector)[0]
                self.assertTrue(place.is_displayed(), selector)
                self.assertLess(place.rect["y"], 520, (name, selector))
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), 720)
            # as high as common/book/site/static/book.css makes the frame, without a scroll bar
            self.assertLessEqual(self.browser.execute_script("return document.body.scrollHeight"), 528, name)
        self.assertEqual(len(self.at(".watch")), 1)
        self.click("#more")
        self.assertTrue(self.at("header")[0].is_displayed() and self.at(".bytes")[0].is_displayed())

    def test_on_a_phone_the_embedded_form_is_a_still_with_a_link(self):
        self.open("early#embed", 360, of=None)
        self.assertFalse(self.at("#play")[0].is_displayed() or self.at(".values")[0].is_displayed())
        self.assertTrue(self.at(".scores svg")[0].is_displayed() and self.at(".watch")[0].is_displayed())
        link = self.at("#still")[0]
        self.assertEqual((link.get_attribute("href"), link.get_attribute("target")), (self.pages["early"], "_top"))
        self.assertLess(link.rect["y"] + link.rect["height"], 528)
        self.open("early", 360, of=None)
        self.assertFalse(self.at("#still")[0].is_displayed())

    # --- With the keyboard alone ---

    def tab_to(self, selector: str):
        for _ in range(60):
            self.press(Keys.TAB)
            if self.browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
        self.fail(f"{selector} cannot be reached")

    def test_the_keyboard_alone(self):
        self.open("early", of=None)
        self.tab_to("#view-launch")
        self.press(Keys.ENTER)
        self.assertTrue(self.at(".launch-section")[0].is_displayed())
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.where().split()[0], "2")
        self.tab_to("[data-bar='0']")
        self.tab_to("[data-bar='1']")
        self.press(Keys.ENTER)
        self.assertTrue(self.at(".now-section")[0].is_displayed())
        self.assertTrue(self.browser.switch_to.active_element.get_attribute("aria-checked"))
        before = self.where()
        self.press(Keys.ARROW_LEFT)  # among the blocks
        self.assertEqual([radio.get_attribute("aria-checked") for radio in self.at('[role="radio"]')], ["true", "false"])
        self.tab_to("[data-part=row], .scroll, summary")
        self.press(Keys.ESCAPE)
        self.browser.execute_script("document.activeElement.blur()")
        self.press(Keys.ARROW_RIGHT)
        self.assertNotEqual(self.where(), before)

    # --- Numbers ---

    def shown_by_engine(self, block: int, step: int, name: str, row: int) -> list:
        runs = self.recorded["rungs"][0]["launches"][0]["blocks"][block]["steps"][step]["watched"][name]
        return next(list(map(float, values)) for at, _, values in runs if at == row)

    def test_numbers_are_the_engines(self):
        """m, correction and l of a row after the first tile (step 6), after the second (15) and P of both tiles."""
        self.open("one")
        self.at('[role="radio"]')[1].click()
        self.browser.execute_script("const r = arguments[0]; r.value = 'q100'; r.dispatchEvent(new Event('change'))", self.part("row"))
        self.at('[data-part="tile-open"] summary')[0].click()
        for step, rows in [(5, 1), (9, 1), (14, 2)]:
            self.scrub_to(step + 1)
            last = 14 if step == 14 else 5
            lines = self.part("values").find_elements(By.CSS_SELECTOR, "tbody tr")
            self.assertEqual(len(lines), rows + 1)  # the last is the exact one
            cells = [number(cell.text) for cell in lines[rows - 1].find_elements(By.TAG_NAME, "td")]
            for got, name in zip(cells, ("m", "correction", "l")):
                (expected,) = self.shown_by_engine(1, last, name, 100)
                self.assertAlmostEqual(got, expected, delta=1e-3 * abs(expected) + 1e-9)
            line = self.part("tile").find_elements(By.CSS_SELECTOR, "tbody tr")[100 - 64]
            texts = self.browser.execute_script("return [...arguments[0].querySelectorAll('td')].map((cell) => cell.textContent)", line)
            p = self.shown_by_engine(1, last, "P", 100)
            seen = 37 if last == 14 else 64  # keys 64 to 100, and the first tile whole
            self.assertEqual(set(texts[seen:]) - {"·"}, set())
            for got, expected in zip(texts[:seen], p):
                self.assertAlmostEqual(number(got), expected, delta=1e-3 * abs(expected) + 1e-9)

    def test_o_is_divided_by_its_own_l(self):
        """After the second tile's l (step 15) and before its O (19), the row is the mean over the first tile, as before."""
        self.open("one", of=1)
        found = []
        for step in (14, 15, 18, 19):
            self.scrub_to(step)
            found.append(self.part("difference-O").text.partition("; "))
        self.assertEqual([words for words, *_ in found], ["O / l so far", *["O / l before this tile, which l has already and O lacks still"] * 2, "O / l so far"])
        self.assertEqual(len({number for *_, number in found[:3]}), 1)
        self.assertNotEqual(found[2][2], found[3][2])

    def test_the_final_o_is_the_references(self):
        self.open("one")
        for step, words in [(19, "O / l so far"), (20, "O as written")]:
            self.scrub_to(step)
            self.assertIn(f"{words}; it differs from the exact O by", self.part("difference-O").text)
            self.assertLess(number(self.part("difference-O").text.split(" by ")[1].split()[0]), 2e-3)
        made, exact = map(number, re.findall(r"is (\S+?)[.;](?: |$)", self.part("lse").text))
        self.assertAlmostEqual(made, exact, delta=2e-3)

    def test_the_row_chosen_first_is_one_of_the_block_shown(self):
        """The block writes rows 0 to 31; the softmax before it, whose steps are shown as well, has all 64."""
        self.open("naive")
        self.assertEqual(self.part("row").get_attribute("value"), "q16")
        self.assertEqual([option.text for option in self.part("launch").find_elements(By.TAG_NAME, "option")],
                         ["1: scores", "2: softmax", "3: output"])

    def test_what_corrects_nothing_and_writes_no_lse_has_no_words_for_them(self):
        self.open("naive")
        self.click("#last")
        self.assertEqual([cell.text for cell in self.part("values").find_elements(By.CSS_SELECTOR, "th[scope=col]")], ["step", "m", "l"])

    def test_a_chosen_tile_stays_until_the_walk_is_followed_again(self):
        self.open("one")
        self.click("#last")
        self.at('[data-tile="0"]')[0].click()
        self.assertIn("keys 0–63", self.part("tile").find_element(By.TAG_NAME, "p").text)
        self.part("follow").click()
        self.assertIn("keys 64–127", self.part("tile").find_element(By.TAG_NAME, "p").text)

    def test_gradients(self):
        self.open("backward")
        self.click("#last")
        for name in ("dV", "dK"):
            self.assertLess(number(self.part(f"difference-{name}").text.split(" by ")[1].split()[0]), 5e-3)

    def test_chapter_01_by_then(self):
        """The block of the page has 64 rows, and at its end all 128 keys: half of the scores."""
        self.open("one")
        self.assertIn("0% of all", self.part("bytes").text)
        self.click("#last")
        self.assertIn("50.0% of all", self.part("bytes").text)
        through_l2 = self.browser.execute_script("return bytes(arguments[0])", walk.work(self.naive)[0])
        self.assertIn(f"Chapter 01 moves {through_l2} through L2", self.part("bytes").text)

    def test_blocks_go_to_the_multiprocessor_that_is_free_first(self):
        self.open("one")
        plan = self.browser.execute_script("return schedule([3, 1, 1, 2, 1], 2).map(({ on, from }) => [on, from])")
        self.assertEqual(plan, [[0, 0], [1, 0], [1, 1], [1, 2], [0, 3]])

    # --- Warps that wait for one another at mbarriers ---

    def hopper_steps(self) -> list:
        return self.hopper["rungs"][0]["launches"][0]["blocks"][0]["steps"]

    def choose_row(self, row: int):
        self.browser.execute_script("const r = arguments[0]; r.value = arguments[1]; r.dispatchEvent(new Event('change'))", self.part("row"), f"q{row}")

    def test_numbers_of_parties_are_the_engines(self):
        """Row 100 belongs to warpgroup 1; the first block of 64 rows on the list, 192 to 255, to warpgroup 0."""
        self.open("hopper")
        for row, party in [(100, [4, 7]), (150, [8, 11]), (200, [0, 3])]:
            self.choose_row(row)
            shown = [(number, {name: [values for at, _, values in step["watched"][name] if at == row] for name in ("m base 2", "-l", "O")})
                     for number, step in enumerate(self.hopper_steps()) if step.get("by") == party and "-l" in step.get("watched", {})]
            shown = [(number, {name: list(map(float, values[0])) for name, values in found.items()}) for number, found in shown if all(found.values())]
            number_of_step, expected = shown[-1]
            self.scrub_to(number_of_step + 1)
            line = self.part("values").find_elements(By.CSS_SELECTOR, 'tr[aria-current="step"]')[0]
            m, _, l, lse = (cell.text for cell in line.find_elements(By.TAG_NAME, "td"))
            self.assertAlmostEqual(number(m), expected["m base 2"][0], delta=1e-3 * abs(expected["m base 2"][0]))
            self.assertAlmostEqual(number(l), -expected["-l"][0], delta=1e-3 * abs(expected["-l"][0]))
            exact = float(self.hopper["rungs"][0]["results"]["LSE"]["expected"][row])
            self.assertAlmostEqual(number(lse), exact, delta=2e-3)
            self.assertLess(number(self.part("difference-O").text.split(" by ")[1].split()[0]), 2e-3)
            self.click("#last")
            self.assertIn("O as written; it differs from the exact O by", self.part("difference-O").text)
            self.assertLess(number(self.part("difference-O").text.split(" by ")[1].split()[0]), 2e-3)

    def test_who_waits_for_whom(self):
        self.open("hopper")
        self.assertEqual([label.text for label in self.part("parties-names").find_elements(By.TAG_NAME, "li")],
                         ["The block", "Warpgroup 0", "Warpgroup 1", "Warpgroup 2", "Warp 12", "Warp 13"])
        steps = self.hopper_steps()
        (first, _) = [number for number, step in enumerate(steps) if step.get("by") == [13, 13]]
        self.scrub_to(first + 1)
        self.assertIn("Warp 13 waits at o_full[0]; then it writes rows 192–255 of O", self.part("moves").text)
        came = [f"warpgroup {steps[number]['by'][0] // 4} in step {number + 1}" for number in steps[first]["after"][0]["steps"]]
        self.assertIn(f"to which came {came[0]}, {came[1]} and {came[2]}.", self.part("parties-words").text)
        self.assertEqual(len(self.part("parties").find_elements(By.CSS_SELECTOR, "line.waited")), 3)
        self.assertEqual(len(self.part("parties").find_elements(By.CSS_SELECTOR, "g")), len(steps))
        self.open("one")
        self.assertFalse(self.part("parties-section").is_displayed() or self.part("places-section").is_displayed())

    def test_places_in_shared_memory(self):
        self.open("hopper")

        def places() -> dict:
            return {item.find_element(By.TAG_NAME, "strong").text: item.text.split("\n")[1:] for item in self.part("places").find_elements(By.TAG_NAME, "li")}

        self.assertEqual(set(map(tuple, places().values())), {("empty",)})
        steps = self.hopper_steps()
        load = next(number for number, step in enumerate(steps) if "fills" in step)
        self.scrub_to(load + 1)
        self.assertEqual(places()["q[0]"], ["rows 192–255 of Q, on their way"])
        self.assertEqual(list(places()), ["q[0]", "q[1]", *(f"{name}[{i}]" for name in "kv" for i in range(4))])
        multiplies = next(number for number, step in enumerate(steps) if "uses" in step)
        self.scrub_to(multiplies + 1)
        self.assertEqual(places()["k[0]"], ["rows 0–127 of K", "in use by warpgroup 0"])
        self.assertEqual(places()["v[0]"], ["rows 0–127 of V, on their way"])
        self.click("#last")
        self.assertEqual(places()["q[1]"], ["rows 0–191 of Q; written over by threads"])

    def test_eight_and_ten_on_one_clock(self):
        self.open("eight and ten")
        self.click("#last")
        self.assertFalse(self.part("parties-section", 0).is_displayed())
        self.assertTrue(self.part("parties-section", 1).is_displayed())
        for side in (0, 1):
            self.assertLess(number(self.part("difference-O", side).text.split(" by ")[1].split()[0]), 2e-3)

    # --- Two on one clock ---

    def steps(self) -> list:
        return [int(self.part("says", side).text.split()[1]) for side in (0, 1)]

    def test_one_clock_in_steps(self):
        self.open("two")
        self.assertEqual(self.steps(), [1, 1])
        self.click("#forward")
        self.assertEqual(self.steps(), [2, 2])
        self.click("#last")
        ends = [int(self.part("says", side).text.split()[3].rstrip(".")) for side in (0, 1)]
        self.assertEqual(self.steps(), ends)
        self.assertGreater(ends[0], ends[1])  # earlystop leaves out the last tile of the first block

    def test_one_clock_in_bytes(self):
        self.open("two")
        self.browser.execute_script("const u = document.getElementById('unit'); u.value = 'bytes'; u.dispatchEvent(new Event('change'))")
        for _ in range(4):
            self.click("#forward")
        # Each stands at the last step that it has begun when so many bytes had been asked for.
        begun = self.browser.execute_script("return [clock.ticks[clock.at], ...sides.flatMap((side) => [side.work(0, side.step), "
                                            "side.step + 1 < side.steps().length ? side.work(0, side.step + 1) : null])]")
        for before, after in (begun[1:3], begun[3:5]):
            self.assertLessEqual(before, begun[0])
            self.assertTrue(after is None or after > begun[0])

    def test_all_launches_of_a_step_that_materialises(self):
        """03's output block 0 rests on the softmax of its rows, and that on the blocks that made their scores."""
        self.open("materialised")
        words = self.browser.execute_script("return [...arguments[0].querySelectorAll('li')].map((item) => item.textContent)", self.part("steps"))
        launches = [int(line.split()[1].rstrip(",")) for line in words]
        self.assertEqual((launches, set(launches)), (sorted(launches), {1, 2, 3}))
        self.assertEqual({line.split()[3] for line in words if line.startswith("Launch 1")}, {"0:", "1:"})  # its rows, both tiles of keys
        for line in words:
            self.assertRegex(line, r"^Launch \d, block \d+: the block \w")
        tiles = self.browser.execute_script("return sides[0].block().tiles.map((tile) => [sides[0].steps()[tile.step].from, ...tile.keys])")
        self.assertEqual(tiles, [["Launch 1, block 0:", 0, 63], ["Launch 1, block 1:", 64, 127],
                                 *(["Launch 3, block 0:", first, first + 31] for first in range(0, 128, 32))])
        self.part("all-launches").click()
        self.assertRegex(self.part("says").text, r"^Step 1 of \d+\. The block ")

    # --- For everybody ---

    def test_axe_finds_nothing_serious(self):
        some = ("one", "packed launch", "hopper")
        for name in (*some, "two", "backward", "tiling", "backward two launch", "early launch", "early#embed") if EVERY else some:
            self.open(name.removesuffix(" launch"), of=None)
            if name.endswith(" launch"):
                self.click("#view-launch")
            if "embed" not in name:
                self.scrub_to(4)
            if name == "backward":  # whose tables of numbers are the smallest
                self.browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
            for scheme, rules in [("light", {}), ("dark", {"runOnly": ["color-contrast"]})]:
                self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
                found = Axe().run(self.browser, options=rules)["violations"]
                self.assertEqual([(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")], [],
                                 f"{name}, {scheme}")

    def test_the_layout_holds(self):
        some = ["one", "two", "hopper", "early launch", "packed launch"]
        for name in [*self.pages, "early launch", "backward two launch", "packed launch"] if EVERY else some:
            for width in (360, 1024, 1600) if EVERY else (360, 1600):
                self.open(name.removesuffix(" launch"), width, of=None)
                if name.endswith(" launch"):
                    self.click("#view-launch")
                self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), width, name)
                # No section lies over another.
                boxes = self.browser.execute_script("return [...document.querySelectorAll('section')].map((s) => s.getBoundingClientRect())"
                                                    ".filter((b) => b.height).map((b) => [b.left, b.top, b.right, b.bottom])")
                for i, a in enumerate(boxes):
                    for b in boxes[i + 1:]:
                        self.assertFalse(min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1, (name, width, a, b))

    def test_the_table_of_bytes_is_not_cut(self):
        for width in (390, 1280):
            self.open("one", width)
            self.click("#last")
            wide, room = self.browser.execute_script("const table = arguments[0].querySelector('table'), box = table.parentElement;"
                                                     "return [table.scrollWidth, box.clientWidth]", self.part("bytes"))
            self.assertLessEqual(wide, room, width)


if __name__ == "__main__":
    if missing():
        print(f"SKIPPED, the page of a walk was not looked at in a browser: {missing()}")
        sys.exit(MISSING)
    unittest.main(verbosity=2)
