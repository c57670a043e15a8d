"""The example trains: 20 steps of the tiny model, whose losses are those of PyTorch's attention whichever chapter's it
is; and what its command says and keeps.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants
one.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw

if faw.DEVICE == "cuda" and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "examples"))
import gpt

torch.set_num_threads(1)  # for tensors as small as these more would wait for one another


def unchanging(of_short_paragraphs=False):
    """A text that is the same in every commit: how far apart losses drift depends on the batches."""
    words = (gpt.ROOT / "LICENSE").read_text()
    words = words.replace(", ", "\n\n") if of_short_paragraphs else words
    return gpt.Text({"held out": words[:300], "learned": words[300:]})


def gradients(name, text, *words, seen_as=None):
    """Of the weights that make q, k and v in the first layer, where logits have a spread of several units. seen_as:
    what to make of a packed batch."""
    options = gpt.arguments(["--tiny", *words])
    torch.manual_seed(1)
    model = gpt.Gpt(len(text.characters), options, gpt.RUNS[name]).to(faw.DEVICE)
    with torch.no_grad():
        for block in model.blocks:
            block.qkv.weight *= 3
    if options.packed:
        batch = gpt.packed_batches(text, options, 1, faw.DEVICE)[0](0)
        if seen_as:
            batch = seen_as(batch)
    else:
        rows = text.training[:options.batch * (options.length + 1)].view(options.batch, -1).to(faw.DEVICE)
        batch = gpt.Batch(rows[:, :-1], rows[:, 1:])
    with torch.autocast(faw.DEVICE, dtype=torch.bfloat16):
        logits = model(batch.inputs, batch.packed)
    torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten()).backward()
    return model.blocks[0].qkv.weight.grad.chunk(3)


def pytorchs(name):
    return "sdpa" if gpt.RUNS[name].positions == "learned" else "sdpa_rope"


class Training(unittest.TestCase):
    def test_gradients_are_pytorchs(self):
        text = unchanging()
        for name, run in gpt.RUNS.items():
            if run.attention:
                for what, got, expected in zip("qkv", gradients(name, text), gradients(pytorchs(name), text)):
                    with self.subTest(name, what=what):
                        apart = ((got - expected).norm() / expected.norm()).item()
                        print(f"{name}: gradients of {what} are {apart:.1e} from PyTorch's", flush=True)
                        self.assertLess(apart, 0.05)

    def test_a_window(self):
        """N tokens, in PyTorch's mask and in the window: one more is seen in the gradients, and so is none."""
        text = unchanging()
        ours, *others = [torch.cat(gradients(name, text, f"--window={window}"))
                            for name, window in (("12_variants", 5), ("sdpa", 5), ("sdpa", 4), ("sdpa", 6))]
        close, *far = [((ours - other).norm() / other.norm()).item() for other in others]
        print(f"12_variants, a window of 5: gradients are {close:.1e} from PyTorch's, beside {far}", flush=True)
        self.assertLess(close, 0.05)
        self.assertGreater(min(far), 0.2)
        whole, wide = (torch.cat(gradients("12_variants", text, *words)) for words in ([], ["--window=64"]))
        self.assertLess(((wide - whole).norm() / whole.norm()).item(), 0.05)

    def test_packed_paragraphs(self):
        """As PyTorch has them with padding; and not as if they were one, or as if one token were another's."""
        text = unchanging(of_short_paragraphs=True)

        def as_one(batch):
            begins, longest = batch.packed.begins[[0, -1]], batch.inputs.shape[1]
            return batch._replace(packed=batch.packed._replace(begins=begins, longest=longest))

        def one_later(batch):
            begins = batch.packed.begins.clone()
            begins[1:-1] += 1
            return batch._replace(packed=batch.packed._replace(begins=begins))

        expected = torch.cat(gradients("sdpa", text, "--packed"))
        close, *far = [((torch.cat(gradients("12_variants", text, "--packed", seen_as=seen_as)) - expected).norm()
                        / expected.norm()).item() for seen_as in (None, as_one, one_later)]
        print(f"12_variants, packed: gradients are {close:.1e} from PyTorch's, beside {far}", flush=True)
        self.assertLess(close, 0.05)
        self.assertGreater(min(far), 0.2)

    def test_what_is_packed(self):
        text = unchanging(of_short_paragraphs=True)
        options = gpt.arguments(["--tiny", "--packed"])
        batch_of, held_out = gpt.packed_batches(text, options, 1, "cpu")
        whole = "".join(text.characters[i] for i in text.training.tolist())
        for batch in (batch_of(0), batch_of(1)):
            begins = batch.packed.begins.tolist()
            lengths = [end - begin for begin, end in zip(begins, begins[1:])]
            self.assertEqual((begins[0], begins[-1], batch.packed.begins.dtype), (0, 128, torch.int32))
            self.assertTrue(len(set(lengths)) > 1 and max(lengths) <= 64 and batch.packed.longest == max(lengths))
            inputs, targets = ("".join(text.characters[i] for i in one[0].tolist())
                               for one in (batch.inputs, batch.targets))
            for begin, end in zip(begins, begins[1:]):
                document = inputs[begin:end] + targets[end - 1]
                self.assertEqual(document[1:], targets[begin:end])
                self.assertIn(document, whole)
                self.assertTrue(whole.startswith(document) or "\n\n" + document in whole)
            self.assertEqual(batch.packed.place.tolist(), [i for length in lengths for i in range(length)])
            rows = torch.randn(1, 2, 128, 8)
            self.assertTrue(torch.equal(batch.packed.without_padding(batch.packed.padded(rows)), rows))
        self.assertEqual(len(held_out), 2)

    def test_losses_lie_on_one_another(self):
        self.check_losses()

    def test_losses_of_packed_paragraphs_with_a_window(self):
        self.check_losses("--packed", "--window=20")

    def check_losses(self, *words):
        text, losses = unchanging(of_short_paragraphs=bool(words)), {}
        for name, run in gpt.RUNS.items():
            if not run.other_seed and (run.knows_variants() or not words):
                report = gpt.train(name, text, gpt.arguments(["--tiny", "--steps=20", *words]), faw.DEVICE)
                losses[name] = torch.tensor(report["losses"])
        for name, got in losses.items():
            expected = losses[pytorchs(name)]
            with self.subTest(name, words=words):
                self.assertEqual(got.shape, (20,))
                self.assertLess(got[-5:].mean(), 0.85 * got[0])
                apart = (got - expected).abs()
                print(f"{name}: losses are at most {apart.max():.1e} from PyTorch's", flush=True)
                self.assertLess(apart[0], 1e-3)  # bf16 tells them apart by 1e-4; no mask, by 2e-2
                self.assertLess(apart.max(), 5e-3)


class TheCommand(unittest.TestCase):
    def ending_of(self, *words):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
            status = gpt.main(words)
        return status, out.getvalue().splitlines(), error.getvalue()

    def test_what_it_says_and_keeps(self):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "gpt.json"
            status, lines, error = self.ending_of("sdpa", "sdpa_other_seed", "--tiny", "--steps=15", "--window=16",
                                                  f"--out={out}")
            self.assertEqual((status, error), (0, ""))
            report = json.loads(out.read_text())
        self.assertRegex(lines[0], r"^sdpa: step 10 of 15, training loss \d\.\d{3}, validation loss \d\.\d{3}, \d+ "
                                   r"tokens/s$")
        self.assertEqual(len(lines), 6)
        self.assertEqual(lines[-1].split()[:4], ["sdpa_other_seed", "validation", "loss",
                                                 f"{report['runs'][1]['validation']['losses'][-1]:.4f},"])
        one, other = report["runs"]
        self.assertEqual(report["model"]["window"], 16)
        self.assertEqual((one["seed"], other["seed"], one["validation"]["steps"]), (1, 2, [10, 15]))
        self.assertNotEqual(one["losses"], other["losses"])
        self.assertEqual(report["text"]["sha256"], gpt.Text(gpt.files()).about()["sha256"])
        self.assertEqual(report["text"]["files"], len(gpt.files()))
        self.assertIn("commit", report["context"])

    def test_it_ends_when_the_time_is_over(self):
        _, lines, _ = self.ending_of("sdpa", "--tiny", "--steps=1000000", "--seconds=1")
        self.assertLess(len(lines), 1000)

    def test_what_is_held_out_is_not_learned(self):
        text = gpt.Text(gpt.files())
        whole = sum(map(len, text.files.values()))
        self.assertEqual(len(text.training) + len(text.validation), whole)
        self.assertTrue(0.05 * whole < len(text.validation) < 0.2 * whole)

    def test_bad_input_is_one_line(self):
        for words, expected in [(["sdpb"], "there is no run sdpb: there are sdpa, "),
                                (["--steps=0"], "0 is not a whole number from 1"),
                                (["--window=0"], "0 is not a whole number from 1"),
                                (["--window=-1"], "-1 is not a whole number from 1"),
                                (["--window=8,0"], "8,0 is not a whole number from 1"),
                                (["sdpa", "09_rope_fused", "--window=8"],
                                 "--window is given and 09_rope_fused does not know it: those that do are sdpa, .*12_vari"),
                                (["08_causal_earlystop", "--packed"], "--packed is given and 08_causal_earlystop does "
                                                                      "not know it: those that do are sdpa, .*12_vari"),
                                (["--seed=x"], "x is not a whole number"),
                                (["--out=/nowhere/x.json"], "there is no directory /nowhere"),
                                (["--out=/"], "--out is /, a directory"),
                                (["--fast"], "unrecognized arguments: --fast")]:
            status, lines, error = self.ending_of(*words)
            self.assertEqual((status, lines), (2, []), words)
            self.assertRegex(error, rf"^gpt\.py: .*{expected}.*\n$")

    @unittest.skipIf(faw.DEVICE == "cuda", "it runs on the GPU")
    def test_the_large_model_is_not_for_the_engine(self):
        self.assertEqual(self.ending_of("08_causal_earlystop")[::2],
                         (2, "gpt.py: this runs on the CPU, for which the model is too large: add --tiny\n"))


if __name__ == "__main__":
    unittest.main()
