"""Tests of what is made of measurements: intervals, fits, plans, tables and the plot. They need Python alone."""
import glob
import json
import math
import os
import random
import unittest
import xml.etree.ElementTree

import losses
import recipes
import scaling
import stats

HERE = os.path.dirname(os.path.abspath(__file__))


class TestInterval(unittest.TestCase):
    def test_by_hand(self):
        mean, half = stats.interval([1.0, 2.0, 3.0])
        self.assertAlmostEqual(mean, 2)
        self.assertAlmostEqual(half, 4.303 / math.sqrt(3))
        self.assertEqual(stats.interval([0.5]), (0.5, None))
        for n in (0, 11):
            with self.assertRaisesRegex(ValueError, f"of {n} values"):
                stats.interval([1.0] * n)

    def test_covers(self):
        """19 intervals of 20 hold the mean that the values were drawn with."""
        draw = random.Random(1)
        for n in (2, 3, 5, 10):
            held, runs = 0, 4000
            for _ in range(runs):
                mean, half = stats.interval([draw.gauss(7, 3) for _ in range(n)])
                held += abs(mean - 7) <= half
            self.assertAlmostEqual(held / runs, 0.95, delta=0.015)


class TestFit(unittest.TestCase):
    def grid(self, noise=0.0):
        draw = random.Random(2)
        return [dict(name=f"{s}-{t}", parameters=s, tokens=t,
                     temperature_1=0.03 * math.log2(s) + 0.05 * math.log2(t) - 1.1 + draw.gauss(0, noise) if noise else
                     0.03 * math.log2(s) + 0.05 * math.log2(t) - 1.1, greedy=0.4)
                for s in (68_000, 140_000, 360_000, 900_000) for t in (512_000, 1_024_000, 2_048_000)]

    def test_exact(self):
        found = scaling.fits(self.grid(), "temperature_1")
        for want, got in zip((0.03, 0.05, -1.1), found["both"]["fit"]):
            self.assertAlmostEqual(want, got)
        for key in ("rmse", "left_out", "worst"):
            self.assertAlmostEqual(found["both"][key], 0)
        self.assertAlmostEqual(found["both"]["r2"], 1)
        self.assertEqual([f["tokens"] for f in found["size"]], [512_000, 1_024_000, 2_048_000])
        for f in found["size"]:
            self.assertAlmostEqual(f["fit"][0], 0.03)
        self.assertEqual(len(found["tokens"]), 4)
        for f in found["tokens"]:
            self.assertAlmostEqual(f["fit"][0], 0.05)

    def test_beyond(self):
        for miss in scaling.beyond(self.grid(), "temperature_1"):
            self.assertAlmostEqual(miss, 0)
        runs = self.grid()
        for r in runs:
            r["temperature_1"] += 0.02 * (r["tokens"] == 2_048_000)
        for miss in scaling.beyond(runs, "temperature_1"):
            self.assertAlmostEqual(miss, 0.02)
        self.assertIsNone(scaling.beyond([r for r in runs if r["tokens"] != 512_000], "temperature_1"))

    def test_noise(self):
        both = scaling.fits(self.grid(0.01), "temperature_1")["both"]
        self.assertAlmostEqual(both["fit"][0], 0.03, delta=0.01)
        self.assertLess(both["rmse"], both["left_out"])
        self.assertLessEqual(both["rmse"], both["worst"])
        self.assertTrue(0.8 < both["r2"] < 1)

    def test_by_hand(self):
        """y = 1, 3, 2 over x = 0, 1, 2: the line 1.5 + 0.5 x misses by -0.5, 1, -0.5; without a point, by -3, 1.5, -3."""
        f = stats.fitted([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
        self.assertAlmostEqual(f["fit"][0], 0.5)
        self.assertAlmostEqual(f["fit"][1], 1.5)
        self.assertAlmostEqual(f["rmse"], math.sqrt(0.5))
        self.assertAlmostEqual(f["worst"], 1)
        self.assertAlmostEqual(f["left_out"], math.sqrt((9 + 2.25 + 9) / 3))
        self.assertAlmostEqual(f["r2"], 0.25)

    def test_undetermined(self):
        with self.assertRaisesRegex(ValueError, "do not determine"):
            stats.least_squares([[1.0], [1.0]], [0.0, 1.0])
        self.assertIsNone(stats.fitted([[0.0], [1.0]], [1.0, 2.0])["left_out"])

    def test_plot(self):
        runs = self.grid(0.01)
        root = xml.etree.ElementTree.fromstring(scaling.plot(runs, "temperature_1"))
        circles = [e for e in root.iter() if e.tag.endswith("circle")]
        self.assertEqual(len(circles), len(runs))
        for c in circles:
            self.assertTrue(60 <= float(c.get("cx")) <= 500 and 30 <= float(c.get("cy")) <= 350)

    def test_plan(self):
        runs = list(scaling.plan([1.0, 0.5, 2.0], 4, 1))
        self.assertEqual(len({name for name, _ in runs}), 12)
        self.assertEqual([s["steps"] for _, s in runs[::4]], [488, 977, 1953])


class TestRecipes(unittest.TestCase):
    def test_plan(self):
        runs = list(recipes.plan(3, 500, 800, 3e-3))
        self.assertEqual(len(runs), 3 * (1 + len(recipes.RECIPES)))
        made = set()
        for name, settings in runs:  # a run is behind those that it needs, of its own seed
            for key in ("from", "reference"):
                if key in settings:
                    self.assertIn(settings[key], made)
                    self.assertTrue(settings[key].endswith(f"-{settings['seed']}"))
            made.add(name)
        self.assertEqual({s["loss"] for _, s in runs if "loss" in s}, set(losses.NAMES))
        names = [name for name, _ in recipes.plan(1, 5, 5, 1e-3, ["adaspec"])]
        self.assertEqual(names, ["start-1", "kl-1", "adaspec-1"])

    def test_table(self):
        runs = [dict(name=f"{n}-{s}", greedy=0.4, temperature_1=v + 0.01 * s, nats=5.0) for n, v in (("kl", 0.3), ("tvd++", 0.35)) for s in (1, 2, 3)]
        rows = recipes.table(runs).split("\n")[2:]
        self.assertEqual(len(rows), 2)
        self.assertIn("| 32.0 ± 2.5 |", rows[0])
        self.assertIn("| 37.0 ± 2.5 | +0.0 ± 0.0 | +5.0 ± 0.0 |", rows[1])


class TestKept(unittest.TestCase):
    """What is kept in results/ is what README.md and the plot show."""

    def runs(self, name):
        with open(os.path.join(HERE, "results", name)) as f:
            return json.load(f)["runs"]

    def shown(self, text):
        with open(os.path.join(HERE, "README.md")) as f:
            readme = f.read()
        for line in text.split("\n"):
            self.assertIn(line, readme)

    def test_recipes(self):
        runs = self.runs("recipes.json")
        self.assertEqual({r["name"] for r in runs}, {name for name, _ in recipes.plan(3, 1, 1, 1.0)})
        self.shown(recipes.table(runs))

    def test_scaling(self):
        runs = self.runs("scaling.json")
        self.assertEqual(len(runs), 12)
        self.assertTrue({r["parameters"] for r in runs} and len({(r["parameters"], r["tokens"]) for r in runs}) == 12)
        lines = scaling.report(runs, "temperature_1").split("\n")
        # README.md has the fit of both axes; `scaling.py --fit` writes those of one.
        self.shown("\n".join(line for line in lines if not line.startswith(("| size, at", "| tokens, at"))))
        both = next(line for line in scaling.report(runs, "greedy").split("\n") if line.startswith("| both")).split(" | ")
        self.shown("%s points a doubling of the size and %s of the tokens, with R² of %s" % (both[1], both[2], both[6].rstrip(" |")))
        with open(os.path.join(HERE, "results", "scaling.svg")) as f:
            self.assertEqual(f.read(), scaling.plot(runs, "temperature_1"))

    def test_files(self):
        names = sorted(os.path.basename(p) for p in glob.glob(os.path.join(HERE, "results", "*")))
        self.assertEqual(names, ["recipes.json", "scaling.json", "scaling.svg"])


if __name__ == "__main__":
    unittest.main()
