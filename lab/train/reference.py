"""The losses of losses.py and their gradients in plain Python: slow, and easy to read.

Every function takes the logits of the draft and of the target, lists [positions][vocabulary], and returns the value of the loss and
its gradient with respect to the draft's logits, a list [positions][vocabulary]. p is the target's distribution, q the draft's.

Where f is a loss of q alone, its gradient with respect to logit i is q_i (f_i - sum_j q_j f_j), with f_i = df/dq_i: the softmax's
derivative. The formulas below are this, simplified.
"""
import math

EPS = 1e-6  # that of losses.py


def softmax(z):
    top = max(z)
    e = [math.exp(x - top) for x in z]
    return [x / sum(e) for x in e]


def kl_at(z, target):
    """KL(p || q) at one position."""
    q, p = softmax(z), softmax(target)
    return sum(b * math.log(b / a) for a, b in zip(q, p)), [a - b for a, b in zip(q, p)]


def reverse_at(z, target):
    """KL(q || p) at one position."""
    q, p = softmax(z), softmax(target)
    value = sum(a * math.log(a / b) for a, b in zip(q, p))
    return value, [a * (math.log(a / b) - value) for a, b in zip(q, p)]


def tvd_at(z, target):
    """sum [p - q]+ at one position. Its gradient is that of the policy whose reward r is 1 where p > q: q_i (E_q[r] - r_i)."""
    q, p = softmax(z), softmax(target)
    r = [float(b > a) for a, b in zip(q, p)]
    mean = sum(a * x for a, x in zip(q, r))
    return sum(max(b - a, 0.0) for a, b in zip(q, p)), [a * (mean - x) for a, x in zip(q, r)]


def jsd_at(z, target, beta):
    """beta KL(p || m) + (1-beta) KL(q || m) at one position, with m = beta p + (1-beta) q."""
    q, p = softmax(z), softmax(target)
    m = [beta * b + (1 - beta) * a for a, b in zip(q, p)]
    from_p = sum(b * math.log(b / c) for b, c in zip(p, m))
    from_q = sum(a * math.log(a / c) for a, c in zip(q, m))
    return beta * from_p + (1 - beta) * from_q, [(1 - beta) * a * (math.log(a / c) - from_q) for a, c in zip(q, m)]


def mean(parts):
    """The mean of losses of single positions, and its gradient."""
    n = len(parts)
    return sum(value for value, _ in parts) / n, [[x / n for x in gradient] for _, gradient in parts]


def kl(draft, target):
    return mean([kl_at(z, t) for z, t in zip(draft, target)])


def tvd(draft, target):
    return mean([tvd_at(z, t) for z, t in zip(draft, target)])


def kl_tvd(draft, target):
    (a, ga), (b, gb) = kl(draft, target), tvd(draft, target)
    return a + b, [[x + y for x, y in zip(u, v)] for u, v in zip(ga, gb)]


def advantages(draft, target):
    """tvd's rewards, normalised by their mean and deviation over all positions and tokens."""
    rewards = [[float(b > a) for a, b in zip(softmax(z), softmax(t))] for z, t in zip(draft, target)]
    flat = [x for row in rewards for x in row]
    centre = sum(flat) / len(flat)
    deviation = math.sqrt(sum((x - centre) ** 2 for x in flat) / len(flat))
    return [[(x - centre) / (deviation + EPS) for x in row] for row in rewards]


def weights(draft, target):
    """q(x) A(x), which tvd++ takes as constants."""
    return [[a * x for a, x in zip(softmax(z), row)] for z, row in zip(draft, advantages(draft, target))]


def surrogate(draft, w):
    """-sum_x w(x) log q(x), the mean over positions, for constant weights, and its gradient q_i sum_x w(x) - w_i."""
    parts = []
    for z, row in zip(draft, w):
        q = softmax(z)
        value = -sum(x * math.log(a) for a, x in zip(q, row))
        parts.append((value, [a * sum(row) - x for a, x in zip(q, row)]))
    return mean(parts)


def tvd_plus(draft, target):
    return surrogate(draft, weights(draft, target))


def deltas(draft, target, reference):
    """How much further the draft is from the target than the reference is, at each position."""
    return [kl_at(z, t)[0] - kl_at(r, t)[0] for z, t, r in zip(draft, target, reference)]


def selected(delta, keep):
    """The positions that adaspec keeps: those of the round(keep n) largest, one at least, and ties with the last of them."""
    count = min(len(delta), max(1, round(keep * len(delta))))
    least = sorted(delta, reverse=True)[count - 1]
    return [i for i, d in enumerate(delta) if d >= least]


def adaspec(draft, target, reference, keep):
    chosen = selected(deltas(draft, target, reference), keep)
    value, some = kl([draft[i] for i in chosen], [target[i] for i in chosen])
    gradient = [[0.0] * len(z) for z in draft]
    for i, row in zip(chosen, some):
        gradient[i] = row
    return value, gradient


def gkd(draft, target, divergence, beta=0.5):
    at = {"kl": kl_at, "reverse": reverse_at, "tvd": tvd_at, "jsd": lambda z, t: jsd_at(z, t, beta)}[divergence]
    return mean([at(z, t) for z, t in zip(draft, target)])
