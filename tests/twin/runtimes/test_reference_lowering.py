"""Portable reference kernels against compiled C, and their accesses against the loops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_cases import for_each
from made_layers import POOL, example, make, weighted

from hwmodels.core.file import load_core
from hwmodels.core.schedule import count_block
from hwmodels.kernel import Kernel, Loop, Operand
from hwmodels.nest.stream import check_nests
from hwmodels.nest.traffic import measure_traffic
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, Layer, Window
from twin.network.operators import OPERATORS
from twin.runtimes.library import find_lowering, find_operators
from twin.runtimes.lowering import Lowering, Site

REFERENCE = sorted(find_operators("reference"))
CORES = {"thumb2": ("armv7e-m", "single", "cortex-m4"), "thumb1": ("armv6-m", None,
         "cortex-m0plus"), "rv32": ("rv32imc", None, "rv32imc")}


def find(op: str) -> Lowering:
    lowering = find_lowering(("reference",), op, "", "")  # one for all types and cores
    assert lowering is not None
    return lowering


def lower(graph: Graph, layer: Layer, core: str = "thumb2", fpu: str | None = "") -> Kernel:
    isa, own_fpu, _ = CORES[core]
    lowering = find(layer.op)
    site = Site(graph=graph, layer=layer, isa=isa, fpu=own_fpu if fpu == "" else fpu, operands=())
    names = OPERATORS[layer.op].operands or tuple(
        "input" if i == 0 else f"input{i + 1}" for i in range(9))
    sizes = [(name, graph.tensors[place].size_bytes) for name, place in zip(
        names, layer.inputs, strict=False)]
    out = graph.tensors[layer.outputs[0]]
    sizes += [("output" if place == 0 else f"output{place + 1}", graph.tensors[one].size_bytes)
              for place, one in enumerate(layer.outputs)]
    sizes += [("parameters", 8 * out.shape[-1]),
              ("scratch", lowering.scratch_bytes(site))]
    operands, address = [], 0x20000000
    for name, size in sizes:
        operands.append(Operand(name=name, role=name, memory="sram", address=address,
                                size_bytes=size))
        address += -(-size // 64) * 64
    (kernel,) = lowering.lower(replace(site, operands=tuple(operands)))
    check_nests(kernel.nests, [operand.name for operand in kernel.operands])
    return kernel


def count(kernel: Kernel, core: str = "thumb2") -> tuple[int, int, int]:
    counted = [count_block(block, load_core(CORES[core][2])) for block in kernel.blocks]
    return (sum(one.instructions for one in counted), sum(one.loads for one in counted),
            sum(one.stores for one in counted))


def traffic(kernel: Kernel) -> dict[str, tuple[int, int]]:
    counted = measure_traffic(kernel.nests, kernel.operands, 32)
    return {operand.name: (one.reads, one.writes)
            for operand, one in zip(kernel.operands, counted, strict=True)}


COMPILED = {
    ("conv_2d", "thumb2"): (565354, 166575, 15347), ("conv_2d", "thumb1"): (882030, 193209, 21950),
    ("conv_2d", "rv32"): (662601, 149358, 11706),
    ("depthwise_conv_2d", "thumb2"): (337515, 103925, 34299),
    ("depthwise_conv_2d", "thumb1"): (541152, 120574, 49894),
    ("depthwise_conv_2d", "rv32"): (238537, 38711, 12009),
    ("fully_connected", "thumb2"): (6054, 1650, 38),
    ("fully_connected", "thumb1"): (9890, 1680, 63),
    ("fully_connected", "rv32"): (7607, 1623, 33),
    ("average_pool_2d", "thumb2"): (128803, 20956, 3135),
    ("max_pool_2d", "thumb2"): (123894, 18969, 3103),
    ("max_pool_2d", "rv32"): (135730, 15003, 2153),
    ("add", "thumb2"): (109020, 13004, 4002), ("add", "thumb1"): (282036, 24006, 10004),
    ("add", "rv32"): (128040, 14008, 1008), ("mul", "thumb2"): (45020, 8004, 2002),
}
"""Instructions, loads, stores of the same loops written in plain C, gcc 12.2 -O2, executed on
unicorn 2.1: conv 7x9x13 -> 10 (3x3), depthwise 8x6x20 (3x3), dense 64 -> 12, pool 10x10x40 (3x3,
stride 2), 1000 elements."""


def compiled_case(op: str) -> tuple[Graph, Layer]:
    if op == "conv_2d":
        return weighted(op, 7, 9, 13, 10)
    if op == "depthwise_conv_2d":
        return weighted(op, 8, 6, 20, 20)
    if op == "fully_connected":
        return make(op, [(1, 64), ((12, 64), "int8"), ((12,), "int32")], (1, 12))
    if op.endswith("pool_2d"):
        return make(op, [(1, 10, 10, 40)], (1, 5, 5, 40), window=POOL)
    return make(op, [(1, 1000), (1, 1000)], (1, 1000))


@pytest.mark.parametrize(("op", "core"), COMPILED)
def test_counts_are_near_compiled_c(op: str, core: str) -> None:
    counted = count(lower(*compiled_case(op), core), core)
    for mine, compiled, room in zip(counted, COMPILED[op, core], (0.02, 0.02, 0.12), strict=True):
        assert mine == pytest.approx(compiled, rel=room, abs=12)


def test_counts_are_near_compiled_float_c() -> None:
    # as above, with -mfpu=fpv4-sp-d16: conv 483073 instructions, 159265 loads; depthwise 221194;
    # dense 64 -> 12 4133; average pool 103558
    conv = count(lower(*weighted("conv_2d", 7, 9, 13, 10, "float32")))
    assert conv[0] == pytest.approx(483073, rel=0.01)
    assert conv[1] == pytest.approx(159265, rel=0.01)
    depthwise = count(lower(*weighted("depthwise_conv_2d", 8, 6, 20, 20, "float32")))
    assert depthwise[0] == pytest.approx(221194, rel=0.01)
    pool = lower(*make("average_pool_2d", [(1, 10, 10, 40)], (1, 5, 5, 40), "float32",
                       window=POOL))
    assert count(pool)[0] == pytest.approx(103558, rel=0.01)


def test_published_reference_c_on_cortex_m4() -> None:
    # 29.65 and 6.65 instructions per MAC of reference C (gcc 12.2 -O2) on kws layers. That C adds
    # no input offset: one instruction per MAC less (0.846 where padding skips taps).
    first = lower(*make("conv_2d", [(1, 49, 10, 1), ((64, 10, 4, 1), "int8"), ((64,), "int32")],
                        (1, 25, 5, 64), window=Window(kernel=(10, 4), stride=(2, 2),
                                                      padding=(4, 5, 1, 1))))
    assert first.useful_macs == 235 * 18 * 64  # window rows and columns inside the input
    assert count(first)[0] / 320_000 - 0.846 == pytest.approx(29.65, rel=0.05)
    second = lower(*weighted("conv_2d", 25, 5, 64, 64, window=Window(kernel=(1, 1))))
    assert count(second)[0] / 512_000 - 1 == pytest.approx(6.65, rel=0.05)


@for_each(REFERENCE, CORES, ("int8", "int16", "float32"))
def test_every_operator_lowers_everywhere(op: str, core: str, dtype: str) -> None:
    graph, layer = example(op, dtype) if op != "split" else make(
        op, [(1, 6, 5, 4)], (1, 6, 5, 4), dtype, options=(("axis", 3),))
    kernel = lower(graph, layer, core)
    instructions, loads, _ = count(kernel, core)
    seen = traffic(kernel)
    assert instructions > graph.tensors[layer.outputs[0]].elements
    assert sum(reads for reads, _ in seen.values()) <= loads * 1.02 + 4
    assert kernel.code_bytes > 0
    measured = {entry[0] for entry in COMPILED}
    if op in measured and dtype != "int16" and (dtype == "int8" or core == "thumb2"):
        assert not kernel.assumed


READ_ONLY = {
    "neg", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "floor", "ceil", "round", "elu",
    "gelu", "logical_not", "erf", "hard_sigmoid", "softplus", "softsign", "selu", "celu", "mish",
    "reciprocal", "sign", "clip", "div", "floor_div", "floor_mod", "squared_difference", "equal",
    "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or",
    "pow", "reduce_min", "sum", "arg_max", "arg_min", "pack", "unpack", "gather",
    "space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd", "tile",
    "broadcast_to", "reshape_copy", "select", "cast", "log_softmax", "l2_normalization",
    "gather_nd", "scatter_nd", "cumsum", "top_k", "read_variable", "assign_variable",
    "function", "ethos_u"}
"""Operators models are read and verified with, which no library lowers: they are refused.

A function is one of a program, which is emulated; ethos_u is what Vela compiled."""


def test_library_covers_every_operator() -> None:
    assert set(REFERENCE) == set(OPERATORS) - READ_ONLY


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_convolution_accesses_follow_the_loops(dtype: str) -> None:
    seen = traffic(lower(*weighted("conv_2d", 7, 9, 13, 10, dtype)))
    inside = (3 * 7 - 2) * (3 * 9 - 2) * 13 * 10
    assert seen["input"] == seen["weights"] == (inside, 0)
    assert seen["bias"] == (630, 0)
    assert seen["output"] == (0, 630)
    assert ("parameters" in seen) == (dtype == "int8")


def test_grouped_convolution_reads_its_group_only() -> None:
    graph, layer = make("conv_2d", [(1, 4, 4, 6), ((9, 1, 1, 2), "int8"), ((9,), "int32")],
                        (1, 4, 4, 9), window=Window(kernel=(1, 1)), groups=3)
    kernel = lower(graph, layer)
    assert kernel.useful_macs == 16 * 9 * 2
    assert traffic(kernel)["input"] == (16 * 9 * 2, 0)


def test_audio_front_end_takes_the_instructions_counted() -> None:
    """micro_speech's transform of 512 and filter bank, gcc 12.2 -O2 on an emulator, no calls."""
    transform = make("signal_rfft", [(480,)], (514,), "int16")
    bank = make("signal_filter_bank", [(257,), ((316,), "int16")], (40,), "uint32")
    for case, counted in ((transform, (56_000, 100_000, 62_000)), (bank, (6_468, 36_001, 7_740))):
        for core, instructions in zip(("thumb2", "thumb1", "rv32"), counted, strict=True):
            assert count(lower(*case, core), core)[0] == pytest.approx(instructions, rel=0.04)


def test_transposed_convolution_scatters_every_product() -> None:
    seen = traffic(lower(*example("transpose_conv_2d")))
    products = 6 * 5 * 4 * 2 * 2 * 3
    assert seen["input"] == seen["weights"] == (products, 0)
    outputs = 12 * 10 * 3
    assert seen["scratch"] == (products + outputs, products + outputs)


def test_moved_elements_are_the_right_ones() -> None:
    seen = traffic(lower(*example("slice")))
    assert seen == {"input": (30, 0), "output": (0, 30)}
    seen = traffic(lower(*example("pad")))
    assert seen == {"input": (120, 0), "output": (0, 256)}
    outer = lower(*example("transpose")).nests[0]
    assert isinstance(outer, Loop) and outer.extent == 4  # output order: channels outermost


def test_broadcast_reads_the_smaller_side_again() -> None:
    kernel = lower(*make("mul", [(1, 4, 4, 8), (1, 1, 1, 8)], (1, 4, 4, 8)))
    assert traffic(kernel)["input2"] == (128, 0)
    plain = lower(*make("mul", [(1, 4, 4, 8), (1, 4, 4, 8)], (1, 4, 4, 8)))
    assert count(kernel)[0] > count(plain)[0]


def test_a_float_kernel_speaks_the_language_of_its_core() -> None:
    graph, layer = make("add", [(1, 4, 4, 8), (1, 4, 4, 8)], (1, 4, 4, 8), "float32")
    for core, own, other in (("rv32", "fsw ", "vstmia "), ("thumb2", "vstmia ", "fsw ")):
        code = "\n".join(block.code for block in lower(graph, layer, core, "single").blocks)
        assert own in code and other not in code


def test_software_floating_point_is_assumed_and_slower() -> None:
    graph, layer = weighted("conv_2d", 4, 4, 3, 5, "float32")
    hard, soft = lower(graph, layer), lower(graph, layer, fpu=None)
    assert soft.assumed and not hard.assumed
    assert count(soft)[0] > 5 * count(hard)[0]


def test_unknown_instruction_set_is_refused() -> None:
    graph, layer = weighted("conv_2d", 4, 4, 3, 5)
    with pytest.raises(RuntimeRefusedError, match="xtensa"):
        find("conv_2d").lower(
            Site(graph=graph, layer=layer, isa="xtensa", fpu=None, operands=()))
