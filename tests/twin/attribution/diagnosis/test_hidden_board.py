"""Faults planted on a hidden board by other hands' costs, as the benchmark plants them."""

import shutil
from importlib.util import find_spec

import pytest
from made_faults import diagnose

from benchmarks.diagnosis.planted import Bench, list_plants
from benchmarks.diagnosis.recorded import EVENTS
from twin.attribution.diagnosis.fault_effects import Forecasts
from twin.deployment.deploy import deploy

needs_boards = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or find_spec("unicorn") is None,
    reason="arm-none-eabi-gcc and unicorn are needed")


@pytest.fixture(scope="module")
def deployment():
    return deploy("kws", "nucleo_h7a3zi_q", runtime="cmsis-nn")


def test_images_of_the_benchmark_have_names_of_their_own(tmp_path):
    plants = list_plants(Bench(network="kws", board="nucleo_h7a3zi_q", folder=tmp_path))
    built = {(one.optimisation, one.defines, one.reference, one.weights, one.arena): one.image
             for one in plants}
    assert len(set(built.values())) == len(built)


@needs_boards
def test_faults_planted_on_a_hidden_board_are_found(tmp_path):
    """A quick part of `python -m benchmarks.diagnosis`, against a measurement known to be right."""
    network = "ad"  # a tenth of the work of kws
    bench = Bench(network=network, board="nucleo_l4r5zi", folder=tmp_path)
    plants = {plant.name: plant for plant in list_plants(bench)}
    hand, deployment = bench.hand(1), deploy(network, "nucleo_l4r5zi", runtime="firmware")
    healthy = bench.measure(plants["healthy"], hand)
    confusion, forecasts = {}, Forecasts()
    for name in ("healthy", "caches-off", "clock-half", "throttling", "interrupts"):
        measured = bench.measure(plants[name], hand)
        found = diagnose(deployment, measured, healthy=healthy, forecasts=forecasts)
        assert not found.counters  # cycles alone, as a Cortex-M4 sends
        confusion[plants[name].kind] = next(iter(found.kinds))
    assert confusion == {kind: kind for kind in confusion} and len(confusion) == 5
    loads, arrays = (bench.work(plants["caches-off"]).events[:, EVENTS.index(name)]
                     for name in ("direct", "flash"))
    assert (loads > arrays).all()
