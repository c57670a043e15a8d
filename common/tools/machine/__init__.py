"""This machine and what lies on it: paths, chapters, builds, packages, compilers, the GPU, processes, the terminal; and expressions in text."""

from tools.machine import build, chapters, system
from tools.machine.environment import python_with_packages
from tools.machine.errors import Failure
from tools.machine.expressions import DividesByZero, NotUnderstood, evaluate
from tools.machine.paths import BUILD, COUNTS, RESULTS, ROOT, shown, slug
from tools.machine.processes import answer_of, follow, output_of, started, with_python_path
from tools.machine.terminal import Progress, amount_of_memory, bad, bold, columns, good, say, significant, table
