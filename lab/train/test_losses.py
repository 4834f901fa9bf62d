"""Tests of the losses: reference.py by finite differences, and losses.py by reference.py. `python3 -m unittest` here runs them."""
import argparse
import math
import random
import unittest

import forward
import losses
import reference as ref

try:
    import torch
except ImportError:
    torch = None


def logits(seed, n=1, v=3):
    draw = random.Random(seed)
    return [[draw.gauss(0, 1.5) for _ in range(v)] for _ in range(n)]


def slopes(f, draft, h=1e-6):
    """The gradient of f(draft) by central differences."""
    out = [[0.0] * len(z) for z in draft]
    for i, z in enumerate(draft):
        for j, x in enumerate(z):
            ends = []
            for step in (h, -h):
                z[j] = x + step
                ends.append(f(draft))
            z[j] = x
            out[i][j] = (ends[0] - ends[1]) / (2 * h)
    return out


OTHER = logits(99, 8)  # the logits of a reference model

# Every loss by name, of the modules reference and losses: f(module, draft, target, tensor of other logits).
CASES = {
    "kl+tvd": lambda m, d, t, r: m.kl_tvd(d, t),
    "kl": lambda m, d, t, r: m.kl(d, t),
    "tvd": lambda m, d, t, r: m.tvd(d, t),
    "tvd++": lambda m, d, t, r: m.tvd_plus(d, t),
    "adaspec": lambda m, d, t, r: m.adaspec(d, t, r, 0.4),
    "adaspec all": lambda m, d, t, r: m.adaspec(d, t, r, 1.0),
    "gkd kl": lambda m, d, t, r: m.gkd(d, t, "kl"),
    "gkd reverse": lambda m, d, t, r: m.gkd(d, t, "reverse"),
    "gkd jsd 0.5": lambda m, d, t, r: m.gkd(d, t, "jsd", 0.5),
    "gkd jsd 0.1": lambda m, d, t, r: m.gkd(d, t, "jsd", 0.1),
    "gkd tvd": lambda m, d, t, r: m.gkd(d, t, "tvd"),
}


class Case(unittest.TestCase):
    def same(self, want, got, places=7):
        self.assertEqual([len(row) for row in want], [len(row) for row in got])
        for a, b in zip(want, got):
            for x, y in zip(a, b):
                self.assertAlmostEqual(x, y, places=places)


class TestReference(Case):
    def test_every_loss_has_a_case(self):
        self.assertEqual(set(losses.NAMES), {name.split()[0] for name in CASES})
        self.assertEqual(set(losses.DIVERGENCES), {name.split()[1] for name in CASES if name.startswith("gkd")})

    def test_finite_differences(self):
        for name, f in CASES.items():
            for seed in range(20):
                with self.subTest(name, seed=seed):
                    draft, target = logits(seed, 8), logits(seed + 100, 8)
                    value = lambda d: f(ref, d, target, OTHER)[0]
                    if name == "tvd++":  # its weights are constants
                        w = ref.weights(draft, target)
                        value = lambda d: ref.surrogate(d, w)[0]
                    self.same(slopes(value, draft), f(ref, draft, target, OTHER)[1])

    def test_zero_where_equal(self):
        target = logits(5, 8)
        for name, f in CASES.items():
            with self.subTest(name):
                value, gradient = f(ref, [list(z) for z in target], target, OTHER)
                self.assertAlmostEqual(value, 0)
                self.same([[0.0] * 3] * 8, gradient, 12)

    def test_values(self):
        draft, target = [[math.log(x) for x in (0.2, 0.5, 0.3)]], [[math.log(x) for x in (0.6, 0.3, 0.1)]]
        self.assertAlmostEqual(ref.tvd(draft, target)[0], 1 - 0.6)  # one less what is accepted: 0.2 + 0.3 + 0.1
        self.assertAlmostEqual(ref.kl(draft, target)[0], 0.6 * math.log(3) + 0.3 * math.log(0.6) - 0.1 * math.log(3))
        self.assertAlmostEqual(ref.gkd(draft, target, "reverse")[0], ref.kl(target, draft)[0])
        self.assertAlmostEqual(ref.gkd(draft, target, "jsd")[0], ref.gkd(target, draft, "jsd")[0])
        self.assertAlmostEqual(ref.gkd(draft, target, "jsd", 1e-7)[0] / 1e-7, ref.kl(draft, target)[0], places=5)

    def test_policy_gradient(self):
        """tvd's gradient is E_{x~q}[grad log q(x) (-r(x))], summed over all x, with r(x) = 1 where p(x) > q(x)."""
        for seed in range(50):
            draft, target = logits(seed), logits(seed + 100)
            q, p = ref.softmax(draft[0]), ref.softmax(target[0])
            expected = [0.0] * 3
            for x in range(3):
                log_q = slopes(lambda d: math.log(ref.softmax(d[0])[x]), draft)[0]
                expected = [e - q[x] * (p[x] > q[x]) * g for e, g in zip(expected, log_q)]
            self.same([expected], ref.tvd(draft, target)[1])


class TestAdvantage(Case):
    def test_normalised(self):
        a = [x for row in ref.advantages(logits(1, 8), logits(2, 8)) for x in row]
        self.assertAlmostEqual(sum(a) / len(a), 0)
        self.assertAlmostEqual(sum(x * x for x in a) / len(a), 1, places=4)
        self.assertEqual(len(set(a)), 2)

    def test_by_hand(self):
        """One token of three has p > q: mean 1/3, deviation sqrt(2)/3, advantages sqrt(2) and -1/sqrt(2)."""
        draft, target = [[math.log(x) for x in (0.2, 0.5, 0.3)]], [[math.log(x) for x in (0.6, 0.3, 0.1)]]
        self.same([[2 ** 0.5, -(0.5 ** 0.5), -(0.5 ** 0.5)]], ref.advantages(draft, target), 5)

    def test_gradient_is_that_of_tvd_over_the_deviation(self):
        """Summed over all tokens, what the mean takes off cancels."""
        draft, target = logits(1, 8), logits(2, 8)
        r = [float(b > a) for z, t in zip(draft, target) for a, b in zip(ref.softmax(z), ref.softmax(t))]
        m = sum(r) / len(r)
        deviation = math.sqrt(sum((x - m) ** 2 for x in r) / len(r)) + ref.EPS
        self.same([[x / deviation for x in row] for row in ref.tvd(draft, target)[1]], ref.tvd_plus(draft, target)[1], 10)


class TestSelection(Case):
    def test_all_kept_is_distillation(self):
        draft, target = logits(1, 8), logits(2, 8)
        self.assertEqual(ref.adaspec(draft, target, OTHER, 1.0), ref.kl(draft, target))

    def test_share_kept(self):
        delta = ref.deltas(logits(1, 100), logits(2, 100), logits(3, 100))
        for keep in (0.01, 0.1, 0.4, 0.5, 0.99, 1.0):
            chosen = ref.selected(delta, keep)
            self.assertEqual(len(chosen), round(keep * 100))
            left = [d for i, d in enumerate(delta) if i not in chosen]
            self.assertTrue(not left or min(delta[i] for i in chosen) > max(left))
        self.assertEqual(len(ref.selected(delta, 0.001)), 1)
        for n in range(1, 40):
            for keep in (0.01, 0.3, 0.4, 0.7, 1.0):
                self.assertEqual(losses.kept(n, keep), len(ref.selected(list(range(n)), keep)))

    def test_reference_is_the_draft(self):
        draft, target = logits(1, 8), logits(2, 8)
        same = [list(z) for z in draft]
        self.assertEqual(ref.deltas(draft, target, same), [0.0] * 8)
        self.assertEqual(ref.adaspec(draft, target, same, 0.4), ref.kl(draft, target))  # ties are kept


class TestLosses(Case):
    """The code that trains, by tensors in plain Python and, where PyTorch is there, by its own."""

    def plain(self, f, draft, target, other):
        n = len(draft) * len(draft[0])
        out = f(losses, forward.tensor(draft, n, 0), forward.tensor(target, n), forward.tensor(other, n)).data
        width = len(draft[0])
        return out.value, [out.slope[i:i + width] for i in range(0, n, width)]

    def pytorch(self, f, draft, target, other):
        x, y, z = (torch.tensor(rows, dtype=torch.float64, requires_grad=True) for rows in (draft, target, other))
        out = f(losses, x, y, z)
        out.backward()
        for constant in (y, z):
            self.assertIsNone(constant.grad)
        return out.item(), x.grad.tolist()

    def held(self, run):
        for name, f in CASES.items():
            for seed in range(5):
                draft, target = logits(seed, 8, 5), logits(seed + 100, 8, 5)
                other = logits(seed + 200, 8, 5)
                for which, t, r in (("apart", target, other), ("reference is draft", target, draft), ("target is draft", draft, other)):
                    with self.subTest(name, seed=seed, which=which):
                        want, got = f(ref, draft, t, r), run(f, draft, t, r)
                        self.assertAlmostEqual(want[0], got[0], places=10)
                        self.same(want[1], got[1], 10)

    def test_plain(self):
        self.held(self.plain)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_pytorch(self):
        self.held(self.pytorch)

    def test_unknown_divergence(self):
        x = forward.tensor(logits(1), 3)
        with self.assertRaisesRegex(ValueError, "divergence chi2"):
            losses.divergences("chi2", x, x)


class TestFlags(unittest.TestCase):
    def settle(self, *args):
        p = argparse.ArgumentParser()
        p.add_argument("--target")
        losses.flags(p)
        a = p.parse_args(args)
        losses.settle(a)
        return a

    def test_defaults(self):
        self.assertEqual(self.settle().loss, losses.DEFAULT)
        self.assertEqual(self.settle("--target", "t").loss, losses.DEFAULT)
        a = self.settle("--target", "t", "--loss", "adaspec", "--reference", "r")
        self.assertEqual((a.reference, a.keep), ("r", 0.4))
        a = self.settle("--target", "t", "--loss", "gkd")
        self.assertEqual((a.on_policy, a.divergence, a.beta), (0.5, "kl", 0.5))

    def test_chosen(self):
        """Every name reaches its loss."""
        d, t, r = logits(1, 8), logits(2, 8), logits(3, 8)
        tensors = [forward.tensor(x, 24) for x in (d, t, r)]
        for name in losses.NAMES:
            a = self.settle("--target", "t", "--loss", name, *(["--reference", "r"] if name == "adaspec" else []))
            case = CASES["gkd kl" if name == "gkd" else name]
            self.assertAlmostEqual(losses.of(a, *tensors).data.value, case(ref, d, t, r)[0])
        a = self.settle("--target", "t", "--loss", "gkd", "--divergence", "jsd", "--beta", "0.1")
        self.assertAlmostEqual(losses.of(a, *tensors).data.value, ref.gkd(d, t, "jsd", 0.1)[0])

    def test_refused(self):
        for args, text in {
            "--loss l2 --target t": "--loss is l2",
            "--loss kl": "name it with --target",
            "--loss adaspec --target t": "name it with --reference",
            "--loss adaspec --target t --reference r --keep 0": "--keep is 0.0",
            "--loss adaspec --target t --reference r --keep nan": "--keep is nan",
            "--loss kl --target t --keep 0.5": "--keep is a setting of --loss adaspec",
            "--reference r --target t": "--reference is a setting of --loss adaspec",
            "--loss gkd --target t --on-policy 1.5": "--on-policy is 1.5",
            "--loss gkd --target t --divergence chi2": "--divergence is chi2",
            "--loss gkd --target t --divergence jsd --beta 1": "--beta is 1.0",
            "--loss gkd --target t --beta 0.5": "--beta is a setting of --divergence jsd",
        }.items():
            with self.subTest(args), self.assertRaisesRegex(ValueError, text):
                self.settle(*args.split())


if __name__ == "__main__":
    unittest.main()
