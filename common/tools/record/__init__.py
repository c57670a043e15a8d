"""What has been measured: the problems, the files that say so, and every number that can be read out of them."""

from tools.record import beside_peers, own, repeated_times, result_files
from tools.record.decoding import Decoding
from tools.record.measurements import SECONDS_PER, THE_BOOKS, Missing, Record, Row
from tools.record.microbenchmarks import LATENCY, Microbenchmarks
from tools.record.problem import DEFAULT, LENGTHS, Problem, read_label
from tools.record.quantities import Quantities
from tools.record.recorded_counts import Counts
from tools.record.repeated_times import SecondMeasurement, repeated
from tools.record.result_files import commit
from tools.record.training import Training
