"""The archive for Gradescope, laid out and started as its Dockerfile does, which is as there. Its scripts are run as they are, below
another directory; apt-get does nothing, and what cmake builds finds everything right. So nothing can be graded but what was not
handed in."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from concurrent import futures
from pathlib import Path

from tools import course
from tools.base import ROOT, file_trees
from tools.base.build import OF_A_COMPILER, cores
from tools.course.plan import read_plan
from tools.grading import one_submission
from tools.handout import gradescope, hand_out

PLAN = {"title": "Spring", "late": {"percent_a_day": 10, "days": 3},
        "weeks": [{"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01.scores", "05.rescale"]}]}


# It makes what grading needs of a build: programs that judge, one that starts kernels, and a compiler that makes nothing.
CMAKE = """#!/bin/sh
here=$(dirname "$0")
judge=build/cpu/common/harness/judge
mkdir -p $judge build/cpu/references
touch $judge/kernel_host_plain.txt $judge/kernel_host_traced.txt
cp "$here"/confine $judge/confine
g++ -std=c++20 -static -o $judge/probe common/harness/judge/probe.cc
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
PYTHON = f"""#!/bin/sh
if [ "$1 $2" = '-m pip' ]; then echo "$@"; else exec {sys.executable} "$@"; fi
"""
# Where it runs there is nothing else, so no shell.
COMPILER = """#include <cstdio>
#include <cstring>
int main(int count, char** words) {
  for (int i = 1; i + 1 < count; i++)
    if (std::strcmp(words[i], "-o") == 0) std::fputs("x", std::fopen(words[i + 1], "w"));
}
"""


class InItsPlaces(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()  # not below this tree, which the sandbox's user may not be allowed to enter
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.place.chmod(0o755)
        for name in ("source", "bin"):
            (self.place / name).mkdir()
        for name, text in {"apt-get": "#!/bin/sh\necho apt-get \"$@\"\n", "python3": PYTHON, "cmake": CMAKE, "cmake.program": PROGRAM,
                           "confine": "#!/bin/sh\necho user root namespaces limits calls\n"}.items():
            path = self.place / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        subprocess.run(["g++", "-static", "-x", "c++", "-o", self.place / "bin/compiler", "-"], input=COMPILER, text=True, check=True)
        self.on("ubuntu", "24.04")

    def on(self, id: str, version: str) -> None:
        (self.place / "os-release").write_text(f'ID={id}\nVERSION_ID="{version}"\nPRETTY_NAME="{id.title()} {version}"\n')

    def here(self, text: str) -> str:
        for there, here in (("/autograder", ""), ("/etc/os-release", "/os-release"), ("/usr/local/bin", "/bin")):
            text = re.sub(rf"(?<![\w/]){there}\b", f"{self.place}{here}", text)
        return text

    def lay_out(self, tree: file_trees.FileTree) -> None:
        file_trees.write_archive(self.place / "a.zip", tree)
        with zipfile.ZipFile(self.place / "a.zip") as archive:
            for entry in archive.infolist():
                archive.extract(entry, self.place / "source")
                (self.place / "source" / entry.filename).chmod(entry.external_attr >> 16)
        for name in ("assignment.sh", "setup.sh", "run_autograder"):
            path = self.place / "source" / name
            path.write_text(self.here(path.read_text()))

    def run_as_there(self, command: str, status: int = 0) -> str:
        done = subprocess.run(["sh", "-c", self.here(command)], env={**os.environ, "PATH": f"{self.place}/bin:{os.environ['PATH']}"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def small_archive(self) -> file_trees.FileTree:
        """With a workbook that says what it is asked for."""
        whole = course.load(ROOT)
        plan = self.place / "course.json"
        plan.write_text(json.dumps(PLAN))
        return gradescope.archive(read_plan(plan, whole), {"workbook": b"#!/bin/sh\necho workbook: \"$@\"\n", "course.json": b"{}",
                                                           "01_naive/attention.cu": b"", "common/course/exercises.json": b"{}"})


class FromTheArchive(InItsPlaces):
    def test_from_the_archive_to_the_results(self):
        plan = self.place / "course.json"
        plan.write_text(json.dumps(PLAN))
        whole = course.load(ROOT)
        made = hand_out(whole, read_plan(plan, whole), {"course.json": plan.read_bytes()})
        self.lay_out(made.autograder)
        dockerfile = made.autograder["Dockerfile"].decode()
        for step in re.findall(r"^RUN (.*)", dockerfile, re.M):
            self.run_as_there(step)
        (grade,) = json.loads(re.findall(r"^CMD (.*)", dockerfile, re.M)[0])
        (self.place / "submission/01_naive").mkdir()
        (self.place / "submission/01_naive/attention.cu").write_bytes(made.student["01_naive/attention.cu"])
        (self.place / "submission_metadata.json").write_text('{"created_at": "2027-02-09T10:00:00.000000-08:00"}')

        said = self.run_as_there(grade)
        self.assertNotIn("not known when", said)
        results = json.loads((self.place / "results/results.json").read_text())
        self.assertEqual([(test["number"], test["output"].splitlines()[0]) for test in results["tests"]],
                         [("01.scores", "not attempted"), ("05.rescale", "not handed in")])
        self.assertTrue(results["extra_data"]["sandbox"]["runs"])

        (self.place / "bin/cmake.program").write_text("#!/bin/sh\nexit 1\n")  # on a machine where the solution itself is not right
        self.assertIn("nothing can be graded here: the workbook's own solution of 01.scores", self.run_as_there(grade, status=1))
        results = json.loads((self.place / "results/results.json").read_text())
        self.assertIn("not graded: the grader failed: nothing can be graded here", results["output"])
        self.assertEqual({test["extra_data"]["verdict"] for test in results["tests"]}, {"not graded"})


class Compilers(unittest.TestCase):
    """Of what setup.sh builds: the engine, and what judges, which are in every exercise's build."""

    def test_each_has_the_memory_that_it_takes(self):
        # No cache: what it has, no compiler makes.
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_COMPILER_LAUNCHER")} | {"CCACHE_DISABLE": "1"}
        with tempfile.TemporaryDirectory() as build:
            subprocess.run(["cmake", "--preset", "cpu", "-B", build, *one_submission.OPTIONS], cwd=ROOT, env=environment,
                           capture_output=True, check=True)
            told = subprocess.run(["ninja", "-C", build, "-t", "commands", "01_naive_tests", "kernel_host_plain", "kernel_host_traced"],
                                  capture_output=True, text=True, check=True).stdout
            compiled = [line for line in told.splitlines() if " -c " in line]
            self.assertGreater(len(compiled), 20)
            with futures.ThreadPoolExecutor(cores()) as pool:
                for line, (status, most) in zip(compiled, pool.map(lambda line: self.run_one(line, build, environment), compiled), strict=True):
                    with self.subTest(file=line.rpartition(" ")[2]):
                        self.assertEqual(status, 0)
                        self.assertLess(most, OF_A_COMPILER)

    def run_one(self, line: str, place: str, environment: dict) -> "tuple[int, int]":
        """(its status, the most bytes that it or what it starts has had)"""
        process = subprocess.Popen(line, shell=True, cwd=place, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        return status, usage.ru_maxrss * 1024


class Scripts(InItsPlaces):
    def test_what_is_installed_where(self):
        self.lay_out(self.small_archive())
        for version, tools, others, pip in (("22.04", {"g++-12", "python3-pip"}, {"g++", "cmake"}, True),
                                            ("24.04", {"g++", "cmake"}, {"g++-12", "python3-pip"}, False),
                                            ("26.04", {"g++", "cmake"}, {"g++-12", "python3-pip"}, False)):
            with self.subTest(version=version):
                self.on("ubuntu", version)
                said = self.run_as_there("bash /autograder/source/setup.sh")
                (installed,) = re.findall(r"^apt-get install (.*)", said, re.M)
                self.assertLessEqual({"ninja-build", "bubblewrap", "libseccomp-dev", "libgtest-dev", *tools}, set(installed.split()))
                self.assertFalse(others & set(installed.split()))
                self.assertEqual("-m pip install cmake>=3.25" in said, pip)
                self.assertEqual(said.splitlines()[-1], "workbook: grade --prepare --course course.json 01.scores 05.rescale")
                self.assertEqual((self.place / "bin/g++").is_symlink(), pip)
                for name in ("g++", "gcc"):
                    (self.place / "bin" / name).unlink(missing_ok=True)

    def test_other_systems_are_refused_in_a_line(self):
        self.lay_out(self.small_archive())
        for id, version in (("ubuntu", "20.04"), ("ubuntu", "18.04"), ("debian", "12"), ("fedora", "38"), ("rocky", "9.3")):
            with self.subTest(id=id, version=version):
                self.on(id, version)
                self.assertEqual(self.run_as_there("bash /autograder/source/setup.sh", status=1),
                                 f"The base image is {id.title()} {version}. Choose Ubuntu, 22.04 or later, and press Update Autograder.\n")

    def test_one_that_does_not_install_ends_there(self):
        self.lay_out(self.small_archive())
        (self.place / "bin/apt-get").write_text("#!/bin/sh\n[ $1 = update ]\n")
        self.assertEqual(self.run_as_there("bash /autograder/source/setup.sh", status=1), "")

    def test_what_is_graded_with(self):
        self.lay_out(self.small_archive())
        self.assertEqual(self.run_as_there("/autograder/source/run_autograder"),
                         f"workbook: grade {self.place}/submission --out {self.place}/results/results.json "
                         "--course course.json 01.scores 05.rescale\n")


if __name__ == "__main__":
    unittest.main()
