"""M2R2 (2025): an accelerated stream beside the target's first layers. See headnets.py for what a head is.

Each token has two rows of the first layers. The slow one is the target's own. The accelerated one begins with the same embedding and has low-rank matrices added to
each matrix of the layers; it attends to the keys and values of the slow rows before it, and to its own. Behind the last of these layers the target's norm
and output read it. The authors have published no layout: names are those of the base's tensors in GGUF, with .lora_a and .lora_b before .weight.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import gguf
import headnets
import model

MATRICES = [(own[:-len(".weight")], name) for own, name, _ in gguf.LAYER if own.endswith(".weight")]  # of a layer: model.py's names, GGUF's


class M2R2(headnets.Head):
    """The matrices B are zero first, so that the accelerated stream begins as the slow one."""

    reads = ()

    def __init__(self, c, target, depth, exit_layer, rank):
        super().__init__(c, target, depth)
        self.target, self.exit, self.rank = [target], exit_layer, rank
        down = lambda m: nn.Parameter(torch.randn(rank, m.in_features) * m.in_features ** -0.5)
        up = lambda m: nn.Parameter(torch.zeros(m.out_features, rank))
        of = lambda make: nn.ModuleList(nn.ParameterDict({own: make(getattr(block, own)) for own, _ in MATRICES}) for block in target.b[:exit_layer])
        self.a, self.b = of(down), of(up)

    def product(self, i, own, x):
        """x times matrix own of layer i and what is added to it."""
        return getattr(self.target[0].b[i], own)(x) + x @ self.a[i][own].T @ self.b[i][own].T

    def split(self, x, turn):
        """x [B, T, n E] as heads [B, n, T, E]; turn: they are rotated."""
        y = x.view(*x.shape[:2], -1, self.c["hd"])
        if turn:
            target, t = self.target[0], x.shape[1]
            y = model.rotate(y, target.cos[:, :t], target.sin[:, :t])
        return y.transpose(1, 2)

    def layer(self, i, p, slow):
        """The accelerated stream p [B, T, H] behind layer i, where the slow one enters it as slow."""
        block, share, t = self.target[0].b[i], self.c["heads"] // self.c["kv"], p.shape[1]
        with torch.no_grad():
            y = block.n1(slow)
            k, v = (m.repeat_interleave(share, 1) for m in (self.split(block.k(y), True), self.split(block.v(y), False)))
        y = block.n1(p)
        q = self.split(self.product(i, "q", y), True) * self.c["hd"] ** -0.5
        own_k, own_v = (self.split(self.product(i, m, y), m == "k").repeat_interleave(share, 1) for m in ("k", "v"))
        before = (q @ k.transpose(2, 3)).masked_fill(torch.ones(t, t, dtype=torch.bool).triu(), -1e9)
        w = torch.cat((before, (q * own_k).sum(-1, keepdim=True)), -1).softmax(-1)
        out = w[..., :t] @ v + w[..., t:] * own_v
        p = p + self.product(i, "o", out.transpose(1, 2).reshape(*p.shape[:2], -1))
        y = block.n2(p)
        return p + self.product(i, "dn", F.silu(self.product(i, "g", y)) * self.product(i, "u", y))

    def forward(self, batch, steps):
        target = self.target[0]
        with torch.no_grad():
            slow = target.emb(batch.ids)
        p = slow
        for i, block in enumerate(target.b[:self.exit]):
            p = self.layer(i, p, slow)
            with torch.no_grad():
                slow = target.skipped(block, slow, 0.0)
        p = target.n(p)
        for k in range(steps):
            yield p[:, 1 + k:]

    def tensors(self):
        return {f"blk.{i}.{name}.lora_{half}.weight": side[i][own] for i in range(self.exit) for own, name in MATRICES
                for half, side in (("a", self.a), ("b", self.b))}

    def settings(self):
        return dict(exit_layer=self.exit, lora_alpha=self.rank, r=self.rank)
