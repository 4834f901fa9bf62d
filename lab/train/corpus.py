"""Go source of the installed Go distribution (BSD-3-Clause) -> train.json, valid.json: lists of [path, text].

usage: corpus.py [--dir DIR]
Generated tables, test data and vendored code are left out, and so is the licence's header, which would be learned by
heart. A file is held out where the hash of its path says so, one in fifty, whatever the version of Go.
"""
import argparse
import hashlib
import json
import os
import subprocess

LEFT_OUT = ("testdata", "vendor", "_asm")
GENERATED = ("z", "op_", "rewrite", "tables", "opGen")
LONGEST = 200_000  # characters of a file


def sources(root):
    """Paths of the files of Go source, relative to root and in order."""
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(n for n in inner if n not in LEFT_OUT)
        for name in sorted(names):
            if name.endswith(".go") and not name.startswith(GENERATED):
                yield os.path.relpath(os.path.join(folder, name), root)


def held_out(path):
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big") % 50 == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", default=".", help="folder to write to")
    a = p.parse_args()
    go = lambda *what: subprocess.check_output(["go", *what], text=True).strip()
    root = os.path.join(go("env", "GOROOT"), "src")
    docs = {"train": [], "valid": []}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        if text.startswith("// Copyright") and "\n\n" in text:
            text = text[text.index("\n\n") + 2:]
        if len(text) <= LONGEST:
            docs["valid" if held_out(path) else "train"].append([path, text])
    os.makedirs(a.dir, exist_ok=True)
    for name, ds in docs.items():
        with open(os.path.join(a.dir, name + ".json"), "w") as f:
            json.dump(ds, f)
    with open(os.path.join(a.dir, "corpus.txt"), "w") as f:
        f.write(f"the source of {go('env', 'GOVERSION')}: {len(docs['train'])} files, {len(docs['valid'])} more held out\n")
    print(*(f"{name}: {len(ds)} files, {sum(len(t) for _, t in ds)} characters;" for name, ds in docs.items()))


if __name__ == "__main__":
    main()
