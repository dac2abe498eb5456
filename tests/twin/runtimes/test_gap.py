"""GAP8 and GAP9: NE16's jobs, cluster kernels, layers cut into tiles."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import benchmarks.accuracy.dsp
import twin
from benchmarks.accuracy.dsp import job_of_row, time_kernel
from calibration.datasets import read_table
from hwmodels.board.file import load_board
from hwmodels.errors import BoardError
from tests.oracles.ne16_accesses import count_accesses
from twin.errors import PlacementError, RuntimeRefusedError, UsageError
from twin.network.graph import GraphLayer
from twin.network.zoo.builder import Builder
from twin.reports.tables.header import answer_pairs
from twin.runtimes.gap import ne16
from twin.runtimes.gap.cluster import Part, _share_part, count_cycles, count_trips

ROWS = read_table("ne16_jobs").rows
KERNELS = Path(benchmarks.accuracy.dsp.__file__).with_name("gap8_kernels.yaml")


def deploy(graph, board="gap9evk", **options):
    return twin.deploy(graph, board, runtime="gap", **options)


def conv(channels=32, kernel=3, size=16, inputs=16, stride=1):
    net = Builder("conv", 0)
    return net.finish(net.conv(net.input((1, size, size, inputs)), channels, kernel, stride))


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_jobs_of_the_public_rtl_are_exact(row):
    job = job_of_row(row)
    assert (ne16.count_cycles(job), *count_accesses(job)) == (
        row["busy_cycles"], row["reads"], row["writes"])


def test_a_job_is_its_tiles():
    # 36 tiles of 3 x 3; 2 passes of 16 channels, a patch and 8 bits of 32 filters each
    job = ne16.Job(kind="conv3x3", rows=18, columns=18, inputs=32, outputs=32, biased=False)
    assert ne16.count_cycles(job) == 36 * (2 * (45 + 8 * 32) + 32 // 4 + 8 + 4 + 9)


def test_a_convolution_of_the_cores_is_its_blocks():
    graph = conv(channels=8, kernel=5, inputs=4)
    trips = count_trips(GraphLayer(graph, graph.layers[0]), Part(rows=16, columns=16, channels=8))
    assert trips == {"matmul": 128 * 2 * 25, "matmul_block": 256, "column": 256 * 25,
                     "requantise": 2048, "row": 16}


OF_OTHERS = {
    # 3 x 3 of one filter a channel: two fours of taps and one left; columns of three in one four
    "depthwise": (lambda net, image: net.depthwise(image, 3), {
        "depthwise_tap": 512 * 2, "requantise": 512, "depthwise_left": 512, "depthwise_row": 512,
        "depthwise_copy": 512, "depthwise_output": 512}),
    # five columns are two fours; with a stride of two a copy for each row of it
    "depthwise of 5, by twos": (lambda net, image: net.depthwise(image, 5, 2), {
        "depthwise_tap": 512 * 6, "requantise": 512, "depthwise_left": 512, "depthwise_row": 1024,
        "depthwise_copy": 2048, "depthwise_output": 512}),
    "pointwise": (lambda net, image: net.conv(image, 8, 1), {
        "matmul": 32 * 2 * 2, "matmul_block": 64, "requantise": 512}),
    "mean": (lambda net, image: net.mean(image), {"sum_tap": 128 * 256, "pool_output": 512}),
    "softmax": (lambda net, image: net.softmax(image), {"softmax": 512})}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_each_kernel_runs_as_often_as_its_loops_turn(name):
    """A part of 4 rows, 16 columns and 8 channels: 64 pixels, 512 outputs."""
    make, expected = OF_OTHERS[name]
    net = Builder("made", 0)
    graph = net.finish(make(net, net.input((1, 16, 16, 8))))
    part = Part(rows=4, columns=16, channels=8)
    assert part.pixels == 64
    assert count_trips(GraphLayer(graph, graph.layers[0]), part) == {**expected, "row": 4}


@pytest.mark.parametrize(("make", "part", "share"), [
    # rows as they are, 9 of them on 8 cores: two rounds for one and an eighth
    (lambda net, image: net.conv(image, 8, 5), (9, 16, 8), 16 / 9),
    # channels where each has a filter of its own, 12 on 8 cores
    (lambda net, image: net.depthwise(image, 3), (9, 16, 12), 16 / 12),
    # what is dealt most evenly: 9 rows, 27 pixels or 16 fours of channels
    (lambda net, image: net.softmax(image), (9, 3, 64), 1.0),
    (lambda net, image: net.softmax(image), (9, 8, 4), 1.0),
    (lambda net, image: net.softmax(image), (8, 1, 4), 1.0)])
def test_a_part_is_dealt_by_what_is_dealt_most_evenly(make, part, share):
    net = Builder("made", 0)
    graph = net.finish(make(net, net.input((1, 16, 16, 8))))
    assert _share_part(graph.layers[0], Part(rows=part[0], columns=part[1], channels=part[2]),
                       8) == pytest.approx(share)


def test_kernels_deal_rows_channels_and_halves_of_rows_to_cores():
    deployment = deploy(conv(channels=8, kernel=1))
    npu = replace(deployment.board.npu, pools=())  # without banks to wait for

    def gain(graph, **part):
        layer, alone = GraphLayer(graph, graph.layers[0]), replace(npu.unit("CLUSTER"), count=1)
        one = count_cycles(layer, Part(**part), replace(npu, units=(alone,)))
        return (one.cycles - 60) / (count_cycles(layer, Part(**part), npu).cycles - 60)

    pointwise, window = conv(channels=8, kernel=1), conv(channels=8, kernel=5)
    assert gain(pointwise, rows=8, columns=16, channels=8) == pytest.approx(8, rel=0.01)
    assert gain(pointwise, rows=4, columns=16, channels=8) == pytest.approx(8, rel=0.01)
    assert gain(pointwise, rows=9, columns=16, channels=8) == pytest.approx(6, rel=0.01)
    assert gain(window, rows=9, columns=16, channels=8) == pytest.approx(4.5, rel=0.01)


def test_eight_cores_take_an_eighth_and_what_banks_and_barrier_cost():
    graph = conv(channels=8, kernel=5, inputs=4)
    part = Part(rows=16, columns=16, channels=8)
    deployment = deploy(graph)
    eight = count_cycles(GraphLayer(graph, graph.layers[0]), part, deployment.board.npu).cycles
    one = count_cycles(GraphLayer(graph, graph.layers[0]), part, deployment.replace(
        {"npu.units.CLUSTER.count": 1}).board.npu).cycles
    assert 1 < 8 * (eight - 60) / (one - 60) < 1.15


def test_what_the_engine_computes_runs_there_and_all_else_on_the_cores():
    net = Builder("mixed", 0)
    image = net.conv(net.input((1, 16, 16, 8)), 16, 5)
    image = net.conv(net.depthwise(image, 3), 16, 1)
    graph = net.finish(net.softmax(net.fully_connected(net.flatten(net.mean(image)), 10)))
    prediction = twin.predict(deploy(graph))
    kinds = {graph.layers[epoch.step.layers[0]].op: unit.kind for epoch in prediction.tasks
             for unit in epoch.run.task.units}
    assert kinds == {"conv_2d": "NE16", "depthwise_conv_2d": "NE16", "mean": "CLUSTER",
                     "fully_connected": "NE16", "softmax": "CLUSTER"}
    assert next(unit.kind for epoch in prediction.tasks if epoch.step.layers == (0,)
                for unit in epoch.run.task.units) == "CLUSTER"
    assert {unit.kind for epoch in twin.predict(deploy(graph, "gapuino")).tasks
            for unit in epoch.run.task.units} == {"CLUSTER"}


def test_tiles_compute_all_of_a_layer_and_write_it_once():
    graph = conv(channels=64, size=40, inputs=32)
    tasks = [epoch.run.task for epoch in twin.predict(deploy(graph)).tasks]
    assert sum(unit.macs for task in tasks for unit in task.units) == pytest.approx(
        40 * 40 * 64 * 9 * 32, rel=1e-4)
    moved = {operand: sum(one.bytes for task in tasks for one in task.transfers
                          if one.operand == operand) for operand in ("output", "weights")}
    assert moved == {"output": 40 * 40 * 64, "weights": 64 * (9 * 32 + 8)}


def test_a_smaller_memory_takes_smaller_tiles_and_more_time():
    graph = conv(channels=64, size=40, inputs=32)
    whole = deploy(graph)
    times = [twin.predict(whole.replace({"npu.pools.L1.size_bytes": size})).time_us
             for size in ("128KiB", "64KiB", "48KiB", "32KiB", "24KiB")]
    assert times == sorted(times)


def test_tiles_chosen_take_no_longer_than_any_number_of_rows_asked_for():
    for name, board, size, rows in (("kws", "gapuino", "64KiB", (8,)),
                                    ("ic", "gap9evk", "32KiB", (6,))):
        whole = twin.deploy(name, board).replace({"npu.pools.L1.size_bytes": size})
        chosen = twin.predict(whole).time_us
        assert all(chosen <= twin.predict(whole.replace({"offload.tile_rows": str(one)})).time_us
                   for one in rows)


def test_transfers_are_hidden_with_two_buffers():
    deployment = deploy(conv(channels=64, size=40, inputs=32))
    rows = deployment.replace({"offload.tile_rows": "6"})
    assert twin.predict(rows.replace({"offload.buffers": "1"})).time_us > (
        twin.predict(rows).time_us)
    with pytest.raises(UsageError, match="accepted: 1, 2"):
        deployment.replace({"offload.buffers": "3"})
    with pytest.raises(UsageError, match="accepted: auto"):
        deployment.replace({"offload.tile_rows": "0"})


def test_what_no_tile_of_fits_stays_on_the_host():
    deployment = deploy(conv(channels=64, size=40, inputs=32)).replace(
        {"npu.pools.L1.size_bytes": "16KiB"})
    assert deployment.plan.reasons == (
        "L1 of 16,384 bytes holds no row of it, even for one core",)
    made = twin.predict(deployment)
    assert [task.run.task.operations for task in made.tasks] == [(("conv_2d", 1),)]
    assert "L1 of 16,384 bytes" in dict(answer_pairs(made))["helps"]


def test_columns_that_find_no_room_leave_cores_idle():
    graph = conv(channels=64, size=8, inputs=64)
    made = [twin.predict(deploy(graph, "gapuino").replace({"npu.pools.L1.size_bytes": size}))
            for size in ("28KiB", "24KiB", "20KiB")]
    counts = [{unit.count for task in one.tasks for unit in task.run.task.units} for one in made]
    assert counts == [{8}, {4}, {2}]
    assert 1.3 < made[1].time_us / made[0].time_us < made[2].time_us / made[1].time_us
    assert any("layers 0 leave cores idle" in text for text in made[1].warnings)
    assert not any("columns" in text for text in made[0].warnings)


def test_energy_of_the_cluster_goes_with_the_square_of_its_voltage():
    deployment = deploy(conv(channels=64, size=40, inputs=32))
    fast = deployment.replace({"clocks.fc.frequency_hz": "370MHz"})
    assert fast.board.clock("cluster").frequency_hz == 370e6
    assert fast.board.power.voltage_scale == "high"
    energies = [one.target.estimate_energy(one.board, twin.predict(one).bill)[0]
                for one in (deployment, fast)]
    assert energies[1] / energies[0] == pytest.approx((0.8 / 0.65) ** 2, rel=1e-6)


def test_a_board_without_a_local_memory_is_refused_in_a_line(tmp_path):
    source = Path(load_board.__code__.co_filename).parents[1] / "boards" / "gap9evk.yaml"
    text = source.read_text().replace("scratch: true, ", "")
    (tmp_path / "bare.yaml").write_text(text)
    with pytest.raises(RuntimeRefusedError, match="no pool of the accelerator states `scratch`"):
        deploy(conv(), str(tmp_path / "bare.yaml")).plan.reasons  # noqa: B018
    (tmp_path / "bare.yaml").write_text(source.read_text().replace("{8x8: [4,", "{8x4: [4,"))
    net = Builder("mean", 0)
    graph = net.finish(net.conv(net.input((1, 8, 8, 4)), 4, 5))
    with pytest.raises(BoardError, match="states no macs_per_cycle of 8x8"):
        twin.predict(deploy(graph, str(tmp_path / "bare.yaml")))


def test_cores_of_a_cluster_never_bring_more_than_their_number():
    kernels = yaml.safe_load(KERNELS.read_text())
    for name, kernel in kernels.items():
        one, *more = (time_kernel(kernel, cores) for cores in (1, 2, 4, 8))
        gains = [one / cycles for cycles in more]
        assert 1.9 < gains[0] <= 2 and 3.7 < gains[1] <= 4 and 7 < gains[2] <= 8, name
    times = [twin.predict(twin.deploy("vww", "gapuino").replace(
        {"npu.units.CLUSTER.count": cores})).time_us for cores in (1, 2, 4, 8)]
    assert [times[0] / time for time in times[1:]] == pytest.approx([1.94, 3.58, 6.06], rel=0.01)


def test_activations_that_do_not_fit_l2_spill_to_ram_outside():
    deployment = twin.deploy("mobilenet_v1_0.25_224", "gapuino")
    assert "hyperram" in {deployment.board.npu.pool(name).memory
                          for name, _ in deployment.plan.pools.used}


def test_an_axis_is_cut_into_many_tiles_before_it_is_cut_into_steps():
    net = Builder("wide", 0)
    graph = net.finish(net.layer("logistic", (net.input((1, 1917, 91)),), (1, 1917, 91)))
    assert 16 <= len(deploy(graph, "gapuino").plan.steps) < 40


def test_a_local_memory_the_tool_itself_fills_is_refused():
    with pytest.raises(RuntimeRefusedError, match=r"npu.pools.L1.size_bytes: 1,024 bytes leave"):
        twin.predict(deploy(conv()).replace({"npu.pools.L1.size_bytes": "1KiB"}))


@pytest.mark.parametrize("path", ["placement.arena", "placement.weights"])
def test_nothing_is_placed_in_the_memory_tiles_pass_through(path):
    with pytest.raises(PlacementError, match=r"the NPU holds no (arena|weights) in l1; accepted"):
        twin.predict(deploy(conv()).replace({path: "l1"}))
