"""Graded performance: what the times and results of a run mean, and kernels that cheat. On a GPU the times are real:

    PYTHONPATH=../.. python3 -B -m unittest -v speed_test.OnAGpu

Nothing stands between markers here but the first cheat's line: the others need host code, which is refused before,
and must be caught without that, too."""

import os
import unittest
from dataclasses import replace
from unittest import mock

from workbenches import a_workbench

from tools import course
from tools.base import Failure, cuda
from tools.course import Verdict
from tools.grading import grade, one_submission, sandbox, speed
from tools.grading.submission import Submission

RUN = "void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {\n"
BEGIN = "    // exercise pipeline: "


def behind(text: str, where: str, more: str) -> str:
    assert text.count(where) == 1, where
    return text.replace(where, where + more)


def skips(text: str, longest: int) -> str:
    """Half of the keys, where there are more than a test of the suite has."""
    line = next(line for line in text.splitlines(keepends=True) if line.startswith(BEGIN))
    return behind(text, line, f"    if (p.seq_k > {longest} && j0 >= p.seq_k / 2) break;\n")


def caches(text: str) -> str:
    return behind(text, RUN, "  static const ForwardArgs first = args;\n  if (args.o != first.o) {\n"
                  "    check(cudaMemcpyAsync(args.o, first.o, 2 * p.q_size(), cudaMemcpyDeviceToDevice, stream));\n"
                  "    check(cudaMemcpyAsync(args.lse, first.lse, 4 * p.lse_size(), cudaMemcpyDeviceToDevice, "
                  "stream));\n"
                  "    return;\n  }\n")


def aside(text: str) -> str:
    return behind(text, RUN, "  static cudaStream_t side = nullptr;\n"
                  "  if (!side) check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));\n  stream = side;\n")


def waits(text: str) -> str:
    """Right, but each tile is there before the one before it is computed on."""
    return text.replace("      cp_async_commit();\n    }\n    // end",
                        "      cp_async_commit();\n      cp_async_wait<0>();\n    }\n    // end")


def early(text: str, answers: str) -> str:
    """Code that runs before main, in the place of the host."""
    return "#include <sys/socket.h>\n#include <unistd.h>\n#include <cstdio>\n#include <vector>\n" + text + """
struct Early {
  struct Ready { unsigned lse; char refused[256]; };
  struct Timed { double device_ms, stream_ms; unsigned long long digest[2]; char failed[256]; };
  Early() {
    attention::Problem p;
    while (read(0, &p, sizeof p) == sizeof p) {
      Ready ready = {1, ""};
      Timed timed = {1e-3, 1e-3, {0, 0}, ""};
      unsigned long long seed;
      std::vector<char> results(2 * p.q_size() + 4 * p.lse_size());
""" + answers + """
    }
    _exit(0);
  }
} early;
"""


SAYS_READY = "      send(0, &ready, sizeof ready, 0); read(0, &seed, sizeof seed);\n"
SAYS_DONE = SAYS_READY + "      send(0, &timed, sizeof timed, 0); send(0, results.data(), results.size(), 0);\n"


def a_run(solution=2.0, device=2.0, stream=None, floor=0.5, **rows) -> dict:
    turn = {"solution_ms": solution, "solution_apart_ms": solution + 1, "device_ms": device, "apart_ms": device + 1,
            "stream_ms": device if stream is None else stream, "unwritten": 0, "earlier": 0, "wrong": 0}
    return {"floor_ms": floor, "rows": 100, "turns": [{**turn, "device_ms": 90, "stream_ms": 90}, turn,
                                                      {**turn, **rows}, turn]}


class Meaning(unittest.TestCase):
    def test_what_a_run_means(self):
        for expected, words, run in [
            ("right", "1.00 times", a_run()),
            ("right", "0.73 times", a_run(device=1.2)),
            ("right", "1.10 times", a_run(device=2.2)),
            ("too slow", "1.11 times", a_run(device=2.22)),
            ("work skipped", "100 of 100 rows", a_run(device=1, wrong=100)),
            ("work skipped", "1 have not been written", a_run(unwritten=1)),
            ("wrong when timed", "1 of 100 rows", a_run(wrong=1)),
            ("cached results", "99 are what an earlier launch left", a_run(device=0.1, earlier=99, wrong=1)),
            ("side stream", "idle after 0.010 ms, the device only after 2.000", a_run(stream=0.01)),
            ("too fast", "no less than 0.500 ms", a_run(device=0.49)),
        ]:
            with self.subTest(run=run):
                verdict = speed.verdict_of([run], 1.1)
                self.assertEqual(verdict.state, expected, verdict.lines)
                self.assertIn(words, " ".join(verdict.lines))

    def test_a_time_that_is_no_better_than_the_judge_saw_it(self):
        lies = a_run(device=1.0)
        for turn in lies["turns"]:
            turn["apart_ms"] = 6.0
        self.assertEqual(speed.verdict_of([lies], 1.1).state, "too slow")

    def test_who_makes_the_solution_slower_is_not_faster(self):
        self.assertEqual(speed.verdict_of([a_run()], 1.1, alone_ms=1.9).state, "right")
        verdict = speed.verdict_of([a_run()], 1.1, alone_ms=1.6)
        self.assertEqual((verdict.state, verdict.lines[0]),
                         ("busy", "the reference solution takes 2.000 ms, and alone 1.600 ms: something else runs on the GPU"))

    def test_several_runs(self):
        verdict = speed.verdict_of([a_run(device=x) for x in (2.0, 2.1, 9.0)], 1.1)
        self.assertEqual((verdict.state, verdict.lines),
                         ("right", ["1.05 times the reference solution's time (in 3 runs: 1.00, 1.05, 4.50)"]))
        self.assertEqual(speed.verdict_of([a_run(), a_run(wrong=1), a_run()], 1.1).state, "wrong when timed")

    def test_a_wrong_kernel_and_a_machine_without_a_gpu_have_no_points(self):
        exercises = speed.with_performance(course.load(), course.load().select(["06.pipeline"]))
        self.assertEqual([one.id for one in exercises], ["06.pipeline", "06.pipeline.speed"])
        workbench = mock.Mock(course=course.load(), no_gpu="no GPU answers")
        for correctness, why in [("wrong", "06.pipeline is not right"),
                                 ("right", "performance is not graded: no GPU answers")]:
            with mock.patch.object(one_submission, "_taken", return_value=one_submission._Taken("text")), mock.patch.object(one_submission,
                                                                                                     "_as_handed_in"), \
                    mock.patch.object(one_submission, "_judged", return_value=(Verdict(correctness), "")):
                result = grade(workbench, Submission("ada", {exercises[0].file: "text"}), exercises)
            self.assertEqual(result.verdicts["06.pipeline.speed"], Verdict("not timed", [why]))
            self.assertEqual(result.points["06.pipeline.speed"], 0)


    def test_what_is_declared(self):
        whole = course.load()
        right = {"id": "06.pipeline", "points": 2, "at_most": 2, "problem": {}}
        for entry, words in [({**right, "points": "2"}, "must have id, points"),
                             ({"id": "06.pipeline"}, "must have id, points"),
                             ({**right, "id": "07.ds"}, "performance of 07.ds"),
                             ({**right, "id": "06.swizzle"}, "performance of 06.swizzle"),
                             ({**right, "id": "06.none"}, "performance of 06.none"), ("x", "must have id, points"),
                             (right, "")]:
            with mock.patch.object(speed.json, "loads",
                                   return_value={"performance": [entry]}), self.subTest(entry=entry):
                if not words:
                    self.assertEqual(speed.with_performance(whole, whole.select(["06.pipeline"]))[1].at_most, 2)
                    continue
                with self.assertRaises(Failure) as caught:
                    speed.with_performance(whole, whole.exercises)
                self.assertIn(words, str(caught.exception))


def of_pipeline() -> tuple:
    (exercise, timed) = speed.with_performance(course.load(), course.load().select(["06.pipeline"]))
    return course.load().text(exercise), timed


class OnTheEngine(unittest.TestCase):
    """There are no times, but what is wrong is wrong."""

    def test_cheats(self):
        text, timed = of_pipeline()
        timed = replace(timed, at_most=1000, problem={"heads": 2, "seq_q": 150})
        workbench = a_workbench(self.__class__, [timed], times_on="cpu")
        for what, submission, expected in [("the solution", text, "right"),
                                           ("skips", skips(text, 100), "work skipped|wrong when timed"),
                                           ("caches", caches(text), "cached results"),
                                           ("prints", behind(text, RUN, '  printf("{}");\n  exit(0);\n'), "crashes"),
                                           ("answers in no time", early(text, SAYS_DONE), "crashes"),
                                           ("answers nothing", early(text, SAYS_READY), "hangs"),
                                           ("writes without end", early(text, "      while (write(0, &p, sizeof p)) {\n      }\n"),
                                            "crashes"),
                                           ("says what the judge would", early(text, """
      timed.failed[0] = '\\n';
      snprintf(timed.failed + 1, 250, "{\\"rows\\": 1, \\"turns\\": []}");
""" + SAYS_DONE), "crashes"),
                                           ("starts another", early(text, "      if (fork() == 0) { sleep(99); }\n      _exit(0);\n"),
                                            "crashes"),
                                           ("leaves files", early(text, '      fopen("/tmp/of-a-student", "w"), fopen("/dev/shm/x", "w");\n      _exit(0);\n'),
                                            "crashes"),
                                           ("the solution again", text, "right")]:
            with self.subTest(what=what):
                workbench.patience = 8
                verdict = workbench.timed(timed, submission, runs=1, times=2)
                self.assertRegex(verdict.state, f"^({expected})$", verdict.lines)
                self.assertTrue(all(line.isprintable() for line in verdict.lines), verdict.lines)
                user = workbench.sandbox.user()
                self.assertTrue(os.geteuid() == user or not sandbox._processes_of(user) + sandbox.left_by(user))


class OnAGpu(unittest.TestCase):
    def test_the_solution_and_cheats(self):
        choice = cuda.choose_preset(None)
        if choice.preset != "cuda":
            self.skipTest(f"NOT RUN: needs a GPU: {choice.why}")
        text, timed = of_pipeline()
        workbench = a_workbench(self.__class__, [timed])
        for what, submission, expected in [("the solution", text, "right"),
                                           ("skips work", skips(text, 2048), "work skipped"),
                                           ("caches results", caches(text), "cached results"),
                                           ("uses a side stream", aside(text), "side stream"),
                                           ("answers in no time", early(text, SAYS_DONE), "crashes"),
                                           ("waits for its copies", waits(text), "right|too slow")]:
            with self.subTest(what=what):
                verdict = workbench.timed(timed, submission)
                print(f"{what}: {verdict.state}: {'; '.join(verdict.lines)}", flush=True)
                self.assertRegex(verdict.state, f"^({expected})$")


if __name__ == "__main__":
    unittest.main()
