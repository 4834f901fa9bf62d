"""Writes a checkpoint as a GGUF file, or as a folder of Hugging Face.

usage: export.py CKPT NAME --gguf OUT.gguf | --hf FOLDER [--facts FILE]

Matrices are F16, the rest F32. FILE holds a JSON object of what is to be known of the model: "description", "data",
"commit" and figures; it goes into the GGUF's metadata under general.description and train.*, and into the folder's README.md.
"""
import argparse
import json
import os
import struct

import numpy as np
import torch

import bpe
import gguf

LICENCE = "bsd-3-clause"

# How tokens are to be drawn; README.md has the figures. The keys of generation_config.json, penalty_last_n being llama.cpp's own.
SAMPLING = dict(do_sample=True, temperature=0.4, top_k=0, top_p=0.9, min_p=0.0, repetition_penalty=1.1, penalty_last_n=64)
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

def tensors(ck):
    """(GGUF's name, Hugging Face's, values) of all tensors."""
    sd = ck["sd"]
    yield "token_embd", "model.embed_tokens", sd["emb.weight"]
    for i in range(ck["cfg"]["layers"]):
        for own, name, hf in gguf.LAYER:
            yield f"blk.{i}.{name}", f"model.layers.{i}.{hf}", sd[f"b.{i}.{own}"]
    yield "output_norm", "model.norm", sd["n.w"]


def stored(t):
    """A tensor's values as they are written: matrices in F16, vectors in F32."""
    return t.float().contiguous().numpy().astype("<f2" if t.dim() > 1 else "<f4")


def recommended(c):
    """The keys of SAMPLING in GGUF; of a model that fills a canvas, for which there are no penalties, the likeliest tokens."""
    s = SAMPLING
    if not c.get("causal", True):
        yield "general.sampling.temp", F32, 0.0
        return
    for name, kind, v in (("temp", F32, s["temperature"]), ("top_k", I32, s["top_k"]), ("top_p", F32, s["top_p"]), ("min_p", F32, s["min_p"]),
                          ("penalty_repeat", F32, s["repetition_penalty"]), ("penalty_last_n", I32, s["penalty_last_n"])):
        yield "general.sampling." + name, kind, v


U32, F32, BOOL, STR, ARR, I32, U64 = 4, 6, 7, 8, 9, 5, 10


def string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    if kind == STR:
        return string(v)
    if kind == ARR:
        elem, items = v
        return struct.pack("<IQ", elem, len(items)) + b"".join(value(elem, x) for x in items)
    return struct.pack({U32: "<I", F32: "<f", BOOL: "<?", I32: "<i", U64: "<Q"}[kind], v)


def described(facts):
    """The keys of what is to be known of a model."""
    kinds = {str: STR, float: F32, int: U64}
    for name, v in facts.items():
        yield "general.description" if name == "description" else "train." + name, kinds[type(v)], v


def architecture(c):
    """The keys of a model's architecture: llama, and llada for one whose tokens see each other."""
    name = "llama" if c.get("causal", True) else "llada"
    yield "general.architecture", STR, name
    for key, kind, v in (
            ("context_length", U32, c["ctx"]), ("embedding_length", U32, c["dim"]), ("block_count", U32, c["layers"]), ("feed_forward_length", U32, c["ffn"]),
            ("attention.head_count", U32, c["heads"]), ("attention.head_count_kv", U32, c["kv"]), ("attention.key_length", U32, c["hd"]),
            ("attention.value_length", U32, c["hd"]), ("attention.layer_norm_rms_epsilon", F32, c["eps"]), ("rope.dimension_count", U32, c["hd"]),
            ("rope.freq_base", F32, c["theta"]), ("vocab_size", U32, c["vocab"])):
        yield f"{name}.{key}", kind, v
    if name == "llada":
        yield "llada.attention.causal", BOOL, False
        yield "diffusion.shift_logits", BOOL, c["shift"]


def metadata(ck, name, facts):
    c, tok = ck["cfg"], bpe.load()
    types = [1] * (c["vocab"] - len(bpe.SPECIALS)) + [3] * len(bpe.SPECIALS)
    arch, *settings = architecture(c)
    return [
        arch, ("general.type", STR, "model"), ("general.name", STR, name), ("general.license", STR, LICENCE), ("general.file_type", U32, 1),
        ("general.quantization_version", U32, 2), *recommended(c), *described(facts), *settings,
        ("tokenizer.ggml.model", STR, "gpt2"), ("tokenizer.ggml.pre", STR, "llama-bpe"), ("tokenizer.ggml.tokens", ARR, (STR, tok.vocab)),
        ("tokenizer.ggml.token_type", ARR, (I32, types)), ("tokenizer.ggml.merges", ARR, (STR, [a + " " + b for a, b in tok.merges])),
        ("tokenizer.ggml.bos_token_id", U32, tok.begin), ("tokenizer.ggml.eos_token_id", U32, tok.end),
        ("tokenizer.ggml.mask_token_id", U32, tok.mask), ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
    ]


def write_gguf(ck, path, name, facts, filter_of=None):
    """Writes a model's file, with the arrays of its filter (learned.py), if there is one."""
    keys, all_of = metadata(ck, name, facts), [(n + ".weight", stored(t)) for n, _, t in tensors(ck)]
    if filter_of:
        all_of += filter_of.items()
        keys.append(("diffusion.filter.block_length", U32, len(filter_of["diffusion.filter.1.bias"])))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(all_of), len(keys))
    for key, kind, v in keys:
        head += string(key) + struct.pack("<I", kind) + value(kind, v)
    blobs, offset = [], 0
    for n, t in all_of:
        data = t.tobytes()
        head += string(n) + struct.pack("<I", t.ndim) + struct.pack(f"<{t.ndim}Q", *reversed(t.shape))
        head += struct.pack("<IQ", 1 if t.dtype == "<f2" else 0, offset)
        blobs.append(data + b"\0" * (-len(data) % 32))
        offset += len(blobs[-1])
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + b"".join(blobs))


def halves(t, heads):
    """The rows of a head in Hugging Face's order, which rotates a value with the one half a head further."""
    out, width = t.shape
    return t.view(heads, out // heads // 2, 2, width).transpose(1, 2).reshape(out, width)


def write_safetensors(ck, path):
    c, head, blobs, offset = ck["cfg"], {"__metadata__": {"format": "pt"}}, [], 0
    for _, name, t in tensors(ck):
        if name.endswith(("q_proj", "k_proj")):
            t = halves(t, c["heads"] if name.endswith("q_proj") else c["kv"])
        t = stored(t)
        head[name + ".weight"] = dict(dtype="F16" if t.dtype == "<f2" else "F32", shape=list(t.shape), data_offsets=[offset, offset + t.nbytes])
        blobs.append(t.tobytes())
        offset += t.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def tokenizer_json():
    tok, begin = bpe.load(), bpe.SPECIALS[0]
    added = lambda t: dict(id=tok.ids[t], content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    special = lambda t: {"SpecialToken": dict(id=t, type_id=0)}
    text = lambda name: {"Sequence": dict(id=name, type_id=0)}
    bytes_of = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
    return dict(
        version="1.0", truncation=None, padding=None, added_tokens=[added(t) for t in bpe.SPECIALS], normalizer=None,
        pre_tokenizer=dict(type="Sequence", pretokenizers=[
            dict(type="Split", pattern=dict(Regex=PATTERN), behavior="Isolated", invert=False), bytes_of]),
        post_processor=dict(type="TemplateProcessing", single=[special(begin), text("A")],
                            pair=[special(begin), text("A"), special(begin), text("B")],
                            special_tokens={begin: dict(id=begin, ids=[tok.begin], tokens=[begin])}),
        decoder=dict(bytes_of, use_regex=True),
        model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                   byte_fallback=False, ignore_merges=True, vocab={t: i for i, t in enumerate(tok.vocab[:tok.begin])},
                   merges=[a + " " + b for a, b in tok.merges]))


def config_json(ck):
    c, tok = ck["cfg"], bpe.load()
    return dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=c["dim"], num_hidden_layers=c["layers"],
        num_attention_heads=c["heads"], num_key_value_heads=c["kv"], head_dim=c["hd"], intermediate_size=c["ffn"], hidden_act="silu",
        vocab_size=c["vocab"], max_position_embeddings=c["ctx"], rms_norm_eps=c["eps"], rope_theta=c["theta"], rope_scaling=None,
        attention_bias=False, mlp_bias=False, tie_word_embeddings=True, bos_token_id=tok.begin, eos_token_id=tok.end,
        torch_dtype="float16")


def card(name, facts):
    """What a model is for, and what it cannot do."""
    rows = "".join(f"| {key} | {v} |\n" for key, v in facts.items() if key != "description")
    return f"""---
license: {LICENCE}
---
# {name}

{facts.get('description', '')}

It continues Go source, of the kind that the Go distribution holds, within a context of a few hundred tokens: it is a target or a draft for
tests, benches and first runs of grove. It follows no instructions, knows no package that the distribution has not, and what it
writes need not compile.

| | |
|---|---|
{rows}"""


def write_hf(ck, folder, name, facts):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(ck, os.path.join(folder, "model.safetensors"))
    names = dict(bos_token=bpe.SPECIALS[0], eos_token=bpe.SPECIALS[1], mask_token=bpe.SPECIALS[2], add_bos_token=True,
                 tokenizer_class="PreTrainedTokenizerFast", model_max_length=ck["cfg"]["ctx"])
    for file, what in (("config.json", config_json(ck)), ("tokenizer.json", tokenizer_json()), ("tokenizer_config.json", names), ("generation_config.json", SAMPLING)):
        with open(os.path.join(folder, file), "w") as f:
            json.dump(what, f, ensure_ascii=False, indent=1)
    with open(os.path.join(folder, "README.md"), "w") as f:
        f.write(card(name, facts))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoint")
    p.add_argument("name")
    p.add_argument("--gguf", help="file to write")
    p.add_argument("--hf", help="folder to write")
    p.add_argument("--facts", help="JSON object of what is to be known of the model")
    a = p.parse_args()
    ck = torch.load(a.checkpoint, map_location="cpu")
    facts = {}
    if a.facts:
        with open(a.facts) as f:
            facts = json.load(f)
    if a.gguf:
        write_gguf(ck, a.gguf, a.name, facts)
    if a.hf:
        write_hf(ck, a.hf, a.name, facts)


if __name__ == "__main__":
    main()
