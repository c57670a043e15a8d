"""Questions: what is drawn from a name, and what is said of an answer."""

import json
import unittest
from unittest import mock

from little import CODE, MEASURE, LittleTree

from tools import course
from tools.base import Failure, build
from tools.course import judging, questions

LAUNCHES = [("online::scores", {"sectors": 30, "requests": 4}), ("online::output", {"sectors": 10})]


class Drawing(LittleTree):
    def test_the_same_name_draws_the_same(self):
        sectors = self.exercise("05.sectors")
        first = course.problem_of(sectors, "Ada Lovelace")
        self.assertEqual(first["heads"], 2)
        self.assertIn(first["seq_q"], MEASURE["draw"]["seq_q"])
        self.assertEqual(course.problem_of(sectors, "  ada   LOVELACE "), first)

    def test_a_text_of_the_problem_may_have_what_is_drawn(self):
        self.declare(CODE, {**MEASURE, "problem": {"window": "{left},0"}, "draw": {"left": [3]}})
        self.assertEqual(course.problem_of(self.exercise("05.sectors"), "ada"), {"window": "3,0", "left": 3})

    def test_names_spread_over_what_there_is_to_draw(self):
        sectors = self.exercise("05.sectors")
        self.assertEqual({course.problem_of(sectors, f"s{i}")["seq_q"] for i in range(50)},
                         set(MEASURE["draw"]["seq_q"]))


class Answering(LittleTree):
    def begin(self, student: str = "ada", answer=None) -> None:
        course.Answers(self.root).begin(student, self.loaded())
        if answer is not None:
            self.write("answers.json", json.dumps({"student": student, "answers": {"05.sectors": answer}}))

    def verdict(self, launches=LAUNCHES):
        with mock.patch.object(judging, "counts", return_value=launches):
            return course.verdict_of_answer(self.exercise("05.sectors"), course.Answers(self.root))

    def test_without_a_name_there_is_no_question(self):
        verdict = self.verdict()
        self.assertEqual(verdict.state, "not answered")
        self.assertIn("--student NAME", verdict.lines[0])

    def test_the_question_is_asked_and_the_file_is_there(self):
        self.begin()
        self.assertEqual(json.loads(self.read("answers.json")), {"student": "ada", "answers": {"05.sectors": None}, "predictions": {}})
        seq_q = course.problem_of(self.exercise("05.sectors"), "ada")["seq_q"]
        self.assertEqual(self.verdict().lines[0], f"How many, of {seq_q} rows?")

    def test_right_and_wrong_and_never_the_number(self):
        for answer, state in [(10, "right"), (10.04, "right"), (9.9, "wrong"), (40, "wrong"), ("10", "wrong"),
                              (True, "wrong")]:
            self.begin(answer=answer)
            verdict = self.verdict()
            self.assertEqual(verdict.state, state, answer)
            self.assertNotIn("10.0", " ".join(verdict.lines))

    def test_a_known_mistake_gets_its_question_and_no_other_number_does(self):
        self.write("common/course/wrong/05.sectors.json", json.dumps(
            [{"name": "no_sentence", "mistake": "m", "answer": "7"},
             {"name": "not_counted", "mistake": "m", "answer": 'counted("nothing")', "sentence": "never"},
             {"name": "all_sectors", "mistake": "m", "answer": 'counted("sectors")', "sentence": "Of which requests?"}]))
        hint = "./workbook hint 05.sectors asks what to look for"
        for answer, expected in [(40, ["it is not 40", "Of which requests?"]), (41, ["it is not 41", hint]),
                                 (7, ["it is not 7", hint])]:
            self.begin(answer=answer)
            self.assertEqual(self.verdict().lines[1:], expected)
        self.begin(answer=40)
        with mock.patch.object(judging, "counts", return_value=LAUNCHES):
            verdict = course.verdict_of_answer(self.exercise("05.sectors"), course.Answers(self.root), judging.Workshop())
        self.assertEqual(verdict.lines[1:], ["it is not 40"], "a grader says no more")

    def test_in_a_students_tree_the_sentences_are_there_and_the_solutions_are_not(self):
        sentence = {"answer": 'counted("sectors")', "sentence": "Of which requests?"}
        self.write(str(course.SENTENCES), json.dumps({"05.sectors": [sentence]}))
        self.begin(answer=40)
        self.assertEqual(self.verdict().lines[-1], "Of which requests?")

    def test_answers_stay_when_the_name_is_said_again(self):
        self.begin(answer=10)
        course.Answers(self.root).begin("Ada", self.loaded())
        self.assertEqual(json.loads(self.read("answers.json"))["answers"], {"05.sectors": 10})

    def test_the_answers_of_one_student_are_not_those_of_another(self):
        self.begin()
        with self.assertRaisesRegex(Failure, "has the answers of ada"):
            course.Answers(self.root).begin("grace", self.loaded())

    def test_a_file_that_is_not_as_it_has_to_be(self):
        for text, line in [('{"student": "ada", "answers": {}, "predictions": 7}', 1), ("{\n,}", 2), ('{"student": 7, "answers": {}}', 1), ("[]", 1), ('{"student": "ada"}', 1)]:
            self.write("answers.json", text)
            with self.assertRaises(Failure) as caught:
                course.Answers(self.root)
            self.assertIn(f"answers.json:{line}: it must be", str(caught.exception))
            self.assertEqual(caught.exception.status, 2)

    def step(self):
        """What a student who predicts first is told next."""
        with mock.patch.object(judging, "counts", return_value=LAUNCHES):
            return course.verdict_with_prediction(self.exercise("05.sectors"), course.Answers(self.root))

    def test_a_prediction_comes_before_the_count_and_stands_beside_it(self):
        sectors = self.exercise("05.sectors")
        self.assertIn("--student NAME", self.step().lines[0])
        self.begin()
        self.assertEqual((self.step().state, self.step().lines[1]), ("not answered", (
            "predict first, from the source: ./workbook check 05.sectors --predict NUMBER; a wrong prediction costs nothing")))
        with self.assertRaisesRegex(Failure, "^05.sectors is predicted first: ./workbook check 05.sectors --predict NUMBER$"):
            course.Answers(self.root).give(sectors, 10)
        course.Answers(self.root).predict(sectors, 32)
        with self.assertRaisesRegex(Failure, "^you predicted 32 for 05.sectors, and a prediction stays$"):
            course.Answers(self.root).predict(sectors, 10)
        seq_q = course.problem_of(sectors, "ada")["seq_q"]
        self.assertEqual(self.step().lines[1:], [
            "you predicted 32; now count", f"  ./workbook trace 05 --rung=online --heads=2 --seq-q={seq_q}",
            "and say what it is: ./workbook check 05.sectors --answer NUMBER"])
        course.Answers(self.root).give(sectors, 40)
        self.assertEqual((self.step().state, self.step().lines[1]), ("wrong", "it is not 40"))
        course.Answers(self.root).give(sectors, 10)
        self.assertEqual((self.step().state, self.step().lines), ("right", [
            "predicted 32, counted 10: 0.312 times the prediction. Which line of the kernel is the reason?"]))

    def test_what_no_command_counts_is_calculated(self):
        self.declare(CODE, {**MEASURE, "calculate": "from what its {seq_q} rows ask for"})
        sectors = self.exercise("05.sectors")
        self.begin()
        course.Answers(self.root).predict(sectors, 32)
        seq_q = course.problem_of(sectors, "ada")["seq_q"]
        self.assertEqual(self.step().lines[1:], [
            f"you predicted 32; now calculate, from what its {seq_q} rows ask for",
            "and say what it is: ./workbook check 05.sectors --answer NUMBER"])
        self.assertIn(f"**Measure.** Calculated, from what its {seq_q} rows ask for: ",
                      course.log_page([sectors], course.Answers(self.root)))

    def test_an_answer_without_a_prediction_is_judged_by_who_grades_and_not_said_to_the_student(self):
        self.begin(answer=10)
        self.assertEqual((self.verdict().state, self.step().state), ("right", "not answered"))

    def test_predictions_of_nothing_and_right_ones(self):
        self.assertIn("not the prediction", questions.beside(0, 10))
        self.assertEqual(questions.beside(4193281, 4193280), "predicted 4,193,281, counted 4,193,280: as you predicted")

    def test_nobody_predicts_without_a_name(self):
        with self.assertRaisesRegex(Failure, "^whose answer is it"):
            course.Answers(self.root).predict(self.exercise("05.sectors"), 1)

    def test_the_log_has_what_was_predicted_and_what_was_counted(self):
        sectors, code = self.exercise("05.sectors"), self.exercise("05.rescale")
        self.begin()
        with self.assertRaisesRegex(Failure, "^--log: nothing is predicted yet"):
            course.log_page([code, sectors], course.Answers(self.root))
        course.Answers(self.root).predict(sectors, 32)
        page = course.log_page([code, sectors], course.Answers(self.root))
        self.assertIn("# Log of ada\n\n## 05.sectors: a title\n\n**Predict.** How many, of ", page)
        self.assertIn("I predicted 32. My calculation: …", page)
        self.assertRegex(page, r"`./workbook trace 05 --rung=online --heads=2 --seq-q=\d+` counted …\n")
        with mock.patch.object(judging, "counts", return_value=LAUNCHES):
            course.Answers(self.root).give(sectors, 40)
            self.assertNotIn("counted 40", course.log_page([sectors], course.Answers(self.root)), "it is wrong")
            course.Answers(self.root).give(sectors, 10)
            page = course.log_page([sectors], course.Answers(self.root))
        self.assertRegex(page, r"` counted 10.\n")
        self.assertIn("**Explain.** 0.312 times the prediction. Which line of the kernel is the reason? …\n", page)

    def test_kernels_that_cannot_be_counted(self):
        self.begin(answer=10)
        self.assertEqual(self.verdict("05_online: no launch").state, "not run")
        with mock.patch.object(judging, "counts", side_effect=build.DoesNotBuild("", ["a.cu:1: error"])):
            verdict = questions.verdict_of_answer(self.exercise("05.sectors"), course.Answers(self.root))
        self.assertEqual((verdict.state, verdict.lines), ("does not compile", ["a.cu:1: error"]))

    def test_an_answer_of_another_rung_and_of_another_problem(self):
        self.declare(CODE, {**MEASURE, "draw": {"seq_q": [70], "kib": [5]}, "answer":
                            'counted("sectors") - counted("sectors", rung="other") + counted("sectors", heads=1) + '
                            'whole(drawn("kib") / 2)'})
        self.begin(answer=40 - 20 + 7 + 2)
        counted = {("online", 2): 40, ("other", 2): 20, ("online", 1): 7}
        asked = []

        def counts(chapter, rung, direction, problem, workshop):
            asked.append(problem)
            return [("kernel", {"sectors": counted[rung, problem["heads"]]})]

        with mock.patch.object(judging, "counts", side_effect=counts):
            verdict = course.verdict_of_answer(self.exercise("05.sectors"), course.Answers(self.root))
        self.assertEqual(verdict.state, "right")
        self.assertEqual(asked[0], {"heads": 2, "seq_q": 70}, "kib is no flag of a program")

    def test_kernels_that_do_nothing_yet(self):
        self.begin(answer=10)
        self.assertEqual(self.verdict([("online::scores", {"sectors": 0, "requests": 0})]).state, "not run")

    def test_a_kernel_that_reads_by_atomic_functions_is_counted_as_one_that_loads(self):
        self.declare(CODE, {**MEASURE, "answer": 'counted("global_load sectors") / counted("global_load requests")'})
        self.begin(answer=1)
        launch = {"global_load sectors": 1, "global_load requests": 1, "global_atomic sectors": 39, "global_atomic requests": 3}
        self.assertEqual(self.verdict([("online::scores", launch)]).state, "wrong")
        self.begin(answer=10)
        self.assertEqual(self.verdict([("online::scores", launch)]).state, "right")

    def test_an_answer_that_nobody_can_calculate(self):
        self.declare(CODE, {**MEASURE, "answer": 'counted("nothing")'})
        self.begin(answer=10)
        with self.assertRaisesRegex(Failure, "the answer of 05.sectors: the engine counts no nothing"):
            self.verdict()


if __name__ == "__main__":
    unittest.main()
