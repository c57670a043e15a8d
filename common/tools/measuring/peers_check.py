"""Is a result on the GPU right? Compares it with fp64 mathematics in PyTorch. Needs PyTorch."""

import torch

SCORES = 2**24  # held at a time: 128 MiB in fp64
HEADS = 4  # kv heads whose gradients are compared, when there are more than twice as many
MOST_SCORES = 2**34  # of the heads whose gradients are compared, if one head has fewer: a few seconds in fp64
E4M3_MAX = 448.0
KEYS = 2**29  # elements of K whose results are compared, if all heads have more of them together: 4 GiB in fp64


def _norm(got, expected):
    """|got - expected| / |expected|"""
    return ((got.double() - expected).norm() / expected.norm()).item()


def in_eight_bits(x):
    """(e4m3, scale): x in eight bits, divided by the scale that makes 448 of its largest element."""
    scale = x.abs().amax().float() / E4M3_MAX
    return (x.float() / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn), scale


class Reference:
    """Attention of q [B, H, Nq, D], k and v [B, Hkv, Nk, D] as the workbook defines it: causal aligned bottom-right.

    Forward: sampled query rows of every head (all rows where they are few), or of some heads if K is very large.
    Backward: all rows of sampled heads. The rule is the workbook's own: an error may be twice (for gradients three
    times) that of the same mathematics with every intermediate rounded to the storage type, plus the rounding of
    numbers as large as the result. With rope, q and k are rotated by their positions first, and the gradients are of
    the unrotated ones. Extras are as the package flash_attention_workbook takes them: window (left, right), softcap,
    alibi and sink [H]. `seen` is a mask of any shape beside them, a function of (b, h, i, j) that is the same for
    all batches and heads: tensors of numbers to torch.bool.
    """

    def __init__(self, q, k, v, causal, scale=None, rope=False, window=(-1, -1), softcap=None, alibi=None, sink=None,
                 seen=None):
        self.q, self.k, self.v = q.detach(), k.detach(), v.detach()
        self.rope = rope
        self.causal = causal
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.groups = q.shape[1] // k.shape[1]
        self.left, self.right = window
        self.softcap, self.alibi, self.sink, self.seen = softcap, alibi, sink, seen
        self.random = torch.Generator().manual_seed(1)
        # (error, tolerance) of the last comparison with the largest error / tolerance
        self.worst: "tuple[float, float] | None" = None
        self.norm: "float | None" = None  # of the last o: |o - exact| / |exact|
        self._known = None  # the last d_o, and what _expected_gradients says of it

    def wrong_forward(self, o, lse=None):
        """What is wrong with o [B, H, Nq, D] and, if given, lse [B, H, Nq], in one line; None if nothing is."""
        self.worst = self.norm = None
        if not o.isfinite().all():
            return "o is not finite everywhere"
        batch, heads, seq_q, _ = self.q.shape
        kv_heads, seq_k, head_dim = self.k.shape[1:]
        sampled = self._sampled(batch * kv_heads, max(2, KEYS // (seq_k * head_dim)))
        rows = self._sampled(seq_q, max(8, SCORES // (len(sampled) * self.groups * seq_k)))
        hidden = self._hidden(rows).repeat(self.groups, 1)

        query_heads = torch.arange(heads, device=rows.device).reshape(kv_heads, self.groups)[sampled % kv_heads]

        def of_groups(x):
            """x [B, H, N, ..] as [B * Hkv, G, N, ..], the sampled ones of it, and the sampled rows of these."""
            return x.reshape(batch * kv_heads, self.groups, *x.shape[2:])[sampled][:, :, rows]

        def attend(rounded):
            # The queries that share a kv head side by side: [B * Hkv, G * rows, D]
            q = self._rotated(of_groups(self.q), self._query_positions(rows), rounded)
            k, v = (x.flatten(0, 1)[sampled] for x in (self.k, self.v))
            k = self._rotated(k, torch.arange(seq_k, device=rows.device), rounded)
            return self._attend(q.flatten(1, 2), k, v, hidden, rounded, *self._of_heads(query_heads, rows))

        (expected, expected_lse, p, scores), (baseline, _, _,
                                              rounded_scores) = attend(lambda x: x), attend(self._rounded)
        compared = of_groups(o).reshape(expected.shape)
        self.norm = _norm(compared, expected)
        wrong = self._differs("o", compared, expected, baseline, 2)
        if wrong or lse is None:
            return wrong
        got, size = of_groups(lse).reshape(expected_lse.shape).double(), 1 + expected_lse.abs()
        error = torch.where(got == expected_lse, 0, (got - expected_lse).abs() / size).max().item()
        allowed = 1e-4
        if self.rope:  # q and k are stored once they are rotated, and to first order lse moves by sum(p * change of s)
            moved = torch.where(p > 0, p * (rounded_scores - scores).abs(), 0).sum(-1)
            allowed += 2 * (moved / size).nan_to_num().max().item()
        return None if error <= allowed else f"lse differs by {error:.2g} (relative) where {allowed:.2g} is allowed"

    def wrong_backward(self, d_o, dq, dk, dv):
        """The same for the gradients that belong to d_o, the gradient of o."""
        self.worst = None
        got = {"dq": dq, "dk": dk, "dv": dv}
        for name, gradient in got.items():
            if not gradient.isfinite().all():
                return f"{name} is not finite everywhere"
        sampled, expected, baseline = self._expected_gradients(d_o)
        for name, gradient in got.items():
            compared = torch.cat([gradient[b, queries if name == "dq" else head].flatten()
                                  for b, head, queries in sampled])
            wrong = self._differs(name, compared, expected[name], baseline[name], 3)
            if wrong:
                return wrong
        return None

    def _expected_gradients(self, d_o):
        """([(batch, kv head, its query heads)], and of these heads {"dq", "dk", "dv"} in fp64, and with intermediates
        rounded). Every candidate at a point is compared with the same."""
        if self._known is not None and torch.equal(self._known[0], d_o):
            return self._known[1:]
        (batch, heads, seq_q, _), (kv_heads, seq_k) = self.q.shape, self.k.shape[1:3]
        count = batch * kv_heads
        most = count if count <= 2 * HEADS else HEADS
        most = max(2, min(most, MOST_SCORES // (heads // kv_heads * seq_q * seq_k)))
        heads_of = [(one // kv_heads, one % kv_heads) for one in self._sampled(count, most).tolist()]
        sampled = [(b, head, slice(head * self.groups, (head + 1) * self.groups)) for b, head in heads_of]
        found = []
        for rounded in (lambda x: x, self._rounded):
            of_heads = [self._results(self.q[b, rows], self.k[b, head], self.v[b, head], d_o[b, rows], rounded,
                                      rows)[1:] for b, head, rows in sampled]
            found.append({name: torch.cat([one.flatten() for one in gradients])
                          for name, gradients in zip(("dq", "dk", "dv"), zip(*of_heads))})
        self._known = d_o, sampled, *found
        return self._known[1:]

    def of_every_head(self, d_o):
        """{"o", "dq", "dk", "dv"} in fp64, as whole tensors: of problems whose scores a head can hold."""
        batch, kv_heads = self.k.shape[:2]
        results = {"o": torch.empty_like(self.q, dtype=torch.float64),
                   "dq": torch.empty_like(self.q, dtype=torch.float64),
                   "dk": torch.empty_like(self.k, dtype=torch.float64),
                   "dv": torch.empty_like(self.v, dtype=torch.float64)}
        for b in range(batch):
            for head in range(kv_heads):
                queries = slice(head * self.groups, (head + 1) * self.groups)
                found = self._results(self.q[b, queries], self.k[b, head], self.v[b, head], d_o[b, queries],
                                      lambda x: x, queries)
                for (name, tensor), result in zip(results.items(), found):
                    tensor[b, queries if name in ("o", "dq") else head] = result
        return results

    def _of_heads(self, heads, rows):
        """(what ALiBi takes from the scores [.., G * rows, Nk], the sinks [.., G * rows]) of query heads [.., G]."""
        bias = sinks = None
        if self.alibi is not None:
            keys = torch.arange(self.k.shape[2], device=rows.device)
            distances = (self._query_positions(rows)[:, None] - keys).abs().double()
            bias = (self.alibi.double()[heads][..., None, None] * distances).flatten(-3, -2)
        if self.sink is not None:
            sinks = self.sink.double()[heads][..., None].expand(*heads.shape, len(rows)).flatten(-2)
        return bias, sinks

    def _attend(self, q, k, v, hidden, rounded, bias, sinks):
        """(o, lse, p, scores) in fp64, with the intermediates rounded."""
        q, k, v = q.double(), k.double(), v.double()
        scores = rounded(q @ k.transpose(-1, -2) * self.scale)
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if bias is not None:
            scores = scores - bias
        scores = scores.masked_fill(hidden, float("-inf"))
        lse = scores.logsumexp(-1)
        if sinks is not None:
            lse = torch.logaddexp(lse, sinks)
        p = rounded((scores - lse.clamp(min=-1e30)[..., None]).exp())  # -inf - -1e30: a row that sees no key is all 0
        return rounded(p @ v), lse, p, scores

    def _results(self, q, k, v, d_o, rounded, heads):
        """(o, dq, dk, dv) of the query heads q [G, Nq, D] that share the kv head k, v [Nk, D]; `heads` are their
        places in a batch."""
        key_positions = torch.arange(k.shape[0], device=q.device)
        query_positions = self._query_positions(torch.arange(q.shape[1], device=q.device))
        q, k = self._rotated(q, query_positions, rounded), self._rotated(k, key_positions, rounded)
        o, dq, dk, dv = (torch.zeros_like(x, dtype=torch.float64) for x in (q, q, k, v))
        for rows in torch.arange(q.shape[1], device=q.device).split(max(1, SCORES // (q.shape[0] * k.shape[0]))):
            hidden = self._hidden(rows)
            seen = (~hidden).any(0).nonzero().flatten()
            keys = slice(*(seen[0].item(), seen[-1].item() + 1) if len(seen) else (0, 0))  # no row sees any other
            hidden, its_k, its_v = hidden[:, keys], k[keys], v[keys]
            every_head = torch.arange(self.q.shape[1], device=q.device)
            bias, sinks = (None if x is None else x.unflatten(0, (q.shape[0], len(rows)))
                           for x in self._of_heads(every_head[heads], rows))
            bias = None if bias is None else bias[..., keys]
            o[:, rows], _, p, scores = self._attend(q[:, rows], its_k, its_v, hidden, rounded, bias, sinks)
            one_d_o = d_o[:, rows].double()
            dp = rounded(one_d_o @ its_v.double().T)
            ds = rounded(p * (dp - (p * dp).sum(-1, keepdim=True)))
            if self.softcap:  # its slope, 1 - tanh^2
                capped = scores if bias is None else scores + bias
                ds = ds * (1 - torch.where(hidden, 0, capped / self.softcap) ** 2)
            dq[:, rows] = ds @ its_k.double() * self.scale
            dk[keys] += (ds.transpose(-1, -2) @ q[:, rows].double()).sum(0) * self.scale
            dv[keys] += (p.transpose(-1, -2) @ one_d_o).sum(0)
        return (o, self._rotated(rounded(dq), query_positions, rounded, back=True),
                self._rotated(rounded(dk), key_positions, rounded, back=True), rounded(dv))

    def _hidden(self, rows):
        """[rows, Nk]: which keys these queries do not see."""
        seq_k = self.k.shape[2]
        keys, own = torch.arange(seq_k, device=rows.device), self._query_positions(rows)[:, None]
        right, left = 0 if self.causal else self.right, self.left
        last = own + right if right >= 0 else torch.full_like(own, seq_k)
        first = own - left if left >= 0 else torch.zeros_like(own)
        hidden = (keys > last) | (keys < first)
        return hidden if self.seen is None else hidden | ~self.seen(0, 0, rows[:, None], keys)

    def _query_positions(self, rows):
        return rows + self.k.shape[2] - self.q.shape[2]

    def _rotated(self, x, positions, rounded, back=False):
        """Rows of x [.., N, D], rotated by positions [N] in fp64, intermediates rounded; x itself without rope."""
        if not self.rope:
            return x
        half = x.shape[-1] // 2
        frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        angles = torch.outer(positions.double(), frequencies) * (-1 if back else 1)
        cos, sin = rounded(angles.cos()), rounded(angles.sin())
        a, b = x[..., :half].double(), x[..., half:].double()
        return rounded(torch.cat([rounded(a * cos) - rounded(b * sin), rounded(b * cos) + rounded(a * sin)], -1))

    def _sampled(self, count, at_most):
        """Some of range(count), in order: the first, the last, and random ones."""
        if count <= at_most:
            return torch.arange(count, device=self.q.device)
        inner = torch.randperm(count - 2, generator=self.random)[: at_most - 2] + 1
        return torch.cat([torch.tensor([0, count - 1]), inner]).sort()[0].to(self.q.device)

    def _rounded(self, x):
        return x.to(self.q.dtype).double()

    def _differs(self, name, got, expected, baseline, factor):
        error = (got.double() - expected).abs().max().item()
        shifted = (expected.to(self.q.dtype) + 0.3 - 0.3).double()  # in the storage type
        tolerance = (factor * (baseline - expected).abs().max() + 2 * (shifted - expected).abs().max()).item() + 1e-5
        if self.worst is None or not error / tolerance <= self.worst[0] / self.worst[1]:
            self.worst = (error, tolerance)
        return None if error <= tolerance else f"{name} differs by {error:.2g} where {tolerance:.2g} is allowed"


class OfEightBits(Reference):
    """For results that were made in eight bits, and their o alone: q, k and v are what they were made from, in 16 bits.

    The rule is the same, of the norm of all errors: it may be twice that of the same mathematics with q, k and v in
    e4m3, each with a scale of its own, and the weights in e4m3, the largest of a row being 1."""

    def wrong_forward(self, o, lse=None):
        return super().wrong_forward(o)

    def _attend(self, q, k, v, hidden, rounded, bias, sinks):
        exact = super()._attend(q, k, v, hidden, lambda x: x, bias, sinks)
        if rounded != self._rounded:
            return exact
        q, k, v = (x8.double() * scale for x8, scale in map(in_eight_bits, (q, k, v)))
        _, lse, p, scores = super()._attend(q, k, v, hidden, lambda x: x, bias, sinks)
        most = p.amax(-1, keepdim=True).clamp(min=1e-300)
        weights = (p / most).to(torch.float8_e4m3fn).double() * most
        return weights @ v, lse, p, scores

    def _differs(self, name, got, expected, baseline, factor):
        error, tolerance = _norm(got, expected), factor * _norm(baseline, expected)
        self.worst = (error, tolerance)
        return None if error <= tolerance else (
            f"{name} differs by {error:.2g} in the norm where {tolerance:.2g} is allowed")
