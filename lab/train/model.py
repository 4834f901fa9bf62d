"""A Llama-architecture decoder, and checkpoints of it."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import gguf

# Sizes of a checkpoint: width, layers, query heads, key/value heads, width of a head and of the feed-forward, tokens of
# the vocabulary and of the context.
SIZES = ("dim", "layers", "heads", "kv", "hd", "ffn", "vocab", "ctx")


def config(dim, layers, heads, kv, ffn, ctx, vocab=4096, dropout=0.0):
    return dict(dim=dim, layers=layers, heads=heads, kv=kv, hd=dim // heads, ffn=ffn, vocab=vocab, ctx=ctx, theta=10000.0,
                eps=1e-5, dropout=dropout)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.w, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.w


def rotate(x, cos, sin):
    """Rotates the pairs of x [B, T, H, E], which are neighbours: GGUF's order of llama, not Hugging Face's halves."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        d, h, k, e, f = c["dim"], c["heads"], c["kv"], c["hd"], c["ffn"]
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.n1, self.n2 = RMSNorm(d, c["eps"]), RMSNorm(d, c["eps"])
        self.q, self.k, self.v, self.o = linear(d, h * e), linear(d, k * e), linear(d, k * e), linear(h * e, d)
        self.g, self.u, self.dn = linear(d, f), linear(d, f), linear(f, d)
        self.drop = nn.Dropout(c.get("dropout", 0.0))

    def forward(self, x, cos, sin, mask, cache=None):
        """x [B, T, D]. cache, for generation, is keys and values [2, B, KV, context, E] and the tokens it holds."""
        b, t, _ = x.shape
        h, kv, e = self.c["heads"], self.c["kv"], self.c["hd"]
        y = self.n1(x)
        q = rotate(self.q(y).view(b, t, h, e), cos, sin).transpose(1, 2)
        k = rotate(self.k(y).view(b, t, kv, e), cos, sin).transpose(1, 2)
        v = self.v(y).view(b, t, kv, e).transpose(1, 2)
        if cache is not None:
            held, n = cache
            held[0][:, :, n:n + t], held[1][:, :, n:n + t] = k, v
            k, v = held[0][:, :, :n + t], held[1][:, :, :n + t]
        k, v = k.repeat_interleave(h // kv, 1), v.repeat_interleave(h // kv, 1)
        if hasattr(F, "scaled_dot_product_attention") and cache is None:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=self.c.get("causal", True))
        else:
            a = torch.baddbmm(mask, (q * e ** -0.5).flatten(0, 1), k.flatten(0, 1).transpose(1, 2)).softmax(-1)
            a = (a @ v.flatten(0, 1)).view(b, h, t, e)
        x = x + self.drop(self.o(a.transpose(1, 2).reshape(b, t, -1)))
        y = self.n2(x)
        return x + self.drop(self.dn(F.silu(self.g(y)) * self.u(y)))


def layer_dropout(layers, most):
    """The probability with which each of a number of layers is skipped in training: 0 for the first, most for the last, exponential
    between them (LayerSkip, 2024)."""
    return [most * (2 ** (l / max(1, layers - 1)) - 1) for l in range(layers)]


class Decoder(nn.Module):
    """rates, where it is set, is what layer_dropout returns; it counts in training alone. Where the configuration's causal is False, all tokens
    see each other, and there are no caches."""

    def __init__(self, c):
        super().__init__()
        self.c, self.rates = c, None
        self.emb = nn.Embedding(c["vocab"], c["dim"])
        self.b = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.n = RMSNorm(c["dim"], c["eps"])
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        for block in self.b:
            for w in (block.o, block.dn):
                nn.init.normal_(w.weight, std=0.02 / math.sqrt(2 * c["layers"]))
        freq = 1 / c["theta"] ** (torch.arange(0, c["hd"], 2).float() / c["hd"])
        angle = torch.outer(torch.arange(c["ctx"]).float(), freq)
        self.register_buffer("cos", angle.cos()[None, :, None], persistent=False)
        self.register_buffer("sin", angle.sin()[None, :, None], persistent=False)
        self.register_buffer("mask", torch.full((c["ctx"], c["ctx"]), -1e9 if c.get("causal", True) else 0.0).triu(1), persistent=False)

    def forward(self, ids, caches=None, at=0):
        """Logits [B, T, V] of ids [B, T], which come behind the tokens that the caches hold."""
        return self.logits(self.states(ids, caches, at))

    def logits(self, states):
        """Logits [..., V] of last states [..., D]."""
        return states @ self.emb.weight.T

    def states(self, ids, caches=None, at=0):
        """The last states [B, T, D] of ids [B, T], normalised: what the output is multiplied with."""
        end = at + ids.shape[1]
        x = self.emb(ids)
        for i, block in enumerate(self.b):
            x = block(x, self.cos[:, at:end], self.sin[:, at:end], self.mask[at:end, :end], caches and (caches[i], at))
        return self.n(x)

    def exits(self, ids, which):
        """The states [B, T, D] behind the first n layers, normalised as the last ones are, for the n of which, in rising order."""
        x, out = self.emb(ids), []
        for i, block in enumerate(self.b):
            x = self.skipped(block, x, self.rates[i] if self.rates and self.training else 0.0)
            if i + 1 in which:
                out.append(self.n(x))
        return out

    def skipped(self, block, x, rate):
        """A block's result, or x itself for the rows of the batch that skip the block, each with the probability rate."""
        t = x.shape[1]
        run = lambda rows: block(rows, self.cos[:, :t], self.sin[:, :t], self.mask[:t, :t])
        if rate == 0:
            return run(x)
        keep = (torch.rand(x.shape[0]) >= rate).nonzero()[:, 0].to(x.device)
        if len(keep) in (0, len(x)):
            return run(x) if len(keep) else x
        return x.index_copy(0, keep, run(x[keep]))

    @torch.no_grad()
    def generate(self, ids, length, temperature, gen):
        """Appends length tokens to ids [B, T], row i drawn at temperature[i] (0: the likeliest) by gen."""
        b, c = ids.shape[0], self.c
        caches = [torch.empty(2, b, c["kv"], c["ctx"], c["hd"], device=ids.device) for _ in self.b]
        cold = temperature == 0
        scale = torch.where(cold, torch.ones_like(temperature), temperature)[:, None]
        at, new = 0, ids
        for _ in range(length):
            logits = self(new, caches, at)[:, -1].float()
            at += new.shape[1]
            noise = -torch.empty(logits.shape).exponential_(generator=gen).log().to(ids.device)  # Gumbel's: argmax draws
            noise[cold] = 0
            new = (logits / scale + noise).argmax(-1, keepdim=True)
            ids = torch.cat((ids, new), 1)
        return ids


def taller(m, more):
    """A decoder with more layers behind those of m: random ones, whose outputs are zero, so that it gives what m gives."""
    if not more:
        return m
    new = Decoder(dict(m.c, layers=m.c["layers"] + more))
    new.load_state_dict(m.state_dict(), strict=False)
    for block in new.b[m.c["layers"]:]:
        for w in (block.o, block.dn):
            nn.init.zeros_(w.weight)
    return new


def load(path, dev="cpu"):
    """A checkpoint, or a GGUF file of the family, and the model that it holds."""
    if path.endswith((".gguf", ".gguf.gz")):
        ck = gguf.checkpoint(path)
        ck["sd"] = {k: torch.from_numpy(v) for k, v in ck["sd"].items()}
    else:
        ck = torch.load(path, map_location="cpu")
    model = Decoder(ck["cfg"])
    model.load_state_dict({k: v for k, v in ck["sd"].items() if k not in ("cos", "sin", "mask")})
    return model.to(dev), ck
