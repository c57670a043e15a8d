"""The archive for Gradescope, laid out and started as there. Its scripts are run as they are, below another directory; apt-get and
cmake stand in for themselves and do nothing, so that nothing can be graded but what was not handed in."""

import json
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tools import course
from tools.machine import ROOT
from tools.teaching import hand_out, write_archive
from tools.teaching.coursefile import read_plan

PLAN = {"title": "Spring", "late": {"percent_a_day": 10, "days": 3},
        "weeks": [{"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01.scores", "05.rescale"]}]}


class Gradescope(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.place.chmod(0o755)
        for name in ("source", "submission", "results", "bin"):
            (self.place / name).mkdir()
        for name in ("apt-get", "cmake"):
            path = self.place / "bin" / name
            path.write_text("#!/bin/sh\nmkdir -p build/grading/0/build build\n")
            path.chmod(0o755)

    def run_script(self, name: str) -> str:
        path = self.place / "source" / name
        path.write_text(path.read_text().replace("/autograder", str(self.place)))
        done = subprocess.run([path], env={**os.environ, "PATH": f"{self.place}/bin:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_from_the_archive_to_the_results(self):
        plan = self.place / "course.json"
        plan.write_text(json.dumps(PLAN))
        whole = course.load(ROOT)
        made = hand_out(whole, read_plan(plan, whole), plan.read_bytes())
        write_archive(self.place / "a.zip", made.autograder)
        with zipfile.ZipFile(self.place / "a.zip") as archive:
            for entry in archive.infolist():
                archive.extract(entry, self.place / "source")
                (self.place / "source" / entry.filename).chmod(entry.external_attr >> 16)
        (self.place / "submission/01_naive").mkdir()
        (self.place / "submission/01_naive/attention.cu").write_bytes(made.student["01_naive/attention.cu"])
        (self.place / "submission_metadata.json").write_text('{"created_at": "2027-02-09T10:00:00.000000-08:00"}')

        self.run_script("setup.sh")
        said = self.run_script("run_autograder")
        self.assertNotIn("not known when", said)
        results = json.loads((self.place / "results/results.json").read_text())
        self.assertEqual([(test["number"], test["output"].splitlines()[0]) for test in results["tests"]],
                         [("01.scores", "not attempted"), ("05.rescale", "not handed in")])
        self.assertTrue(results["extra_data"]["sandbox"]["runs"])


if __name__ == "__main__":
    unittest.main()
