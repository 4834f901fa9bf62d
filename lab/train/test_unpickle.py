"""Tests of unpickle.py, on pickles that are made by hand, instruction by instruction. `python3 -m unittest` here runs them."""
import json
import os
import struct
import tempfile
import unittest
import zipfile

import unpickle


def name(module, attribute):
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def text(s):
    return b"X" + struct.pack("<I", len(s.encode())) + s.encode()


def integer(n):
    return b"J" + struct.pack("<i", n)


def pair(*items):
    return b"(" + b"".join(items) + b"t"


def dictionary(**items):
    return b"}(" + b"".join(text(k.replace("__", ".")) + v for k, v in items.items()) + b"u"


ORDERED = name("collections", "OrderedDict") + b")R"


def tensor(kind, key, elements, offset, shape, strides):
    held = pair(text("storage"), name("torch", kind), text(key), text("cpu"), integer(elements)) + b"Q"
    numbers = [pair(*map(integer, x)) for x in (shape, strides)]
    return name("torch._utils", "_rebuild_tensor_v2") + pair(held, integer(offset), *numbers, b"\x89", ORDERED) + b"R"


def doubled(levels, times):
    """A dictionary that holds one dictionary many times, which holds one many times, and so on."""
    program = b"}q\x00"
    for level in range(levels):
        program += b"}(" + b"".join(text(str(i)) + b"h" + bytes([level]) for i in range(times)) + b"uq" + bytes([level + 1])
    return program


SIX = struct.pack("<6f", 0, 1, 2, 3, 4, 5)


class Unpickle(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, "out.safetensors")

    def pickle(self, program, compression=zipfile.ZIP_STORED, **storages):
        """Writes a file as torch.save does."""
        path = os.path.join(self.dir.name, "in.pt")
        with zipfile.ZipFile(path, "w", compression) as z:
            z.writestr("archive/data.pkl", b"\x80\x02" + program + b".")
            z.writestr("archive/byteorder", storages.pop("byteorder", b"little"))
            for key, data in storages.items():
                z.writestr(f"archive/data/{key.lstrip('_')}", data)
        return path

    def tensors(self):
        with open(self.out, "rb") as f:
            data = f.read()
        n = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + n])
        header.pop("__metadata__")
        return {k: (v["dtype"], v["shape"], data[8 + n:][v["data_offsets"][0]:v["data_offsets"][1]]) for k, v in header.items()}

    def refused(self, path, reason):
        with self.assertRaisesRegex((unpickle.Refused, ValueError), reason):
            unpickle.convert(path, self.out)
        self.assertEqual([n for n in os.listdir(self.dir.name) if n != "in.pt"], [])

    def test_tensors(self):
        program = dictionary(
            a__weight=tensor("FloatStorage", "0", 6, 0, (2, 3), (3, 1)),                                               # all of a storage
            a__row=tensor("FloatStorage", "0", 6, 3, (3,), (1,)),                                                      # a part of it
            a__turned=tensor("FloatStorage", "0", 6, 0, (3, 2), (1, 3)),                                               # columns for rows
            d2t=name("torch._utils", "_rebuild_parameter") + pair(tensor("LongStorage", "1", 2, 0, (2,), (1,)), b"\x89", ORDERED) + b"R",
            t2d=tensor("BoolStorage", "2", 3, 0, (3,), (1,)),
            half=tensor("BFloat16Storage", "3", 1, 0, (1, 1), (7, 9)),                                                 # strides that do not count
            inside=ORDERED + text("x") + tensor("FloatStorage", "0", 6, 5, (), ()) + b"s" + b"}" + text("_metadata") + ORDERED + b"s" + b"b",
            epoch=integer(3),
        )
        path = self.pickle(program, _0=SIX, _1=struct.pack("<2q", 7, -1), _2=b"\1\0\1", _3=b"\x80\x3f")
        self.assertEqual(unpickle.convert(path, self.out), (7, ["epoch"]))
        self.assertEqual(self.tensors(), {
            "a.weight": ("F32", [2, 3], SIX), "a.row": ("F32", [3], SIX[12:]), "a.turned": ("F32", [3, 2], struct.pack("<6f", 0, 3, 1, 4, 2, 5)),
            "d2t": ("I64", [2], struct.pack("<2q", 7, -1)), "t2d": ("BOOL", [3], b"\1\0\1"), "half": ("BF16", [1, 1], b"\x80\x3f"),
            "inside.x": ("F32", [], SIX[20:]),
        })

    def test_hostile(self):
        marker = os.path.join(self.dir.name, "ran")
        command = pair(text(f"touch {marker}"))
        one = tensor("FloatStorage", "0", 6, 0, (2, 3), (3, 1))
        cases = {
            "a command": (name("os", "system") + command + b"R", "it names 'os.system', which is no part of a tensor"),
            "a command behind a tensor": (dictionary(a=one, b=name("posix", "system") + command + b"R"), "it names 'posix.system'"),
            "a name from the stack": (text("builtins") + text("eval") + b"\x93" + command + b"R", "it names 'builtins.eval'"),
            "another name of torch": (name("torch", "load") + command + b"R", "it names 'torch.load'"),
            "an instance": (b"(" + text("x") + b"ios\nsystem\n", "instruction INST"),
            "an object": (b"(" + name("torch", "FloatStorage") + text("x") + b"o", "instruction OBJ"),
            "an extension": (b"\x82\x01", "instruction EXT1"),
            "a call of a storage": (name("torch", "FloatStorage") + command + b"R", "a call of torch.FloatStorage"),
            "a call of a text": (text("x") + command + b"R", "a call of str"),
            "attributes of a tensor": (one + b"}b", "finds no dict"),
            "nothing on the stack": (b"R", "nothing to work on"),
            "no mark": (b"t", "finds no mark"),
            "a value that was not kept": (b"h\x07", "value 7 was never kept"),
            "no dictionary": (one, "no dictionary of tensors"),
            "no tensors": (b"}", "no tensors"),
            "beyond the storage": (dictionary(a=tensor("FloatStorage", "0", 6, 1, (2, 3), (3, 1))), "is not inside its storage of 6 elements"),
            "more than the storage": (dictionary(a=tensor("FloatStorage", "0", 6, 0, (1 << 20, 1 << 20), (0, 0))), "is not inside its storage"),
            "a negative stride": (dictionary(a=tensor("FloatStorage", "0", 6, 0, (2,), (-1,))), "the strides of a tensor is not"),
            "a shape of texts": (dictionary(a=name("torch._utils", "_rebuild_tensor_v2") + pair(pair(text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), integer(6)) + b"Q", integer(0), text("x"), text("y")) + b"R"), "the shape of a tensor is not"),
            "a storage that is not there": (dictionary(a=tensor("FloatStorage", "9", 6, 0, (6,), (1,))), "is missing"),
            "a storage of another size": (dictionary(a=tensor("FloatStorage", "0", 7, 0, (7,), (1,))), "has 24 bytes"),
            "a storage of no known type": (dictionary(a=tensor("QInt8Storage", "0", 6, 0, (6,), (1,))), "it names 'torch.QInt8Storage'"),
            "a path for a storage": (dictionary(a=tensor("FloatStorage", "../../gopher/data.pkl", 6, 0, (6,), (1,))), "is missing"),
            "a reserved name": (b"}" + text("__metadata__") + one + b"s", "a reserved name"),
            "dictionaries without end": (b"}q\x01" + text("a") + b"h\x01s", "nested more than 16 deep"),
            "dictionaries many times over": (doubled(15, 64), "hold more than 65536 names"),
            "no end": (b"\x94" * 3, "keeps nothing"),
        }
        for case, (program, reason) in cases.items():
            with self.subTest(case):
                self.refused(self.pickle(program, _0=SIX), reason)
                self.assertFalse(os.path.exists(marker))

    def test_files(self):
        one = dictionary(a=tensor("FloatStorage", "0", 6, 0, (2, 3), (3, 1)))
        path = os.path.join(self.dir.name, "in.pt")
        self.refused(self.pickle(one, _0=SIX, compression=zipfile.ZIP_DEFLATED), "is compressed")
        self.refused(self.pickle(one, _0=SIX, byteorder=b"big"), "not little-endian")
        many = dictionary(**{f"t{i}": tensor("FloatStorage", "0", 4096, 0, (4096,), (1,)) for i in range(40)})
        self.refused(self.pickle(many, _0=bytes(16384)), "they share their storages")
        with open(path, "wb") as f:
            f.write(b"\x80\x02cos\nsystem\n(X\x01\0\0\0xtR.")
        self.refused(path, "it is no zip file")
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("readme", "x")
        self.refused(path, "0 programs data.pkl")
        self.refused(self.pickle(one[:20], _0=SIX), "no newline found")

    def test_several(self):
        """Files of one model, as Chimera's: names begin with those of their files."""
        files = [os.path.join(self.dir.name, n) for n in ("trimlp.pt", "chimera_head.pt")]
        for i, path in enumerate(files):
            os.rename(self.pickle(dictionary(**{"0__weight": tensor("FloatStorage", "0", 6, 0, (2 + i, 3 - i), (3 - i, 1)), "left": integer(3)}), _0=SIX), path)
        self.assertEqual(unpickle.convert(files, self.out), (2, ["trimlp.left", "chimera_head.left"]))
        self.assertEqual(self.tensors(), {"trimlp.0.weight": ("F32", [2, 3], SIX), "chimera_head.0.weight": ("F32", [3, 2], SIX)})
        with self.assertRaisesRegex(unpickle.Refused, "the same tensors"):
            unpickle.convert([files[0], files[0]], self.out)

    def test_same_file(self):
        path = self.pickle(dictionary(a=tensor("FloatStorage", "0", 6, 0, (6,), (1,))), _0=SIX)
        with self.assertRaisesRegex(unpickle.Refused, "the new file is the old one"):
            unpickle.convert(path, path)


if __name__ == "__main__":
    unittest.main()
