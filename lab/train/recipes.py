"""Trains drafts by each recipe from the same starts and seeds, and prints what the target accepts of them, with intervals over the seeds.

usage: recipes.py --dir DIR [--seeds 3] [--steps 500] [--start-steps 800] [--lr 3e-3] [--only NAME,...] [--runs N] [--target CKPT]

Of each seed, a draft of gopher-draft's size learns from the corpus for --start-steps; that is its start. Each recipe goes on from there for
--steps, with the batches of that seed, a learning rate of its own cosine, and nine batches of ten of the target's texts (corpus has none). A run
that was made is not made again, and an interrupted command goes on. The table is printed with what is there: means over seeds with 95 %
intervals by Student's t, and the mean of the differences from kl, seed by seed, with theirs. All runs are measured in the same texts, so
that the intervals tell of training alone, not of other texts.
"""
import argparse

import stats

# Of a recipe: its source, and its settings of train.py besides those that all have; {seed} stands for the seed.
RECIPES = {
    "corpus": ("no texts of the target: the baseline", {}),
    "sequence": ("tokens of the target's texts (FastDraft)", {"aligned": 1}),
    "kl": ("DistillSpec", {"aligned": 1, "loss": "kl"}),
    "tvd": ("DistillSpec", {"aligned": 1, "loss": "tvd"}),
    "tvd++": ("Direct Alignment", {"aligned": 1, "loss": "tvd++"}),
    "kl+tvd": ("that of the gophers", {"aligned": 1, "loss": "kl+tvd"}),
    "adaspec": ("AdaSPEC; its reference is the draft of kl", {"aligned": 1, "loss": "adaspec", "reference": "kl-{seed}"}),
    "gkd": ("On-Policy Distillation", {"aligned": 1, "loss": "gkd"}),
}
BASE = "kl"
DRAFT = dict(dim=64, layers=2, heads=4, kv=2, ffn=192)


def plan(seeds, steps, start_steps, lr, only=None):
    """(name, settings) of all runs, a run behind those that it needs."""
    for seed in range(1, seeds + 1):
        yield f"start-{seed}", dict(DRAFT, steps=start_steps, seed=seed, lr=lr)
        for name, (_, own) in RECIPES.items():
            if not only or name in only or name == BASE and "adaspec" in only:
                own = {k: v.format(seed=seed) if isinstance(v, str) else v for k, v in own.items()}
                yield f"{name}-{seed}", dict({"from": f"start-{seed}"}, steps=steps, seed=seed, lr=lr, **own)


def by_seed(runs, recipe, metric):
    """A metric of a recipe's runs by seed."""
    return {int(r["name"].rsplit("-", 1)[1]): r[metric] for r in runs if r["name"].rsplit("-", 1)[0] == recipe}


def percent(values, sign=""):
    mean, half = stats.interval(values)
    return f"{100 * mean:{sign}.1f}" + ("" if half is None else f" ± {100 * half:.1f}")


def table(runs):
    """The table of what is there, in Markdown."""
    out = ["| recipe | source | accepted greedy, % | at temperature 1, % | less kl's: greedy | at temperature 1 | nats a token, corpus | seeds |",
           "|---|---|---|---|---|---|---|---|"]
    base = {m: by_seed(runs, BASE, m) for m in ("greedy", "temperature_1")}
    for name, source in [("start", "the corpus, before each recipe")] + [(n, s) for n, (s, _) in RECIPES.items()]:
        greedy, drawn, nats = (by_seed(runs, name, m) for m in ("greedy", "temperature_1", "nats"))
        if not greedy:
            continue
        pairs = [[own[s] - kl[s] for s in own if s in kl] for own, kl in ((greedy, base["greedy"]), (drawn, base["temperature_1"]))]
        less = " | ".join("" if name == BASE or not p else percent(p, "+") for p in pairs)
        out.append(f"| `{name}` | {source} | {percent(list(greedy.values()))} | {percent(list(drawn.values()))} | {less} | "
                   f"{sum(nats.values()) / len(nats):.2f} | {len(greedy)} |")
    return "\n".join(out)


def main():
    import sweep
    import train
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sweep.flags(p, "recipes.json")
    p.add_argument("--seeds", type=train.number(int, lambda v: 1 <= v <= stats.MOST, f"1 to {stats.MOST}"), default=3)
    p.add_argument("--steps", type=train.count, default=500, help="of each recipe")
    p.add_argument("--start-steps", type=train.count, default=800, help="on the corpus before")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--only", type=lambda text: text.split(","), help="recipes to make, by name, with commas between")
    a = p.parse_args()
    for name in a.only or []:
        if name not in RECIPES:
            p.error(f"--only names {name}; the recipes are {', '.join(RECIPES)}")
    runs = sweep.Sweep(a, "recipes.json", {})
    for name, settings in plan(a.seeds, a.steps, a.start_steps, a.lr, a.only):
        if not runs.run(name, **settings):
            break
    print(table(runs.known["runs"]))


if __name__ == "__main__":
    main()
