"""Tests of modules that draft blocks, with PyTorch; skipped where it is not installed."""
import unittest

try:
    import torch
    import torch.nn.functional as F
    import net_dflash
    import test_heads
except ImportError:
    torch = None
no_grad = torch.no_grad() if torch else lambda f: f


def norm(x, w, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w


def turned(x, place, theta):
    """x [E], rotated at a place, the value i with i + E/2, one pair after the other."""
    half, out = len(x) // 2, x.clone()
    for i in range(half):
        angle = torch.tensor(place / theta ** (i / half), dtype=torch.float64)
        out[i] = x[i] * angle.cos() - x[i + half] * angle.sin()
        out[i + half] = x[i + half] * angle.cos() + x[i] * angle.sin()
    return out


def slowly(net, t, batch, text, anchor):
    """The states of the block behind token anchor of a text, by the names that are published, row by row and head by head."""
    c, eps, size = net.c, net.c["eps"], net.c["hd"]
    stream = torch.cat([batch.states[n][text] for n in net.reads], -1)[:anchor + 1].double()
    context = norm(stream @ t["fc.weight"].T, t["hidden_norm.weight"], eps)
    x = torch.stack([batch.e[text, anchor + 1]] + [net.lent[0][net.mask]] * (net.size - 1)).double()
    for i in range(len(net.layers)):
        w = lambda name: t[f"layers.{i}.{name}.weight"]
        y = norm(x, w("input_layernorm"), eps)
        rows, out = torch.cat((context, y)), []
        for r in range(net.size):
            heads = []
            for h in range(c["heads"]):
                g = h * c["kv"] // c["heads"]
                part = lambda m, v, k: (w(f"self_attn.{m}_proj") @ v)[k * size:(k + 1) * size]
                q = turned(norm(part("q", y[r], h), w("self_attn.q_norm"), eps), anchor + 1 + r, c["theta"])
                keys = torch.stack([turned(norm(part("k", v, g), w("self_attn.k_norm"), eps), place, c["theta"]) for place, v in enumerate(rows)])
                a = (keys @ q / size ** 0.5).softmax(0)
                heads.append(sum(a[j] * part("v", v, g) for j, v in enumerate(rows)))
            out.append(w("self_attn.o_proj") @ torch.cat(heads))
        x = x + torch.stack(out)
        y = norm(x, w("post_attention_layernorm"), eps)
        x = x + (F.silu(y @ w("mlp.gate_proj").T) * (y @ w("mlp.up_proj").T)) @ w("mlp.down_proj").T
    return norm(x, t["norm.weight"], eps)


class TestDFlash(test_heads.TestHeads if torch else unittest.TestCase):
    """Its tests are those below: what it shares with TestHeads is how texts are made."""

    def setUp(self):
        if torch is None:
            self.skipTest("PyTorch is not installed")
        super().setUp()

    def net(self, kind, *more):
        _, net, states = self.settled(kind, "--depth", "3", "--ffn", "20", *more)
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape) * 0.3 + (p.dim() == 1))
        return net.eval(), states.batch(range(2), self.target)

    @no_grad
    def test_slowly(self):
        for kind in ("dflash", "dspark"):
            net, b = self.net(kind)
            t = {n: p.double() for n, p in net.tensors().items()}
            got = net.block(b).double()
            for text, anchor in ((0, 0), (1, 7), (0, 46)):
                want = slowly(net, t, b, text, anchor)
                self.assertTrue(torch.allclose(got[text, anchor], want, atol=1e-4), (kind, text, anchor))

    @no_grad
    def test_depths(self):
        """Depth k is row k+1 of DFlash's block and row k of DSpark's, whose logits have a product of the token before."""
        for kind, first in (("dflash", 1), ("dspark", 0)):
            net, b = self.net(kind)
            self.assertEqual(net.size, 3 + first)
            rows = net.block(b)
            for k, states in enumerate(net(b, 3)):
                want = rows[:, :b.rows(k), k + first] @ self.target.emb.weight.T
                if kind == "dspark":
                    want = want + net.w1[b.ids[:, 1 + k:]] @ net.w2.T
                self.assertTrue(torch.allclose(net.head(states), want, atol=1e-4), (kind, k))

    def test_layout(self):
        h = [16, 16]
        layer = lambda p: {**{p + f"self_attn.{n}_proj.weight": s for n, s in (("q", h), ("k", [8, 16]), ("v", [8, 16]), ("o", h))},
                           **{p + f"mlp.{n}_proj.weight": s for n, s in (("gate", [20, 16]), ("up", [20, 16]), ("down", [16, 20]))},
                           **{p + f"self_attn.{n}_norm.weight": [8] for n in "qk"}, p + "input_layernorm.weight": [16], p + "post_attention_layernorm.weight": [16]}
        dflash = {"fc.weight": [16, 48], "hidden_norm.weight": [16], "norm.weight": [16], **layer("layers.0."), **layer("layers.1.")}
        dspark = {**dflash, "markov_head.markov_w1.weight": [40, 5], "markov_head.markov_w2.weight": [40, 5]}
        for kind, want in (("dflash", dflash), ("dspark", dspark)):
            meta, got, config = self.trained(kind, "--depth", "3", "--ffn", "20", "--rank", "5", steps=20)
            self.assertEqual({n: list(t.shape) for n, t in got.items()}, want)
            inner = config["dflash_config"] if kind == "dflash" else config
            self.assertEqual((inner["target_layer_ids"], config["block_size"]), ([0, 1, 2], 4 if kind == "dflash" else 3))
            self.assertIn(inner["mask_token_id"], range(40))
            self.assertEqual(meta["method"], kind)


for name in dir(TestDFlash):  # those of TestHeads run once
    if name.startswith("test_") and name not in ("test_slowly", "test_depths", "test_layout"):
        setattr(TestDFlash, name, None)

if __name__ == "__main__":
    unittest.main()
