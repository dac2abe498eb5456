"""Tiles of our own convolution: the same bits, more scratch, weights read less often."""

import pytest
from made_networks import needs_tools

pytest.importorskip("unicorn", reason="needs unicorn")

import twin
from hwmodels.board.file import load_board
from twin.deployment.core import lower_network
from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import open_board, random_input, run_on_board
from twin.runtimes.firmware import convolution_scratch_bytes
from twin.runtimes.lowering import Site

needs_compiler = needs_tools("arm-none-eabi-gcc", "make")


def small(channels: int = 7) -> Graph:
    """Two convolutions with an odd number of channels and of windows."""
    net = Builder("small", 3)
    x = net.conv(net.input((1, 7, 5, 3)), channels, 3)
    x = net.conv(x, 4, (3, 2), 2)
    return net.finish(net.softmax(net.fully_connected(net.flatten(x), 3)))


@needs_compiler
@pytest.mark.parametrize("tile", [1, 4, 16])
def test_every_tile_computes_the_same_bits(tile, tmp_path) -> None:
    graph = small()
    port = load_port("unicorn-m4")
    built = build_firmware(graph, port, tmp_path / "tile", tile=tile)
    with open_board("unicorn-m4", built.image, virtual=True,
                    board=load_board("nucleo_l4r5zi")) as (session, scales):
        assert run_on_board(session, graph, random_input(graph), runs=1, scales=scales).is_right


@needs_compiler
def test_a_tile_takes_scratch_and_reads_weights_less_often() -> None:
    graph = small()
    base = twin.deploy(graph, "nucleo_l4r5zi", runtime="firmware@O2")
    tiled = base.replace({"kernels.tile": "8"})
    conv = graph.layers[0]
    more = tiled.placement.slot(-1).size_bytes
    assert more == 4 * convolution_scratch_bytes(
        Site(graph=graph, layer=conv, isa="armv7e-m", fpu=None, operands=())) == 8 * 27
    assert len(lower_network(tiled)) == len(graph.layers)


def test_other_libraries_and_tiles_are_refused() -> None:
    base = twin.deploy(small(), "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    with pytest.raises(NotApplicableError, match="is not built here"):
        base.replace({"kernels.tile": "8"})
    with pytest.raises(UsageError, match="accepted: 1, 2, 4"):
        base.replace({"kernels.tile": "3"})
