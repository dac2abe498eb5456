"""Weights that leave the flash are copied once, in the set-up."""

import pytest

from twin.deployment.deploy import deploy
from twin.pricing.inference import predict


def setup_us(**changes):
    prediction = predict(deploy("ic", "stm32n6570_dk", runtime="neural-art", **changes))
    clocks = {clock.name: clock.frequency_hz for clock in prediction.deployment.board.clocks}
    setup = prediction.setup
    return (sum(setup.cycles(clock) / clocks[clock] for clock in setup.clocks()) * 1e6,
            prediction.deployment.plan.pools.weight_bytes)


@pytest.mark.parametrize("weights", ["npu_ram", "hyperRAM", "npuRAM5"])
def test_copying_takes_as_long_as_the_flash_gives_the_bytes(weights):
    plain_us, none = setup_us()
    copied_us, size = setup_us(weights=weights)
    assert none == 0 and size > 77_000
    # the flash: 2 bytes in a cycle of 200 MHz
    assert copied_us - plain_us == pytest.approx(size / 400e6 * 1e6, rel=1e-3)


def test_a_pool_slower_than_the_flash_sets_the_pace():
    slow = predict(deploy("ic", "stm32n6570_dk", runtime="neural-art", weights="npu_ram").replace(
        {f"npu.pools.npuRAM{n}.bytes_per_cycle": 0.25 for n in (3, 4, 5, 6)}))
    waits = [line for line in slow.setup.lines if line.event == "npu_ram_wait"]
    size = slow.deployment.plan.pools.weight_bytes
    (line,) = waits
    assert line.cycles == pytest.approx(size / 0.25 / 0.9, rel=1e-3)  # nic at 900 MHz, NPU at 1000


def test_the_board_is_powered_while_weights_are_copied():
    """The core's clocks run and it leaks, the NPU idles: in the set-up as in an inference."""
    made = predict(deploy("kws", "alif_e7_devkit").replace({"npu.memory_mode": "Sram_Only"}))
    clocks = made.deployment.board.hertz
    host_us, copied_us = (made.setup.cycles(name) / clocks[name] * 1e6 for name in ("cpu", "npu"))
    assert copied_us > host_us > 0
    drawn = {event: sum(line.occurred for line in made.setup.lines if line.event == event)
             for event in ("clock_tree", "leakage", "npu_idle")}
    assert drawn == pytest.approx({
        "clock_tree": (host_us + copied_us) * clocks["cpu"] * 1e-6,
        "leakage": (host_us + copied_us) * 1e3,
        "npu_idle": (host_us + copied_us) * clocks["npu"] * 1e-6})
    assert sum(line.energy_pj for line in made.setup.lines if line.event in drawn) > 0
