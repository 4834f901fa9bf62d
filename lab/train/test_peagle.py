"""Tests of P-EAGLE's head with PyTorch; skipped where that is not installed."""
import json
import unittest
import unittest.mock

import test_heads

try:
    import torch
    import heads
    import net_peagle
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestPEagle(unittest.TestCase):
    setUp, tearDown, path, flags, trained, settled = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path", "flags", "trained", "settled"))

    def test_layout(self):
        """Names, shapes and settings are those of the speculators library; the loss falls."""
        meta, got, config = self.trained("peagle", "--ffn", "24", "--ahead", "5", "--normed", steps=40)
        layer = lambda p, wide: {p + "self_attn.q_proj.weight": [16, wide], p + "self_attn.k_proj.weight": [8, wide], p + "self_attn.v_proj.weight": [8, wide],
                                 p + "self_attn.o_proj.weight": [16, 16], p + "mlp.gate_proj.weight": [24, 16], p + "mlp.up_proj.weight": [24, 16],
                                 p + "mlp.down_proj.weight": [16, 24], p + "post_attention_layernorm.weight": [16], p + "input_layernorm.weight": [16]}
        self.assertEqual({n: list(t.shape) for n, t in got.items()}, {
            "fc.weight": [16, 48], "mask_hidden": [1, 1, 48], "norm.weight": [16], "layers.0.hidden_norm.weight": [16], **layer("layers.0.", 32), **layer("layers.1.", 16)})
        self.assertEqual((config["speculators_model_type"], config["mask_token_id"], config["eagle_aux_hidden_state_layer_ids"], config["norm_before_residual"],
                          config["speculators_config"]["proposal_methods"][0]["speculative_tokens"], config["transformer_layer_config"]["num_hidden_layers"]),
                         ("peagle", 39, [1, 2, 3], True, 5, 2))
        self.assertLess(json.loads(meta["figures"])["loss"][0], json.loads(meta["figures_before"])["loss"][0])

    def test_chains(self):
        """Rows of a depth are what one text gives of true rows up to theirs and then mask rows, whatever other rows there are; those that training keeps are the same."""
        _, net, states = self.settled("peagle", "--layers", "3", "--ffn", "24", "--normed")
        for p in net.parameters():
            p.data += 0.1 * torch.randn(p.shape)
        b = states.batch(range(2), self.target)
        with torch.no_grad():
            net.eval()
            want = list(net(b, 4))
            self.assertIsNone(net.rows)
            net.train()
            kept = [(states, net.rows) for states in net(b, 4)]
            for k, (got, rows) in enumerate(kept):
                self.assertTrue(torch.allclose(got, want[k][:, rows], atol=1e-5), k)
                self.assertTrue(rows.tolist() == sorted(set(rows.tolist())) and rows.max() < b.rows(k))
                self.assertEqual(len(rows), min(b.rows(k), int(max(net_peagle.KEEP ** k, net_peagle.LEAST) * b.rows(0))))
                self.assertTrue(k == 0 or set(rows.tolist()) <= set(kept[k - 1][1].tolist()))
            for i in (0, 5, 20):
                e = torch.cat((net.en(b.e[:, 1:i + 2]), net.en(net.lent[0][net.mask]).expand(2, 3, -1)), 1)
                f = torch.cat([b.states[n] for n in net.reads], -1)[:, :i + 1]
                x = net.hn(net.fc(torch.cat((f, net.hidden.expand(2, 3, -1)), 1)))
                rows = torch.arange(i + 4)
                x = net.layers[0](torch.cat((e, x), -1), x, [], rows)
                for layer, norm in zip(net.layers[1:], net.norms):
                    x = layer(norm(x), x, [], rows)
                for k in range(4):
                    self.assertTrue(torch.allclose(x[:, i + k], want[k][:, i], atol=1e-5), (i, k))

    def test_refused(self):
        for args, text in ((("--labels", "tokens"), "which leave rows out"), (("--taps", "1,2"), "peagle reads three streams")):
            with self.subTest(text), self.assertRaises(SystemExit), open(self.path("err"), "w") as err, unittest.mock.patch("sys.stderr", err):
                heads.main(self.flags("peagle", *args))
            with open(self.path("err")) as f:
                self.assertIn(text, f.read())


if __name__ == "__main__":
    unittest.main()
