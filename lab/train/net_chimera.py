"""Chimera's head (2024), which heads.py trains."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets
import model


class Chimera(headnets.Head):
    """Chimera (2024). A token whose state is not there yet has a row made of its embedding and those of the two tokens before it: g = P(x + SiLU(Wx + b)) of x,
    the three side by side, the text's first token standing for those before it. A layer of Llama reads the states as rows, each at its token's place, and behind
    them such rows.

    The paper leaves the mask open. Here the row of x_j sees, where h_i is the last state, the rows of h_0 to h_i and those of x_{i+1} to x_j: all before it, by
    its state where there is one. What the layer gives there, f, stands for h_j. Depth k reads [h_i; f of x_{i+1+k}] by a matrix M of its own and then the
    target's output matrix U: the paper's matrices [V, 2H] are products U M, and begin as U twice, side by side, as those do."""

    def __init__(self, c, target, depth, ffn):
        super().__init__(c, target, depth)
        d = c["dim"]
        self.inner, self.out = headnets.linear(3 * d, 3 * d, bias=True), headnets.linear(3 * d, d)
        self.n1, self.layer = model.RMSNorm(d, c["eps"]), headnets.Layer(c, d, c["kv"], ffn)
        self.mix = nn.ModuleList(headnets.linear(2 * d, d, std=0.0) for _ in range(depth))
        for m in self.mix:
            m.weight.data[:, :d] = m.weight.data[:, d:] = torch.eye(d)

    def trigrams(self, batch):
        """The rows of the tokens [B, T, H]. x is as large as the states. SiLU gets a root of that, so that it bends and what it gives is of x's size: the file's
        P, W and b, which read embeddings as they are, have the factors scale, root and 1/root."""
        root, e = self.scale ** 0.5, self.scale * batch.e
        first = e[:, :1]
        x = torch.cat((torch.cat((first, first, e), 1)[:, :-2], torch.cat((first, e), 1)[:, :-1], e), -1)
        return self.out(x + self.scale * F.silu(self.inner(x) / root))

    def kept_of(self, rows):
        """The keys and values that rows keep, for every head."""
        y, kv, share = self.n1(rows), self.layer.kv, self.c["heads"] // self.layer.kv
        return [m.repeat_interleave(share, 1) for m in (self.layer.heads(self.layer.k, y, kv, 0), self.layer.heads(self.layer.v, y, kv, None))]

    def forward(self, batch, steps):
        h, g, layer = batch.states["final"], self.trigrams(batch), self.layer
        (kh, vh), (kg, vg) = self.kept_of(h), self.kept_of(g)
        k, v = torch.cat((kh, kg), 2).transpose(2, 3), torch.cat((vh, vg), 2)
        q = layer.heads(layer.q, self.n1(g), self.c["heads"], 0) * self.c["hd"] ** -0.5
        place = torch.arange(batch.length)
        for depth in range(steps):
            at = slice(1 + depth, None)  # the places of the tokens that are drafted behind
            behind = place[None, :] - place[at, None]
            hidden = torch.cat((behind >= -depth, (behind < -depth) | (behind > 0)), 1)
            a = (q[:, :, at] @ k).masked_fill(hidden, -1e9).softmax(-1) @ v
            f = g[:, at] + layer.o(a.transpose(1, 2).flatten(2))
            y = layer.n2(f)
            f = f + layer.dn(F.silu(layer.g(y)) * layer.u(y))
            yield self.mix[depth](torch.cat((h[:, :batch.rows(depth)], f), -1))

    def tensors(self):
        root = self.scale ** 0.5
        return {"trimlp.0.linear.weight": root * self.inner.weight, "trimlp.0.linear.bias": self.inner.bias / root, "trimlp.1.weight": self.scale * self.out.weight,
                "fast_layer1.0.input_layernorm.weight": self.n1.w, **self.layer.tensors("fast_layer1.0."),
                **{f"chimera_head.{k}.mix.weight": m.weight for k, m in enumerate(self.mix)}}

    def settings(self):
        return self.layer.settings()
