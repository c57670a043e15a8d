"""Grading: what students hand in, read and run in a sandbox, one submission or a whole class; and the reports of it."""

from tools.grading.grade_reports import no_submissions, not_held, written
from tools.grading.late_days import date_of_gradescope, read_dates, without_late_points
from tools.grading.one_submission import ANSWERS, Grade, Workbench, file_of, grade, not_graded
from tools.grading.question_names import bound, in_the_roster, names_for, users_of
from tools.grading.roster import read_log, read_roster
from tools.grading.speed import Graded, with_performance
from tools.grading.submission import is_submission, read_submission
from tools.grading.which_counts import with_earlier
from tools.grading.whole_class import grade_class, no_submissions_in, submissions_in
