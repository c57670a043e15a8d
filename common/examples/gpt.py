"""A character-level GPT that learns this project's own sources and lessons, with the attention of a chapter or of PyTorch.

    python3 common/examples/gpt.py --attention 08_causal_earlystop --out 08.json
    python3 common/examples/gpt.py --attention sdpa --out sdpa.json

The same seed gives the same weights and the same batches, so two runs differ in nothing but the attention, and their
losses, which --out keeps as JSON, should lie on one another. Positions are told by RoPE: chapter 09 rotates q and k
itself, for the others they are rotated in PyTorch. Chapter 05 has no backward and takes that of chapter 08.

It needs PyTorch and the package flash_attention_workbook (`pip install .`). --tiny is a model for the engine, where 20
steps take seconds.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTENTIONS = {  # the arguments of flash_attention_workbook.attention
    "sdpa": None,
    "05_online_softmax": {"chapter": "05_online_softmax", "backward_chapter": "08_causal_earlystop"},
    "08_causal_earlystop": {"chapter": "08_causal_earlystop"},
    "09_rope_fused": {"chapter": "09_rope_fused"},
}
HEAD_DIM = 64


def text():
    """A megabyte and more: the chapters and common/, in an order that is the same everywhere."""
    files = [path for folder in [*ROOT.glob("[0-9][0-9]_*"), ROOT / "common"] for path in folder.rglob("*")
             if path.suffix in (".md", ".cu", ".cc", ".h", ".py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(files))


def rotated(x, cos, sin):
    """Rows of x [B, H, N, D] turned by the angles of their positions, cos and sin [N, D / 2]; rounded once."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


def attend(name, q, k, v, rope):
    """Causal attention of q, k and v [B, H, N, D], as ATTENTIONS has it."""
    if name != "09_rope_fused":
        q, k = rotated(q, *rope), rotated(k, *rope)
    if name == "sdpa":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return workbook.attention(q.contiguous(), k.contiguous(), v.contiguous(), causal=True,
                              rope=rope if name == "09_rope_fused" else None, **ATTENTIONS[name])


class Block(nn.Module):
    def __init__(self, width, attention):
        super().__init__()
        self.attention = attention
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, rope):
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, -1, HEAD_DIM)
        o = attend(self.attention, *qkv.permute(2, 0, 3, 1, 4), rope)
        x = x + self.out(o.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, characters, layers, width, length, attention):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.blocks = nn.ModuleList(Block(width, attention) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        angles = torch.outer(torch.arange(length).double(), 10000.0 ** (-torch.arange(0, HEAD_DIM, 2).double() / HEAD_DIM))
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x, (self.cos, self.sin))
        return self.head(self.norm(x))


def train(options, device):
    """The report: what was trained, the loss of each step, and tokens per second without the first steps."""
    written = text()
    known = sorted(set(written))
    number = {character: i for i, character in enumerate(known)}
    tokens = torch.tensor([number[character] for character in written])
    torch.manual_seed(options.seed)
    model = Gpt(len(known), options.layers, options.width, options.length, options.attention)
    parameters = sum(weight.numel() for weight in model.parameters())
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95))
    choice = torch.Generator().manual_seed(options.seed)

    def settled():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    losses, warm = [], min(10, options.steps - 1)
    for step in range(options.steps):
        if step == warm:
            begin = settled()
        starts = torch.randint(len(tokens) - options.length, (options.batch,), generator=choice)
        rows = torch.stack([tokens[start:start + options.length + 1] for start in starts.tolist()]).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} of {options.steps}: loss {loss.item():.3f}", flush=True)
    seconds = settled() - begin
    return {"attention": options.attention, "seed": options.seed, "device": torch.cuda.get_device_name() if device == "cuda"
            else "cpu", "torch": torch.__version__, "parameters": parameters, "layers": options.layers, "width": options.width,
            "length": options.length, "batch": options.batch, "lr": options.lr, "characters": len(written),
            "tokens_per_second": (options.steps - warm) * options.batch * options.length / seconds,
            "losses": torch.stack(losses).tolist()}


def arguments(said=None):
    parser = argparse.ArgumentParser(description="Trains a character-level GPT on this project's text.")

    def positive(said):
        if not said.isdecimal() or int(said) == 0:
            raise argparse.ArgumentTypeError(f"{said} is not a whole number of at least 1")
        return int(said)

    parser.add_argument("--attention", choices=ATTENTIONS, default="08_causal_earlystop")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the batches")
    parser.add_argument("--steps", type=positive, default=3000)
    parser.add_argument("--out", help="the JSON file of the losses")
    parser.add_argument("--tiny", action="store_true", help="a model for the engine")
    options = parser.parse_args(said)
    options.layers, options.width, options.length, options.batch, options.lr = (
        (2, 2 * HEAD_DIM, 64, 2, 3e-3) if options.tiny else (6, 4 * HEAD_DIM, 512, 32, 1e-3))
    return options


if __name__ == "__main__":
    options = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.attention != "sdpa":
        try:
            import flash_attention_workbook as workbook
        except ImportError as error:
            print(f"gpt.py: {error}", file=sys.stderr)
            sys.exit(2)
        device = workbook.DEVICE
    report = train(options, device)
    print(f"{report['attention']}, seed {report['seed']}: {report['parameters']} parameters, loss {report['losses'][0]:.3f} at first, "
          f"{report['losses'][-1]:.3f} at last, {report['tokens_per_second']:.0f} tokens per second")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(report) + "\n")
