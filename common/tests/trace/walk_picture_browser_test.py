"""The picture on the first page in a real browser: it moves, what it says can be read, and it stands still for who wants that.

Skipped, with a line that says why, where there is no browser (see walk_browser_test.py)."""

import sys
import unittest

import walk_browser_test as browser_test
from walk_picture_test import FILE

SECONDS, STEP = 20, 0.2
# Of the words in the picture at some second: how much of them is seen, from 0 to 1.
SEEN = """
const when = arguments[0], seen = {};
for (const each of document.getAnimations()) { each.pause(); each.currentTime = 1000 * when; }
for (const text of document.querySelectorAll('text')) {
  let share = 1;
  for (let up = text; up && up.tagName !== 'svg'; up = up.parentElement) share *= Number(getComputedStyle(up).opacity);
  const words = `${text.getAttribute('y')} ${text.textContent}`;
  seen[words] = Math.max(seen[words] || 0, share);
}
return seen;
"""


class InABrowser(unittest.TestCase):
    def opened(self, *flags: str):
        options = browser_test.webdriver.ChromeOptions()
        options.binary_location = browser_test.CHROMIUM
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *flags):
            options.add_argument(flag)
        browser = browser_test.webdriver.Chrome(options=options, service=browser_test.webdriver.ChromeService(browser_test.DRIVER))
        self.addCleanup(browser.quit)
        browser.get(FILE.as_uri())
        return browser

    @staticmethod
    def words(seen: dict) -> str:
        return " ".join(words.partition(" ")[2] for words, share in seen.items() if share > 0.9)

    def test_it_moves_and_one_sentence_at_a_time_can_be_read(self):
        browser = self.opened()
        self.assertTrue(browser.execute_script("return document.getAnimations().every(each => each.playState === 'running')"))
        for second, said, unsaid in [(0.5, "A tile of K comes in", "m is the largest"), (6.5, "× 0.227", "÷"), (12.5, "× 0.675", "÷"),
                                     (16.5, "The mask hides this tile", "×"), (19, "÷ 5.15", "The mask hides")]:
            words = self.words(browser.execute_script(SEEN, second))
            self.assertIn(said, words, second)
            self.assertNotIn(unsaid, words.replace("256 × 256", ""), second)
        said_at = {}
        for number in range(int(SECONDS / STEP)):
            seen = browser.execute_script(SEEN, number * STEP)
            sentences = [words for words, share in seen.items() if words.startswith("47 ") and share > 0.1]
            self.assertLessEqual(len(sentences), 1, (number * STEP, sentences))
            for words in sentences:
                said_at[words] = said_at.get(words, 0) + STEP
        self.assertGreaterEqual(len(said_at), 7)
        self.assertGreater(min(said_at.values()), 1.2)  # seconds

    def test_it_stands_still_where_no_motion_is_wanted_and_explains(self):
        browser = self.opened("--force-prefers-reduced-motion")
        self.assertEqual(browser.execute_script("return document.getAnimations().length"), 0)
        words = self.words(browser.execute_script(SEEN, 0))
        for part in ("A score above m: m rises from 3.92 to 5.40. l", "and O, made with the old m, are × 0.227.", "m = 5.40", "l = 1.32"):
            self.assertIn(part, words)


if __name__ == "__main__":
    if browser_test.missing():
        print(f"SKIPPED, the picture that moves was not looked at in a browser: {browser_test.missing()}")
        sys.exit(browser_test.MISSING)
    unittest.main(verbosity=2)
