"""Output of the Neural-ART compiler, read and run: c_info.json, memory pools, tables of epochs."""

import csv
import json
from dataclasses import replace

import pytest

from calibration.datasets.tables import read_csv
from hwmodels.board.file import load_board
from hwmodels.npu.compiler import estimate_max_cycles
from hwmodels.npu.run import run_epochs
from twin.errors import ModelError, UsageError
from twin.network.readers.neural_art import is_compiled, read_compiled, read_pools, to_epochs
from twin.prediction.accelerator.report import make_compiled_sheet

BOARD = load_board("stm32n6570_dk")
TABLE = "perlayer/n6_atonn_compiler_epochs_cinfo.csv"


def node(name, number, unit, kind, inputs=(), outputs=()):
    return {"name": name, "id": number, "inputs": list(inputs), "outputs": list(outputs),
            "subgraph_nodes": [], "mapping": "NODE_HW", "type": kind,
            "attributes": {"HWUnit": unit} if unit else {}}


def buffer(number, pool, size, *, param=False):
    return {"name": f"buffer_{number}", "id": number, "mpool_id": pool, "size_bytes": size,
            "is_param": param}


def pool(number, name, width, ratio, address, cacheable="CACHEABLE_OFF"):
    return {"id": number, "name": name, "address": str(address), "size_bytes": 458752,
            "cacheable": cacheable, "attributes": {"byte_width": width, "freq_ratio": ratio}}


def made_info():
    """In the form of a c_info.json: figures are those of epochs 2 and 6 of mobilenet_v2_0.5_128
    under ST Edge AI 3.0.0, whose c_info.json is public."""
    first = {**node("epoch_2", 203, "", "", (3, 60, 109), (4,)), "subgraph_nodes": [
        node("Conv2D_4", 204, "CONV_ACC_V2 0", "Conv", (3, 60)),
        node("Conv2D_4_off_bias_9", 205, "ARITH_ACC_V2 0", "Add", (109,)),
        node("Conv2D_8_suboff_12", 206, "ARITH_ACC_V2 1", "Sub", (), (4,))]}
    scattered = {**node("epoch_6", 218, "", "", (7, 61), (8,)), "subgraph_nodes": [
        node("Conv2D_18", 219, "CONV_ACC_V2 0", "Conv", (7, 61), (8,))]}
    software = {**node("epoch_56", 447, "", "", (8,), (9,)), "mapping": "NODE_SW",
                "subgraph_nodes": [node("Softmax_212", 448, "", "Softmax")]}
    ignored = {**node("epoch_0", 1, "", ""), "mapping": "NODE_NO_X", "subgraph_nodes": []}

    def estimate(number, ops, compute, maximum):
        return {"node_id": number, "ops": ops, "compute_cycles": compute, "max_cycles": maximum}

    def access(number, pool_id, reads, read_cycles, writes, write_cycles):
        return {"node_id": number, "mpool_id": pool_id, "reads": reads,
                "read_cycles": read_cycles, "writes": writes, "write_cycles": write_cycles}

    return {
        "json_schema_version": "2.0",
        "environment": {"tools": [{"name": "ST.EdgeAI.Core", "version": "3.0.0"}]},
        "buffers": [buffer(3, 2, 49152), buffer(4, 2, 32768), buffer(7, 2, 196608),
                    buffer(8, 2, 49152), buffer(9, 2, 10), buffer(60, 9, 216, param=True),
                    buffer(61, 9, 864, param=True), buffer(109, 9, 32, param=True)],
        "graphs": [{"name": "network", "nodes": [ignored, first, scattered, software]}],
        "memory_pools": [pool(2, "npuRAM5", 8, 1.25, 875429888),
                         pool(9, "octoFlash", 1, 6, 1895825408, "CACHEABLE_ON")],
        "memory_accesses": [
            access(203, 9, 216, 1296, 0, 0), access(203, 2, 49152, 7680, 32768, 40960),
            access(218, 9, 864, 5184, 0, 0), access(218, 2, 196608, 245760, 49152, 30720 // 4),
            access(447, 2, 10, 2, 10, 2), access(1, 2, 0, 0, 0, 0)],
        "power_estimates": [estimate(1, 0, 0, 0), estimate(203, 1835008, 49152, 49152),
                            estimate(218, 1867776, 98304, 245760), estimate(447, 0, 522, 522)],
    }


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
    first, scattered, software = to_epochs(network, BOARD.npu)
    out = next(e for e in first.engines if e.direction == "out")
    source = next(e for e in first.engines if e.operand == "input")
    assert out.pattern == "channel_interleaved"  # 40,960 cycles: 1.25 for each of 32,768 bytes
    assert source.pattern == "contiguous"  # 7,680: 1.25 for each 8 of 49,152 bytes
    strided = next(e for e in scattered.engines if e.operand == "input")
    assert strided.pattern == "channel_interleaved"
    assert estimate_max_cycles(first, BOARD.npu) == 49152
    assert estimate_max_cycles(scattered, BOARD.npu) == 245760
    runs = run_epochs((first, scattered, software), BOARD.npu)
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


@pytest.mark.parametrize("quoted", [True, False])
def test_memory_pools_of_both_forms(tmp_path, quoted):
    def number(value):
        return str(value) if quoted else value

    document = {"memory": {"mempools": [{
        "name": "npuRAM6", "fname": "AXISRAM6",
        "prop": {"byteWidth": number(8), "freqRatio": number(1.25),
                 "cacheable": "CACHEABLE_OFF"},
        "offset": {"value": "0x34350000" if quoted else "855360",
                   "magnitude": "BYTES" if quoted else "KBYTES"},
        "size": {"value": "448", "magnitude": "KBYTES"}}]}}
    (only,) = read_pools(write(tmp_path, document, "stm32n6.mpool"))
    expected = 0x34350000 if quoted else 855360 * 1024
    assert (only.address, only.size_bytes) == (expected, 448 * 1024)
    assert (only.byte_width_bytes, only.frequency_ratio) == (8, 1.25)
    with pytest.raises(ModelError, match="not a memory-pool file"):
        read_pools(write(tmp_path, {"memory": {}}, "other.mpool"))


def models():
    return list(dict.fromkeys(row["model"] for row in read_csv(TABLE)))


@pytest.mark.parametrize("model", models())
def test_published_tables_give_the_compilers_estimate(tmp_path, model):
    rows = [row for row in read_csv(TABLE) if row["model"] == model]
    path = tmp_path / "epochs.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert is_compiled(path)
    network = read_compiled(path)
    # Before 3.0.0 the tool adds the reads and writes of a pool.
    npu = replace(BOARD.npu, sums_directions="3.0.0" not in model)
    hardware = [pair for pair in zip(network.epochs, to_epochs(network, npu), strict=True)
                if pair[0].kind == "hw"]
    exact = sum(abs(estimate_max_cycles(epoch, npu) - compiled.max_cycles) <= 1
                for compiled, epoch in hardware)
    assert len(hardware) >= 55
    assert exact == len(hardware)


def test_a_table_is_refused_by_column_or_network(tmp_path):
    path = tmp_path / "network.csv"
    path.write_text("epoch,ops\nepoch_1,5\n", encoding="utf-8")
    with pytest.raises(ModelError, match="column 'mapping' is missing"):
        read_compiled(path)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("model,epoch,mapping,ops,compute_cycles,max_cycles\n"
                     "a,epoch_1,NODE_HW,0,0,0\nb,epoch_1,NODE_HW,0,0,0\n")
    with pytest.raises(ModelError, match="holds 2 networks"):
        read_compiled(path)


def test_columns_by_pool_are_read(tmp_path):
    path = tmp_path / "network.csv"
    path.write_text("epoch,mapping,ops,compute_cycles,max_cycles,npuRAM5_reads,npuRAM5_read_cycles,"
                    "npuRAM5_writes,npuRAM5_write_cycles\n"
                    "epoch_1,NODE_HW,0,0,61440,49152,7680,49152,61440\n", encoding="utf-8")
    network = read_compiled(path)
    (epoch,) = to_epochs(network, BOARD.npu)
    assert estimate_max_cycles(epoch, BOARD.npu) == 61440


def test_a_compiled_network_needs_a_board_with_an_accelerator(tmp_path):
    network = read_compiled(write(tmp_path, made_info()))
    sheet = make_compiled_sheet(network, BOARD)
    assert sheet.totals["max_cycles"] == 49152 + 245760 + 522
    assert sheet.epochs[2].counters.get("core_npu_cycles") is None
    with pytest.raises(UsageError, match="no accelerator"):
        make_compiled_sheet(network, load_board("nucleo_l4r5zi"))
