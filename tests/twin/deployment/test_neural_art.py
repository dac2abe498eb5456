"""Output of the Neural-ART compiler, read and run: c_info.json, memory pools."""

import json

import pytest
from made_info import made_info

from hwmodels.board.file import load_board
from hwmodels.schedule.run import run_tasks
from twin.attribution.predicted import side_of_compiled
from twin.deployment.choice import find_compiler
from twin.errors import ModelError, UsageError
from twin.runtimes.neural_art.compiled import to_tasks
from twin.runtimes.neural_art.compiler_output import read_compiled
from twin.runtimes.neural_art.profile import estimate_max_cycles

BOARD = load_board("stm32n6570_dk")


def write(tmp_path, document, name="c_info.json"):
    path = tmp_path / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_info_gives_operations_units_bytes_and_buffers(tmp_path):
    network = read_compiled(write(tmp_path, made_info()))
    assert network.tool == "ST.EdgeAI.Core 3.0.0"
    first, _, software = network.epochs
    assert dict(first.operations) == {"Conv": 1, "Add": 1, "Sub": 1}
    assert dict(first.units) == {"CONV_ACC": 1, "ARITH_ACC": 2}
    assert (first.ops, first.compute_cycles, first.max_cycles) == (1835008, 49152, 49152)
    assert {(b.pool, b.size_bytes, b.weights) for b in first.inputs} == {
        ("npuRAM5", 49152, False), ("octoFlash", 216, True)}  # the bias is no stream
    assert software.kind == "sw"
    assert [pool.name for pool in network.pools] == ["npuRAM5", "octoFlash"]
    assert network.pools[1].cacheable and network.pools[1].frequency_ratio == 6


def test_epochs_run_with_the_compilers_cycles_and_patterns(tmp_path):
    network = read_compiled(write(tmp_path, made_info()))
    first, scattered, software = to_tasks(network, BOARD.npu)
    out = next(e for e in first.transfers if e.direction == "out")
    source = next(e for e in first.transfers if e.operand == "input")
    assert out.pattern == "channel_interleaved"  # 40,960 cycles: 1.25 for each of 32,768 bytes
    assert source.pattern == "contiguous"  # 7,680: 1.25 for each 8 of 49,152 bytes
    strided = next(e for e in scattered.transfers if e.operand == "input")
    assert strided.pattern == "channel_interleaved"
    assert estimate_max_cycles(first, BOARD.npu) == 49152
    assert estimate_max_cycles(scattered, BOARD.npu) == 245760
    runs = run_tasks((first, scattered, software), BOARD.npu)
    assert [run.compute_cycles for run in runs] == [49152, 98304, 0]


@pytest.mark.parametrize("key", ["memory_pools", "buffers", "graphs", "power_estimates",
                                 "memory_accesses"])
def test_a_missing_part_is_named(tmp_path, key):
    document = made_info()
    del document[key]
    with pytest.raises(ModelError, match=r"c_info\.json: not a c_info\.json"):
        read_compiled(write(tmp_path, document))


def test_older_schemas_name_units_in_the_nodes(tmp_path):
    document = made_info()
    for epoch in document["graphs"][0]["nodes"]:
        for part in epoch["subgraph_nodes"]:
            del part["type"], part["attributes"]
    network = read_compiled(write(tmp_path, document))
    assert dict(network.epochs[0].units) == {"CONV_ACC": 1, "ARITH_ACC": 2}


def test_a_compiled_network_needs_a_board_with_an_accelerator(tmp_path):
    path = str(write(tmp_path, made_info()))
    compiled_by = find_compiler(path)
    assert compiled_by is not None and find_compiler("kws") is None
    sheet, (remark,) = side_of_compiled(path, BOARD)
    assert "software" in remark
    assert sheet.whole.counts["max_cycles"] == 49152 + 245760 + 522
    assert sheet.parts[2].counts.get("core_npu_cycles") is None
    with pytest.raises(UsageError, match="no accelerator"):
        side_of_compiled(path, load_board("nucleo_l4r5zi"))
