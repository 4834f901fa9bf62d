"""Losses that align a draft with its target, by name; train.py takes them by --loss.

Every loss takes the logits of the draft and of the target, float tensors [positions, vocabulary] of finite values, and returns
a scalar, the mean over positions. Only the draft's logits get a gradient. reference.py has the same losses and their
gradients in plain Python, and test_losses.py holds both equal. p is the target's distribution, q the draft's.

kl+tvd    the sum of the two; the default
kl        KL(p || q), the forward divergence of distillation (DistillSpec, 2023)
tvd       total variation, sum [p - q]+: the probability that a lossless verifier rejects a draft token
tvd++     the policy gradient of tvd with normalised advantages (Direct Alignment of Draft Model, 2024)
adaspec   kl over selected positions, where the draft is worst compared with a reference (AdaSPEC, 2025)
gkd       a divergence by name on texts of the draft and of the target, mixed (On-Policy Distillation, 2023)

This file imports no PyTorch: it uses methods of tensors alone, so that names and settings are checked without it.
"""
DEFAULT = "kl+tvd"
NAMES = (DEFAULT, "kl", "tvd", "tvd++", "adaspec", "gkd")
DIVERGENCES = ("kl", "reverse", "jsd", "tvd")
EPS = 1e-6  # added to a standard deviation, which is 0 where all rewards are the same

# The settings of one loss alone: its name, what is there without the flag, what is allowed, and the flag's help.
SETTINGS = {
    "reference": ("adaspec", None, lambda v: True, "", "adaspec: reference model, distilled with --loss kl from the draft's start"),
    "keep": ("adaspec", 0.4, lambda v: 0 < v <= 1, "above 0, at most 1", "adaspec: share of the positions that are kept (0.4)"),
    "on_policy": ("gkd", 0.5, lambda v: 0 <= v <= 1, "0 to 1", "gkd: share of the batches that the draft writes itself (0.5)"),
    "divergence": ("gkd", "kl", lambda v: v in DIVERGENCES, ", ".join(DIVERGENCES), f"gkd: {', '.join(DIVERGENCES)} (kl)"),
    "beta": ("gkd", 0.5, lambda v: 0 < v < 1, "above 0, below 1", "gkd with jsd: weight of the target in the mixture (0.5)"),
}


def flags(parser):
    """Adds --loss and the settings of losses to a parser of arguments."""
    parser.add_argument("--loss", help=f"what aligns the draft: {', '.join(NAMES)} ({DEFAULT})")
    for name, (_, default, _, _, text) in SETTINGS.items():
        parser.add_argument("--" + name.replace("_", "-"), type=float if isinstance(default, float) else str, help=text)


def settle(a):
    """Checks the flags of losses against each other and fills in defaults. ValueError says what is refused."""
    if a.loss is not None and a.loss not in NAMES:
        raise ValueError(f"--loss is {a.loss}; it must be one of {', '.join(NAMES)}")
    if a.loss is not None and not a.target:
        raise ValueError(f"--loss {a.loss} aligns a draft with a target; name it with --target")
    a.loss = a.loss or DEFAULT
    for name, (loss, default, allowed, bounds, _) in SETTINGS.items():
        flag, value = "--" + name.replace("_", "-"), getattr(a, name)
        if value is None:
            setattr(a, name, default)
        elif a.loss != loss:
            raise ValueError(f"{flag} is a setting of --loss {loss}; the loss is {a.loss}")
        elif not allowed(value):
            raise ValueError(f"{flag} is {value}; it must be {bounds}")
        elif name == "beta" and a.divergence != "jsd":
            raise ValueError(f"--beta is a setting of --divergence jsd; the divergence is {a.divergence}")
    if a.loss == "adaspec" and a.reference is None:
        raise ValueError("--loss adaspec compares with a reference model; name it with --reference")


def of(a, draft, target, reference=None):
    """The loss that settled flags name. reference: the logits of adaspec's reference model, else None."""
    if a.loss == "adaspec":
        return adaspec(draft, target, reference, a.keep)
    if a.loss == "gkd":
        return gkd(draft, target, a.divergence, a.beta)
    return {"kl+tvd": kl_tvd, "kl": kl, "tvd": tvd, "tvd++": tvd_plus}[a.loss](draft, target)


def both(draft, target):
    """The logarithms of q and of p."""
    return draft.log_softmax(-1), target.detach().log_softmax(-1)


def divergences(name, draft, target, beta=0.5):
    """A divergence by name at each position [positions]. jsd: beta KL(p || m) + (1-beta) KL(q || m), m = beta p + (1-beta) q."""
    lq, lp = both(draft, target)
    if name == "kl":
        return (lp.exp() * (lp - lq)).sum(-1)
    if name == "reverse":
        return (lq.exp() * (lq - lp)).sum(-1)
    if name == "tvd":
        return (lp.exp() - lq.exp()).relu().sum(-1)
    if name == "jsd":
        p, q = lp.exp(), lq.exp()
        lm = (p * beta + q * (1 - beta)).clamp(min=1e-30).log()  # not the logarithm of an underflow
        return (p * (lp - lm) * beta + q * (lq - lm) * (1 - beta)).sum(-1)
    raise ValueError(f"losses: divergence {name}: it must be one of {', '.join(DIVERGENCES)}")


def kl(draft, target):
    return divergences("kl", draft, target).mean()


def tvd(draft, target):
    return divergences("tvd", draft, target).mean()


def kl_tvd(draft, target):
    lq, lp = both(draft, target)
    p = lp.exp()
    return (p * (lp - lq) + (p - lq.exp()).relu()).sum(-1).mean()


def advantages(lq, lp):
    """Rewards, 1 where p > q and else 0, normalised by their mean and deviation over all positions and tokens."""
    r = (lp > lq).to(lq.dtype)
    r = r - r.mean()
    return r / ((r * r).mean().sqrt() + EPS)


def tvd_plus(draft, target):
    """A surrogate whose gradient is the policy gradient, summed over all tokens; its value is no distance."""
    lq, lp = both(draft, target)
    weights = (lq.exp() * advantages(lq, lp)).detach()
    return -(weights * lq).sum(-1).mean()


def kept(n, keep):
    """The number of positions of n that adaspec keeps, at least one."""
    return min(n, max(1, round(keep * n)))


def adaspec(draft, target, reference, keep):
    """kl over the positions whose excess over the reference's kl is among the largest; ties with the last are kept too."""
    losses = divergences("kl", draft, target)
    delta = (losses - divergences("kl", reference.detach(), target)).detach()
    n = delta.shape[0]
    least = delta.sort()[0][n - kept(n, keep)]
    mask = (delta >= least).to(losses.dtype)
    return (losses * mask).sum() / mask.sum()


def gkd(draft, target, divergence, beta=0.5):
    """A divergence by name. The mixture of texts is the caller's part: train.py draws it."""
    return divergences(divergence, draft, target, beta).mean()
