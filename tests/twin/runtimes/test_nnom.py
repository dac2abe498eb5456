"""NNoM's kernels: counted shapes, backends beside each other, published times of layers."""

import numpy as np
import pytest
from made_graphs import one_layer, tensor

from benchmarks.operators.__main__ import BOARDS, execute, read_amounts
from benchmarks.operators.table import read_rows
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.network.graph import Window
from twin.pricing.inference import predict

ROWS = [row for row in read_rows() if row.kernels == "nnom"]

AUTHOR_MHZ = 160
"""Clock of the author's STM32L476 (docs/A_Temporary_Guide_to_NNoM.md of majianjia/nnom 4d1d8fc)."""


def conv(height, width, depth, channels, pad=0):
    return one_layer(
        "conv_2d", [tensor((1, height, width, depth)),
                    tensor((channels, 3, 3, depth), "int8", "random"),
                    tensor((channels,), "int32", "random")],
        [tensor((1, height - 2 + 2 * pad, width - 2 + 2 * pad, channels))],
        window=Window(kernel=(3, 3), padding=(pad,) * 4), activation="relu")


def predict_on(graph, runtime, board="nucleo_l4r5zi"):
    return predict(deploy(graph, board, runtime=runtime))


def test_every_build_follows_its_counts():
    errors: dict[tuple[str, str], list[float]] = {}
    for row in ROWS[::7]:
        errors.setdefault((row.core, row.level), []).append(
            abs(read_amounts(row).total / row.instructions - 1))
    assert len(errors) == 20
    for build, found in errors.items():
        assert np.median(found) < 0.01 and np.quantile(found, 0.9) < 0.05, build


@pytest.mark.parametrize("row", [row for row in ROWS if row.core in BOARDS][::797],
                         ids=lambda row: f"{row.core} {row.level} {row.model}")
def test_layers_execute_what_was_counted(row):
    assert execute(row)[0] == pytest.approx(row.instructions, rel=0.05)


@pytest.mark.parametrize(("graph", "published_us"), [
    (conv(30, 9, 32, 64), 50095), (conv(14, 6, 64, 96), 35893),
    (conv(12, 18, 24, 48, pad=1), 33563), (conv(6, 9, 24, 24, pad=1), 4400)])
def test_published_convolutions_with_cmsis_nn(graph, published_us):
    """At the clock its author states; nothing was learnt from these times."""
    cycles = predict_on(graph, "nnom@cmsis").layers[0].bill.cycles("cpu")
    assert cycles / AUTHOR_MHZ == pytest.approx(published_us, rel=0.15)


def test_bounds_checks_of_a_pooling_fall_through():
    """One branch of five is taken; the time is published, nothing was learnt from it."""
    graph = one_layer("max_pool_2d", [tensor((1, 12, 18, 48))], [tensor((1, 6, 9, 48))],
                      window=Window(kernel=(2, 2), stride=(2, 2)))
    bill = predict_on(graph, "nnom@cmsis").layers[0].bill
    lines = {line.event: line.cycles for line in bill.lines}
    assert 0.3 < lines["branch_refill"] / lines["branch_issue"] < 0.5  # two cycles where taken
    assert bill.cycles("cpu") / AUTHOR_MHZ == pytest.approx(2137, rel=0.2)


def test_backends_lie_as_their_code_does():
    vectors, plain, small = (predict_on(conv(8, 8, 16, 16), f"nnom@{build}").layers[0].instructions
                             for build in ("cmsis", "local", "local-os"))
    assert 3 * vectors < plain < small < 4 * plain
    elsewhere = predict_on(conv(8, 8, 16, 16), "nnom@cmsis", "esp32c3_devkitm").layers[0]
    assert elsewhere.instructions > 3 * vectors  # CMSIS-NN's plain C: no Arm's DSP extension.


def test_what_it_has_no_kernel_of_is_refused():
    graph = one_layer("hard_swish", [tensor((1, 4, 4, 3))], [tensor((1, 4, 4, 3))])
    with pytest.raises(RuntimeRefusedError, match="has no kernel for 'hard_swish'; accepted: conv"):
        deploy(graph, "rpi_pico", runtime="nnom")


@pytest.mark.parametrize(("board", "runtime", "said"), [
    ("nucleo_l4r5zi", "nnom", 1), ("nucleo_l4r5zi", "nnom@local", 0), ("rpi_pico", "nnom", 0),
    ("esp32_devkitc", "nnom", 0)])
def test_a_faster_build_is_named_where_the_core_has_its_instructions(board, runtime, said):
    notes = deploy(conv(8, 8, 16, 16), board, runtime=runtime).notes
    assert sum("nnom@cmsis uses the core's DSP" in note for note in notes) == said
