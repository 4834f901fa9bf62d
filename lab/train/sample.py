"""Writes texts of a target's own, for drafts to be aligned with.

usage: sample.py TARGET OUT --minutes M | --texts N [--dir DIR] [--source train.bin] [--length N] [--seed 5] [--batch 128]

TARGET is a checkpoint or a GGUF file of the family. Each text goes on, over the target's context or to --length tokens, from the first tokens of a
window of --source, at a temperature of 0, 0.3, 0.7 or 1 in turn.
"""
import argparse
import os
import time

import numpy as np
import torch

import model
import train

PREFIX = 32
TEMPERATURES = (0.0, 0.3, 0.7, 1.0)


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("target")
    p.add_argument("out")
    budget = p.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=train.positive)
    budget.add_argument("--texts", type=train.count, help="number of texts, rounded up to whole batches")
    p.add_argument("--dir", default=".", help="folder of the source")
    p.add_argument("--source", default="train.bin", help="file of tokens that texts begin with; valid.bin for texts held out")
    p.add_argument("--length", type=train.count, help="tokens of a text, with those that it begins with")
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--batch", type=int, default=128)
    a = p.parse_args(args)
    target, _ = model.load(a.target, train.device())
    target.eval()
    length = a.length or target.c["ctx"]
    if not PREFIX < length <= target.c["ctx"]:
        p.error(f"--length is {length}; it must be {PREFIX + 1} to {target.c['ctx']}, the target's context")
    ids, gen = train.read(os.path.join(a.dir, a.source)), torch.Generator().manual_seed(a.seed)
    temperature = torch.tensor([TEMPERATURES[i % len(TEMPERATURES)] for i in range(a.batch)], device=train.device())
    out, start = [], time.time()
    more = lambda: len(out) * a.batch < a.texts if a.texts else not out or (time.time() - start) * (1 + 1 / len(out)) < a.minutes * 60
    while more():
        x = train.windows(ids, a.batch, PREFIX - 1, gen).to(train.device())
        out.append(target.generate(x, length - PREFIX, temperature, gen).cpu())
    texts = torch.cat(out).numpy().astype("<u2")
    texts.tofile(a.out)
    print(f"{texts.size} tokens of the target's in {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
