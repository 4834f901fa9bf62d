"""Trains a masked-diffusion model to be certain earlier, by texts of its own: certainty-forcing distillation (dParallel, 2025).

usage: certain.py --from CKPT --samples FILE ... --out CKPT --minutes M | --steps N [--dir DIR] [--blocks 3] [--weight 2] [--rehearse 0.25]
                  [--tokens 4096] [--lr 2e-4] [--seed 1] [--threads N] [--checks 3] [--bf16]

FILE is what canvas.py wrote of CKPT; of several files each gives as many texts of a batch as the others. Of each text the blocks before a random one stay, half of that block's tokens are masks, and so is all behind it; beside it stands the same
text with the other half masked. The loss is the cross entropy of the block's masks and, --weight times, the mean entropy, at temperature 0.5, of those
whose likeliest token is right already. The share --rehearse of the steps is training by masks as before (diffusion.py), so that what is known is kept.

The paper trains a LoRA of rank 128 without rehearsal; here all weights learn. Runs go on, repeat and end as those of train.py.
"""
import torch
import torch.nn.functional as F

import canvas
import diffusion
import masks
import train

SHARP = 0.5  # temperature of the entropy


def halves(rows, least, width, gen):
    """The masks [2 rows, width] of two copies of rows whose blocks begin at least [rows]: half of the block each, and all behind it; and those of the block."""
    at = torch.arange(width)
    block = (at >= least[:, None]) & (at < least[:, None] + masks.BLOCK)
    order = torch.rand(rows, width, generator=gen).masked_fill(~block, 2).argsort(1).argsort(1)
    one, behind = order < masks.BLOCK // 2, at >= least[:, None] + masks.BLOCK
    return torch.cat((one | behind, block & ~one | behind)), torch.cat((one, block & ~one))


def certainty(logits, ids, weight):
    """The loss of masks whose tokens are ids [N], by their logits [N, V]; and the share of the masks whose likeliest token is right."""
    right = logits.argmax(-1) == ids
    of = F.cross_entropy(logits, ids)
    if right.any():
        sharp = (logits[right] / SHARP).log_softmax(-1)
        of = of + weight * -(sharp.exp() * sharp).sum(-1).mean()
    return of, right.float().mean().item()


class Run(diffusion.Run):
    """A run of certainty forcing."""

    def __init__(self, a):
        super().__init__(a)
        width = canvas.PROMPT + a.blocks * masks.BLOCK
        if width > self.c["ctx"]:
            raise SystemExit(f"certain: --blocks {a.blocks}: texts of {width} tokens; the context is {self.c['ctx']}")
        self.samples = [masks.ended(train.texts(path, width), self.tok.end) for path in a.own]

    def settings(self):
        return {n: getattr(self.a, n) for n in ("seed", "steps", "tokens", "weight", "rehearse", "blocks")}

    def loss(self, done):
        if torch.rand((), generator=self.gen) < self.a.rehearse:
            return super().loss(done)
        each = max(1, self.a.tokens // (2 * len(self.samples) * self.samples[0].shape[1]))
        x = torch.cat([own[torch.randint(len(own), (each,), generator=self.gen)] for own in self.samples])
        rows = len(x)
        least = canvas.PROMPT + masks.BLOCK * torch.randint(self.a.blocks, (rows,), generator=self.gen)
        masked, block = halves(rows, least, x.shape[1], self.gen)
        x = torch.cat((x, x)).to(self.dev)
        with train.half(self.dev, self.a.bf16):
            logits = self.model.logits(diffusion.rows(self.model, x.masked_fill(masked.to(self.dev), self.tok.mask))[block])
        return certainty(logits.float(), x[block], self.a.weight)[0]


def main(args=None):
    p = diffusion.flags(__doc__)
    p.add_argument("--samples", dest="own", nargs="+", required=True, help="texts of the model's own, by canvas.py")
    p.add_argument("--blocks", type=train.count, default=3, help="of such a text")
    p.add_argument("--weight", type=train.positive, default=2.0, help="of the entropy")
    p.add_argument("--rehearse", type=train.share, default=0.25, help="share of the steps that train as diffusion.py does")
    p.set_defaults(lr=2e-4, checks=3)
    Run(p.parse_args(args)).run()


if __name__ == "__main__":
    main()
