"""Takes the tensors out of a pickle of PyTorch (.pt, .bin) and writes them as safetensors. Needs Python alone.

    python3 lab/train/unpickle.py FILE... OUT.safetensors

Of several files, which are one model, the names of tensors begin with the name of their file, without its ending.
A pickle is a program for a machine with a stack, which may call anything that Python can import. This reader is such a machine that can do
nothing but put texts, numbers, lists, dictionaries and tensors together: it imports nothing by name, calls nothing, and ends at the first
instruction or name that it does not know. The tensors' bytes are copied as they are.
"""
import argparse
import collections
import io
import itertools
import json
import os
import pickletools
import struct
import sys
import zipfile

MAX_PROGRAM = 64 << 20  # bytes of data.pkl
MAX_NAMES = 1 << 16     # of tensors and all else: dictionaries may share what is in them
MAX_COPIES = 16         # output bytes for a byte of the file: tensors may share their storage

# The names of storages, and what safetensors calls their elements.
STORAGES = {
    "DoubleStorage": ("F64", 8), "FloatStorage": ("F32", 4), "HalfStorage": ("F16", 2), "BFloat16Storage": ("BF16", 2), "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4), "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1), "ByteStorage": ("U8", 1), "BoolStorage": ("BOOL", 1),
}

Global = collections.namedtuple("Global", "name")
Storage = collections.namedtuple("Storage", "type size key elements")
Tensor = collections.namedtuple("Tensor", "storage offset shape strides")

REBUILD, PARAMETER, ORDERED = (Global(n) for n in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter", "collections.OrderedDict"))
KNOWN = {REBUILD, PARAMETER, ORDERED} | {Global("torch." + n) for n in STORAGES}

MARK = object()

CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
LITERALS = {"BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class Refused(Exception):
    """Says what is in a file that this reader does not do."""


class Machine:
    """Runs the instructions of a pickle that put data together, and refuses all others."""

    def __init__(self):
        self.stack, self.memo = [], {}

    def run(self, program):
        for op, arg, _ in pickletools.genops(program):
            if op.name == "STOP":
                return self.pop()
            self.step(op.name, arg)
        raise Refused("the program has no end")

    def pop(self):
        if not self.stack or self.stack[-1] is MARK:
            raise Refused("an instruction finds nothing to work on")
        return self.stack.pop()

    def since_mark(self):
        items = []
        while self.stack:
            item = self.stack.pop()
            if item is MARK:
                return items[::-1]
            items.append(item)
        raise Refused("an instruction finds no mark")

    def top(self, kind):
        if not self.stack or type(self.stack[-1]) is not kind:
            raise Refused(f"an instruction finds no {kind.__name__} to add to")
        return self.stack[-1]

    def step(self, op, arg):
        if op in ("PROTO", "FRAME"):
            return
        if op == "MARK":
            self.stack.append(MARK)
        elif op in CONSTANTS:
            self.stack.append(CONSTANTS[op])
        elif op in LITERALS:
            self.stack.append(arg)
        elif op in EMPTY:
            self.stack.append(EMPTY[op]())
        elif op in TUPLES:
            self.stack.append(tuple(reversed([self.pop() for _ in range(TUPLES[op])])))
        elif op == "TUPLE":
            self.stack.append(tuple(self.since_mark()))
        elif op in ("GLOBAL", "STACK_GLOBAL"):
            self.named(arg if op == "GLOBAL" else None)
        elif op == "BINPERSID":
            self.stack.append(storage(self.pop()))
        elif op == "REDUCE":
            arguments = self.pop()
            self.stack.append(call(self.pop(), arguments))
        elif op == "BUILD":
            self.pop()  # attributes of a dictionary, such as the versions of modules
            self.top(dict)
        else:
            self.collect(op, arg)

    def collect(self, op, arg):
        """Does the instructions that fill dictionaries, lists and the memo."""
        if op in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            if not self.stack or self.stack[-1] is MARK:
                raise Refused("an instruction keeps nothing")
            self.memo[len(self.memo) if op == "MEMOIZE" else arg] = self.stack[-1]
        elif op in ("BINGET", "LONG_BINGET"):
            if arg not in self.memo:
                raise Refused(f"value {arg} was never kept")
            self.stack.append(self.memo[arg])
        elif op in ("SETITEM", "SETITEMS"):
            items = self.since_mark() if op == "SETITEMS" else [self.pop(), self.pop()][::-1]
            if len(items) % 2 or not all(type(k) in (str, int) for k in items[::2]):
                raise Refused("a dictionary has keys that are neither texts nor integers")
            self.top(dict).update(zip(items[::2], items[1::2]))
        elif op in ("APPEND", "APPENDS"):
            items = self.since_mark() if op == "APPENDS" else [self.pop()]
            self.top(list).extend(items)
        else:
            raise Refused(f"instruction {op} is not one that puts tensors together")

    def named(self, arg):
        """Pushes a name, which must be one of those that stand for tensors. Nothing is imported."""
        if arg is None:
            name, module = self.pop(), self.pop()
            if type(name) is not str or type(module) is not str:
                raise Refused("a name is no text")
        else:
            module, _, name = arg.partition(" ")
        known = Global(f"{module}.{name}")
        if known not in KNOWN:
            raise Refused(f"it names {known.name[:80]!r}, which is no part of a tensor")
        self.stack.append(known)


def counts(values, what):
    """Checks a tuple of integers that are not negative."""
    if type(values) is not tuple or len(values) > 8 or not all(type(n) is int and 0 <= n < 1 << 48 for n in values):
        raise Refused(f"{what} of a tensor is not of a few integers that are not negative")
    return values


def storage(identity):
    """The storage of a persistent id."""
    if type(identity) is not tuple or len(identity) != 5 or identity[0] != "storage" or type(identity[1]) is not Global or type(identity[2]) is not str:
        raise Refused("a persistent id is no storage's")
    kind = STORAGES.get(identity[1].name.rpartition(".")[2])
    if kind is None or identity[1] not in KNOWN:
        raise Refused(f"a storage has type {identity[1].name}")
    counts((identity[4],), "the size")
    return Storage(kind[0], kind[1], identity[2], identity[4])


def call(function, arguments):
    """What a call would have made, of the three that are known."""
    if type(arguments) is not tuple:
        raise Refused("the arguments of a call are no tuple")
    if function == ORDERED and not arguments:
        return {}
    if function == PARAMETER and arguments and type(arguments[0]) is Tensor:
        return arguments[0]
    if function == REBUILD and len(arguments) >= 4 and type(arguments[0]) is Storage:
        held, offset, shape, strides = arguments[:4]
        counts((offset,), "the offset"), counts(shape, "the shape"), counts(strides, "the strides")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
        if len(shape) != len(strides) or 0 not in shape and last >= held.elements or elements(shape) > held.elements:
            raise Refused(f"a tensor of shape {shape}, strides {strides} and offset {offset} is not inside its storage of {held.elements} elements")
        return Tensor(held, offset, shape, strides)
    raise Refused(f"a call of {getattr(function, 'name', type(function).__name__)} with {len(arguments)} arguments")


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def flat(value):
    """The tensors of nested dictionaries by their names with dots between, and the names of all else."""
    tensors, others, left, names = {}, [], [("", value, 0)], 0
    while left:
        prefix, value, depth = left.pop()
        for key, v in value.items():
            name, names = f"{prefix}{key}", names + 1
            if type(v) is dict:
                left.append((name + ".", v, depth + 1))
            elif type(v) is not Tensor:
                others.append(name)
            elif name in tensors or name == "__metadata__":
                raise Refused(f"two tensors are called {name[:80]!r}, or one has a reserved name")
            else:
                tensors[name] = v
            if depth >= 16 or names > MAX_NAMES:
                raise Refused(f"dictionaries are nested more than 16 deep, or hold more than {MAX_NAMES} names")
    return tensors, others


class Archive:
    """The zip file of a pickle: its program, and the bytes of its storages."""

    def __init__(self, path):
        with open(path, "rb") as f:
            first = f.read(4)
        if first != b"PK\x03\x04":
            raise Refused("it is no zip file; before version 1.6 PyTorch wrote others: load such a file with PyTorch and save it again")
        self.size, self.zip = os.path.getsize(path), zipfile.ZipFile(path)
        programs = [n for n in self.zip.namelist() if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(programs) != 1:
            raise Refused(f"it has {len(programs)} programs data.pkl; a pickle of PyTorch has one")
        self.root = programs[0][:-len("data.pkl")]
        if self.root + "byteorder" in self.zip.namelist() and self.read(self.root + "byteorder", 16) != b"little":
            raise Refused("its numbers are not little-endian")
        self.program = self.read(programs[0], MAX_PROGRAM)

    def info(self, name):
        try:
            info = self.zip.getinfo(name)
        except KeyError:
            raise Refused(f"its part {name[:80]!r} is missing") from None
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size > self.size:
            raise Refused(f"its part {name[:80]!r} is compressed or encrypted, which PyTorch does not do")
        return info

    def read(self, name, limit):
        if self.info(name).file_size > limit:
            raise Refused(f"its part {name[:80]!r} takes more than {limit} bytes")
        return self.zip.read(name)

    def copy(self, t, out):
        """Writes the bytes of a tensor."""
        held, name = t.storage, f"{self.root}data/{t.storage.key}"
        if self.info(name).file_size != held.elements * held.size:
            raise Refused(f"its part {name[:80]!r} has {self.info(name).file_size} bytes; {held.elements} elements of {held.type} take {held.elements * held.size}")
        if not contiguous(t):
            out.write(gathered(t, self.zip.read(name)))
            return
        left = elements(t.shape) * held.size
        with self.zip.open(name) as f:
            f.seek(t.offset * held.size)
            while left > 0:
                part = f.read(min(left, 1 << 20))
                if not part:
                    raise Refused(f"its part {name[:80]!r} is cut off")
                out.write(part)
                left -= len(part)


def contiguous(t):
    """Whether the elements of a tensor lie one behind the other."""
    want = 1
    for n, s in zip(reversed(t.shape), reversed(t.strides)):
        if n != 1 and s != want:
            return elements(t.shape) == 0
        want *= n
    return True


def gathered(t, data):
    """The bytes of a tensor whose elements lie apart, such as a transposed matrix."""
    out, size = io.BytesIO(), t.storage.size
    for at in itertools.product(*(range(n) for n in t.shape)):
        i = (t.offset + sum(a * s for a, s in zip(at, t.strides))) * size
        out.write(data[i:i + size])
    return out.getvalue()


def convert(sources, target):
    """Writes the tensors of a file, or of several, to target; returns their number and the names of what is left out."""
    sources = [sources] if isinstance(sources, str) else sources
    tensors, others = {}, []
    for source in sources:
        if os.path.exists(target) and os.path.samefile(source, target):
            raise Refused("the new file is the old one")
        archive = Archive(source)
        value = Machine().run(archive.program)
        if type(value) is not dict:
            raise Refused("it holds no dictionary of tensors")
        found, left = flat(value)
        if not found:
            raise Refused("it holds no tensors")
        size = sum(elements(t.shape) * t.storage.size for t in found.values())
        if size > MAX_COPIES * archive.size:
            raise Refused(f"its tensors take {size} bytes, more than {MAX_COPIES} times the file: they share their storages")
        root = os.path.splitext(os.path.basename(source))[0] + "." if len(sources) > 1 else ""
        if any(root + n in tensors for n in found):
            raise Refused("another file of the same name has the same tensors")
        tensors.update({root + n: (archive, t) for n, t in found.items()})
        others += [root + n for n in left]
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        t = tensors[name][1]
        size = elements(t.shape) * t.storage.size
        header[name] = {"dtype": t.storage.type, "shape": list(t.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = target + ".incomplete"
    try:
        with open(part, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for name in sorted(tensors):
                archive, t = tensors[name]
                archive.copy(t, out)
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)
    return len(tensors), others


def main():
    parser = argparse.ArgumentParser(description="Takes the tensors out of a pickle of PyTorch, without running it, and writes them as safetensors.")
    parser.add_argument("file", nargs="+", help="a file of torch.save, such as medusa_lm_head.pt or pytorch_model.bin")
    parser.add_argument("out", help="the safetensors file to write")
    args = parser.parse_args()
    try:
        count, others = convert(args.file, args.out)
    except (Refused, OSError, ValueError, zipfile.BadZipFile) as e:
        sys.exit(f"unpickle: {' '.join(args.file)}: {e}")
    for name in others:
        print(f"unpickle: {name} is no tensor and is left out", file=sys.stderr)
    print(f"unpickle: {args.out}: {count} tensors", file=sys.stderr)


if __name__ == "__main__":
    main()
