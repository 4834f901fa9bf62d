"""Trains the whole family in a time: gopher-target, and gopher-draft and gopher-nano aligned with it.

usage: family.py --minutes M --dir DIR [--from CKPT]

DIR gets the corpus, checkpoints (NAME.pt), the target's own texts, and of each model a GGUF file (NAME.gguf), a folder of Hugging Face
(NAME/) and what is known of it (NAME.json). A run that was interrupted goes on; what is there is not made again. With an
accelerator the target has 27 million parameters, passes over the corpus several times with dropout, and stops early; on a
processor it has 4 million, and goes on from CKPT where that is given.
"""
import argparse
import json
import os
import subprocess
import sys

import torch

import bpe
import corpus
import evaluate
import export
import sample
import train

HERE = os.path.dirname(os.path.abspath(__file__))

# Of the minutes; what is left goes to the corpus, figures and files.
SHARES = {"gopher-target": 0.62, "samples": 0.05, "gopher-draft": 0.2, "gopher-nano": 0.1}

SIZES = {
    "cuda": {
        "gopher-target": dict(dim=512, layers=8, heads=8, kv=4, ffn=1536, ctx=512, batch=64, lr=1.5e-3, dropout=0.1),
        "gopher-draft": dict(dim=192, layers=2, heads=6, kv=3, ffn=512, ctx=512, batch=64, lr=3e-3),
        "gopher-nano": dict(dim=128, layers=1, heads=4, kv=2, ffn=256, ctx=512, batch=64, lr=3e-3),
    },
    "cpu": {
        "gopher-target": dict(dim=256, layers=4, heads=8, kv=4, ffn=768, ctx=256, batch=16, lr=3e-3),
        "gopher-draft": dict(dim=64, layers=2, heads=4, kv=2, ffn=192, ctx=256, batch=16, lr=6e-3),
        "gopher-nano": dict(dim=32, layers=1, heads=2, kv=1, ffn=96, ctx=256, batch=16, lr=8e-3),
    },
}

LR_ON = 1.5e-3  # of a target that goes on from earlier weights

DESCRIPTIONS = {
    "gopher-target": "Decoder of Go source, trained on the Go distribution's own source.",
    "gopher-draft": "Draft model for gopher-target: trained on the Go distribution's own source, then aligned with its texts.",
    "gopher-nano": "The smallest draft model for gopher-target, or for gopher-draft: trained as that one.",
}


def flags(settings):
    return [text for key, v in settings.items() for text in ("--" + key, str(v))]


def make(name, a, sizes):
    """Trains a model of the family, if that was not done."""
    out, target = os.path.join(a.dir, name + ".pt"), os.path.join(a.dir, "gopher-target.pt")
    if os.path.exists(out):
        return
    print("==", name, flush=True)
    settings = dict(sizes[name], minutes=a.minutes * SHARES[name], out=out, dir=a.dir)
    if name != "gopher-target":
        settings.update(target=target, samples=os.path.join(a.dir, "samples.bin"))
    elif a.start:
        settings.update({"from": a.start, "lr": LR_ON})
    train.main(flags(settings))


def commit():
    """The commit of this recipe; one that was changed since is told apart."""
    return subprocess.check_output(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], cwd=HERE, text=True).strip()


def facts(name, a):
    """What is known of a model of the family."""
    path = lambda n: os.path.join(a.dir, n)
    figures = evaluate.figures(path(name + ".pt"), [], a.dir)
    with open(path("corpus.txt")) as f:
        data = f.read().strip()
    out = dict(description=DESCRIPTIONS[name], data=f"{data}; {bpe.VOCAB} tokens of byte-level BPE", commit=commit(),
               machine=torch.cuda.get_device_name() if train.device() == "cuda" else f"CPU, {os.cpu_count()} cores",
               parameters=figures["parameters"], minutes=figures["minutes"], tokens=figures["tokens"],
               valid_nats_per_token=figures["nats"], valid_bits_per_byte=figures["bits"])
    if name == "gopher-target" and a.start:
        out["began_with"] = os.path.basename(a.start)
    for of in ("gopher-target", "gopher-draft")[:list(SIZES["cpu"]).index(name)]:
        held = evaluate.figures(path(of + ".pt"), [path(name + ".pt")], a.dir)[name]
        out[f"accepted_by_{of}_greedy"], out[f"accepted_by_{of}_temperature_1"] = held["greedy"], held["temperature_1"]
    return out


def publish(name, a):
    """Writes a model's files."""
    known = facts(name, a)
    with open(os.path.join(a.dir, name + ".json"), "w") as f:
        json.dump(known, f, indent=1)
    print(name, json.dumps(known, indent=1), flush=True)
    ck = torch.load(os.path.join(a.dir, name + ".pt"), map_location="cpu")
    export.write_gguf(ck, os.path.join(a.dir, name + ".gguf"), name, known)
    export.write_hf(ck, os.path.join(a.dir, name), name, known)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--from", dest="start", help="weights for the target to go on from")
    a = p.parse_args()
    sizes = SIZES[train.device()]
    if not os.path.exists(os.path.join(a.dir, "sizes.json")):
        for step in (corpus, bpe):
            sys.argv = [step.__name__, "--dir", a.dir]
            step.main()
    make("gopher-target", a, sizes)
    samples = os.path.join(a.dir, "samples.bin")
    if not os.path.exists(samples):
        sample.main([os.path.join(a.dir, "gopher-target.pt"), samples, "--dir", a.dir, "--minutes", str(a.minutes * SHARES["samples"])])
    for name in ("gopher-draft", "gopher-nano"):
        make(name, a, sizes)
    for name in sizes:
        publish(name, a)


if __name__ == "__main__":
    main()
