"""Tests of adapters that stand for layers (dropping.py), with PyTorch; skipped where it is not installed."""
import unittest

import test_heads

try:
    import torch
    import dropping
except ImportError:
    torch = None


@unittest.skipIf(torch is None or test_heads.np is None, "PyTorch is not installed")
class TestDropping(unittest.TestCase):
    setUp, tearDown, path = (getattr(test_heads.TestHeads, n) for n in ("setUp", "tearDown", "path"))

    def test_period(self):
        """A period of 1 is the model itself; with B = 0 a layer gives what it gave for the anchor; of others the tokens up to the first that is substituted are the model's."""
        adapters, first = dropping.Adapters(self.target.c, 4, 8), 5
        ids = torch.randint(self.target.c["vocab"], (2, 20))
        with torch.no_grad():
            want = self.target.states(ids)
            self.assertTrue(torch.allclose(dropping.states(self.target, adapters, ids, first, 1), want, atol=1e-5))
            got = dropping.states(self.target, adapters, ids, first, 3)
            self.assertTrue(torch.allclose(got[:, :first + 1], want[:, :first + 1], atol=1e-5))
            self.assertFalse(torch.allclose(got[:, first + 1], want[:, first + 1], atol=1e-3))
            if dropping.droppable(self.target.c["layers"], 1)[-1] == self.target.c["layers"] - 1:
                self.assertTrue(torch.allclose(got[:, first + 1], got[:, first], atol=1e-5))

    def test_causal(self):
        """What comes later changes nothing before it, with adapters that do something."""
        adapters = dropping.Adapters(self.target.c, 4, 8)
        with torch.no_grad():
            for b in adapters.b.values():
                b.normal_()
            ids = torch.randint(self.target.c["vocab"], (1, 20))
            before = dropping.states(self.target, adapters, ids, 5, 4)
            ids[:, 13] = (ids[:, 13] + 1) % self.target.c["vocab"]
            after = dropping.states(self.target, adapters, ids, 5, 4)
        self.assertTrue(torch.allclose(before[:, :13], after[:, :13], atol=1e-4))
        self.assertFalse(torch.allclose(before[:, 13], after[:, 13], atol=1e-3))


if __name__ == "__main__":
    unittest.main()
