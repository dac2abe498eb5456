"""Ethos-U: command streams of networks Vela compiled, their tasks, bills of whole models."""

import base64
import dataclasses
import importlib.util
import itertools
import json
from pathlib import Path

import pytest

import twin
from hwmodels.board.file import change_board, load_board
from hwmodels.errors import BoardError, ToolMissingError
from hwmodels.schedule.run import run_tasks
from twin.api.live.controls import list_controls
from twin.attribution.effects import list_effects
from twin.attribution.predicted import side_of_prediction
from twin.attribution.views import set_what_if
from twin.deployment.deploy import deploy_towards
from twin.deployment.transformations import list_transformations
from twin.errors import ModelError, PlacementError, RuntimeRefusedError
from twin.network import zoo
from twin.network.readers import read_model
from twin.network.readers.ethos_u import split_delegate
from twin.pricing.ledger import bill_time_us
from twin.pricing.utilisation import find_utilisation
from twin.reports.export import task_rows
from twin.reports.figures.arena import draw_arena_figure
from twin.runtimes.ethos_u import vela
from twin.runtimes.ethos_u.commands import read_stream
from twin.runtimes.ethos_u.container import read_compiled
from twin.runtimes.ethos_u.counters import count_run, list_totals
from twin.runtimes.ethos_u.cycles import count_cycles
from twin.runtimes.ethos_u.operations import read_operation
from twin.runtimes.ethos_u.tasks import make_tasks, order_slots
from twin.studies.advice import give_advice
from twin.studies.limits import Limits

MADE = Path(__file__).parents[2] / "made"
FOLDER = MADE / "ethos_u"
needs_vela = pytest.mark.skipif(importlib.util.find_spec("ethosu") is None,
                                reason="ethos-u-vela is not installed")
SIZES = ("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256",
         "ethos-u65-512", "ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024",
         "ethos-u85-2048")


def open_stream(name):
    compiled = read_compiled((FOLDER / f"{name}.tflite").read_bytes(), name)
    assert len(compiled.streams) == 1
    return compiled.streams[0]


def machine(config, board="corstone300_fvp", **changes):
    return load_board(board, overrides={"npu.config": config, **changes}).npu


def count_beats(tasks, npu):
    """Beats by pool, reads and writes."""
    found = {}
    for run in run_tasks(tasks, npu):
        for one in run.transfers:
            key = one.transfer.pool, one.transfer.direction
            found[key] = found.get(key, 0) + one.beats
    return found


@pytest.mark.parametrize("name, config, operations", [
    ("kws_u55-128", "ethos-u55-128", {"conv": 7, "depthwise": 4, "pool": 3, "elementwise": 26}),
    ("kws_u65-256", "ethos-u65-256", {"conv": 7, "depthwise": 4, "pool": 3, "elementwise": 26}),
    ("conv1x1_u85-256", "ethos-u85-256", {"conv": 3, "pool": 1})])
def test_a_stream_says_its_configuration_and_operations(name, config, operations):
    stream = open_stream(name).stream
    assert stream.config == config
    found = {}
    for command in stream.commands:
        if command.kind not in ("dma", "dma_wait", "kernel_wait"):
            found[command.kind] = found.get(command.kind, 0) + 1
    assert found == operations


def test_operations_have_the_shapes_of_the_network_s_layers():
    stream = open_stream("kws_u55-128").stream
    graph = zoo.build("kws")
    first = [read_operation(command, stream.config) for command in stream.commands
             if command.kind in ("conv", "depthwise")]
    images = [layer for layer in graph.layers if layer.op in ("conv_2d", "depthwise_conv_2d")]
    by_layer = iter(images)
    layer, left = next(by_layer), 0
    for operation in first[:-1]:
        shape = graph.output(layer).shape
        left = left or shape[-1]
        assert operation.output.shape[:2] == shape[1:3]
        assert operation.kernel == layer.window.kernel
        assert operation.stride == layer.window.stride
        left -= operation.output.shape[2]  # A convolution may be cut along its depth.
        if not left:
            layer = next(by_layer, layer)


def test_weights_and_commands_are_read_as_often_as_the_stream_says():
    """Copies bring each weight once; a block of the plane reads all weights again."""
    compiled = open_stream("conv1x1_u85-256")
    npu = machine("ethos-u85-256", "corstone320_fvp")
    tasks = make_tasks(compiled.stream, npu, "Dedicated_Sram")
    copies = [copy for slot in order_slots(compiled.stream) for copy in slot.copies]
    assert sum(copy.size_bytes for copy in copies) == compiled.constant_bytes == 17712
    beats = count_beats(tasks, npu)
    # Four blocks of 64 pixels take 17,712 bytes of weights and scales each: 4,428 beats of SRAM.
    weights = sum(one.beats for run in run_tasks(tasks, npu) for one in run.transfers
                  if one.transfer.operand in ("weights", "scales"))
    assert weights == 4 * 17712 // 16
    assert beats["DRAM", "out"] == 16 * 16 * 128 // 16
    ahead = [one for task in tasks for one in task.transfers if one.operand == "commands"]
    assert sum(one.bytes for one in ahead) <= compiled.stream.size_bytes


@pytest.mark.parametrize("name, board, config, mode", [
    ("kws_u55-128", "corstone300_fvp", "ethos-u55-128", "Shared_Sram"),
    ("kws_u65-256", "corstone300_fvp", "ethos-u65-256", "Dedicated_Sram"),
    ("conv1x1_u85-256", "corstone320_fvp", "ethos-u85-256", "Dedicated_Sram")])
def test_cycles_of_a_task_sum_to_its_causes_and_never_undercut_the_units(name, board, config, mode):
    npu = machine(config, board)
    for run in run_tasks(make_tasks(open_stream(name).stream, npu, mode), npu):
        assert sum(one.npu_cycles for one in run.exposed) == run.core_npu_cycles
        assert run.core_npu_cycles >= run.compute_cycles


def test_memory_a_stream_waits_for_makes_it_slower_and_a_faster_one_never_does():
    stream = open_stream("conv1x1_u85-256").stream

    def total(**changes):
        npu = machine("ethos-u85-256", "corstone320_fvp", **changes)
        return sum(run.core_npu_cycles for run in run_tasks(
            make_tasks(stream, npu, "Dedicated_Sram"), npu))

    plain = total()
    for key, slower, faster in (("read_latency_cycles", 1000, 0), ("bytes_per_cycle", 1, 16),
                                ("write_latency_cycles", 500, 0), ("reads_in_flight", 1, 0)):
        path = f"npu.pools.DRAM.{key}"
        assert total(**{path: slower}) > plain > 0.999 * total(**{path: faster}), key


def test_writes_of_16_bytes_share_a_write_s_latency_by_eight():
    """2,048 of them on a memory of 125 cycles take at least 32,000, as on Arm's cycle model."""
    stream = open_stream("conv1x1_u85-256").stream
    totals = {}
    for latency in (125, 250):
        npu = machine("ethos-u85-256", "corstone320_fvp",
                      **{"npu.pools.DRAM.write_latency_cycles": latency})
        runs = run_tasks(make_tasks(stream, npu, "Dedicated_Sram"), npu)
        totals[latency] = sum(run.core_npu_cycles for run in runs if run.task.kind == "conv")
        assert totals[latency] > 2048 * latency / 8 * 0.97
    assert totals[250] - totals[125] == pytest.approx(2048 * 125 / 8, rel=0.05)


@pytest.mark.parametrize("config", SIZES)
def test_every_size_has_rates_and_is_no_slower_in_the_array_than_a_smaller_one(config):
    board = "corstone320_fvp" if "u85" in config else "corstone300_fvp"
    npu = machine(config, board)
    assert npu.config == config and dict(npu.rates)["macs"] == int(config.rpartition("-")[2])
    name = "conv1x1_u85-256" if "u85" in config else "kws_u55-128"
    stream = open_stream(name).stream
    operations = [read_operation(command, config) for command in stream.commands
                  if command.kind in ("conv", "depthwise", "pool", "elementwise")]
    for operation in operations:
        cycles = count_cycles(operation, npu)
        assert cycles.output > 0 and (cycles.mac > 0) == (operation.kind != "elementwise")
        assert cycles.mac * int(config.rpartition("-")[2]) >= operation.macs


def test_the_compiled_file_is_a_layer_with_a_bill_beside_the_host_s():
    prediction = twin.predict(twin.deploy(FOLDER / "kws_u55-128.tflite", "corstone300_fvp"))
    assert prediction.deployment.runtime.name == "ethos-u-vela"
    assert [layer.op for layer in prediction.layers] == ["ethos_u"]
    assert prediction.macs == 2_656_768  # as `twin models` counts its layers before Vela
    assert prediction.cycles_by_clock["npu"] == sum(
        task.run.core_npu_cycles for task in prediction.tasks)
    hand_over = prediction.deployment.board.npu.hand_over
    assert prediction.cycles_by_clock["cpu"] == hand_over.pre_cycles + hand_over.post_cycles


def test_an_executorch_delegate_is_read_as_the_compiled_file_is():
    path = MADE / "executorch" / "net_ethos_u.pte"
    prediction = twin.predict(twin.deploy(path, "corstone300_fvp"))
    ops = [layer.op for layer in prediction.layers]
    assert "ethos_u" in ops and "quantize" in ops
    assert prediction.cycles_by_clock["npu"] > 1000
    with pytest.raises(ValueError, match="ends early"):
        split_delegate(b"vela_bin_stream\0" + (1 << 20).to_bytes(4, "little") + b"\0" * 12)


def test_a_compiled_file_brings_its_size_where_the_board_states_memories_of_it():
    deployment = twin.deploy(FOLDER / "kws_u65-256.tflite", "corstone300_fvp")
    assert deployment.board.npu.config == "ethos-u65-256"
    assert "npu.config: ethos-u65-256, which kws_u65-256 was compiled for" in deployment.chosen
    cycles = {mode: twin.predict(deployment.replace({"npu.memory_mode": mode})).cycles_by_clock[
        "npu"] for mode in ("Sram_Only", "Dedicated_Sram")}
    assert 0 < cycles["Sram_Only"] < cycles["Dedicated_Sram"]
    with pytest.raises(RuntimeRefusedError, match="compiled for ethos-u65-256"):
        deployment.replace({"npu.config": "ethos-u55-128"})


def test_a_compiled_file_runs_where_the_size_is_asked_for():
    placed = deploy_towards(FOLDER / "kws_u55-128.tflite", "alif_e7_devkit",
                            {"npu.config": "ethos-u55-128"})
    assert placed.board.npu.config == "ethos-u55-128"


@needs_vela
@pytest.mark.parametrize("config, mode, pool, used", [
    ("ethos-u55-128", "Sram_Only", "SRAM", "SRAM"),
    ("ethos-u65-256", "Sram_Only", "SRAM", "SRAM_U65"),
    ("ethos-u65-512", "Dedicated_Sram", "DDR", "DRAM"),
    ("ethos-u85-1024", "Dedicated_Sram", "DRAM", "DRAM_PAIR"),
    ("ethos-u85-2048", "Sram_Only", "SRAM", "SRAM_QUAD")])
def test_a_slower_memory_never_speeds_a_network_up(config, mode, pool, used):
    """Latency up, requests in flight and bandwidth down, by the pool's name at any size."""
    board = "corstone320_fvp" if "u85" in config else "corstone300_fvp"
    base = twin.deploy("kws", board, runtime="ethos-u-vela").replace(
        {"npu.config": config, "npu.memory_mode": mode})
    own = next(one for one in base.board.npu.pools if one.name == used)
    for key, factors in (("read_latency_cycles", (0.25, 1, 4)), ("reads_in_flight", (4, 1, 0.01)),
                         ("write_latency_cycles", (0.25, 1, 4)), ("bytes_per_cycle", (4, 1, 0.125)),
                         ("writes_in_flight", (4, 1, 0.01))):
        changed = [base.replace({f"npu.pools.{pool}.{key}": max(1, round(getattr(own, key) * one))})
                   for one in factors]
        cycles = [twin.predict(one).cycles_by_clock["npu"] for one in changed]
        assert cycles == sorted(cycles), (key, cycles)
        assert cycles[0] < cycles[-1] or (mode == "Dedicated_Sram" and key == "writes_in_flight")


@needs_vela
@pytest.mark.parametrize("network", ["kws", "ic"])
def test_more_units_never_slow_a_network_down_in_sram(network):
    """Beyond what the compiler chose: a per cent of blocks cut otherwise."""
    base = twin.deploy(network, "corstone320_fvp", runtime="ethos-u-vela")
    cycles = [twin.predict(base.replace({
        "npu.config": f"ethos-u85-{size}", "npu.memory_mode": "Sram_Only"})).cycles_by_clock["npu"]
        for size in (128, 256, 512, 1024, 2048)]
    assert all(large < 1.01 * small for small, large in itertools.pairwise(cycles))
    assert cycles[2] < 0.6 * cycles[0]


def test_a_pool_the_size_has_none_of_is_refused():
    board = load_board("corstone320_fvp", overrides={"npu.pools.DRAM.memory": "sram"})
    with pytest.raises(BoardError, match="ethos-u85-256 has no such pool; accepted: SRAM, DRAM"):
        change_board(board, {"npu.pools.DRAM_MID.read_latency_cycles": 1})


@pytest.mark.parametrize("board, runtime, message", [
    ("alif_e8_devkit", None, "compiled for ethos-u55-128, the NPU is ethos-u85-256"),
    ("nucleo_l4r5zi", None, "has no NPU; accepted: -b corstone300_fvp"),
    ("corstone320_fvp", None, "has ethos-u85-256; accepted: -b corstone300_fvp, or the file"),
    ("corstone300_fvp", "tflm-cmsis-nn", "is code for an accelerator, which tflm-cmsis-nn")])
def test_a_compiled_file_says_where_it_does_not_run(board, runtime, message):
    with pytest.raises(RuntimeRefusedError, match=message):
        twin.deploy(FOLDER / "kws_u55-128.tflite", board, runtime=runtime)


@pytest.mark.parametrize("change, message", [
    (lambda data: b"COPX" + data[4:], "no command stream"),
    (lambda data: data[:200], "words early"),
    (lambda data: data[:16], "no configuration or no commands"),
    (lambda data: data[:4] + (9).to_bytes(4, "little") + data[8:], "driver action 9"),
    (lambda data: data[:8] + (0xF0000008).to_bytes(4, "little") + data[12:], "product 15"),
    (lambda data: data[:32] + (0x8000 << 0).to_bytes(4, "little") + data[36:], "is not known"),
    (lambda data: data[:32] + (0x4100).to_bytes(4, "little") + data[36:], "branches")])
def test_a_damaged_stream_is_refused_with_its_place(change, message):
    payload = base64.b64decode(open_stream("kws_u55-128").payload)
    with pytest.raises(ModelError, match=message):
        read_stream(change(payload), "kws")


def test_a_configuration_is_one_of_its_family_and_a_memory_mode_one_of_vela_s():
    with pytest.raises(BoardError, match="no 'ethos-u55-129' of ethos-u; did you mean"):
        load_board("corstone300_fvp", overrides={"npu.config": "ethos-u55-129"})
    with pytest.raises(RuntimeRefusedError, match=r"npu\.memory_mode: .Sram.; accepted"):
        twin.deploy(FOLDER / "kws_u55-128.tflite", load_board(
            "corstone300_fvp", overrides={"npu.memory_mode": "Sram"}))
    for board, reads in (("alif_e7_devkit", "second port"), ("alif_e8_devkit", "MRAM, the last")):
        with pytest.raises(RuntimeRefusedError, match=f"{reads}.* only reads; accepted: Sram_Only"):
            twin.deploy("kws", load_board(board, overrides={
                "npu.memory_mode": "Dedicated_Sram"}))


@pytest.mark.parametrize("text", [
    "", "<no", '<db><table name="queue"><![CDATA[id\n1\n]]></table></db>',
    '<db><table name="cmdstream"><![CDATA[no\n1\n]]></table></db>'])
def test_a_debug_database_that_is_none_is_refused_in_a_line(text):
    with pytest.raises(ToolMissingError, match="debug database is not understood") as caught:
        vela._read_sources(text, 1)
    assert "\n" not in str(caught.value)


def test_without_vela_a_network_names_the_program_and_a_compiled_file_still_runs(monkeypatch):
    monkeypatch.setenv("TWIN_VELA", "/no/such/vela")
    with pytest.raises(ToolMissingError, match="TWIN_VELA: /no/such/vela: no such file"):
        twin.deploy("ad", "corstone300_fvp", runtime="ethos-u-vela")
    assert twin.predict(twin.deploy(FOLDER / "kws_u55-128.tflite", "corstone300_fvp")).time_us > 0


@needs_vela
def test_a_network_before_vela_is_billed_by_its_own_layers():
    prediction = twin.predict(twin.deploy("kws", "corstone300_fvp", runtime="ethos-u-vela"))
    compiled = twin.predict(twin.deploy(FOLDER / "kws_u55-128.tflite", "corstone300_fvp"))
    assert prediction.cycles_by_clock["npu"] == pytest.approx(
        compiled.cycles_by_clock["npu"], rel=0.05)
    npu = {layer.op: layer.bill.clock_cycles().get("npu", 0) for layer in prediction.layers}
    assert npu["conv_2d"] > 0 and npu["depthwise_conv_2d"] > 0 and npu["softmax"] > 0
    assert all(not reason for reason in prediction.deployment.plan.reasons)


@needs_vela
def test_chained_additions_run_beside_convolutions_and_cycles_are_near_arm_s_model():
    """Its PMU counted 54,925 MAC-active of 70,062 cycles for this network on Corstone-320.

    github:AmbiqAI/vela_example_generator at c284228f, example_models/performance; no fit took it.
    Another release compiled it, which copies the input first (2,048 cycles of the MAC array).
    """
    prediction = twin.predict(twin.deploy("ic", "corstone320_fvp", runtime="ethos-u-vela"))
    totals = {name: sum(count_run(task.run).get(name, 0) for task in prediction.tasks)
              for name in ("mac_active", "npu_active")}
    assert totals["mac_active"] == pytest.approx(54_925 - 2_048, rel=0.03)
    assert totals["npu_active"] == pytest.approx(70_062 - 2_048, rel=0.05)
    for layer in prediction.layers:
        if layer.op == "add":
            assert len(layer.tasks) == 1 and layer.tasks[0].startswith("conv@")
            assert layer.tasks == prediction.layers[layer.index - 1].tasks


def test_a_pool_of_one_element_takes_a_quarter_of_one_of_four():
    stream = open_stream("conv1x1_u85-256").stream
    npu = machine("ethos-u85-256", "corstone320_fvp")
    pool = next(read_operation(one, stream.config) for one in stream.commands
                if one.kind == "pool")
    cycles = [count_cycles(dataclasses.replace(pool, kernel=kernel), npu).mac
              for kernel in ((1, 1), (2, 2), (4, 4))]
    assert cycles[1:] == [4 * cycles[0], 16 * cycles[0]]


@needs_vela
def test_no_number_of_vela_s_estimator_enters_a_prediction(monkeypatch):
    """The same bill where its estimates are noise: its summary, and all it prints of cycles."""
    plain = twin.predict(twin.deploy("kws", "corstone320_fvp"))
    genuine = vela._read_summary

    def noise(text):
        return tuple((name, "12345678901") for name, _ in genuine(text))

    monkeypatch.setattr(vela, "_read_summary", noise)
    monkeypatch.setenv("TWIN_FILES", "")
    from twin.runtimes.ethos_u import rules
    rules._compile.cache_clear()
    again = twin.predict(twin.deploy("kws", "corstone320_fvp"))
    assert again.bill == plain.bill
    assert dict(rules.compiled_of(again.deployment.executed, again.deployment.board.npu).summary)[
        "cycles_total"] == "12345678901"
    rules._compile.cache_clear()


@needs_vela
def test_size_and_memory_mode_are_what_ifs_and_sram_alone_is_fastest():
    deployment = twin.deploy("kws", "corstone320_fvp", runtime="ethos-u-vela")
    cycles = {}
    for config in ("ethos-u85-128", "ethos-u85-512"):
        for mode in ("Sram_Only", "Shared_Sram", "Dedicated_Sram"):
            changed = deployment.replace({"npu.config": config, "npu.memory_mode": mode})
            cycles[config, mode] = twin.predict(changed).cycles_by_clock["npu"]
    for config in ("ethos-u85-128", "ethos-u85-512"):
        assert cycles[config, "Sram_Only"] < cycles[config, "Dedicated_Sram"]
    assert cycles["ethos-u85-512", "Sram_Only"] < cycles["ethos-u85-128", "Sram_Only"]


@needs_vela
def test_memories_of_another_memory_mode_are_refused_with_that_mode_which_saves_time():
    own = twin.deploy("kws", "alif_e7_devkit", runtime="ethos-u-vela")
    with pytest.raises(PlacementError, match=r"--set npu\.memory_mode=Sram_Only$"):
        own.replace({"placement.weights": "sram"})
    with pytest.raises(PlacementError, match="Shared_Sram has weights in mram"):
        twin.deploy("kws", "alif_e7_devkit", runtime="ethos-u-vela", weights="sram")
    changed = deploy_towards("kws", "alif_e7_devkit", {"npu.memory_mode": "Sram_Only"},
                             runtime="ethos-u-vela", weights="sram")
    moved = own.replace({"npu.memory_mode": "Sram_Only"})
    assert (changed.weights, changed.arena) == (moved.weights, moved.arena) == ("sram", "sram")
    assert twin.predict(changed).time_us == twin.predict(moved).time_us < twin.predict(own).time_us


@needs_vela
def test_flash_on_the_chip_is_no_memory_outside_it_and_costs_the_same():
    """The Ensemble's MRAM is on the die: the lever is RAM there, not a faster interface."""
    own, model = twin.deploy("kws", "alif_e7_devkit", runtime="ethos-u-vela"), {}
    outside = own.replace({"memories.mram.role": "external_flash"})
    bills = [twin.predict(one).bill for one in (own, outside)]
    for bill, cause in zip(bills, ("flash_wait", "external_memory"), strict=True):
        model[cause] = [(line.place, line.cycles, line.energy_pj) for line in bill.lines
                        if line.cause == cause]
        assert {cause} == {line.cause for line in bill.lines} & {"flash_wait", "external_memory"}
    assert model["flash_wait"] == model["external_memory"] != []


@needs_vela
def test_advice_tries_memory_modes_before_training():
    own = twin.deploy("kws", "alif_e7_devkit", runtime="ethos-u-vela")
    limit_us = 1.1 * twin.predict(own.replace({"npu.memory_mode": "Sram_Only"})).time_us
    advice = give_advice(own, Limits(max_time_us=limit_us), pairs=False,
                         efforts=("setting", "rebuild"))
    assert ("npu.memory_mode", "Sram_Only") in [one.settings[0] for one in advice.ranked if (
        one.row.met and one.effort == "rebuild")]


@needs_vela
def test_a_compilation_has_a_limit_and_a_failure_is_one_line(monkeypatch, tmp_path):
    slow = tmp_path / "vela"
    slow.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 9.9 && exit\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("TWIN_VELA", str(slow))
    monkeypatch.setenv("TWIN_VELA_SECONDS", "1")
    with pytest.raises(ToolMissingError, match="vela took more than 1 s"):
        vela.compile_network(b"x", machine("ethos-u55-128"))
    slow.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 9.8 && exit\necho broken; exit 3\n")
    with pytest.raises(ToolMissingError, match=r"vela failed \(3\): broken"):
        vela.compile_network(b"x", machine("ethos-u55-128"))
    slow.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 9.7 && exit\nkill -9 $$\n")
    with pytest.raises(ToolMissingError, match="ended by signal 9, as for want of memory"):
        vela.compile_network(b"x", machine("ethos-u55-128"))
    slow.write_text("#!/bin/sh\n:\n")
    vela.version_of.cache_clear()
    with pytest.raises(ToolMissingError, match="--version prints no version; accepted"):
        vela.compile_network(b"x", machine("ethos-u55-128"))


def test_counters_of_the_pmu_are_in_the_document():
    prediction = twin.predict(twin.deploy(FOLDER / "kws_u65-256.tflite", load_board(
        "corstone300_fvp", overrides={"npu.config": "ethos-u65-256",
                                      "npu.memory_mode": "Dedicated_Sram"})))
    counters = prediction.compiler.count_runs([task.run for task in prediction.tasks])
    totals = {}
    for one in counters:
        for name, value in one.items():
            totals[name] = totals.get(name, 0) + value
    assert totals["npu_active"] == prediction.cycles_by_clock["npu"]
    assert {"mac_active", "wd_active", "axi0_rd_data_beat_received",
            "axi0_wr_data_beat_written", "axi1_rd_data_beat_received"} <= totals.keys()
    rows = task_rows(prediction)
    for name, total in totals.items():
        assert sum(row[name] for row in rows) == total
    assert totals["npu_active"] == sum(
        value for row in rows for name, value in row.items()
        if name.endswith("_npu_cycles") and name != "core_npu_cycles")
    printed = dict(line.rsplit(": ", 1) for line in list_totals(
        side_of_prediction(prediction).whole.counts)[1:])
    assert int(printed["NPU TOTAL"]) == int(printed["NPU ACTIVE"]) + int(printed["NPU IDLE"])
    assert int(printed["NPU IDLE"]) > 0
    assert totals["mac_active"] < totals["npu_active"]


def test_streams_are_constants_of_the_graph():
    graph = read_model(FOLDER / "conv1x1_u85-256.tflite")
    layer = graph.layers[0]
    assert layer.op == "ethos_u" and graph.tensors[layer.inputs[0]].is_constant
    assert layer.option("scratch_bytes") == 48256
    assert json.dumps(dataclasses.asdict(layer)["options"])


@needs_vela
def test_operators_asked_for_stay_on_the_host_and_their_tasks_vanish():
    deployment = twin.deploy("kws", "corstone320_fvp")
    kept = twin.predict(deployment.replace({"offload.host": "softmax"}))
    (host,) = [task for task in kept.tasks if task.run.task.on_host]
    assert host.run.task.operations == (("softmax", 1),)
    assert kept.cycles_by_clock["npu"] < twin.predict(deployment).cycles_by_clock["npu"]
    with pytest.raises(RuntimeRefusedError, match="accepted: operators"):
        twin.predict(deployment.replace({"offload.host": "3"}))


@needs_vela
@pytest.mark.parametrize("change, message", [
    ({"npu.compiler_file": "/no/such"}, "/no/such: No such file or directory"),
    ({"npu.pools.SRAM.system": "Foo"},
     r"npu\.pools\.SRAM\.system: 'Foo'; accepted: Ethos_U55_Deep_Embedded, "),
    ({"npu.optimise": "Fast"}, "accepted: Performance, Size"),
    ({"npu.memory_mode": "Shared"}, "accepted: Sram_Only, Shared_Sram, Dedicated_Sram"),
    ({"npu.scratch_bytes": 2**30}, "1,073,741,824; accepted: at most the 4,194,"),
    ({"npu.config": "ethos-u55-128"}, "no pool is stated for ethos-u55-128; accepted: ethos-u85")])
def test_what_vela_or_the_board_does_not_have_is_refused_by_its_key(change, message):
    with pytest.raises((RuntimeRefusedError, BoardError), match=message):
        twin.predict(twin.deploy("kws", "corstone320_fvp").replace(change))


@needs_vela
def test_a_bill_says_what_vela_made_and_a_smaller_scratch_costs():
    prediction = twin.predict(twin.deploy("kws", "corstone320_fvp").replace(
        {"npu.memory_mode": "Dedicated_Sram"}))
    (said,) = [line for line in prediction.warnings if line.startswith("compiled by Vela")]
    assert "in Dedicated_Sram: constants" in said and "no figure here is made" in said
    small = twin.predict(prediction.deployment.replace({"npu.scratch_bytes": 4096}))
    assert small.cycles_by_clock["npu"] > prediction.cycles_by_clock["npu"]
    kept = [one.deployment.plan.filled["sram"][0] for one in (prediction, small)]
    assert f"fast scratch {kept[0]:,} bytes" in said and 0 < kept[1] <= 4096 < kept[0]
    assert prediction.deployment.ram_parts["arena"] > kept[0]


@needs_vela
def test_a_fast_scratch_has_a_stated_size_only_where_the_network_needs_more(monkeypatch):
    stated = []
    write = vela.write_settings
    monkeypatch.setattr(vela, "write_settings",
                        lambda npu, size: stated.append(size) or write(npu, size))
    zoo.build.cache_clear()  # with what was compiled of it
    whole = twin.deploy("kws", "corstone320_fvp").replace({"npu.memory_mode": "Dedicated_Sram"})
    twin.predict(whole)
    assert stated == [0]
    twin.predict(whole.replace({"npu.scratch_bytes": 4096}))
    assert stated == [0, 4096]


@needs_vela
def test_a_study_varies_size_and_memory_mode():
    from typer.testing import CliRunner

    from twin.cli import app
    made = CliRunner().invoke(app, [
        "sweep", "kws", "-b", "corstone320_fvp", "--set",
        "npu.config=ethos-u85-128,ethos-u85-512", "--set",
        "npu.memory_mode=Sram_Only,Dedicated_Sram", "--json"])
    rows = json.loads(made.stdout)["rows"]
    assert made.exit_code == 0 and len(rows) == 4
    assert len({row["time_us"] for row in rows}) == 4


def test_what_a_simulator_loads_into_ram_needs_no_flash():
    deployment = twin.deploy(FOLDER / "kws_u65-256.tflite", load_board(
        "corstone300_fvp", overrides={"npu.config": "ethos-u65-256",
                                      "npu.memory_mode": "Dedicated_Sram"}))
    assert deployment.weights == deployment.store.name == "ddr"


@pytest.mark.parametrize("board, config", [
    ("corstone300_fvp", "ethos-u55-32"), ("corstone300_fvp", "ethos-u55-256"),
    ("alif_e7_devkit", "ethos-u55-256")])
def test_an_ethos_u55_writes_nothing_by_its_second_port(board, config):
    with pytest.raises(RuntimeRefusedError, match="only reads; accepted: Sram_Only, Shared_Sram"):
        twin.predict(twin.deploy("kws", board).replace(
            {"npu.config": config, "npu.memory_mode": "Dedicated_Sram"}))


def test_requests_in_flight_are_shared_by_all_that_use_a_port():
    """With one, each burst of 128 bytes waits for the latency of the one before."""
    stream = open_stream("conv1x1_u85-256").stream
    npu = machine("ethos-u85-256", "corstone320_fvp", **{"npu.pools.DRAM.reads_in_flight": 1})
    runs = run_tasks(make_tasks(stream, npu, "Dedicated_Sram"), npu)
    requests = sum(-(-one.wanted_bytes // 128) for run in runs for one in run.transfers
                   if (one.pool.name, one.transfer.direction) == ("DRAM", "in"))
    assert 0.9 * 250 * requests < sum(run.core_npu_cycles for run in runs) < 1.6 * 250 * requests
    some, any_number = (sum(run.core_npu_cycles for run in run_tasks(make_tasks(
        stream, own, "Dedicated_Sram"), own)) for own in (machine(
            "ethos-u85-256", "corstone320_fvp", **{"npu.pools.DRAM.reads_in_flight": reads})
            for reads in (63, 0)))
    assert some == any_number, "no operation asks for 63 at a time"


@needs_vela
def test_what_a_screen_says_of_an_ethos_u_holds_together():
    """Its memory mode alone places; its arena is a total; setting up, it idles and draws that."""
    sram = twin.predict(twin.deploy("kws", "alif_e7_devkit").replace(
        {"npu.memory_mode": "Sram_Only"}))
    deployment = sram.deployment
    found = {one.path: one for one in list_transformations(deployment)}
    assert not found["placement.weights"].values
    assert "npu.memory_mode decides (Shared_Sram" in found["placement.weights"].reason
    assert [one["path"] for one in list_controls(deployment.board, deployment)["places"]] == [
        "npu.memory_mode", "placement.code"]
    assert sram.placement.hides_lives and draw_arena_figure(sram) is None
    shared = deployment.replace({"npu.memory_mode": "Shared_Sram"})
    moved = set_what_if(sram, twin.predict(shared), {"npu.memory_mode": "Shared_Sram"})
    assert moved.effects == ()  # where a mode puts weights is what it is asked for
    (idle,) = list_effects(sram, twin.predict(deployment.replace({"placement.code": "dtcm"})),
                           {"placement.code": "dtcm"}, lambda others: sram)
    assert idle.endswith("no time is spent in itcm or dtcm for it")
    npu = deployment.board.accelerator
    macs = sum(layer.macs for layer in sram.layers)
    cycles = sum(task.run.core_npu_cycles for task in sram.tasks)
    assert find_utilisation(sram.tasks).mac_use == pytest.approx(macs / 256 / cycles, rel=0.02)
    drawn = sram.setup.energy_uj()
    time_us = bill_time_us(sram, sram.setup)
    idle_uj = npu.energy.idle_pj_per_cycle * time_us * 1e-12 * deployment.board.hertz[npu.clock]
    leakage = next(line for line in sram.setup.lines if line.event == "leakage")
    assert leakage.occurred == pytest.approx(1e3 * time_us) and drawn > idle_uj > 0
    assert sum(line.energy_pj for line in sram.setup.lines
               if line.event == "npu_idle") == pytest.approx(1e6 * idle_uj)
