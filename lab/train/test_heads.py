"""Tests of drafting heads with PyTorch, and of files of safetensors with NumPy; skipped where these are not installed."""
import glob
import json
import math
import os
import struct
import tempfile
import unittest
import unittest.mock

try:
    import numpy as np
    import tensors
except ImportError:
    np = None
try:
    import torch
    import export
    import headnets
    import heads
    import model
except ImportError:
    torch = None


@unittest.skipIf(np is None, "NumPy is not installed")
class TestTensors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "x.safetensors")

    def tearDown(self):
        self.folder.cleanup()

    def test_same(self):
        want = {"a": np.arange(6, dtype="<f2").reshape(2, 3), "b": np.array([1 << 40], "<i8"), "c": np.array([True, False]), "d": np.zeros((0, 3), "<f4")}
        tensors.write(self.path, want, dict(seed=7))
        meta, got = tensors.read(self.path)
        self.assertEqual((meta, sorted(got)), ({"seed": "7"}, sorted(want)))
        for name, t in want.items():
            self.assertEqual((got[name].dtype, got[name].shape, got[name].tolist()), (t.dtype, t.shape, t.tolist()), name)

    def test_refused(self):
        entry = lambda **more: {"t": {**dict(dtype="F32", shape=[2], data_offsets=[0, 8]), **more}}
        for name, head, text in (
                ("no JSON", "{", "not JSON"), ("no object", "[]", "no object"), ("a type", entry(dtype="F8"), "no tensor of a type"),
                ("no shape", {"t": {"dtype": "F32"}}, "no tensor of a type"), ("another shape", entry(shape=[3]), "not of this shape"),
                ("a shape below 0", entry(shape=[-2]), "not of this shape"), ("beyond the end", entry(shape=[1 << 40], data_offsets=[0, 4 << 40]), "cut off"),
                ("before the start", entry(data_offsets=[-8, 0]), "cut off")):
            text_of = (head if isinstance(head, str) else json.dumps(head)).encode()
            for size, data in ((len(text_of), b"\0" * 8), (len(text_of) + (1 << 50), b"")):
                with open(self.path, "wb") as f:
                    f.write(struct.pack("<Q", size) + text_of + data)
                with self.subTest(name), self.assertRaisesRegex(ValueError, text if data else "cut off"):
                    tensors.read(self.path)


LENGTH, TEXTS = 48, 6


def small():
    """A target of three layers, and its model."""
    torch.manual_seed(3)
    c = model.config(16, 3, 2, 1, 24, 64, vocab=40)
    m = model.Decoder(c)
    for p in m.parameters():
        if p.dim() > 1:
            p.data *= 8  # so that its distributions differ from place to place
    m.requires_grad_(False)
    return m.eval()


def write(path, target, seed, texts=TEXTS):
    """A file as lab states writes it, of texts that the target draws or, of every second one, likes best."""
    gen = torch.Generator().manual_seed(seed)
    ids = torch.randint(40, (texts, heads.PREFIX), generator=gen)
    ids = target.generate(ids, LENGTH - heads.PREFIX, torch.tensor([float(i % 2) for i in range(texts)]), gen)
    with torch.no_grad():
        streams = {f"layer.{k}": target_stream(target, ids, k) for k in range(4)}
        streams["final"] = target.states(ids)
    tensors.write(path, dict(ids=ids.flatten().numpy().astype("<i4"), starts=np.arange(0, texts * LENGTH + 1, LENGTH),
                             **{n: s.flatten(0, 1).numpy() for n, s in streams.items()}), dict(model="small", sample_digest="d"))


def target_stream(m, ids, k):
    t, x = ids.shape[1], m.emb(ids)
    for block in m.b[:k]:
        x = block(x, m.cos[:, :t], m.sin[:, :t], m.mask[:t, :t])
    return x


@unittest.skipIf(torch is None or np is None, "PyTorch is not installed")
class TestHeads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.target, names = small(), heads.model.load
        write(self.path("train"), self.target, 1)
        write(self.path("held"), self.target, 2)
        heads.model.load = lambda path: (self.target, {})
        self.addCleanup(setattr, heads.model, "load", names)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def flags(self, kind, *more, steps=12):
        return [kind, "--target", "small.gguf", "--states", self.path("train"), "--held", self.path("held"), "--length", str(LENGTH), "--out", self.path(kind),
                "--steps", str(steps), "--threads", "1", "--batch", "2", *more]

    def trained(self, kind, *more, steps=12):
        heads.main(self.flags(kind, *more, steps=steps))
        weights, settings = (glob.glob(os.path.join(self.path(kind), name))[0] for name in ("*.safetensors", "*config.json"))
        with open(settings) as f:
            return *tensors.read(weights), json.load(f)

    def settled(self, kind, *more):
        """The flags of a kind, its head with its first values, and the texts."""
        a = heads.parser().parse_args(self.flags(kind, *more))
        for name, v in heads.KINDS[kind].items():
            setattr(a, name, v if getattr(a, name) is None else getattr(a, name))
        a.taps, a.exit, a.begin = [1, 2, 3], 1, [1] * a.depth
        states = heads.States(self.path("train"), LENGTH, ("layer.1", "layer.2", "layer.3"), self.target)
        torch.manual_seed(1)
        return a, heads.build(a, self.target, states), states

    def test_layouts(self):
        """Names and shapes are those that the heads' authors publish; the loss falls, and figures are in the metadata."""
        h, m = [16, 16], dict
        layer = lambda p, wide: {p + "self_attn.q_proj.weight": [16, wide], p + "self_attn.k_proj.weight": [8, wide], p + "self_attn.v_proj.weight": [8, wide],
                                 p + "self_attn.o_proj.weight": h, p + "mlp.gate_proj.weight": [24, 16], p + "mlp.up_proj.weight": [24, 16],
                                 p + "mlp.down_proj.weight": [16, 24], p + "post_attention_layernorm.weight": [16]}
        eagle3 = {"fc.weight": [16, 48], "midlayer.input_layernorm.weight": [16], "midlayer.hidden_norm.weight": [16], "norm.weight": [16],
                  **layer("midlayer.", 32)}
        hydra = {f"hydra_mlp.{k}.0.{n}.{p}": [16, (k + 2) * 16][:2 if p == "weight" else 1]
                 for k in range(3) for n in ("linear", "res_connection") for p in ("weight", "bias")}
        for kind, more, want, keys in (
                ("medusa", ("--depth", "2"), {f"medusa_head.{k}.0.linear.{n}": s for k in range(2) for n, s in (("weight", h), ("bias", [16]))},
                 m(medusa_num_heads=2, medusa_num_layers=1)),
                ("hydra", ("--depth", "3"), hydra, m(hydra_num_heads=3, hydra_head_arch="mlp", grounded_heads=True)),
                ("eagle", ("--soft", "1"), {"fc.weight": [16, 32], "fc.bias": [16], **layer("layers.0.", 16)}, m(bias=True, num_key_value_heads=1, intermediate_size=24)),
                ("eagle3", (), eagle3, m(draft_vocab_size=40, eagle_aux_hidden_state_layer_ids=[1, 2, 3])),
                ("eagle3", ("--tokens", "9"), {**eagle3, "lm_head.weight": [9, 16], "d2t": [9], "t2d": [40]}, m(draft_vocab_size=9)),
                ("falcon", ("--block", "3", "--pairs", "2"), {**{f"lstm.{n}_l{i}": s for i, wide in ((0, 32), (1, 16)) for n, s in (
                    ("weight_ih", [64, wide]), ("weight_hh", [64, 16]), ("bias_ih", [64]), ("bias_hh", [64]))}, **layer("layers.0.", 16)},
                 m(k_mask=3, lstm_pairs=2, num_hidden_layers=1)),
                ("kangaroo", ("--exit", "2"), {"layers.0.input_layernorm.weight": [16], "norm.weight": [16],
                                               **{f"layers.0.self_attn.{n}_proj.weight": h for n in "qkvo"}}, m(exit_layer=2, num_key_value_heads=2))):
            with self.subTest(kind=kind, more=more):
                meta, got, config = self.trained(kind, *more, steps=40)
                self.assertEqual({n: list(t.shape) for n, t in got.items()}, want)
                self.assertEqual({n: config[n] for n in keys}, keys)
                self.assertEqual((config["hidden_size"], config["vocab_size"], meta["method"], meta["target"], meta["seed"], meta["target_digest"]),
                                 (16, 40, kind, "small", "1", "d"))
                before, after = (json.loads(meta[n]) for n in ("figures_before", "figures"))
                self.assertLess(after["loss"][0], before["loss"][0])
                self.assertGreaterEqual(after["tokens_a_round"], 1)

    def test_repeats(self):
        for kind in heads.KINDS:
            with self.subTest(kind):
                first, again, other = (self.trained(kind, "--seed", seed, steps=3)[1] for seed in "112")
                self.assertTrue(all(np.array_equal(first[n], again[n]) for n in first))
                self.assertFalse(all(np.array_equal(first[n], other[n]) for n in first))

    def test_beginning(self):
        """Medusa begins as the target, Kangaroo and EAGLE-3 as the target's norm and output behind their stream, EAGLE as its last state."""
        with torch.no_grad():
            for kind, want in (("medusa", lambda b: b.states["final"]), ("hydra", lambda b: b.states["final"]), ("eagle", lambda b: b.states["final"]),
                               ("eagle3", lambda b: b.states["layer.3"]), ("kangaroo", lambda b: b.states["layer.1"])):
                _, net, states = self.settled(kind)
                for p in net.parameters():
                    if p.dim() > 1 and kind != "medusa":  # what is small first is nothing here
                        p.data[p.abs() < 0.5] = 0
                    p.data[p > 0.5] = 1
                net.eval()
                if hasattr(net, "n"):
                    net.n.w.data.copy_(self.target.n.w)
                b = states.batch(range(2), self.target)
                for k, got in enumerate(net(b, 2 if kind == "medusa" else 1)):
                    rows = want(b)[:, 1 + k:] if kind == "kangaroo" else want(b)[:, :b.rows(k)]
                    rows = self.target.n(rows) if hasattr(net, "n") else rows
                    self.assertTrue(torch.allclose(net.head(got), self.target.logits(rows), atol=1e-4), kind)

    def test_first_loss(self):
        """A head whose states are zero has the loss ln V; Medusa's is the target's own distribution against that of later places."""
        a, net, states = self.settled("medusa", "--depth", "2", "--decay", "1")
        b, a.ahead = states.batch(range(4), self.target), 2
        lp = self.target.logits(b.states["final"]).log_softmax(-1)
        want = sum(-(lp[:, 1 + k:].exp() * lp[:, :-1 - k]).sum(-1).mean() for k in range(2))
        self.assertAlmostEqual(heads.loss(net, self.target, b, a).item(), want.item(), places=4)
        a, net, _ = self.settled("hydra", "--depth", "1")
        net.blind, a.ahead = True, 1
        for p in net.parameters():
            p.data.zero_()
        self.assertAlmostEqual(heads.loss(net, self.target, b, a).item(), math.log(40), places=4)

    def test_labels(self):
        """Tokens for labels are those that come k+2 places behind the state (the cards' test of the shift)."""
        a, net, states = self.settled("medusa", "--depth", "3", "--labels", "tokens", "--decay", "1")
        b, a.ahead = states.batch(range(2), self.target), 3
        lp, want = self.target.logits(b.states["final"]).log_softmax(-1), 0.0
        for k in range(3):
            rows = [lp[t, i, b.ids[t, i + 2 + k]] for t in range(2) for i in range(LENGTH - 2 - k)]
            want -= torch.stack(rows).mean().item()
        self.assertAlmostEqual(heads.loss(net, self.target, b, a).item(), want, places=4)

    def test_gradients(self):
        """All values learn, and the target does not."""
        for kind in heads.KINDS:
            a, net, states = self.settled(kind)
            a.ahead, a.regress = 3, 1.0 if kind == "eagle" else 0.0
            for p in net.parameters():
                p.data += 0.05 * torch.randn(p.shape)
            heads.loss(net, self.target, states.batch(range(2), self.target), a).backward()
            for name, p in net.named_parameters():
                if kind == "medusa" and name.startswith("blocks.3") or kind in ("hydra", "chimera") and ".3." in name:
                    continue  # the depth that this loss leaves out
                self.assertTrue(p.grad is not None and p.grad.abs().sum() > 0, (kind, name))
            self.assertTrue(all(p.grad is None for p in self.target.parameters()))

    def test_steps(self):
        """Three steps of a layer are what three decoded tokens with a cache of their own give: the mask of the training-time test."""
        c, torch_seed = self.target.c, torch.manual_seed(5)
        layer = headnets.Layer(c, 32, c["kv"], 24)
        for p in layer.parameters():
            p.data = torch.randn(p.shape, generator=torch_seed) * 0.3
        n, x = 6, [torch.randn(1, 6 - j, 32) for j in range(3)]
        skip, past = [torch.randn(1, 6 - j, 16) for j in range(3)], []
        got = [layer(x[j], skip[j], past) for j in range(3)]
        for i in range(n - 2):  # the draft behind row i: true rows 0..i, then its own of steps 1 and 2
            rows = torch.cat([x[0][:, :i + 1], x[1][:, i:i + 1], x[2][:, i:i + 1]], 1)
            to = torch.cat([skip[0][:, :i + 1], skip[1][:, i:i + 1], skip[2][:, i:i + 1]], 1)
            plain = layer(rows, to, [])
            for j in range(3):
                self.assertTrue(torch.allclose(plain[:, i + j], got[j][:, i], atol=1e-5), (i, j))

    def test_scale(self):
        """What is written reads the embeddings as they are: a head that is computed from its file alone is the head that was trained."""
        for kind in ("hydra", "eagle"):
            _, net, states = self.settled(kind)
            for p in net.parameters():
                p.data += 0.05 * torch.randn(p.shape)
            b, t = states.batch(range(2), self.target), {n: v.detach().double() for n, v in net.tensors().items()}
            h, e = b.states["final"][:, :-1].double(), b.e[:, 1:].double()
            with torch.no_grad():
                if kind == "hydra":
                    x = torch.cat((h, e), -1)
                    y, z = (x @ t[f"hydra_mlp.0.0.{n}.weight"].T + t[f"hydra_mlp.0.0.{n}.bias"] for n in ("res_connection", "linear"))
                    want, got = y + z * z.sigmoid(), next(iter(net(b, 1)))
                else:
                    want, got = torch.cat((e, h), -1) @ t["fc.weight"].T + t["fc.bias"], net.fc(torch.cat((net.scale * b.e[:, 1:], b.states["final"][:, :-1]), -1))
            self.assertGreater(abs(net.scale - 1), 0.1)
            self.assertTrue(torch.allclose(want.float(), got, atol=1e-4), kind)

    def test_refused(self):
        for name, args, text in (
                ("a layer that is not there", self.flags("kangaroo", "--exit", "4"), "behind 4 layers"),
                ("more pairs than a block", self.flags("falcon", "--block", "3", "--pairs", "4"), "reads 1 to 3"),
                ("two taps", self.flags("eagle3", "--taps", "1,2"), "three streams"),
                ("a state that was not written", self.flags("surplus", "--reads", "layer.9"), "no tensor layer.9"),
                ("no text so long", self.flags("medusa", "--length", "49"), "no text of 49")):
            with self.subTest(name), self.assertRaises(SystemExit) as e, open(self.path("err"), "w") as err:
                with unittest.mock.patch("sys.stderr", err):
                    heads.main(args)
            said = str(e.exception)
            if said == "2":
                with open(self.path("err")) as f:
                    said = f.read()
            self.assertIn(text, said)

    def test_surplus(self):
        """The state tells more than the token where the text was written by a model that reads more than the token."""
        target, states, held = self.target, *(heads.States(self.path(n), LENGTH, (), self.target) for n in ("train", "held"))
        a = heads.parser().parse_args(self.flags("surplus", steps=60))
        for name, v in heads.KINDS["hydra"].items():
            setattr(a, name, v)
        a.ahead = 1
        got = heads.surplus(a, target, states, held)
        self.assertGreater(got["surplus"], 0)
        self.assertGreater(got["state"], got["floor"])


if __name__ == "__main__":
    unittest.main()
