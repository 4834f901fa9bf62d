"""Trains the adapters of LoRA-Drop (2026) for a model that stays as it is: between the tokens that run all layers, most layers are replaced by low-rank matrices.

usage: dropping.py --target GGUF --dir DIR --out FOLDER --steps N | --minutes M [--rank 8] [--alpha 16] [--seed 1] [--threads N] ...

DIR has train.bin and valid.bin of corpus.py. Behind a prompt, of each --period tokens the first runs everything. What it gives behind a layer is the layer's anchor for those after it:
there a layer that can be dropped, one from --begin on whose number 4 does not divide, gives anchor + alpha/rank B A x of its input x, and keeps no keys. Rows that run such a layer see the keys of
those that ran it too. A batch has one length of prompt, drawn from 8 to half a window, and one of the periods, of which half of the period is drawn one time in four. The loss is that of the
next token behind the prompt. The matrices B are zero first: a dropped layer gives the anchor.

FOLDER gets model.safetensors and config.json, whose tensors have the authors' names, which `grove convert --heads` reads. Figures are nats a token behind prompts of a quarter of a window, of
windows of valid.bin, by period, before training and after. --steps and --seed determine the adapters, bit by bit, on a processor and with a number of --threads.
"""
import argparse
import json
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import export
import model
import tensors
import train

EVERY = 4  # of the layers, those whose number it divides are never dropped


def droppable(layers, begin):
    """The numbers of the layers that can be dropped, of so many, from layer begin on."""
    return [i for i in range(begin, layers) if i % EVERY]


class Adapters(nn.Module):
    """Matrices A [rank, H] and B [H, rank] of each layer that can be dropped, by the layer's number."""

    def __init__(self, c, rank, alpha, begin=1):
        super().__init__()
        self.rank, self.alpha, numbers = rank, alpha, droppable(c["layers"], begin)
        self.a = nn.ParameterDict({str(i): nn.Parameter(torch.randn(rank, c["dim"]) * c["dim"] ** -0.5) for i in numbers})
        self.b = nn.ParameterDict({str(i): nn.Parameter(torch.zeros(c["dim"], rank)) for i in numbers})

    def forward(self, i, x):
        return self.alpha / self.rank * (x @ self.a[str(i)].T @ self.b[str(i)].T)

    def tensors(self):
        return {f"model.layers.{i}.lora_adapter.{name}.weight": side[i] for i in self.a for name, side in (("A", self.a), ("B", self.b))}


def states(target, adapters, ids, first, period):
    """The last states [B, T, H] of ids [B, T], of which the first tokens are the prompt."""
    t = torch.arange(ids.shape[1])
    place = (t - first).clamp(min=0)
    drops = (t >= first) & (place % period != 0)
    kept, dropped = (~drops).nonzero()[:, 0], drops.nonzero()[:, 0]
    anchor = torch.searchsorted(kept, dropped - place[dropped] % period)
    x = target.emb(ids)
    run = lambda block, rows, at: block(rows, target.cos[:, at], target.sin[:, at], target.mask[:len(at), :len(at)])
    for i, block in enumerate(target.b):
        if str(i) not in adapters.a or not len(dropped):
            x = run(block, x, t)
            continue
        y = run(block, x[:, kept], kept)
        z = y[:, anchor] + adapters(i, x[:, dropped])
        x = torch.empty_like(x).index_copy(1, kept, y).index_copy(1, dropped, z)
    return target.n(x)


def loss(target, adapters, ids, first, period):
    """The nats of the tokens behind the prompt, of windows [B, T+1]."""
    s = states(target, adapters, ids[:, :-1], first, period)[:, first:]
    return F.cross_entropy(target.logits(s).flatten(0, 1), ids[:, first + 1:].flatten())


@torch.no_grad()
def figures(target, adapters, held, periods):
    """Nats a token by period, of windows [N, T+1]."""
    out = {}
    for period in periods:
        parts = [loss(target, adapters, part, (held.shape[1] - 1) // 4, period).item() * len(part) for part in held.split(8)]
        out[str(period)] = round(sum(parts) / len(held), 4)
    return out


def fit(target, adapters, ids, a):
    """Trains the adapters by the flags' budget, and returns the steps and minutes that were spent."""
    gen, opt = torch.Generator().manual_seed(a.seed), torch.optim.AdamW(adapters.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.0)
    draw = lambda low, high: torch.randint(low, high, (1,), generator=gen).item()
    step, start = 0, time.time()
    done = lambda: step / a.steps if a.steps else (time.time() - start) / 60 / a.minutes
    while done() < 1:
        for g in opt.param_groups:
            g["lr"] = a.lr * min(1, (step + 1) / 20) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done())))
        x = train.windows(ids, a.batch, a.length, gen)
        first, period = draw(8, a.length // 2), a.period if draw(0, 4) else max(2, a.period // 2)
        value = loss(target, adapters, x, first, period)
        opt.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(adapters.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 25 == 0:
            print(f"{step} loss {value.item():.3f} period {period} {(time.time() - start) / 60:.1f} minutes", flush=True)
    return step, (time.time() - start) / 60


def publish(adapters, a, target, known):
    os.makedirs(a.out, exist_ok=True)
    tensors.write(os.path.join(a.out, "model.safetensors"), {n: export.stored(t.detach()) for n, t in adapters.tensors().items()},
                  {k: v if isinstance(v, str) else json.dumps(v) for k, v in known.items()})
    c = target.c
    config = dict(method="lora_drop", lora_r=a.rank, lora_alpha=a.alpha, period=a.period, num_hidden_layers=c["layers"], hidden_size=c["dim"], vocab_size=c["vocab"],
                  base_model_name_or_path=known["target"], torch_dtype="float16")
    with open(os.path.join(a.out, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("target", "dir", "out"):
        p.add_argument("--" + name, required=True)
    budget = p.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=train.positive)
    budget.add_argument("--steps", type=train.count)
    p.add_argument("--name", help="the target's name in the file; without it, that of its file")
    for name, default in (("rank", 8), ("alpha", 16), ("period", 4), ("batch", 8), ("length", 128), ("windows", 64)):
        p.add_argument("--" + name, type=train.count, default=default)
    p.add_argument("--begin", type=train.count, default=1, help="the first layer that can be dropped")
    p.add_argument("--lr", type=train.positive, default=3e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=train.count)
    a = p.parse_args(args)
    if a.threads:
        torch.set_num_threads(a.threads)
    target, _ = model.load(a.target)
    target.eval().requires_grad_(False)
    if a.begin + 1 >= target.c["layers"]:
        p.error(f"--begin is {a.begin}; the target has {target.c['layers']} layers")
    if a.period < 2 or not 32 <= a.length < target.c["ctx"]:
        p.error(f"--period is {a.period} and --length {a.length}; they are 2 or more, and 32 to {target.c['ctx'] - 1}")
    torch.manual_seed(a.seed)
    ids, valid = (train.read(os.path.join(a.dir, name)) for name in ("train.bin", "valid.bin"))
    held = train.windows(valid, a.windows, a.length, torch.Generator().manual_seed(6))
    adapters, periods = Adapters(target.c, a.rank, a.alpha, a.begin), sorted({1, max(2, a.period // 2), a.period})
    before = figures(target, adapters, held, periods)
    print("nats by period, before:", json.dumps(before), flush=True)
    steps, minutes = fit(target, adapters, ids, a)
    known = dict(method="lora_drop", target=a.name or os.path.basename(a.target).split(".")[0], data="the Go distribution's source", seed=a.seed, steps=steps, minutes=round(minutes, 1),
                 batch=a.batch, length=a.length, lr=a.lr, layers=droppable(target.c["layers"], a.begin), parameters=sum(x.numel() for x in adapters.parameters()),
                 nats_by_period=figures(target, adapters, held, periods), nats_by_period_without=before)
    publish(adapters, a, target, known)
    print(json.dumps(known), flush=True)
    return known


if __name__ == "__main__":
    main()
