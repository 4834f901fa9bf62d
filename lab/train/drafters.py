"""Makes what drafts on a model itself: the deep gopher, and drafting heads for it and for gopher-target; and a nested draft for both.

usage: drafters.py --dir DIR --grove GROVE [--minutes 66] [--nested 9.5] [--threads N] [--only gopher-target]

GROVE is the program, which writes states, quantizes and converts. DIR gets the corpus, gopher-deep (gopher-deep.pt, .gguf and .q8_0.gguf; --minutes
of training), gopher-s2d (--nested minutes), and for each of both models the texts that it writes and their states, TARGET.surplus.json, and per head the folder
TARGET-HEAD as its authors publish such heads and TARGET-HEAD.gguf. What is there is not made again; a run that was interrupted goes on. The
heads' budgets are steps (HEADS), so that they repeat; the deep gopher's is time.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

import torch

import bpe
import corpus
import deepen
import evaluate
import export
import family
import heads
import sample
import train

TARGET = os.path.join(family.HERE, "..", "..", "internal", "gopher", "gopher-target.q8_0.gguf.gz")
DRAFT = os.path.join(family.HERE, "..", "..", "internal", "gopher", "gopher-draft.q8_0.gguf.gz")
EXITS = "2,3,4,6,9"
DESCRIPTION = ("Deep decoder of Go source: gopher-target spread over 12 narrower layers, then trained on the Go distribution's own source with "
               "layer dropout and early exits, so that its first layers draft for all.")

# Texts that are learned from, and held out: the file of what they begin with, and the seed. The deep gopher writes what is held out itself; it learns its
# own distributions on texts of gopher-target, which is faster and was trained on the same.
TEXTS = {"train": ("train.bin", 5), "held": ("valid.bin", 6)}
COUNTS = {"gopher-target": {"train": 1536, "held": 128}, "gopher-deep": {"train": 1024, "held": 128}}
LENGTH = 128  # tokens of a text

# The states that are written of a target, and the flags of its heads.
STATES = {"gopher-target": "1..3,final", "gopher-deep": "2,3,6,9,final"}
HEADS = {
    "gopher-target": {
        "medusa": "--steps 800 --lr 3e-3", "hydra": "--steps 400", "eagle": "--steps 600 --soft 1", "kangaroo": "--steps 400 --exit 1",
        "eagle3": "--steps 1200 --lr 2e-3 --taps 1,2,3 --ffn 512", "fspad": "--steps 600 --soft 1 --ffn 352",
        "chimera": "--steps 700 --lr 2e-3 --ffn 256",
        "falcon": "--steps 600 --lr 2e-3 --soft 1 --ffn 384", "specblock": "--steps 300 --lr 2e-3 --ffn 256 --batch 4",
        "dflash": "--steps 600 --lr 2e-3 --taps 1,2,3 --ffn 256 --layers 2 --depth 4 --batch 4",
        "dspark": "--steps 600 --lr 2e-3 --taps 1,2,3 --ffn 128 --layers 2 --depth 4 --batch 4 --rank 16",
        "peagle": "--steps 700 --lr 2e-3 --taps 1,2,3 --ffn 512 --layers 2",
        "ppd": "--depth 3 --batch 2 --places 24 --steps 250 --lr 2e-3", "transfer": "--depth 3 --batch 4 --places 32 --steps 300 --begin 1,1,1"},
    "gopher-deep": {
        "medusa": "--steps 300 --lr 3e-3", "eagle": "--steps 400 --lr 2e-3 --soft 1", "hydra": "--steps 300 --lr 2e-3",
        "kangaroo": "--steps 300 --lr 3e-3 --exit 3", "m2r2": "--steps 600 --lr 3e-3 --exit 3", "eagle3": "--steps 400 --lr 2e-3 --taps 2,6,9 --tokens 2048"},
}
SURPLUS = "--steps 300 --lr 3e-3"


def ask(*what):
    """Runs a program. grove has gopher-target itself, by its name."""
    what = ["gopher-target" if w == TARGET else w for w in what]
    print("==", *what, flush=True)
    subprocess.run([str(w) for w in what], check=True)


NESTED = ("Nested draft model for gopher-target and gopher-deep: gopher-draft with two more layers, which drafts behind its first and its second layer too; aligned with "
          "texts of gopher-target.")
NESTED_EXITS = "1,2"


def nested(a, path):
    """Trains gopher-s2d from gopher-draft, with the texts of gopher-target, and writes its files."""
    name = "gopher-s2d"
    if missing(path(name + ".pt")):
        train.main(["--out", path(name + ".pt"), "--dir", a.dir, "--from", DRAFT, "--more-layers", "2", "--exits", NESTED_EXITS, "--sorted", "--target", TARGET,
                    "--samples", path("gopher-target.train.bin"), "--states", path(name + ".states"), "--aligned", "0.9", "--minutes", str(a.nested), "--batch", "8",
                    "--lr", "3e-3", "--checks", "3", *a.more])
    if missing(path(name + ".json")):
        f, of = evaluate.figures(path(name + ".pt"), [], a.dir, exits=train.numbers(NESTED_EXITS)), {}
        for target, file in (("gopher-target", TARGET), ("gopher-deep", path("gopher-deep.q8_0.gguf"))):
            if not missing(file):
                held = evaluate.figures(file, [path(name + ".pt")], a.dir)[name]
                of.update({f"accepted_by_{target}_greedy": held["greedy"], f"accepted_by_{target}_temperature_1": held["temperature_1"]})
        keep(path(name + ".json"), {**described(path, NESTED, f), "began_with": "gopher-draft, and two layers", "exits": NESTED_EXITS, **of})
    if missing(path(name + ".gguf")):
        with open(path(name + ".json")) as f:
            export.write_gguf(torch.load(path(name + ".pt"), map_location="cpu"), path(name + ".gguf"), name, json.load(f))
    if missing(path(name + ".q8_0.gguf")):
        ask(a.grove, "quantize", path(name + ".gguf"), path(name + ".q8_0.gguf"), "Q8_0")


def missing(path):
    return not os.path.exists(path)


def keep(path, what):
    with open(path, "w") as f:
        json.dump(what, f, indent=1)


def deep(a, path):
    """Trains gopher-deep and writes its files."""
    if missing(path("gopher-deep.pt")):
        if missing(path("start.pt")):
            deepen.main([TARGET, path("start.pt"), "--dir", a.dir])
        train.main(["--out", path("gopher-deep.pt"), "--dir", a.dir, "--from", path("start.pt"), "--minutes", str(a.minutes), "--batch", "8", "--lr", "1e-3",
                    "--layer-dropout", "0.1", "--exits", EXITS, "--exit-scale", "1.5", "--checks", "7", *a.more])
    if missing(path("gopher-deep.json")):
        keep(path("gopher-deep.json"), known(path))
    if missing(path("gopher-deep.gguf")):
        with open(path("gopher-deep.json")) as f:
            export.write_gguf(torch.load(path("gopher-deep.pt"), map_location="cpu"), path("gopher-deep.gguf"), "gopher-deep", json.load(f))
    if missing(path("gopher-deep.q8_0.gguf")):
        ask(a.grove, "quantize", path("gopher-deep.gguf"), path("gopher-deep.q8_0.gguf"), "Q8_0")


def known(path):
    """What is to be known of gopher-deep."""
    f = evaluate.figures(path("gopher-deep.pt"), [], os.path.dirname(path("x")), exits=train.numbers(EXITS))
    return {**described(path, DESCRIPTION, f), "began_with": "gopher-target, by deepen.py"}


def described(path, description, f):
    """What is to be known of a model by its figures."""
    with open(path("corpus.txt")) as text:
        data = text.read().strip()
    return dict(description=description, data=f"{data}; {bpe.VOCAB} tokens of byte-level BPE", commit=family.commit(), machine=f"CPU, {os.cpu_count()} cores",
                parameters=f["parameters"], minutes=f["minutes"], tokens=f["tokens"],
                valid_nats_per_token=f["nats"], valid_bits_per_byte=f["bits"],
                **{"valid_" + n: v for n, v in f.items() if n.startswith("nats_exit")})


def states(a, name, target, path):
    """The files of states of a target's texts, by what they are for."""
    out = {}
    for use, (source, seed) in TEXTS.items():
        texts, out[use] = path(f"{name}.{use}.bin"), path(f"{name}.{use}.safetensors")
        if missing(texts):
            sample.main([TARGET if use == "train" else target, texts, "--texts", str(COUNTS[name][use]), "--length", str(LENGTH), "--dir", a.dir, "--source", source, "--seed", str(seed)])
        if missing(out[use]):
            ask(a.grove, "states", "-m", target, "--ids", texts, "--length", LENGTH, "--layers", STATES[name], "--type", "f16", "--out", out[use])
    return out


def drafters(a, name, target, path):
    """The heads of a target, and the measure of what its states know."""
    files = states(a, name, target, path)
    given = ["--target", target, "--name", name, "--states", files["train"], "--held", files["held"], "--writer", "gopher-target", *a.more]
    for kind, flags in HEADS[name].items():
        folder = path(f"{name}-{kind}")
        if not glob.glob(os.path.join(folder, "*config.json")):
            print("==", name, kind, flush=True)
            heads.main([kind, *given, "--out", folder, *flags.split()])
        if missing(folder + ".gguf"):
            ask(a.grove, "convert", "--heads", "--target", target, "--type", "Q8_0", folder, folder + ".gguf")
    if missing(path(name + ".surplus.json")):
        keep(path(name + ".surplus.json"), heads.main(["surplus", *given, *SURPLUS.split()]))


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--grove", required=True, help="the program")
    p.add_argument("--minutes", type=train.positive, default=66.0, help="of the deep gopher")
    p.add_argument("--nested", type=train.positive, default=9.5, help="minutes of gopher-s2d")
    p.add_argument("--threads", type=train.count, help="of PyTorch")
    p.add_argument("--only", choices=list(HEADS), help="one target's heads alone")
    a = p.parse_args(args)
    a.more = ["--threads", str(a.threads)] if a.threads else []
    path = lambda name: os.path.join(a.dir, name)
    if missing(path("sizes.json")):
        for step in (corpus, bpe):
            sys.argv = [step.__name__, "--dir", a.dir]
            step.main()
    if a.only != "gopher-target":
        deep(a, path)
    for name, target in (("gopher-target", TARGET), ("gopher-deep", path("gopher-deep.q8_0.gguf"))):
        if a.only in (None, name):
            drafters(a, name, target, path)
    if a.only != "gopher-deep":
        nested(a, path)


if __name__ == "__main__":
    main()
