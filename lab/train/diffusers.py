"""Makes gopher-diffusion of gopher-target: training by masks, certainty forcing, and the filter.

usage: diffusers.py --dir DIR --grove GROVE [--minutes 62] [--certain 8] [--texts 128] [--target-texts 1024] [--filtered 128] [--threads N] [--bf16]

GROVE is the program, which quantizes. DIR gets the corpus, the weights behind each run (base.pt, gopher-diffusion.pt), the model's own texts and greedy ones of gopher-target
(own.bin, target.bin), the filter (filter.npz), what is known of the model (gopher-diffusion.json), and its files gopher-diffusion.gguf and gopher-diffusion.q8_0.gguf; of the weights before certainty
forcing there is base.q8_0.gguf, for comparison. --minutes and --certain are those of both runs. What is there is not made again; a run that was interrupted goes on.
"""
import argparse
import json
import os
import sys

import numpy as np
import torch

import bpe
import canvas
import certain
import corpus
import diffusion
import drafters
import export
import family
import learned
import train

NAME = "gopher-diffusion"
BLOCKS = "2"  # of 32 tokens, of a text
DESCRIPTION = ("Masked-diffusion model of Go source, from gopher-target's weights: trained on the Go distribution's own source by masks, then to be certain earlier by texts of "
               "its own and gopher-target's (dParallel, 2025); with the filter of Learn2PD (2025).")


def described(a, path, file, description):
    """What is known of a model."""
    m = canvas.opened(file)
    ids, ck = train.read(path("valid.bin")), torch.load(file, map_location="cpu")
    with open(path("corpus.txt")) as f:
        data = f.read().strip()
    with open(path("sizes.json")) as f:
        size = json.load(f)["valid"]
    nats = diffusion.bound(m, ids, bpe.load(), a.bf16)
    return dict(description=description, data=f"{data}; {bpe.VOCAB} tokens of byte-level BPE", commit=family.commit(), machine=f"CPU, {os.cpu_count()} cores",
                parameters=sum(x.numel() for x in m.parameters()), minutes=ck["minutes"], tokens=ck["tokens"], valid_nats_per_token=nats,
                valid_bits_per_byte=nats * size["tokens"] / size["bytes"] / np.log(2).item(), began_with="gopher-target")


def published(a, path, name, file, facts, filter_of=None):
    """Writes the files of a model."""
    ck = torch.load(file, map_location="cpu")
    export.write_gguf(ck, path(name + ".gguf"), NAME, facts, filter_of)
    drafters.ask(a.grove, "quantize", path(name + ".gguf"), path(name + ".q8_0.gguf"), "Q8_0")


def main(args=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--grove", required=True)
    p.add_argument("--minutes", type=train.positive, default=62)
    p.add_argument("--certain", type=train.positive, default=8)
    p.add_argument("--texts", type=train.count, default=128, help="of the model's own, for certainty forcing")
    p.add_argument("--target-texts", type=train.count, default=1024, help="of gopher-target, for the same")
    p.add_argument("--filtered", type=train.count, default=128, help="texts for the filter")
    p.add_argument("--threads", type=train.count)
    p.add_argument("--bf16", action="store_true")
    a = p.parse_args(args)
    path = lambda n: os.path.join(a.dir, n)
    if drafters.missing(path("sizes.json")):
        for step in (corpus, bpe):
            sys.argv = [step.__name__, "--dir", a.dir]
            step.main()
    more = ["--dir", a.dir] + (["--threads", str(a.threads)] if a.threads else []) + (["--bf16"] if a.bf16 else [])
    base, own, target, out, found = path("base.pt"), path("own.bin"), path("target.bin"), path(NAME + ".pt"), path("filter.npz")
    if drafters.missing(base):
        diffusion.main(["--from", drafters.TARGET, "--out", base, "--minutes", str(a.minutes), *more])
    if drafters.missing(target):
        canvas.main([drafters.TARGET, target, "--texts", str(a.target_texts), "--batch", "128", "--blocks", BLOCKS, "--seed", "7", *more])
    if drafters.missing(own):
        canvas.main([base, own, "--texts", str(a.texts), "--blocks", BLOCKS, *more])
    if drafters.missing(out):
        certain.main(["--from", base, "--samples", own, target, "--blocks", BLOCKS, "--out", out, "--minutes", str(a.certain), *more])
    if drafters.missing(found):
        learned.main([out, found, "--texts", str(a.filtered), "--blocks", BLOCKS, *more])
    if drafters.missing(path("base.q8_0.gguf")):
        published(a, path, "base", base, described(a, path, base, DESCRIPTION.split(", then")[0] + "."))
    if drafters.missing(path(NAME + ".q8_0.gguf")):
        with np.load(found) as f:
            arrays, figures = {n: f[n] for n in f.files if n.startswith("diffusion.")}, json.loads(str(f["figures"]))
        facts = {**described(a, path, out, DESCRIPTION), **{"filter_" + n: v for n, v in figures.items()}}
        facts["minutes"] += torch.load(base, map_location="cpu")["minutes"]
        drafters.keep(path(NAME + ".json"), facts)
        published(a, path, NAME, out, facts, arrays)


if __name__ == "__main__":
    main()
