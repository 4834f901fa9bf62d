"""Tensors in plain Python with derivatives, enough to run losses.py without PyTorch: for tests.

A number carries its derivatives with respect to all inputs (forward mode). A tensor is [rows][columns], [rows], or a scalar,
and has the methods of PyTorch's that losses.py uses, with the same names and meaning.
"""
import math


class Number:
    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def map(self, value, factor):
        return Number(value, [factor * s for s in self.slope])

    def __add__(self, o):
        return Number(self.value + o.value, [a + b for a, b in zip(self.slope, o.slope)])

    def __mul__(self, o):
        return Number(self.value * o.value, [a * o.value + self.value * b for a, b in zip(self.slope, o.slope)])

    def inverse(self):
        return self.map(1 / self.value, -1 / self.value ** 2)


class Tensor:
    dtype = float

    def __init__(self, data):
        self.data = data  # a Number, or a list of tensors

    def leaf(self):
        return isinstance(self.data, Number)

    def each(self, f):
        return Tensor(f(self.data)) if self.leaf() else Tensor([t.each(f) for t in self.data])

    def pair(self, o, f):
        """f of the elements of two tensors of one size, or of a tensor and a number or scalar."""
        if not isinstance(o, Tensor):
            return self.each(lambda a: f(a, a.map(o, 0.0)))
        if o.leaf():
            return self.each(lambda a: f(a, o.data))
        if len(self.data) != len(o.data):
            raise ValueError("forward: sizes differ")
        return Tensor([a.pair(b, f) for a, b in zip(self.data, o.data)])

    def flat(self):
        return [self.data] if self.leaf() else [x for t in self.data for x in t.flat()]

    @property
    def shape(self):
        return () if self.leaf() else (len(self.data),) + self.data[0].shape

    def __getitem__(self, i):
        return self.data[i]

    def __add__(self, o):
        return self.pair(o, lambda a, b: a + b)

    def __mul__(self, o):
        return self.pair(o, lambda a, b: a * b)

    def __neg__(self):
        return self * -1.0

    def __sub__(self, o):
        return self + -o

    def __truediv__(self, o):
        return self.pair(o, lambda a, b: a * b.inverse())

    def __gt__(self, o):
        return self.pair(o, lambda a, b: a.map(float(a.value > b.value), 0.0))

    def __ge__(self, o):
        return self.pair(o, lambda a, b: a.map(float(a.value >= b.value), 0.0))

    def to(self, dtype):
        return self

    def detach(self):
        return self.each(lambda a: a.map(a.value, 0.0))

    def exp(self):
        return self.each(lambda a: a.map(math.exp(a.value), math.exp(a.value)))

    def log(self):
        return self.each(lambda a: a.map(math.log(a.value), 1 / a.value))

    def sqrt(self):
        return self.each(lambda a: a.map(math.sqrt(a.value), 0.5 / math.sqrt(a.value) if a.value > 0 else 0.0))

    def relu(self):
        return self.each(lambda a: a.map(max(a.value, 0.0), float(a.value > 0)))

    def clamp(self, min):
        return self.each(lambda a: a if a.value >= min else a.map(min, 0.0))

    def sum(self, axis=None):
        if axis == -1 and not self.data[0].leaf():
            return Tensor([t.sum() for t in self.data])
        first, *rest = self.flat()
        for x in rest:
            first = first + x
        return Tensor(first)

    def mean(self):
        return self.sum() * (1 / len(self.flat()))

    def sort(self):
        return Tensor(sorted(self.data, key=lambda t: t.data.value)), None

    def log_softmax(self, axis):
        return Tensor([t - t.exp().sum().log() for t in self.data])


def tensor(rows, inputs, first=None):
    """A tensor of rows [n][m] among a number of inputs; with first, its elements are the inputs from there on."""
    at, out = first, []
    for row in rows:
        numbers = []
        for x in row:
            slope = [0.0] * inputs
            if first is not None:
                slope[at], at = 1.0, at + 1
            numbers.append(Tensor(Number(float(x), slope)))
        out.append(Tensor(numbers))
    return Tensor(out)
