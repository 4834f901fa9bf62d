"""Which tokens of a text are masks, and what each of them weighs in the loss of a masked-diffusion model.

A text's loss is the mean over its masks, whose number is drawn evenly from 1 to all: LLaDA's loss (Nie et al. 2025) with the number of masks in
place of their share, which varies less. It is trained in the forms in which such a model is asked.
"""
import torch

BLOCK = 32  # tokens of a block
BEYOND = 0.2  # weight of all masks behind a block
WHOLE, CANVAS = 0.2, 0.6  # shares of the texts without a prompt, and without one or without blocks


def ended(x, end):
    """Texts x [B, T] with nothing but ends behind an end."""
    return x.masked_fill((x == end).cumsum(1) > 0, end)


def chosen(rows, width, least, most, gen):
    """Masks [rows, width] of places from least to most of each row (tensors [rows]), and the number of masks; at least one."""
    at = torch.arange(width)
    inside = (at >= least[:, None]) & (at < most[:, None])
    size = most - least
    # The numbers of masks of the rows are spread evenly, each at random within its part.
    spread = (torch.randperm(rows, generator=gen) + torch.rand(rows, generator=gen)) / rows
    count = (spread * size).long().clamp(max=size - 1) + 1
    order = torch.rand(rows, width, generator=gen).masked_fill(~inside, 2).argsort(1).argsort(1)
    return order < count[:, None], count


def drawn(x, begin, gen):
    """Texts x [B, T] as they are masked: the texts, of which some begin with begin, and the weights [B, T] of their masks, 0 elsewhere.

    A text is masked anywhere behind its first token; or it is a prompt of any length and a canvas; or a prompt, a block, and nothing but masks behind.
    """
    rows, width = x.shape
    kind = torch.rand(rows, generator=gen)
    prompt = 1 + (torch.rand(rows, generator=gen) * (width - BLOCK - 1)).long()
    block = kind >= CANVAS
    least = torch.where(kind < WHOLE, torch.ones_like(prompt), prompt)
    most = torch.where(block, least + BLOCK, torch.full_like(least, width))
    masks, count = chosen(rows, width, least, most, gen)
    x = x.clone()
    x[kind >= WHOLE, 0] = begin
    behind = torch.arange(width) >= most[:, None]
    weights = masks / count[:, None] + behind * (BEYOND / behind.sum(1, keepdim=True).clamp(min=1))
    return x, weights
