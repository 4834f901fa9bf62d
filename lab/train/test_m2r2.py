"""Tests of M2R2's accelerated stream (net_m2r2.py), with PyTorch; skipped where it is not installed."""
import unittest

import test_heads

try:
    import torch
    import heads
    import net_m2r2
except ImportError:
    torch = None


@unittest.skipIf(torch is None or test_heads.np is None, "PyTorch is not installed")
class TestM2R2(unittest.TestCase):
    setUp, tearDown, path, flags = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path", "flags"))

    def texts(self):
        return heads.States(self.path("train"), test_heads.LENGTH, (), self.target).batch(range(2), self.target)

    def test_exit(self):
        """A stream to which nothing is added is the target's own behind these layers."""
        net, batch = net_m2r2.M2R2(self.target.c, self.target, 2, 2, 4), self.texts()
        with torch.no_grad():
            want = self.target.exits(batch.ids, [2])[0]
            for k, got in enumerate(net(batch, 2)):
                self.assertTrue(torch.allclose(got, want[:, 1 + k:], atol=1e-4), k)

    def test_slow_keys(self):
        """Rows see the own keys of the layers: what is added to a token changes no other token's row."""
        net, batch, at = net_m2r2.M2R2(self.target.c, self.target, 1, 2, 4), self.texts(), 5
        with torch.no_grad():
            for b in net.b:
                for p in b.values():
                    p.normal_()
            before = next(iter(net(batch, 1)))
            emb = self.target.emb.weight
            p, slow = self.target.emb(batch.ids), self.target.emb(batch.ids)
            p = p.clone()
            p[:, at] = emb[0]
            for i, block in enumerate(self.target.b[:2]):
                p, slow = net.layer(i, p, slow), self.target.skipped(block, slow, 0.0)
            after = self.target.n(p)[:, 1:]
        same = [torch.allclose(before[:, i], after[:, i], atol=1e-5) for i in range(before.shape[1])]
        self.assertEqual([i for i, s in enumerate(same) if not s], [at - 1])


if __name__ == "__main__":
    unittest.main()
