"""Trains a masked-diffusion model from a decoder's weights.

usage: diffusion.py --from CKPT --out CKPT --minutes M | --steps N [--dir DIR] [--unshifted] [--bf16]
                    [--tokens 4096] [--lr 1.5e-3] [--seed 1] [--threads N] [--checks 9]

CKPT is a checkpoint or a GGUF file of the family. All tokens of a text see each other, some are masks, and the model learns the tokens that these stand for
(masks.py has the loss). A row of the model gives the token behind its own place, as that of the decoder did (Dream, Ye et al. 2025);
--unshifted: its own (LLaDA, Nie et al. 2025). A batch has --tokens tokens, in texts of 128 or 192 or as many tokens as the context has. Behind
the end of a text come ends. --bf16 multiplies in bf16 on a processor too, which is faster where it has such instructions.

Runs go on, repeat and end as those of train.py.
"""
import argparse

import torch
import torch.nn.functional as F

import bpe
import masks
import model
import train

LENGTHS = (128, 192)


def bidirectional(m, shift):
    """A decoder's weights in a model whose tokens see each other."""
    new = model.Decoder(dict(m.c, causal=False, shift=shift))
    new.load_state_dict(m.state_dict())
    return new


def rows(m, x):
    """The states [B, T, D] that give the tokens of x [B, T], each at its own place; of a shifted model the first place's are the first row's."""
    states = m.states(x)
    return torch.cat((states[:, :1], states[:, :-1]), 1) if m.c["shift"] else states


class Run(train.Run):
    """A run of training by masks."""

    def __init__(self, a):
        self.tok = bpe.load()
        super().__init__(a)
        a.batch = max(1, round(a.tokens / self.c["ctx"]))  # by which train.Run counts tokens

    def loaded(self, path):
        m, ck = model.load(path, self.dev)
        if m.c.get("causal", True):
            m = bidirectional(m, not self.a.unshifted).to(self.dev)
            ck = dict(ck, tokens=0)
        return m, ck

    def settings(self):
        return {n: getattr(self.a, n) for n in ("seed", "steps", "tokens", "unshifted")}

    def texts(self, name, n, length, gen):
        """n texts of a file of tokens as they are masked, and the weights of the masks."""
        x = masks.ended(train.windows(self.data[name], n, length - 1, gen), self.tok.end)
        return masks.drawn(x, self.tok.begin, gen)

    def losses(self, x, weights):
        """The weighed losses of a batch's masks, one sum for each text."""
        masked = (weights > 0).to(self.dev)
        noisy = x.to(self.dev).masked_fill(masked, self.tok.mask)
        with train.half(self.dev, self.a.bf16):
            logits = self.model.logits(rows(self.model, noisy)[masked])
        of = torch.zeros(x.shape, device=self.dev)
        of[masked] = F.cross_entropy(logits.float(), x.to(self.dev)[masked], reduction="none")
        return (of * weights.to(self.dev)).sum(1)

    def loss(self, done):
        lengths = [n for n in LENGTHS if n < self.c["ctx"]] + [self.c["ctx"]]
        length = lengths[torch.randint(len(lengths), (), generator=self.gen)]
        return self.losses(*self.texts("train", max(1, self.a.tokens // length), length, self.gen)).mean()

    @torch.no_grad()
    def validate(self):
        """The loss of the same masks of texts of valid.bin each time."""
        self.model.eval()
        gen = torch.Generator().manual_seed(3)
        total = sum(self.losses(*self.texts("valid", 16, self.c["ctx"], gen)).mean().item() for _ in range(self.a.held))
        self.model.train()
        return [total / self.a.held]


@torch.no_grad()
def bound(m, ids, tok, also=False):
    """A bound of the nats a token of ids, from above: the mean loss of texts of the context that are masked anywhere (LLaDA)."""
    width, gen, total = m.c["ctx"], torch.Generator().manual_seed(4), []
    texts = masks.ended(ids[:len(ids) // width * width].view(-1, width), tok.end)
    for x in texts.split(16):
        masked, _ = masks.chosen(len(x), width, torch.ones(len(x)).long(), torch.full((len(x),), width), gen)
        with train.half("cpu", also):
            logits = m.logits(rows(m, x.masked_fill(masked, tok.mask))[masked])
        of = torch.zeros(x.shape)
        of[masked] = F.cross_entropy(logits.float(), x[masked], reduction="none")
        total.append(of.sum(1) / masked.sum(1))
    return torch.cat(total).mean().item()


def flags(doc):
    """The flags of a run by masks, for a command of a description."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = p.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=train.positive)
    budget.add_argument("--steps", type=train.count)
    p.add_argument("--from", dest="start", required=True, help="weights to begin with")
    p.add_argument("--out", required=True)
    p.add_argument("--dir", default=".", help="folder of train.bin and valid.bin")
    p.add_argument("--unshifted", action="store_true", help="a row gives the token of its own place")
    p.add_argument("--bf16", action="store_true", help="multiply in bf16 on a processor too")
    p.add_argument("--tokens", type=train.count, default=4096, help="of a batch")
    p.add_argument("--lr", type=train.positive, default=1.5e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=train.count, help="of PyTorch; its own number without the flag")
    p.add_argument("--checks", type=train.count, default=9, help="of the loss on valid.bin, over the budget")
    p.add_argument("--held", type=train.count, default=8, help="batches of a check")
    p.set_defaults(loss="masks", samples=None, target=None, states=None, reference=None, exits=[], layer_dropout=0, more_layers=0, sorted=False, exit_scale=1.0)
    return p


def main(args=None):
    Run(flags(__doc__).parse_args(args)).run()


if __name__ == "__main__":
    main()
