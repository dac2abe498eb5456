"""An .espdl file written field by field, as espressif/esp-dl's espdl.fbs numbers them."""

from __future__ import annotations

import math
import struct

import flatbuffers
import numpy as np

TYPES = {"int8": 3, "int16": 5, "int32": 6, "int64": 7}


class EspDl:
    """Nodes and tensors of a model under construction."""

    def __init__(self):
        self.build = flatbuffers.Builder(1024)
        self.nodes, self.stored, self.values = [], [], {}

    def table(self, fields):
        """Fields by number: ("offset", place) or (form, number, default)."""
        self.build.StartObject(18)
        for number, (kind, value) in fields.items():
            if kind == "offset":
                self.build.PrependUOffsetTRelativeSlot(number, value, 0)
            elif kind == "struct":
                self.build.Prep(8, 8)
                self.build.PrependInt64(value)
                self.build.PrependStructSlot(number, self.build.Offset(), 0)
            else:
                getattr(self.build, f"Prepend{kind}Slot")(number, value, 0)
        return self.build.EndObject()

    def offsets(self, places):
        self.build.StartVector(4, len(places), 4)
        for place in reversed(places):
            self.build.PrependUOffsetTRelative(place)
        return self.build.EndVector()

    def numbers(self, values):
        return self.build.CreateNumpyVector(np.asarray(values, np.int64))

    def texts(self, names):
        return self.offsets([self.build.CreateString(name) for name in names])

    def value(self, name, shape, dtype="int8", exponents=(-7,)):
        sizes = [self.table({0: ("offset", self.table({1: ("Int64", size)}))}) for size in shape]
        kind = self.table({0: ("Int32", TYPES[dtype]), 1: ("offset", self.table(
            {0: ("offset", self.offsets(sizes))}))})
        self.values[name] = self.table({
            0: ("offset", self.build.CreateString(name)), 3: ("offset", self.numbers(exponents)),
            1: ("offset", self.table({0: ("Uint8", 1), 1: ("offset", kind)}))})
        return name

    def constant(self, name, shape, dtype="int8"):
        size = math.prod(shape) * np.dtype(dtype).itemsize
        blocks = -(-size // 16)
        self.build.StartVector(16, blocks, 16)
        for number in reversed(range(16 * blocks)):
            self.build.PrependByte(number % 100 + 1)
        raw = self.build.EndVector(blocks)
        self.stored.append(self.table({
            0: ("offset", self.numbers(shape)), 1: ("Int32", TYPES[dtype]),
            6: ("offset", self.build.CreateString(name)), 8: ("offset", raw),
            13: ("offset", self.numbers([-7]))}))
        return name

    def node(self, op, inputs, made, **attributes):
        found = []
        for name, value in attributes.items():
            text = self.build.CreateString(name)
            kind = {int: (2, 5, "struct"), str: (3, 6, "offset"), list: (7, 11, "offset")}[
                type(value)]
            if isinstance(value, str):
                value = self.build.CreateString(value)
            elif isinstance(value, list):
                value = self.numbers(value)
            found.append(self.table({0: ("offset", text), 3: ("Int32", kind[0]),
                                     kind[1]: (kind[2], value)}))
        self.nodes.append(self.table({
            0: ("offset", self.texts(inputs)), 1: ("offset", self.texts(made)),
            3: ("offset", self.build.CreateString(op)), 5: ("offset", self.offsets(found))}))

    def finish(self, inputs, outputs):
        """Return the file."""
        first, last = ([self.values[name] for name in names] for names in (inputs, outputs))
        rest = [place for name, place in self.values.items() if name not in (*inputs, *outputs)]
        parts = {0: self.nodes, 2: self.stored, 4: first, 5: last, 6: rest}
        graph = self.table({number: ("offset", self.offsets(places))
                            for number, places in parts.items()})
        self.build.Finish(self.table({7: ("offset", graph)}))
        content = bytes(self.build.Output())
        return b"EDL2" + struct.pack("<II4x", 0, len(content)) + content


def small_model():
    """Return a model with a node of most kinds."""
    model = EspDl()
    shapes = {"image": (1, 8, 8, 3), "a": (1, 8, 8, 24), "b": (1, 4, 4, 24), "c": (1, 4, 4, 24),
              "d": (1, 4, 4, 8), "e": (1, 4, 4, 16), "f": (1, 4, 4, 24), "g": (1, 1, 1, 24),
              "h": (1, 1, 24, 1), "i": (1, 24), "out": (1, 10)}
    for name, shape in shapes.items():
        model.value(name, shape)
    model.constant("w0", (3, 3, 3, 24))
    model.constant("b0", (24,), "int32")
    model.constant("w1", (3, 3, 24, 1))
    model.constant("slopes", (24, 1, 1))
    model.constant("w2", (1, 1, 24, 10))
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    model.node("Conv", ["image", "w0", "b0"], ["a"], group=1, strides=[1, 1], activation="Relu",
               **window)
    model.node("Conv", ["a", "w1"], ["b"], group=24, strides=[2, 2], activation="Linear", **window)
    model.node("PRelu", ["b", "slopes"], ["c"])
    model.node("Split", ["c"], ["d", "e"], axis=3)
    model.node("Concat", ["d", "e"], ["f"], axis=3)
    model.node("GlobalAveragePool", ["f"], ["g"])
    model.node("Transpose", ["g"], ["h"], perm=[0, 3, 1, 2])
    model.node("Flatten", ["h"], ["i"], axis=1)
    model.node("Gemm", ["i", "w2"], ["out"], activation="Linear")
    return model
