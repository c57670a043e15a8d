"""What is handed out of this workbook: it shows no solution, starts with stubs, and is the same each time. Nothing is built here."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tools import course
from tools.base import ROOT, Failure, cuda, file_trees
from tools.course import bare, lines_of, markers, without_a_file
from tools.grading.one_submission import taken_from
from tools.grading.submission import Submission
from tools.handout import hand_out, leaks, page_of_known, student_lessons
from tools.handout.handing_out import Choosing, compatible

NVCC = cuda.find_nvcc()


def answers(page: str) -> dict:
    """{number of a question: whether its answer is folded behind it} of a lesson."""
    found, number = {}, None
    for line in page.partition("\n## Questions\n")[2].partition("\n## ")[0].splitlines():
        if re.match(r"\d+\. ", line):
            number = int(line.partition(".")[0])
            found[number] = False
        found.update({number: True} if "<summary>Answer" in line else {})
    return found


def weeks_of_the_page(there: course.Course) -> list:
    """[(a name, the week's exercises, those of later weeks, the last chapter so far)] of the page's schedules."""
    page, found = (ROOT / "common/course/README.md").read_text(), []
    for number in (4, 8, 13):
        table = page.partition(f"**{number} weeks**")[2].partition("**")[0]
        weeks = [there.select(re.findall(r"\b\d\d\.[a-z]\w*", row)) for row in re.findall(r"^\| \d+ \|.*", table, re.M)]
        assert len(weeks) == number
        found += [(f"week {place} of {number}", week, tuple(one for after in weeks[place:] for one in after),
                   max(one.id[:2] for before in weeks[:place] for one in before))
                  for place, week in enumerate(weeks, 1)]
    return found


class HandedOut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.course = course.load()
        cls.made = hand_out(cls.course, without_a_file(cls.course.exercises))

    def text(self, file: str) -> str:
        return self.made.student[file].decode()

    def test_most_can_be_handed_out_at_once(self):
        everything = {one.id for one in self.course.exercises}
        there = {one.id for one in self.made.plan.exercises}
        self.assertEqual(there | {one.id for one, _ in self.made.left_out}, everything)
        # A part of a solution that returns with other names, or in other words, counts, too.
        self.assertGreaterEqual(len(there), 0.64 * len(everything), self.made.left_out)

    def test_no_solution_stands_between_the_markers_or_in_the_copies(self):
        for one in self.made.plan.exercises:
            if one.kind == "code":
                text = self.text(one.file)
                stub = course.markers.inside(text, self.course.region(one, text))
                self.assertEqual(stub.split(), self.course.handed_out(one).split())
                for line in lines_of(self.course, one):
                    self.assertNotIn(bare(line), bare(stub))
            if one.kind != "measure":
                self.assertEqual(self.text(one.file), self.text(str(course.HANDED_OUT / one.file)))
                self.assertNotEqual(self.text(one.file), self.course.text(one))

    def test_what_is_said_of_known_mistakes_is_there_and_the_wrong_solutions_are_not(self):
        there = json.loads(self.text(str(course.SENTENCES)))
        self.assertEqual(set(there), {one.id for one in self.made.plan.exercises})
        known = [entry for entries in there.values() for entry in entries]
        self.assertGreater(len(known), 50)
        for entry in known:
            self.assertLessEqual({"sentence"}, set(entry))
            self.assertLessEqual(set(entry), {"sentence", "seen", "source", "answer"})
        self.assertEqual([file for file in self.made.student if file.startswith(str(course.WRONG))], [])

    def test_a_line_that_only_the_solution_has_stands_nowhere(self):
        """Looked for in another way than the handout does: lines that the whole workbook has in the solution, and in files after it."""
        texts = {file: {bare(line) for line in content.decode(errors="replace").splitlines()}
                 for file, content in self.made.student.items()}
        root = self.course.root
        before = {str(path.relative_to(root)): {bare(line) for line in path.read_text().splitlines()}
                  for path in [*root.glob("[0-9][0-9]_*/*.cu"), *root.glob("common/device/*.h")]}
        for one in self.made.plan.exercises:
            if one.kind != "code":
                continue
            earlier = set().union(*(lines for file, lines in before.items() if file < one.file or file.endswith(".h")))
            for line in set(map(bare, lines_of(self.course, one))) - earlier - texts[one.file]:
                self.assertEqual([file for file, lines in texts.items() if line in lines], [], f"{one.id}: {line}")

    def with_the_whole_solution(self, exercises: list, tree: dict) -> list:
        """(exercise, a file that has it)"""
        texts = {file: "".join(map(bare, text.decode().splitlines())) for file, text in tree.items() if file.endswith((".cu", ".h", ".md"))}
        solutions = {one.id: "".join(map(bare, self.course.written(one).splitlines())) for one in exercises}
        return [(id, file) for id, solution in solutions.items() for file, text in texts.items() if solution in text]

    def test_what_a_later_rung_repeats_is_a_solutions_own(self):
        """10_dynamic.cu comes after 5_overlap.cu, whose solution it repeats."""
        self.assertIn("10_hopper/10_dynamic.cu", self.showing("10.order"))

    def showing(self, id: str, *others: str) -> set:
        """The files that show some of the solution where these exercises are handed out."""
        return Choosing(self.course).view(self.course.select([id, *others])).gone

    def test_what_a_reader_found(self):
        """Solutions in files that were handed out: with other names, in part of a line, and in a file that was known because a file
        that is left out has the same."""
        for id, file in [("03.tail", "03_tiling/2_registers.cu"), ("08.bounds", "08_causal_earlystop/wide/forward.cu"),
                         ("08.bounds", "08_causal_earlystop/wide/backward.cu"), ("10.stride", "11_split_kv/7_warpgroup.cu"),
                         ("11.bounds", "11_split_kv/4_narrow.cu"), ("11.bounds", "11_split_kv/5_deep.cu"),
                         ("05.rescale", "05_online_softmax/example.cu"), ("05.rescale", "common/course/split/split.cu"),
                         ("10.order", "10_hopper/6_pingpong.cu"), ("10.leaving", "10_hopper/13_turns_backward.cu")]:
            with self.subTest(exercise=id, file=file):
                others = ["05.rescale"] if id == "08.bounds" else []  # example.cu, which has the same line, is not there then
                self.assertIn(file, self.showing(id, *others))

    def test_a_copy_of_a_solution_is_found_wherever_it_stands(self):
        """Renamed, with other loops and line breaks, as a comment, or in a lesson."""
        solutions = leaks.Solutions(self.course)
        (tail,) = self.course.select(["03.tail"])
        own = {tail.id: solutions.beyond(tail.id, [self.course.student_files([tail])[tail.file]])}
        copy = self.course.written(tail).replace("p_smem", "copy").replace("ty", "down").replace("tx", "x").replace("p_tile", "from")
        for text in (copy, copy.replace(" ", "\n"), f"int a;\n// {copy.strip()}", f"A lesson.\n\n    {copy.strip()}\n"):
            with self.subTest(text=text):
                self.assertEqual(solutions.first_leak(f"\n{text}", own), (tail.id, f"\n{text}".splitlines().index(
                    next(line for line in text.splitlines() if "copy" in line)) + 1))
        self.assertIsNone(solutions.first_leak(copy.replace("+ x", "+ down"), own), "a name for two")

    def test_what_students_have_read_before_is_listed(self):
        known = {one.exercise: one for one in self.made.known}
        self.assertEqual(known["06.rescale"].files["06_flashattn2_fwd/1_mma.cu"], 1)
        self.assertGreater(known["05.rescale"].files["04_fusion/1_fused.cu"], 0.3)
        self.assertNotIn("01.scores", known)
        page = page_of_known(self.made.known)
        self.assertIn("| 06.rescale | 100% | 06_flashattn2_fwd/1_mma.cu 100% |", page)
        for one in self.made.known:
            self.assertTrue(all(file in self.made.student for file in one.files), one)

    def test_without_its_kernels_for_wide_heads_a_rung_takes_the_others(self):
        self.assertNotIn("08_causal_earlystop/wide/backward.cu", self.made.student)
        text = self.text("08_causal_earlystop/4_ordered_backward.cu")
        self.assertNotIn("wide_backward", text)
        self.assertIn("attention::padded<unpadded, attention::next_64_128_256>", text)
        self.assertIn("head_dim_not_8_to_128", text)

    def test_no_solution_stands_anywhere_as_a_whole(self):
        """Not in an earlier rung either, whose lines a later exercise may need one by one."""
        written = [one for one in self.made.plan.exercises if one.kind == "code"]
        self.assertGreater(len(written), 20)
        self.assertEqual(self.with_the_whole_solution(written, self.made.student), [])

    def test_a_rung_that_shows_a_solution_is_in_no_list(self):
        for file in self.made.rungs:
            self.assertNotIn(file, self.made.student)
        for file, content in self.made.student.items():
            if re.fullmatch(r"\d\d_\w+/attention\.cu", file):
                chapter = file.partition("/")[0]
                defined = set(re.findall(r"^constinit const attention::\w+ (\w+) =", "".join(
                    text.decode() for name, text in self.made.student.items() if name.startswith(f"{chapter}/")), re.M))
                inside = content.decode().partition(f"namespace {chapter[3:]} {{")[2]
                for names in re.findall(r"^extern const attention::(?:Rung|Backward) ([\w, ]+);", inside, re.M):
                    self.assertLessEqual(set(names.split(", ")), defined, file)

    def test_every_header_of_the_workbook_that_a_source_includes_is_there(self):
        """A tree of objects that were compiled elsewhere would not show that one is missing."""
        for file, content in self.made.student.items():
            if re.search(r"\.(cu|cc|h)$", file):
                for header in re.findall(r'^#include "([\w./]+)"', content.decode(), re.M):
                    places = {f"common/{header}", str(Path(file).parent / header)}
                    self.assertTrue(places & self.made.student.keys(), f"{file} includes {header}")

    def test_nothing_that_is_not_for_students(self):
        for file in self.made.student:
            self.assertNotRegex(file, r"^\.git(/|hub)|common/course/debug|common/course/wrong|gradescope|mutants|answers\.json|^build/")

    def test_of_the_lessons_answers_those_are_gone_that_an_exercise_names(self):
        for chapter in {file.partition("/")[0] for file in self.made.student if re.match(r"\d\d_", file)}:
            lesson = answers((self.course.root / chapter / "README.md").read_text())
            named = {number for one in self.made.plan.exercises if one.id[:2] == chapter[:2] for number in one.lesson}
            with self.subTest(chapter=chapter):
                self.assertTrue(all(lesson[number] for number in named), "an exercise names an answer that is not there")
                self.assertEqual(answers(self.text(f"{chapter}/README.md")),
                                 {number: answered and number not in named for number, answered in lesson.items()})
        self.assertIn("(Its answer is not here: it would say too much about exercise 01.sectors.)", self.text("01_naive/README.md"))

    def test_of_the_named_numbers_those_of_hidden_answers_are_gone(self):
        pages = {file: set(re.findall(r"<!-- (?:report: )?(\w+) -->", self.text(file)))
                 for file in self.made.student if file.endswith(".md")}
        there = [file for file in self.made.student if file.endswith("/numbers.json")]
        self.assertTrue(there)
        for file in there:
            shown = set().union(*(names for page, names in pages.items() if Path(page).parent == Path(file).parent))
            self.assertEqual(set(json.loads(self.text(file))), shown)
        self.assertIn("gain_over_04", self.text("05_online_softmax/numbers.json"))
        self.assertEqual(student_lessons.numbers_of("1<!-- a -->", '{"a": "1", "ab": "2"}'), '{\n "a": "1"\n}\n')
        self.assertEqual(student_lessons.numbers_of("<!-- report: a -->", '{"a": "1", "ab": "2"}'), '{\n "a": "1"\n}\n')

    def test_what_comes_in_a_later_week_is_not_shown(self):
        now, later = self.course.select(["05.rescale", "05.lse"]), self.course.select(["05.reduction", "05.merge", "07", "08.bounds"])
        made = hand_out(self.course, without_a_file(now), later=tuple(later))
        self.assertEqual(made.plan.exercises, now)
        written = [one for one in later if one.kind != "measure"]
        self.assertEqual([one.id for one in written if one.file in made.student], [])
        self.assertEqual(self.with_the_whole_solution(written, made.student), [])
        self.assertFalse(any(file.startswith("common/course/split/") for file in made.student))
        self.assertIn("01_naive/attention.cu", made.student)

    def test_what_the_class_has_not_come_to_is_not_there(self):
        made = hand_out(self.course, without_a_file(self.course.select(["06.fragments"])), last="06")
        there = {file.partition("/")[0] for file in made.student if re.match(r"\d\d_", file)}
        self.assertEqual(max(there)[:2], "06")
        self.assertEqual((made.beyond[0], made.beyond[-1]), ("07_backward", "13_fp8"))
        self.assertIn("common/course/split/split.cu", made.student)
        self.assertNotIn("common/course/band/band.cu", made.student)  # of chapter 12
        self.assertFalse({*made.beyond} & {file.partition("/")[0] for file in made.rungs})

    def test_rungs_that_show_a_solution_in_other_words_are_not_there(self):
        """The copies ahead of 7_addresses.cu have not one line of 06.pipeline's solution, and are it all the same."""
        later = {f"06_flashattn2_fwd/{rung}.cu" for rung in ("7_addresses", "8_whole_rows", "9_three_blocks", "10_two_tiles")}
        for now, after in ((["06.pipeline"], []), (["06.fragments"], ["06.pipeline"])):
            made = hand_out(self.course, without_a_file(self.course.select(now)), later=tuple(self.course.select(after) if after else ()))
            self.assertFalse(later & made.student.keys(), now)
            self.assertNotIn("shown_in", made.student[str(course.FILE)].decode())
        self.assertLessEqual(later, hand_out(self.course, without_a_file(self.course.select(["06.fragments"]))).student.keys())
        left_out = compatible(self.course, self.course.select(["06.pipeline", "06.rows"]))[1]
        self.assertEqual([(one.id, why) for one, why in left_out],
                         [("06.rows", "its file, or one that it needs, shows the solution of 06.pipeline")])

    def test_a_file_is_not_handed_out_with_the_solution_of_a_later_week(self):
        left_out = compatible(self.course, self.course.select(["05.merge"]), tuple(self.course.select(["06.banks"])))[1]
        self.assertEqual([why for _, why in left_out], ["its file has the solution of 06.banks, which comes in a later week"])

    def test_a_chapter_whose_kernels_show_a_solution_has_its_lesson_alone(self):
        """Those of chapter 12 show 10.order. Its exercises have kernels of their own, and want the lesson."""
        made = hand_out(self.course, without_a_file(self.course.select(["10.order", "12.window"])))
        there = [file for file in made.student if file.startswith("12_variants/")]
        self.assertIn("12_variants/README.md", there)
        self.assertEqual([file for file in there if not re.search(r"\.(md|svg|json)$", file)], [])
        self.assertIn("[12_variants](12_variants/)", made.student["README.md"].decode())
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            file_trees.write(root, made.student)
            theirs = course.load(root)
            self.assertEqual([one.id for one in theirs.select(["12"])], ["12.window"])
            self.assertIn("  read   12_variants/README.md", "\n".join(course.LearnersPath(theirs).where(theirs.select(["12"])[0])))
        made = hand_out(self.course, without_a_file(self.course.select(["10.order"])))
        self.assertFalse(any(file.startswith("12_variants/") for file in made.student))

    def test_the_exercises_of_chapter_12_take_nothing_of_the_chapters(self):
        made = hand_out(self.course, without_a_file(self.course.select(["12"])))
        self.assertEqual((made.left_out, made.rungs), ([], []))
        self.assertIn("12_variants/forward.h", made.student)

    def test_links_lead_somewhere(self):
        for file, content in self.made.student.items():
            if file.endswith(".md"):
                for target in re.findall(r"\]\(([^)#\s:]+)[^):]*\)", content.decode()):
                    path = os.path.normpath(Path(file).parent / target)
                    self.assertTrue(any(there == path or there.startswith(f"{path}/") for there in self.made.student),
                                    f"{file}: {target}")

    def test_the_same_bytes_each_time(self):
        again = hand_out(course.load(), without_a_file(self.course.exercises))
        self.assertEqual(again.student, self.made.student)
        with tempfile.TemporaryDirectory() as directory:
            archives = [Path(directory) / name for name in ("one.zip", "two.zip")]
            for path, made in zip(archives, (self.made, again)):
                file_trees.write_archive(path, made.autograder)
            self.assertEqual(archives[0].read_bytes(), archives[1].read_bytes())

    def test_a_students_tree_is_a_course_in_which_nothing_is_attempted(self):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "student"
            file_trees.write(root, self.made.student)
            theirs = course.load(root)
            self.assertEqual([one.id for one in theirs.exercises],
                             [one.id for one in self.course.exercises if one in self.made.plan.exercises])
            for one in theirs.exercises:
                if one.kind != "measure":
                    self.assertFalse(theirs.attempted(one), one.id)
            self.assertTrue((root / "workbook").stat().st_mode & 0o100)

    def test_one_exercise_alone_leaves_the_rest_solved(self):
        made = hand_out(self.course, without_a_file(self.course.select(["05.rescale"])))
        self.assertEqual([one["id"] for one in json.loads(made.student[str(course.FILE)])["exercises"]], ["05.rescale"])
        self.assertNotIn(b"// exercise", made.student["01_naive/attention.cu"])
        self.assertIn(b"// exercise rescale", made.student["05_online_softmax/1_online.cu"])

    def test_the_front_page_names_what_is_there(self):
        for words in (["05.rescale"], ["01.sectors"], ["04.barrier", "05.merge"], []):
            made = hand_out(self.course, without_a_file(self.course.select(words)))
            page, exercises = made.student["README.md"].decode(), made.plan.exercises
            with self.subTest(handed_out=words):
                named = re.findall(r"^\./workbook (?:check|hint|reset) (?:--watch )?([\w.]+)", page, re.M)
                self.assertEqual(len(named), 3)
                for word in [*named, *re.findall(r"`\./workbook check --watch (\w+)`", page)]:
                    self.assertTrue(any(word in (one.id, one.id[:2]) for one in exercises), word)
                for word in ("answers.json", "--student"):
                    self.assertEqual(word in page, any(one.kind == "measure" for one in exercises), word)
                handed_in = re.search(r"^zip mine.zip (.*)$", page, re.M)[1].split()
                needed = {"answers.json" if one.kind == "measure" else str(Path(one.file).parent / "*.cu") for one in exercises}
                self.assertEqual(set(handed_in), needed)

    def test_the_full_solution_is_the_workbook_itself(self):
        """So it scores full marks: what is taken from a student's tree with all solutions, laid over the whole workbook, changes
        no byte of it, and the workbook passes its own tests."""
        for one in self.course.exercises:
            if one.kind == "measure":
                continue
            with self.subTest(exercise=one.id):
                handed_out = self.course.student_files([one])[one.file]
                theirs = self.course.text(one) if one.kind == "debug" else \
                    markers.filled(handed_out, self.course.region(one, handed_out), self.course.written(one))
                taken = theirs if one.kind == "debug" else \
                    taken_from(self.course, Submission("ada", {one.file: theirs}), [one])[one.id]
                self.assertNotEqual(handed_out, theirs)
                self.assertEqual(self.course.replaced(one, taken), (self.course.root / one.file).read_text())

    def test_gradescope_finds_its_two_programs(self):
        with tempfile.TemporaryDirectory() as directory:
            file_trees.write_archive(Path(directory) / "a.zip", self.made.autograder)
            with zipfile.ZipFile(Path(directory) / "a.zip") as archive:
                for name in ("setup.sh", "run_autograder", "workbook/workbook"):
                    self.assertTrue(archive.getinfo(name).external_attr >> 16 & 0o100, name)
                self.assertIn("/autograder/results/results.json", archive.read("run_autograder").decode())

    def test_only_the_workbook_is_read(self):
        """Handouts, submissions and grades may lie beside it, and no student gets what others have handed in."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            file_trees.write(root, dict.fromkeys(self.made.instructor, b"x"))
            file_trees.write(root, {file: b"x" for file in (
                "week1/instructor/01_naive/attention.cu", "class/ada.zip", "07_class/ada/07_backward/1_materialised.cu",
                "grades/grades.csv", "course.json", "ada.json", "build/x", "answers.json")})
            self.assertEqual(sorted(file_trees.read(root)), sorted(self.made.instructor))

    def test_without_an_exercise_there_is_nothing_to_hand_out(self):
        with self.assertRaisesRegex(Failure, r"^there is no exercise to hand out \(06.rows: its file, or one that it needs, shows the "
                                             r"solution of 06.pipeline\)$"):
            hand_out(self.course, without_a_file(self.course.select(["06.rows"])), later=tuple(self.course.select(["06.pipeline"])))

    def test_nothing_is_overwritten(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "x").write_text("")
            self.assertRaises(Failure, file_trees.require_a_new, Path(directory))


class Weeks(unittest.TestCase):
    def test_no_file_of_any_week_shows_a_solution(self):
        there = course.load()
        for name, week, later, last in weeks_of_the_page(there):
            with self.subTest(name):
                made = hand_out(there, without_a_file(week), later=later, last=last)
                self.assertEqual((made.left_out, made.plan.exercises), ([], week))
                self.assertEqual([file for file in made.student if file[:2].isdigit() and file[:2] > last], [])
                for one in [*week, *later]:  # 06.pipeline, say, whose solution later rungs show in other words
                    self.assertFalse(made.student.keys() & set(one.shown_in), one.id)


@unittest.skipIf(NVCC is None or NVCC.version < cuda.LOWEST_NVCC, "NOT RUN: needs nvcc")
class WithNvcc(unittest.TestCase):
    def test_it_compiles_what_students_start_from(self):
        """All stubs and planted mistakes as one source, each in a namespace of its own: most of the time goes into headers. (g++
        compiles them in course.trials.)"""
        there, parts = course.load(), []
        for number, text in enumerate(there.student_files(there.exercises).values()):
            (namespace,) = set(re.findall(r"^}  // namespace (\w+)\n*\Z", text, re.M))
            own = f"{namespace}::start_{number}"
            text = text.replace(f"\nnamespace {namespace} {{\n", f"\nnamespace {own} {{\n")
            parts.append(re.sub(rf"\b{namespace}::(?!start_)", f"{own}::", text))  # hopper::Bc is this file's own
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "all.cu"
            source.write_text("\n".join(parts))
            done = subprocess.run([NVCC.path, "-std=c++20", "-arch=sm_80", "-Xcicc", "-O0", "-w", "-I", there.root / "common",
                                   "-ptx", "-o", f"{directory}/all.ptx", source], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertGreater((Path(directory) / "all.ptx").read_text().count(".entry"), 4 * len(parts))


if __name__ == "__main__":
    unittest.main()
