"""Tests of FSPAD's head with PyTorch; skipped where that is not installed."""
import json
import unittest

import test_heads

try:
    import torch
    import torch.nn.functional as F
    import headnets
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestFspad(unittest.TestCase):
    setUp, tearDown, path, flags, trained, settled = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path", "flags", "trained", "settled"))

    def test_layout(self):
        """Names and shapes are those of the authors' code; the loss falls."""
        meta, got, config = self.trained("fspad", "--soft", "1", "--ffn", "24", steps=40)
        self.assertEqual({n: list(t.shape) for n, t in got.items()}, {
            "fc.fc.weight": [16, 32], "fc.fc.bias": [16], "fc.mlp.gate_proj.weight": [24, 16], "fc.mlp.up_proj.weight": [24, 16], "fc.mlp.down_proj.weight": [16, 24],
            "fc.post_attention_layernorm.weight": [16], "layers.0.self_attn.q_proj.weight": [16, 16], "layers.0.self_attn.k_proj.weight": [8, 16],
            "layers.0.self_attn.v_proj.weight": [8, 16], "layers.0.self_attn.o_proj.weight": [16, 16], "layers.0.mlp.gate_proj.weight": [24, 16],
            "layers.0.mlp.up_proj.weight": [24, 16], "layers.0.mlp.down_proj.weight": [32, 24], "layers.0.post_attention_layernorm.weight": [16]})
        self.assertEqual((config["intermediate_size"], config["num_hidden_layers"], config["bias"]), (24, 1, True))
        self.assertLess(json.loads(meta["figures"])["loss"][0], json.loads(meta["figures_before"])["loss"][0])

    def test_eagle(self):
        """Where feature sampling adds nothing and both last products are the same, it is EAGLE, and gives logits and states alike."""
        _, net, states = self.settled("fspad")
        plain = headnets.Eagle(net.c, self.target, net.depth, net.layer.ffn)
        for p in net.parameters():
            p.data += 0.05 * torch.randn(p.shape)
        net.down.weight.data.zero_()
        half = net.layer.dn.weight.data[:16].clone()
        net.layer.dn.weight.data[16:] = half
        plain.load_state_dict({n: half if n == "layer.dn.weight" else t for n, t in net.state_dict().items() if n in plain.state_dict()})
        net.eval(), plain.eval()
        b = states.batch(range(2), self.target)
        with torch.no_grad():
            for got, want in zip(net(b, 3), plain(b, 3)):
                self.assertTrue(torch.equal(net.head(got), plain.head(want)))
                self.assertTrue(torch.equal(net.feature(got), want))

    def test_file(self):
        """The first row, computed from the tensors that are written and the embeddings as they are, is that of the head that was trained."""
        _, net, states = self.settled("fspad")
        for p in net.parameters():
            p.data += 0.05 * torch.randn(p.shape)
        net.eval()
        b, t = states.batch(range(2), self.target), {n: v.detach() for n, v in net.tensors().items()}
        e, h = b.e[:, 1:2], b.states["final"][:, :1]
        norm = lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + net.c["eps"]) * w
        x = torch.cat((e, h), -1) @ t["fc.fc.weight"].T + t["fc.fc.bias"]
        inner = F.silu(e @ t["fc.mlp.gate_proj.weight"].T) * (norm(x, t["fc.post_attention_layernorm.weight"]) @ t["fc.mlp.up_proj.weight"].T)
        x = x + inner @ t["fc.mlp.down_proj.weight"].T
        v = (x @ t["layers.0.self_attn.v_proj.weight"].T).repeat_interleave(2, 1).flatten(1)[:, None]  # a row that sees itself alone, two heads of one value
        x = x + v @ t["layers.0.self_attn.o_proj.weight"].T
        y = norm(x, t["layers.0.post_attention_layernorm.weight"])
        y = (F.silu(y @ t["layers.0.mlp.gate_proj.weight"].T) * (y @ t["layers.0.mlp.up_proj.weight"].T)) @ t["layers.0.mlp.down_proj.weight"].T
        with torch.no_grad():
            got = next(iter(net(b, 1)))[:, :1]
        self.assertTrue(torch.allclose(got, torch.cat((x, x), -1) + y, atol=1e-4))


if __name__ == "__main__":
    unittest.main()
