"""Teaching with the workbook: what is handed out to students, and how what they hand in is graded."""

from tools.teaching.classes import grade_class, no_submissions_in, submissions_in
from tools.teaching.coursefile import Plan, Week, read_plan, without_a_file
from tools.teaching.grading import ANSWERS, Bench, Grade, grade, not_graded
from tools.teaching.handout import Handout, hand_out
from tools.teaching.late import date_of_gradescope, read_dates, without_late_points
from tools.teaching.performance import with_performance
from tools.teaching.results import FORMATS, no_submissions, written
from tools.teaching.submission import is_submission, read_submission
from tools.teaching.trees import require_a_new, write, write_archive
