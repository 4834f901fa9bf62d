"""Tests of Falcon's drafter with PyTorch; skipped where it is not installed."""
import unittest

try:
    import torch
    import headnets
    import net_falcon
    import test_heads
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestFalcon(unittest.TestCase):
    def net(self, **more):
        target = test_heads.small()
        torch.manual_seed(2)
        net = net_falcon.Falcon(target.c, target, 5, 24, **more)
        for p in net.parameters():
            p.data += 0.3 * torch.randn(p.shape)
        ids = torch.randint(40, (2, 12))
        return net.eval(), headnets.Batch(ids, target.emb(ids), {"final": target.states(ids)})

    def test_blocks(self):
        """Every row of every depth is what the text up to it and the blocks behind it give, one text at a time, with the mask written out."""
        for k, pairs in ((1, 1), (2, 1), (2, 2), (3, 2)):
            net, b = self.net(k=k, pairs=pairs)
            with torch.no_grad():
                got = list(net(b, 5))
                e, h = net.scale * b.e, b.states["final"]
                for i in range(k - 1, 6):
                    rows = torch.cat((e[:, 1:i + 2], h[:, :i + 1]), -1)
                    numbers = list(range(i + 1 - k)) + [100] * k
                    for depth in range(5):
                        j, first = depth % k, depth - depth % k
                        if depth and not j:
                            rows = torch.cat((rows, torch.cat((e[:, i + 2 + first - k:i + 2 + first], states), -1)), 1)
                            numbers += [100 + first] * k
                        states = net.blocks(rows, torch.tensor(numbers))[:, -k:]
                        self.assertTrue(torch.allclose(got[depth][:, i], states[:, j], atol=1e-5), (k, pairs, i, depth))

    def test_sees(self):
        """A row depends on the later rows of its block and on no later block; with one row a block is causal, as EAGLE's."""
        for k in 1, 2, 3:
            net, b = self.net(k=k, pairs=1)
            pairs, numbers = torch.randn(1, 9, 32), torch.arange(9) // k
            other = pairs.clone()
            other[:, 5] += 1
            with torch.no_grad():
                differs = (net.blocks(pairs, numbers) != net.blocks(other, numbers)).any(-1)[0].tolist()
            self.assertEqual(differs, [i >= 5 // k * k for i in range(9)], k)

    def test_pairs(self):
        """The LSTM reads as many pairs as it is told, from zeros, as a cell that is written out does."""
        net, _ = self.net(k=3, pairs=2)
        rows = torch.randn(1, 4, 32)
        with torch.no_grad():
            got = net.read(rows)
            for i in range(4):
                state = [(torch.zeros(16), torch.zeros(16)) for _ in range(2)]
                for x in (rows[0, i - 1] if i else torch.zeros(32)), rows[0, i]:
                    for l in range(2):
                        w = {n: getattr(net.lstm, f"{n}_l{l}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
                        hidden, cell = state[l]
                        i_, f, g, o = (w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ hidden + w["bias_hh"]).chunk(4)
                        cell = f.sigmoid() * cell + i_.sigmoid() * g.tanh()
                        x = o.sigmoid() * cell.tanh()
                        state[l] = x, cell
                self.assertTrue(torch.allclose(got[0, i], x, atol=1e-5), i)

    def test_glance(self):
        """As many rows that begin blocks get their answers as mistakes say, fewer later in training; what is taught stands for states k places on."""
        net, b = self.net(k=2, steps=10)
        row = torch.zeros(9, dtype=torch.bool)
        net.show(row, 3, 1)
        self.assertEqual((row.sum().item(), row[::2].sum().item()), (3, 0))
        net = self.net(k=3)[0]
        row = torch.zeros(9, dtype=torch.bool)
        net.show(row, 6, 0)
        self.assertTrue(2 <= row.sum().item() <= 4 and not row[2::3].any())
        net, b = self.net(k=2, steps=10)
        counts, turns = [], iter(range(99))
        net.show = lambda row, n, offset: counts.append(n)
        net.head = lambda states: torch.eye(2)[next(turns) % 2].expand(*states.shape[:-1], 2)  # all of 10 rows are mistakes
        for step in 0, 9, 20:
            net.step = step
            (depth, states), = net.taught(b, 1)
            self.assertEqual((depth, list(states.shape)), (1, [2, 10, 16]))
        self.assertEqual(counts, [4, 4, 1, 1, 1, 1])


if __name__ == "__main__":
    unittest.main()
