"""Tests of Chimera's head with PyTorch; skipped where it is not installed."""
import unittest

import test_heads

try:
    import torch
    import heads
except ImportError:
    torch = None


@unittest.skipIf(torch is None or test_heads.np is None, "PyTorch is not installed")
class TestChimera(unittest.TestCase):
    def setUp(self):
        self.texts = test_heads.TestHeads()
        self.texts.setUp()
        self.addCleanup(self.texts.doCleanups)
        self.addCleanup(self.texts.tearDown)

    def changed(self):
        """A head with values that are not its first, a batch, and its file's tensors."""
        _, net, states = self.texts.settled("chimera", "--depth", "3")
        for p in net.parameters():
            p.data += 0.2 * torch.randn(p.shape)
        net.scale = 3.0  # so that factors of the file show
        return net.eval(), states.batch(range(2), self.texts.target), {n: t.detach().double() for n, t in net.tensors().items()}

    def test_layouts(self):
        h, layer = [16, 16], "fast_layer1.0."
        want = {"trimlp.0.linear.weight": [48, 48], "trimlp.0.linear.bias": [48], "trimlp.1.weight": [16, 48], layer + "input_layernorm.weight": [16],
                layer + "self_attn.q_proj.weight": h, layer + "self_attn.k_proj.weight": [8, 16], layer + "self_attn.v_proj.weight": [8, 16],
                layer + "self_attn.o_proj.weight": h, layer + "mlp.gate_proj.weight": [20, 16], layer + "mlp.up_proj.weight": [20, 16],
                layer + "mlp.down_proj.weight": [16, 20], layer + "post_attention_layernorm.weight": [16],
                "chimera_head.0.mix.weight": [16, 32], "chimera_head.1.mix.weight": [16, 32]}
        meta, got, config = self.texts.trained("chimera", "--depth", "2", "--ffn", "20", steps=40)
        self.assertEqual({n: list(t.shape) for n, t in got.items()}, want)
        self.assertEqual((config["hidden_size"], config["num_key_value_heads"], meta["method"]), (16, 1, "chimera"))

    def test_decoded(self):
        """Depth k of a window is what its file's tensors give of the states to h_i and the trigrams of x_{i+1} to x_{i+1+k}, row by row, and nothing else."""
        net, b, t = self.changed()
        e, h, (heads_, size) = b.e.double(), b.states["final"].double(), (2, 8)
        norm = lambda x, w: x / (x.pow(2).mean(-1, keepdim=True) + net.c["eps"]).sqrt() * t[w]
        name = "fast_layer1.0.self_attn.{}_proj.weight"
        angle = lambda n: torch.outer(torch.arange(n).double(), net.c["theta"] ** (-torch.arange(0, size, 2).double() / size))

        def turned(x):  # halves, as files have them
            a, (one, two) = angle(x.shape[0])[:, None], x.chunk(2, -1)
            return torch.cat((one * a.cos() - two * a.sin(), two * a.cos() + one * a.sin()), -1)

        def window(text, i, k):
            rows = list(h[text, :i + 1])
            for j in range(i + 1, i + 2 + k):
                x = torch.cat([e[text, max(0, j - d)] for d in (2, 1, 0)])
                z = t["trimlp.0.linear.weight"] @ x + t["trimlp.0.linear.bias"]
                rows.append(t["trimlp.1.weight"] @ (x + z * z.sigmoid()))
            x = torch.stack(rows)
            y = norm(x, "fast_layer1.0.input_layernorm.weight")
            q, key, v = ((y @ t[name.format(n)].T).view(len(rows), -1, size) for n in "qkv")
            q, key = turned(q)[-1], turned(key)[:, 0]
            a = (q @ key.T / size ** 0.5).softmax(-1) @ v[:, 0]
            f = x[-1] + t[name.format("o")] @ a.flatten()
            y = norm(f, "fast_layer1.0.post_attention_layernorm.weight")
            gate, up = (t[f"fast_layer1.0.mlp.{n}_proj.weight"] @ y for n in ("gate", "up"))
            f = f + t["fast_layer1.0.mlp.down_proj.weight"] @ (gate * gate.sigmoid() * up)
            return t[f"chimera_head.{k}.mix.weight"] @ torch.cat((h[text, i], f))

        with torch.no_grad():
            for k, got in enumerate(net(b, 3)):
                self.assertEqual(got.shape[1], b.rows(k))
                for i in (0, 1, 7, b.rows(k) - 1):
                    want = window(1, i, k)
                    self.assertLess((got[1, i].double() - want).abs().max() / want.abs().max(), 1e-4, (k, i))

    def test_beginning(self):
        """Where the layer gives nothing, it begins as the target behind the last state."""
        _, net, states = self.texts.settled("chimera", "--depth", "2")
        b = states.batch(range(2), self.texts.target)
        net.out.weight.data.zero_()
        with torch.no_grad():
            for k, got in enumerate(net(b, 2)):
                self.assertTrue(torch.allclose(net.head(got), self.texts.target.logits(b.states["final"])[:, :b.rows(k)], atol=1e-3))


if __name__ == "__main__":
    unittest.main()
