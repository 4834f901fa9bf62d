"""Byte-level BPE, with GPT-2's alphabet of bytes and the llama-bpe pattern of words.

usage: bpe.py [--dir DIR]: train.json, valid.json -> train.bin, valid.bin, and merges.json where there is none beside this file

Ids: the 256 bytes by value, the merges in order, then <|begin_of_text|>, <|end_of_text|>, <|mask|>. A .bin holds ids as
little-endian uint16, a begin and an end token around each document.
"""
import argparse
import collections
import heapq
import json
import os
import re
import sys
import unicodedata

import numpy as np

VOCAB = 4096
SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|mask|>"]
MERGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "merges.json")


def ranges(category):
    """The characters of a Unicode category, as the inside of a set of a regular expression."""
    out, first = [], None
    for c in range(sys.maxunicode + 2):
        inside = c <= sys.maxunicode and unicodedata.category(chr(c)).startswith(category)
        if inside and first is None:
            first = c
        elif not inside and first is not None:
            out.append(f"\\U{first:08x}-\\U{c - 1:08x}")
            first = None
    return "".join(out)


def words():
    """The pattern that cuts text into words. Python's own \\s has four control characters more than Unicode's."""
    letters, numbers, spaces = ranges("L"), ranges("N"), r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    return re.compile(
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n{letters}{numbers}]?[{letters}]+|[{numbers}]{{1,3}}"
        rf"| ?[^{spaces}{letters}{numbers}]+[\r\n]*|[{spaces}]*[\r\n]+|[{spaces}]+(?![^{spaces}])|[{spaces}]+")


def byte_alphabet():
    """The printable character that stands for each byte, as GPT-2 has them."""
    keep = {*range(33, 127), *range(161, 173), *range(174, 256)}
    rest = iter(range(256, 512))
    return [chr(b) if b in keep else chr(next(rest)) for b in range(256)]


BYTES = byte_alphabet()


def learn(docs, pattern):
    """The merges of a vocabulary; of pairs as frequent as each other the first in order goes first."""
    counts = collections.Counter()
    for d in docs:
        counts.update(pattern.findall(d))
    split = [([BYTES[b] for b in w.encode()], c) for w, c in counts.items() if c > 1]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (w, c) in enumerate(split):
        for p in zip(w, w[1:]):
            pairs[p] += c
            where[p].add(i)
    heap = [(-c, p) for p, c in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < VOCAB - 256 - len(SPECIALS):
        c, best = heapq.heappop(heap)
        if pairs[best] != -c:  # it has lost some since: back with what it has now
            if pairs[best] > 0:
                heapq.heappush(heap, (-pairs[best], best))
            continue
        merges.append(best)
        for p in merge(best, split, pairs, where):
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
    return merges


def merge(best, split, pairs, where):
    """Makes one of two neighbours in all words, and returns the pairs whose counts have changed."""
    changed = set()
    for i in list(where[best]):
        w, c = split[i]
        for p in zip(w, w[1:]):
            pairs[p] -= c
            changed.add(p)
        out, j = [], 0
        while j < len(w):
            two = tuple(w[j:j + 2]) == best
            out.append("".join(w[j:j + 2]) if two else w[j])
            j += 1 + two
        split[i] = (out, c)
        for p in zip(out, out[1:]):
            pairs[p] += c
            where[p].add(i)
            changed.add(p)
    del pairs[best]
    return changed


class Tokenizer:
    def __init__(self, merges, pattern=None):
        self.vocab = BYTES + [a + b for a, b in merges] + SPECIALS
        self.ids = {t: i for i, t in enumerate(self.vocab)}
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.pattern, self.known = pattern or words(), {}
        self.begin, self.end, self.mask = (self.ids[s] for s in SPECIALS)
        self.bytes = {c: b for b, c in enumerate(BYTES)}

    def word(self, w):
        if w not in self.known:
            x = [BYTES[b] for b in w.encode()]
            while len(x) > 1:
                best, i = min((self.rank.get(p, VOCAB), i) for i, p in enumerate(zip(x, x[1:])))
                if best == VOCAB:
                    break
                x[i:i + 2] = [x[i] + x[i + 1]]
            self.known[w] = [self.ids[t] for t in x]
        return self.known[w]

    def encode(self, text):
        return [i for w in self.pattern.findall(text) for i in self.word(w)]

    def decode(self, ids):
        text = "".join(self.vocab[i] for i in ids if i < self.begin)
        return bytes(self.bytes[c] for c in text).decode(errors="replace")


def load():
    with open(MERGES) as f:
        return Tokenizer(json.load(f))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", default=".", help="folder to read from and write to")
    a = p.parse_args()
    docs = {}
    for name in ("train", "valid"):
        with open(os.path.join(a.dir, name + ".json")) as f:
            docs[name] = [text for _, text in json.load(f)]
    if not os.path.exists(MERGES):
        with open(MERGES, "w") as f:
            json.dump(learn(docs["train"], words()), f)
    tok, sizes = load(), {}
    for name, ds in docs.items():
        ids = []
        for d in ds:
            ids += [tok.begin, *tok.encode(d), tok.end]
        np.array(ids, dtype="<u2").tofile(os.path.join(a.dir, name + ".bin"))
        sizes[name] = dict(tokens=len(ids), bytes=sum(len(d.encode()) for d in ds))
        print(name, len(ids), "tokens,", round(sizes[name]["bytes"] / len(ids), 3), "bytes a token", flush=True)
    with open(os.path.join(a.dir, "sizes.json"), "w") as f:
        json.dump(sizes, f)


if __name__ == "__main__":
    main()
