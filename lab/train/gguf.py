"""Reads GGUF files of this family's architecture as checkpoints: F32, F16 and Q8_0, which is expanded to F32.

A file is refused, by ValueError, where it is cut off, of another version or architecture, or holds a type or a size that is not known
here. This file imports no PyTorch.
"""
import gzip
import struct

import numpy as np

# A metadata value's type: the size and the format of one.
SCALARS = {0: (1, "B"), 1: (1, "b"), 2: (2, "H"), 3: (2, "h"), 4: (4, "I"), 5: (4, "i"), 6: (4, "f"), 7: (1, "?"), 10: (8, "Q"), 11: (8, "q"),
           12: (8, "d")}
STRING, ARRAY = 8, 9
F32, F16, Q8_0 = 0, 1, 8
BLOCK = 32  # values of Q8_0 under one scale


class Reader:
    """The parts of a GGUF file, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError(f"gguf: cut off: {n} bytes wanted at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def scalar(self, kind):
        size, form = SCALARS[kind]
        return struct.unpack("<" + form, self.take(size))[0]

    def string(self):
        return bytes(self.take(self.scalar(10))).decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, n = self.scalar(4), self.scalar(10)
            if inner == ARRAY:
                raise ValueError("gguf: an array of arrays")
            return [self.value(inner) for _ in range(n)]
        if kind not in SCALARS:
            raise ValueError(f"gguf: a value of type {kind}")
        return self.scalar(kind)


def expand(kind, raw, n):
    """n values in F32 of a tensor's bytes."""
    if kind == F32:
        return np.frombuffer(raw, "<f4", n).copy()
    if kind == F16:
        return np.frombuffer(raw, "<f2", n).astype(np.float32)
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("q", "i1", BLOCK)]), n // BLOCK)
    return (blocks["scale"].astype(np.float32)[:, None] * blocks["q"]).reshape(-1)


def size(kind, n):
    """Bytes of n values."""
    if kind == Q8_0 and n % BLOCK == 0:
        return n // BLOCK * (2 + BLOCK)
    if kind in (F32, F16):
        return n * (4 if kind == F32 else 2)
    raise ValueError(f"gguf: {n} values of type {kind}; F32, F16 and whole blocks of Q8_0 are read")


def read(path):
    """A file's metadata, and its tensors by name, arrays of F32 with the rows first. The name of a compressed file ends in .gz."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        r = Reader(memoryview(f.read()))
    if bytes(r.take(4)) != b"GGUF" or r.scalar(4) != 3:
        raise ValueError(f"gguf: {path}: no GGUF file of version 3")
    count, keys = r.scalar(10), r.scalar(10)
    meta = {}
    for _ in range(keys):
        name = r.string()
        meta[name] = r.value(r.scalar(4))
    infos = [(r.string(), [r.scalar(10) for _ in range(r.scalar(4))], r.scalar(4), r.scalar(10)) for _ in range(count)]
    align = meta.get("general.alignment", 32)
    if not isinstance(align, int) or align < 1:
        raise ValueError(f"gguf: {path}: an alignment of {align}")
    begin, tensors = -(-r.at // align) * align, {}
    for name, shape, kind, offset in infos:
        n = int(np.prod([int(s) for s in shape], dtype=object))
        r.at = begin + offset
        tensors[name] = expand(kind, r.take(size(kind, n)), n).reshape(shape[::-1])
    return meta, tensors


KEYS = ("embedding_length", "block_count", "attention.head_count", "attention.head_count_kv", "attention.key_length", "feed_forward_length",
        "vocab_size", "context_length", "rope.freq_base", "rope.dimension_count", "attention.layer_norm_rms_epsilon")


def config(meta):
    """model.config's settings of a file's metadata."""
    arch = meta.get("general.architecture")
    if arch not in ("llama", "llada"):
        raise ValueError(f"gguf: architecture {arch}; it must be llama or llada")
    m = {k[len(arch) + 1:]: v for k, v in meta.items() if k.startswith(arch + ".")}
    missing = [k for k in KEYS if k not in m]
    if missing:
        raise ValueError(f"gguf: no {arch}.{missing[0]}")
    heads = m["attention.head_count"]
    if m["attention.key_length"] * heads != m["embedding_length"] or m["rope.dimension_count"] != m["attention.key_length"]:
        raise ValueError("gguf: a head that is not the width shared out among the heads, or is rotated in part")
    c = dict(dim=m["embedding_length"], layers=m["block_count"], heads=heads, kv=m["attention.head_count_kv"], hd=m["attention.key_length"],
             ffn=m["feed_forward_length"], vocab=m["vocab_size"], ctx=m["context_length"], theta=m["rope.freq_base"],
             eps=m["attention.layer_norm_rms_epsilon"], dropout=0.0)
    return c if arch == "llama" else dict(c, causal=False, shift=meta.get("diffusion.shift_logits", True))


# Of a layer: model.py's names, GGUF's, and Hugging Face's.
LAYER = [
    ("n1.w", "attn_norm", "input_layernorm"), ("q.weight", "attn_q", "self_attn.q_proj"), ("k.weight", "attn_k", "self_attn.k_proj"),
    ("v.weight", "attn_v", "self_attn.v_proj"), ("o.weight", "attn_output", "self_attn.o_proj"),
    ("n2.w", "ffn_norm", "post_attention_layernorm"), ("g.weight", "ffn_gate", "mlp.gate_proj"), ("u.weight", "ffn_up", "mlp.up_proj"),
    ("dn.weight", "ffn_down", "mlp.down_proj"),
]


def checkpoint(path):
    """A GGUF file as model.py's checkpoint: cfg, sd (arrays), tokens, minutes, valid."""
    meta, tensors = read(path)
    c = config(meta)
    names = {"emb.weight": "token_embd", "n.w": "output_norm"}
    for i in range(c["layers"]):
        names.update({f"b.{i}.{own}": f"blk.{i}.{name}" for own, name, _ in LAYER})
    if {n + ".weight" for n in names.values()} != {n for n in tensors if not n.startswith("diffusion.filter.")}:
        raise ValueError(f"gguf: {path}: tensors that are not those of a tied llama decoder")
    return dict(cfg=c, sd={own: tensors[n + ".weight"] for own, n in names.items()}, tokens=meta.get("train.tokens", 0),
                minutes=meta.get("train.minutes", 0.0), valid=meta.get("train.valid_nats_per_token", 0.0))
