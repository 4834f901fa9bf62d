"""Trains a decoder on train.bin within a budget of time or steps, or distils one from a target.

usage: train.py --out CKPT --minutes M | --steps N [--dir DIR] [--from CKPT | --dim 256 --layers 4 --heads 8 --kv 4 --ffn 768 --ctx 256]
                [--batch 16] [--lr 3e-3] [--dropout 0] [--seed 1] [--threads N] [--checks 12]
                [--layer-dropout 0] [--exits 2,3,6 [--exit-scale 1 | --sorted]] [--more-layers 0]
                [--samples FILE [--aligned 0.5] [--target CKPT [--states FILE] [--loss NAME]]]

A target is a checkpoint or a GGUF file of the family. The learning rate rises over a hundred steps, or a tenth of them where that is less, and
falls as a cosine over the budget. The weights that did best on valid.bin are kept; training ends early where they have got worse three times in
a row. A run that was interrupted goes on where it was: its state is in CKPT.part, written at each check, and where Ctrl-C or SIGTERM ends the run.

With --samples the last part of the budget, --aligned, is another training: nine batches of ten are the target's own texts (sample.py). Without
--target the draft learns their tokens. With it, it is aligned: the loss is that of --loss (losses.py), which without the flag is the divergence
from the target's distribution and their total variation, which is one less what a verifier accepts. --states keeps what the target
computes of its texts: they are asked for once, not each time that a batch has them. With --loss gkd, --on-policy is the share of batches that
the model itself continues, at temperature 1, from the first tokens of such texts.

--layer-dropout and --exits are the recipe of LayerSkip (2024), whose first layers draft for all of them. Each text of a batch skips layer l
of L with the probability (2^(l/(L-1)) - 1) times --layer-dropout. A step predicts behind one of the exits too, the next one each step, by the
model's own last norm and output: n layers have the weight --exit-scale n/L, all of them 1. Training on texts of a target does neither.

--sorted is the recipe of a nested draft (S2D, 2024): each step sums the losses behind every exit and behind all layers, with equal weights, and
texts of a target are learned so too, so that the first layers draft by themselves. --more-layers puts so many layers behind those of --from; they
begin with random weights and outputs of zero, so that the model is at first what it was.

--steps and --seed determine the weights, bit by bit, on a processor and with a number of --threads; another version of PyTorch, kind of
processor or number of threads sums in another order. A run that went on from CKPT.part ends as one that was not interrupted. Uses CUDA and
bf16 where present, and there repeats no bits.
"""
import argparse
import contextlib
import json
import math
import os
import signal
import time

import numpy as np
import torch
import torch.nn.functional as F

import losses
import model

PATIENCE = 3  # checks in a row without a better one
PREFIX = 32  # tokens of a text that the model continues itself


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def half(dev, also=False):
    """A context of bf16 on CUDA, and on a processor where that is asked for."""
    return torch.autocast(dev, dtype=torch.bfloat16) if dev == "cuda" or also else contextlib.nullcontext()


def read(path):
    return torch.from_numpy(np.fromfile(path, dtype="<u2").astype(np.int64))


def windows(ids, n, length, gen):
    """n windows of length+1 tokens [n, length+1] from anywhere in ids."""
    at = torch.randint(len(ids) - length - 1, (n,), generator=gen)
    return torch.stack([ids[i:i + length + 1] for i in at])


def texts(path, length):
    """The texts [n, length] of a file of samples, or their pieces where the samples are longer."""
    ids = read(path)
    if len(ids) < length:
        raise SystemExit(f"train: {path}: {len(ids)} tokens; a text has {length}")
    return ids[:len(ids) // length * length].view(-1, length)


@torch.no_grad()
def known(path, target, samples, dev):
    """The target's last states of samples [n, T], in F32 [n, T, D], from a file that is written where it is missing."""
    ask = lambda x: target.states(x.to(dev)).float().cpu()
    if not os.path.exists(path):
        with open(path + ".new", "wb") as f:
            for i in range(0, len(samples), 16):
                ask(samples[i:i + 16]).numpy().astype("<f4").tofile(f)
        os.replace(path + ".new", path)
    shape = (*samples.shape, target.c["dim"])
    if os.path.getsize(path) != 4 * math.prod(shape):
        raise SystemExit(f"train: {path}: not the states of these samples by this target; remove the file")
    states = torch.from_numpy(np.memmap(path, "<f4", "c", shape=shape))
    if not torch.allclose(states[-1:], ask(samples[-1:]), atol=1e-3):
        raise SystemExit(f"train: {path}: not the states of these samples by this target; remove the file")
    return states


def weighed(values, weights):
    return sum(w * v for w, v in zip(weights, values)) / sum(weights)


class Stop:
    """Whether Ctrl-C or SIGTERM was seen, which end a run between two steps."""
    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self):
        self.asked = False
        self.before = [signal.signal(s, self.seen) for s in self.SIGNALS]

    def seen(self, *_):
        self.asked = True

    def end(self):
        for s, handler in zip(self.SIGNALS, self.before):
            signal.signal(s, handler)


class Run:
    """A run of training, which can be interrupted and goes on."""

    def __init__(self, a):
        self.a, self.dev = a, device()
        if a.threads:
            torch.set_num_threads(a.threads)
        torch.manual_seed(a.seed)
        self.gen = torch.Generator().manual_seed(a.seed)
        if a.start:
            self.model, ck = self.loaded(a.start)
            self.seen = ck.get("tokens", 0)
            self.model = model.taller(self.model, a.more_layers).to(self.dev)
        else:
            c = model.config(a.dim, a.layers, a.heads, a.kv, a.ffn, a.ctx, dropout=a.dropout)
            self.model, self.seen = model.Decoder(c).to(self.dev), 0
        self.c = self.model.c
        if a.layer_dropout:
            self.model.rates = model.layer_dropout(self.c["layers"], a.layer_dropout)
        if a.exits and not 0 < a.exits[0] <= a.exits[-1] < self.c["layers"]:
            raise SystemExit(f"train: --exits are {a.exits}; an exit is behind 1 to {self.c['layers'] - 1} of {self.c['layers']} layers")
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
        self.target, self.samples, self.states, self.reference = None, None, None, None
        if a.samples:
            self.samples = texts(a.samples, self.c["ctx"])
        if a.target:
            self.target = self.frozen(a.target)
        if a.states:
            self.states = known(a.states, self.target, self.samples, self.dev)
        if a.reference:
            self.reference = self.frozen(a.reference)
        self.restore()

    def loaded(self, path):
        """The model that the run begins with, and its checkpoint."""
        return model.load(path, self.dev)

    def settings(self):
        """What a run that goes on must have in common with its beginning."""
        return {n: getattr(self.a, n) for n in ("loss", "seed", "steps", "aligned", "exits", "exit_scale", "layer_dropout", "sorted")}

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
            for name, now in self.settings().items():
                if s["settings"].get(name, now) != now:
                    flag = "--" + name.replace("_", "-")
                    raise SystemExit(f"train: {part}: began with {flag} {s['settings'][name]}, not {now}; remove the file to begin anew")
            self.model.load_state_dict(s["sd"])
            self.opt.load_state_dict(s["opt"])
            self.gen.set_state(s["gen"])
            torch.set_rng_state(s["rng"])
            for name in ("step", "spent", "best", "worse", "kept", "seen"):
                setattr(self, name, s[name])
            print(f"goes on at step {self.step}, {self.spent / 60:.1f} minutes", flush=True)

    def suspend(self):
        write(self.a.out + ".part", dict(settings=self.settings(), sd=self.model.state_dict(), opt=self.opt.state_dict(), gen=self.gen.get_state(),
                                         rng=torch.get_rng_state(),
                                         **{n: getattr(self, n) for n in ("step", "spent", "best", "worse", "kept", "seen")}))

    def batch(self, aligned):
        """The tokens [B, T] of a batch, and the numbers of the samples that they are, None for others."""
        if aligned and torch.rand((), generator=self.gen) < 0.9:
            numbers = torch.randint(len(self.samples), (self.a.batch,), generator=self.gen)
            return self.samples[numbers].to(self.dev), numbers
        return windows(self.data["train"], self.a.batch, self.c["ctx"], self.gen).to(self.dev), None

    def loss(self, done):
        """The loss of a batch, after a share of the budget."""
        aligned, first = self.samples is not None and done >= 1 - self.a.aligned, 0
        x, numbers = self.batch(aligned)
        if not aligned and not self.a.sorted and (self.a.exits or self.a.layer_dropout):
            return self.exits(x)
        if aligned and self.a.loss == "gkd" and torch.rand((), generator=self.gen) < self.a.on_policy:
            x, numbers, first = self.written(x), None, PREFIX - 1
        logits = lambda m: m(x[:, :-1]).float()[:, first:].flatten(0, 1)
        with half(self.dev):
            drafts = self.nested(x, first) if self.a.sorted else [logits(self.model)]
            if not aligned or self.target is None:
                return sum(F.cross_entropy(d, x[:, 1:].flatten()) for d in drafts) / len(drafts)
            with torch.no_grad():
                if self.states is None or numbers is None:
                    target = logits(self.target)
                else:
                    target = self.target.logits(self.states[numbers, :-1].to(self.dev)).float().flatten(0, 1)
                reference = None if self.reference is None else logits(self.reference)
        return sum(losses.of(self.a, d, target, reference) for d in drafts) / len(drafts)

    def nested(self, x, first):
        """The logits [positions, V] behind each exit and behind all layers, of the places of x [B, T] from first on."""
        states = self.model.exits(x[:, :-1], [*self.a.exits, self.c["layers"]])
        return [self.model.logits(s[:, first:]).float().flatten(0, 1) for s in states]

    def exits(self, x):
        """The mean of the losses of the last state and of this step's early exit, whose weight grows with its depth."""
        last, which = self.c["layers"], []
        if self.a.exits:
            which = [self.a.exits[self.step % len(self.a.exits)]]
        with half(self.dev):
            states = self.model.exits(x[:, :-1], [*which, last])
            values = [F.cross_entropy(self.model.logits(s).float().flatten(0, 1), x[:, 1:].flatten()) for s in states]
        return weighed(values, self.weights(which))

    def weights(self, which):
        """The weights of exits, whose sum is that of one of them, and of all layers."""
        last = self.c["layers"]
        if self.a.sorted:
            return [1.0] * (len(which) + 1)
        return [self.a.exit_scale * n / last / max(1, len(which)) for n in which] + [1.0]

    def written(self, x):
        """Texts of x's size, which the model, as it is now, continues at temperature 1 from the first tokens of x."""
        self.model.eval()
        warm = torch.ones(x.shape[0], device=self.dev)
        x = self.model.generate(x[:, :PREFIX], x.shape[1] - PREFIX, warm, self.gen)
        self.model.train()
        return x

    @torch.no_grad()
    def validate(self):
        """Nats a token of valid.bin behind each exit and behind all layers, the same windows each time."""
        self.model.eval()
        which = [*self.a.exits, self.c["layers"]]
        gen, total = torch.Generator().manual_seed(3), [0.0] * len(which)
        for _ in range(16):
            x = windows(self.data["valid"], 16, self.c["ctx"], gen).to(self.dev)
            with half(self.dev):
                for i, states in enumerate(self.model.exits(x[:, :-1], which)):
                    total[i] += F.cross_entropy(self.model.logits(states).float().flatten(0, 1), x[:, 1:].flatten()).item() / 16
        self.model.train()
        return total

    def check(self):
        """Keeps the weights if they are the best so far, and tells whether to go on."""
        *early, last = self.validate()
        v = weighed([*early, last], self.weights(self.a.exits))
        if self.samples is not None or v < self.best:  # what is aligned is not judged by the corpus
            self.best, self.worse = v, 0
            self.kept = {k: x.detach().cpu().clone() for k, x in self.model.state_dict().items()}
        else:
            self.worse += 1
        if early:
            print("behind", ", ".join(f"{n} layers {x:.4f}" for n, x in zip(self.a.exits, early)), f"weighed {v:.4f}", flush=True)
        print(f"valid {last:.4f} nats a token, {last * self.bits:.4f} bits a byte, {self.seen} tokens, {self.spent / 60:.1f} minutes",
              flush=True)
        return self.worse < PATIENCE

    def done(self):
        """The share of the budget that is spent."""
        return self.step / self.a.steps if self.a.steps else self.spent / 60 / self.a.minutes

    def one(self):
        done, rise = self.done(), min(100, self.a.steps / 10) if self.a.steps else 100
        lr = self.a.lr * min(1, (self.step + 1) / rise) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        for g in self.opt.param_groups:
            g["lr"] = lr
        value = self.loss(done)
        self.opt.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.step += 1
        self.seen += self.a.batch * self.c["ctx"]
        return value

    def run(self):
        checked, began = int(self.done() * self.a.checks), self.seen
        print(sum(x.numel() for x in self.model.parameters()), "parameters on", self.dev, flush=True)
        if self.a.start and self.step == 0:
            self.check()  # to end with nothing worse
        start, before = time.time(), self.spent
        stop = Stop()
        while self.done() < 1:
            value = self.one()
            self.spent = before + time.time() - start
            if stop.asked and self.done() < 1:
                self.suspend()
                raise SystemExit(f"train: interrupted at step {self.step}; the same command goes on")
            if self.step % 100 == 0:
                rate = (self.seen - began) / (time.time() - start)
                print(f"{self.step} loss {value.item():.3f} {rate:.0f} tokens/s {self.done():.0%}", flush=True)
            if int(self.done() * self.a.checks) > checked:
                checked += 1
                if not self.check():
                    break
                self.suspend()
        stop.end()
        if self.kept is None:
            self.check()
        write(self.a.out, dict(cfg={**self.c, "dropout": 0.0}, sd=self.kept, tokens=self.seen, minutes=self.spent / 60, valid=self.best))
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.a.out + ".part")


def write(path, what):
    torch.save(what, path + ".new")
    os.replace(path + ".new", path)


def number(kind, allowed, bounds):
    """A type of flag: a number within bounds."""
    def parse(text):
        v = kind(text)
        if not allowed(v):
            raise argparse.ArgumentTypeError(f"{text}: it must be {bounds}")
        return v
    parse.__name__ = "number"
    return parse


def numbers(text):
    """A type of flag: whole numbers with commas between them, in rising order."""
    v = [int(n) for n in text.split(",")]
    if v != sorted(set(v)):
        raise argparse.ArgumentTypeError(f"{text}: numbers, each above the one before")
    return v


count = number(int, lambda v: v > 0, "above 0")
positive = number(float, lambda v: 0 < v < math.inf, "above 0")
share = number(float, lambda v: 0 <= v <= 1, "0 to 1")


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = p.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=positive)
    budget.add_argument("--steps", type=count)
    p.add_argument("--out", required=True)
    p.add_argument("--dir", default=".", help="folder of train.bin and valid.bin")
    p.add_argument("--from", dest="start", help="weights to begin with")
    for name, default in dict(dim=256, layers=4, heads=8, kv=4, ffn=768, ctx=256, batch=16).items():
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--dropout", type=float, default=0.0)
    p.add_argument("--seed", type=int, default=1, help="of the first weights, where there is no --from, and of the batches")
    p.add_argument("--threads", type=count, help="of PyTorch; its own number without the flag")
    p.add_argument("--checks", type=count, default=12, help="of the loss on valid.bin, over the budget")
    p.add_argument("--samples", help="texts of a target")
    p.add_argument("--aligned", type=share, default=0.5, help="the last share of the budget, which --samples is for")
    p.add_argument("--layer-dropout", type=share, default=0.0, help="share of the texts that skip the last layer; earlier layers less")
    p.add_argument("--exits", type=numbers, default=[], help="layers, as 2,3,6, behind which the model learns to predict too")
    p.add_argument("--exit-scale", type=positive, default=1.0, help="weight of an exit behind all layers; one behind fewer has that share")
    p.add_argument("--sorted", action="store_true", help="learn behind every exit in each step, also from texts of a target")
    p.add_argument("--more-layers", type=number(int, lambda v: v >= 0, "0 or more"), default=0, help="layers behind those of --from")
    p.add_argument("--target", help="model to be aligned with")
    p.add_argument("--states", help="file of what the target computes of --samples, written where it is missing")
    losses.flags(p)
    a = p.parse_args(args)
    try:
        losses.settle(a)
    except ValueError as e:
        p.error(str(e))
    if a.target and not a.samples:
        p.error("--target aligns with texts of the target; name them with --samples")
    if a.sorted and not a.exits:
        p.error("--sorted learns behind exits; name them with --exits")
    if a.sorted and a.layer_dropout:
        p.error("--sorted skips no layer; leave out --layer-dropout")
    if a.more_layers and not a.start:
        p.error("--more-layers go behind those of a model; name it with --from")
    if a.states and not a.target:
        p.error("--states are those of a target; name it with --target")
    Run(a).run()


if __name__ == "__main__":
    main()
