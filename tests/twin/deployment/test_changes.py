"""What-if paths read once into typed changes, and where each is listed."""

import re
from pathlib import Path

import pytest

from hwmodels.board.file import load_board, paths_of
from twin.api.requests import SETTINGS_HELP
from twin.deployment.changes import (
    NEAREST,
    ChangeBoard,
    ChangeLoad,
    ChangeRuntime,
    Choose,
    list_paths,
    list_paths_of,
    parse_changes,
)
from twin.deployment.deploy import choose_room, deploy, deploy_towards
from twin.errors import DoesNotFitError, RuntimeRefusedError, TwinError, UsageError
from twin.network.readers import read_model
from twin.runtimes import load_runtime
from twin.runtimes.targets import TARGETS, check_target, load_target

GRAPH, BOARD = read_model("kws"), load_board("nucleo_l4r5zi")


def parse(overrides, runtime="cmsis-nn", board=BOARD):
    return parse_changes(overrides, GRAPH, board, load_runtime(runtime))


def test_each_path_becomes_one_change_in_the_order_they_are_applied():
    changes = parse({
        "clocks.cpu.frequency_hz": "80MHz", "load.hpdma1.memory": "sram",
        "load.hpdma1.bytes_per_second": "2e6", "placement.weights_via": "hpdma1",
        "placement.arena": "sram", "placement.weights": "flash", "offload.host": "softmax, 2",
        "runtime": "neural-art@3.0.0"}, board=load_board("stm32n6570_dk"))
    assert changes == (
        ChangeRuntime(runtime=load_runtime("neural-art@3.0.0"), notes=()),
        Choose(field="host", value=("softmax", "2")), Choose(field="weights", value="flash"),
        Choose(field="arena", value="sram"), Choose(field="weights_via", value="hpdma1"),
        ChangeBoard(settings={"clocks.cpu.frequency_hz": "80MHz"}),
        ChangeLoad(master="hpdma1", key="memory", value="sram"),
        ChangeLoad(master="hpdma1", key="bytes_per_second", value=2e6))


def test_a_path_of_another_target_names_a_runtime_that_has_it():
    with pytest.raises(UsageError, match=r"cmsis-nn@6\.0 does not offload; accepted with a runtime "
                                         "that does, such as ai8x"):
        parse({"offload.weight_bits": "4"})


def test_every_path_is_listed_with_what_it_accepts():
    listed = {name: accepted for name, accepted, _ in list_paths()}
    assert listed["placement.weight_bits"] == "4, 8"
    assert {"runtime", "placement.weights", "placement.arena", "placement.code",
            "placement.weights_via", "placement.tiles", "load.MASTER.bytes_per_second",
            "offload.host"} <= listed.keys()
    assert all(accepted and does for _, accepted, does in list_paths())
    assert "placement.weights" in SETTINGS_HELP and "offload.host" in SETTINGS_HELP


def test_paths_of_a_board_carry_its_own_names():
    listed = {name: accepted for name, accepted, _ in list_paths_of(load_board("stm32n6570_dk"))}
    assert {"load.hpdma1.bank", "npu.units.CONV_ACC.count", "caches.l1d.size_bytes"} <= set(listed)
    assert "KiB" in listed["caches.l1d.size_bytes"]
    assert "plru" in listed["caches.l1d.replacement"]
    assert not [name for name in listed if ".NAME" in name or "MASTER" in name]


@pytest.mark.parametrize("name, absent", [
    ("nrf52840dk", "npu.cache.line_bytes"), ("rpi_pico2", "memories.flash.sdram.row_bytes")])
def test_a_part_a_board_does_not_have_has_no_paths(name, absent):
    board = load_board(name)
    assert {path for path, *_ in list_paths_of(board) if path.split(".")[0] in (
        "npu", "memories")} <= paths_of(board)
    with pytest.raises(TwinError, match="no such path") as refused:
        deploy("kws", board).replace({absent: "32"})
    assert absent not in str(refused.value).partition("no such path")[2]


def test_the_page_of_paths_names_none_that_is_not_listed():
    page = (Path(__file__).parents[3] / "docs" / "what-if.md").read_text(encoding="utf-8")
    board = load_board("stm32n6570_dk")
    listed = [name for name, *_ in (*list_paths(), *list_paths_of(board))]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    for row in rows:
        first, *others = re.findall(r"`([^`]+)`", row)
        stem = first.rpartition(".")[0]
        for path in (first, *(stem + one if one.startswith(".") else one for one in others)):
            pattern = re.sub(r"NAME|DMA", r"\\w+", re.escape(path))
            assert any(re.fullmatch(pattern, name) for name in listed), path


def test_a_runtime_file_may_name_a_target_of_its_own(tmp_path, monkeypatch):
    text = (load_folder() / "cmsis-nn.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text + "target: my_target:Mine\n", encoding="utf-8")
    (tmp_path / "my_target.py").write_text(
        "from twin.deployment.core import Core\n"
        "class Mine(Core):\n"
        "    def remarks(self, deployment, temperature):\n"
        "        yield 'runs on my machine'\n", encoding="utf-8")
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    deployment = deploy("kws", BOARD, runtime="mine")
    assert list(deployment.target.remarks(deployment, "warm")) == ["runs on my machine"]
    (tmp_path / "lost.yaml").write_text(text + "target: acelerator\n", encoding="utf-8")
    with pytest.raises(RuntimeRefusedError, match=r"lost\.yaml:target: no target 'acelerator'; "
                                                  "did you mean accelerator"):
        load_runtime("lost")


def load_folder():
    from twin.runtimes.file import runtime_folders

    return runtime_folders()[-1]


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_of_the_registry_loads(name):
    check_target("made", name)
    target = load_target(name)
    assert isinstance(target.paths, tuple)


def test_a_target_that_cannot_be_loaded_is_refused_in_a_line():
    with pytest.raises(RuntimeRefusedError, match=r"nowhere:Nothing.*cannot be loaded"):
        load_target("nowhere:Nothing")


def test_a_board_without_the_accelerator_is_refused_wherever_memories_are_asked():
    with pytest.raises(RuntimeRefusedError, match="needs an accelerator of family neural-art"):
        deploy("kws", BOARD, runtime="neural-art", arena="sram", weights="flash")


@pytest.mark.parametrize(("path", "meant"), [
    ("runtme", "runtime"), ("offload.hst", "offload.host"),
    ("load.dma1.bytes_per_secnd", "load.dma1.bytes_per_second"), ("load.foo", "load.dma1.memory"),
    ("memories.flash.wait_state", "memories.flash.wait_states"),
    ("placement.weight", "placement.weights")])
def test_a_path_there_is_not_is_answered_with_the_eight_nearest(path, meant):
    deployment = deploy("kws", "nucleo_l4r5zi")
    with pytest.raises(TwinError, match="no such path") as refused:
        deployment.replace({path: "1"})
    near = str(refused.value).partition("nearest: ")[2].partition(";")[0].split(", ")
    assert near[0] == meant and len(near) == NEAREST == 8
    with pytest.raises(TwinError, match="nothing is like it; all of them: twin explain"):
        deployment.replace({"nosuch": "1"})


def test_a_value_that_leaves_the_network_as_it_is_is_no_change():
    plain = deploy("kws", BOARD)
    for path, value in (("network.width", "1"), ("network.width", 1.0), ("network.prune", "0"),
                        ("network.width", "0.95"),
                        ("network.precision", "int8"), ("network.fusion", "all"),
                        ("network.resolution", "49x10"), ("network.resolution", "100%"),
                        ("network.batch", 1), ("network.patches", 1)):
        same = plain.replace({path: value})
        assert same.graph is plain.graph and not same.rewritten and same.original is None
    narrow = plain.replace({"network.width": "0.5"})
    assert narrow.graph is not plain.graph
    back = narrow.replace({"network.width": "1"})
    assert back.graph.sha256 == plain.graph.sha256 and not back.rewritten
    for change in ({"network.width": 1}, {"network.precision": "int8", "network.fusion": "all"}):
        assert deploy("kws", BOARD, network=change).original is None
    floats = plain.replace({"network.precision": "float32"})
    assert floats.replace({"network.precision": "int8"}).graph.sha256 == plain.graph.sha256


def test_a_model_goes_where_changes_make_room_for_it_only_where_it_has_none():
    fits = deploy_towards("kws", BOARD, {"placement.arena": "external", "network.width": "0.5"})
    assert fits.arena == "sram" and not fits.rewritten
    assert choose_room({"memories.sram.size_bytes": "64MiB", "placement.weights_via": "dma1",
                        "clocks.cpu.frequency_hz": "8MHz"}) == {
        "memories.sram.size_bytes": "64MiB"}
    with pytest.raises(DoesNotFitError):
        deploy_towards("mobilenet_v1_1.0_224", BOARD, {"placement.weights_via": "dma1"})
    grown = deploy_towards("mobilenet_v1_1.0_224", BOARD, {
        "memories.sram.size_bytes": "64MiB", "memories.flash.size_bytes": "64MiB"})
    assert grown.board.memory("sram").size_bytes == 64 << 20
