"""Reads and writes files of safetensors by NumPy alone.

A file is refused, by ValueError, where it is cut off, its header is no object of tensors, or a tensor's type, shape and place contradict
each other. What is read is mapped, not copied.
"""
import json
import os
import struct

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
LONGEST = 100 << 20  # bytes of a header


def header(path):
    """The header of a file, and where its tensors begin."""
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        first = f.read(8)
        n = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        if 8 + n > size or n > LONGEST:
            raise ValueError(f"tensors: {path}: {size} bytes; the header is cut off or is none")
        try:
            head = json.loads(f.read(n))
        except ValueError as e:
            raise ValueError(f"tensors: {path}: the header is not JSON: {e}") from e
    if not isinstance(head, dict):
        raise ValueError(f"tensors: {path}: the header is no object")
    return head, 8 + n


def read(path):
    """A file's metadata, and its tensors by name."""
    head, at = header(path)
    meta, out = head.pop("__metadata__", {}), {}
    for name, t in head.items():
        try:
            kind, shape, (first, end) = np.dtype(TYPES[t["dtype"]]), tuple(t["shape"]), t["data_offsets"]
            right = all(isinstance(n, int) and n >= 0 for n in (*shape, first, end))
        except (KeyError, TypeError, ValueError) as e:
            raise ValueError(f"tensors: {path}: {name}: no tensor of a type that is read ({', '.join(TYPES)})") from e
        size = int(np.prod([1, *shape], dtype=object)) * kind.itemsize if right else -1
        if size != end - first or at + end > os.path.getsize(path):
            raise ValueError(f"tensors: {path}: {name}: shape {list(shape)}, and bytes {first} to {end}: cut off, or not of this shape")
        out[name] = np.memmap(path, kind, "r", at + first, shape) if size else np.zeros(shape, kind)
    return meta, out


def write(path, tensors, meta):
    """Writes tensors by name, with metadata of names and texts."""
    head, offset = {"__metadata__": {k: str(v) for k, v in meta.items()}}, 0
    for name, t in tensors.items():
        head[name] = dict(dtype=NAMES[t.dtype], shape=list(t.shape), data_offsets=[offset, offset + t.nbytes])
        offset += t.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".new", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(np.ascontiguousarray(t).tobytes())
    os.replace(path + ".new", path)
