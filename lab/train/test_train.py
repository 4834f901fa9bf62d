"""Tests of training with PyTorch, and of the reader of GGUF files with NumPy; skipped where these are not installed."""
import contextlib
import io
import json
import os
import struct
import tempfile
import unittest

try:
    import numpy as np
    import gguf
except ImportError:
    np = None
try:
    import torch
    import deepen
    import export
    import model
    import train
except ImportError:
    torch = None

NANO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "internal", "gopher", "gopher-nano.q8_0.gguf.gz")


def file(tensors, keys=b"", count=0, version=3):
    """A GGUF file of tensors (name, shape with the columns first, type, bytes)."""
    string = lambda s: struct.pack("<Q", len(s)) + s.encode()
    head, blobs = b"GGUF" + struct.pack("<IQQ", version, len(tensors), count) + keys, b""
    for name, shape, kind, raw in tensors:
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(blobs))
        blobs += raw + b"\0" * (-len(raw) % 32)
    return head + b"\0" * (-len(head) % 32) + blobs


@unittest.skipIf(np is None, "NumPy is not installed")
class TestGGUF(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.gguf")
            with open(path, "wb") as f:
                f.write(data)
            return gguf.read(path)

    def whole(self):
        q = struct.pack("<e", 0.5) + bytes(range(32)) + struct.pack("<e", -2.0) + struct.pack("<32b", *range(-32, 0))
        return file([("q", (32, 2), 8, q), ("h", (2,), 1, struct.pack("<2e", 1.5, -2.0)), ("f", (1, 3), 0, struct.pack("<3f", 1, 2, 3))])

    def test_types(self):
        _, t = self.read(self.whole())
        self.assertEqual(t["q"].tolist(), [[0.5 * i for i in range(32)], [-2.0 * i for i in range(-32, 0)]])
        self.assertEqual(t["h"].tolist(), [1.5, -2])
        self.assertEqual(t["f"].tolist(), [[1], [2], [3]])

    def test_refused(self):
        data = self.whole()
        for n in range(len(data) - 20):  # 20 bytes are padding
            with self.assertRaises(ValueError):
                self.read(data[:n])
        string = struct.pack("<Q", 1) + b"k"
        for text, bad in {
            "version 3": file([], version=2),
            "type 99": file([], string + struct.pack("<I", 99), 1),
            "array of arrays": file([], string + struct.pack("<IIQ", 9, 9, 1), 1),
            "cut off": file([], string + struct.pack("<IIQ", 9, 0, 1 << 60), 1),
            "33 values of type 8": file([("q", (33,), 8, b"")]),
            "values of type 2": file([("q", (32,), 2, b"")]),
            "alignment of 0": file([], struct.pack("<Q", 17) + b"general.alignment" + struct.pack("<II", 4, 0), 1),
        }.items():
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                self.read(bad)
        with self.assertRaisesRegex(ValueError, "architecture None"):
            gguf.config({})
        with self.assertRaisesRegex(ValueError, "no llama.embedding_length"):
            gguf.config({"general.architecture": "llama"})

    def test_gopher(self):
        ck = gguf.checkpoint(NANO)
        self.assertEqual({n: ck["cfg"][n] for n in ("dim", "layers", "heads", "kv", "hd", "ffn", "vocab", "ctx")},
                         dict(dim=32, layers=1, heads=2, kv=1, hd=16, ffn=96, vocab=4096, ctx=256))
        self.assertEqual(sum(x.size for x in ck["sd"].values()), 143456)


@unittest.skipIf(torch is None or np is None, "PyTorch is not installed")
class TestRuns(unittest.TestCase):
    """A small draft of gopher-nano, on tokens that are drawn."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        draw = np.random.RandomState(1)
        for name, n in (("train.bin", 4000), ("valid.bin", 1000), ("samples.bin", 64 * 20)):
            draw.randint(0, 300, n).astype("<u2").tofile(self.path(name))
        with open(self.path("sizes.json"), "w") as f:
            json.dump(dict(valid=dict(tokens=1000, bytes=2700)), f)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_to(self, out, *more, steps=6, seed=1):
        train.main(["--out", self.path(out), "--steps", str(steps), "--seed", str(seed), "--dir", self.folder.name, "--dim", "16", "--layers", "1",
                    "--heads", "2", "--kv", "1", "--ffn", "32", "--ctx", "64", "--batch", "2", "--threads", "1", "--checks", "2", *more])
        return torch.load(self.path(out))["sd"]

    def aligned(self, loss="kl"):
        return ("--target", NANO, "--samples", self.path("samples.bin"), "--loss", loss, "--dropout", "0.1")

    def same(self, a, b):
        return all(torch.equal(a[k], b[k]) for k in a)

    def test_repeats(self):
        for more in ((), self.aligned(), self.aligned("gkd")):
            first = self.run_to("a.pt", *more)
            self.assertTrue(self.same(first, self.run_to("b.pt", *more)))
            self.assertFalse(self.same(first, self.run_to("c.pt", *more, seed=2)))

    def test_goes_on(self):
        """A run that is interrupted after 2 of 6 steps ends with the same weights."""
        want, one = self.run_to("a.pt", *self.aligned()), train.Run.one

        def interrupted(run):
            value = one(run)
            if run.step == 2:
                os.kill(os.getpid(), train.signal.SIGTERM)
            return value
        train.Run.one = interrupted
        try:
            with self.assertRaisesRegex(SystemExit, "interrupted at step 2"):
                self.run_to("b.pt", *self.aligned())
        finally:
            train.Run.one = one
        with self.assertRaisesRegex(SystemExit, "began with --seed 1, not 2"):
            self.run_to("b.pt", *self.aligned(), seed=2)
        self.assertTrue(self.same(want, self.run_to("b.pt", *self.aligned())))

    def test_states(self):
        """The target's states from a file are those that it computes."""
        want = self.run_to("a.pt", *self.aligned())
        for out in ("b.pt", "c.pt"):  # the first writes the file
            got = self.run_to(out, *self.aligned(), "--states", self.path("states.bin"))
            for k in want:
                self.assertTrue(torch.allclose(want[k], got[k], atol=1e-4), k)
        other = np.fromfile(self.path("samples.bin"), "<u2") + 1
        other.tofile(self.path("samples.bin"))
        with self.assertRaisesRegex(SystemExit, "not the states of these samples"):
            self.run_to("d.pt", *self.aligned(), "--states", self.path("states.bin"))

    def test_exported(self):
        """What export.py writes is what gguf.py reads, in F16."""
        settings = model.config(16, 2, 2, 1, 32, 64)
        ck = dict(cfg=settings, sd=model.Decoder(settings).state_dict())
        export.write_gguf(ck, self.path("x.gguf"), "x", dict(tokens=7))
        got, again = model.load(self.path("x.gguf"))
        for name, v in got.state_dict().items():
            want = ck["sd"][name]
            self.assertTrue(torch.equal(v, want.half().float() if want.dim() > 1 else want), name)
        self.assertEqual(again["tokens"], 7)
        self.assertEqual({k: round(v, 9) for k, v in again["cfg"].items()}, {k: round(v, 9) for k, v in settings.items()})

    def test_layers(self):
        """The recipe of LayerSkip repeats, goes on with the next exit, and refuses exits that the model has not."""
        two, more = ("--layers", "3"), ("--exits", "1,2", "--layer-dropout", "0.9")
        want = self.run_to("a.pt", *two, *more)
        self.assertTrue(self.same(want, self.run_to("b.pt", *two, *more)))
        for less in ((), more[:2], more[2:]):
            self.assertFalse(self.same(want, self.run_to("c.pt", *two, *less)))
        for bad in ("0,1", "3"):
            with self.assertRaisesRegex(SystemExit, "behind 1 to 2 of 3 layers"):
                self.run_to("d.pt", *two, "--exits", bad)

    def test_sorted(self):
        """A nested draft learns behind each exit, of texts of a target too; layers behind those of a model leave it as it is at first."""
        three, more = ("--layers", "3"), (*self.aligned(), "--aligned", "1", "--dropout", "0")
        nested = self.run_to("a.pt", *three, *more, "--exits", "1,2", "--sorted")
        self.assertTrue(self.same(nested, self.run_to("b.pt", *three, *more, "--exits", "1,2", "--sorted")))
        for other in (more, (*more, "--exits", "1,2"), (*more, "--exits", "2", "--sorted")):
            self.assertFalse(self.same(nested, self.run_to("c.pt", *three, *other)))
        first, _ = model.load(self.path("a.pt"))
        taller = model.taller(first, 2).eval()
        ids = torch.arange(20).view(2, 10)
        self.assertEqual(len(taller.b), 5)
        self.assertTrue(torch.equal(taller(ids), first.eval()(ids)))
        self.assertIs(model.taller(first, 0), first)
        self.run_to("d.pt", *more, "--from", self.path("a.pt"), "--more-layers", "1", "--exits", "3", "--sorted")
        self.assertEqual(model.load(self.path("d.pt"))[0].c["layers"], 4)
        for bad in (("--sorted",), ("--sorted", "--exits", "1", "--layer-dropout", "0.1"), ("--more-layers", "1"), ("--more-layers", "-1", "--from", NANO)):
            with self.subTest(bad), self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                self.run_to("e.pt", *three, *bad)

    def test_exits(self):
        """Layers that are never skipped, and exits behind all layers, give the model's own states; the first layer is never skipped."""
        for got, want in zip(model.layer_dropout(4, 0.5), (0, 0.5 * (2 ** (1 / 3) - 1), 0.5 * (2 ** (2 / 3) - 1), 0.5)):
            self.assertAlmostEqual(got, want)
        m, ids = model.Decoder(model.config(16, 3, 2, 1, 32, 64)), torch.arange(20).view(2, 10)
        first, last = m.exits(ids, [1, 3])
        self.assertTrue(torch.equal(last, m.states(ids)))
        m.rates = [0.0, 1.0, 1.0]
        self.assertTrue(torch.equal(m.exits(ids, [1, 3])[1], first), "the other two are skipped")
        self.assertTrue(torch.equal(m.eval().exits(ids, [3])[0], last), "outside training nothing is")

    def test_deepen(self):
        """A model that is spread over more layers of the same width, with room for a whole part in one, computes the same; of a narrower one the
        shapes are right; where there is no room it is refused."""
        m = model.Decoder(model.config(16, 2, 4, 2, 32, 64)).eval()
        ids = torch.arange(60).view(3, 20)
        basis, share, sizes = deepen.turned(m, ids, 16)
        self.assertAlmostEqual(share, 1, places=5)
        new = deepen.spread(m, 16, 3, 2, 32, basis, share, sizes)
        self.assertEqual(len(new.b), 6)
        self.assertTrue(torch.allclose(new(ids), m(ids), atol=1e-5))
        basis, share, sizes = deepen.turned(m, ids, 8)
        new = deepen.spread(m, 8, 2, 1, 32, basis, share, sizes)
        self.assertEqual((tuple(new(ids).shape), new.c["heads"], new.c["kv"]), ((3, 20, 4096), 2, 1))
        for what in ((16, 2, 1, 32), (16, 2, 2, 8), (8, 1, 1, 32)):
            with self.subTest(what), self.assertRaises(SystemExit):
                deepen.spread(m, *what, deepen.turned(m, ids, what[0])[0], share, sizes)

    def test_without_target(self):
        """Texts of a target are learned from without it, and that is not training on the corpus."""
        corpus = self.run_to("a.pt")
        self.assertFalse(self.same(corpus, self.run_to("b.pt", "--samples", self.path("samples.bin"), "--aligned", "1")))


if __name__ == "__main__":
    unittest.main()
