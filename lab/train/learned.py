"""Trains the filter of a masked-diffusion model, which says of a block's masks which are right already (Learn2PD, 2025).

usage: learned.py CKPT OUT.npz [--dir DIR] [--texts 128] [--blocks 3] [--hidden 32] [--steps 4000] [--lr 3e-3] [--seed 1] [--threads N] [--bf16]

CKPT is a checkpoint or a GGUF file of the family. It fills --texts canvases behind beginnings of train.bin by its likeliest tokens, one a pass: the reference. It fills
them again as an oracle would: each pass fixes the masks whose likeliest token is that of the reference, or, where there is none, the whole
block as the reference has it. Of each pass the filter learns, from the probability of the likeliest token at each place of the block, masks or not, which places are right: it is a
perceptron of one hidden layer with ReLU, the loss is the binary cross entropy of all places, and the weights that did best on a tenth of the texts are kept.
Figures are of another tenth: what the filter takes of the masks, and how much of that is wrong.

OUT has the arrays that export.py puts into the model's file, and figures.
"""
import argparse
import json
import os

import numpy as np
import torch
import torch.nn.functional as F

import bpe
import canvas
import masks
import train

ACCEPTED = 0.96  # least probability of a mask that the filter takes


class Filter(torch.nn.Module):
    """Logits [..., BLOCK] that places are right, of their probabilities [..., BLOCK]. It begins as a threshold: a place's own probability p gives
    nearly 20 p - 14, where there are as many hidden places."""

    def __init__(self, hidden):
        super().__init__()
        self.l0, self.l1 = torch.nn.Linear(masks.BLOCK, hidden), torch.nn.Linear(hidden, masks.BLOCK)
        with torch.no_grad():
            for l, slope, offset in ((self.l0, 1.0, 0.0), (self.l1, 20.0, -14.0)):
                l.weight.mul_(0.01).add_(slope * torch.eye(*l.weight.shape))
                l.bias.fill_(offset)

    def forward(self, p):
        return self.l1(F.relu(self.l0(p)))

    def arrays(self):
        """The tensors as a model's file has them."""
        return {f"diffusion.filter.{i}.{n}": getattr(l, n).detach().numpy().astype("<f4") for i, l in ((0, self.l0), (1, self.l1)) for n in ("weight", "bias")}


class Oracle:
    """Fixes what the reference has, and keeps what it saw."""

    def __init__(self, reference):
        self.reference, self.seen = reference, []

    def __call__(self, ids, p, masked, at):
        want = self.reference[:, at:at + masks.BLOCK]
        right = ids == want
        texts = masked.any(1).nonzero()[:, 0]
        self.seen.append((texts, p[texts], right[texts], masked[texts]))
        fix = right & masked
        stuck = ~fix.any(1)
        # A text without a right mask gets all of its reference: its proposals are overwritten.
        ids[stuck] = want[stuck]
        return torch.where(stuck[:, None], masked, fix)


def replayed(m, a, gen):
    """What an oracle saw of a.texts texts: their numbers [N], probabilities, whether right, and whether masks, each [N, BLOCK]."""
    tok, ids, all_of = bpe.load(), train.read(os.path.join(a.dir, "train.bin")), []
    for first in range(0, a.texts, a.batch):
        x = canvas.begun(ids, min(a.batch, a.texts - first), canvas.PROMPT, a.blocks * masks.BLOCK, tok, gen)
        reference = x.clone()
        passes = canvas.fill(m, reference, canvas.PROMPT, masks.BLOCK, tok.mask, lambda ids, p, masked, at: canvas.surest(p, masked, 2), a.bf16)
        oracle = Oracle(reference)
        again = canvas.fill(m, x, canvas.PROMPT, masks.BLOCK, tok.mask, oracle, a.bf16)
        print(f"{len(x)} texts: {passes} passes, {again} by the oracle", flush=True)
        all_of += [(n + first, *rest) for n, *rest in oracle.seen]
    return [torch.cat(parts) for parts in zip(*all_of)]


def figures(f, p, right, masked):
    """Of the masks: the share that the filter takes, and of those the share that is wrong; and by the best threshold of the probability that takes as many."""
    score, p, right = f(p).sigmoid()[masked], p[masked], right[masked]
    taken = score > ACCEPTED
    n = int(taken.sum())
    surest = p.argsort(descending=True)[:n]
    wrong = lambda which: round(1 - which.float().mean().item(), 4) if n else 0.0
    return dict(masks=len(p), taken=round(n / len(p), 4), wrong=wrong(right[taken]), wrong_by_threshold=wrong(right[surest]))


def fitted(a, texts, p, right):
    """The filter that does best on the texts that are held out: of ten, eight are learned, one chooses, one is for figures."""
    torch.manual_seed(a.seed)
    f, part = Filter(a.hidden), texts % 10
    opt, best, kept = torch.optim.AdamW(f.parameters(), lr=a.lr), np.inf, None
    loss = lambda which: F.binary_cross_entropy_with_logits(f(p[which]), right[which].float())
    for step in range(a.steps):
        opt.zero_grad()
        loss(part < 8).backward()
        opt.step()
        if step % 50 == 49 or step == a.steps - 1:
            with torch.no_grad():
                held = loss(part == 8).item()
            if held < best:
                best, kept = held, {k: v.clone() for k, v in f.state_dict().items()}
    f.load_state_dict(kept)
    return f, best


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("out")
    p.add_argument("--dir", default=".", help="folder of train.bin")
    p.add_argument("--texts", type=train.count, default=128)
    p.add_argument("--blocks", type=train.count, default=3)
    p.add_argument("--batch", type=train.count, default=64)
    p.add_argument("--hidden", type=train.count, default=32)
    p.add_argument("--steps", type=train.count, default=4000)
    p.add_argument("--lr", type=train.positive, default=3e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=train.count, help="of PyTorch; its own number without the flag")
    p.add_argument("--bf16", action="store_true", help="multiply in bf16")
    a = p.parse_args(args)
    if a.texts < 10:
        p.error("--texts: ten at least, of which two are held out")
    if a.threads:
        torch.set_num_threads(a.threads)
    m = canvas.opened(a.model)
    texts, sure, right, masked = replayed(m, a, torch.Generator().manual_seed(a.seed))
    f, best = fitted(a, texts, sure, right)
    with torch.no_grad():
        found = dict(passes=len(texts), loss=round(best, 4), **figures(f, *(t[texts % 10 == 9] for t in (sure, right, masked))))
    print(json.dumps(found), flush=True)
    np.savez(a.out, figures=json.dumps(found), **f.arrays())


if __name__ == "__main__":
    main()
