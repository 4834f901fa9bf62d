"""Tests of masked-diffusion training with PyTorch; skipped where it is not installed."""
import contextlib
import io
import json
import os
import tempfile
import unittest

try:
    import numpy as np
    import torch
    import bpe
    import canvas
    import certain
    import diffusion
    import export
    import gguf
    import learned
    import masks
    import model
    import train
except ImportError:
    torch = None

CONTEXT = 192


def corpus(folder):
    """A folder with files of tokens, and a decoder with random weights in it."""
    gen = np.random.default_rng(1)
    for name in ("train", "valid"):
        gen.integers(0, 90, 3000).astype("<u2").tofile(os.path.join(folder, name + ".bin"))
    with open(os.path.join(folder, "sizes.json"), "w") as f:
        json.dump(dict(valid=dict(tokens=3000, bytes=9000)), f)
    torch.manual_seed(1)
    m = model.Decoder(model.config(16, 2, 2, 1, 32, CONTEXT))
    train.write(os.path.join(folder, "start.pt"), dict(cfg=m.c, sd=m.state_dict(), tokens=0, minutes=0.0, valid=0.0))
    return m


def weights(path):
    return torch.load(path)["sd"]


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestMasks(unittest.TestCase):
    def test_ended(self):
        self.assertEqual(masks.ended(torch.tensor([[1, 9, 2], [9, 3, 9], [1, 2, 3]]), 9).tolist(), [[1, 9, 9], [9, 9, 9], [1, 2, 3]])

    def test_chosen(self):
        gen, rows = torch.Generator().manual_seed(2), 64
        least = torch.arange(rows) % 5
        most = least + 3 + torch.arange(rows) % 7
        got, count = masks.chosen(rows, 16, least, most, gen)
        self.assertEqual(got.sum(1).tolist(), count.tolist())
        at = torch.arange(16)
        self.assertFalse((got & ((at < least[:, None]) | (at >= most[:, None]))).any())
        self.assertTrue(((count >= 1) & (count <= most - least)).all())

    def test_counts_are_even(self):
        gen, n = torch.Generator().manual_seed(3), 400
        _, count = masks.chosen(n, 8, torch.zeros(n).long(), torch.full((n,), 8), gen)
        self.assertEqual([(count == k).sum().item() for k in range(1, 9)], [n // 8] * 8)

    def test_drawn(self):
        gen = torch.Generator().manual_seed(4)
        x, w = masks.drawn(torch.ones(300, 128).long(), 7, gen)
        masked = w > 0
        self.assertFalse(masked[:, 0].any())
        self.assertTrue(((w.sum(1) - 1).abs() < 1e-4).logical_or((w.sum(1) - 1 - masks.BEYOND).abs() < 1e-4).all())
        blocks = (w.sum(1) > 1.1).float().mean().item()
        self.assertAlmostEqual(blocks, 1 - masks.CANVAS, delta=0.1)
        self.assertAlmostEqual((x[:, 0] == 7).float().mean().item(), 1 - masks.WHOLE, delta=0.1)
        self.assertTrue((x[:, 1:] == 1).all())

    def test_halves(self):
        least = torch.tensor([4, 36])
        masked, block = certain.halves(2, least, 100, torch.Generator().manual_seed(5))
        at = torch.arange(100)
        for row, first in enumerate(least.tolist()):
            inside, behind = (at >= first) & (at < first + masks.BLOCK), at >= first + masks.BLOCK
            self.assertEqual((block[row] | block[row + 2]).tolist(), inside.tolist())
            self.assertFalse((block[row] & block[row + 2]).any())
            self.assertEqual(block[row].sum().item(), masks.BLOCK // 2)
            for half in (row, row + 2):
                self.assertEqual(masked[half].tolist(), (block[half] | behind).tolist())


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestModels(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(6)
        self.causal = model.Decoder(model.config(16, 2, 2, 1, 32, CONTEXT)).eval()
        self.x = torch.randint(90, (2, 12))

    def test_bidirectional(self):
        m, y = diffusion.bidirectional(self.causal, True).eval(), self.x.clone()
        y[:, -1] += 1
        with torch.no_grad():
            self.assertTrue(torch.equal(self.causal(self.x)[:, 0], self.causal(y)[:, 0]))
            self.assertFalse(torch.allclose(m(self.x)[:, 0], m(y)[:, 0]))

    def test_rows(self):
        with torch.no_grad():
            shifted = diffusion.rows(diffusion.bidirectional(self.causal, True).eval(), self.x)
            own = diffusion.rows(diffusion.bidirectional(self.causal, False).eval(), self.x)
        self.assertTrue(torch.equal(shifted[:, 1:], own[:, :-1]))
        self.assertTrue(torch.equal(shifted[:, 0], own[:, 0]))

    def test_file(self):
        m = diffusion.bidirectional(self.causal, True)
        ck = dict(cfg=m.c, sd=m.state_dict(), tokens=3, minutes=0.5, valid=2.0)
        arrays = learned.Filter(8).arrays()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.gguf")
            export.write_gguf(ck, path, "x", dict(tokens=3), arrays)
            meta, tensors = gguf.read(path)
            again, _ = model.load(path)
        self.assertEqual({k: meta[k] for k in ("general.architecture", "llada.attention.causal", "diffusion.shift_logits", "diffusion.filter.block_length",
                                               "tokenizer.ggml.mask_token_id")},
                         {"general.architecture": "llada", "llada.attention.causal": False, "diffusion.shift_logits": True, "diffusion.filter.block_length": masks.BLOCK,
                          "tokenizer.ggml.mask_token_id": bpe.load().mask})
        self.assertNotIn("general.sampling.penalty_repeat", meta)
        self.assertEqual({n: t.shape for n, t in tensors.items() if "filter" in n},
                         {"diffusion.filter.0.weight": (8, 32), "diffusion.filter.0.bias": (8,), "diffusion.filter.1.weight": (32, 8), "diffusion.filter.1.bias": (32,)})
        self.assertEqual((again.c["causal"], again.c["shift"]), (False, True))
        with torch.no_grad():
            self.assertLess((again(self.x) - m(self.x)).abs().max().item(), 1e-2)  # matrices are F16

    def test_certainty(self):
        logits = torch.tensor([[2.0, 0, 0], [0, 1, 0], [0, 0, 3]])
        ids = torch.tensor([0, 1, 1])
        of, right = certain.certainty(logits, ids, 2.0)
        p = (logits[:2] * 2).softmax(-1)
        want = torch.nn.functional.cross_entropy(logits, ids) + 2 * -(p * p.log()).sum(-1).mean()
        self.assertAlmostEqual(of.item(), want.item(), places=5)
        self.assertAlmostEqual(right, 2 / 3, places=5)
        self.assertAlmostEqual(certain.certainty(logits, torch.tensor([1, 0, 0]), 2.0)[0].item(), torch.nn.functional.cross_entropy(logits, torch.tensor([1, 0, 0])).item(), places=5)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestCanvas(unittest.TestCase):
    def test_surest(self):
        p = torch.tensor([[0.5, 0.95, 0.99, 0.2], [0.5, 0.4, 0.5, 0.99]])
        masked = torch.tensor([[True, True, True, True], [True, True, True, False]])
        self.assertEqual(canvas.surest(p, masked, 2).tolist(), [[False, False, True, False], [True, False, False, False]])
        self.assertEqual(canvas.surest(p, masked, 0.9).tolist(), [[False, True, True, False], [True, False, False, False]])

    def test_fill(self):
        torch.manual_seed(7)
        m, mask = diffusion.bidirectional(model.Decoder(model.config(16, 1, 2, 1, 32, 64)), True).eval(), bpe.load().mask
        x = torch.cat((torch.randint(90, (3, 5)), torch.full((3, 40), mask)), 1)
        starts = []
        passes = canvas.fill(m, x, 5, 32, mask, lambda ids, p, masked, at: starts.append(at) or canvas.surest(p, masked, 2))
        self.assertEqual((passes, sorted(set(starts))), (40, [5, 37]))
        self.assertFalse((x == mask).any())

    def test_oracle(self):
        """The oracle fills what the reference has, in passes of which none fixes a wrong token."""
        torch.manual_seed(8)
        m, tok = diffusion.bidirectional(model.Decoder(model.config(16, 1, 2, 1, 32, 64)), True).eval(), bpe.load()
        x = torch.cat((torch.randint(90, (3, 5)), torch.full((3, 32), tok.mask)), 1)
        reference = x.clone()
        canvas.fill(m, reference, 5, 32, tok.mask, lambda ids, p, masked, at: canvas.surest(p, masked, 2))
        reference[2, 20:] = 3  # what the model would not say
        oracle = learned.Oracle(reference)
        passes = canvas.fill(m, x, 5, 32, tok.mask, oracle)
        self.assertTrue(torch.equal(x, reference))
        self.assertEqual(passes, len(oracle.seen))
        self.assertTrue(all(len(texts) == len(p) == len(right) == len(masked) for texts, p, right, masked in oracle.seen))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)
        corpus(folder.name)
        self.common = ["--dir", folder.name, "--seed", "1", "--threads", "1", "--tokens", "384", "--held", "1", "--checks", "2"]

    def ask(self, command, *flags):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            command(list(flags))
        return out.getvalue()

    def test_repeats(self):
        for name in ("a.pt", "b.pt"):
            self.ask(diffusion.main, "--from", self.path("start.pt"), "--out", self.path(name), "--steps", "4", *self.common)
        a, b = weights(self.path("a.pt")), weights(self.path("b.pt"))
        self.assertTrue(all(torch.equal(a[k], b[k]) for k in a))
        self.assertFalse(torch.equal(a["emb.weight"], weights(self.path("start.pt"))["emb.weight"]))
        self.assertEqual(torch.load(self.path("a.pt"))["cfg"]["causal"], False)

    def test_learns(self):
        np.tile(np.arange(7), 400).astype("<u2").tofile(self.path("train.bin"))
        np.tile(np.arange(7), 400).astype("<u2").tofile(self.path("valid.bin"))
        self.ask(diffusion.main, "--from", self.path("start.pt"), "--out", self.path("a.pt"), "--steps", "40", "--lr", "1e-2", *self.common)
        self.assertLess(torch.load(self.path("a.pt"))["valid"], 3)

    def test_all(self):
        """Certainty forcing and the filter of a model that was trained so."""
        self.ask(diffusion.main, "--from", self.path("start.pt"), "--out", self.path("a.pt"), "--steps", "2", *self.common)
        self.ask(canvas.main, self.path("a.pt"), self.path("own.bin"), "--texts", "2", "--batch", "2", "--blocks", "2", "--dir", self.path(""), "--threads", "1")
        self.assertEqual(os.path.getsize(self.path("own.bin")), 2 * 2 * (canvas.PROMPT + 2 * masks.BLOCK))
        self.ask(canvas.main, self.path("start.pt"), self.path("more.bin"), "--texts", "2", "--batch", "2", "--blocks", "2", "--dir", self.path(""), "--threads", "1")
        self.ask(certain.main, "--from", self.path("a.pt"), "--samples", self.path("own.bin"), self.path("more.bin"), "--blocks", "2", "--out", self.path("c.pt"), "--steps", "3", *self.common)
        self.assertFalse(torch.equal(weights(self.path("a.pt"))["emb.weight"], weights(self.path("c.pt"))["emb.weight"]))
        out = self.ask(learned.main, self.path("c.pt"), self.path("filter.npz"), "--texts", "10", "--batch", "5", "--blocks", "1", "--steps", "60", "--dir", self.path(""), "--threads", "1")
        found = json.loads(out.splitlines()[-1])
        self.assertGreater(found["masks"], 0)
        with np.load(self.path("filter.npz")) as f:
            self.assertEqual(json.loads(str(f["figures"])), found)
            self.assertEqual(f["diffusion.filter.1.weight"].shape, (masks.BLOCK, 32))

    def test_refused(self):
        for command, flags in ((learned.main, [self.path("start.pt"), self.path("x"), "--texts", "10"]),
                               (learned.main, [self.path("start.pt"), self.path("x"), "--texts", "9"])):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                self.ask(command, *flags)


if __name__ == "__main__":
    unittest.main()
