"""Writes texts of a target's own, for drafts to be aligned with.

usage: sample.py TARGET OUT --minutes M | --texts N [--dir DIR] [--batch 128]

TARGET is a checkpoint or a GGUF file of the family. Each text goes on, over the target's context, from the first tokens of a window of train.bin, at a temperature of 0, 0.3, 0.7 or 1 in turn.
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
    p.add_argument("--dir", default=".", help="folder of train.bin")
    p.add_argument("--batch", type=int, default=128)
    a = p.parse_args(args)
    target, _ = model.load(a.target, train.device())
    target.eval()
    ids, gen = train.read(os.path.join(a.dir, "train.bin")), torch.Generator().manual_seed(5)
    temperature = torch.tensor([TEMPERATURES[i % len(TEMPERATURES)] for i in range(a.batch)], device=train.device())
    out, start = [], time.time()
    more = lambda: len(out) * a.batch < a.texts if a.texts else not out or (time.time() - start) * (1 + 1 / len(out)) < a.minutes * 60
    while more():
        x = train.windows(ids, a.batch, PREFIX - 1, gen).to(train.device())
        out.append(target.generate(x, target.c["ctx"] - PREFIX, temperature, gen).cpu())
    texts = torch.cat(out).numpy().astype("<u2")
    texts.tofile(a.out)
    print(f"{texts.size} tokens of the target's in {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
