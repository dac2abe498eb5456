"""Networks people deploy, small, written node by node as PyTorch exports them to ONNX.

`Export` keeps the file's values; `quantised` puts a pair of quantisers behind every value and
before every weight, as onnxruntime's static quantisation does.
"""

import numpy as np
from made_onnx import TensorProto, helper, numpy_helper, onnx


class Export:
    """Nodes and constants under construction; methods return the name of what they make."""

    def __init__(self, shape, opset=17):
        self.nodes, self.constants, self.opset = [], {}, opset
        self.input, self.random = (("x", list(shape))), np.random.default_rng(1)

    def op(self, kind, *inputs, outputs=1, **attributes):
        made = [f"{kind}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, **attributes))
        return made[0] if outputs == 1 else made

    def const(self, values, dtype=None):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def weights(self, *shape):
        fan = np.prod(shape[1:]) if len(shape) > 1 else 1
        return self.const(self.random.normal(0, fan ** -0.5, shape), np.float32)

    def conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1, bias=False):
        pads = [kernel // 2] * 4
        more = [self.weights(outputs)] if bias else []
        return self.op("Conv", x, self.weights(outputs, inputs // groups, kernel, kernel), *more,
                       pads=pads, strides=[stride, stride], group=groups)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def block(self, x, inputs, outputs, kernel=1, stride=1, groups=1):
        """Convolution, normalisation folded, SiLU."""
        return self.silu(self.conv(x, inputs, outputs, kernel, stride, groups, bias=True))

    def linear(self, x, inputs, outputs):
        return self.op("Add", self.weights(outputs), self.op(
            "MatMul", x, self.weights(inputs, outputs)))

    def layer_norm(self, x, width):
        """As opset 16 and below spell it."""
        mean = self.op("ReduceMean", x, axes=[-1])
        apart = self.op("Sub", x, mean)
        square = self.op("Pow", apart, self.const(2.0, np.float32))
        spread = self.op("ReduceMean", square, axes=[-1])
        root = self.op("Sqrt", self.op("Add", spread, self.const(1e-5, np.float32)))
        scaled = self.op("Mul", self.op("Div", apart, root), self.weights(width))
        return self.op("Add", scaled, self.weights(width))

    def gelu(self, x):
        inner = self.op("Erf", self.op("Div", x, self.const(np.sqrt(2), np.float32)))
        twice = self.op("Mul", x, self.op("Add", inner, self.const(1.0, np.float32)))
        return self.op("Mul", twice, self.const(0.5, np.float32))

    def write(self, path, output, rank=3, quantised=False):
        nodes, constants, known = _quantise(self) if quantised else (
            self.nodes, self.constants, {})
        graph = helper.make_graph(
            nodes, "made", [helper.make_tensor_value_info(self.input[0], 1, self.input[1])],
            [helper.make_tensor_value_info(known.get(output, output), TensorProto.FLOAT,
                                           ["n"] * rank)],
            [numpy_helper.from_array(values, name) for name, values in constants.items()])
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", self.opset)]), path)
        return path


def _quantise(export):
    """Quantise float weights, the input and every float result to int8."""
    nodes, constants = [], dict(export.constants)
    constants |= {"scale": np.float32(0.05), "zero": np.int8(0)}
    known, whole = {}, {name for name, values in constants.items() if values.dtype != np.float32}

    def pair(name):
        made = f"{name}_dequantised"
        nodes.append(helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [made]))
        return made

    for name, values in export.constants.items():
        if values.dtype == np.float32:
            constants[f"{name}_q"] = np.clip(np.rint(values / 0.05), -127, 127).astype(np.int8)
            known[name] = f"{name}_dequantised"
            nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"],
                                          [known[name]]))
    known["x"] = pair("x")
    for node in export.nodes:
        integers = node.op_type == "Shape" or all(name in whole for name in node.input if name)
        # Scales and bounds are no data: quantisers leave them alone.
        alone = 1 if node.op_type in ("Resize", "Clip") else len(node.input)
        copy = helper.make_node(node.op_type, [
            known.get(name, name) if place < alone else name
            for place, name in enumerate(node.input)], list(node.output))
        copy.attribute.extend(node.attribute)
        nodes.append(copy)
        for name in node.output:
            if integers:
                whole.add(name)
            else:
                known[name] = pair(name)
    return nodes, constants, known


def yolo_v8(quantised, path, width=8, size=64, classes=2):
    """C2f blocks, pyramid pooling, nearest enlarging, box distributions as in YOLOv8n."""
    net = Export((1, 3, size, size))
    c = [width * 2 ** n for n in range(3)]

    def c2f(x, inputs, outputs, shortcut=True):
        half = outputs // 2
        parts = net.op("Split", net.block(x, inputs, outputs), net.const([half, half], np.int64),
                       outputs=2, axis=1)
        inner = net.block(net.block(parts[1], half, half, 3), half, half, 3)
        last = net.op("Add", parts[1], inner) if shortcut else inner
        return net.block(net.op("Concat", *parts, last, axis=1), 3 * half, outputs)

    x = net.block("x", 3, c[0], 3, 2)
    low = c2f(net.block(x, c[0], c[1], 3, 2), c[1], c[1])
    deep = c2f(net.block(low, c[1], c[2], 3, 2), c[2], c[2])
    pooled = [net.block(deep, c[2], c[1])]
    for _ in range(3):
        pooled.append(net.op("MaxPool", pooled[-1], kernel_shape=[5, 5], pads=[2] * 4,
                             strides=[1, 1]))
    deep = net.block(net.op("Concat", *pooled, axis=1), 4 * c[1], c[2])
    scales = net.const([1, 1, 2, 2], np.float32)
    up = net.op("Resize", deep, "", scales, mode="nearest", nearest_mode="floor",
                coordinate_transformation_mode="asymmetric")
    low = c2f(net.op("Concat", up, low, axis=1), c[2] + c[1], c[1], shortcut=False)
    flat, places = [], 0
    for x, inputs, side in ((low, c[1], size // 4), (deep, c[2], size // 8)):
        boxes = net.conv(net.block(x, inputs, c[1], 3), c[1], 64, bias=True)
        scores = net.conv(net.block(x, inputs, c[1], 3), c[1], classes, bias=True)
        joined = net.op("Concat", boxes, scores, axis=1)
        flat.append(net.op("Reshape", joined, net.const([1, 64 + classes, -1], np.int64)))
        places += side * side
    whole = net.op("Concat", *flat, axis=2)
    boxes, scores = net.op("Split", whole, net.const([64, classes], np.int64), outputs=2, axis=1)
    spread = net.op("Reshape", boxes, net.const([1, 4, 16, places], np.int64))
    shares = net.op("Softmax", net.op("Transpose", spread, perm=[0, 2, 1, 3]), axis=1)
    mean = net.conv(shares, 16, 1)
    sides = net.op("Reshape", mean, net.const([1, 4, places], np.int64))
    cut = [net.op("Slice", sides, net.const([first], np.int64), net.const([first + 2], np.int64),
                  net.const([1], np.int64)) for first in (0, 2)]
    centres = net.const(np.ones((1, 2, places)), np.float32)
    first, last = net.op("Sub", centres, cut[0]), net.op("Add", cut[1], centres)
    middle = net.op("Div", net.op("Add", first, last), net.const(2.0, np.float32))
    found = net.op("Concat", middle, net.op("Sub", last, first), axis=1)
    found = net.op("Mul", found, net.const(np.full((1, places), 8.0), np.float32))
    return net.write(path, net.op("Concat", found, net.op("Sigmoid", scores), axis=1),
                     quantised=quantised)


def yolo_x(quantised, path, width=8, size=64, classes=3):
    """Focus by strided slices, depthwise blocks, decoupled heads, decoded boxes as in YOLOX."""
    net = Export((1, 3, size, size), opset=13)
    quarters = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x = "x"
        for axis, first in ((2, row), (3, column)):
            x = net.op("Slice", x, net.const([first], np.int64), net.const([2**31 - 1], np.int64),
                       net.const([axis], np.int64), net.const([2], np.int64))
        quarters.append(x)
    x = net.block(net.op("Concat", *quarters, axis=1), 12, width, 3)
    for _ in range(2):
        x = net.block(net.block(x, width, width, 3, 2, width), width, 2 * width)
        width *= 2
    heads = [net.conv(x, width, 4), net.op("Sigmoid", net.conv(x, width, 1)),
             net.op("Sigmoid", net.conv(x, width, classes))]
    whole = net.op("Concat", *heads, axis=1)
    count = net.op("Shape", whole)
    start = net.op("Slice", count, net.const([0], np.int64), net.const([2], np.int64))
    shape = net.op("Concat", start, net.const([-1], np.int64), axis=0)
    rows = net.op("Transpose", net.op("Reshape", whole, shape), perm=[0, 2, 1])
    side = (size // 8) ** 2
    parts = [net.op("Slice", rows, net.const([first], np.int64), net.const([last], np.int64),
                    net.const([2], np.int64)) for first, last in ((0, 2), (2, 4), (4, 99))]
    stride = net.const(np.full((1, side, 1), 8.0), np.float32)
    grid = net.const(np.ones((1, side, 2)), np.float32)
    centre = net.op("Mul", net.op("Add", parts[0], grid), stride)
    extent = net.op("Mul", net.op("Exp", parts[1]), stride)
    return net.write(path, net.op("Concat", centre, extent, parts[2], axis=2),
                     quantised=quantised)


def keyword_transformer(quantised, path, frames=20, width=16, heads=2):
    """A class token, attention, GELU and normalisations after each, as in KWT."""
    net = Export((1, frames, 10), opset=13)
    x = net.linear("x", 10, width)
    count = net.op("Gather", net.op("Shape", x), net.const(0, np.int64), axis=0)
    token = net.op("Concat", net.op("Unsqueeze", count, net.const([0], np.int64)),
                   net.const([1, width], np.int64), axis=0)
    expanded = net.op("Expand", net.weights(1, 1, width), token)
    x = net.op("Add", net.op("Concat", expanded, x, axis=1), net.weights(1, frames + 1, width))
    for _ in range(2):
        wide = net.linear(x, width, 3 * width)
        parts = net.op("Reshape", wide, net.const([1, frames + 1, 3, heads, width // heads],
                                                  np.int64))
        turned = net.op("Transpose", parts, perm=[2, 0, 3, 1, 4])
        query, key, value = (net.op("Gather", turned, net.const(place, np.int64), axis=0)
                             for place in range(3))
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net.op("Mul", scores, net.const(0.35, np.float32))
        mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
        mixed = net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                       net.const([1, frames + 1, width], np.int64))
        x = net.layer_norm(net.op("Add", net.linear(mixed, width, width), x), width)
        inner = net.linear(net.gelu(net.linear(x, width, 4 * width)), 4 * width, width)
        x = net.layer_norm(net.op("Add", inner, x), width)
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    return net.write(path, net.op("Gemm", first, net.weights(5, width), net.weights(5), transB=1),
                     rank=2, quantised=quantised)


def mcu_net(quantised, path, size=48):
    """Inverted bottlenecks with kernels of three, five and seven, as searches find them."""
    net = Export((1, 3, size, size))

    def activated(x):
        return net.op("Clip", x, net.const(0.0, np.float32), net.const(6.0, np.float32))

    x = activated(net.conv("x", 3, 8, 3, 2, bias=True))
    depth = 8
    for expansion, outputs, kernel, stride in ((1, 8, 3, 1), (4, 16, 7, 2), (3, 16, 5, 1),
                                               (5, 24, 7, 2), (4, 24, 5, 1)):
        inner = expansion * depth
        y = activated(net.conv(x, depth, inner, bias=True))
        y = activated(net.conv(y, inner, inner, kernel, stride, inner, bias=True))
        y = net.conv(y, inner, outputs, bias=True)
        x = net.op("Add", x, y) if stride == 1 and outputs == depth else y
        depth = outputs
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    return net.write(path, net.op("Gemm", x, net.weights(4, depth), net.weights(4), transB=1),
                     rank=2, quantised=quantised)


def deep_speech(quantised, path, steps=16, width=24):
    """Dense layers over frames, both directions of an LSTM, letters, as in Deep Speech."""
    net = Export((1, steps, 12))
    x = "x"
    for inputs, outputs in ((12, width), (width, width)):
        x = net.linear(x, inputs, outputs)
        x = net.op("Clip", x, net.const(0.0, np.float32), net.const(20.0, np.float32))
    turned = net.op("Transpose", x, perm=[1, 0, 2])
    made = [f"lstm_{number}" for number in range(3)]
    net.nodes.append(helper.make_node(
        "LSTM", [turned, net.weights(2, 4 * width, width), net.weights(2, 4 * width, width),
                 net.weights(2, 8 * width)], made, direction="bidirectional", hidden_size=width))
    joined = net.op("Reshape", net.op("Transpose", made[0], perm=[0, 2, 1, 3]),
                    net.const([0, 0, -1], np.int64))
    rows = net.op("Transpose", joined, perm=[1, 0, 2])
    return net.write(path, net.op("Softmax", net.linear(rows, 2 * width, 29), axis=-1),
                     quantised=quantised)


EXPORTS = {"yolo_v8": yolo_v8, "yolo_x": yolo_x, "keyword_transformer": keyword_transformer,
           "mcu_net": mcu_net, "deep_speech": deep_speech}
"""(quantised, path) -> path, by name."""
