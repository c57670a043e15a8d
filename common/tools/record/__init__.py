"""What has been measured: the problems, the files that say so, and every number that can be read out of them."""

from tools.record import results, second
from tools.record.counted import Counts
from tools.record.decoding import Decoding
from tools.record.experiments import LATENCY, Experiments
from tools.record.problem import LENGTHS, Problem, read_label
from tools.record.quantities import Quantities
from tools.record.results import commit
from tools.record.rows import SECONDS_PER, THE_BOOKS, Missing, Record
from tools.record.second import Second, repeated
from tools.record.training import Training
