"""Tests of SpecBlock's head with PyTorch; skipped where that is not installed."""
import json
import unittest
import unittest.mock

import test_heads

try:
    import torch
    import heads
    import net_specblock
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestSpecBlock(unittest.TestCase):
    setUp, tearDown, path, flags, trained, settled = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path", "flags", "trained", "settled"))

    def test_layout(self):
        """Names, shapes and settings are the published ones; the loss falls."""
        meta, got, config = self.trained("specblock", "--ffn", "24", "--depth", "3", steps=40)
        layer = lambda p: {p + "self_attn.q_proj.weight": [16, 16], p + "self_attn.k_proj.weight": [8, 16], p + "self_attn.v_proj.weight": [8, 16],
                           p + "self_attn.o_proj.weight": [16, 16], p + "mlp.gate_proj.weight": [24, 16], p + "mlp.up_proj.weight": [24, 16],
                           p + "mlp.down_proj.weight": [16, 24], p + "post_attention_layernorm.weight": [16], p + "input_layernorm.weight": [16]}
        i = "input_layer."
        self.assertEqual({n: list(t.shape) for n, t in got.items()}, {
            i + "condition_proj.weight": [16, 48], i + "condition_norm.weight": [16], i + "token_norm.weight": [16], i + "position_queries.weight": [3, 16],
            i + "query_norm.weight": [16], i + "fuse.weight": [16, 48], **layer("layers.0."), **layer("layers.1."), "shift_proj.0.weight": [16, 32],
            "rank_head.0.weight": [256, 31], "rank_head.0.bias": [256], "rank_head.2.weight": [4, 256], "rank_head.2.bias": [4], "norm.weight": [16]})
        self.assertEqual([config[n] for n in ("diffspec_draft_token_num", "rank_classes", "num_hidden_layers", "eagle_aux_hidden_state_layer_ids")], [3, 4, 2, [1, 2, 3]])
        self.assertLess(json.loads(meta["figures"])["loss"][0], json.loads(meta["figures_before"])["loss"][0])

    def test_smoothed(self):
        got = net_specblock.smoothed()
        self.assertTrue(torch.allclose(got[1], torch.tensor([.0755, .6792, .1698, .0755]), atol=1e-4), got[1])
        self.assertTrue(torch.allclose(got.sum(-1), torch.ones(4)))

    def test_classes(self):
        logits = -torch.arange(15.0).expand(15, 15)
        self.assertEqual(net_specblock.classes(logits, torch.arange(15)).tolist(), [0] + [1] * 3 + [2] * 6 + [3] * 5)

    def test_rank_loss(self):
        """A class that is missed by promising too much costs more than one by promising too little; a class of many slots counts as one of ten."""
        cost = lambda true, *said: net_specblock.rank_loss(9.0 * torch.nn.functional.one_hot(torch.tensor(said), 4), torch.tensor(true)).item()
        self.assertLess(cost([1, 1], 1, 1), cost([1, 1], 2, 1))
        self.assertGreater(cost([2, 0], 1, 0), cost([1, 0], 2, 0))
        self.assertAlmostEqual(cost([0] * 30 + [1], *[0] * 30, 0), cost([0] * 10 + [1], *[0] * 10, 0), 5)

    def test_features(self):
        lp = torch.randn(30, generator=torch.Generator().manual_seed(1)).sort(descending=True).values
        got, p = net_specblock.features(lp[torch.randperm(30)]), lp[:20].softmax(-1)
        want = [*p[:10].log(), *(lp[0] - lp[k] for k in (1, 2, 4)), p[0], -(p * p.log()).sum()]
        self.assertTrue(torch.allclose(got, torch.stack(want), atol=1e-5))

    def test_blocks(self):
        """Rows of a block are those that one text gives of the rows before it, one by one: in the first block, and in one behind a slot of it. Later rows and slots change nothing."""
        _, net, states = self.settled("specblock", "--depth", "3", "--ffn", "24", "--layers", "3")
        for p in net.parameters():
            p.data += 0.1 * torch.randn(p.shape)
        b = states.batch(range(2), self.target)
        with torch.no_grad():
            c, e, past = net.conditions(b)[:, :-1], b.e[:, 1:], [[] for _ in net.layers]
            first = net.block(c, e, past, [])
            second = net.block(first[:, :-2, 1], e[:, 2:], [[[y[:, :, :-2] for y in both] for both in of] for of in past], [2])
            for i in (0, 5, 20):
                alone = [[] for _ in net.layers]
                got = net.block(c[:, :i + 1], e[:, :i + 1], alone, [])
                self.assertTrue(torch.allclose(got[:, i], first[:, i], atol=1e-5), i)
                for of in alone:
                    of[0][0][:, :, i, 2], of[0][1][:, :, i, 2] = 9, 9  # a slot that was not kept
                behind = net.block(got[:, :, 1], e[:, 2:i + 3], alone, [2])
                self.assertTrue(torch.allclose(behind[:, i], second[:, i], atol=1e-5), i)

    def test_independent(self):
        """With shift_proj [I | 0] a slot reads no stream of the one before it."""
        _, net, states = self.settled("specblock", "--depth", "3", "--ffn", "24")
        b, d = states.batch(range(1), self.target), 16
        with torch.no_grad():
            run = lambda: net.block(net.conditions(b)[:, :-1], b.e[:, 1:], [[] for _ in net.layers], [])
            net.layers[1].attend = lambda x, past, kept: torch.zeros_like(x[..., :d])
            net.layers[0].attend = net.layers[1].attend
            net.shift[0].weight.data = torch.cat((torch.eye(d), torch.zeros(d, d)), 1)
            was = run()
            net.queries.data[1] += 1
            now = run()
            self.assertTrue(torch.equal(was[:, :, (0, 2)], now[:, :, (0, 2)]))
            self.assertFalse(torch.equal(was[:, :, 1], now[:, :, 1]))


if __name__ == "__main__":
    unittest.main()
