"""P-EAGLE's head: what it computes of a target's states. headnets.py says what is common to heads."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import headnets
import model
from headnets import linear

KEEP, LEAST = 0.7, 0.2  # of the rows of a depth, the share that is trained at the next one, and the least share of all


class Chains(headnets.Layer):
    """A layer whose steps have some of the rows of the step before: rows [n] says by which row of step 0 each begins."""

    def heads(self, m, x, heads, turn):
        y = m(x).view(*x.shape[:2], heads, self.c["hd"])
        if turn is not None:
            y = model.rotate(y, self.cos[:, turn], self.sin[:, turn])
        return y.transpose(1, 2)

    def attend(self, x, past, rows):
        share, at = self.c["heads"] // self.kv, rows + len(past)
        q = self.heads(self.q, x, self.c["heads"], at) * self.c["hd"] ** -0.5
        past.append((rows, *(y.repeat_interleave(share, 1) for y in (self.heads(self.k, x, self.kv, at), self.heads(self.v, x, self.kv, None)))))
        first, k, v = past[0]
        own = [[y[:, :, torch.searchsorted(of, rows)] for y in both] for of, *both in past[1:]]
        true = q @ k.transpose(2, 3) + (first[None] > rows[:, None]) * -1e9
        a = torch.cat([true, *((q * k_own).sum(-1, keepdim=True) for k_own, _ in own)], -1).softmax(-1)
        out = a[..., :len(first)] @ v
        for j, (_, v_own) in enumerate(own):
            out = out + a[..., len(first) + j:len(first) + j + 1] * v_own
        return self.o(out.transpose(1, 2).flatten(2))

    def forward(self, x, skip, past, rows):
        x = skip + self.attend(x, past, rows)
        y = self.n2(x)
        return x + self.dn(F.silu(self.g(y)) * self.u(y))


class PEagle(headnets.Head):
    """P-EAGLE (2026): EAGLE-3's layers at all depths in one pass. Row i of depth 0 reads [e(x_{i+1}); c_i]; those of later depths read a mask token's
    embedding and a learned state in place of the target's, and see the rows of depth 0 up to i and their own of the depths before.

    In training a depth has some of the rows of the one before, drawn anew each step; rows says which. drafts: the depths of a pass; normed: the first layer adds to its normed
    input."""

    def __init__(self, c, target, depth, ffn, taps, layers, drafts, mask, normed=False):
        super().__init__(c, target, depth)
        d, self.taps, self.drafts, self.mask, self.normed = c["dim"], taps, drafts, mask, normed
        self.reads = tuple(f"layer.{k}" for k in taps)
        self.fc, self.hidden = linear(3 * d, d), nn.Parameter(torch.randn(3 * d))
        self.fc.weight.data[:, 2 * d:] += torch.eye(d)
        self.layers = nn.ModuleList(Chains(c, d if i else 2 * d, c["kv"], ffn) for i in range(layers))
        self.norms = nn.ModuleList(model.RMSNorm(d, c["eps"]) for _ in range(layers - 1))  # before the attention of later layers
        self.en, self.hn, self.n = (model.RMSNorm(d, c["eps"]) for _ in range(3))
        self.n.w.data.copy_(target.n.w.data)

    def forward(self, batch, steps):
        true, past = self.fc(torch.cat([batch.states[name] for name in self.reads], -1)), [[] for _ in self.layers]
        rows, b = torch.arange(batch.rows(0)), len(batch.ids)
        for k in range(steps):
            rows = rows[rows < batch.rows(k)]
            if k == 0:
                e, x = batch.e[:, 1:], true[:, :batch.rows(0)]
            else:
                if self.training:
                    n = min(len(rows), int(max(KEEP ** k, LEAST) * batch.rows(0)))
                    rows = rows[torch.randperm(len(rows))[:n].sort().values]
                e, x = (y.expand(b, len(rows), -1) for y in (self.lent[0][self.mask], self.fc(self.hidden)))
            y = self.hn(x)
            x = self.layers[0](torch.cat((self.en(e), y), -1), y if self.normed else x, past[0], rows)
            for layer, norm, of in zip(self.layers[1:], self.norms, past[1:]):
                x = layer(norm(x), x, of, rows)
            self.rows = rows if self.training else None
            yield x

    def head(self, states):
        return super().head(self.n(states))

    def tensors(self):
        d = self.c["dim"]
        out = {"fc.weight": self.fc.weight, "mask_hidden": self.hidden.view(1, 1, 3 * d), "layers.0.hidden_norm.weight": self.hn.w,
               "layers.0.input_layernorm.weight": self.en.w, "norm.weight": self.n.w}
        for i, layer in enumerate(self.layers):
            out.update(layer.tensors(f"layers.{i}."))
            if i:
                out[f"layers.{i}.input_layernorm.weight"] = self.norms[i - 1].w
        return out

    def settings(self):
        of = dict(self.layers[0].settings(), model_type="llama", num_hidden_layers=len(self.layers), hidden_size=self.c["dim"], vocab_size=self.c["vocab"])
        return dict(architectures=["PEagleSpeculator"], speculators_model_type="peagle", transformer_layer_config=of, draft_vocab_size=self.c["vocab"],
                    embed_requires_grad=False, norm_before_residual=self.normed, eagle_aux_hidden_state_layer_ids=list(self.taps), mask_token_id=self.mask,
                    speculators_config=dict(algorithm="peagle", default_proposal_method="greedy",
                                            proposal_methods=[dict(proposal_type="greedy", speculative_tokens=self.drafts)]))
