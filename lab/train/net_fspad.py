"""FSPAD's head: what it computes of a target's states. headnets.py says what is common to heads."""
import torch
import torch.nn.functional as F

import headnets
import model
from headnets import linear


class Split(headnets.Layer):
    """A layer whose feed-forward part is added to its stream twice, by two matrices: what logits are made of, and behind it what the next depth reads."""

    def __init__(self, c, inputs, kv, ffn):
        super().__init__(c, inputs, kv, ffn)
        self.dn = linear(ffn, 2 * c["dim"], std=0.002)

    def forward(self, x, skip, past):
        x = skip + self.attend(x, past)
        y = self.n2(x)
        return torch.cat((x, x), -1) + self.dn(F.silu(self.g(y)) * self.u(y))


class Fspad(headnets.Eagle):
    """FSPAD (2024): EAGLE with feature sampling, a gated part behind fc that the token's embedding gates alone, and partial alignment: the state that logits
    are made of is not the one that is to be the target's next. It begins as EAGLE does."""

    def __init__(self, c, target, depth, ffn):
        super().__init__(c, target, depth, ffn)
        d = c["dim"]
        self.n, self.gate, self.up, self.down = model.RMSNorm(d, c["eps"]), linear(d, ffn), linear(d, ffn), linear(ffn, d, std=0.002)
        self.layer = Split(c, d, c["kv"], ffn)

    def inputs(self, e, f):
        """What the layer reads of scaled embeddings and states."""
        x = super().inputs(e, f)
        return x + self.down(F.silu(self.gate(e)) * self.up(self.n(x)))

    def feature(self, states):
        return states[..., self.c["dim"]:]

    def head(self, states):
        return super().head(states[..., :self.c["dim"]])

    def tensors(self):
        out = {n.replace("fc.", "fc.fc."): t for n, t in super().tensors().items()}
        gate = self.folded(self.gate.weight, 0, self.c["dim"])
        out.update({f"fc.mlp.{n}_proj.weight": w for n, w in (("gate", gate), ("up", self.up.weight), ("down", self.down.weight))})
        return {**out, "fc.post_attention_layernorm.weight": self.n.w}
