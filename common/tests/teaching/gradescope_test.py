"""The archive for Gradescope, laid out and started as there. Its scripts are run as they are, below another directory; apt-get does
nothing, and what cmake builds finds everything right. So nothing can be graded but what was not handed in."""

import json
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tools import course
from tools.base import ROOT, file_trees
from tools.course.plan import read_plan
from tools.handout import hand_out

PLAN = {"title": "Spring", "late": {"percent_a_day": 10, "days": 3},
        "weeks": [{"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01.scores", "05.rescale"]}]}


# It makes what grading needs of a build: programs that judge, one that starts kernels, and a compiler that makes nothing.
CMAKE = """#!/bin/sh
here=$(dirname "$0")
judge=build/cpu/common/harness/judge
mkdir -p $judge build/cpu/references
touch $judge/kernel_host_plain.txt $judge/kernel_host_traced.txt
cp "$here"/confine $judge/confine
separator='['
for file in 01_naive/attention 05_online_softmax/1_online; do
  chapter=${file%%/*}
  mkdir -p build/cpu/$chapter
  cp "$here"/cmake.program build/cpu/$chapter/${chapter}_tests
  cp "$here"/cmake.program build/cpu/$chapter/${chapter}_traced_tests
  for traced in '' _traced; do
    echo "$separator{\\"directory\\": \\"$PWD/build/cpu\\", \\"file\\": \\"$PWD/$file.cu\\", \\"command\\": \\"$here/compiler -o $chapter${traced}_kernels.dir/x.o -c x\\"}"
    separator=,
  done
done > build/cpu/compile_commands.json
echo ']' >> build/cpu/compile_commands.json
"""
PROGRAM = """#!/usr/bin/python3
import sys
(wanted,) = [flag for flag in sys.argv if "filter" in flag]
print(f"[  PASSED  ] {len(wanted.split(':'))} tests.")
"""
COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo x > "$2"
"""


class Gradescope(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()  # not below this tree, which the sandbox's user may not be allowed to enter
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.place.chmod(0o755)
        for name in ("source", "submission", "results", "bin"):
            (self.place / name).mkdir()
        for name, text in {"apt-get": "#!/bin/sh\n", "cmake": CMAKE, "cmake.program": PROGRAM, "compiler": COMPILER,
                           "confine": "#!/bin/sh\necho user root namespaces limits calls\n"}.items():
            path = self.place / "bin" / name
            path.write_text(text)
            path.chmod(0o755)

    def run_script(self, name: str, status: int = 0) -> str:
        path = self.place / "source" / name
        path.write_text(path.read_text().replace("/autograder", str(self.place)))
        done = subprocess.run([path], env={**os.environ, "PATH": f"{self.place}/bin:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_from_the_archive_to_the_results(self):
        plan = self.place / "course.json"
        plan.write_text(json.dumps(PLAN))
        whole = course.load(ROOT)
        made = hand_out(whole, read_plan(plan, whole), plan.read_bytes())
        file_trees.write_archive(self.place / "a.zip", made.autograder)
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

        (self.place / "bin/cmake.program").write_text("#!/bin/sh\nexit 1\n")  # on a machine where the solution itself is not right
        self.assertIn("nothing can be graded here: the workbook's own solution of 01.scores", self.run_script("run_autograder", status=1))
        results = json.loads((self.place / "results/results.json").read_text())
        self.assertIn("not graded: the grader failed: nothing can be graded here", results["output"])
        self.assertEqual({test["extra_data"]["verdict"] for test in results["tests"]}, {"not graded"})


if __name__ == "__main__":
    unittest.main()
