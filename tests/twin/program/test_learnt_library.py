"""A kernel library learnt from programs: our own images stand for one nobody described."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

import yaml
from made_graphs import separable
from made_program import emulate_here
from typer.testing import CliRunner

import twin
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError, RuntimeRefusedError, UsageError
from twin.network.operators import layer_macs
from twin.program.image.compile.store import keep_image
from twin.program.library.blocks import Run, cut_runs
from twin.program.library.coefficients import fit_series
from twin.program.library.matching import Ran, match_layers
from twin.reports.documents import load_schema, write_json
from twin.runtimes import load_runtime

BOARD = "nucleo_l4r5zi"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    emulate_here(monkeypatch)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("TWIN_IMAGES", str(tmp_path_factory.mktemp("images")))
    yield {name: keep_image(deploy(name, BOARD, runtime="firmware")).path
           for name in ("kws", "sww")}
    patch.undo()


@pytest.fixture(scope="module")
def lesson(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("learnt") / "ours.yaml"
    return twin.learn_runtime([images["kws"]], ["kws"], BOARD, output=path, call="infer_once")


def test_what_was_learnt_is_a_document(lesson):
    document = json.loads(write_json(lesson))
    jsonschema.Draft202012Validator(load_schema("outcome")).validate(document)
    assert document["kind"] == "learnt" and document["file"] == str(lesson.path)
    assert {one["op"] for one in document["kernels"]} == {one.op for one in lesson.kernels}


def test_another_network_is_predicted_as_its_own_program_runs(lesson, images):
    ran = [layer for layer in twin.predict(twin.deploy_elf(
        images["sww"], BOARD, call="infer_once")).layers if layer.name != "between layers"]
    learnt = twin.predict(twin.deploy("sww", BOARD, runtime=str(lesson.path)))
    assumed = twin.predict(twin.deploy("sww", BOARD, runtime="cmsis-nn"), calibration="none")
    layers, borrowed = ([one for one in made.layers if not one.alias]
                        for made in (learnt, assumed))
    assert len(ran) == len(layers)
    whole = sum(one.cycles for one in ran)
    assert learnt.cycles == pytest.approx(whole, rel=0.06)
    assert abs(assumed.cycles / whole - 1) > 0.1
    assert learnt.certainty.time_us.low < learnt.time_us * whole / learnt.cycles < (
        learnt.certainty.time_us.high)
    for one, other, layer in zip(layers, borrowed, ran, strict=True):
        assert one.kernels != other.kernels and not one.assumed
        if one.instructions < whole / 50:
            continue  # Three classes: fixed cost.
        assert one.instructions == pytest.approx(layer.instructions, rel=0.02)
        assert one.cycles == pytest.approx(layer.cycles, rel=0.1)
        if one.op == "conv_2d":  # Weights of the depthwise ones lie in as many lines as there are.
            assert one.misses == pytest.approx(layer.misses, rel=0.3)
    assert any("structure read from" in one and one.endswith(
        "counted by running ELF; shapes other than those seen are fitted")
        for one in learnt.warnings)
    own = twin.predict(twin.deploy("kws", BOARD, runtime=str(lesson.path)))
    assert any("this network is one of those learnt from" in one for one in own.warnings)
    assert not any("structural assumption" in one for one in learnt.warnings)


@pytest.mark.parametrize("board,other", [
    ("esp32c3_devkitm", ((9, 6), (24, 32, 20))), ("apollo510_evb", ((7, 9), (16, 24, 40)))])
def test_libraries_of_other_cores_are_learnt(board, other, tmp_path, monkeypatch):
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path))
    known, asked = separable("known", (7, 9), (16, 24, 40), 6), separable("asked", *other, 6)
    programs = [keep_image(deploy(one, board, runtime="firmware")).path
                for one in ((known, asked) if board != "apollo510_evb" else (known,))]
    made = twin.learn_runtime(programs[:1], [known], board, output=tmp_path / "ours.yaml",
                              call="infer_once")
    assert any(block.loops for kernel in made.kernels for block in kernel.blocks)
    assert {kernel.op for kernel in made.kernels} == {one.op for one in asked.layers} - {"reshape"}
    ran = twin.predict(twin.deploy_elf(programs[-1], board, call="infer_once")).layers[:-1]
    learnt = [one for one in twin.predict(twin.deploy(asked, board, runtime=str(
        made.path))).layers if not one.alias]
    assert len(ran) == len(learnt) == 5
    for one, layer in zip(learnt[:4], ran, strict=False):  # Of the last one shape is known.
        assert not one.assumed
        assert one.instructions == pytest.approx(layer.instructions, rel=0.01)


def test_what_was_seen_is_given_back_and_what_was_not_is_assumed(lesson, images, tmp_path):
    assert {one.op for one in lesson.kernels} == {
        "conv_2d", "depthwise_conv_2d", "average_pool_2d", "fully_connected", "softmax"}
    assert all(one.residual < 0.02 for one in lesson.kernels)
    pixels = next(one for one in lesson.kernels if one.op == "conv_2d")
    # Two columns at a time: firmware/kernels multiplies each weight by both.
    assert (pixels.along, pixels.turns) == ("pixels", (("pixel up to 2", 1.0),))
    other = twin.predict(twin.deploy("ic", "nucleo_h723zg", runtime=str(lesson.path)))
    unseen = [one for one in other.layers if not one.alias and not lesson.runtime.learnt.knows(
        one.op, "int8")]
    assert unseen and all(one.assumed for one in unseen)
    more = tmp_path / "more.yaml"
    more.write_bytes(lesson.path.read_bytes())
    joined = twin.learn_runtime([images["sww"]], ["sww"], BOARD, output=more, call="infer_once")
    assert len(joined.runtime.learnt.sources) == 2
    assert {one.network for one in joined.seen} == {"kws", "sww"}
    checked = joined.runtime.learnt.checked  # Each by the other; sww's layers are of one line.
    assert {one.network for one in checked} == {"kws", "sww"}
    assert not lesson.runtime.learnt.checked
    whole = sum(one.instructions for one in checked)
    for one in checked:
        assert one.op == "average_pool_2d" or one.predicted is not None  # sww has none
        if one.predicted is not None and one.instructions > whole / 50:
            assert abs(one.error) < (0.25 if one.network == "kws" else 0.05)
    shown = CliRunner().invoke(app, ["runtimes", str(joined.path)], terminal_width=80)
    assert "by the others" in shown.stdout
    board = twin.deploy("kws", "rpi_pico", runtime=str(lesson.path))  # Its code is none of a M0+.
    assert all(one.assumed for one in twin.predict(board).layers if not one.alias)


def test_what_is_no_runtime_of_ours_is_refused_by_key(lesson, images, tmp_path):
    with pytest.raises(UsageError, match="one --model for each ELF"):
        twin.learn_runtime([images["kws"]], [], BOARD, output=tmp_path / "a.yaml", call="x")
    with pytest.raises(UsageError, match="is a runtime already"):
        twin.learn_runtime([images["kws"]], ["kws"], BOARD, output="cmsis-nn.yaml", call="x")
    (tmp_path / "b.yaml").write_text("schema: 1\n")
    with pytest.raises(UsageError, match="no runtime that was learnt"):
        twin.learn_runtime([images["kws"]], ["kws"], BOARD, output=tmp_path / "b.yaml",
                           call="infer_once")
    document = yaml.safe_load(lesson.path.read_text())
    document["learnt"] |= {"isa": "rv32imac", "core": "rv32imac"}
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(document))
    learnt = load_runtime(str(tmp_path / "d.yaml")).learnt
    assert (learnt.isa, learnt.core) == ("rv32imc", "rv32imc")
    del document["learnt"]["kernels"][0]["turns"]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(RuntimeRefusedError, match="learnt: KeyError 'turns'"):
        load_runtime(str(tmp_path / "c.yaml"))
    shown = CliRunner().invoke(app, ["runtimes", str(lesson.path)], terminal_width=80)
    assert shown.exit_code == 0 and "counted by running ELF" in shown.stdout


def test_coefficients_are_the_plainest_that_give_the_counts():
    terms = [{"call": 1, "output": 800, "pixel": 100, "mac by 4": 1600},
             {"call": 1, "output": 300, "pixel": 75, "mac by 4": 900},
             {"call": 1, "output": 640, "pixel": 10, "mac by 4": 2560},
             {"call": 1, "output": 96, "pixel": 12, "mac by 4": 100}]
    assert fit_series(terms[:1], [800]) == (("output", 1.0),)
    assert fit_series(terms, [1600 + 17, 900 + 17, 2560 + 17, 117]) == (
        ("call", 17.0), ("mac by 4", 1.0))
    assert fit_series(terms, [0, 0, 0, 0]) == ()
    # What data decide may have any share, of a plain term.
    (name, share), = fit_series(terms, [296, 112, 236, 35])
    assert name == "output" and share == pytest.approx(0.37, rel=0.02)


def test_runs_are_cut_where_code_is_entered_so_that_loops_count_whole():
    into = Run(function="f", start=0, sizes=(2, 2, 2), code="mov r0, r1\nadd r0, r1\nbne #0x0",
               cause=None, target=2)
    again = Run(function="f", start=2, sizes=(2, 2), code="add r0, r1\nbne #0x0", cause=None,
                target=2)
    codes, (counts,) = cut_runs({"into": into, "again": again}, [
        {"into": (5, 0, 5), "again": (15, 10, 0)}])
    assert codes["f+0x2"].loops and not codes["f+0x0"].loops
    # Five times into a loop of four turns.
    assert counts == {"f+0x0": (5, 5), "f+0x2": (20, 5)}


def test_layers_are_matched_in_order_with_what_is_fused_left_out():
    graph = deploy("kws", BOARD, runtime="cmsis-nn").executed
    weighted = [one for one in graph.layers if one.op in ("conv_2d", "depthwise_conv_2d",
                                                          "fully_connected")]
    ran = [Ran(name=f"layer_{one.index}", functions=("kernel",), macs=layer_macs(graph, one))
           for one in weighted]
    pairs = match_layers(graph, ran, "app.elf")
    assert [graph.layers[place].index for place, _ in pairs] == [one.index for one in weighted]
    with pytest.raises(NotTheSameError, match=r"app.elf: not of network ad: layer 1 fully_con.* of "
                                              r"16,384 MACs has no counterpart; next there is "):
        match_layers(deploy("ad", BOARD, runtime="cmsis-nn").executed, ran[1:3], "app.elf")


def test_layers_with_empty_lanes_match_where_all_products_agree():
    graph = deploy("kws", BOARD, runtime="cmsis-nn").executed
    weighted = [one for one in graph.layers if layer_macs(graph, one)]
    ran = [Ran(name=f"layer_{one.index}", functions=("kernel",),
               macs=(5 if one.op == "depthwise_conv_2d" else 1) * layer_macs(graph, one))
           for one in weighted]
    assert len(match_layers(graph, ran, "app.elf")) == len(weighted)
    with pytest.raises(NotTheSameError, match="not of network kws"):
        match_layers(graph, [dataclasses.replace(one, macs=5 * one.macs) for one in ran],
                     "app.elf")
