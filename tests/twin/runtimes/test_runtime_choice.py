"""The runtime a network gets, what is said of it, and what no runtime runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import twin
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.quantities import format_time, join_words
from twin.attribution.folders import describe_measured_runtime
from twin.deployment.choice import (
    default_runtime,
    list_best,
    list_each_runtime,
    list_runnable,
)
from twin.deployment.deploy import deploy
from twin.errors import DoesNotFitError, RuntimeRefusedError
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.rewrites.precision import change_precision
from twin.pricing.batched import predict_many
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.document import to_document
from twin.pricing.inference import predict
from twin.reports.tables.header import header_pairs
from twin.runtimes import list_runtimes, load_runtime
from twin.runtimes.file import order_release

BOARD = "nucleo_l4r5zi"


def retyped(graph: Graph, indices, **changes) -> Graph:
    tensors = list(graph.tensors)
    for index in indices:
        tensors[index] = replace(tensors[index], **changes)
    return replace(graph, tensors=tuple(tensors))


@pytest.fixture(scope="module")
def kws():
    return zoo.build("kws")


def test_the_default_of_every_runtime_is_its_latest_release():
    names = {identity.partition("@")[0] for identity in list_runtimes()}
    for name in names - {"firmware", "tinymaix", "nnom", "emlearn"}:  # their versions are builds
        releases = [one for one in list_runtimes() if one.startswith(f"{name}@")]
        # Counted releases have no learnt prices yet: asked for by name, but TFLM's of 2023.
        latest = [one for one in releases
                  if load_runtime(one).counted is None or one.endswith("@2023")]
        latest = [one for one in latest if not one.endswith(
            ("-os", "-dcheck", "-nudge", "-core", "-default", "-time"))]
        assert load_runtime(name).identity == latest[-1]
    assert load_runtime("x-cube-ai").version == "10.2.0"


def test_releases_are_ordered_as_versions():
    assert sorted(["a@10.0.0", "a@9.0.0", "a@9.1"], key=order_release) == [
        "a@9.0.0", "a@9.1", "a@10.0.0"]


def test_a_name_without_its_version_is_refused():
    with pytest.raises(RuntimeRefusedError, match=r"names no version; accepted: x-cube-ai for"):
        load_runtime("x-cube-ai@")


@pytest.mark.parametrize("runtime", [None, "default", "float-reference", "x-cube-ai"])
def test_a_type_no_library_computes_in_is_refused_whoever_chooses(kws, runtime):
    with pytest.raises(RuntimeRefusedError, match=r"does not run float16 softmax; it runs .*float"):
        deploy(change_precision(kws, "float16"), BOARD, runtime=runtime)


def test_a_float_island_is_told_with_its_layers(kws):
    last = kws.layers[-1]
    island = retyped(kws, (*last.inputs, *last.outputs), dtype="float32", quantization=None)
    prediction = predict(deploy(island, BOARD))
    assert "2 of 13 layers compute in float32 (11 fully_connected, 12 softmax)" in \
        prediction.warnings[0]
    assert prediction.deployment.runtime.name == "x-cube-ai"  # most rows of this board
    prediction = predict(deploy(island, BOARD, runtime="tflm-cmsis-nn@2.3.1"))
    assert [layer.op for layer in prediction.layers if layer.assumed] == []  # counted in float, too
    whole = predict(deploy(kws, BOARD, runtime="tflm-cmsis-nn@2.3.1"))
    assert [layer.cycles for layer in prediction.layers[:10]] == [
        layer.cycles for layer in whole.layers[:10]]
    assert not [note for note in deploy(kws, BOARD).notes if "float32" in note]
    assert not deploy(island, BOARD, runtime="float-reference").notes


def test_dynamic_range_models_are_refused_by_layer(kws):
    values = [index for index, tensor in enumerate(kws.tensors) if not tensor.is_constant]
    hybrid = retyped(kws, values, dtype="float32", quantization=None)
    with pytest.raises(RuntimeRefusedError, match=r"layer 0 conv_2d .*dynamic-range"):
        deploy(hybrid, BOARD)


def test_a_batch_within_a_network_is_refused_by_layer(kws):
    layer = kws.layers[4]
    batched = retyped(kws, (layer.inputs[0], layer.outputs[0]), shape=(4, 13, 3, 64))
    with pytest.raises(RuntimeRefusedError, match=r"layer 4 conv_2d .*a batch of 4"):
        deploy(batched, BOARD)


def test_what_does_not_fit_names_all_a_memory_holds():
    large = zoo.build("mobilenet_v2_1.0_224")
    with pytest.raises(DoesNotFitError, match=r"RAM \(arena, runtime and weights\) needs"):
        deploy(large, BOARD, weights="sram")
    with pytest.raises(DoesNotFitError, match=r"weights and code needs 3.*short in sram and 1"):
        deploy(large, BOARD)  # What lacks most bytes is named first.
    assert join_words(["a"]) == "a" and join_words([]) == ""


@pytest.mark.parametrize("weights", ["flash", "sram"])
def test_the_parts_of_ram_sum_to_it(kws, weights):
    prediction = predict(deploy(kws, BOARD, weights=weights))
    document = to_document(prediction)
    assert sum(document["ram_parts"].values()) == document["ram_bytes"] == prediction.ram_bytes
    assert bool(document["ram_parts"]["weights_bytes"]) == (weights == "sram")
    assert 0 < document["scratch_bytes"] <= document["ram_parts"]["arena_bytes"]
    shown = dict(header_pairs(prediction))[""]
    assert f"arena {document['ram_parts']['arena_bytes']:,} (scratch up to 256 of it)" in shown


def default(board, graph, **changes):
    return default_runtime(graph, change_board(load_board(board), changes))


@pytest.mark.parametrize(("board", "identity"), [
    # X-CUBE-AI at the newest release measured on the board, else on its core
    ("nucleo_l4r5zi", "x-cube-ai@9.0.0-time"), ("nucleo_u575zi_q", "x-cube-ai@10.2.0-time"),
    ("stm32h747i_disco", "x-cube-ai@10.0.0"), ("b_u585i_iot02a", "x-cube-ai@10.0.0"),
    ("nucleo_f746zg", "x-cube-ai@10.0.0"), ("nucleo_f401re", "x-cube-ai@9.0.0"),
    ("nucleo_u385rg_q", "x-cube-ai@10.2.0"), ("stm32n6570_dk", "neural-art@3.0.0"),
    ("esp32s3_devkitc", "tflm-esp-nn@2026"), ("esp32c3_devkitm", "tflm-esp-nn@2026"),
    ("apollo510_evb", "tflm-cmsis-nn@2023"),  # the release measured on it
    ("nrf52840dk", "tflm-cmsis-nn@2026"), ("ek_ra6m4", "tflm-cmsis-nn@2026"),
    ("rpi_pico", "tflm-cmsis-nn@2026"), ("host", "tflm-reference@2026")])
def test_the_default_is_what_the_vendor_builds(kws, board, identity):
    assert default(board, kws).identity == identity


def test_a_chip_with_a_longer_prefix_goes_before_its_family(kws):
    n6 = load_board("stm32n6570_dk")
    other = replace(n6, name="other", npu=None)  # what an accelerator runs is not its core's
    assert default_runtime(kws, other).identity == "st-edge-ai@4.0.0"


@pytest.mark.parametrize(("dtype", "board", "identity"), [
    ("int16", "nucleo_u575zi_q", "tflm-cmsis-nn@2026"),
    ("int16", "nucleo_l4r5zi", "tflm-cmsis-nn@2.3.1-os"),
    ("uint8", "nucleo_l4r5zi", "tflm-cmsis-nn@2.3.1-os"),
    ("uint8", "esp32s3_devkitc", "tflm-reference@2026"),
    ("float32", "nucleo_l4r5zi", "x-cube-ai@9.0.0-time"),
    ("float32", "esp32s3_devkitc", "tflm-reference@2026"),
    ("float32", "rpi_pico", "tflm-cmsis-nn@2026")])
def test_the_default_runs_the_types_of_the_network(kws, dtype, board, identity):
    values = [index for index, tensor in enumerate(kws.tensors)
              if not tensor.is_constant or dtype == "float32"]
    graph = retyped(kws, values, dtype=dtype, quantization=None)
    made = deploy(graph, board)
    assert made.runtime.identity == identity
    assert deploy(graph, board, runtime=identity).runtime == made.runtime  # accepted by name
    refused = [note for note in made.notes if "does not run this network" in note]
    assert bool(refused) == (identity != default(board, kws).identity)
    measured = next(note for note in made.notes if "none was asked for" in note)
    assert "x-cube-ai" not in measured.partition("also measured on this board")[2]


def test_a_library_that_refuses_the_network_is_not_recommended(kws):
    values = [index for index, tensor in enumerate(kws.tensors) if not tensor.is_constant]
    wide = retyped(kws, values, dtype="int16")
    made = predict_calibrated(deploy(wide, "nucleo_u575zi_q"))
    assert made.deployment.runtime.name == "tflm-cmsis-nn"
    assert describe_measured_runtime(made) == ()  # x-cube-ai alone was measured, and refuses it
    with pytest.raises(RuntimeRefusedError, match="does not run int16"):
        made.deployment.replace({"runtime": "x-cube-ai"})


def test_best_is_the_fastest_library_measured_on_the_board(kws):
    best = deploy(kws, BOARD, runtime="best")
    times = {name: predict_calibrated(deploy(kws, BOARD, runtime=name)).time_us
             for name in list_best(load_board(BOARD))}
    assert len(times) > 3 and best.runtime.identity == min(times, key=times.get)
    assert deploy(kws, "rpi_pico", runtime="best").runtime == deploy(kws, "rpi_pico").runtime
    assert deploy(kws, BOARD, runtime="default").runtime == deploy(kws, BOARD).runtime


def test_words_for_a_library_are_taken_in_a_what_if_too(kws):
    base = deploy(kws, BOARD, runtime="cmsis-nn@6.0", arena="sram")
    for word in ("best", "default"):
        asked = deploy(kws, BOARD, runtime=word, arena="sram")
        changed = base.replace({"runtime": word})
        assert (changed.runtime, changed.notes) == (asked.runtime, asked.notes)
        assert changed.places == asked.places == {"weights": None, "arena": "sram"}
    made = predict_many(base, vary={"runtime": ["best", "cmsis-nn@6.0"]})
    best = predict_calibrated(base.replace({"runtime": "best"}))
    assert made.time_us[0] == pytest.approx(best.time_us) and made.time_us[1] > made.time_us[0]


def test_libraries_written_for_another_instruction_set_are_not_offered():
    for board in map(load_board, list_boards()):
        strange = "esp-nn" if board.core.isa.startswith("arm") else "cmsis"
        assert not [name for name in list_each_runtime(board) if strange in name], board.name
    assert any("esp-nn" in name for name in list_each_runtime(load_board("esp32s3_devkitc")))


def test_cmsis_nn_is_not_the_default_where_it_cannot_run(kws):
    board = load_board("ek_ra6m4")
    core = replace(board.core, isa="rv32imc", model="rv32imc")
    assert default_runtime(kws, replace(board, cores=(core,))).name == "tflm-reference"


def test_a_type_the_best_known_lacks_takes_the_portable_one(kws):
    wide = retyped(kws, [layer.outputs[0] for layer in kws.layers], dtype="int16")
    assert default(BOARD, wide).name == "tflm-cmsis-nn"


def test_the_default_is_said_with_what_else_was_measured(kws):
    note, = deploy(kws, BOARD).notes
    assert "-time, what STM32CubeMX builds with option time: none was asked for" in note
    assert "microtvm@2022" in note and "\n" not in note
    assert not deploy(kws, BOARD, runtime="x-cube-ai@9.0.0").notes


def test_routines_of_a_boot_rom_run_on_no_chip_without_it(kws):
    """Both chips run armv6-m: the ROM is a fact of the chip."""
    board = change_board(load_board("lp_mspm0g5187"), {"cores.main.soft_float": "rp2040-rom"})
    with pytest.raises(RuntimeRefusedError, match="not on the chip, mspm0g5187; accepted: libgcc"):
        twin.predict(deploy(kws, board))


@pytest.mark.parametrize(("board", "name", "identity", "where"), [
    # calibration/fitting/shipped/measured.yaml: the newest measured on the board, else the newest
    # that was counted, else the newest measured on the core
    ("nucleo_l4r5zi", "tflm-cmsis-nn", "tflm-cmsis-nn@2.3.1-os", "measured on nucleo_l4r5zi"),
    ("nucleo_f401re", "x-cube-ai", "x-cube-ai@9.0.0", "measured on a cortex-m4"),
    ("nucleo_l4r5zi", "x-cube-ai", "x-cube-ai@9.0.0-time", "measured on nucleo_l4r5zi"),
    ("b_u585i_iot02a", "st-edge-ai", "st-edge-ai@3.0.0", "measured on b_u585i_iot02a"),
    ("apollo510_evb", "tflm-cmsis-nn", "tflm-cmsis-nn@2023", ""),
    ("stm32n6570_dk", "neural-art", "neural-art@3.0.0", ""),
    ("rpi_pico", "tflm-cmsis-nn", "tflm-cmsis-nn@2026", "whose instructions were counted")])
def test_a_name_without_a_version_is_the_release_measured_there(kws, board, name, identity, where):
    made = deploy(kws, board, runtime=name)
    assert made.runtime.identity == identity
    said = [note for note in made.notes if "is taken as" in note]
    assert [f"as {identity}, its newest release {where};" in note
            for note in said] == [True] * bool(where)
    assert deploy(kws, board).replace({"runtime": name}).runtime.identity == identity


@pytest.mark.parametrize("name", ["HALE", "Plumerai", "TinyEngine", "TVM", "NNoM@0.4", "con",
                                  "-inf"])
def test_a_library_nobody_knows_is_refused_and_unknown_named(kws, name):
    for ask in (lambda: deploy(kws, BOARD, runtime=name),
                lambda: deploy(kws, BOARD).replace({"runtime": name})):
        with pytest.raises(RuntimeRefusedError, match=f"{name!r} is not known; for a library "
                           "that is not listed, write --runtime unknown; (accepted: |did you )"):
            ask()


def test_a_library_nobody_described_is_asked_for_by_name(kws):
    deployment = deploy(kws, BOARD, runtime="unknown")
    assert deployment.runtime.identity == "unknown@any" and not deployment.notes
    assert deploy(kws, BOARD).replace({"runtime": "unknown"}).runtime == deployment.runtime


def test_a_build_nobody_measured_there_says_so(kws):
    measured, default = (predict_calibrated(deploy(kws, BOARD, runtime=f"x-cube-ai@9.0.0{build}"))
                         for build in ("-time", ""))
    assert measured.certainty.measured and not default.certainty.measured
    assert default.certainty.extrapolating == ("x-cube-ai@9.0.0 was never measured on " + BOARD,)
    assert 1.1 < default.time_us / measured.time_us < 1.4  # by the options of other releases


@pytest.mark.parametrize("name, near", [
    ("unkown", "unknown"), ("tflm", "tflm-cmsis-nn or tflm-esp-nn or tflm-reference"),
    ("CMSIS-NN", "cmsis-nn"),
    ("x-cube", "x-cube-ai"), ("x-cube-ai@1", "accepted: 7.1.0"),
    ("each", "stands for several; accepted: one, or twin sweep --runtime each")])
def test_a_known_name_mistyped_is_refused(kws, name, near):
    with pytest.raises(RuntimeRefusedError, match=near):
        deploy(kws, BOARD, runtime=name)


def test_the_runtime_that_would_narrow_is_named_with_its_interval(kws):
    described = describe_measured_runtime(
        predict_calibrated(deploy(kws, BOARD, runtime="tflm-cmsis-nn@2023")))
    best = predict_calibrated(deploy(kws, BOARD, runtime="x-cube-ai@9.0.0-time"))
    assert len(described) == 1 and "x-cube-ai@9.0.0-time was, and is predicted" in described[0]
    assert format_time(best.certainty.time_us.low) in described[0]
    assert describe_measured_runtime(best) == ()
    large = predict_calibrated(deploy("ic", BOARD, runtime="unknown"))
    assert describe_measured_runtime(large)[0].endswith("was, and would narrow the interval")


def test_unsigned_sixteen_bit_convolutions_are_refused_by_name(kws):
    made = [layer.outputs[0] for layer in kws.layers if layer.op == "depthwise_conv_2d"]
    with pytest.raises(RuntimeRefusedError, match=r"layer \d+ depthwise_conv_2d .*: uint16 "):
        deploy(retyped(kws, made, dtype="uint16"), BOARD)


def test_the_note_of_a_default_stays_with_a_changed_board(kws):
    noted = deploy(kws, BOARD)
    (said,) = [note for note in noted.notes if "none was asked for" in note]
    changed = noted.replace({"clocks.cpu.frequency_hz": 80e6})
    assert said in changed.notes and len(changed.notes) == len(set(changed.notes))
    other = noted.replace({"runtime": "cmsis-nn"})
    assert said not in other.notes


@pytest.mark.parametrize(("name", "content", "told"), [
    ("gone.yaml", None, "gone.yaml: cannot be read: No such file"),
    ("cut.yml", "versions: [", "cut.yml: cannot be read: not YAML"),
    ("other.yaml", "a: b\n", "other.yaml: a mapping with a 'versions' mapping"),
    ("folder/mine", None, "mine: cannot be read")])
def test_what_names_a_file_is_one_or_refused(tmp_path, name, content, told):
    """Never a library nobody described: that is for names."""
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(RuntimeRefusedError, match=told):
        load_runtime(str(tmp_path / name))


@pytest.mark.parametrize(("name", "why"), [
    ("microtvm@2022", "was not read from its sources"), ("x-cube-ai@9.0.0", "is closed")])
def test_assumed_loops_say_whether_the_library_is_closed(name, why):
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime=name))
    assert any(f"{name} {why}; its loops are taken to be" in one for one in prediction.warnings)


@pytest.mark.parametrize("ask", [
    lambda name: deploy("kws", "rpi_pico2", runtime=name),
    lambda name: deploy("kws", "rpi_pico2").replace({"runtime": name})], ids=["deploy", "replace"])
def test_a_closed_library_is_refused_on_parts_of_other_makers(ask):
    """Wherever it is named; one whose sources can be built anywhere is not."""
    with pytest.raises(RuntimeRefusedError, match=r"is closed; rpi_pico2 has rp2350a, accepted: "
                                                  r"boards with parts named stm\.\.\., by board"):
        ask("st-edge-ai")
    assert ask("microtvm").runtime.identity == "microtvm@2022"


def test_libraries_listed_for_a_board_are_those_its_chip_can_have():
    n6 = {name.partition("@")[0] for name in list_runnable(load_board("stm32n6570_dk"))}
    assert {"neural-art", "x-cube-ai", "microtvm"} < n6
    assert n6.isdisjoint({"ethos-u-vela", "gap", "ai8x", "mvp", "ti-nnc", "esp-dl"})


def test_a_library_of_other_cores_is_predicted_with_a_word() -> None:
    """CMSIS-NN's plain C compiles anywhere; ESP-NN's counts are of its own cores."""
    for board, runtime, foreign in (("esp32s3_devkitc", "cmsis-nn", True),
                                    ("nucleo_l4r5zi", "cmsis-nn", False),
                                    ("esp32s3_devkitc", "tflm-esp-nn", False)):
        notes = deploy("kws", board, runtime=runtime).notes
        assert any("is made for other cores than" in note for note in notes) == foreign, board
    with pytest.raises(RuntimeRefusedError, match="ESP-NN was not counted on a core of"):
        predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-esp-nn"))
