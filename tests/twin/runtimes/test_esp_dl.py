"""ESP-DL's kernels: sixteen products an instruction, filters read for each pixel."""

import pytest

import twin
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from twin.deployment.choice import list_each_runtime
from twin.network.zoo.builder import Builder


def conv(channels=32, kernel=1, size=8, inputs=32):
    net = Builder("conv", 0)
    return net.finish(net.conv(net.input((1, size, size, inputs)), channels, kernel,
                               padding="valid"))


def predict(graph, runtime="esp-dl", board="esp32s3_devkitc", **changes):
    deployment = twin.deploy(graph, board, runtime=runtime)
    return twin.predict(deployment.replace(changes), calibration="none")


def products(prediction):
    """Return the vector products issued."""
    return sum(line.occurred for line in prediction.bill.lines if line.event == "mac_issue")


@pytest.mark.parametrize("channels", [16, 32, 48])
def test_an_instruction_multiplies_sixteen_outputs(channels):
    # and one more an output group, which rounds
    assert products(predict(conv(channels))) == 64 * channels // 16 * (32 + 1)


def test_outputs_beyond_the_last_sixteen_go_one_by_one():
    # two dot products of sixteen, and one that rounds
    assert products(predict(conv(20))) - products(predict(conv(16))) == 64 * 4 * (2 + 1)


def test_filters_larger_than_the_cache_come_from_the_memory_for_each_pixel():
    def refills(channels):
        graph = conv(channels, kernel=1, inputs=256)
        lines = predict(graph, **{"placement.weights": "psram"}).bill.lines
        return sum(line.occurred for line in lines if line.event == "dcache_read_refill")

    fits, exceeds = refills(128), refills(512)      # 32 and 128 KiB of filters, 64 KiB of cache
    assert exceeds > 64 * 512 * 256 / 64 * 0.9 > 8 * fits


def test_it_is_faster_than_esp_nn_and_the_chip_is_its_own():
    assert predict("vww").time_us < predict("vww", "tflm-esp-nn").time_us
    assert predict("vww", board="esp32p4_function_ev").time_us < predict("vww").time_us


def test_weights_and_arena_are_outside_the_chip_unless_somebody_says_otherwise():
    deployment = twin.deploy("ad", "esp32s3_devkitc", runtime="esp-dl", arena="sram")
    assert (deployment.weights, deployment.arena) == ("psram", "sram")


def test_it_is_offered_where_it_has_vectors():
    offered = {board: "esp-dl@3.2" in list_each_runtime(load_board(board)) for board in (
        "esp32s3_devkitc", "esp32p4_function_ev", "esp32_devkitc", "esp32c3_devkitm",
        "nucleo_l4r5zi")}
    assert [*offered.values()] == [True, True, False, False, False]


@pytest.mark.parametrize(("board", "changes"), [
    ("nucleo_l4r5zi", {}), ("esp32s3_devkitc", {"kernels.extension": "c"})])
def test_without_its_vectors_it_is_refused_with_what_would_run(board, changes):
    with pytest.raises(TwinError, match=r"not plain C or .*; accepted: .* another library of"):
        predict(conv(), board=board, **changes)
