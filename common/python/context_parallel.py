"""The ring of chapter 11 for PyTorch: one sequence on the ranks of a torch.distributed process group, inside autograd.

    import sys; sys.path.append("common/python")
    import context_parallel as cp                             # torchrun has started the ranks

    q, k, v = (cp.deal(x, causal=True) for x in (q, k, v))    # of the whole sequence, this rank's rows
    o = cp.ring_attention(q, k, v, causal=True)               # this rank's rows of o; differentiable
    whole = cp.gather(o, causal=True)                         # every rank's rows, in order

Keys and values travel by the group's own send and receive. Where rows belong, and what a rank computes in which step, is
as in 11_split_kv/parallel/sharding.h: under the causal mask a rank has rows from the front and from the back. Any group that
sends tensors of the device will do.
"""

import torch
import torch.distributed as dist

__all__ = ["deal", "gather", "ring_attention"]


CHAPTER = "08_causal_earlystop"  # whose kernels compute a part


def _kernels():
    import flash_attention_workbook  # loads the library, which deal() and gather() do not need

    return flash_attention_workbook


def _share(rows: int, other: int, ranks: int, rank: int, causal: bool) -> list:
    """[(first, count)] of a rank's rows, of which there are `rows`: those before the square of the mask, its front, its back.

    `other` is the number of keys for queries, of queries for keys.
    """
    def cut(n: int, i: int) -> int:
        return n * i // ranks

    square = min(rows, other) if causal else 0
    before = rows - square
    counts = [cut(square, i + 1) - cut(square, i) for i in range(ranks)]
    front = sum(count // 2 for count in counts[:rank])
    back = square - sum(count - count // 2 for count in counts[: rank + 1])
    in_front = counts[rank] // 2
    return [(cut(before, rank), cut(before, rank + 1) - cut(before, rank)), (before + front, in_front),
            (before + back, counts[rank] - in_front)]


def _rows(share: list) -> list:
    return [row for first, count in share for row in range(first, first + count)]


def _count(share: list) -> int:
    return sum(count for _, count in share)


def deal(x, causal=False, other=None, group=None):
    """This rank's rows of x [B, H, N, D], which every rank has whole. `other` is the N of the keys for queries, and of the
    queries for keys, if it differs."""
    rows = x.shape[2]
    share = _share(rows, rows if other is None else other, dist.get_world_size(group), dist.get_rank(group), causal)
    return torch.cat([x[:, :, first : first + count] for first, count in share], 2).contiguous()


def gather(x, causal=False, rows=None, other=None, group=None):
    """What deal() was given, from every rank's rows. `rows` is N, if the ranks do not all have as many."""
    ranks = dist.get_world_size(group)
    rows = x.shape[2] * ranks if rows is None else rows
    other = rows if other is None else other
    shares = [_share(rows, other, ranks, rank, causal) for rank in range(ranks)]
    most = max(map(_count, shares))
    padded = torch.zeros(*x.shape[:2], most, x.shape[3], dtype=x.dtype, device=x.device)
    padded[:, :, : x.shape[2]] = x
    parts = [torch.empty_like(padded) for _ in range(ranks)]
    dist.all_gather(parts, padded, group=group)
    whole = torch.empty(*x.shape[:2], rows, x.shape[3], dtype=x.dtype, device=x.device)
    for share, part in zip(shares, parts):
        whole[:, :, torch.tensor(_rows(share), dtype=torch.long, device=x.device)] = part[:, :, : _count(share)]
    return whole


class _Plan:
    """The steps of this rank: the owner of the keys, and parts (first query, until, keys, causal)."""

    def __init__(self, seq_q: int, seq_k: int, causal: bool, group):
        self.group, self.ranks, self.rank = group, dist.get_world_size(group), dist.get_rank(group)
        if self.ranks > min(seq_q, seq_k):
            raise ValueError(f"there are {self.ranks} ranks and {min(seq_q, seq_k)} rows: each rank needs a row at least")
        self.keys = [_share(seq_k, seq_q, self.ranks, rank, causal) for rank in range(self.ranks)]
        queries = _share(seq_q, seq_k, self.ranks, self.rank, causal)
        self.queries = all_rows = _count(queries)
        blind, front = (queries[0][1], queries[1][1]) if causal else (0, 0)
        self.steps = []
        for step in range(self.ranks):
            owner = (self.rank - step) % self.ranks
            prefix, in_front, keys = self.keys[owner][0][1], self.keys[owner][1][1], _count(self.keys[owner])
            if step == 0:
                parts = [(0, all_rows, keys, causal)]
            elif not causal:
                parts = [(0, all_rows, keys, False)]
            elif owner < self.rank:
                parts = [(blind, all_rows, prefix + in_front, False)]
            else:
                parts = [(blind, blind + front, prefix, False), (blind + front, all_rows, keys, False)]
            self.steps.append((owner, [part for part in parts if part[1] > part[0] and part[2] > 0]))

    def rows_of(self, owner: int) -> int:
        return _count(self.keys[owner % self.ranks])

    def exchange(self, sends: list, receives: list) -> list:
        """Sends to the next rank, receives from the one before: what to wait for."""
        to, source = ((self.rank + way) % self.ranks for way in (1, -1))
        if self.group is not None:
            to, source = (dist.get_global_rank(self.group, peer) for peer in (to, source))
        operations = [dist.P2POp(dist.isend, tensor, to, self.group) for tensor in sends]
        operations += [dist.P2POp(dist.irecv, tensor, source, self.group) for tensor in receives]
        return dist.batch_isend_irecv(operations) if operations else []


def _like(tensor, rows: int, dtype=None):
    return torch.empty(*tensor.shape[:2], rows, tensor.shape[3], dtype=dtype or tensor.dtype, device=tensor.device)


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale, seq_q, seq_k, group):
        kernels, plan = _kernels(), _Plan(seq_q, seq_k, causal, group)
        keys, o, lse = [k, v], None, None
        for step, (owner, parts) in enumerate(plan.steps):
            more = step + 1 < plan.ranks
            coming = [_like(tensor, plan.rows_of(owner - 1)) for tensor in keys] if more else []
            under_way = plan.exchange(keys if more else [], coming)
            for first, until, some, diagonal in parts:
                part_o, part_lse = kernels.forward(q[:, :, first:until].contiguous(), *(x[:, :, :some].contiguous() for x in keys),
                                                   causal=diagonal, scale=scale, chapter=CHAPTER)
                if step == 0:
                    o, lse = part_o.float(), part_lse
                    continue
                before = lse[:, :, first:until]
                both = torch.logaddexp(before, part_lse)
                blind = both == -torch.inf
                weight, part_weight = ((one - both).exp().masked_fill(blind, 0).unsqueeze(-1) for one in (before, part_lse))
                o[:, :, first:until] = weight * o[:, :, first:until] + part_weight * part_o
                lse[:, :, first:until] = both
            for work in under_way:
                work.wait()
            keys = coming
        o = o.to(q.dtype)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.plan, ctx.scale = plan, scale
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_o):
        kernels, plan = _kernels(), ctx.plan
        q, k, v, o, lse = ctx.saved_tensors
        keys, sums = [k, v], []
        dq = torch.zeros_like(q, dtype=torch.float32)
        for step, (owner, parts) in enumerate(plan.steps):
            more = step + 1 < plan.ranks
            coming = [_like(tensor, plan.rows_of(owner - 1)) for tensor in keys] if more else []
            so_far = [_like(tensor, plan.rows_of(owner), torch.float32) for tensor in keys] if step else []
            under_way = plan.exchange((keys if more else []) + sums, coming + so_far)
            gradients = []
            for first, until, some, diagonal in parts:
                rows = [x[:, :, first:until].contiguous() for x in (q, o, d_o)]
                part_dq, *part_dkv = kernels.backward(rows[0], *(x[:, :, :some].contiguous() for x in keys), rows[1],
                                                      lse[:, :, first:until].contiguous(), rows[2], causal=diagonal,
                                                      scale=ctx.scale, chapter=CHAPTER)
                dq[:, :, first:until] += part_dq
                gradients.append((some, part_dkv))
            for work in under_way:
                work.wait()
            sums = so_far or [torch.zeros_like(tensor, dtype=torch.float32) for tensor in keys]
            for some, part_dkv in gradients:
                for total, part in zip(sums, part_dkv):
                    total[:, :, :some] += part
            keys = coming
        if plan.ranks > 1:  # the last sums are those of the next rank's keys
            own = [_like(tensor, tensor.shape[2], torch.float32) for tensor in (k, v)]
            for work in plan.exchange(sums, own):
                work.wait()
            sums = own
        return dq.to(q.dtype), *(total.to(k.dtype) for total in sums), None, None, None, None, None


def ring_attention(q, k, v, causal=False, scale=None, seq_q=None, seq_k=None, group=None):
    """Attention of this rank's rows of q over every rank's keys; all three as deal() deals them. seq_q and seq_k are the
    lengths of the whole sequence, if the ranks do not all have as many rows."""
    ranks = dist.get_world_size(group)
    seq_q, seq_k = seq_q or q.shape[2] * ranks, seq_k or k.shape[2] * ranks
    for name, tensor, rows, other in (("q", q, seq_q, seq_k), ("k", k, seq_k, seq_q), ("v", v, seq_k, seq_q)):
        expected = _count(_share(rows, other, ranks, dist.get_rank(group), causal))
        if tensor.shape[2] != expected:
            raise ValueError(f"{name} has {tensor.shape[2]} rows: of {rows} this rank has {expected}, as deal() deals them")
    return _Ring.apply(q.contiguous(), k.contiguous(), v.contiguous(), causal, scale, seq_q, seq_k, group)
