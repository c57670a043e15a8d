"""Block masks: which pairs of a query and a key see one another, as lists of tiles."""

from typing import NamedTuple

import torch

from .library import DEVICE

TILE = 128  # queries, and keys, as common/attention/rung.h has them
_PAIRS = 1 << 24  # of which a function is asked at a time


class BlockMask(NamedTuple):
    """What attention() takes as `blocks`: the lists of common/capi/flash_attention_workbook.h, which says more.

    begin, int32 [masks of batches, of heads, R + 1 + C + 1]: where the list of each row of tiles begins, then of each
    column. tiles, int32 [2, listed, 2]: of each tile in the lists of rows, which one of its row it is, and if it is not
    seen as a whole, its number among the bits, else -1; then the same of columns. bits, int32 [2, cut, 128, 4]: of each
    query of such a tile, the keys that it sees; then of each key, the queries that see it. seq_q and seq_k are how many
    queries and keys the mask is of.
    """

    begin: torch.Tensor
    tiles: torch.Tensor
    bits: torch.Tensor
    seq_q: int
    seq_k: int

    def share(self):
        """How many of all tiles are listed: what attention takes, as a share of what it takes without a mask."""
        masks = self.begin.shape[0] * self.begin.shape[1]
        return self.tiles.shape[1] / max(1, masks * -(-self.seq_q // TILE) * -(-self.seq_k // TILE))


def block_mask(mask, batch=None, heads=None, seq_q=None, seq_k=None, device=None):
    """The BlockMask of a function, or of a tensor of torch.bool: True where a query sees a key.

    A function is called as mask(b, h, i, j), with the numbers of a batch, a head, queries and keys as tensors that
    broadcast, and returns a tensor: lambda b, h, i, j: document[b, i] == document[b, j]. It is asked for some rows of
    tiles at a time. batch and heads are how many masks there are; None or 1 is one for all batches, or all heads, with
    b or h = 0. device is where these numbers are, and the mask's lists: DEVICE, unless told otherwise.

    A tensor is [seq_q, seq_k] or has axes before, of heads and of batches, each of which may be 1. Where its seq_q or
    seq_k is 1, say how many queries or keys there are, and all have what the one has: a mask of padding is
    block_mask(mask[:, None, None], seq_q=n), of mask [batch, keys].
    """
    if isinstance(mask, torch.Tensor):
        _require_ordinary("mask", mask)
        if mask.dtype != torch.bool or not 2 <= mask.dim() <= 4:
            raise ValueError(f"mask is {mask.dtype} {list(mask.shape)}: it must be torch.bool, [seq_q, seq_k] or with "
                             "axes of heads and batches before")
        if not (batch is heads is device is None):
            raise ValueError("mask is a tensor, which has its own batch, heads and device: give none")
        if 0 in mask.shape[:-2]:
            raise ValueError(f"mask has shape {list(mask.shape)}: its axes of heads and batches must be at least 1")
        for name, size, has in (("seq_q", seq_q, mask.shape[-2]), ("seq_k", seq_k, mask.shape[-1])):
            if size is not None:
                _require_size(name, size, 0)
                if has not in (1, size):
                    raise ValueError(f"mask has shape {list(mask.shape)} and {name} is {size}: there it must have 1 or "
                                     f"{size}")
        mask = mask[(None,) * (4 - mask.dim())]
        mask = mask.expand(-1, -1, -1 if seq_q is None else seq_q, -1 if seq_k is None else seq_k)
        batch, heads, seq_q, seq_k = mask.shape
        device = mask.device
        part = lambda b, h, begin, end: mask[b, h, begin:end]
    elif callable(mask):
        for name, size, least in (("batch", batch, 1), ("heads", heads, 1), ("seq_q", seq_q, 0), ("seq_k", seq_k, 0)):
            if size is not None or not least:
                _require_size(name, size, least)
        batch, heads, device = batch or 1, heads or 1, DEVICE if device is None else device
        part = _of_function(mask, seq_q, seq_k, device)
    else:
        raise ValueError(f"mask is a {type(mask).__name__}: it must be a function of (b, h, i, j) or a torch.Tensor")
    return _lists(part, batch, heads, seq_q, seq_k, device)


def _require_size(name, size, least):
    if not isinstance(size, int) or isinstance(size, bool) or not least <= size < 2**31:
        raise ValueError(f"{name} is {size!r}: it must be a whole number from {least} to {2**31 - 1}"
                         + (", or None" if least else ""))


def _require_ordinary(name, tensor):
    if tensor.layout != torch.strided or tensor.is_nested:
        raise ValueError(f"{name} is a sparse or nested tensor: it must be an ordinary one")


def _of_function(mask, seq_q, seq_k, device):
    """(b, h, begin, end) -> what queries begin to end see, [end - begin, seq_k]."""
    number = lambda *range: torch.arange(*range, device=device)
    keys = number(seq_k)[None]

    def part(b, h, begin, end):
        seen = mask(number(b, b + 1)[0], number(h, h + 1)[0], number(begin, end)[:, None], keys)
        if not isinstance(seen, torch.Tensor) or seen.dtype != torch.bool:
            what = seen.dtype if isinstance(seen, torch.Tensor) else type(seen).__name__
            raise ValueError(f"mask(b, h, i, j) is {what}: it must be a tensor of torch.bool")
        _require_ordinary("mask(b, h, i, j)", seen)
        if seen.device != keys.device:
            raise ValueError(f"mask(b, h, i, j) is on {seen.device}: it must be on {keys.device}, where i and j are")
        while seen.dim() > 2 and seen.shape[0] == 1:
            seen = seen[0]
        sizes = zip(seen.shape[::-1], (seq_k, end - begin))
        if seen.dim() > 2 or any([size not in (1, full) for size, full in sizes]):
            raise ValueError(f"mask(b, h, i, j) is of shape {list(seen.shape)}: it must broadcast as i "
                             f"{[end - begin, 1]} and j {[1, seq_k]} do")
        return seen.expand(end - begin, seq_k)

    return part


def _words(seen):
    """[.., 128] of torch.bool as the bits of [.., 4] numbers of 32."""
    numbers = (seen.unflatten(-1, (-1, 32)).long() << torch.arange(32, device=seen.device)).sum(-1)
    return torch.where(numbers < 1 << 31, numbers, numbers - (1 << 32)).int()


def _lists(part, batch, heads, seq_q, seq_k, device):
    rows, columns = -(-seq_q // TILE), -(-seq_k // TILE)
    in_tiles = lambda size, count: (size - torch.arange(count, device=device) * TILE).clamp(max=TILE)
    pairs = in_tiles(seq_q, rows)[:, None] * in_tiles(seq_k, columns)  # that there are in each tile
    kinds, bits, cuts = [], [torch.empty(2, 0, TILE, TILE // 32, dtype=torch.int32, device=device)], 0
    step = max(1, _PAIRS // (TILE * max(1, columns * TILE)))
    for mask in range(batch * heads):
        for row in range(0, rows, step):
            end = min(rows, row + step)
            seen = part(mask // heads, mask % heads, row * TILE, min(seq_q, end * TILE))
            seen = torch.nn.functional.pad(seen, (0, columns * TILE - seq_k, 0, (end - row) * TILE - seen.shape[0]))
            seen = seen.unflatten(1, (columns, TILE)).unflatten(0, (end - row, TILE)).transpose(1, 2)
            count = seen.sum((2, 3))
            is_cut = (count > 0) & (count < pairs[row:end])
            numbers = cuts - 1 + is_cut.flatten().cumsum(0).view_as(count)
            kinds.append(torch.where(is_cut, numbers, torch.where(count > 0, -1, -2)))
            seen = seen[is_cut]
            bits.append(torch.stack([_words(seen), _words(seen.transpose(1, 2))]))
            cuts += seen.shape[0]
    kind = torch.cat(kinds).view(batch * heads, rows, columns) if kinds else torch.empty(
        batch * heads, rows, columns, dtype=torch.long, device=device)  # -2: not listed; -1: as a whole
    begins, tiles = [], []
    for of in (kind, kind.transpose(1, 2)):
        listed = of > -2
        tiles.append(torch.stack([listed.nonzero()[:, 2], of[listed]], 1).int())
        ends = torch.nn.functional.pad(listed.sum(2).flatten().cumsum(0), (1, 0))
        count = listed.shape[1]
        begins.append(torch.stack([ends[m * count:(m + 1) * count + 1] for m in range(batch * heads)]))
    return BlockMask(torch.cat(begins, 1).view(batch, heads, -1).int(), torch.stack(tiles), torch.cat(bits, 1), seq_q,
                     seq_k)
