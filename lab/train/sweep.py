"""Runs of training in a folder, each made once, and what is measured of them: what recipes.py and scaling.py have in common.

DIR gets what is missing of the corpus (corpus.py, bpe.py), the target's texts (sample.py) and its states of them, and of each run a
checkpoint. The results are a JSON file with the settings that all runs share and a record of each run; it is written after each
run, and a run that it has is not made again.
"""
import hashlib
import json
import os
import sys

import torch

import bpe
import corpus
import evaluate
import model
import sample
import train

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "..", "..", "internal", "gopher", "gopher-target.q8_0.gguf.gz")


def flags(p, results):
    """Adds the flags that both commands have."""
    p.add_argument("--dir", required=True, help="folder of the corpus, samples and checkpoints")
    p.add_argument("--target", default=TARGET, help="checkpoint or GGUF file of the family (gopher-target as grove has it)")
    p.add_argument("--results", help=f"file to go on with (DIR/{results})")
    p.add_argument("--batch", type=train.count, default=4)
    p.add_argument("--samples", type=train.count, default=1024, help="texts that the target writes to be learned from")
    p.add_argument("--texts", type=train.count, default=64, help="texts that the target writes to measure acceptance")
    p.add_argument("--threads", type=train.count, default=1)
    p.add_argument("--checks", type=train.count, default=1, help="of a run: after each an interrupted one can go on")
    p.add_argument("--runs", type=train.count, help="end after so many runs; the next call goes on")


def write(path, what):
    """what as JSON, a record of a run on each line."""
    runs = ",\n  ".join(json.dumps(r) for r in what["runs"])
    head = json.dumps({k: v for k, v in what.items() if k != "runs"}, indent=1)[:-2]
    with open(path + ".new", "w") as f:
        f.write(f'{head},\n "runs": [\n  {runs}\n ]\n}}\n')
    os.replace(path + ".new", path)


class Sweep:
    """The runs of a command. shared: the settings that all of them have."""

    def __init__(self, a, results, shared):
        self.a, self.left, self.texts = a, a.runs, None
        torch.set_num_threads(a.threads)
        self.results = a.results or os.path.join(a.dir, results)
        self.prepare()
        self.target, _ = model.load(a.target, train.device())
        self.target.eval()
        shared = dict(target=os.path.basename(a.target), corpus=self.told("corpus.txt"), batch=a.batch, samples=a.samples, texts=a.texts,
                      threads=a.threads, torch=torch.__version__, **shared)
        self.known = dict(shared, runs=[])
        if os.path.exists(self.results):
            with open(self.results) as f:
                self.known = json.load(f)
            for name, now in shared.items():
                if self.known.get(name) != now:
                    raise SystemExit(f"{self.results}: made with {name} {self.known.get(name)}, not {now}; name another file with --results")

    def path(self, name):
        return os.path.join(self.a.dir, name)

    def told(self, name):
        with open(self.path(name)) as f:
            return f.read().strip()

    def prepare(self):
        os.makedirs(self.a.dir, exist_ok=True)
        with open(self.a.target, "rb") as f:
            target = hashlib.sha256(f.read()).hexdigest()
        if os.path.exists(self.path("target.txt")):
            if self.told("target.txt") != target:
                raise SystemExit(f"{self.a.dir}: has the texts of another target; name another folder with --dir")
        else:
            with open(self.path("target.txt"), "w") as f:
                f.write(target + "\n")
        if not os.path.exists(self.path("sizes.json")):
            for step in (corpus, bpe):
                sys.argv = [step.__name__, "--dir", self.a.dir]
                step.main()
        if not os.path.exists(self.path("samples.bin")):
            sample.main([self.a.target, self.path("samples.bin"), "--texts", str(self.a.samples), "--dir", self.a.dir])
        have = os.path.getsize(self.path("samples.bin")) // 2
        if have < self.a.samples:
            raise SystemExit(f"{self.path('samples.bin')}: {have} tokens; {self.a.samples} texts were asked for")

    def record(self, name):
        return next((r for r in self.known["runs"] if r["name"] == name), None)

    def run(self, name, **settings):
        """Trains and measures a run, unless that was done. settings: flags of train.py; from and reference name runs. False: --runs are over."""
        record = self.record(name)
        if record:
            if record["settings"] != settings:
                raise SystemExit(f"{self.results}: {name} was made with {record['settings']}, not {settings}; name another file with --results")
            return True
        if self.left == 0:
            return False
        self.left = self.left and self.left - 1
        print("==", name, flush=True)
        if not os.path.exists(self.path(name + ".pt")):
            self.train(name, settings)
        self.known["runs"].append(dict(name=name, settings=settings, **self.measured(name)))
        write(self.results, self.known)
        return True

    def train(self, name, settings):
        given = dict(settings, out=self.path(name + ".pt"), dir=self.a.dir, batch=self.a.batch, threads=self.a.threads, checks=self.a.checks)
        for flag in ("from", "reference"):
            if flag in settings:
                given[flag] = self.path(settings[flag] + ".pt")
                if not os.path.exists(given[flag]):
                    raise SystemExit(f"{given[flag]}: missing, though {self.results} has its record; name another file with --results")
        if "aligned" in settings:
            given["samples"] = self.path("samples.bin")
        if "loss" in settings:
            given.update(target=self.a.target, states=self.path("states.bin"))
        train.main([text for key, v in given.items() for text in ("--" + key, str(v))])

    def measured(self, name):
        """What is known of a run: its size, tokens, seconds, loss on files held out (nats a token of train.py's windows), and acceptance."""
        dev, texts = train.device(), self.path(f"texts-{self.a.texts}.pt")
        if not os.path.exists(texts):
            train.write(texts, evaluate.written(self.target, train.read(self.path("valid.bin")), self.a.texts, dev))
        if self.texts is None:
            self.texts = torch.load(texts, map_location=dev)
        draft, ck = model.load(self.path(name + ".pt"), dev)
        greedy, drawn = evaluate.acceptance(self.target, draft.eval(), self.texts)
        return dict(parameters=sum(x.numel() for x in draft.parameters()), tokens=ck["tokens"], seconds=round(ck["minutes"] * 60),
                    nats=round(ck["valid"], 4), greedy=round(greedy, 4), temperature_1=round(drawn, 4))
