"""Near-identical solutions of a class, as copydetect sees them."""

import unittest

from tools import course
from tools.grading import similarity

# Two ways to write 05.rescale.
ADA = """      const float alpha = expf(m - m_safe);
      const float correction = alpha;
      float partial = 0.0f;
      m = m_new;
      for (int key = lane; key < (tile_end + 31) / 32 * 32; key += 32) {
        float p = 0.0f;
        if (key < visible) p = expf(s_row[key] - m_safe);
        s_row[key] = p;
        partial += p;
      }
      const float total = warp_sum(partial);
      l = alpha * l + total;"""
BOB = """      float correction = 1.0f;
      if (m != -INFINITY) {
        correction = expf(m - m_new);
      }
      m = m_new;
      float mine = 0;
      for (int step = 0; step < tile_end; step += 32) {
        const int j = step + lane;
        const float probability = j < visible ? expf(s_row[j] - m_safe) : 0.f;
        mine = mine + probability;
        s_row[j] = probability;
      }
      mine = warp_sum(mine);
      l *= correction;
      l += mine;"""


class Alike(unittest.TestCase):
    def test_copies_are_named_and_others_are_not(self):
        """Six students have written ADA and BOB, the workbook's solution twice, and copies of the first two."""
        if not (similarity.HOME / "venv/installed.txt").exists():
            self.skipTest("NOT RUN: needs copydetect, which ./workbook grade installs when it compares a class")
        there = course.load()
        ours = there.written(there.select(["05.rescale"])[0])
        copied = ADA.replace("partial", "sum_of_mine").replace("alpha",
                                                               "factor").replace("  float p", "  // P\n  float p")
        near = BOB.replace("mine = mine + probability", "mine += probability")
        self.assertTrue(copied != ADA and near != BOB)
        texts = {"ada": ADA, "bob": BOB, "cid": ours, "dan": ours + "\n// mine", "eve": copied, "fay": near}
        found, without = similarity.alike({name: {"05.rescale": text, "01.scores": "short"}
                                           for name, text in texts.items()}, there)
        self.assertEqual(([pair[:3] for pair in found], without),
                         ([("ada", "eve", "05.rescale"), ("bob", "fay", "05.rescale")], ""))


if __name__ == "__main__":
    unittest.main()
