"""Predictions made by hand, of any size: what the tests of tables, figures and documents show."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from hwmodels.board.file import load_board
from hwmodels.counts import CountLine, Counts, Price, Prices, make_bill, merge_bills
from twin.deployment.core import Core
from twin.deployment.placement import ArenaSlot, Placement, Plan
from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.pricing.prediction import LayerPrediction, Prediction

PRICED = {
    # event: (cycles per exposed, pJ per occurred); round figures, chosen for the sums below.
    "mac_issue": (1.0, 100.0), "mac_waste_issue": (1.0, 100.0), "alu_issue": (1.0, 90.0),
    "load_issue": (1.0, 95.0), "store_issue": (1.0, 95.0), "branch_issue": (1.0, 80.0),
    "branch_refill": (1.0, 60.0), "pipeline_stall": (1.0, 60.0), "icache_refill": (9.0, 700.0),
    "fetch_wait": (1.0, 50.0), "dcache_read_refill": (11.5, 800.0),
    "dcache_write_refill": (11.5, 800.0), "write_back": (8.25, 500.0), "flash_wait": (5.0, 300.0),
    "sram_wait": (1.0, 20.0), "copy_issue": (1.0, 90.0), "call_issue": (1.0, 90.0),
    "kernel_dispatch": (900.0, 9e4), "leakage": (0.0, 0.01), "clock_tree": (0.0, 30.0),
}
"""Prices of the made board."""


def make_prediction(layers: int = 5, *, energy: bool = True, board: str = "nucleo_l4r5zi",
                    seed: int = 7, **fields: object) -> Prediction:
    """Make a prediction of so many layers with every priced event in it, seeded."""
    random = np.random.default_rng(seed)
    prices = Prices({(event, ""): Price(
        event=event, cycles=cycles, clock="cpu", pj=pj if energy else None, kind="assumed",
        source="made") for event, (cycles, pj) in PRICED.items()})
    graph = _make_graph(layers)
    machine = load_board(board)
    made = tuple(_make_layer(graph, layer, prices, machine, random) for layer in graph.layers)
    bill = merge_bills(layer.bill for layer in made)
    setup = make_bill(Counts((CountLine(event="call_issue", occurred=12345.5, exposed=12345.5),)),
                      prices)
    return _assemble(graph, machine, made, bill, setup, fields)


def _assemble(graph, machine, made, bill, setup, fields):  # type: ignore[no-untyped-def]
    live = tuple(4096 + 256 * (layer.index % 9) for layer in made)
    peak = max(range(len(live)), key=lambda i: live[i])
    slots = tuple(ArenaSlot(
        name=layer.name, tensor=layer.index, offset_bytes=4096 * (layer.index % 2),
        size_bytes=2048 + 128 * (layer.index % 9), first_layer=layer.index,
        last_layer=min(layer.index + 1, len(made) - 1)) for layer in made)
    scratch = ArenaSlot(name="scratch", tensor=-1, offset_bytes=8192, size_bytes=1024,
                        first_layer=0, last_layer=0)
    placement = Placement(arena=(*slots, scratch), arena_bytes=9216, live_bytes=live,
                          peak_layer=peak, parameter_bytes=128, weight_offsets=(),
                          weights_bytes=20000)
    deployment = SimpleNamespace(
        places={"weights": None, "arena": None},
        graph=graph, executed=graph, board=machine, weights="flash", arena="sram", code="flash",
        weights_named="flash", arena_named="sram", weights_spill=(), arena_spill=(),
        runtime=SimpleNamespace(identity="made@1.0", name="made", version="1.0", structure="open",
                                offload=None, accelerated=False),
        store_name="flash", placement=placement, ram_bytes=9344, flash_bytes=50_000,
        notes=(), rewritten=(),
        flash_room_bytes=machine.memory("flash").size_bytes,
        plan=Plan(), target=Core(), ram_memories=frozenset({"sram"}),
        ram_room_bytes=machine.memory("sram").size_bytes,
        buffer=None, linked_bytes=20000,
        ram_parts={"arena": 9216, "parameters": 128, "runtime": 0, "buffers": 0, "weights": 0})
    energy_pj = bill.energy_pj()
    values = {
        "deployment": deployment, "temperature": "warm", "layers": made, "setup": setup,
        "bill": bill, "clock": "cpu", "cycles": bill.cycles("cpu"),
        "time_us": bill.cycles("cpu") / machine.clock("cpu").frequency_hz * 1e6,
        "energy_uj": None if energy_pj is None else energy_pj * 1e-6, "warnings": (),
    } | fields
    return Prediction(**values)  # type: ignore[arg-type]


def _make_graph(layers: int) -> Graph:
    tensors = [Tensor(name="input", shape=(1, 25, 5, 64), dtype="int8"),
               Tensor(name="weights", shape=(64, 1, 1, 64), dtype="int8",
                      quantization=Quantization(scales=(0.5,), zero_points=(0,)),
                      data=np.ones((64, 1, 1, 64), np.int8))]
    nodes = []
    for index in range(layers):
        tensors.append(Tensor(name=f"layer [{index}]", shape=(1, 25, 5, 64), dtype="int8"))
        op = ("conv_2d", "depthwise_conv_2d")[index % 2]
        nodes.append(Layer(index=index, name=f"layer [{index}]", op=op,
                           inputs=(index + 1 if index else 0, 1), outputs=(index + 2,),
                           window=Window(kernel=(1, 1)), groups=1))
    return Graph(name="made", source="made", sha256="0" * 64, tensors=tuple(tensors),
                 layers=tuple(nodes), inputs=(0,), outputs=(layers + 1,))


def _make_layer(graph, layer, prices, machine, random):  # type: ignore[no-untyped-def]
    lines = []
    for event in PRICED:
        occurred = float(random.integers(1, 64)) / 64 + float(random.integers(0, 40_000))
        if event == "kernel_dispatch":
            occurred = 1.0
        elif event.startswith(("dcache", "icache", "write_back")):
            occurred = float(occurred // 20)
        lines.append(CountLine(event=event, occurred=occurred, exposed=occurred / 2))
    counts = Counts(tuple(lines))
    bill = make_bill(counts, prices)
    cycles = bill.cycles("cpu")
    energy_pj = bill.energy_pj()
    return LayerPrediction(
        index=layer.index, name=layer.name, op=layer.op, output_shape=(1, 25, 5, 64),
        macs=20_000 * (1 + layer.index), bytes_moved=20_096 * (1 + layer.index % 3), alias=False,
        assumed=layer.index == 2,
        kernels=("arm_convolve_s8",), clock="cpu", cycles=cycles,
        time_us=cycles / machine.clock("cpu").frequency_hz * 1e6,
        energy_uj=None if energy_pj is None else energy_pj * 1e-6, bill=bill, counts=counts,
        instructions=int(cycles * 0.7), accesses=1000, misses=120, live_bytes=4096)
