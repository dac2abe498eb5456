"""Outputs written over their inputs: nothing that is read later is lost, and no byte is wasted."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_graphs import one_layer, tensor

from twin.deployment.overlap import _may_lie, overlap_distance_bytes, place_overlapping
from twin.network.graph import Window


def windowed(rows, columns, channels, kernel, stride, top, made_channels):
    """A convolution over an image, its output as large as the window allows."""
    output = (rows + top - kernel) // stride + 1, (columns - kernel) // stride + 1
    return one_layer(
        "conv_2d", [tensor((1, rows, columns, channels)),
                    tensor((made_channels, kernel, kernel, channels), data="random")],
        [tensor((1, *output, made_channels))],
        window=Window(kernel=(kernel, kernel), stride=(stride, stride), padding=(top, 0, 0, 0)))


def survives(graph, distance: int) -> bool:
    """Whether a convolution reads only what it has not overwritten, row by row of output."""
    source, output = graph.tensors[0], graph.tensors[2]
    window = graph.layers[0].window
    start, made = max(0, distance), max(0, -distance)
    memory = np.zeros(start + made + source.size_bytes + output.size_bytes, bool)
    row_in, row_out = source.size_bytes // source.shape[1], output.size_bytes // output.shape[1]
    for y in range(output.shape[1]):
        first = max(0, y * window.stride[0] - window.padding[0])
        last = min(source.shape[1], y * window.stride[0] - window.padding[0] + window.kernel[0])
        if memory[start + first * row_in:start + last * row_in].any():
            return False
        memory[made + y * row_out:made + (y + 1) * row_out] = True
    return True


@settings(max_examples=150)
@given(st.data())
def test_no_row_is_overwritten_before_its_last_use(data) -> None:
    kernel = data.draw(st.integers(2, 4))
    graph = windowed(data.draw(st.integers(kernel, 12)), data.draw(st.integers(kernel, 6)),
                     data.draw(st.integers(1, 5)), kernel, data.draw(st.integers(1, 3)),
                     data.draw(st.integers(0, kernel - 1)), data.draw(st.integers(1, 9)))
    distance = overlap_distance_bytes(graph, graph.layers[0], ())
    assert survives(graph, distance)


def test_one_byte_less_loses_data() -> None:
    # Row 0 of output needs rows 0 to 2; row 1 reads row 1 again, which row 0 must not reach.
    graph = windowed(9, 5, 2, 3, 1, 0, 8)
    distance = overlap_distance_bytes(graph, graph.layers[0], ())
    assert survives(graph, distance) and not survives(graph, distance - 25)


def test_a_single_position_moves_pixel_by_pixel() -> None:
    graph = windowed(8, 6, 4, 1, 1, 0, 12)
    assert overlap_distance_bytes(graph, graph.layers[0], ()) == 8 * 6 * (12 - 4)


@pytest.mark.parametrize("op, wanted", [("relu", 0), ("softmax", None)])
def test_elementwise_operators_overlap_where_the_runtime_works_in_place(op, wanted) -> None:
    graph = one_layer(op, [tensor((1, 4, 4, 4))], [tensor((1, 4, 4, 4))])
    assert overlap_distance_bytes(graph, graph.layers[0], ("relu",)) == wanted


@settings(max_examples=150)
@given(st.data())
def test_only_pairs_that_may_share_memory_do(data) -> None:
    count = data.draw(st.integers(1, 10))
    sizes = [8 * data.draw(st.integers(1, 40)) for _ in range(count)]
    buffers = [SimpleNamespace(first=i, last=min(count, i + data.draw(st.integers(1, 3))),
                               offset_bytes=-1) for i in range(count)]
    distances = {(i, i + 1): 8 * data.draw(st.integers(-10, 20)) for i in range(count - 1)
                 if data.draw(st.booleans())}
    place_overlapping(buffers, sizes, distances)
    assert min(buffer.offset_bytes for buffer in buffers) == 0
    for i in range(count):
        for j in range(i):
            one, other = buffers[j], buffers[i]
            if one.last < other.first or other.last < one.first:
                continue
            apart = (one.offset_bytes + sizes[j] <= other.offset_bytes
                     or other.offset_bytes + sizes[i] <= one.offset_bytes)
            allowed = ((j, i) in distances
                       and one.offset_bytes - other.offset_bytes >= distances[j, i])
            assert apart or allowed


def test_a_chain_needs_little_more_than_its_largest_buffer() -> None:
    buffers = [SimpleNamespace(first=i, last=i + 1, offset_bytes=-1) for i in range(3)]
    place_overlapping(buffers, [800, 1600, 400], {(0, 1): 808, (1, 2): 16})
    assert max(b.offset_bytes + s for b, s in zip(buffers, [800, 1600, 400], strict=True)) <= 1624


@pytest.mark.parametrize("at, other, distances, may", [
    (0, 10, {}, True), (0, 9, {}, False), (15, 10, {}, True), (14, 10, {}, False),
    (13, 10, {(0, 1): 3}, True), (12, 10, {(0, 1): 3}, False),
    (7, 10, {(1, 0): 3}, True), (8, 10, {(1, 0): 3}, False), (7, 10, {(0, 1): 3}, False)])
def test_buffers_may_touch_and_lie_as_far_over_each_other_as_stated(at, other, distances, may):
    assert _may_lie(0, at, 1, other, (10, 5), distances) is may
