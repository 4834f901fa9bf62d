"""Tests of rows of the target itself that draft (net_ppd.py, net_transfer.py), with PyTorch; skipped where it is not installed."""
import json
import os
import unittest
import unittest.mock

import test_heads

try:
    import torch
    import headnets
    import heads
    import net_ppd
    import net_transfer
    import tensors
except ImportError:
    torch = None


@unittest.skipIf(torch is None or test_heads.np is None, "PyTorch is not installed")
class TestRows(unittest.TestCase):
    setUp, tearDown, path, flags = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path", "flags"))

    def texts(self, n=2):
        return heads.States(self.path("train"), test_heads.LENGTH, (), self.target).batch(range(n), self.target)

    def test_vectors_that_are_tokens(self):
        """Vectors that are the embeddings of the tokens behind a token give the target's own states there: places, the mask and the layers are right."""
        net, batch, i = net_ppd.Prompt(self.target.c, self.target, 3), self.texts(), 10
        net.vectors.data.copy_(self.target.emb(batch.ids[0, i + 1:i + 4]))
        with torch.no_grad():
            want = self.target.states(batch.ids)[0]
            for k, got in enumerate(net(batch, 3)):
                self.assertEqual(got.shape[1], batch.rows(k))
                self.assertTrue(torch.allclose(got[0, i], want[i + 1 + k], atol=1e-4), k)

    def test_places(self):
        """Rows behind some tokens are those behind all, and so are what they learn from; the last tokens of a text have none."""
        a, batch = heads.parser().parse_args(self.flags("ppd", "--places", "5")), self.texts()
        a.ahead, a.decay, a.soft, a.regress = 3, 1.0, 1.0, 0.0
        net = net_ppd.Prompt(self.target.c, self.target, 3, 5)
        with torch.no_grad():
            value, rows = heads.loss(net, self.target, batch, a).item(), net.rows
            some, whole, want = list(net(batch, 3)), list(net.eval()(batch, 3)), 0.0
            lp = self.target.logits(batch.states["final"]).log_softmax(-1)
            for k in range(3):
                lq = net.head(whole[k]).log_softmax(-1)[:, rows]
                want -= (lp[:, 1 + k + rows].exp() * lq).sum(-1).mean().item()
        self.assertAlmostEqual(value, want, places=3)
        self.assertEqual(([len(x[0]) for x in some], len(rows)), ([5] * 3, 5))
        self.assertLess(rows.max().item(), batch.rows(2))

    def test_rows_begin_as_the_token(self):
        """Rows of the identity that begin behind the last layer's beginning are what one layer makes of the token's stream at another place, which sees
        the text's keys and its own; those of a zero matrix know nothing of their token's stream."""
        net, batch, i = net_transfer.Transfer(self.target.c, self.target, 2, [2, 2]), self.texts(), 10
        stream = test_heads.target_stream(self.target, batch.ids, 2)
        block, t = self.target.b[2], i + 2
        x = torch.cat((stream[:, :i + 1], stream[:, i:i + 1]), 1)
        with torch.no_grad():
            want = self.target.n(block(x, self.target.cos[:, :t], self.target.sin[:, :t], self.target.mask[:t, :t]))[:, -1]
            self.assertTrue(torch.allclose(next(iter(net(batch, 1)))[:, i], want, atol=1e-4))
            net.w.data.zero_()
            other = headnets.Batch(batch.ids.flip(0), batch.e.flip(0), {})
            self.assertTrue(torch.equal(net.begin(0, stream), torch.zeros_like(stream)))
            self.assertFalse(torch.allclose(next(iter(net(batch, 1))), next(iter(net(other, 1)))))

    def test_layouts(self):
        """Names and shapes are those that grove reads, in the files that it looks for; the loss falls."""
        for kind, more, files, want, keys in (
                ("ppd", ("--depth", "3"), ("adapter_model.safetensors", "adapter_config.json"), {"prompt_embeddings": (3, 16)},
                 dict(peft_type="PROMPT_TUNING", num_virtual_tokens=3, token_dim=16)),
                ("transfer", ("--depth", "2", "--begin", "1,2"), ("model.safetensors", "config.json"), {f"transfer.{k}.weight": (16, 16) for k in range(2)},
                 dict(transfer_layers=[1, 2]))):
            with self.subTest(kind):
                heads.main(self.flags(kind, *more, steps=40))
                meta, got = tensors.read(os.path.join(self.path(kind), files[0]))
                with open(os.path.join(self.path(kind), files[1])) as f:
                    config = json.load(f)
                self.assertEqual({n: t.shape for n, t in got.items()}, want)
                self.assertEqual({n: config[n] for n in keys}, keys)
                before, after = (json.loads(meta[n]) for n in ("figures_before", "figures"))
                self.assertLess(sum(after["loss"]), sum(before["loss"]))

    def test_frozen(self):
        """All values of a kind learn, and the target's do not."""
        for net in (net_ppd.Prompt(self.target.c, self.target, 3), net_transfer.Transfer(self.target.c, self.target, 3, [0, 1, 2])):
            a = heads.parser().parse_args(self.flags("ppd"))
            a.ahead, a.decay, a.soft, a.regress = 3, 0.8, 1.0, 0.0
            heads.loss(net, self.target, self.texts(), a).backward()
            for p in net.parameters():
                self.assertTrue((p.grad.flatten(1).abs().sum(-1) > 0).all())
            self.assertTrue(all(p.grad is None for p in self.target.parameters()))

    def test_refused(self):
        for name, more, text in (
                ("a layer too few", ("--depth", "3", "--begin", "1,2"), "there are --depth 3"),
                ("a layer that is not there", ("--depth", "2", "--begin", "1,3"), "each below 3"),
                ("a layer below the one before", ("--begin", "2,1"), "none below the one before")):
            with self.subTest(name), self.assertRaises(SystemExit), open(self.path("err"), "w") as err, unittest.mock.patch("sys.stderr", err):
                heads.main(self.flags("transfer", *more))
            with open(self.path("err")) as f:
                self.assertIn(text, f.read())


if __name__ == "__main__":
    unittest.main()
