"""Trains a decoder on train.bin within a time, or distils one from a target.

usage: train.py --out CKPT --minutes M [--dir DIR] [--from CKPT | --dim 256 --layers 4 --heads 8 --kv 4 --ffn 768 --ctx 256]
                [--batch 16] [--lr 3e-3] [--dropout 0] [--target CKPT --samples FILE [--loss NAME]]

The learning rate rises over a hundred steps and falls as a cosine over the time. The weights that did best on valid.bin
are kept; training ends early where they have got worse three times in a row. A run that was interrupted goes on where it
was: its state is in CKPT.part, written every few minutes. With --target the first half of the time is training as usual,
and the second aligns the model with the target: nine batches of ten are the target's own texts (sample.py), and the loss
is that of --loss (losses.py), which without the flag is the divergence from the target's distribution and their total
variation, which is one less what a verifier accepts. With --loss gkd, --on-policy is the share of batches that the model
itself continues, at temperature 1, from the first tokens of such texts. Uses CUDA and bf16 where present.
"""
import argparse
import contextlib
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import losses
import model

CHECKS = 12  # of the validation loss, in the time given
PATIENCE = 3  # checks in a row without a better one
PREFIX = 32  # tokens of a text that the model continues itself


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def half(dev):
    return torch.autocast(dev, dtype=torch.bfloat16) if dev == "cuda" else contextlib.nullcontext()


def read(path):
    return torch.from_numpy(np.fromfile(path, dtype="<u2").astype(np.int64))


def windows(ids, n, length, gen):
    """n windows of length+1 tokens [n, length+1] from anywhere in ids."""
    at = torch.randint(len(ids) - length - 1, (n,), generator=gen)
    return torch.stack([ids[i:i + length + 1] for i in at])


class Run:
    """A run of training, which can be interrupted and goes on."""

    def __init__(self, a):
        self.a, self.dev = a, device()
        torch.manual_seed(1)
        self.gen = torch.Generator().manual_seed(1)
        if a.start:
            self.model, ck = model.load(a.start, self.dev)
            self.seen = ck.get("tokens", 0)
        else:
            c = model.config(a.dim, a.layers, a.heads, a.kv, a.ffn, a.ctx, dropout=a.dropout)
            self.model, self.seen = model.Decoder(c).to(self.dev), 0
        self.c = self.model.c
        if a.loss == "gkd" and self.c["ctx"] < PREFIX:
            raise SystemExit(f"train: --loss gkd: the context is {self.c['ctx']}; it must be {PREFIX} at least")
        wide = [x for x in self.model.parameters() if x.dim() > 1]
        narrow = [x for x in self.model.parameters() if x.dim() < 2]
        self.opt = torch.optim.AdamW([dict(params=wide, weight_decay=0.1), dict(params=narrow, weight_decay=0.0)],
                                     lr=1.0, betas=(0.9, 0.95))
        self.step, self.spent, self.best, self.worse, self.kept = 0, 0.0, math.inf, 0, None
        self.data = {n: read(os.path.join(a.dir, n + ".bin")) for n in ("train", "valid")}
        with open(os.path.join(a.dir, "sizes.json")) as f:
            size = json.load(f)["valid"]
        self.bits = size["tokens"] / size["bytes"] / math.log(2)  # bits a byte for a nat a token
        self.target, self.samples, self.reference = None, None, None
        if a.target:
            self.target = self.frozen(a.target)
            self.samples = read(a.samples)
        if a.reference:
            self.reference = self.frozen(a.reference)
        self.restore()

    def frozen(self, path):
        """A model that is asked and not trained, of the vocabulary and, at least, the context of the one that is."""
        m, _ = model.load(path, self.dev)
        if m.c["vocab"] != self.c["vocab"] or m.c["ctx"] < self.c["ctx"]:
            raise SystemExit(f"train: {path}: vocabulary {m.c['vocab']}, context {m.c['ctx']}; the model that is trained has "
                             f"{self.c['vocab']} and {self.c['ctx']}")
        return m.eval()

    def restore(self):
        part = self.a.out + ".part"
        if os.path.exists(part):
            s = torch.load(part, map_location="cpu")
            if s.get("loss", losses.DEFAULT) != self.a.loss:
                raise SystemExit(f"train: {part}: began with --loss {s.get('loss', losses.DEFAULT)}, not {self.a.loss}; remove the file to begin anew")
            self.model.load_state_dict(s["sd"])
            self.opt.load_state_dict(s["opt"])
            self.gen.set_state(s["gen"])
            for name in ("step", "spent", "best", "worse", "kept", "seen"):
                setattr(self, name, s[name])
            print(f"goes on at step {self.step}, {self.spent / 60:.1f} minutes", flush=True)

    def suspend(self):
        write(self.a.out + ".part", dict(loss=self.a.loss, sd=self.model.state_dict(), opt=self.opt.state_dict(), gen=self.gen.get_state(),
                                         **{n: getattr(self, n) for n in ("step", "spent", "best", "worse", "kept", "seen")}))

    def loss(self, x, done):
        """The loss of a batch, after a share of the time."""
        aligned, first = self.target is not None and done > 0.5, 0
        if aligned and torch.rand((), generator=self.gen) < 0.9:
            x = windows(self.samples, self.a.batch, self.c["ctx"], self.gen).to(self.dev)
        if aligned and self.a.loss == "gkd" and torch.rand((), generator=self.gen) < self.a.on_policy:
            x, first = self.written(x), PREFIX - 1
        logits = lambda m: m(x[:, :-1]).float()[:, first:].flatten(0, 1)
        with half(self.dev):
            draft = logits(self.model)
            if not aligned:
                return F.cross_entropy(draft, x[:, 1:].flatten())
            with torch.no_grad():
                target = logits(self.target)
                reference = None if self.reference is None else logits(self.reference)
        return losses.of(self.a, draft, target, reference)

    def written(self, x):
        """Texts of x's size, which the model, as it is now, continues at temperature 1 from the first tokens of x."""
        self.model.eval()
        warm = torch.ones(x.shape[0], device=self.dev)
        x = self.model.generate(x[:, :PREFIX], x.shape[1] - PREFIX, warm, self.gen)
        self.model.train()
        return x

    @torch.no_grad()
    def validate(self):
        """Nats a token of valid.bin, the same windows each time."""
        self.model.eval()
        gen, total = torch.Generator().manual_seed(3), 0.0
        for _ in range(16):
            x = windows(self.data["valid"], 16, self.c["ctx"], gen).to(self.dev)
            with half(self.dev):
                logits = self.model(x[:, :-1])
            total += F.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten()).item()
        self.model.train()
        return total / 16

    def check(self):
        """Keeps the weights if they are the best so far, and tells whether to go on."""
        v = self.validate()
        if self.target is not None or v < self.best:  # what is aligned is not judged by the corpus
            self.best, self.worse = v, 0
            self.kept = {k: x.detach().cpu().clone() for k, x in self.model.state_dict().items()}
        else:
            self.worse += 1
        print(f"valid {v:.4f} nats a token, {v * self.bits:.4f} bits a byte, {self.seen} tokens, {self.spent / 60:.1f} minutes",
              flush=True)
        return self.worse < PATIENCE

    def one(self, done):
        lr = self.a.lr * min(1, (self.step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        for g in self.opt.param_groups:
            g["lr"] = lr
        x = windows(self.data["train"], self.a.batch, self.c["ctx"], self.gen).to(self.dev)
        value = self.loss(x, done)
        self.opt.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.step += 1
        self.seen += x.shape[0] * self.c["ctx"]
        return value

    def run(self):
        whole, checked, began = self.a.minutes * 60, int(self.spent / self.a.minutes / 60 * CHECKS), self.seen
        print(sum(x.numel() for x in self.model.parameters()), "parameters on", self.dev, flush=True)
        if self.a.start and self.step == 0:
            self.check()  # to end with nothing worse
        start, before = time.time(), self.spent
        while self.spent < whole:
            value = self.one(self.spent / whole)
            self.spent = before + time.time() - start
            if self.step % 100 == 0:
                rate = (self.seen - began) / (time.time() - start)
                print(f"{self.step} loss {value.item():.3f} {rate:.0f} tokens/s {self.spent / whole:.0%}", flush=True)
            if int(self.spent / whole * CHECKS) > checked:
                checked += 1
                if not self.check():
                    break
                self.suspend()
        if self.kept is None:
            self.check()
        write(self.a.out, dict(cfg={**self.c, "dropout": 0.0}, sd=self.kept, tokens=self.seen, minutes=self.spent / 60, valid=self.best))
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.a.out + ".part")


def write(path, what):
    torch.save(what, path + ".new")
    os.replace(path + ".new", path)


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--dir", default=".", help="folder of train.bin and valid.bin")
    p.add_argument("--from", dest="start", help="weights to begin with")
    for name, default in dict(dim=256, layers=4, heads=8, kv=4, ffn=768, ctx=256, batch=16).items():
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--dropout", type=float, default=0.0)
    p.add_argument("--target", help="model to be aligned with")
    p.add_argument("--samples", help="its texts")
    losses.flags(p)
    a = p.parse_args(args)
    try:
        losses.settle(a)
    except ValueError as e:
        p.error(str(e))
    if a.target and not a.samples:
        p.error("--target aligns with texts of the target; name them with --samples")
    Run(a).run()


if __name__ == "__main__":
    main()
