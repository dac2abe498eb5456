"""A measurement faster than the core can issue its instructions teaches nothing."""

import re

import pytest
from made_measurements import measure

from calibration.errors import MeasurementError
from calibration.measurement.measurement import write_measurement
from hwmodels.board.file import load_board
from twin.attribution.lower_bound import find_impossible, find_unreachable
from twin.attribution.observations import observe_folder
from twin.deployment.deploy import deploy
from twin.network.operators import graph_macs
from twin.network.zoo import build
from twin.pricing.inference import predict


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))


def test_a_log_four_times_too_fast_is_refused_with_what_is_possible(prediction, tmp_path):
    cycles = {factor: sum(layer.cycles for layer in prediction.layers) * factor
              for factor in (0.25, 1.0)}
    instructions = sum(layer.instructions for layer in prediction.layers)
    assert instructions / cycles[0.25] > 1.5  # of a core that issues one a cycle
    for factor in cycles:
        write_measurement(tmp_path / str(factor), measure(
            prediction, factor=factor, model="kws", runtime="tflm-cmsis-nn",
            architecture_id=prediction.deployment.graph.architecture_id))
    assert observe_folder(tmp_path / "1.0", "nucleo_l4r5zi")
    least = f"{instructions / 1.1:,.0f}"
    with pytest.raises(MeasurementError, match=re.escape(f"needs {least} at least")) as refused:
        observe_folder(tmp_path / "0.25", "nucleo_l4r5zi")
    assert "the whole network in" in str(refused.value) and "\n" not in str(refused.value)


def test_a_log_just_faster_than_one_a_cycle_is_too_fast(prediction):
    """As one four times too fast of a library that takes 0.57 of the time: 1.2 a cycle."""
    instructions = sum(layer.instructions for layer in prediction.layers)
    for per_cycle, possible in ((1.2, False), (1.05, True)):
        found = find_impossible(prediction.deployment, [(None, instructions / per_cycle)])
        assert (found is None) is possible


def test_one_layer_is_named(prediction):
    slow = max(prediction.layers, key=lambda layer: layer.instructions)
    whole = (None, prediction.cycles)
    fine = [whole, *((layer.index, layer.cycles) for layer in prediction.layers)]
    assert find_impossible(prediction.deployment, fine) is None
    found = find_impossible(prediction.deployment, [whole, (slow.index, slow.instructions / 3)])
    assert found.layer == slow.index and str(found).startswith(f"layer {slow.index} in ")
    # a closed library may run half of what its borrowed loops do: its layers are not judged
    closed = predict(deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai"))
    assert find_impossible(closed.deployment, [(slow.index, slow.instructions / 3)]) is None
    assert find_impossible(closed.deployment, [
        (None, sum(layer.instructions for layer in closed.layers) / 1.9)]) is None


def test_importing_says_that_a_log_is_too_fast(prediction):
    from twin.api.commands.importing import _tell_impossible

    for factor, told in ((0.25, 1), (1.0, 0)):
        log = measure(prediction, factor=factor, model="kws", runtime="tflm-cmsis-nn@2023")
        said = _tell_impossible(log, prediction.deployment.graph)
        assert len(said) == told and all("calibrate" in one for one in said)


@pytest.mark.parametrize("board,most", [
    ("nucleo_l4r5zi", 2), ("rpi_pico", 0.5), ("apollo510_evb", 8), ("esp32c3_devkitm", 0.5),
    ("stm32n6570_dk", 8 + 288 / 0.8)])  # 4 units of 72 at 1 GHz beside a core at 800 MHz
def test_no_library_does_more_products_than_the_units_of_a_board(board, most):
    graph, machine = build("kws"), load_board(board)
    least = graph_macs(graph) / most
    assert find_unreachable(graph, machine, {None: 1.001 * least}, 80e6) is None or board[0] == "s"
    hertz = machine.clock(machine.core.clock).frequency_hz
    assert find_unreachable(graph, machine, {None: 1.001 * least}, hertz) is None
    found = find_unreachable(graph, machine, {None: least / 10}, hertz)
    assert found.most == pytest.approx(most)
    assert f"at {hertz / 1e6:g} MHz, mine; a {machine.core.model}" in found.tell(", mine")
