"""SpecBlock's head: what it computes of a target's states, and its losses. headnets.py says what is common to heads."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets
import model
from headnets import linear

FEATURES, TOP, CLASSES, HIDDEN = 15, 20, 4, 256  # of the rank head: what it reads of the largest logits, how many of these, its classes, and its hidden values


def features(logits):
    """What the rank head reads of logits [..., V], all by the softmax of the 20 largest: the logarithms of the ten largest probabilities, by how much the first
    is above the second, third and fifth, the largest probability, and the entropy."""
    lp = logits.topk(TOP, -1).values.log_softmax(-1)
    gaps = torch.stack([lp[..., 0] - lp[..., k] for k in (1, 2, 4)], -1)
    p = lp.exp()
    return torch.cat((lp[..., :10], gaps, p[..., :1], -(p * lp).sum(-1, keepdim=True)), -1)


def classes(logits, ids):
    """The class of tokens' ranks in logits [..., V], counted from 1: 0 for 1, 1 for 2 to 4, 2 for 5 to 10, 3 for the rest."""
    rank = (logits > logits.gather(-1, ids[..., None])).sum(-1) + 1
    return (rank > 1).long() + (rank > 4) + (rank > 10)


def smoothed(count=CLASSES):
    """The labels of each true class [t, c]: a class is worth the less the further it is from the true one, and twice so where it promises too much."""
    t, c = torch.arange(count)[:, None], torch.arange(count)[None]
    w = 1 / (1 + (c - t).abs() + (t - c).clamp(min=0)).float() ** 2
    return w / w.sum(-1, keepdim=True)


def rank_loss(scores, true):
    """The loss of the rank head's scores [n, 4] for true classes [n]."""
    said, counts = scores.argmax(-1), torch.bincount(true, minlength=CLASSES)
    weight = (1 + (true - said).abs() + (true - said).clamp(min=0)) * (10 / counts[true].float()).clamp(max=1)
    return (-(smoothed()[true] * scores.log_softmax(-1)).sum(-1) * weight).sum() / weight.sum()


class Slots(headnets.Layer):
    """A layer over blocks of slots, x [B, N, K, inputs]: the block of row i stands behind text row i. A slot sees all slots of earlier rows' first blocks, the slots
    that were kept of its own row's blocks before, and the slots of its block up to itself. Rotations count from the row and what was kept."""

    def split(self, m, x, heads, at):
        """A product of x by heads [B, heads, N, K, E], rotated by the places at [N, K]; None: it is not."""
        b, n, k, _ = x.shape
        y = m(x).view(b, n * k, heads, self.c["hd"])
        if at is not None:
            y = model.rotate(y, self.cos[:, at.flatten()], self.sin[:, at.flatten()])
        return y.view(b, n, k, heads, -1).permute(0, 3, 1, 2, 4)

    def attend(self, x, past, kept):
        """past: the keys and values of the blocks before, to which it adds its own; kept: how many slots of each of these stay."""
        b, n, size, _ = x.shape
        at, share = torch.arange(n)[:, None] + torch.arange(size) + 1 + sum(kept), self.c["heads"] // self.kv
        q = self.split(self.q, x, self.c["heads"], at) * self.c["hd"] ** -0.5
        past.append([y.repeat_interleave(share, 1) for y in (self.split(self.k, x, self.kv, at), self.split(self.v, x, self.kv, None))])
        first, scores, slot = past[0], [], torch.arange(size)
        row = torch.arange(n).repeat_interleave(size)
        seen = row[None] < torch.arange(n)[:, None]  # [N, N*K]: slots of earlier rows
        scores.append((q.flatten(2, 3) @ first[0].flatten(2, 3).transpose(2, 3)).view(b, -1, n, size, n * size) + torch.where(seen, 0.0, -1e9)[:, None])
        for j, (k, _) in enumerate(past):
            own = slot[None] <= slot[:, None] if j == len(kept) else (slot < kept[j])[None].expand(size, size)
            scores.append(q @ k.transpose(3, 4) + torch.where(own, 0.0, -1e9))
        a = torch.cat(scores, -1).softmax(-1)
        out = (a[..., :n * size].flatten(2, 3) @ first[1].flatten(2, 3)).view(b, -1, n, size, self.c["hd"])
        for j, (_, v) in enumerate(past):
            out = out + a[..., (n + j) * size:(n + j + 1) * size] @ v
        return self.o(out.permute(0, 2, 3, 1, 4).flatten(3))

    def forward(self, x, norm, past, kept):
        x = x + self.attend(norm(x), past, kept)
        y = self.n2(x)
        return x + self.dn(F.silu(self.g(y)) * self.u(y))


class SpecBlock(headnets.Head):
    """SpecBlock (2026): a block of K slots behind each row, in one pass. Slot k reads the condition, the embedding of x_{i+1} and a query of its own, and drafts
    x_{i+2+k}. A block may follow a slot of the one before: its condition is what that slot's row gave.

    depth is K. blocks: the blocks that are trained, each behind a number of slots of the one before that is drawn anew each step."""

    def __init__(self, c, target, depth, ffn, taps, layers, blocks):
        super().__init__(c, target, depth)
        d, self.taps, self.blocks, self.ffn = c["dim"], taps, blocks, ffn
        self.reads = tuple(f"layer.{k}" for k in taps)
        self.cond, self.fuse = linear(3 * d, d), linear(3 * d, d)
        self.cond.weight.data[:, 2 * d:] += torch.eye(d)
        self.fuse.weight.data[:, :d] += torch.eye(d)
        self.queries = nn.Parameter(torch.randn(depth, d))
        self.cn, self.en, self.qn, self.n = (model.RMSNorm(d, c["eps"]) for _ in range(4))
        self.n.w.data.copy_(target.n.w.data)
        self.layers = nn.ModuleList(Slots(c, d, c["kv"], ffn) for _ in range(layers))
        self.norms = nn.ModuleList(model.RMSNorm(d, c["eps"]) for _ in range(layers))
        self.shift = nn.ModuleList(linear(2 * d, d, std=0.002) for _ in range(layers - 1))
        for m in self.shift:
            m.weight.data[:, :d] += torch.eye(d)
        self.rank = nn.Sequential(linear(d + FEATURES, HIDDEN, bias=True), nn.SiLU(), linear(HIDDEN, CLASSES, bias=True))

    def block(self, condition, e, past, kept):
        """The streams [B, N, K, H] of blocks with a condition and a token's embedding [B, N, H] each."""
        b, n, d = e.shape
        parts = [y[:, :, None].expand(b, n, self.depth, d) for y in (self.cn(condition), self.en(e))]
        x = self.fuse(torch.cat((*parts, self.qn(self.queries).expand(b, n, self.depth, d)), -1))
        for i, layer in enumerate(self.layers):
            if i:
                x = self.shift[i - 1](torch.cat((x, torch.cat((x[:, :, :1], x[:, :, :-1]), 2)), -1))
            x = layer(x, self.norms[i], past[i], kept)
        return x

    def conditions(self, batch):
        return self.cond(torch.cat([batch.states[name] for name in self.reads], -1))

    def forward(self, batch, steps):
        n = batch.rows(0)
        x = self.block(self.conditions(batch)[:, :n], batch.e[:, 1:], [[] for _ in self.layers], [])
        for k in range(steps):
            yield x[:, :batch.rows(k), k]

    def head(self, states):
        return super().head(self.n(states))

    def ranks(self, x, logits):
        """The rank head's scores [..., 4] of slots' streams and logits; it teaches neither."""
        return self.rank(torch.cat((self.n(x).detach(), features(logits.detach())), -1))

    def loss(self, batch, lp, a):
        """The loss of a batch, of which lp [B, T, V] are the logarithms of the target's distributions. A slot counts where the slots before it draft the text's tokens."""
        condition, e, past, kept, total = self.conditions(batch)[:, :batch.rows(0)], batch.e[:, 1:], [[] for _ in self.layers], [], 0.0
        for number in range(self.blocks):
            x, shift = self.block(condition, e, past, kept), sum(kept)
            right, scores, true = torch.ones(x.shape[:2], dtype=torch.bool), [], []
            for k in range(self.depth):
                n = batch.length - 2 - shift - k  # rows whose token is in the text
                on, slots = right[:, :n], x[:, :n, k]
                slots, ids, p = slots[on], batch.ids[:, 2 + shift + k:][on], lp[:, 1 + shift + k:-1][on].exp()
                if not len(ids):
                    break
                logits = self.head(slots)
                total = total - a.decay ** k * a.soft * (p * logits.log_softmax(-1)).sum(-1).mean()
                of = classes(logits.detach(), ids)
                scores, true, right = scores + [self.ranks(slots, logits)], true + [of], on.masked_scatter(on, of == 0)
            total = total + rank_loss(torch.cat(scores), torch.cat(true))
            if number + 1 < self.blocks:
                kept.append(int(torch.randint(1, self.depth + 1, ()).item()))
                n = batch.rows(0) - sum(kept)
                condition, e, past = x[:, :n, kept[-1] - 1], batch.e[:, 1 + sum(kept):], [[[y[:, :, :n] for y in both] for both in of] for of in past]
        return total

    def tensors(self):
        d, out = self.c["dim"], {}
        for name, t in (("condition_proj", self.cond.weight), ("condition_norm", self.cn.w), ("token_norm", self.en.w), ("position_queries", self.queries),
                        ("query_norm", self.qn.w), ("fuse", self.fuse.weight)):
            out[f"input_layer.{name}.weight"] = t
        for i, layer in enumerate(self.layers):
            out.update(layer.tensors(f"layers.{i}."))
            out[f"layers.{i}.input_layernorm.weight"] = self.norms[i].w
        for i, m in enumerate(self.shift):
            out[f"shift_proj.{i}.weight"] = m.weight
        for i in (0, 2):
            out.update({f"rank_head.{i}.{n}": p for n, p in (("weight", self.rank[i].weight), ("bias", self.rank[i].bias))})
        return dict(out, **{"norm.weight": self.n.w})

    def settings(self):
        return dict(self.layers[0].settings(), architectures=["SpecBlockDraftModel"], num_hidden_layers=len(self.layers), diffspec_draft_token_num=self.depth,
                    rank_classes=CLASSES, draft_vocab_size=self.c["vocab"], eagle_aux_hidden_state_layer_ids=list(self.taps))
