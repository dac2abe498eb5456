"""Predictions: bills that sum, purity, and what the board's rules say."""

import math

import pytest

import twin
from hwmodels.counts import EVENTS
from twin.deployment.deploy import deploy
from twin.errors import PlacementError, RuntimeRefusedError, UsageError
from twin.network.zoo import build
from twin.pricing.inference import predict
from twin.runtimes import list_runtimes, load_runtime


@pytest.fixture(scope="module")
def kws():
    return predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))


def test_four_lines_of_python() -> None:
    prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))
    assert prediction.kind == "predicted"
    assert prediction.time_us > 0


def test_lines_sum_to_layers_and_layers_to_the_total(kws) -> None:
    for layer in kws.layers:
        assert layer.cycles == math.fsum(line.cycles for line in layer.bill.lines)
    total = math.fsum(layer.cycles for layer in kws.layers)
    assert kws.cycles == pytest.approx(total, rel=1e-12)
    for cause in kws.bill.causes():
        parts = math.fsum(layer.bill.cycles("cpu", cause) for layer in kws.layers)
        assert kws.bill.cycles("cpu", cause) == pytest.approx(parts, rel=1e-12)
    assert kws.time_us == pytest.approx(kws.cycles / 120, rel=1e-12)


def test_every_line_is_a_count_times_a_price_of_a_known_event(kws) -> None:
    for line in kws.bill.lines:
        assert line.event in EVENTS
        assert line.occurred >= 0 and line.exposed >= 0 and line.cycles >= 0


def test_no_layer_is_free_unless_it_is_an_alias(kws) -> None:
    for layer in kws.layers:
        assert (layer.cycles > 0) or layer.alias
        assert bool(layer.kernels) != layer.alias


def test_same_deployment_same_prediction() -> None:
    one = predict(deploy("ic", "nucleo_h7a3zi_q"))
    two = predict(deploy("ic", "nucleo_h7a3zi_q"))
    assert one.bill == two.bill
    assert one.layers == two.layers


def test_macs_are_the_models(kws) -> None:
    # MLPerf Tiny keyword spotting, mlcommons/tiny: 2,656,768 multiply-accumulates.
    assert kws.macs == 2_656_768


def test_cold_is_never_faster_than_warm() -> None:
    deployment = deploy("kws", "nucleo_h7a3zi_q")
    assert predict(deployment, temperature="cold").cycles > predict(deployment).cycles
    with pytest.raises(UsageError, match="tepid"):
        predict(deployment, temperature="tepid")


def test_half_the_clock_is_at_most_twice_the_time() -> None:
    fast = predict(deploy("kws", "nucleo_l4r5zi"))
    slow = predict(deploy("kws", "nucleo_l4r5zi", clock_hz=60e6))
    # Fewer wait states at the lower clock: time grows by less than the clock's ratio.
    assert fast.time_us < slow.time_us <= 2 * fast.time_us


def test_zero_wait_states_bill_none() -> None:
    # 8 MHz need no wait state at the lowest scale either (range 2: 8, 16, 26 MHz).
    slow = predict(deploy("kws", "nucleo_l4r5zi", clock_hz=8e6))
    assert slow.bill.cycles("cpu", "flash_wait") == 0
    fast = predict(deploy("kws", "nucleo_l4r5zi"))
    assert fast.bill.cycles("cpu", "flash_wait") > 0


def test_tightly_coupled_memory_removes_refills() -> None:
    cached = predict(deploy("kws", "nucleo_h7a3zi_q", weights="flash", arena="sram"))
    tight = predict(deploy("kws", "nucleo_h7a3zi_q", weights="tcm", arena="tcm"))
    assert cached.bill.cycles("cpu", "data_refill") > 0
    assert tight.bill.cycles("cpu", "data_refill") == 0
    assert tight.cycles < cached.cycles


def test_dead_channels_cost_nothing_where_they_are_dropped() -> None:
    kept = predict(deploy("vww", "nucleo_l4r5zi", runtime="x-cube-ai@7.3"))
    dropped = predict(deploy("vww", "nucleo_l4r5zi", runtime="x-cube-ai@9.0"))
    assert dropped.cycles < 0.75 * kept.cycles
    assert dropped.macs == kept.macs
    assert any("3,733,073 of 7,489,664" in warning for warning in dropped.warnings)


def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(PlacementError, match="does not fit"):
        deploy("mobilenet_v2_1.0_224", "rpi_pico")


def test_a_role_the_board_lacks_is_refused() -> None:
    with pytest.raises(PlacementError, match="no memory of role 'tcm'"):
        deploy("kws", "nucleo_l4r5zi", arena="tcm")
    with pytest.raises(UsageError, match="did you mean"):
        deploy("kws", "nucleo_l4r5zi", arena="srom")


def test_replace_changes_board_runtime_and_placement() -> None:
    base = deploy("kws", "nucleo_h7a3zi_q")
    changed = base.replace({"runtime": "tflm-reference", "placement.arena": "sram",
                            "clocks.cpu.frequency_hz": "140MHz"})
    assert changed.runtime.name == "tflm-reference"
    assert changed.board.memory(changed.arena).role == "sram"
    assert changed.board.clock("cpu").frequency_hz == 140e6
    assert predict(changed).time_us > predict(base).time_us


def test_setup_is_apart_from_invoke() -> None:
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))
    runtime = load_runtime("tflm-cmsis-nn")
    channels = 64 * 9 + 1
    expected = 13 * runtime.setup_cycles_per_op + channels * runtime.setup_cycles_per_channel
    assert prediction.setup.cycles("cpu") == expected
    assert not any(line.place.startswith("setup") for line in prediction.bill.lines)


def test_unknown_runtime_is_refused_with_a_hint() -> None:
    with pytest.raises(RuntimeRefusedError, match="did you mean"):
        load_runtime("cmsis-n")
    with pytest.raises(RuntimeRefusedError, match="no version"):
        load_runtime("x-cube-ai@1.0")
    assert "x-cube-ai@9.0.0" in list_runtimes()


def test_a_broken_runtime_file_is_refused_by_key(tmp_path, monkeypatch) -> None:
    (tmp_path / "mine.yaml").write_text("versions: {'1': {}}\nlibary: cmsis_nn\n")
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    with pytest.raises(RuntimeRefusedError, match=r"mine\.yaml:libary.*did you mean library"):
        load_runtime("mine@1")


def test_efficiency_scales_core_cycles_only() -> None:
    base = deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    import dataclasses

    doubled = dataclasses.replace(base, runtime=dataclasses.replace(
        base.runtime, efficiency={"pointwise": 2.0}))
    one, two = predict(base), predict(doubled)
    layer = next(i for i, layer in enumerate(one.layers) if "1x1" in layer.kernels[0]
                 or layer.kernels[0].endswith("fast"))
    waits = one.layers[layer].bill.cycles("cpu", "flash_wait")
    assert two.layers[layer].bill.cycles("cpu", "flash_wait") == waits
    assert two.layers[layer].bill.cycles("cpu", "mac") == pytest.approx(
        2 * one.layers[layer].bill.cycles("cpu", "mac"))


def test_float_models_run_on_float_kernels() -> None:
    graph = build("kws")
    assert deploy(graph, "ek_ra6m4").runtime.name == "tflm-cmsis-nn"


def test_an_arena_cannot_be_in_flash() -> None:
    with pytest.raises(PlacementError, match="the arena cannot be in flash"):
        deploy("kws", "nucleo_l4r5zi", arena="flash")


def test_weights_kept_in_ram_are_ram() -> None:
    usual = deploy("vww", "nucleo_l4r5zi")
    moved = deploy("vww", "nucleo_l4r5zi", weights="sram")
    assert moved.ram_bytes == usual.ram_bytes + moved.placement.weights_bytes
    assert predict(moved).flash_available_bytes == predict(usual).flash_available_bytes


def test_cold_says_where_no_cache_is_behind_a_network():
    tcm = deploy("ad", "apollo510_evb")
    cold, warm = (predict(tcm, temperature=name) for name in ("cold", "warm"))
    assert cold.cycles == warm.cycles
    assert any("behind no cache" in text for text in cold.warnings)
    assert not any("behind no cache" in text for text in warm.warnings)
