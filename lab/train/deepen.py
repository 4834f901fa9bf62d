"""Spreads a decoder over more and narrower layers, for training to go on from.

usage: deepen.py CKPT OUT [--dir DIR] [--dim 192] [--times 3] [--kv 3] [--ffn 448]

CKPT is a checkpoint or a GGUF file of the family. Each of its layers becomes --times layers: the first has as many of its heads as there is room
for, the next the others and the first part of its feed-forward part, the next the rest; what is left over begins with random weights and
an output of zero. The stream is turned so that its values are in the order of their variance over windows of train.bin, and the first
--dim are kept (SliceGPT, 2024). What is lost is learned again by train.py --from OUT.
"""
import argparse
import math
import os

import torch

import model
import train


@torch.no_grad()
def turned(m, ids, dim):
    """A basis [D, dim] of the stream, the share of the squares that it keeps, and the mean of |activation| of each feed-forward value by layer."""
    cov, t, sizes = 0, ids.shape[1], []
    x = m.emb(ids)
    norm = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))
    for block in m.b:
        y = norm(x).flatten(0, 1)
        cov = cov + y.T @ y
        before, kept = x, []
        hook = block.dn.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
        x = block(before, m.cos[:, :t], m.sin[:, :t], m.mask[:t, :t])
        hook.remove()
        sizes.append(kept[0].abs().mean((0, 1)) * block.dn.weight.norm(dim=0))
    y = norm(x).flatten(0, 1)
    cov = cov + 2 * y.T @ y
    values, vectors = torch.linalg.eigh(cov)
    return vectors.flip(1)[:, :dim], (values.flip(0)[:dim].sum() / values.sum()).item(), sizes


@torch.no_grad()
def spread(m, dim, times, kv, ffn, basis, share, sizes):
    """The decoder of more layers."""
    c = m.c
    group, hd = c["heads"] // c["kv"], c["hd"]
    new = model.Decoder(model.config(dim, c["layers"] * times, kv * group, kv, ffn, c["ctx"]))
    if new.c["hd"] != hd:
        raise SystemExit(f"deepen: --dim {dim} and --kv {kv} make heads of {new.c['hd']} values; the model has {hd}")
    if c["kv"] > kv * times or c["ffn"] > ffn * (times - 1) or times < 2:
        raise SystemExit(f"deepen: --times {times}: no room for {c['kv']} heads of keys and {c['ffn']} feed-forward values")
    scale = math.sqrt(c["dim"] * share / dim)  # what the shorter rows' norm makes them larger by, taken back
    table = m.emb.weight @ basis
    new.emb.weight.copy_(table)
    new.n.w.copy_(((m.emb.weight * m.n.w) @ basis * table).sum(0) / table.pow(2).sum(0) * scale)
    for i, old in enumerate(m.b):
        order = sizes[i].argsort(descending=True)
        read = {n: getattr(old, n).weight * norm.w @ basis * scale for n, norm in (("q", old.n1), ("k", old.n1), ("v", old.n1), ("g", old.n2), ("u", old.n2))}
        for j, block in enumerate(new.b[i * times:(i + 1) * times]):
            block.o.weight.zero_()
            block.dn.weight.zero_()
            have = min(kv, c["kv"] - j * kv)
            if have > 0:
                for n, width in (("q", group * hd), ("k", hd), ("v", hd)):
                    getattr(block, n).weight[:have * width] = read[n][j * kv * width:(j * kv + have) * width]
                block.o.weight[:, :have * group * hd] = basis.T @ old.o.weight[:, j * kv * group * hd:(j * kv + have) * group * hd]
            part = order[(j - 1) * ffn:j * ffn] if j else order[:0]
            block.g.weight[:len(part)], block.u.weight[:len(part)] = read["g"][part], read["u"][part]
            block.dn.weight[:, :len(part)] = basis.T @ old.dn.weight[:, part]
    return new


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("out")
    p.add_argument("--dir", default=".", help="folder of train.bin")
    for name, default in dict(dim=192, times=3, kv=3, ffn=448).items():
        p.add_argument("--" + name, type=train.count, default=default)
    a = p.parse_args(args)
    m, _ = model.load(a.model)
    ids = train.windows(train.read(os.path.join(a.dir, "train.bin")), 32, m.c["ctx"] - 1, torch.Generator().manual_seed(7))
    torch.manual_seed(1)
    basis, share, sizes = turned(m.eval(), ids, a.dim)
    new = spread(m, a.dim, a.times, a.kv, a.ffn, basis, share, sizes)
    train.write(a.out, dict(cfg=new.c, sd=new.state_dict(), tokens=0, minutes=0.0, valid=0.0))
    print(f"{sum(x.numel() for x in new.parameters())} parameters in {new.c['layers']} layers; {share:.1%} of the stream's squares are kept")


if __name__ == "__main__":
    main()
