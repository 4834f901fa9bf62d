"""Modules that draft a block in one pass, DFlash and DSpark (2026), which heads.py trains."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets
import model


def turn(x, cos, sin):
    """Rotates x [..., E], whose values i and i + E/2 are a pair, as the published layers have it."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    """A layer of Qwen 3's kind over the rows of blocks. Its context is made of the same vector of a token's states in every layer; the rows of a block see the
    context before their block, and each other."""

    def __init__(self, c, ffn):
        super().__init__()
        d, hd = c["dim"], c["hd"]
        self.c, self.n1, self.n2 = c, model.RMSNorm(d, c["eps"]), model.RMSNorm(d, c["eps"])
        self.q, self.k, self.v = (headnets.linear(d, n * hd) for n in (c["heads"], c["kv"], c["kv"]))
        self.qn, self.kn = model.RMSNorm(hd, c["eps"]), model.RMSNorm(hd, c["eps"])
        self.o = headnets.linear(c["heads"] * hd, d, std=0.002)
        self.g, self.u, self.dn = headnets.linear(d, ffn), headnets.linear(d, ffn), headnets.linear(ffn, d, std=0.002)

    def keys(self, x, cos, sin):
        """Keys and values of x [B, ..., H], for every head [B, ..., heads, E]; cos and sin are of its rows' places."""
        share, shape = self.c["heads"] // self.c["kv"], (*x.shape[:-1], self.c["kv"], self.c["hd"])
        return (turn(self.kn(self.k(x).view(shape)), cos, sin).repeat_interleave(share, -2), self.v(x).view(shape).repeat_interleave(share, -2))

    def forward(self, x, context, hidden, turns):
        """x [B, N, R, H]: N blocks of R rows; context [B, T, H]; hidden [N, T]: which context a block does not see; turns: cosines and sines of the
        places of the context and of the blocks' rows."""
        (cos, sin), own = turns
        y = self.n1(x)
        q = turn(self.qn(self.q(y).view(*y.shape[:-1], self.c["heads"], self.c["hd"])), *own) * self.c["hd"] ** -0.5
        (k, v), (ko, vo) = self.keys(context, cos, sin), self.keys(y, *own)
        far = torch.einsum("bnrhe,bthe->bnhrt", q, k).masked_fill(hidden[None, :, None, None], -1e9)
        a = torch.cat((far, torch.einsum("bnrhe,bnshe->bnhrs", q, ko)), -1).softmax(-1)
        t = context.shape[1]
        out = torch.einsum("bnhrt,bthe->bnrhe", a[..., :t], v) + torch.einsum("bnhrs,bnshe->bnrhe", a[..., t:], vo)
        x = x + self.o(out.flatten(-2))
        y = self.n2(x)
        return x + self.dn(F.silu(self.g(y)) * self.u(y))

    def tensors(self, prefix):
        out = {f"{prefix}self_attn.{n}_proj.weight": m.weight for n, m in (("q", self.q), ("k", self.k), ("v", self.v), ("o", self.o))}
        out.update({f"{prefix}mlp.{n}_proj.weight": m.weight for n, m in (("gate", self.g), ("up", self.u), ("down", self.dn))})
        out.update({prefix + n + ".weight": m.w for n, m in (("self_attn.q_norm", self.qn), ("self_attn.k_norm", self.kn), ("input_layernorm", self.n1),
                                                             ("post_attention_layernorm", self.n2))})
        return out


class DFlash(headnets.Head):
    """DFlash (2026). The block behind token i is x_{i+1} and masks; it sees the states of the tokens up to i, and row k+1 drafts x_{i+2+k}. Every token of a text
    begins a block in training, where the paper draws some.

    mask: the token of the rows behind the first. layers read the streams behind taps layers of the target."""

    anchored = False  # whether the first row drafts too

    def __init__(self, c, target, depth, ffn, taps, layers, mask):
        super().__init__(c, target, depth)
        d, self.taps, self.mask, self.reads = c["dim"], taps, mask, tuple(f"layer.{k}" for k in taps)
        self.size = depth + (not self.anchored)
        self.fc, self.hn, self.n = headnets.linear(len(taps) * d, d), model.RMSNorm(d, c["eps"]), model.RMSNorm(d, c["eps"])
        self.layers = nn.ModuleList(Layer(c, ffn) for _ in range(layers))
        self.n.w.data.copy_(target.n.w.data)
        freq = 1 / c["theta"] ** (torch.arange(0, c["hd"], 2).float() / c["hd"])
        angle = torch.outer(torch.arange(2 * c["ctx"]).float(), freq)
        self.register_buffer("cos", angle.cos()[:, None], persistent=False)
        self.register_buffer("sin", angle.sin()[:, None], persistent=False)

    def block(self, batch):
        """The states of all rows of the blocks behind tokens 0, 1, ... [B, T-1, R, H]."""
        t, n = batch.length, batch.rows(0)
        context = self.hn(self.fc(torch.cat([batch.states[name] for name in self.reads], -1)))
        x = self.lent[0][self.mask].detach().expand(len(batch.ids), n, self.size - 1, -1)
        x = torch.cat((batch.e[:, 1:, None], x), 2)
        places = torch.arange(n)[:, None] + 1 + torch.arange(self.size)
        turns = (self.cos[:t], self.sin[:t]), (self.cos[places], self.sin[places])
        hidden = torch.arange(t)[None] > torch.arange(n)[:, None]
        for layer in self.layers:
            x = layer(x, context, hidden, turns)
        return self.n(x)

    def forward(self, batch, steps):
        x = self.block(batch)
        for k in range(steps):
            yield x[:, :batch.rows(k), k + (not self.anchored)]

    def tensors(self):
        out = {"fc.weight": self.fc.weight, "hidden_norm.weight": self.hn.w, "norm.weight": self.n.w}
        for i, layer in enumerate(self.layers):
            out.update(layer.tensors(f"layers.{i}."))
        return out

    def blocks(self):
        """The settings of blocks."""
        return dict(dflash_config=dict(mask_token_id=self.mask, target_layer_ids=[k - 1 for k in self.taps]))

    def settings(self):
        c = self.c
        return dict(architectures=["DFlashDraftModel"], model_type="qwen3", block_size=self.size, num_target_layers=c["layers"], **self.blocks(),
                    num_hidden_layers=len(self.layers), layer_types=["full_attention"] * len(self.layers), num_attention_heads=c["heads"], num_key_value_heads=c["kv"],
                    head_dim=c["hd"], intermediate_size=self.layers[0].g.weight.shape[0], hidden_act="silu", rms_norm_eps=c["eps"], rope_theta=c["theta"],
                    max_position_embeddings=c["ctx"])


class DSpark(DFlash):
    """DSpark (2026): DFlash whose first row drafts too, and whose logits have a product of two small matrices added, of the token before each. It has no
    confidence head here."""

    anchored = True

    def __init__(self, c, target, depth, ffn, taps, layers, mask, rank):
        super().__init__(c, target, depth, ffn, taps, layers, mask)
        self.w1, self.w2 = nn.Parameter(torch.randn(c["vocab"], rank) * 0.1), nn.Parameter(torch.zeros(c["vocab"], rank))

    def forward(self, batch, steps):
        """The states, and behind each the token's row of w1."""
        for k, states in enumerate(super().forward(batch, steps)):
            yield torch.cat((states, self.w1[batch.ids[:, 1 + k:]]), -1)

    def head(self, states):
        d = self.c["dim"]
        return super().head(states[..., :d]) + states[..., d:] @ self.w2.T

    def tensors(self):
        return {**super().tensors(), "markov_head.markov_w1.weight": self.w1, "markov_head.markov_w2.weight": self.w2}

    def blocks(self):
        return dict(mask_token_id=self.mask, target_layer_ids=[k - 1 for k in self.taps], markov_rank=self.w1.shape[1], markov_head_type="vanilla",
                    enable_confidence_head=False, confidence_head_with_markov=False)

    def settings(self):
        return dict(super().settings(), architectures=["Qwen3DSparkModel"])


def rarest(states, vocab):
    """The token that texts have least, of those alike the last: the mask, so that hardly any text has it."""
    counts = torch.bincount(torch.from_numpy(states.tensors["ids"].astype("i8")), minlength=vocab)
    return int(vocab - 1 - counts.flip(0).argmin())


def build(a, c, target, states):
    """The module that the flags of heads.py name."""
    kind = dict(dflash=DFlash, dspark=DSpark)[a.kind]
    more = (a.rank,) if a.kind == "dspark" else ()
    return kind(c, target, a.depth, a.ffn or c["ffn"], a.taps, a.layers, rarest(states, c["vocab"]), *more)
