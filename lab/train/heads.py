"""Trains a drafting head for a target, from states that grove has written of texts of the target's own.

usage: heads.py KIND --target GGUF --states FILE --held FILE --out FOLDER --steps N | --minutes M [--seed 1] [--depth 4] [--threads N] ...
       heads.py surplus --target GGUF --states FILE --held FILE --steps N [--reads final]

KIND is medusa, hydra, eagle, eagle3 or kangaroo (headnets.py), fspad (net_fspad.py), peagle (net_peagle.py), chimera (net_chimera.py), falcon (net_falcon.py), dflash or dspark
(net_dflash.py), specblock (net_specblock.py), m2r2 (net_m2r2.py), or ppd or transfer, which are rows of the target itself (net_ppd.py, net_transfer.py). FILE is what `lab states` writes, --held of texts that are held out: with final, and with
the layers that the head reads. FOLDER gets model.safetensors and config.json by the names that the head's authors use, which `grove convert --heads`
reads; the metadata has data, seed, steps, minutes and figures. What is learned is the target's distribution at each position (--labels tokens: the texts' own
tokens): cross-entropy at depth k has the weight --decay^k. eagle and fspad learn the target's next state besides, falcon one further on, by SmoothL1.

Figures, on the texts held out, behind the tokens that began them, for each depth: loss, the cross-entropy to the target's distribution, in nats; top1, the
share of positions where both have the same likeliest token; overlap, the sum of the smaller of both probabilities, which is what a lossless
verifier accepts at temperature 1; and tokens_a_round, one more than the drafts of a chain that the target accepts, over the positions of greedy texts.
What is drafted at depth k hangs behind the text's own tokens.

surplus is the measure of the Markov-category view (2025), before any head is trained: the loss of a small network that predicts x_{i+2} by x_{i+1} alone,
less that of the same network given the state at i too. It is what the state knows of the next tokens and the token does not.

--steps and --seed determine a head, bit by bit, on a processor and with a number of --threads.
"""
import argparse
import json
import math
import os
import time

import torch
import torch.nn.functional as F

import headnets
import model
import net_chimera
import net_dflash
import net_falcon
import net_fspad
import net_m2r2
import net_peagle
import net_specblock
import net_ppd
import net_transfer
import sample
import tensors
import train

# What is the default of a kind: the depths that are trained, the weight of one more, the rate, and the weights of cross-entropy and of states.
KINDS = {
    "medusa": dict(ahead=4, decay=0.8, lr=1e-3, soft=1.0, regress=0.0),
    "hydra": dict(ahead=4, decay=1.0, lr=1e-3, soft=1.0, regress=0.0),
    "eagle": dict(ahead=1, decay=1.0, lr=1e-3, soft=0.1, regress=1.0),
    "eagle3": dict(ahead=3, decay=0.8, lr=1e-3, soft=1.0, regress=0.0),
    "fspad": dict(ahead=1, decay=1.0, lr=1e-3, soft=0.1, regress=1.0),
    "peagle": dict(ahead=6, decay=0.8, lr=1e-3, soft=1.0, regress=0.0),
    "specblock": dict(ahead=2, decay=0.8, lr=1e-3, soft=1.0, regress=0.0),
    "kangaroo": dict(ahead=1, decay=1.0, lr=1e-3, soft=1.0, regress=0.0),
    "m2r2": dict(ahead=1, decay=1.0, lr=1e-3, soft=1.0, regress=0.0),
    "chimera": dict(ahead=4, decay=1.0, lr=1e-3, soft=1.0, regress=0.0),
    "falcon": dict(ahead=1, decay=1.0, lr=1e-3, soft=0.1, regress=1.0, hard=0.1),
    "ppd": dict(ahead=3, decay=0.8, lr=1e-2, soft=1.0, regress=0.0),
    "transfer": dict(ahead=3, decay=0.8, lr=1e-3, soft=1.0, regress=0.0),
    "dflash": dict(ahead=5, decay=0.7788, lr=1e-3, soft=1.0, regress=0.0),  # exp(-1/4)
    "dspark": dict(ahead=5, decay=0.7788, lr=1e-3, soft=1.0, regress=0.0),
}
BLOCKS = ("dflash", "dspark")  # kinds that draft a block
ALL = ("medusa", "hydra", "chimera", "ppd", "transfer", *BLOCKS)  # kinds whose depths are trained together, all of them
PREFIX = sample.PREFIX  # tokens of a text that the target did not write


class States:
    """The texts of a file of states, in pieces of length tokens [N, length]; the rest of a text is left out."""

    def __init__(self, path, length, reads, target):
        self.path = path
        self.meta, self.tensors = tensors.read(path)
        for name in ("ids", "starts", "final", *reads):
            if name not in self.tensors:
                raise SystemExit(f"heads: {path}: no tensor {name}; write it with lab states --layers")
        ids, starts = self.tensors["ids"], self.tensors["starts"].tolist()
        for name in ("final", *reads):
            if self.tensors[name].shape != (len(ids), target.c["dim"]):
                raise SystemExit(f"heads: {path}: {name} is {self.tensors[name].shape}; of {len(ids)} tokens and this target it is {(len(ids), target.c['dim'])}")
        if starts[0] != 0 or starts[-1] != len(ids) or starts != sorted(starts):
            raise SystemExit(f"heads: {path}: the texts' starts do not go from 0 to {len(ids)}")
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < target.c["vocab"]:
            raise SystemExit(f"heads: {path}: a token that the target's vocabulary of {target.c['vocab']} has not")
        self.length, self.reads = length, reads
        self.at = [i for a, b in zip(starts, starts[1:]) for i in range(a, b - length + 1, length)]
        if not self.at:
            raise SystemExit(f"heads: {path}: no text of {length} tokens")

    def batch(self, numbers, target):
        """The batch of pieces by number."""
        take = lambda name: torch.stack([torch.from_numpy(self.tensors[name][self.at[i]:self.at[i] + self.length].astype(
            "i8" if name == "ids" else "f4")) for i in numbers])
        ids = take("ids")
        return headnets.Batch(ids, target.emb(ids), {name: take(name) for name in ("final", *self.reads)})


def teach(net, target, batch):
    """The logarithms of the target's distribution over what the head drafts [B, T, V], and whether it counts: its likeliest token is one that the
    head has [B, T]."""
    logits, kept = target.logits(batch.states["final"]), net.kept()
    if kept is None:
        return logits.log_softmax(-1), torch.ones(logits.shape[:2])
    return logits[..., kept].log_softmax(-1), torch.isin(logits.argmax(-1), kept).float()


def loss(net, target, batch, a):
    """The loss of a batch, by settings ahead, decay, soft, regress and labels."""
    with torch.no_grad():
        lp, counts = teach(net, target, batch)
        p = lp.exp() if a.labels == "soft" else None
        if p is not None and a.hard:  # a share of the weight is its likeliest token's
            best = p.argmax(-1, keepdim=True)
            p = ((1 - a.hard) * p).scatter_add_(-1, best, torch.full_like(best, a.hard, dtype=p.dtype))
    if a.kind == "specblock":
        return net.loss(batch, lp, a)
    total = 0.0
    for k, states in net.taught(batch, a.ahead):
        at = slice(1 + k, None) if net.rows is None else net.rows + 1 + k
        lq, on, to = net.head(states).log_softmax(-1), counts[:, at], batch.states["final"][:, at]
        if p is not None:
            each = -(p[:, at] * lq).sum(-1)
            value = (each * on).sum() / on.sum().clamp(min=1)
        else:
            value = F.nll_loss(lq[:, :-1].flatten(0, 1), batch.ids[:, 2 + k:].flatten())
        total = total + a.decay ** k * a.soft * value
        if a.regress:
            total = total + a.decay ** k * a.regress * F.smooth_l1_loss(net.feature(states), to)
    return total


@torch.no_grad()
def figures(net, target, held, batch=8):
    """What the head's drafts are worth on the texts held out, by depth."""
    net.eval()
    sums, greedy = [dict(loss=0.0, top1=0.0, overlap=0.0, n=0) for _ in range(net.depth)], [0.0, 0]
    kept = net.kept()
    for i in range(0, len(held.at), batch):
        b = held.batch(range(i, min(i + batch, len(held.at))), target)
        logits, first = target.logits(b.states["final"]), max(0, PREFIX - 2)  # row i drafts token i+2
        lp, counts = teach(net, target, b)
        p, likeliest, run = logits.softmax(-1), logits.argmax(-1), None
        own = ((likeliest[:, PREFIX - 1:-1] == b.ids[:, PREFIX:]).float().mean(-1) > 0.98).float()  # texts that are the target's likeliest
        for k, states in enumerate(net(b, net.depth)):
            lq = net.head(states).log_softmax(-1)
            q = torch.zeros_like(p[:, 1 + k:])
            if kept is None:
                q = lq.exp()
            else:
                q[..., kept] = lq.exp()
            same, s = (q.argmax(-1) == likeliest[:, 1 + k:]).float()[:, first:], sums[k]
            on = counts[:, 1 + k:][:, first:]
            s["loss"] -= ((lp[:, 1 + k:].exp() * lq).sum(-1)[:, first:] * on).sum().item()
            s["n"] += on.sum().item()
            s["top1"] += same.sum().item()
            s["overlap"] += torch.minimum(q, p[:, 1 + k:])[:, first:].sum().item()
            s["all"] = s.get("all", 0) + same.numel()
            rows = b.length - net.depth - first  # of each depth
            run = same[:, :rows] if run is None else run * same[:, :rows]
            greedy[0] += (run * own[:, None]).sum().item()
        greedy[1] += own.sum().item() * rows
    net.train()
    out = dict(loss=[round(s["loss"] / max(1, s["n"]), 4) for s in sums])
    out.update({n: [round(s[n] / max(1, s["all"]), 4) for s in sums] for n in ("top1", "overlap")})
    out["tokens_a_round"] = round(1 + greedy[0] / greedy[1], 3) if greedy[1] else None
    return out


def build(a, target, states):
    """The head that the flags name, with its first values."""
    c = dict(target.c, eps=target.c["eps"])
    if a.kind == "medusa":
        return headnets.Medusa(c, target, a.depth)
    if a.kind == "hydra":
        return headnets.Hydra(c, target, a.depth)
    if a.kind in ("eagle", "fspad"):
        net = (headnets.Eagle if a.kind == "eagle" else net_fspad.Fspad)(c, target, a.depth, a.ffn or c["ffn"])
        net.noise = a.noise
        return net
    if a.kind == "eagle3":
        return headnets.Eagle3(c, target, a.depth, a.ffn or c["ffn"], a.taps, frequent(states, a.tokens, c["vocab"]))
    if a.kind == "peagle":
        return net_peagle.PEagle(c, target, a.depth, a.ffn or c["ffn"], a.taps, a.layers, a.ahead, c["vocab"] - 1, a.normed)
    if a.kind == "chimera":
        return net_chimera.Chimera(c, target, a.depth, a.ffn or c["ffn"])
    if a.kind == "falcon":
        return net_falcon.Falcon(c, target, a.depth, a.ffn or c["ffn"], a.block, a.pairs or a.block, a.noise, a.steps or 0)
    if a.kind == "m2r2":
        return net_m2r2.M2R2(c, target, a.depth, a.exit, a.rank)
    if a.kind == "ppd":
        return net_ppd.Prompt(c, target, a.depth, a.places)
    if a.kind == "transfer":
        return net_transfer.Transfer(c, target, a.depth, a.begin, a.places)
    if a.kind == "specblock":
        return net_specblock.SpecBlock(c, target, a.depth, a.ffn or c["ffn"], a.taps, a.layers, a.ahead)
    if a.kind in BLOCKS:
        return net_dflash.build(a, c, target, states)
    return headnets.Kangaroo(c, target, a.depth, a.exit)


def frequent(states, n, vocab):
    """The n most frequent tokens of texts, in rising order; of tokens as frequent as each other the first; None: all."""
    if not n:
        return None
    counts = torch.bincount(torch.from_numpy(states.tensors["ids"].astype("i8")), minlength=vocab)
    order = sorted(range(vocab), key=lambda t: (-counts[t].item(), t))
    return torch.tensor(sorted(order[:n]))


def fit(net, target, states, a, show=True):
    """Trains a head by the flags' budget, and returns the steps and minutes that were spent."""
    gen, wide = torch.Generator().manual_seed(a.seed), [p for p in net.parameters() if p.dim() > 1]
    opt = torch.optim.AdamW([dict(params=wide, weight_decay=a.weight_decay), dict(params=[p for p in net.parameters() if p.dim() < 2], weight_decay=0.0)],
                            lr=a.lr, betas=(0.9, 0.95))
    step, start = 0, time.time()
    done = lambda: step / a.steps if a.steps else (time.time() - start) / 60 / a.minutes
    rise = min(50, a.steps / 10) if a.steps else 50
    while done() < 1:
        for g in opt.param_groups:
            g["lr"] = a.lr * min(1, (step + 1) / rise) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done())))
        with torch.no_grad():
            batch = states.batch(torch.randint(len(states.at), (a.batch,), generator=gen).tolist(), target)
        value = loss(net, target, batch, a)
        opt.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        step += 1
        if show and step % 50 == 0:
            print(f"{step} loss {value.item():.3f} {(time.time() - start) / 60:.1f} minutes", flush=True)
    return step, (time.time() - start) / 60


def publish(net, a, target, states, known):
    """Writes the head as its authors do."""
    os.makedirs(a.out, exist_ok=True)
    meta = dict(method=a.kind, target=a.name, target_digest=states.meta.get("sample_digest", ""), **known)
    weights, settings = net.published
    tensors.write(os.path.join(a.out, weights), {n: headnets.stored(t) for n, t in net.tensors().items()},
                  {k: v if isinstance(v, str) else json.dumps(v) for k, v in meta.items()})
    config = dict(net.settings(), hidden_size=target.c["dim"], vocab_size=target.c["vocab"], base_model_name_or_path=a.name, torch_dtype="float16")
    with open(os.path.join(a.out, settings), "w") as f:
        json.dump(config, f, indent=1)


def surplus(a, target, states, held):
    """The nats of the next but one token by the token before it, alone and with the state before that."""
    out = {}
    for name, blind in (("bigram", True), ("state", False)):
        torch.manual_seed(a.seed)
        net = headnets.Hydra(target.c, target, 1, blind=blind, reads=a.reads)
        fit(net, target, states, a, show=False)
        out[name] = figures(net, target, held)["loss"][0]
    out["floor"] = round(entropy(target, held), 4)
    out["surplus"] = round(out["bigram"] - out["state"], 4)
    return out


@torch.no_grad()
def entropy(target, held):
    """The target's own entropy where a head drafts first, which no loss is below."""
    total, n = 0.0, 0
    for i in range(len(held.at)):
        lp = target.logits(held.batch([i], target).states["final"])[:, 1:][:, max(0, PREFIX - 2):].log_softmax(-1)
        total, n = total - (lp.exp() * lp).sum().item(), n + lp.shape[1]
    return total / n


def layers(text):
    """A type of flag: whole numbers with commas between them, none below the one before."""
    v = [int(n) for n in text.split(",")]
    if v != sorted(v) or v[0] < 0:
        raise argparse.ArgumentTypeError(f"{text}: numbers, none below the one before")
    return v


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=[*KINDS, "surplus"])
    for name in ("target", "states", "held"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--out", help="folder of the head")
    p.add_argument("--name", help="the target's name in the head's files; without it, that of its file")
    p.add_argument("--writer", help="the model that wrote the texts, where it is not the target")
    budget = p.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=train.positive)
    budget.add_argument("--steps", type=train.count)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=train.count)
    p.add_argument("--batch", type=train.count, default=8, help="texts of a step")
    p.add_argument("--length", type=train.count, default=128, help="tokens of a text")
    p.add_argument("--depth", type=train.count, default=4, help="tokens that are drafted: heads of medusa, hydra and chimera, steps that are measured of the others")
    p.add_argument("--ahead", type=train.count, help="depths, or of specblock blocks, that are trained, where they have the same weights")
    for name in ("decay", "lr", "soft"):
        p.add_argument("--" + name, type=train.positive)
    p.add_argument("--hard", type=train.share, help="share of the cross-entropy that is to the target's likeliest token")
    p.add_argument("--regress", type=float, help="weight of SmoothL1 between the head's states and the target's")
    p.add_argument("--weight-decay", type=float, default=0.0)
    p.add_argument("--noise", type=train.share, default=0.2, help="eagle, fspad, falcon: width of the noise on states, as a share of their size")
    p.add_argument("--labels", choices=("soft", "tokens"), default="soft")
    p.add_argument("--ffn", type=train.count, help="eagle, eagle3, fspad, peagle, chimera, falcon, dflash, dspark, specblock: width of the feed-forward part; without it, the target's")
    p.add_argument("--taps", type=train.numbers, default=[1, 2, 3], help="eagle3, peagle, dflash, dspark, specblock: the streams that it reads, each behind so many layers")
    p.add_argument("--rank", type=train.count, default=16, help="dspark: columns of the matrices by which a token changes the logits behind it; m2r2: of the matrices that are added")
    p.add_argument("--tokens", type=train.count, help="eagle3: drafts so many tokens alone, the most frequent, by an output matrix of its own")
    p.add_argument("--layers", type=train.count, default=2, help="peagle, dflash, dspark, specblock: layers")
    p.add_argument("--normed", action="store_true", help="peagle: its first layer adds to its normed input")
    p.add_argument("--exit", type=train.count, default=1, help="kangaroo, m2r2: layers of the target that draft")
    p.add_argument("--block", type=train.count, default=2, help="falcon: tokens of a block")
    p.add_argument("--pairs", type=train.count, help="falcon: pairs that the LSTM reads, at most a block's; without it, as many")
    p.add_argument("--places", type=train.count, help="ppd, transfer: train rows behind so many tokens of a text, drawn anew in each step; without it, behind all")
    p.add_argument("--begin", type=layers, help="transfer: the layers at which rows begin, none below the one before; there are --depth; without it, the second for all")
    p.add_argument("--reads", default="final", help="surplus: the state that is measured, final or layer.K")
    return p


def main(args=None):
    p = parser()
    a = p.parse_args(args)
    for name, v in KINDS.get(a.kind, KINDS["hydra"]).items():
        if getattr(a, name) is None:
            setattr(a, name, v)
    if a.kind in ALL:
        a.ahead = a.depth
    if a.kind == "surplus":
        a.ahead = 1
    elif not a.out:
        p.error("--out names the folder of the head")
    taps = a.kind in ("eagle3", "peagle", "specblock")
    if taps and len(a.taps) != 3:
        p.error(f"--taps are {a.taps}; {a.kind} reads three streams")
    if len(set(a.taps)) != len(a.taps):
        p.error(f"--taps are {a.taps}; each stream is read once")
    if (a.kind in ("peagle", "specblock") or a.places) and a.labels != "soft":
        p.error("--labels are tokens; peagle, specblock and --places, which leave rows out, learn distributions")
    if a.kind == "falcon" and (a.pairs or 1) > a.block:
        p.error(f"--pairs is {a.pairs}; the LSTM of a block of {a.block} reads 1 to {a.block}")
    if a.threads:
        torch.set_num_threads(a.threads)
    a.name = a.name or os.path.basename(a.target).split(".")[0]
    target, _ = model.load(a.target)
    target.eval().requires_grad_(False)
    a.begin = a.begin or [1] * a.depth
    if a.kind == "transfer" and (len(a.begin) != a.depth or a.begin[-1] >= target.c["layers"]):
        p.error(f"--begin are {a.begin}; there are --depth {a.depth}, each below {target.c['layers']}, the target's layers")
    layer = max(a.taps) if taps or a.kind in BLOCKS else a.exit if a.kind in ("kangaroo", "m2r2") else 0
    if layer > target.c["layers"]:
        p.error(f"a stream behind {layer} layers; the target has {target.c['layers']}")
    streams = tuple(f"layer.{k}" for k in a.taps)
    reads = {"eagle3": streams, "peagle": streams, "dflash": streams, "dspark": streams, "specblock": streams, "kangaroo": (f"layer.{a.exit}",), "surplus": (a.reads,)}.get(a.kind, ())
    states, held = (States(path, a.length, reads, target) for path in (a.states, a.held))
    if a.kind == "surplus":
        out = surplus(a, target, states, held)
        print(json.dumps(out), flush=True)
        return out
    torch.manual_seed(a.seed)
    net = build(a, target, states)
    before = figures(net, target, held)
    print(sum(x.numel() for x in net.parameters()), "parameters; before:", json.dumps(before), flush=True)
    steps, minutes = fit(net, target, states, a)
    after = figures(net, target, held)
    known = dict(data=f"{len(states.at)} texts of {a.length} tokens that {a.writer or a.name} wrote, {len(held.at)} of {a.name} held out", seed=a.seed, steps=steps,
                 minutes=round(minutes, 1), batch=a.batch, labels=a.labels, **{n: getattr(a, n) for n in KINDS[a.kind]},
                 parameters=sum(x.numel() for x in net.parameters()), figures=after, figures_before=before)
    publish(net, a, target, states, known)
    print(json.dumps(known), flush=True)
    return known


if __name__ == "__main__":
    main()
