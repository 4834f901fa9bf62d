"""Falcon (2025): a drafter of blocks of k tokens. A row is the pair (h_i, x_{i+1}) and stands for the state k places on, h_{i+k}: the k rows of a block see each
other, so that one pass over the last k pairs of a text gives its next k tokens. What a row's layer reads is the result of an LSTM of two layers over the row's
pair and the pairs before it, so many in all, zeros where the text begins. The published code gives the LSTM a row at a time, which is one pair, and trains so.

Coupled Sequential Glancing Distillation: a first pass predicts; so many rows that begin a block as a share of the mistakes, which falls in training, get the pair of
their answer in place of their own; the second pass learns.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets

GLANCE = (0.35, 0.1)  # the share of mistakes that are shown: what falls to nothing, and what stays


class Falcon(headnets.Head):
    """k: tokens of a block; pairs: those that the LSTM reads; noise: of the states in training, as a share of their size; steps: of a training, 0: not known."""

    def __init__(self, c, target, depth, ffn, k=2, pairs=2, noise=0.0, steps=0):
        super().__init__(c, target, depth)
        d = c["dim"]
        self.k, self.pairs, self.noise, self.steps, self.step = k, pairs, noise, steps, 0
        self.lstm, self.layer = nn.LSTM(2 * d, d, num_layers=2, batch_first=True, dropout=0.1), headnets.Layer(c, d, c["kv"], ffn)
        size = target.n.w.pow(2).mean().sqrt().item()
        with torch.no_grad():  # both layers pass the state on, as far as an LSTM can
            self.lstm.weight_ih_l0[2 * d:3 * d, d:] += torch.eye(d) / size
            self.lstm.weight_ih_l1[2 * d:3 * d] += 2 * torch.eye(d)
            for bias in (self.lstm.bias_ih_l0, self.lstm.bias_ih_l1):
                bias[:d] += 1
                bias[3 * d:] += 1

    def read(self, rows):
        """What the layer reads of rows [..., N, 2H], of which each has those before it: [..., N, H]."""
        lead, n = rows.shape[:-2], rows.shape[-2]
        windows = F.pad(rows, (0, 0, self.pairs - 1, 0)).unfold(-2, self.pairs, 1).transpose(-1, -2)
        return self.lstm(windows.reshape(-1, self.pairs, rows.shape[-1]))[0][:, -1].view(*lead, n, -1)

    def projected(self, x, turn):
        """Queries, keys and values of rows [B, T, H] that stand at the positions from turn on, each [B, heads, T, E]."""
        layer, share = self.layer, self.c["heads"] // self.layer.kv
        q = layer.heads(layer.q, x, self.c["heads"], turn) * self.c["hd"] ** -0.5
        return q, *(y.repeat_interleave(share, 1) for y in (layer.heads(layer.k, x, layer.kv, turn), layer.heads(layer.v, x, layer.kv, None)))

    def behind(self, x, out):
        """The layer's result of rows x whose attention gave out [B, heads, T, E]."""
        layer = self.layer
        x = x + layer.o(out.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))
        y = layer.n2(x)
        return x + layer.dn(F.silu(layer.g(y)) * layer.u(y))

    def forward(self, batch, steps):
        """Row i of a depth is a draft behind the pairs up to i, the last k of which are the first block. Tokens of later blocks are those of the text, their states
        the drafts' own. Rows before k-1 have no block, and zeros at some depths."""
        r, d = batch.rows(0), self.c["dim"]
        e = F.pad(self.scale * batch.e, (0, 0, 0, steps + self.k))
        pairs = torch.cat((e[:, 1:1 + r], batch.states["final"][:, :r]), -1)
        x = self.read(pairs)
        q, keys, values = self.projected(x, 0)
        scores, place = q @ keys.transpose(2, 3), torch.arange(r)
        block, own, given = [], [], []
        for j in range(self.k):
            later = self.k - 1 - j  # pairs of the block behind this row's
            hidden = (place[None, :] > place[:, None] + later).float() * -1e9
            f = F.pad(self.behind(x, (scores + hidden).softmax(-1) @ values), (0, 0, later, 0))[:, :r]
            given.append(f)
            block.append(F.pad(pairs, (0, 0, later, 0))[:, :r])
        hidden = torch.full((r, r), -1e9).triu(1)
        for depth in range(steps):
            j, first = depth % self.k, depth - depth % self.k
            if depth and not j:
                rows = [torch.cat((e[:, 2 + first - self.k + i:][:, :r], f), -1) for i, f in enumerate(given)]
                read = self.read(torch.stack(block + rows, 2))[:, :, self.k:].unbind(2)
                asked = [self.projected(y, 1 + first - self.k + i) for i, y in enumerate(read)]
                own, block = own + [(k_own, v_own) for _, k_own, v_own in asked], rows
                given = [self.behind(y, self.attend(q_own, keys, values, hidden, own)) for y, (q_own, _, _) in zip(read, asked)]
            yield given[j][:, :batch.rows(depth)]

    @staticmethod
    def attend(q, keys, values, hidden, own):
        """The attention of draft rows: row i to the true rows up to i, and to row i of own."""
        t = q.shape[2]
        a = torch.cat([q @ keys.transpose(2, 3) + hidden, *((q * k).sum(-1, keepdim=True) for k, _ in own)], -1).softmax(-1)
        out = a[..., :t] @ values
        for j, (_, v) in enumerate(own):
            out = out + a[..., t + j:t + j + 1] * v
        return out

    def blocks(self, pairs, block):
        """The states that rows [B, T, 2H] give, whose blocks are numbers that rise [T]: each row sees its block and those before it."""
        x = self.read(pairs)
        q, keys, values = self.projected(x, 0)
        hidden = (block[None, :] > block[:, None]).float() * -1e9
        return self.behind(x, (q @ keys.transpose(2, 3) + hidden).softmax(-1) @ values)

    def taught(self, batch, steps):
        """The states of both passes' second, which are those of depth k-1: row i stands for the state at i+k."""
        h, n = batch.states["final"], batch.length - self.k
        noisy = h + (torch.rand_like(h) - 0.5) * self.noise * h.pow(2).mean().sqrt()
        offset = int(torch.randint(self.k, ()))  # rows of the first block that the text has not
        block = (torch.arange(batch.rows(0)) + offset) // self.k
        pairs = torch.cat((self.scale * batch.e[:, 1:], noisy[:, :-1]), -1)
        with torch.no_grad():
            wrong = (self.head(self.blocks(pairs, block)[:, :n]).argmax(-1) != self.head(h[:, self.k:]).argmax(-1)).sum(-1)
        shown = torch.zeros(pairs.shape[:2], dtype=torch.bool)
        falls, stays = GLANCE
        share = falls * max(0.0, 1 - self.step / self.steps if self.steps else 0.5) + stays
        self.step += 1
        for row, mistakes in zip(shown, wrong.tolist()):
            self.show(row[:n - 1], int(mistakes * share), offset)
        answers = torch.cat((self.scale * batch.e[:, 1 + self.k:], h[:, self.k:-1]), -1)
        pairs = torch.where(shown[..., None], F.pad(answers, (0, 0, 0, self.k)), pairs)
        yield self.k - 1, self.blocks(pairs, block)[:, :n]

    def show(self, row, n, offset):
        """Marks rows that are shown their answers: those that begin n blocks, of more than two rows n/k blocks, and some that follow these."""
        starts = torch.arange(-offset % self.k, len(row), self.k)
        starts = starts[torch.randperm(len(starts))[:n if self.k == 2 else n // self.k]]
        if self.k == 1:
            return
        for at, more in zip(starts.tolist(), torch.randint(self.k - 1, (len(starts),)).tolist()):
            row[at:at + 1 + more] = True

    def tensors(self):
        out = {"lstm." + name: p for name, p in self.lstm.named_parameters()}
        out["lstm.weight_ih_l0"] = self.folded(self.lstm.weight_ih_l0, 0, self.c["dim"])
        return {**out, **self.layer.tensors("layers.0.")}

    def settings(self):
        return dict(architectures=["LlamaForCausalLM"], model_type="llama", bias=True, k_mask=self.k, lstm_pairs=self.pairs, **self.layer.settings())
