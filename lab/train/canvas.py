"""Writes texts of a model's own, for certain.py; and the canvas that this file and learned.py fill.

usage: canvas.py CKPT OUT --texts N [--dir DIR] [--source train.bin] [--blocks 3] [--sure 0.9] [--seed 5] [--batch 64] [--bf16]

CKPT is a checkpoint or a GGUF file of the family. A text is 64 tokens of --source and --blocks blocks of 32, filled by the model's likeliest tokens, one
block after the other: a pass fixes the surest mask of each text, and all as sure as --sure (above 1: that one alone). A decoder writes its likeliest tokens
one after the other. OUT holds the tokens as a .bin does.
"""
import argparse
import os
import time

import torch

import bpe
import diffusion
import masks
import model
import train

PROMPT = 64  # tokens that a text begins with


@torch.no_grad()
def proposals(m, x, first, last, mask, also=False):
    """The likeliest token [B, N] of each place from first to last of x [B, T] and its probability; never the mask."""
    with train.half("cpu", also):
        logits = m.logits(diffusion.rows(m, x)[:, first:last]).float()
    logits[..., mask] = -1e30
    p, ids = logits.softmax(-1).max(-1)
    return ids, p


def surest(p, masked, sure):
    """The places of masks [B, N] that a pass fixes: the surest of each text, the first of those alike, and those of sure and more."""
    p = p.masked_fill(~masked, -1)
    best = torch.zeros_like(masked).scatter(1, p.argmax(1, keepdim=True), True)
    return (best | (p >= sure)) & masked


def fill(m, x, first, block, mask, choose, also=False):
    """Fills the masks of x [B, T] from a place on, block by block, by what choose(ids, p, masked, at) fixes of the block at a place. Returns the passes."""
    passes = 0
    for at in range(first, x.shape[1], block):
        last = min(at + block, x.shape[1])
        while (masked := x[:, at:last] == mask).any():
            ids, p = proposals(m, x, at, last, mask, also)
            fix = choose(ids, p, masked, at)
            x[:, at:last] = torch.where(fix, ids, x[:, at:last])
            passes += 1
    return passes


def begun(ids, n, length, more, tok, gen):
    """n texts of a beginning of length tokens and more masks."""
    x = train.windows(ids, n, length - 1, gen)
    x[:, 0] = tok.begin
    return torch.cat((x, torch.full((n, more), tok.mask)), 1)


def written(m, ids, a, gen):
    """a.texts texts [N, PROMPT + blocks] or, to fill the last batch, more."""
    tok, out = bpe.load(), []
    for _ in range(-(-a.texts // a.batch)):
        x, start = begun(ids, a.batch, PROMPT, a.blocks * masks.BLOCK, tok, gen), time.time()
        if m.c.get("causal", True):
            passes = x.shape[1] - PROMPT
            x = m.generate(x[:, :PROMPT], passes, torch.zeros(a.batch), gen)
        else:
            passes = fill(m, x, PROMPT, masks.BLOCK, tok.mask, lambda ids, p, masked, at: surest(p, masked, a.sure), a.bf16)
        print(f"{a.batch} texts of {a.blocks * masks.BLOCK} tokens: {passes} passes, {time.time() - start:.0f} s", flush=True)
        out.append(x)
    return torch.cat(out)


def opened(path):
    """A model of masked diffusion."""
    m, _ = model.load(path)
    if m.c.get("causal", True):
        raise SystemExit(f"canvas: {path}: its tokens see earlier ones alone; it must be a model that diffusion.py trained")
    return m.eval()


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("out")
    p.add_argument("--texts", type=train.count, required=True, help="number of texts, rounded up to whole batches")
    p.add_argument("--dir", default=".", help="folder of the source")
    p.add_argument("--source", default="train.bin", help="file of tokens that texts begin with; valid.bin for texts held out")
    p.add_argument("--blocks", type=train.count, default=3)
    p.add_argument("--sure", type=train.positive, default=0.9)
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--batch", type=train.count, default=64)
    p.add_argument("--bf16", action="store_true", help="multiply in bf16")
    p.add_argument("--threads", type=train.count, help="of PyTorch; its own number without the flag")
    a = p.parse_args(args)
    if a.threads:
        torch.set_num_threads(a.threads)
    m = model.load(a.model)[0].eval()
    if PROMPT + a.blocks * masks.BLOCK > m.c["ctx"]:
        p.error(f"--blocks {a.blocks}: the context is {m.c['ctx']}")
    texts = written(m, train.read(os.path.join(a.dir, a.source)), a, torch.Generator().manual_seed(a.seed))
    texts.numpy().astype("<u2").tofile(a.out)


if __name__ == "__main__":
    main()
