"""The tables of the READMEs, in Markdown: each public method is one, named between markers:

    <!-- report: ladder("forward") -->
    (the table, written by ./workbook dev report)
    <!-- /report -->

What has not been measured is a dash.
"""

import re
import statistics
from collections.abc import Callable
from functools import partial

from tools.base import JsonObject, amount_of_memory, significant
from tools.record import LENGTHS, Microbenchmarks, Missing, Quantities, Record, SecondMeasurement, Training, repeated
from tools.showing import document_tables, eight_bit_tables, experiment_tables, microbenchmark_tables, timing_tables
from tools.showing.markdown import NOT_YET, factor, known, markdown, power

PEER_NAMES = {"FLASH": "FlashAttention-2", "FLASH-deterministic": "FlashAttention-2, deterministic", "CUDNN": "cuDNN",
              "MATH": "PyTorch, unfused", "FA3": "FlashAttention-3", "FA4": "FlashAttention-4",
              "FA4-deterministic": "FlashAttention-4, deterministic",
              "eager+FLASH": "eager RoPE, then FlashAttention-2",
              "compiled+FLASH": "compiled RoPE, then FlashAttention-2",
              "rotated+FLASH": "RoPE in fp32, then FlashAttention-2"}

PYTORCHS = ("FLASH", "FLASH-deterministic", "CUDNN")  # of the peers


class Tables:
    def __init__(self, record: Record):
        self._record, self._of = record, Quantities(record)

    def _name(self, step: str, *directions: str) -> str:
        """The chapter where its result is meant, or the chapter and the rung; and whether it has RoPE to do besides."""
        results = [one for direction in directions or ("forward", "backward")
                   for one in self._record.results(direction)]
        name = step.split("/")[0] if step in results else step
        return PEER_NAMES.get(step, f"`{name}`" + (", with RoPE" if self._record.rope(step) else ""))

    def ladder(self, direction, n=4096):
        """One line a step: the results of the chapters, and the peers."""
        steps, of = self._record.results(direction), self._of
        rows = [[f"N = {n}", "ms", "faster than the step before", "than the first", "DRAM traffic",
                 "of a matrix product's FLOP/s", "against FlashAttention-2", "against cuDNN"]]
        for number, step in enumerate(steps):
            rope = self._record.rope(step)
            before = [one for one in steps[:number] if not self._record.rope(one)][-1:]

            def against(peer):
                try:
                    return of.against(step, peer, n, direction)
                except Missing:  # too slow to be timed beside the peers
                    return of.peer_ms(peer, n, direction) / of.ms(step, n, direction)

            rows.append([
                self._name(step),
                known(lambda: of.ms(step, n, direction)),
                known(lambda: of.gain(before[0], step, n, direction), factor) if before else "",
                known(lambda: of.gain(steps[0], step, n, direction), factor) if number else "",
                known(lambda: of.dram_bytes(step, direction), amount_of_memory),
                known(lambda: of.percent(step, n, direction), lambda value: f"{significant(value, 2)}%"),
                *("" if rope else known(lambda: against(peer), factor) for peer in ("FLASH", "CUDNN"))])
        if steps:
            for peer in self._record.peers(direction, "peers-ladder"):
                rows.append([
                    PEER_NAMES[peer], known(lambda: of.peer_ms(peer, n, direction)), "",
                    known(lambda: of.ms(steps[0], n, direction) / of.peer_ms(peer, n, direction), factor), "",
                    known(lambda: 100 * self._record.row("peers-ladder", peer, direction, seq_q=n).flop_rate
                          / self._record.ceiling("matmul"), lambda value: f"{significant(value, 2)}%"),
                    *(known(lambda: of.against(peer, other, n, direction), factor) for other in ("FLASH", "CUDNN"))])
        return markdown(rows)

    def times(self, direction, *chapters):
        """Milliseconds by length: the chapters' results; or every rung of the chapters named."""
        steps = [step for chapter in chapters for step in self._record.rungs(chapter, direction)] or (
            [] if chapters else self._record.results(direction))
        rows = [["ms", *(f"N = {n}" for n in LENGTHS)]]
        return markdown(rows + [[self._name(step), *(known(lambda: self._of.ms(step, n, direction)) for n in LENGTHS)]
                                for step in steps])

    def compared(self, *steps, direction=None):
        """Milliseconds of these steps by length, how much faster the last one is than the others, and its TFLOP/s."""
        of, last = self._of, steps[-1]
        rows = [["N", *map(str, LENGTHS)]]
        rows += [[f"{step}, ms", *(known(lambda: of.ms(step, n, direction)) for n in LENGTHS)] for step in steps]
        rows += [[f"{step} / {last}", *(known(lambda: of.gain(step, last, n, direction)) for n in LENGTHS)]
                 for step in reversed(steps[:-1])]
        return markdown([*rows, [f"{last}, TFLOP/s", *(known(lambda: of.rate(last, n, direction)) for n in LENGTHS)]])

    def waits(self, *steps, direction="forward"):
        """A line for each kernel of these steps: issue slots, and the cycles that a warp waits from one instruction
        to the next, by what it waits for (Nsight Compute, N = 4096)."""
        stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
        columns = {"long_scoreboard": "global memory", "short_scoreboard": "shared memory, shuffles",
                   "mio_throttle": "load unit",
                   "barrier": "a barrier", "wait": "the instruction before", "not_selected": "other warps"}
        rows = [["N = 4096", "ms", "instructions, billions", "issue slots used", "cycles an instruction",
                 *columns.values()]]
        for step in steps:
            try:
                launches = self._record.profile(self._record.step(step, direction), direction)["launches"]
            except Missing:
                launches = [{"kernel": ""}]
            for launch in launches:
                def cell(metric, factor=1):
                    if metric not in launch:
                        raise Missing(metric)
                    return factor * launch[metric]

                kernel = re.split("[<(]", launch["kernel"])[0].split(" ")[-1].rpartition("::")[2]
                rows.append([f"`{step}`" + (f", {kernel}" if len(launches) > 1 else ""),
                             known(lambda: cell("gpu__time_duration.sum", 1e-6)),
                             known(lambda: cell("smsp__inst_executed.sum", 1e-9)),
                             known(lambda: cell("smsp__issue_active.avg.pct_of_peak_sustained_active"),
                                   lambda x: f"{x:.0f}%"),
                             known(lambda: cell("smsp__average_warp_latency_per_inst_issued.ratio")),
                             *(known(lambda: cell(stalled.format(reason))) for reason in columns)])
        return markdown(rows)

    def beside(self, chapter, direction):
        """Milliseconds in one process: PyTorch's attention, and every rung of the chapter."""
        steps = self._record.rungs(chapter, direction)
        rope = any(self._record.rope(step) for step in steps)
        peers = ["eager+FLASH", "compiled+FLASH"] if rope else []
        before = [step for step in self._record.results(direction) if step.split("/")[0] < chapter][-1:] if rope else []
        without_rope = [peer for peer in self._record.peers(direction, "peers-ladder")
                        if peer in (("FLASH",) if rope else PYTORCHS)]
        columns = [*peers, *without_rope, *before, *steps]
        last = peers[-1] if peers else "FLASH"
        names = [self._name(step) if "/" not in step or step in before else step.split("/")[1] for step in columns]
        if rope:
            names = [name + (" without RoPE" if step in ("FLASH", *before) else "")
                     for name, step in zip(names, columns)]
        rows = [["N", *names, f"{steps[-1].split('/')[1]} against {PEER_NAMES[last]}" if steps else ""]]
        for n in LENGTHS if steps else []:
            rows.append([str(n), *(known(lambda: self._of.peer_ms(step, n, direction)) for step in columns),
                         known(lambda: self._of.against(steps[-1], last, n, direction), factor)])
        return markdown(rows)

    def sweep(self, direction, peer, *others, mask=None, head_dim=None, longest=16384):
        """TFLOP/s on FlashAttention's sweep: of peers, of rungs ("10/overlap"), of every rung of a chapter ("06");
        and how many times as fast as the first peer the last one is."""
        columns = [step for word in (peer, *others) for step in (
            self._record.rungs(word, direction, f"sweep-fp16-{direction}") if word.isdigit()
            else [self._record.step(word, direction)])]
        if len(columns) < 1 + len(others):
            return NOT_YET
        rows = [["", *(PEER_NAMES.get(step, f"`{step.split('/')[-1]}`") for step in columns),
                 f"last against {PEER_NAMES[peer]}"]]
        for one_mask in ("full", "causal") if mask is None else (mask,):
            for size in (64, 128) if head_dim is None else (head_dim,):
                for n in (one for one in [*LENGTHS, 16384] if one <= longest):
                    def rate(step):
                        return self._of.tflops(step, n, size, one_mask, direction=direction)

                    rows.append([f"{one_mask}, D = {size}, N = {n}", *(known(lambda: rate(step)) for step in columns),
                                 known(lambda: rate(columns[-1]) / rate(peer), factor)])
        return markdown(rows)

    def beside_in(self, file, direction, *steps):
        """TFLOP/s of these peers and rungs at every point of one file that `./workbook dev peers` wrote."""
        rows = [["", *(PEER_NAMES.get(step, f"`{step.split('/')[-1]}`") for step in steps)]]
        for point in self._record.file(file)["points"]:
            problem = point["problem"]
            if point["direction"] == direction and not point.get("rope"):
                rates = {one["name"]: one.get("flop_rate") for one in point["results"]}
                rows.append([f"{'causal' if problem['causal'] else 'full'}, D = {problem['head_dim']}, N = "
                             f"{problem['seq_q']}",
                             *(significant(1e-12 * rates[step]) if rates.get(step) else "" for step in steps)])
        return markdown(rows)

    def against(self, direction, *steps):
        """How many times faster than the peers, over the sweep, for each mask: the geometric mean, and the range."""
        source, of = f"sweep-fp16-{direction}", self._of
        results = [step for step in self._record.results(direction, source) if not self._record.rope(step)]
        if not results:
            return NOT_YET

        def everywhere(step, causal):
            """Whether it was timed at every point: else its mean is of other points than the peers'."""
            chapter = step.split("/")[0]
            return all(any(one["name"].split("/")[0] == chapter and self._record.step(one["name"], direction) == step
                           and "seconds" in one
                           for one in point["results"])
                       for point in self._record.piece(source)["points"]
                       if point["direction"] == direction and point["problem"]["causal"] == causal
                       and not point.get("rope"))

        def text(step, peer, mask):
            where = {"direction": direction, "mask": mask}
            return known(lambda: [one(step, peer, **where) for one in (of.mean_against, of.least_against,
                                                                       of.most_against)],
                         lambda found: f"{found[0]:.2f}× ({found[1]:.2f}–{found[2]:.2f})")

        peers = self._record.peers(direction, source)
        rows = [["", *(PEER_NAMES[peer] for peer in peers)]]
        for step in [self._record.step(step, direction) for step in steps] or results:
            for mask, words in (("full", "no mask"), ("causal", "causal")):
                if everywhere(step, mask == "causal"):
                    name = self._name(
                        step, direction) if step in results else f"`{step.split('_')[0]}/{step.split('/')[1]}`"
                    rows.append([f"{name}, {words}", *(text(step, peer, mask) for peer in peers)])
        return markdown(rows)

    def memory(self, direction):
        """Device memory: inputs, outputs and workspace."""
        lengths = sorted({row.problem.seq_q for row in self._record.rows if row.source == "memory"})
        rows = [["B=1 H=8 D=64", *(f"N = {n}" for n in lengths)]]
        return markdown(rows + [[self._name(step),
                                 *(known(lambda: self._of.device_bytes(step, n, direction), amount_of_memory)
                                   for n in lengths)]
                                for step in self._record.steps(direction, "memory")])

    def accuracy(self, direction, *steps, dtype="fp16", head_dim=128):
        """The relative norm of the error, with 256 queries: a line for each tensor and number of keys."""
        measured = self._of_accuracy("errors")
        if not measured:
            return NOT_YET
        tensors = {"o": "O"} if direction == "forward" else {"dq": "dQ", "dk": "dK", "dv": "dV"}
        rows = [[f"{dtype}, D = {head_dim}",
                 *(self._name(self._record.step(step, direction), direction) for step in steps)]]
        for keys in dict.fromkeys(one["problem"]["seq_k"] for one in measured):
            for tensor, name in tensors.items():
                rows.append([f"{name}, {keys} keys",
                             *(known(lambda: self._of.relative_error(step, tensor, keys, dtype, head_dim), power)
                               for step in steps)])
        return markdown(rows)

    def accuracy_with_extras(self):
        """What runs where no chapter is named, with each extra: the largest ratio to FlashAttention-2's."""
        extras = dict.fromkeys(one["problem"].get("extras") for one in self._of_accuracy("errors"))
        if not any(extras):
            return NOT_YET
        tensors = {"o": "O", "dq": "dQ", "dk": "dK", "dv": "dV"}
        names = {"window1024_0": "window of 1024 keys", "softcap20": "softcap 20", "alibi": "ALiBi"}
        rows = [["", *tensors.values()]]
        for extra in filter(None, extras):
            ratios = (known(lambda: self._of.most_error_with(extra, tensor), "{:.3f}".format) for tensor in tensors)
            rows.append([names.get(extra, extra), *ratios])
        return markdown(rows)

    def loss_scaling(self, *steps):
        """The same for dQ and dK with dO times a power of two, N = 1024, D = 64; overflow is an infinite error."""
        measured = self._of_accuracy("loss_scaling")
        if not measured:
            return NOT_YET
        columns = [(step, dtype, tensor) for step in steps for dtype in ("fp16", "bf16") for tensor in ("dq", "dk")]
        rows = [["dO times", *(f"{self._name(self._record.step(step, 'backward'), 'backward')}, {dtype}, "
                               f"d{tensor[1].upper()}"
                               for step, dtype, tensor in columns)]]
        for exponent in measured[0]["exponents"]:
            rows.append([f"2^{exponent}", *(known(lambda: self._of.scaled_error(step, tensor, exponent, dtype), power)
                                            for step, dtype, tensor in columns)])
        return markdown(rows)

    def _of_accuracy(self, part: str) -> list[JsonObject]:
        try:
            return self._record.piece("accuracy")[part]
        except Missing:
            return []

    def repeated(self):
        """How far a second measurement lies from the first."""
        rows = [["", "times measured twice", "apart: median", "90% within", "largest"]]
        for source, ratios in sorted(repeated(self._record).items()):
            apart = sorted(100 * abs(ratio - 1) for ratio in ratios)
            tenth = apart[min(len(apart) - 1, int(0.9 * len(apart)))]
            rows.append([f"`{source}`", str(len(apart)),
                         *(f"{value:.1f}%" for value in (statistics.median(apart), tenth, apart[-1]))])
        return markdown(rows)

    def machine(self):
        """What was measured on, and the ceilings of this GPU."""
        try:
            context = self._record.piece("peers-ladder")["context"]
        except Missing:
            return NOT_YET
        machine = context["machine"]
        rows = [["GPU", "driver", "CUDA", "PyTorch", "SM clock at most", "power limit", "commit", "a matrix product",
                 "a copy"],
                [machine["gpu"], str(machine["driver"]), str(machine["cuda"]), context["torch"],
                 f"{machine['sm_clock_max_mhz']:.0f} MHz", f"{machine['power_limit_w']:.0f} W",
                 f"`{context['commit']}`", known(self._of.matmul_tflops, lambda value: f"{value:.0f} TFLOP/s"),
                 known(self._of.copy_tbytes, lambda value: f"{value:.2f} TB/s")]]
        return markdown(rows)

    def training(self, *file):
        """The runs of common/python/examples/gpt.py: final loss, its distance from PyTorch's, tokens per second."""
        try:
            of = Training.of(self._record, *file)
        except Missing:
            return NOT_YET
        rows = [["", "validation loss at the end", "away from PyTorch's: mean", "at most", "million tokens/s",
                 "of PyTorch's"]]
        for name in of.names():
            def cell(what, text, alone=False):
                """Nothing where PyTorch's would be compared with itself."""
                return "" if name == of.pytorchs(name) and not alone else known(lambda: of.value(name, what), text)

            rows.append([f"`{name}`", cell("loss", "{:.4f}".format, True),
                         *(cell(what, "{:.4f}".format) for what in ("apart", "most_apart")),
                         cell("tokens_per_second", lambda rate: significant(1e-6 * rate), True), cell("speed", factor)])
        return markdown(rows)

    # Chapters 10 and 11

    def _sweep(self, direction, dtype="fp16", second=False):
        record = SecondMeasurement(self._record) if second else self._record
        return experiment_tables.Sweep(record.file(f"sweep-{dtype}-{direction}.json"), direction)

    def rungs_of(self, chapter, direction):
        """TFLOP/s of every rung of the chapter at three points of the sweep, and of peers."""
        return experiment_tables.rungs_of(self._sweep(direction), chapter, direction)

    def points_of(self, chapter, direction):
        """TFLOP/s of the chapter's rungs at every point of the sweep."""
        return experiment_tables.points_of(self._sweep(direction), chapter, direction)

    def peers_beside(self, direction):
        """TFLOP/s of the peers at every point of the sweep."""
        return experiment_tables.peers(self._sweep(direction), direction)

    def steps_of(self, chapter, direction):
        """How many times as fast each rung is as the one that it starts from, at six points of the sweep."""
        return experiment_tables.steps_of(self._sweep(direction), chapter, direction)

    def gains(self, step, direction="forward"):
        """How many times as fast a rung, "10/dynamic", is as the one it starts from, at every point of the sweep."""
        chapter, _, rung = step.partition("/")
        return experiment_tables.gains(self._sweep(direction), chapter, rung, direction)

    def again(self, step, direction):
        """A step against peers: the geometric mean and the least of the sweep, measured twice in both dtypes."""
        return experiment_tables.again(
            {f"{dtype}{', again' * second}": partial(self._sweep, direction, dtype, second)
             for dtype in ("fp16", "bf16") for second in (False, True)}, step, direction)

    def experiment(self, name):
        """A table of one of the experiments that experiment_tables.py names in EXPERIMENTS."""
        return experiment_tables.experiment(self._of, name)

    # Ours beside peers in both ways, on every GPU with a record

    def sweep_in_both_ways(self, direction):
        """FlashAttention's sweep, launch by launch and back to back."""
        return timing_tables.sweeps(self._record, direction)

    def models_in_both_ways(self, direction):
        """The sweep of models, launch by launch and back to back."""
        return timing_tables.models(self._record, direction)

    def points_of_models(self, direction):
        """The sweep of models point by point, of this GPU."""
        return timing_tables.model_points(self._record, direction)

    # Packed sequences and block masks

    def extras_in_both_ways(self):
        """Beside what runs without them, and beside peers."""
        return document_tables.extras(self._of)

    def packed_in_both_ways(self):
        """Beside what runs without them, and beside peers."""
        return document_tables.packed(self._of)

    def blocks_in_both_ways(self):
        """Beside their tiles' share, and beside flex_attention."""
        return document_tables.blocks(self._of)

    def block_parts(self):
        """What masks cost beside their tiles, and what their parts do."""
        return document_tables.parts(self._of)

    # Eight bits

    def eight_bits_in_short(self):
        """Each candidate's speed, also beside cuDNN's in eight bits, and its error."""
        return eight_bit_tables.in_short(self._of)

    def points_in_eight_bits(self):
        """TFLOP/s at every point of the sweep, in both ways."""
        return eight_bit_tables.points(self._of)

    # What ./workbook dev machine found

    def _of_experiments(self, table: Callable[[Microbenchmarks], str]) -> str:
        try:
            return table(Microbenchmarks.of(self._record))
        except Missing:
            return NOT_YET

    def levels(self):
        """Each memory: its size, the latency of a load, the bandwidth of all."""
        return self._of_experiments(microbenchmark_tables.levels)

    def latencies(self):
        """The latency of a load from global memory, by how much of it is in use."""
        return self._of_experiments(microbenchmark_tables.latencies)

    def branches(self):
        """What it costs when the lanes of a warp go two ways."""
        return self._of_experiments(microbenchmark_tables.branches)

    def sums(self):
        """Sums in fp16 and in fp32 on tensor cores: relative error and speed."""
        return self._of_experiments(microbenchmark_tables.sums)

    def divisions(self):
        """Attention whose warps divide a tile by queries, or by keys."""
        return self._of_experiments(microbenchmark_tables.divisions)
