"""What everything else stands on: paths, chapters, builds, packages, the GPU, processes, the terminal, failures."""

from tools.base import build, chapters, cuda, file_trees, packages, pythons, substitutes
from tools.base.annotations import Command, JsonObject
from tools.base.expressions import DividesByZero, NotUnderstood, evaluate
from tools.base.failure import Failure
from tools.base.gpus import GPUS, L2_BYTES, SCHEDULERS, Gpu
from tools.base.paths import BUILD, COUNTS, RESULTS, ROOT, file_to_write, in_words, shown, slug, write_whole
from tools.base.processes import answer_of, ending_of, follow, json_from, output_of, started, with_python_path
from tools.base.terminal import (
    Progress,
    amount_of_memory,
    bad,
    bold,
    columns,
    complain,
    flush_left,
    flush_right,
    good,
    in_columns,
    lost,
    say,
    significant,
    table,
    width_of,
)
