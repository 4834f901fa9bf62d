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
    """What such rows have in common. A kind says from which layer on a row runs, and what its stream is there."""

    reads = ()

    def __init__(self, c, target, depth):
        super().__init__(c, target, depth)
        self.target = [target]

    def start(self, k):
        """The first layer of row k, which is not below that of the row before."""
        raise NotImplementedError

    def begin(self, k, stream):
        """The stream of row k behind tokens whose own is stream [B, T, H], where both enter layer start(k)."""
        raise NotImplementedError

    def forward(self, batch, steps):
        target, rows = self.target[0], []
        with torch.no_grad():
            text = target.emb(batch.ids)
        for i, block in enumerate(target.b):
            while len(rows) < steps and self.start(len(rows)) <= i:
                rows.append(self.begin(len(rows), text[:, :batch.rows(len(rows))]))
            with torch.no_grad():
                keys = self.heads(block, text, 0)[1:]
                text = target.skipped(block, text, 0.0)
            own = []  # keys and values of the rows behind the same token
            for k, x in enumerate(rows):
                rows[k] = self.layer(block, x, k + 1, keys, own)
        for x in rows:
            yield target.n(x)

    def heads(self, block, x, at):
        """Queries, keys and values [B, heads, T, E] of a stream [B, T, H] whose first row has the place at; queries are scaled."""
        c, t, target = self.c, x.shape[1], self.target[0]
        y, share = block.n1(x), c["heads"] // c["kv"]
        split = lambda m, n: m(y).view(*y.shape[:2], n, c["hd"])
        turn = lambda z: model.rotate(z, target.cos[:, at:at + t], target.sin[:, at:at + t])
        q, k, v = turn(split(block.q, c["heads"])), turn(split(block.k, c["kv"])), split(block.v, c["kv"])
        return q.transpose(1, 2) * c["hd"] ** -0.5, k.transpose(1, 2).repeat_interleave(share, 1), v.transpose(1, 2).repeat_interleave(share, 1)

    def layer(self, block, x, at, text, own):
        """A layer for rows x [B, T, H] that stand at places behind each token. own has the keys and values of earlier rows, and gets theirs."""
        b, t, _ = x.shape
        q, *keys = self.heads(block, x, at)
        own.append(keys)
        (k, v), behind = (y[:, :, :t] for y in text), [[y[:, :, :t] for y in both] for both in own]
        true = q @ k.transpose(2, 3) + torch.full((t, t), -1e9, device=x.device).triu(1)
        a = torch.cat([true, *((q * one).sum(-1, keepdim=True) for one, _ in behind)], -1).softmax(-1)
        out = a[..., :t] @ v
        for j, (_, one) in enumerate(behind):
            out = out + a[..., t + j:t + j + 1] * one
        x = x + block.o(out.transpose(1, 2).reshape(b, t, -1))
        y = block.n2(x)
        return x + block.dn(F.silu(block.g(y)) * block.u(y))


class Prompt(Rows):
    """PPD (2024): row k begins as a learned vector. Each is the embedding of a token first, drawn by the seed."""

    published = ("adapter_model.safetensors", "adapter_config.json")

    def __init__(self, c, target, depth):
        super().__init__(c, target, depth)
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
