"""An accelerator of another family is a board file and a runtime file: `examples/another-...`."""

import dataclasses
import json
import math
import re
import textwrap
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from hwmodels.board.file import change_board, load_board
from hwmodels.errors import TwinError
from twin.cli import app
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.pricing.inference import predict
from twin.reports.figures import overview
from twin.runtimes import load_runtime

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "another-accelerator"
RUNTIME = "tile-compiler"


@pytest.fixture(autouse=True)
def folders(monkeypatch):
    monkeypatch.setenv("TWIN_BOARDS", str(EXAMPLE / "boards"))
    monkeypatch.setenv("TWIN_RUNTIMES", str(EXAMPLE / "runtimes"))


def run(*words):
    ended = CliRunner().invoke(app, [str(word) for word in words])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def epochs_of(prediction, layer):
    return [epoch for epoch in prediction.tasks if layer in epoch.step.layers]


def test_a_network_runs_on_it_to_the_last_layer():
    prediction = predict(deploy("ic", "tile_evk", runtime=RUNTIME))
    assert len(prediction.tasks) == 25  # 11 layers of the array with their weights, 4 others
    work = [unit for epoch in prediction.tasks for unit in epoch.run.task.units]
    assert {unit.kind for unit in work} == {"TILE", "LANES", "NULL"}
    assert sum(unit.macs for unit in work) == 12_501_632  # all of the network's
    assert prediction.time_us == pytest.approx(sum(e.time_us for e in prediction.tasks))


def test_weights_are_staged_by_the_one_pair_of_engines():
    # layer 1: a 3 x 3 convolution of 16 channels to 16, 32 x 32 outputs, on 256 MACs a cycle
    prediction = predict(deploy("ic", "tile_evk", runtime=RUNTIME))
    copy, conv = epochs_of(prediction, 1)
    weights = 16 * 3 * 3 * 16
    assert (copy.kind, conv.kind) == ("copy", "task")
    assert [(e.direction, e.pool, e.bytes, e.operand) for e in copy.run.task.transfers] == [
        ("in", "FLASH", weights, "weights"), ("out", "WEIGHTS", weights, "weights")]
    assert [(e.direction, e.pool, e.bytes) for e in conv.run.task.transfers] == [
        ("in", "FEATURES", 32 * 32 * 16), ("out", "FEATURES", 32 * 32 * 16)]
    assert conv.run.compute_cycles == 32 * 32 * 16 * weights // 16 // 256 == 9216
    # 120 to start; 4 bytes a cycle of the flash's 160 MHz: 1.25 NPU cycles for 4 bytes
    assert copy.run.core_npu_cycles == pytest.approx(120 + weights / 4 * 1.25, rel=0.1)
    # before an epoch: 300 and 40 an engine, and 200 for the array
    assert (copy.pre_cpu_cycles, conv.pre_cpu_cycles) == (380, 580)
    assert conv.post_cpu_cycles == 150


def test_nothing_else_is_placed_where_weights_are_staged():
    pools = plan_of(deploy("ic", "tile_evk", runtime=RUNTIME)).pools
    assert dict(pools.used) == {"FEATURES": 49_152}
    small = change_board(load_board("tile_evk"), {"npu.pools.FEATURES.size_bytes": "32KiB"})
    spilled = plan_of(deploy("ic", small, runtime=RUNTIME)).pools
    assert {home.pool for home in spilled.homes.values()} == {"FEATURES", "SRAM"}


def test_layers_it_cannot_run_say_why():
    def reasons(changes):
        board = change_board(load_board("tile_evk"), changes)
        deployment = deploy("ic", board, runtime=RUNTIME)
        return {layer.op: reason for layer, reason in zip(
            deployment.executed.layers, plan_of(deployment).grouping.reasons, strict=True)
            if reason}

    assert reasons({"board.description": "x"}) == {
        "add": "needs 3 channels of 2", "softmax": "no operator of the NPU"}
    assert set(reasons({"npu.engines": 3})) == {"softmax"}
    small = reasons({"npu.pools.WEIGHTS.size_bytes": "16KiB"})
    assert small["conv_2d"] == "36,864 bytes of weights, WEIGHTS holds 16,384"


def test_a_host_that_takes_most_of_the_time_is_a_warning():
    plain = predict(deploy("ic", "tile_evk", runtime=RUNTIME))
    (told,) = [text for text in plain.warnings if "of the time" in text]
    assert told == ("97% of the time passes on the host, most in layer 3 add: "
                    "needs 3 channels of 2")
    board = change_board(load_board("tile_evk"), {"npu.engines": 3})
    better = predict(deploy("ic", board, runtime=RUNTIME))
    assert 10 * better.time_us < plain.time_us
    assert not any("of the time" in text for text in better.warnings)


def test_without_a_staging_pool_weights_stream_beside_the_input():
    board = change_board(load_board("tile_evk"), {
        "npu.engines": 3, "npu.pools.WEIGHTS.staging": "false"})
    prediction = predict(deploy("ic", board, runtime=RUNTIME))
    (conv,) = epochs_of(prediction, 1)
    assert [e.operand for e in conv.run.task.transfers] == ["input", "weights", "output"]


def test_what_ifs_reach_its_parts():
    plain = deploy("ic", "tile_evk", runtime=RUNTIME)

    def compute(changes):
        return sum(e.run.compute_cycles for e in predict(plain.replace(changes)).tasks)

    assert compute({"npu.units.TILE.macs_per_cycle.8x8": 512}) < compute({})
    assert compute({"npu.units.TILE.count": 2}) < compute({})
    faster = predict(plain.replace({"clocks.tile.frequency_hz": "100MHz"}))
    assert faster.time_us > predict(plain).time_us


def test_every_report_of_the_command_line_names_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "PICTURES", {})  # tests/twin/reports/test_figures.py draws them
    base = ("ic", "-b", "tile_evk", "--runtime", RUNTIME)
    shown = run("predict", *base, "--epochs", "--details")
    assert "unit TILE" in shown and "NPU energy" in shown and "_ACC" not in shown
    document = json.loads(run("predict", *base, "--json"))
    assert {"TILE", "LANES"} <= set(re.findall(r"[A-Z]{4,}", json.dumps(document)))
    run("predict", *base, "--trace", tmp_path / "t.json", "--plot", tmp_path)
    assert (tmp_path / "timeline.png").stat().st_size > 5000
    trace = json.loads((tmp_path / "t.json").read_text())
    rows = {e["args"]["name"] for e in trace["traceEvents"] if e.get("name") == "thread_name"}
    assert rows == {"host", "TILE", "LANES", "DMA 0", "DMA 1"}
    assert "TILE" in run("whatif", *base, "--set", "npu.units.TILE.count=2")
    assert "part of the NPU that computes" in run("explain", "tile")


def test_a_board_whose_accelerator_is_not_used_names_the_runtime_that_does():
    told = " ".join(predict(deploy("ic", "tile_evk")).warnings)
    assert "tile-array NPU of tile_evk is not used" in told
    assert f"--runtime tile-cascade or {RUNTIME} or tile-systolic uses" in told


def test_compilers_and_accelerators_must_be_of_a_kind():
    with pytest.raises(RuntimeRefusedError, match="needs an accelerator of family neural-art"):
        deploy("ic", "tile_evk", runtime="neural-art")
    with pytest.raises(RuntimeRefusedError, match="needs an accelerator of family tile-array"):
        deploy("ic", "stm32n6570_dk", runtime=RUNTIME)


def runtime_file(folder, **offload):
    raw = yaml.safe_load((EXAMPLE / "runtimes" / f"{RUNTIME}.yaml").read_text())
    raw["offload"].update(offload)
    (folder / "own.yaml").write_text(yaml.safe_dump(raw))


def documented_rules():
    """The class `docs/add-an-accelerator.md` shows, as a reader would copy it."""
    page = (ROOT / "docs" / "add-an-accelerator.md").read_text()
    block = page[page.index("    from dataclasses import dataclass"):]
    return textwrap.dedent(block[:block.index("\n\n`site`")])


def test_rules_of_one_s_own_are_a_class_the_runtime_names(tmp_path, monkeypatch):
    (tmp_path / "my_rules.py").write_text(documented_rules())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    runtime_file(tmp_path, rules="my_rules:OneAtATime",
                 pool_window_elements=[20, "assumed", "made"])
    rules = load_runtime("own").offload.rules
    assert (type(rules).__name__, rules.pool_window_elements) == ("OneAtATime", 20)
    plan = plan_of(deploy("ic", "tile_evk", runtime="own"))
    assert "averages more than 20 elements" in plan.grouping.reasons
    assert all(len(group.layers) == 1 for group in plan.grouping.groups)


def test_a_compiler_s_rules_say_what_it_runs_whatever_the_operator_s_roles(tmp_path, monkeypatch):
    (tmp_path / "soft_rules.py").write_text(textwrap.dedent("""
        from dataclasses import dataclass
        from twin.runtimes.units import UnitRules

        @dataclass(frozen=True, kw_only=True)
        class Softer(UnitRules):
            def list_roles(self, layer):
                if layer.op == "average_pool_2d":
                    return ()
                return (("activation",),) if layer.op == "softmax" else super().list_roles(layer)
    """))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    runtime_file(tmp_path, rules="soft_rules:Softer", host_operators=[])
    prediction = predict(deploy("ic", "tile_evk", runtime="own"))
    reasons = {layer.op: reason for layer, reason in zip(
        prediction.layers, prediction.deployment.plan.reasons, strict=True)}
    assert (reasons["softmax"], reasons["average_pool_2d"]) == ("", "no operator of the NPU")
    (epoch,) = epochs_of(prediction, prediction.layers[-1].index)
    assert [(unit.kind, unit.ops) for unit in epoch.run.task.units] == [("LANES", 10)]


ST_WORDS = re.compile(r"epoch|stream engine|streng|busif|cacheaxi|npu_cache|max_cycles|hybrid"
                      r"|_acc\b|neural.?art", re.IGNORECASE)


@pytest.fixture
def cascade(tmp_path, monkeypatch):
    """The shipped compiler that cascades, on the tile array with four channels and no staging."""
    monkeypatch.syspath_prepend(EXAMPLE)
    text = (EXAMPLE / "boards" / "tile_evk.yaml").read_text()
    for old, new in (("engines: [2,", "engines: [4,"), ("staging: true, ", ""),
                     ("name: tile_evk", "name: tile4_evk")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "tile4_evk.yaml").write_text(text)
    monkeypatch.setenv("TWIN_BOARDS", str(tmp_path))
    return deploy("ic", "tile4_evk", runtime="tile-cascade")


def test_a_compiler_states_its_own_traffic_and_compressed_weights(cascade):
    prediction = predict(cascade)
    assert prediction.deployment.plan.reasons == ("",) * len(prediction.layers)
    work = [unit for task in prediction.tasks for unit in task.run.task.units]
    assert sum(unit.macs for unit in work) == 12_501_632  # all of the network's, in stripes
    # layer 4: 3 x 3 of 16 channels to 32, 16 channels a walk, kept at six tenths of their bytes
    stripes = epochs_of(prediction, 4)
    assert [e.name for e in stripes] == [f"task_4.{n}" for n in range(4)]
    first, *later = [{one.transfer.operand: one for one in e.run.transfers} for e in stripes]
    assert first["weights"].wanted_bytes == math.ceil(0.6 * 16 * 9 * 32)
    assert [part["input"].wanted_bytes for part in (first, *later)] == [2 * 32 * 32 * 16 // 4] * 4
    assert not any("weights" in part for part in later)
    causes = {item.cause for item in epochs_of(prediction, 5)[0].run.exposed}
    assert {"mac", "weight_decode"} <= causes
    (softmax,) = epochs_of(prediction, prediction.layers[-1].index)
    assert [(unit.kind, unit.ops) for unit in softmax.run.task.units] == [("LANES", 10)]


def test_a_cascade_takes_turns_and_keeps_a_few_rows_between_its_layers(cascade):
    prediction = predict(cascade)
    order = [task.name for task in prediction.tasks if task.step.layers in ((4,), (5,))]
    assert order == ["task_4.0", "task_4.1", "task_5.0", "task_4.2", "task_5.1", "task_4.3",
                     "task_5.2", "task_5.3"]
    hosted = [task.name for task in prediction.tasks if task.name in order and (
        task.pre_cpu_cycles or task.post_cpu_cycles)]
    assert hosted == ["task_4.0", "task_5.3"]
    between = cascade.executed.layers[4].outputs[0]
    assert cascade.executed.tensors[between].size_bytes == 16 * 16 * 32
    # two stripes of four rows, and the two a window of three reaches over
    assert cascade.placement.slot(between).size_bytes == 10 * 16 * 32
    assert prediction.time_us == pytest.approx(sum(e.time_us for e in prediction.tasks))


def test_another_accelerator_is_reported_in_its_own_words(cascade, tmp_path):
    base = ("ic", "-b", "tile4_evk", "--runtime", "tile-cascade")
    shown = run("predict", *base, "--epochs", "--details", "--trace", tmp_path / "t.json")
    assert "task_4.0, task" in shown and "unit UNPACK" in shown and not ST_WORDS.search(shown)
    assert not ST_WORDS.search((tmp_path / "t.json").read_text())
    document = run("predict", *base, "--json")
    assert len(json.loads(document)["tasks"]) == 24
    # the event of the host's cycles around tasks keeps the key older documents have
    assert {found.group() for found in ST_WORDS.finditer(document.replace(
        '"epoch_host_cycle"', ""))} == set()


def test_more_transfers_than_channels_are_refused(cascade):
    with pytest.raises(RuntimeRefusedError, match=r"tile-cascade@1\.0: task_1: 3 transfers at "
                                                  "once, tile4_evk has 2 channels"):
        predict(dataclasses.replace(cascade, board=change_board(
            cascade.board, {"npu.engines": 2}), runtime=greedy(cascade.runtime)))


def greedy(runtime):
    """The same compiler, which forgets to count channels."""
    def widen(planner):
        return dataclasses.replace(planner, npu=dataclasses.replace(planner.npu, engines=4))

    class Greedy(type(runtime.offload.rules)):
        def group(self, graph, planner):
            return super().group(graph, widen(planner))

        def schedule(self, graph, planner, pools, grouping):
            return super().schedule(graph, widen(planner), pools, grouping)

    rules = Greedy(**{part.name: getattr(runtime.offload.rules, part.name)
                      for part in dataclasses.fields(runtime.offload.rules)})
    return dataclasses.replace(runtime, offload=dataclasses.replace(runtime.offload, rules=rules))


def test_a_field_of_rules_is_a_number_or_one_of_some_words(tmp_path, monkeypatch):
    (tmp_path / "odd_rules.py").write_text(documented_rules().replace("elements: int",
                                                                      "elements: bytes"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    runtime_file(tmp_path, rules="odd_rules:OneAtATime",
                 pool_window_elements=[20, "assumed", "made"])
    with pytest.raises(RuntimeRefusedError, match="accepted: int, float, or a str"):
        load_runtime("own")


@pytest.mark.parametrize(("offload", "message"), [
    ({"rules": "by-rule"}, "offload.rules: no rules 'by-rule'; did you mean by-role"),
    ({"rules": "no.such:Rules"}, "offload.rules: 'no.such:Rules' cannot be loaded"),
    ({"rules": "json:JSONDecoder"}, "accepted: a class beneath twin.runtimes.compiler.Compiler"),
    ({"group_channels": 8}, "offload.group_channels: unknown key"),
    ({"rules": "neural-art"}, "offload.group_channels: missing"),
])
def test_wrong_rules_are_refused_by_key(offload, message, tmp_path, monkeypatch):
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    runtime_file(tmp_path, **offload)
    with pytest.raises(TwinError) as refusal:
        load_runtime("own")
    assert message in str(refusal.value)


def test_only_the_runtime_of_neural_art_knows_the_names_of_its_units():
    names = re.compile(r"CONV_ACC|ARITH_ACC|ACTIV_ACC|POOL_ACC|DECUN|STRENG")
    known = ("twin/runtimes/neural_art/", "calibration/importers/neural_art_",
             "calibration/datasets/perlayer/",
             "hwmodels/boards/stm32n6570_dk.yaml")
    found = [str(path.relative_to(ROOT)) for package in ("hwmodels", "calibration", "twin")
             for path in sorted((ROOT / package).rglob("*"))
             if path.suffix in (".py", ".yaml") and names.search(path.read_text())]
    assert [path for path in found if not path.startswith(known)] == []
