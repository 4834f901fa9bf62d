"""Sweeps the size of a draft and the tokens that it learns from, and fits the log-linear formula of Scylla (2025) to what the target accepts.

usage: scaling.py --dir DIR [--budgets 0.5,1,2] [--seed 1] [--runs N] [--plot FILE.svg] [--target CKPT]
       scaling.py --fit RESULTS.json [--plot FILE.svg]

A run of each size and budget (in millions of tokens) is trained as gopher-draft is: half of the steps on the corpus, half aligned with the
target by kl+tvd. A run that was made is not made again, and an interrupted command goes on. The formula is

    accepted = a log2(parameters) + b log2(tokens) + c

so that a and b are what a doubling gains; fits of one axis alone stand beside it. The errors are the root mean square of what the
formula misses (rmse), the same of points that were left out one at a time and foretold by the others, the largest miss, and R^2. --fit
needs Python alone.
"""
import argparse
import json
import math

import stats

# Width, layers, heads (of keys and values), FFN, and the highest learning rate.
SIZES = {
    "w16": dict(dim=16, layers=1, heads=1, kv=1, ffn=48, lr=6e-3),
    "w32": dict(dim=32, layers=1, heads=2, kv=1, ffn=96, lr=4e-3),
    "w64": dict(dim=64, layers=2, heads=4, kv=2, ffn=192, lr=3e-3),
    "w128": dict(dim=128, layers=2, heads=4, kv=2, ffn=384, lr=2e-3),
}
CONTEXT = 256  # tokens of a text, the context of all
METRICS = {"temperature_1": "temperature 1", "greedy": "greedy"}


def plan(budgets, batch, seed):
    """(name, settings) of all runs, the cheapest first. budgets: millions of tokens."""
    for millions in sorted(budgets):
        steps = round(millions * 1e6 / (batch * CONTEXT))
        for size, settings in SIZES.items():
            yield f"{size}-{millions:g}M", dict(settings, steps=steps, seed=seed, loss="kl+tvd", aligned=0.5)


def fits(runs, metric):
    """The fits of a metric: of both axes, of the size at each number of tokens, and of the tokens at each size."""
    size, tokens = (lambda r: math.log2(r["parameters"])), (lambda r: math.log2(r["tokens"]))
    fit = lambda rs, *axes: stats.fitted([[x(r) for x in axes] for r in rs], [r[metric] for r in rs])
    groups = lambda key: [[r for r in runs if r[key] == v] for v in sorted({r[key] for r in runs})]
    return dict(both=fit(runs, size, tokens),
                size=[dict(fit(g, size), tokens=g[0]["tokens"]) for g in groups("tokens") if len(g) > 1],
                tokens=[dict(fit(g, tokens), parameters=g[0]["parameters"]) for g in groups("parameters") if len(g) > 1])


def beyond(runs, metric):
    """What a fit of both axes to the smaller budgets misses of the runs of the largest; None where there are too few budgets."""
    row = lambda r: [math.log2(r["parameters"]), math.log2(r["tokens"])]
    largest = max(r["tokens"] for r in runs)
    small = [r for r in runs if r["tokens"] < largest]
    if len({r["tokens"] for r in small}) < 2:
        return None
    fit = stats.least_squares([row(r) for r in small], [r[metric] for r in small])
    return [r[metric] - stats.at(fit, row(r)) for r in sorted(runs, key=lambda r: r["parameters"]) if r["tokens"] == largest]


def short(n):
    return f"{n / 1e6:.2f} M" if n >= 995_000 else f"{n / 1e3:.0f} k"


def points(x, signed=False):
    return f"{100 * x:{'+' if signed else ''}.1f}"


def report(runs, metric):
    """The measured table and the fits of a metric, in Markdown."""
    sizes, budgets = (sorted({r[k] for r in runs}) for k in ("parameters", "tokens"))
    value = {(r["parameters"], r["tokens"]): r[metric] for r in runs}
    out = [f"| accepted, {METRICS[metric]}, % | " + " | ".join(short(t) + " tokens" for t in budgets) + " |", "|---" * (len(budgets) + 1) + "|"]
    for s in sizes:
        out.append(f"| {short(s)} parameters | " + " | ".join(points(value[s, t]) if (s, t) in value else "" for t in budgets) + " |")
    found = fits(runs, metric)
    out += ["", "| fit | a doubling of the size, points | of the tokens | rmse | left out | worst | R² |", "|---|---|---|---|---|---|---|"]
    errors = lambda f: " | ".join("" if f[k] is None else points(f[k]) for k in ("rmse", "left_out", "worst")) + " | " + (
        "" if f["r2"] is None else f"{f['r2']:.3f}") + " |"
    both = found["both"]
    out.append(f"| both | {points(both['fit'][0], True)} | {points(both['fit'][1], True)} | {errors(both)}")
    out += [f"| size, at {short(f['tokens'])} tokens | {points(f['fit'][0], True)} | | {errors(f)}" for f in found["size"]]
    out += [f"| tokens, at {short(f['parameters'])} parameters | | {points(f['fit'][0], True)} | {errors(f)}" for f in found["tokens"]]
    misses = beyond(runs, metric)
    if misses:
        out += ["", f"The largest budget, foretold by the smaller ones: missed by {', '.join(points(m, True) for m in misses)} points, smallest size first."]
    return "\n".join(out)


COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#666666")


def plot(runs, metric):
    """An SVG: acceptance over parameters, a colour for each number of tokens, dots as measured and lines as the formula has them."""
    both, budgets = fits(runs, metric)["both"]["fit"], sorted({r["tokens"] for r in runs})
    sizes = sorted({r["parameters"] for r in runs})
    low, high = math.log2(sizes[0]) - 0.3, math.log2(sizes[-1]) + 0.3
    said = lambda s, t: stats.at(both, [math.log2(s), math.log2(t)])
    ys = [r[metric] for r in runs] + [said(s, t) for s in (sizes[0], sizes[-1]) for t in budgets]
    step = 0.05 if max(ys) - min(ys) > 0.12 else 0.01
    bottom, top = math.floor(min(ys) / step) * step, math.ceil(max(ys) / step) * step
    wide, tall, left, right, above, below = 640, 400, 60, 140, 30, 50
    x = lambda s: left + (math.log2(s) - low) / (high - low) * (wide - left - right)
    y = lambda v: tall - below - (v - bottom) / (top - bottom) * (tall - above - below)
    text = lambda px, py, what, anchor="middle": f'<text x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}">{what}</text>'
    line = lambda x1, y1, x2, y2, colour, w=1: f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{w}"/>'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="12">',
           f'<rect width="{wide}" height="{tall}" fill="white"/>',
           text(left, above - 12, f"accepted, {METRICS[metric]}, %: measured (dots) and the formula (lines)", "start"),
           text((left + wide - right) / 2, tall - 12, "parameters of the draft")]
    for i in range(round((top - bottom) / step) + 1):
        v = bottom + i * step
        out += [line(left, y(v), wide - right, y(v), "#dddddd"), text(left - 8, y(v) + 4, f"{100 * v:.0f}", "end")]
    for s in sizes:
        out += [line(x(s), tall - below, x(s), tall - below + 5, "#333333"), text(x(s), tall - below + 20, short(s))]
    for i, t in enumerate(reversed(budgets)):
        colour, at = COLOURS[i % len(COLOURS)], above + 20 + 20 * i
        out += [line(x(sizes[0]), y(said(sizes[0], t)), x(sizes[-1]), y(said(sizes[-1], t)), colour, 1.5),
                line(wide - right + 15, at, wide - right + 35, at, colour, 3), text(wide - right + 42, at + 4, short(t) + " tokens", "start")]
        out += [f'<circle cx="{x(r["parameters"]):.1f}" cy="{y(r[metric]):.1f}" r="4" fill="{colour}"/>' for r in runs if r["tokens"] == t]
    return "\n".join(out + ["</svg>"]) + "\n"


def told(runs, path):
    """Prints the fits of what is there, and plots it."""
    if len({r["parameters"] for r in runs}) < 2 or len({r["tokens"] for r in runs}) < 2:
        print(f"{len(runs)} runs: a fit needs two sizes and two budgets at least")
        return
    for metric in METRICS:
        print(report(runs, metric), end="\n\n")
    if path:
        with open(path, "w") as f:
            f.write(plot(runs, "temperature_1"))


def millions(text):
    out = sorted({float(v) for v in text.split(",")})
    if not all(0.01 <= v < math.inf for v in out):
        raise argparse.ArgumentTypeError(f"{text}: 0.01 at least")
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--plot", help="SVG file to write")
    p.add_argument("--fit", help="results to fit; nothing is trained")
    known, rest = p.parse_known_args()
    if known.fit and not rest:
        with open(known.fit) as f:
            told(json.load(f)["runs"], known.plot)
        return
    import sweep
    import train
    sweep.flags(p, "scaling.json")
    p.add_argument("--budgets", type=millions, default=[0.5, 1.0, 2.0], help="millions of tokens, with commas between (0.5,1,2)")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    runs = sweep.Sweep(a, "scaling.json", {})
    for name, settings in plan(a.budgets, a.batch, a.seed):
        if not runs.run(name, **settings):
            break
    told(runs.known["runs"], a.plot)


if __name__ == "__main__":
    main()
