"""The course: its exercises, their hints and weeks, what a student has done so far, and whether an answer is right."""

from tools.course import boxes, kernelcode, markers, planted, rungs
from tools.course.exercises import FILE, HANDED_OUT, KINDS, LEARNER, Course, Exercise, kinds_of_tests, load
from tools.course.judging import AS_GRADED, DoesNotEnd, Verdict, Workshop, judge
from tools.course.learner import Learner
from tools.course.log import log_page
from tools.course.markers import without_markers
from tools.course.path import DAMAGED, OF_THE_WORKBOOK, THE_BOOKS, LearnersPath
from tools.course.plan import Plan, Week, read_plan, without_a_file
from tools.course.progress import StudentProgress
from tools.course.questions import (
    LARGEST,
    Answers,
    expected,
    plain,
    problem_of,
    same_name,
    student_of,
    verdict_of_answer,
    verdict_with_prediction,
)
from tools.course.solutions import bare, lines_of
from tools.course.wrong import SENTENCES, WRONG, sentences, wrong_solutions
