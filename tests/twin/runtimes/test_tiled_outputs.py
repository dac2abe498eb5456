"""Tiles of outputs: the same accesses in the order of loops written out by hand."""

from collections import Counter

import pytest

import twin
from hwmodels.kernel import Access
from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Window
from twin.runtimes.lowering import geometry
from twin.runtimes.lowering.nests import load, repeat, resolve, store
from twin.runtimes.reference.windows import _over_tiles

SHAPE = geometry.Geometry(
    batches=1, input_rows=7, input_columns=5, input_channels=3, output_rows=7, output_columns=5,
    output_channels=4, window=Window(kernel=(3, 3), padding=(1, 1, 1, 1)), has_bias=False)


def loops():
    inputs = geometry.window_load(SHAPE, geometry.window_bounds(SHAPE))
    weights = load("weights", 1, 0, out=9, ky=3, kx=1)
    return geometry.over_pixels(SHAPE, repeat(
        "out", 4, geometry.over_window(SHAPE, inputs, weights),
        store("output", 1, 0, **geometry.output_steps(SHAPE), out=1)))


def trace(nests):
    """Every access that happens, in order: operand and byte."""
    def walk(one, indices):
        if isinstance(one, Access):
            if all(0 <= guard.offset + sum(a * b for a, b in zip(
                    guard.steps, indices, strict=True)) < guard.limit for guard in one.guards):
                yield one.operand, one.offset_bytes + sum(
                    a * b for a, b in zip(one.steps_bytes, indices, strict=True))
        else:
            for index in range(one.extent):
                for inner in one.body:
                    yield from walk(inner, (*indices, index))
    return [access for nest in nests for access in walk(nest, ())]


@pytest.mark.parametrize("tile", [2, 4, 8])
def test_a_tile_makes_the_accesses_of_the_plain_loops_in_its_own_order(tile: int) -> None:
    plain, tiled = trace(resolve(*loops())), trace(resolve(*_over_tiles(SHAPE, tile, loops())))
    assert Counter(plain) == Counter(tiled) and plain != tiled
    by_hand = [(row * 5 + column) * 4 + out
               for tile_row in range(0, 7, tile) for tile_column in range(0, 5, tile)
               for out in range(4)
               for row in range(tile_row, min(tile_row + tile, 7))
               for column in range(tile_column, min(tile_column + tile, 5))]
    assert [byte for operand, byte in tiled if operand == "output"] == by_hand


def test_no_tile_changes_nothing() -> None:
    assert _over_tiles(SHAPE, 0, loops()) == loops()


def test_a_tile_that_fits_the_cache_misses_less_and_computes_the_same() -> None:
    placed = twin.deploy("ic", "nucleo_h7a3zi_q", runtime="tflm-reference", arena="sram")
    plain, tiled = (twin.predict(one) for one in (
        placed, placed.replace({"kernels.tile": "8x8"})))
    for figure in ("accesses", "instructions"):
        assert sum(getattr(one, figure) for one in plain.layers) == sum(
            getattr(one, figure) for one in tiled.layers)
    assert sum(one.misses for one in tiled.layers) < sum(one.misses for one in plain.layers) / 2
    assert all(layer.assumed for layer in tiled.layers if layer.op == "conv_2d")


def test_other_libraries_refuse_squares_and_squares_have_three_sizes() -> None:
    placed = twin.deploy("ic", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    with pytest.raises(NotApplicableError, match="copies windows; accepted with tflm-reference"):
        placed.replace({"kernels.tile": "8x8"})
    placed.replace({"kernels.convolution": "direct", "kernels.tile": "8x8"})
    with pytest.raises(UsageError, match="accepted: 1, 2, 4, 8, 16, 32, 8x8, 16x16, 32x32"):
        placed.replace({"kernels.tile": "9x9"})
