"""Rows of the target itself that stand behind a text's tokens and draft: PPD's, which are learned vectors. See headnets.py for what a head is.

Behind token i stand rows at the places i+1, i+2, ... Row k of them, from 0, gives what the target computes at i+1+k: the distribution of x_{i+2+k}. It attends
to the tokens up to i and to the rows before it behind the same token. Rows begin at a layer and run those above; those below have no keys of it.
Nothing of the target is trained.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets
import model


class Rows(headnets.Head):
    """What such rows have in common. A kind says from which layer on a row runs, and what its stream is there.

    most: in training, rows stand behind so many tokens of a text, which are drawn; rows has these tokens' places then. Otherwise they stand behind all."""

    reads = ()

    def __init__(self, c, target, depth, most=None):
        super().__init__(c, target, depth)
        self.target, self.most, self.rows = [target], most, None

    def start(self, k):
        """The first layer of row k, which is not below that of the row before."""
        raise NotImplementedError

    def begin(self, k, stream):
        """The stream of row k behind tokens whose own is stream [B, T, H], where both enter layer start(k)."""
        raise NotImplementedError

    def forward(self, batch, steps):
        target, rows, self.rows = self.target[0], [], None
        if self.training and self.most:
            self.rows = torch.randperm(batch.rows(steps - 1))[:self.most].sort()[0]
        with torch.no_grad():
            text = target.emb(batch.ids)
        for i, block in enumerate(target.b):
            while len(rows) < steps and self.start(len(rows)) <= i:
                rows.append(self.begin(len(rows), text[:, self.places(batch, len(rows))]))
            with torch.no_grad():
                keys = self.heads(block, text, torch.arange(batch.length))[1:]
                text = target.skipped(block, text, 0.0)
            own = []  # keys and values of the rows behind the same token
            for k, x in enumerate(rows):
                rows[k] = self.layer(block, x, self.places(batch, k), k + 1, keys, own)
        for x in rows:
            yield target.n(x)

    def places(self, batch, k):
        """The places of the tokens behind which row k stands."""
        return torch.arange(batch.rows(k)) if self.rows is None else self.rows

    def heads(self, block, x, places):
        """Queries, keys and values [B, heads, T, E] of a stream [B, T, H] whose rows have these places; queries are scaled."""
        c, target = self.c, self.target[0]
        y, share = block.n1(x), c["heads"] // c["kv"]
        split = lambda m, n: m(y).view(*y.shape[:2], n, c["hd"])
        turn = lambda z: model.rotate(z, target.cos[:, places], target.sin[:, places])
        q, k, v = turn(split(block.q, c["heads"])), turn(split(block.k, c["kv"])), split(block.v, c["kv"])
        return q.transpose(1, 2) * c["hd"] ** -0.5, k.transpose(1, 2).repeat_interleave(share, 1), v.transpose(1, 2).repeat_interleave(share, 1)

    def layer(self, block, x, places, at, text, own):
        """A layer for rows x [B, T, H] that stand at tokens behind those of these places. own has the keys and values of earlier rows, and gets theirs."""
        b, n, _ = x.shape
        q, *keys = self.heads(block, x, places + at)
        own.append(keys)
        (k, v), behind, t = text, [[y[:, :, :n] for y in both] for both in own], text[0].shape[2]
        true = (q @ k.transpose(2, 3)).masked_fill(torch.arange(t) > places[:, None], -1e9)
        a = torch.cat([true, *((q * one).sum(-1, keepdim=True) for one, _ in behind)], -1).softmax(-1)
        out = a[..., :t] @ v
        for j, (_, one) in enumerate(behind):
            out = out + a[..., t + j:t + j + 1] * one
        x = x + block.o(out.transpose(1, 2).reshape(b, n, -1))
        y = block.n2(x)
        return x + block.dn(F.silu(block.g(y)) * block.u(y))


class Prompt(Rows):
    """PPD (2024): row k begins as a learned vector. Each is the embedding of a token first, drawn by the seed."""

    published = ("adapter_model.safetensors", "adapter_config.json")

    def __init__(self, c, target, depth, most=None):
        super().__init__(c, target, depth, most)
        self.vectors = nn.Parameter(target.emb.weight.detach()[torch.randint(c["vocab"], (depth,))].clone())

    def start(self, k):
        return 0

    def begin(self, k, stream):
        return self.vectors[k].expand(stream.shape)

    def tensors(self):
        return {"prompt_embeddings": self.vectors}

    def settings(self):
        return dict(peft_type="PROMPT_TUNING", task_type="CAUSAL_LM", num_virtual_tokens=self.depth, num_special_tokens=self.depth,
                    virtual_tokens_per_special_token=1, token_dim=self.c["dim"])
