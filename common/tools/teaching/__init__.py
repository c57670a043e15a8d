"""Teaching with the workbook: what is handed out to students, and how what they hand in is graded."""

from tools.teaching.coursefile import Plan, Week, read_plan, without_a_file
from tools.teaching.handout import Handout, hand_out
from tools.teaching.trees import require_a_new, write, write_archive
