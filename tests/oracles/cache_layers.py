"""Layers as a kernel library runs them, of any shape: access nests for tests and benchmarks."""

from __future__ import annotations

from hwmodels.kernel import Access, Guard, Loop, Operand


def load(operand, width_bytes, offset_bytes, *steps_bytes, guards=()):
    """A load."""
    return Access(operand=operand, write=False, width_bytes=width_bytes,
                  offset_bytes=offset_bytes, steps_bytes=steps_bytes, guards=guards)


def store(operand, width_bytes, offset_bytes, *steps_bytes, guards=()):
    """A store."""
    return Access(operand=operand, write=True, width_bytes=width_bytes,
                  offset_bytes=offset_bytes, steps_bytes=steps_bytes, guards=guards)


def loop(extent, *body):
    """A loop."""
    return Loop(extent=extent, body=body)


def place(base_address, **sizes_bytes):
    """Operands one behind the other; weights, bias and parameters in flash."""
    operands, addresses = [], {"sram": base_address, "flash": 0x0800_0000 + base_address % 4096}
    for name, size_bytes in sizes_bytes.items():
        memory = "flash" if name in ("weights", "bias") else "sram"
        operands.append(Operand(name=name, role=name, memory=memory,
                                address=addresses[memory], size_bytes=size_bytes))
        addresses[memory] += size_bytes
    return tuple(operands)


def make_conv(height, width, channels, outputs, window, stride, base_address=0x2400_0000):
    """Convolution: two columns of 16-bit im2col, then 2 x 2 blocks of outputs by words."""
    pad, depth = window // 2, window * window * channels
    rows, columns = -(-height // stride), -(-width // stride)
    pairs, rest = columns // 2, columns % 2
    row, pixel = width * channels, channels

    def column(shift, offset, *extra):
        # One pixel per byte; extra are the steps of the loop over pairs of output columns.
        guards = (Guard(steps=(stride, *[0] * len(extra), 1, 0, 0), offset=-pad, limit=height),
                  Guard(steps=(0, *[2 * stride] * len(extra), 0, 1, 0),
                        offset=shift * stride - pad, limit=width))
        start = -pad * row + (shift * stride - pad) * pixel
        step = (stride * row, *[2 * stride * pixel] * len(extra))
        still = (0,) * (1 + len(extra))
        return loop(window, loop(window, loop(
            channels,
            load("input", 1, start, *step, row, pixel, 1, guards=guards),
            store("scratch", 2, offset, *still, 2 * window * channels, 2 * channels, 2))))

    def matmul(lanes, *extra):
        outer = (0, *[0] * len(extra))
        words, tail = depth // 4, depth % 4
        place_of = (columns * outputs, *[2 * outputs] * len(extra))
        inner = [load("weights", 4, 0, *outer, depth, 4)]
        last = [load("weights", 1, 4 * words, *outer, depth, 1)]
        for lane in range(lanes):
            inner += [load("scratch", 4, lane * 2 * depth, *outer, 0, 8),
                      load("scratch", 4, lane * 2 * depth + 4, *outer, 0, 8)]
            last.append(load("scratch", 2, lane * 2 * depth + 8 * words, *outer, 0, 2))
        stores = [store("output", 1, lane * outputs + (0 if extra else 2 * pairs * outputs),
                        *place_of, 1) for lane in range(lanes)]
        return loop(outputs, load("bias", 4, 0, *outer, 4), loop(words, *inner),
                    loop(tail, *last), *stores)

    body = []
    if pairs:
        body.append(loop(pairs, column(0, 0, 1), column(1, 2 * depth, 1), matmul(2, 1)))
    if rest:
        body += [column(2 * pairs, 0), matmul(1)]
    return (loop(rows, *body),), place(
        base_address, input=height * row, output=rows * columns * outputs,
        scratch=4 * depth, weights=depth * outputs, bias=4 * outputs)


def make_pointwise(pixels, channels, outputs, base_address=0x2400_0000):
    """1 x 1 convolution: pairs of outputs over pairs of pixels, by words."""
    words = channels // 4
    nest = loop(
        outputs // 2, load("bias", 4, 0, 8), load("bias", 4, 4, 8),
        loop(pixels // 2,
             loop(words, load("weights", 4, 0, 2 * channels, 0, 4),
                  load("input", 4, 0, 0, 2 * channels, 4),
                  load("weights", 4, channels, 2 * channels, 0, 4),
                  load("input", 4, channels, 0, 2 * channels, 4)),
             *(store("output", 1, a + b * outputs, 2, 2 * outputs)
               for b in (0, 1) for a in (0, 1))))
    return (nest,), place(base_address, input=pixels * channels, output=pixels * outputs,
                          weights=channels * outputs, bias=4 * outputs)


def make_depthwise(height, width, channels, base_address=0x2400_0000):
    """Depthwise 3 x 3 with padding, four channels at a time."""
    row = width * channels
    taps = []
    for kx in range(3):
        guards = (Guard(steps=(1, 0, 0, 1), offset=-1, limit=height),
                  Guard(steps=(0, 1, 0, 0), offset=kx - 1, limit=width))
        taps += [load("input", 4, -row + (kx - 1) * channels, row, channels, 4, row,
                      guards=guards),
                 load("weights", 4, kx * channels, 0, 0, 4, 3 * channels, guards=guards)]
    nest = loop(height, loop(width, loop(
        channels // 4, load("bias", 8, 0, 0, 0, 16), load("bias", 8, 8, 0, 0, 16),
        loop(3, *taps), store("output", 4, 0, row, channels, 4))))
    return (nest,), place(base_address, input=height * row, output=height * row,
                          weights=9 * channels, bias=4 * channels)


def make_dense(inputs, outputs, base_address=0x2400_0000):
    """Fully connected: two rows of weights against one vector, by words."""
    nest = loop(outputs // 2, loop(
        inputs // 4, load("weights", 4, 0, 2 * inputs, 4), load("weights", 4, inputs,
                                                                2 * inputs, 4),
        load("input", 4, 0, 0, 4)), store("output", 1, 0, 2), store("output", 1, 1, 2))
    return (nest,), place(base_address, input=inputs, output=outputs, weights=inputs * outputs)


def make_sum(elements, base_address=0x2400_0000):
    """Element-wise sum, by words."""
    nest = loop(elements // 4, load("input", 4, 0, 4), load("input2", 4, 0, 4),
                store("output", 4, 0, 4))
    return (nest,), place(base_address, input=elements, input2=elements, output=elements)
