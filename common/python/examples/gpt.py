"""A character-level GPT that learns this project's own lessons and sources, with the attention of a chapter or of
PyTorch.

    python3 common/python/examples/gpt.py                                        # all runs, one after another
    python3 common/python/examples/gpt.py sdpa 08_causal_earlystop --steps 300   # two of them, a short while

Runs with the same positions and the same seed start from the same weights and read the same batches, so they differ in
nothing but the attention, and their losses should lie on one another. Runs of the other seed show how far apart losses
lie without any reason. README.md, beside this file, shows what an H200 makes of it.

It needs PyTorch, and for the chapters the package flash_attention_workbook: installed, or built in this tree. --tiny is
a model for the engine, where 20 steps take seconds.
"""

import argparse
import functools
import hashlib
import math
import random
import re
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple, Optional

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("gpt.py: it needs PyTorch: pip install torch", file=sys.stderr)
    sys.exit(2)

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "common"), str(ROOT / "common" / "python")]
from tools.base import Failure, cuda  # noqa: E402
from tools.record import commit, result_files  # noqa: E402

HEAD_DIM = 64
HIGHEST_RATE = 1e-3  # of learning
HELD_OUT = 10  # every tenth file is for validation
SUFFIXES = (".md", ".cu", ".cc", ".h", ".py")


class Run(NamedTuple):
    positions: str  # "learned": a vector for each position is added to the embedding; "rope": q and k are rotated
    attention: Optional[dict] = None  # arguments of flash_attention_workbook.attention; none means PyTorch's
    other_seed: bool = False

    def knows_variants(self):  # windows, and packed sequences
        return self.attention is None or self.attention["chapter"] == "12_variants"


RUNS = {
    "sdpa": Run("learned"),
    "sdpa_other_seed": Run("learned", other_seed=True),
    # Chapter 05 has no backward: that of chapter 07 starts from its O and LSE.
    "05_online_softmax": Run("learned", {"chapter": "05_online_softmax", "backward_chapter": "07_backward"}),
    "08_causal_earlystop": Run("learned", {"chapter": "08_causal_earlystop"}),
    "12_variants": Run("learned", {"chapter": "12_variants"}),
    "sdpa_rope": Run("rope"),
    "sdpa_rope_other_seed": Run("rope", other_seed=True),
    "09_rope_fused": Run("rope", {"chapter": "09_rope_fused"}),
}


# --- Attention -------------------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def workbook():
    try:
        import flash_attention_workbook
    except ImportError as error:
        raise Failure(str(error), status=2) from None
    return flash_attention_workbook


def rotated(x, cos, sin):
    """Rows of x [B, H, N, D] turned by the angles of their positions, cos and sin [N, D / 2]; rounded once."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


@functools.lru_cache(None)
def last_tokens(window, length, device):
    """[N, N], True for a token itself and the window - 1 before it."""
    before = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)
    return (before >= 0) & (before < window)


class Packed(NamedTuple):
    """Sequences of unequal length, one behind the other, in a batch of one."""

    begins: torch.Tensor  # int32: of each, and the total
    longest: int
    number: torch.Tensor  # of each token: which sequence it is of
    place: torch.Tensor  # and where it is there

    def rows(self, x):
        """[.., 1, H, total, D] as [.., total, H, D]."""
        return x.squeeze(-4).transpose(-3, -2)

    def padded(self, x):
        """[1, H, total, D] as [sequences, H, longest, D]: behind a sequence there are zeros."""
        x = self.rows(x)
        room = x.new_zeros(len(self.begins) - 1, self.longest, *x.shape[1:])
        return room.index_put((self.number, self.place), x).transpose(1, 2)

    def without_padding(self, x):
        """The other way round."""
        return x.transpose(1, 2)[self.number, self.place].transpose(0, 1).unsqueeze(0)


def attend(run, qkv, rope, window, packed=None):
    """Causal attention of qkv [3, B, H, N, D], to the last `window` tokens if that is not None, and within each of
    `packed`; rope is the tables (cos, sin), or None."""
    if run.attention is None:
        q, k, v = qkv
        if rope:
            q, k = rotated(q, *rope), rotated(k, *rope)
        if packed:
            q, k, v = packed.padded(q), packed.padded(k), packed.padded(v)
        mask = {"attn_mask": last_tokens(window, q.shape[2], q.device)} if window else {"is_causal": True}
        o = F.scaled_dot_product_attention(q, k, v, **mask)
        return packed.without_padding(o) if packed else o
    window = (window - 1, 0) if window else None
    try:
        if packed:
            begins, longest = [packed.begins] * 2, [packed.longest] * 2
            o = workbook().attention_packed(*packed.rows(qkv), *begins, *longest, causal=True, window=window)
            return o.transpose(0, 1).unsqueeze(0)
        return workbook().attention(*qkv.contiguous(), causal=True, rope=rope, window=window, **run.attention)
    except workbook().Error as error:  # what this GPU, or this library, does not have
        raise Failure(str(error), status=2) from None


# --- The model -------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width, run, window):
        super().__init__()
        self.run, self.window = run, window
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, rope, packed):
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, -1, HEAD_DIM)
        o = attend(self.run, qkv.permute(2, 0, 3, 1, 4), rope, self.window, packed)
        x = x + self.out(o.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, characters, options, run):
        super().__init__()
        self.embedding = nn.Embedding(characters, options.width)
        self.blocks = nn.ModuleList(Block(options.width, run, options.window) for _ in range(options.layers))
        self.norm, self.head = nn.LayerNorm(options.width), nn.Linear(options.width, characters, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        if run.positions == "learned":
            self.position = nn.Parameter(0.02 * torch.randn(options.length, options.width))
            self.cos, self.sin = None, None
        else:
            frequencies = 10000.0 ** (-torch.arange(0, HEAD_DIM, 2).double() / HEAD_DIM)
            angles = torch.outer(torch.arange(options.length).double(), frequencies)
            self.position = None
            self.register_buffer("cos", angles.cos().float())
            self.register_buffer("sin", angles.sin().float())

    def forward(self, x, packed=None):
        x = self.embedding(x)
        at = packed.place if packed else slice(None)
        if self.position is not None:
            x = x + self.position[at]
        for block in self.blocks:
            x = block(x, None if self.cos is None else (self.cos[at], self.sin[at]), packed)
        return self.head(self.norm(x))


# --- The text --------------------------------------------------------------------------------------------------------


def files():
    """{name: text} of the chapters and of common/, in an order that is the same everywhere."""
    paths = sorted(path for folder in [*ROOT.glob("[0-9][0-9]_*"), ROOT / "common"] for path in folder.rglob("*")
                   if path.suffix in SUFFIXES)
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


class Text:
    """Characters as numbers: of the files that are learned, and of those that are held out."""

    def __init__(self, files):
        self.files, self.held_out = files, list(files)[::HELD_OUT]
        self.characters = sorted(set().union(*files.values()))
        self.training = self._numbers(name for name in files if name not in self.held_out)
        self.validation = self._numbers(self.held_out)

    def _numbers(self, names):
        number = {character: i for i, character in enumerate(self.characters)}
        return torch.tensor([number[character] for name in names for character in self.files[name]])

    def paragraphs(self, held_out):
        """[(begin, end)] among the numbers of one of the two, of two characters and more."""
        whole = "".join(text for name, text in self.files.items() if (name in self.held_out) == held_out)
        ends = [*(found.end() for found in re.finditer("\n{2,}", whole)), len(whole)]
        return [(begin, end) for begin, end in zip([0, *ends], ends) if end - begin > 1]

    def about(self):
        whole = hashlib.sha256("".join(self.files.values()).encode()).hexdigest()
        return {"training_characters": len(self.training), "validation_characters": len(self.validation),
                "different_characters": len(self.characters), "sha256": whole,
                "files": len(self.files), "held_out": len(self.held_out)}


class Batch(NamedTuple):
    inputs: torch.Tensor
    targets: torch.Tensor  # the character behind each one
    packed: Optional[Packed] = None


def pack(characters, paragraphs, tokens, longest, choice):
    """A batch of paragraphs, drawn with `choice`, with so many tokens in all; of each at most the first `longest`."""
    drawn, left = [], tokens
    while left:
        begin, end = choice.choice(paragraphs)
        drawn.append((begin, min(end - begin - 1, longest, left)))
        left -= drawn[-1][1]
    firsts, lengths = torch.tensor(drawn, device=characters.device).unbind(1)
    begins = F.pad(lengths.cumsum(0), (1, 0))
    number = torch.arange(len(drawn), device=characters.device).repeat_interleave(lengths, output_size=tokens)
    place = torch.arange(tokens, device=characters.device) - begins[number]
    at = (firsts[number] + place).unsqueeze(0)
    return Batch(characters[at], characters[at + 1],
                 Packed(begins.int(), max(length for _, length in drawn), number, place))


# --- Training --------------------------------------------------------------------------------------------------------


def learning_rate(step, steps):
    """Rises in the first twentieth of the steps, and sinks to a tenth of the highest along a cosine."""
    rising = max(1, steps // 20)
    if step < rising:
        return HIGHEST_RATE * (step + 1) / rising
    return HIGHEST_RATE * (0.55 + 0.45 * math.cos(math.pi * (step - rising) / max(1, steps - rising)))


def batches(text, options, seed, device):
    """(the batch of a step, those that are held out): rows of `length` characters that begin anywhere."""
    along = torch.arange(options.length + 1, device=device)
    choice = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(text.training) - options.length, (options.steps, options.batch, 1),
                           generator=choice).to(device)
    begins = torch.arange(0, len(text.validation) - options.length, options.length)
    begins = begins[::max(1, len(begins) // options.windows)].to(device).unsqueeze(1)
    training, validation = text.training.to(device), text.validation.to(device)

    def batch_at(characters, begins):
        rows = characters[begins + along]
        return Batch(rows[:, :-1], rows[:, 1:])

    return (lambda step: batch_at(training, starts[step]),
            [batch_at(validation, some) for some in begins.split(options.batch)])


def packed_batches(text, options, seed, device):
    """The same of paragraphs of unequal length, as many characters in all."""
    def drawn(characters, held_out, seed):
        characters, choice, paragraphs = characters.to(device), random.Random(seed), text.paragraphs(held_out)
        return lambda: pack(characters, paragraphs, options.batch * options.length, options.length, choice)

    of_training, of_validation = drawn(text.training, False, seed), drawn(text.validation, True, 0)
    return lambda step: of_training(), [of_validation() for _ in range(options.windows // options.batch)]


def train(name, text, options, device):
    """What --out keeps of this run: the loss of each step and of the validations, and the tokens per second between
    these."""
    run, seed = RUNS[name], options.seed + RUNS[name].other_seed
    torch.manual_seed(seed)
    model = Gpt(len(text.characters), options, run).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    batch_of, held_out = (packed_batches if options.packed else batches)(text, options, seed, device)

    def loss_of(batch):
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(batch.inputs, batch.packed)
        return F.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten())

    def validated():
        with torch.no_grad():
            parts = [(batch.targets.numel(), loss_of(batch)) for batch in held_out]
        return sum(count * loss.item() for count, loss in parts) / sum(count for count, _ in parts)

    def now():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    losses, steps, validations, rates = [], [], [], []
    begin = since = now()
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps)
        loss = loss_of(batch_of(step))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % options.every == 0 or step + 1 == options.steps:
            count = step + 1 - (steps[-1] if steps else 0)
            rates.append(count * options.batch * options.length / (now() - since))
            steps.append(step + 1)
            validations.append(validated())
            print(f"{name}: step {step + 1} of {options.steps}, training loss {loss.item():.3f}, "
                  f"validation loss {validations[-1]:.3f}, {rates[-1]:.0f} tokens/s", flush=True)
            since = now()
            if options.seconds and since - begin > options.seconds:
                break
    return {
        "name": name,
        "positions": run.positions,
        "attention": run.attention or "scaled_dot_product_attention",
        "seed": seed,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "tokens_per_second": round(statistics.median(rates[1:] or rates)),  # the first ones are for warming up
        "rates": [round(rate) for rate in rates],
        "losses": [round(loss, 5) for loss in torch.stack(losses).tolist()],
        "validation": {"steps": steps, "losses": [round(loss, 6) for loss in validations]},
    }


# --- The command line ------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """argparse, but what is wrong fits on one line."""

    def error(self, message):
        raise Failure(f"{message} (see --help)", status=2)


def _whole(said):
    if not said.isdecimal() or not 1 <= int(said) <= 1000000:
        raise argparse.ArgumentTypeError(f"{said} is not a whole number from 1 to 1000000")
    return int(said)


def arguments(said=None):
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("runs", nargs="*", metavar="RUN",
                        help=f"which to train: {', '.join(RUNS)} (default: all, or those that know --window and "
                             "--packed)")
    parser.add_argument("--seed", type=_whole, default=1,
                        help="of the weights and the batches; the other seed is the next one")
    parser.add_argument("--steps", type=_whole, default=1000, help="of each run (default: 1000)")
    parser.add_argument("--seconds", type=_whole, help="a run ends with the first validation after so long")
    parser.add_argument("--window", type=_whole, metavar="N",
                        help="a token sees N tokens, itself and the N - 1 before it, which is attention's window=(N - "
                             "1, 0) (default: itself and all before it)")
    parser.add_argument("--packed", action="store_true",
                        help="a batch has paragraphs of unequal length, one behind the other, and a token sees those "
                             "of its own (default: rows of one length)")
    parser.add_argument("--tiny", action="store_true", help="a model for the engine")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a JSON file for the losses and speeds")
    options = parser.parse_args(said)
    for name in options.runs:
        if name not in RUNS:
            parser.error(f"there is no run {name}: there are {', '.join(RUNS)}")
    if options.out and not options.out.resolve().parent.is_dir():
        parser.error(f"--out is {options.out}: there is no directory {options.out.parent}")
    if options.out and options.out.is_dir():
        parser.error(f"--out is {options.out}, a directory: it must be a file")
    given = "--window" if options.window else "--packed" if options.packed else None
    able = [name for name, run in RUNS.items() if run.knows_variants() or not given]
    for name in options.runs:
        if name not in able:
            parser.error(f"{given} is given and {name} does not know it: those that do are {', '.join(able)}")
    options.runs = options.runs or able
    options.layers, options.width, options.length, options.batch, options.every, options.windows = (
        (2, 2 * HEAD_DIM, 64, 2, 10, 4) if options.tiny else (6, 4 * HEAD_DIM, 1024, 32, 50, 256))
    return options


def device_for(options):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if any(RUNS[name].attention for name in options.runs):
        if workbook().DEVICE == "cuda" and device == "cpu":
            raise Failure(f"flash_attention_workbook is built for a GPU, and PyTorch {torch.__version__} finds none",
                          status=2)
        device = workbook().DEVICE
    if device == "cpu" and not options.tiny:
        raise Failure("this runs on the CPU, for which the model is too large: add --tiny", status=2)
    return device


def context(device):
    about = {"commit": commit(), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "torch": torch.__version__}
    if device == "cpu":
        return {**about, "gpu": None}
    return {**about, **cuda.machine(), "gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}


def main(said=None):
    try:
        options = arguments(said)
        device = device_for(options)
        text = Text(files())
        report = {"context": context(device),
                  "model": {key: getattr(options, key)
                            for key in ("layers", "width", "length", "window", "packed", "batch", "steps")},
                  "text": text.about(), "runs": []}
        for name in options.runs:
            report["runs"].append(train(name, text, options, device))
            if options.out:  # after each: what is there stays, if a later one fails
                result_files.write(options.out, report)
        width = max(map(len, options.runs))
        for run in report["runs"]:
            print(f"{run['name']:{width}}  validation loss {run['validation']['losses'][-1]:.4f}, "
                  f"{run['tokens_per_second']} tokens/s")
        return 0
    except Failure as failure:
        print(f"gpt.py: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        print("gpt.py: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
