"""Drafting heads: what they compute of a target's states, and how their authors name their tensors. heads.py trains them.

Of a text, x_i are its tokens, h_i the target's state that consumed x_i, and e(x) the target's embedding of x. A head drafts x_{i+2} behind h_i and x_{i+1},
which is known by then, and x_{i+2+k} at depth k. forward returns for each depth the states of rows i = 0, 1, ... [B, T-1-k, H]; head turns them into logits.
Row i of depth k is to be what the target computes at i+1+k, so that row i learns from row i+1+k of the target's own logits. Tokens of the
draft are those of the text (teacher forcing); states of the draft are its own.

The output matrix is the target's, lent, unless a head says otherwise: a file has none then. Where a matrix reads embeddings beside states, it is trained on
embeddings that are made as large as the states, which the columns of the file make up for: a target's embeddings may be small, and columns for
them would have to be large.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import export
import model


class Batch:
    """Texts: ids [B, T], their embeddings e [B, T, H], and states by name [B, T, H]: final, and layer.K behind the first K layers."""

    def __init__(self, ids, e, states):
        self.ids, self.e, self.states, self.length = ids, e, states, ids.shape[1]

    def rows(self, k):
        """The number of rows of depth k."""
        return self.length - 1 - k


def linear(inputs, outputs, bias=False, std=0.02):
    m = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(m.weight, std=std)
    if bias:
        nn.init.zeros_(m.bias)
    return m


class Head(nn.Module):
    """What heads have in common. c: the target's settings; target: its model, which is not trained; depth: the tokens that are drafted."""

    reads = ("final",)
    rows = None  # of the depth at hand, where a head leaves some out in training: their numbers [n]
    published = ("model.safetensors", "config.json")  # the files of its folder

    def __init__(self, c, target, depth):
        super().__init__()
        self.c, self.depth, self.lent = c, depth, [target.emb.weight]  # in a list, so that it is no parameter of this module
        self.scale = (target.n.w.pow(2).mean() / target.emb.weight.pow(2).mean()).sqrt().item()  # a last state's size to an embedding's

    def head(self, states):
        return states @ self.lent[0].T

    def feature(self, states):
        """What is to be the target's state, of what forward returns."""
        return states

    def folded(self, weight, first, end):
        """A matrix whose columns from first to end read scaled embeddings, as one that reads the embeddings themselves."""
        columns = torch.ones(weight.shape[1])
        columns[first:end] = self.scale
        return weight * columns

    def kept(self):
        """The target's tokens that the head drafts, None for all."""
        return None

    def taught(self, batch, steps):
        """The states that are taught, each with its depth."""
        return enumerate(self(batch, steps))

    def tensors(self):
        """The tensors of the published layout, by name."""
        return {}

    def settings(self):
        """The keys of the published config.json."""
        return {}


class Medusa(Head):
    """Medusa (2024): each depth is a block x + SiLU(Wx + b) of its own over the state. W is zero first, so that all depths begin as the target."""

    def __init__(self, c, target, depth):
        super().__init__(c, target, depth)
        self.blocks = nn.ModuleList(linear(c["dim"], c["dim"], bias=True, std=0.0) for _ in range(depth))

    def forward(self, batch, steps):
        h = batch.states["final"]
        for k, block in enumerate(self.blocks[:steps]):
            x = h[:, :batch.rows(k)]
            yield x + F.silu(block(x))

    def tensors(self):
        return {f"medusa_head.{k}.0.linear.{n}": p for k, b in enumerate(self.blocks) for n, p in (("weight", b.weight), ("bias", b.bias))}

    def settings(self):
        return dict(medusa_num_heads=self.depth, medusa_num_layers=1)


class Hydra(Head):
    """Hydra (2024), arch mlp: depth k reads the state and the embeddings of the k+1 tokens behind it. R begins as the state itself.

    blind takes the state away: what is left is a model of the tokens alone, for the measure of heads.py."""

    def __init__(self, c, target, depth, blind=False, reads="final"):
        super().__init__(c, target, depth)
        d, self.reads, self.blind = c["dim"], (reads,), blind
        self.inner = nn.ModuleList(linear((k + 2) * d, d, bias=True) for k in range(depth))
        self.skip = nn.ModuleList(linear((k + 2) * d, d, bias=True, std=0.0) for k in range(depth))
        for r in self.skip:
            r.weight.data[:, :d] = torch.eye(d)

    def forward(self, batch, steps):
        h = batch.states[self.reads[0]]
        h = torch.zeros_like(h) if self.blind else h
        for k in range(steps):
            n = batch.rows(k)
            x = torch.cat([h[:, :n], *(self.scale * batch.e[:, 1 + j:1 + j + n] for j in range(k + 1))], -1)
            yield self.skip[k](x) + F.silu(self.inner[k](x))

    def tensors(self):
        d = self.c["dim"]
        return {f"hydra_mlp.{k}.0.{name}.{n}": p for k in range(self.depth) for name, m in (("linear", self.inner[k]), ("res_connection", self.skip[k]))
                for n, p in (("weight", self.folded(m.weight, d, (k + 2) * d)), ("bias", m.bias))}

    def settings(self):
        return dict(hydra_num_heads=self.depth, hydra_num_layers=1, hydra_head_arch="mlp", grounded_heads=True, hidden_state_offset=0)


class Layer(nn.Module):
    """A layer of Llama whose queries, keys and values are products of inputs values, with or without a feed-forward part of ffn values.

    It is asked for several steps in turn: row i of step j attends to the rows up to i of step 0, which are of true states, and to row i of the steps
    1 to j, and stands at position i + j, as it does where a draft of j tokens hangs behind token i."""

    def __init__(self, c, inputs, kv, ffn):
        super().__init__()
        self.c, self.kv, d, hd = c, kv, c["dim"], c["hd"]
        self.q, self.k, self.v = linear(inputs, c["heads"] * hd), linear(inputs, kv * hd), linear(inputs, kv * hd)
        self.o = linear(c["heads"] * hd, d, std=0.002)
        if ffn:
            self.n2, self.g, self.u, self.dn = model.RMSNorm(d, c["eps"]), linear(d, ffn), linear(d, ffn), linear(ffn, d, std=0.002)
        self.ffn = ffn
        freq = 1 / c["theta"] ** (torch.arange(0, hd, 2).float() / hd)
        angle = torch.outer(torch.arange(2 * c["ctx"]).float(), freq)
        self.register_buffer("cos", angle.cos()[None, :, None], persistent=False)
        self.register_buffer("sin", angle.sin()[None, :, None], persistent=False)

    def heads(self, m, x, heads, turn):
        """A product of x, split into heads [B, heads, T, E]; turn: at which positions it is rotated, None: it is not."""
        y = m(x).view(*x.shape[:2], heads, self.c["hd"])
        if turn is not None:
            y = model.rotate(y, self.cos[:, turn:turn + x.shape[1]], self.sin[:, turn:turn + x.shape[1]])
        return y.transpose(1, 2)

    def attend(self, x, past):
        """The attention of x [B, T, inputs], whose step is the number of steps in past, to which it adds its keys and values."""
        b, t, _ = x.shape
        step, h, share = len(past), self.c["heads"], self.c["heads"] // self.kv
        q = self.heads(self.q, x, h, step) * self.c["hd"] ** -0.5
        past.append([y.repeat_interleave(share, 1) for y in (self.heads(self.k, x, self.kv, step), self.heads(self.v, x, self.kv, None))])
        (k, v), own = past[0], [[y[:, :, :t] for y in both] for both in past[1:]]
        k, v = k[:, :, :t], v[:, :, :t]
        true = q @ k.transpose(2, 3) + torch.full((t, t), -1e9, device=x.device).triu(1)
        a = torch.cat([true, *((q * k_own).sum(-1, keepdim=True) for k_own, _ in own)], -1).softmax(-1)
        out = a[..., :t] @ v
        for j, (_, v_own) in enumerate(own):
            out = out + a[..., t + j:t + j + 1] * v_own
        return self.o(out.transpose(1, 2).reshape(b, t, -1))

    def forward(self, x, skip, past):
        """skip [B, T, H]: what the attention's result is added to."""
        x = skip + self.attend(x, past)
        if not self.ffn:
            return x
        y = self.n2(x)
        return x + self.dn(F.silu(self.g(y)) * self.u(y))

    def tensors(self, prefix):
        out = {}
        for name, m, heads in (("q", self.q, self.c["heads"]), ("k", self.k, self.kv), ("v", self.v, 0), ("o", self.o, 0)):
            out[f"{prefix}self_attn.{name}_proj.weight"] = export.halves(m.weight, heads) if heads else m.weight
        if self.ffn:
            out.update({f"{prefix}mlp.{name}_proj.weight": m.weight for name, m in (("gate", self.g), ("up", self.u), ("down", self.dn))})
            out[prefix + "post_attention_layernorm.weight"] = self.n2.w
        return out

    def settings(self):
        c = self.c
        return dict(num_hidden_layers=1, num_attention_heads=c["heads"], num_key_value_heads=self.kv, head_dim=c["hd"], intermediate_size=self.ffn or c["ffn"],
                    hidden_act="silu", rms_norm_eps=c["eps"], rope_theta=c["theta"], max_position_embeddings=c["ctx"])


class Eagle(Head):
    """EAGLE-1 (2024), whose weights EAGLE-2 has too: a layer over fc [e(x_{i+1}); h_i], whose result stands for h_{i+1} and is read at the next depth."""

    noise = 0.0  # of the states in training, as a share of their size

    def __init__(self, c, target, depth, ffn):
        super().__init__(c, target, depth)
        d = c["dim"]
        self.fc, self.layer = linear(2 * d, d, bias=True), Layer(c, d, c["kv"], ffn)
        self.fc.weight.data[:, d:] += torch.eye(d)

    def inputs(self, e, f):
        return self.fc(torch.cat((e, f), -1))

    def forward(self, batch, steps):
        f, past = batch.states["final"], []
        if self.training and self.noise:
            f = f + (torch.rand_like(f) - 0.5) * self.noise * f.pow(2).mean().sqrt()
        for k in range(steps):
            n = batch.rows(k)
            x = self.inputs(self.scale * batch.e[:, 1 + k:1 + k + n], f[:, :n])
            y = self.layer(x, x, past)
            f = self.feature(y)
            yield y

    def tensors(self):
        return {"fc.weight": self.folded(self.fc.weight, 0, self.c["dim"]), "fc.bias": self.fc.bias, **self.layer.tensors("layers.0.")}

    def settings(self):
        return dict(architectures=["LlamaForCausalLM"], model_type="llama", bias=True, **self.layer.settings())


class Eagle3(Head):
    """EAGLE-3 (2025): a layer that reads [e(x_{i+1}); c_i], c_i a product of three of the target's states first, and then its own stream.

    tokens: the target's tokens that it drafts, with an output matrix of its own; None: all, by the target's."""

    def __init__(self, c, target, depth, ffn, taps, tokens=None):
        super().__init__(c, target, depth)
        d, self.taps, self.tokens = c["dim"], taps, tokens
        self.reads = tuple(f"layer.{k}" for k in taps)
        self.fc, self.layer = linear(3 * d, d), Layer(c, 2 * d, c["kv"], ffn)
        self.fc.weight.data[:, 2 * d:] += torch.eye(d)
        self.en, self.hn, self.n = (model.RMSNorm(d, c["eps"]) for _ in range(3))
        self.n.w.data.copy_(target.n.w.data)
        if tokens is not None:
            self.out = nn.Parameter(target.emb.weight.detach()[tokens].clone())

    def forward(self, batch, steps):
        c, past = self.fc(torch.cat([batch.states[name] for name in self.reads], -1)), []
        for k in range(steps):
            n = batch.rows(k)
            c = c[:, :n]
            c = self.layer(torch.cat((self.en(batch.e[:, 1 + k:1 + k + n]), self.hn(c)), -1), c, past)
            yield c

    def head(self, states):
        return self.n(states) @ (self.lent[0] if self.tokens is None else self.out).T

    def kept(self):
        return self.tokens

    def tensors(self):
        out = {"fc.weight": self.fc.weight, "midlayer.input_layernorm.weight": self.en.w, "midlayer.hidden_norm.weight": self.hn.w,
               **self.layer.tensors("midlayer."), "norm.weight": self.n.w}
        if self.tokens is not None:
            mask = np.zeros(self.c["vocab"], bool)
            mask[self.tokens] = True
            out.update({"lm_head.weight": self.out, "d2t": self.tokens.numpy() - np.arange(len(self.tokens)), "t2d": mask})
        return out

    def settings(self):
        n = self.c["vocab"] if self.tokens is None else len(self.tokens)
        return dict(architectures=["LlamaForCausalLMEagle3"], model_type="llama", draft_vocab_size=n, eagle_aux_hidden_state_layer_ids=list(self.taps),
                    **self.layer.settings())


class Kangaroo(Head):
    """Kangaroo (2024): the attention of a layer, and a norm, over the stream behind the first layers. Those run for each token that is drafted, so that
    each depth reads true states, and depth k of row i is depth 0 of row i+k."""

    def __init__(self, c, target, depth, exit_layer):
        super().__init__(c, target, depth)
        self.exit, self.reads = exit_layer, (f"layer.{exit_layer}",)
        self.n1, self.n, self.layer = model.RMSNorm(c["dim"], c["eps"]), model.RMSNorm(c["dim"], c["eps"]), Layer(c, c["dim"], c["heads"], 0)
        self.n.w.data.copy_(target.n.w.data)

    def forward(self, batch, steps):
        x = batch.states[self.reads[0]]
        y = self.layer(self.n1(x), x, [])
        for k in range(steps):
            yield y[:, 1 + k:]

    def head(self, states):
        return super().head(self.n(states))

    def tensors(self):
        return {"layers.0.input_layernorm.weight": self.n1.w, **self.layer.tensors("layers.0."), "norm.weight": self.n.w}

    def settings(self):
        return dict(architectures=["LlamaForCausalLM"], model_type="llama", exit_layer=self.exit, **self.layer.settings())


def stored(t):
    """A tensor as it is written: matrices in F16, vectors in F32, numbers as they are."""
    return export.stored(t.detach()) if isinstance(t, torch.Tensor) else np.ascontiguousarray(t)
