"""Measures a model on the files held out, and drafts against it.

usage: evaluate.py CKPT [DRAFT ...] [--dir DIR] [--texts 64] [--exits 2,3,6]

CKPT and DRAFT are checkpoints or GGUF files of the family. Loss: over all of valid.bin, in windows of the model's context one after the other, in nats a token and bits a byte. Acceptance: the target
goes on for 128 tokens from the first 64 of windows of valid.bin, greedy and at temperature 1; at each of its tokens the
draft is asked for the next. Greedy, a guess is accepted where both have the same likeliest token; at temperature 1, with
the probability that is the sum of the smaller of the two for each token. --exits: the loss behind so many layers, by the model's last norm and output.
"""
import argparse
import json
import math
import os

import torch
import torch.nn.functional as F

import model
import train

PREFIX, LENGTH = 64, 128
BATCH = 8  # texts at a time


@torch.no_grad()
def nats(m, ids, dev, exits=()):
    """Nats a token of ids, behind each of the exits, in rising order, and behind all layers."""
    n, which = m.c["ctx"], [*exits, m.c["layers"]]
    total, count = [0.0] * len(which), 0
    rows = [ids[i:i + n + 1] for i in range(0, len(ids) - n, n)]
    for i in range(0, len(rows), BATCH):
        x = torch.stack(rows[i:i + BATCH]).to(dev)
        y = x[:, 1:].flatten()
        for j, states in enumerate(m.exits(x[:, :-1], which)):
            total[j] += F.cross_entropy(m.logits(states).float().flatten(0, 1), y, reduction="sum").item()
        count += y.numel()
    return [t / count for t in total]


@torch.no_grad()
def written(target, ids, texts, dev):
    """What the target writes, greedy and at temperature 1, and its last states of that: (tokens [texts, T], states [texts, T, D]) of each."""
    gen = torch.Generator().manual_seed(9)
    at = torch.randint(len(ids) - PREFIX, (texts,), generator=gen)
    prefix = torch.stack([ids[i:i + PREFIX] for i in at]).to(dev)
    out = []
    for t in (0.0, 1.0):
        x = target.generate(prefix, LENGTH, torch.full((texts,), t, device=dev), gen)
        out.append((x, torch.cat([target.states(part) for part in x.split(BATCH)])))
    return out


@torch.no_grad()
def acceptance(target, draft, texts):
    """The shares of a draft's tokens that are accepted in what the target has written, greedy and at temperature 1."""
    shares = []
    for greedy, (x, states) in zip((True, False), texts):
        held = []
        for part, s in zip(x.split(BATCH), states.split(BATCH)):
            p, q = target.logits(s)[:, PREFIX - 1:-1].float(), draft(part)[:, PREFIX - 1:-1].float()
            held.append((p.argmax(-1) == q.argmax(-1)).float() if greedy else torch.minimum(p.softmax(-1), q.softmax(-1)).sum(-1))
        shares.append(torch.cat(held).mean().item())
    return shares


def figures(path, drafts, folder, texts=64, exits=()):
    """What is measured of a checkpoint, of its exits, and of drafts for it."""
    dev = train.device()
    ids = train.read(os.path.join(folder, "valid.bin"))
    with open(os.path.join(folder, "sizes.json")) as f:
        size = json.load(f)["valid"]
    target, ck = model.load(path, dev)
    target.eval()
    *early, loss = nats(target, ids, dev, exits)
    out = dict(parameters=sum(x.numel() for x in target.parameters()), nats=round(loss, 4),
               bits=round(loss / math.log(2) * size["tokens"] / size["bytes"], 4),
               tokens=ck.get("tokens", 0), minutes=round(ck.get("minutes", 0), 1))
    out.update({f"nats_exit_{n}": round(v, 4) for n, v in zip(exits, early)})
    texts = written(target, ids, texts, dev) if drafts else None
    for path in drafts:
        draft, _ = model.load(path, dev)
        draft.eval()
        greedy, drawn = acceptance(target, draft, texts)
        name = os.path.splitext(os.path.basename(path))[0]
        out[name] = dict(greedy=round(greedy, 3), temperature_1=round(drawn, 3))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("drafts", nargs="*")
    p.add_argument("--dir", default=".", help="folder of valid.bin and sizes.json")
    p.add_argument("--texts", type=int, default=64)
    p.add_argument("--exits", type=train.numbers, default=[], help="layers, as 2,3,6, behind which the loss is measured too")
    a = p.parse_args()
    print(json.dumps(figures(a.model, a.drafts, a.dir, a.texts, a.exits), indent=1))


if __name__ == "__main__":
    main()
