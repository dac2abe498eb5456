"""Counted kernels: exact mixtures, coefficients that give back the counts, what stands in."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import for_each
from made_graphs import conv_graph, one_layer, tensor

import twin
from benchmarks.operators.__main__ import LIBRARIES, execute
from benchmarks.operators.fit import find_priors
from benchmarks.operators.lending import Lenders, find_overfitted
from benchmarks.operators.table import read_graphs, read_rows
from benchmarks.operators.terms import Key, Row, group_rows
from hwmodels.isa.instruction import parse_code
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.network.graph import GraphLayer, Quantization, Window
from twin.network.operators import layer_macs
from twin.pricing.inference import predict
from twin.runtimes.counted.copies import count_copies, count_fills
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.mixture import CLASSES, mix, widen
from twin.runtimes.counted.table import look_up
from twin.runtimes.counted.terms.movement import _count_division

BOARD = "nucleo_l4r5zi"
FITTED = [row for row in read_rows() if row.use == "fit" and row.kernels in LIBRARIES]
ROWS = [row for row in FITTED if (row.core, row.level) == ("cortex-m4", "O2")]
EVERYWHERE = {row.model for row in FITTED if (row.core, row.level) == ("cortex-m7", "O2")}
CORES = [row for row in FITTED if (row.core != "cortex-m4" or row.level != "O2")
         and row.model in EVERYWHERE]
JUDGES = [row for row in read_rows() if row.use == "judge"]


def test_the_rom_of_the_rp2040_takes_less_of_every_float_product():
    row = next(row for row in CORES if row.core == "cortex-m0plus" and row.kernels == "reference"
               and row.model.startswith("fully_connected")
               and read_graphs()[row.model].tensors[0].dtype == "float32")
    deployment = deploy(read_graphs()[row.model], "rpi_pico", runtime="tflm-reference@2026")
    with_rom = sum(len(parse_code(block.code)) * block.trips for group in lower_network(deployment)
                   for kernel in group for block in kernel.blocks)
    macs = layer_macs(deployment.graph, deployment.graph.layers[0])
    # Counted apart: 119 + 65 instructions a product with libgcc, 52 + 61 with the ROM.
    assert (execute(row)[0] - with_rom) / macs == pytest.approx(71, rel=0.1)


@given(st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 200_000)),
       st.sampled_from(["thumb2", "thumb1", "rv32"]))
def test_a_mixture_executes_what_is_asked(amounts, dialect):
    blocks = mix(dialect, amounts)
    assert sum(len(parse_code(block.code)) * block.trips for block in blocks) == sum(
        amounts.values())
    assert all(block.entries == block.trips for block in blocks)


@given(st.integers(0, 5_000), st.integers(0, 20_000))
def test_wide_accesses_move_the_registers_asked_for(instructions, moved):
    parted = widen({"load": instructions, "alu": 7}, moved, 0)
    kinds = [parted["load"], parted["load pair"], parted["load multiple"]]
    assert sum(kinds) == instructions and min(kinds) >= 0 and parted["alu"] == 7
    said = kinds[0] + 2 * kinds[1] + 4 * kinds[2]
    asked = min(max(moved, instructions), 4 * instructions)  # Three registers have no access.
    assert asked - 1 <= said <= asked


def name_row(row: Row) -> str:
    return f"{row.kernels} {row.core} {row.level} {row.model}"


@for_each(ROWS[:3079:9], name=name_row)
def test_operators_execute_what_was_counted(row):
    instructions, _, _ = execute(row)
    assert instructions == pytest.approx(row.instructions, rel=0.05)


@for_each(CORES[::99], name=name_row)
def test_other_cores_and_levels_have_their_own_counts(row):
    instructions, _, _ = execute(row)
    assert instructions == pytest.approx(row.instructions, rel=0.10)


def test_shapes_nothing_was_fitted_to_are_close():
    errors: dict[str, list[float]] = {}
    for row in JUDGES[::3]:
        graph = read_graphs()[row.model]
        amounts = look_up(row.kernels, row.core.removeprefix("cortex-"), row.level,
                          graph.layers[0].op, describe(GraphLayer(graph, graph.layers[0])))
        assert amounts is not None
        errors.setdefault(row.core, []).append(abs(amounts.total / row.instructions - 1))
    for core, found in errors.items():
        assert sorted(found)[len(found) // 2] < 0.03, core
        assert sorted(found)[len(found) * 9 // 10] < 0.10, core


def test_every_counted_operator_is_described():
    assert all(describe(GraphLayer(graph, graph.layers[0])) is not None
               for graph in read_graphs().values())


def test_what_was_never_counted_stands_in_and_is_assumed():
    graph = one_layer("abs", [tensor((1, 10), dtype="int32")], [tensor((1, 10), dtype="int32")])
    amounts = look_up("reference", "m4", "O2", "abs", describe(GraphLayer(graph, graph.layers[0])))
    assert amounts is not None and amounts.stands_in
    made = predict(deploy(graph, BOARD, runtime="tflm-reference@2026"))
    assert made.layers[0].assumed


def test_a_change_of_shape_is_a_copy_in_its_own_place():
    graph = one_layer("reshape", [tensor((1, 8, 8, 4))], [tensor((1, 256))])
    old, new = (deploy(graph, BOARD, runtime=runtime)
                for runtime in ("cmsis-nn@6.0", "tflm-cmsis-nn@2023"))
    assert lower_network(old) == ((),)
    (kernel,), = lower_network(new)
    assert {operand.name for operand in kernel.operands} == {"input", "output"}
    assert new.placement.arena_bytes >= 2 * 256 > old.placement.arena_bytes
    assert predict(new).layers[0].instructions < 300  # 130 of the call, then word by word.


def test_float_runs_under_the_integer_library_too():
    window = Window(kernel=(1, 1))
    graph = one_layer(
        "max_pool_2d", [tensor((1, 4, 4, 3), dtype="float32")],
        [tensor((1, 4, 4, 3), dtype="float32")], window=window)
    made = predict(deploy(graph, BOARD, runtime="tflm-cmsis-nn@2026"))
    assert made.layers[0].instructions > 100


def test_a_library_without_an_operator_borrows_the_portable_one_as_assumed():
    graph = one_layer("exp", [tensor((1, 64), dtype="float32")], [tensor((1, 64), dtype="float32")])
    made = predict(deploy(graph, BOARD, runtime="float-reference"))
    assert made.layers[0].assumed and made.layers[0].instructions > 64 * 10
    pair = one_layer("squared_difference", [tensor((1, 64)), tensor((1, 64))], [tensor((1, 64))])
    assert predict(deploy(pair, BOARD, runtime="x-cube-ai@9.0")).layers[0].assumed


@pytest.mark.parametrize("board", [BOARD, "apollo510_evb"])
def test_sixteen_bit_layers_of_other_releases_run_their_own_kernels(board):
    graph = conv_graph(dtype="int16")
    old, new = (predict(deploy(graph, board, runtime=runtime)).layers[0]
                for runtime in ("cmsis-nn@6.0", "tflm-cmsis-nn@2026"))
    assert old.instructions == new.instructions
    assert old.assumed


@pytest.mark.parametrize("kernels, level, core", [
    ("reference", "Os", "m33"), ("reference", "Os", "m0plus"), ("reference", "O2-dcheck", "m3"),
    ("reference", "Os@2023", "m33"), ("reference", "O2@2.3.1", "m0plus"),
    ("cmsis-nn", "O2@2.3.1", "m55")])
def test_a_build_counted_on_one_core_is_carried_to_others(kernels, level, core):
    graph = conv_graph()
    work = describe(GraphLayer(graph, graph.layers[0]))
    assert work is not None
    plain, built, there, here = (
        look_up(kernels, where, how, "conv_2d", work) for where, how in (
            (core, "O2"), (core, level), ("m4", level), ("m4", "O2")))
    assert plain and built and there and here and built.stands_in and not there.stands_in
    assert built.total / plain.total == pytest.approx(there.total / here.total, rel=1e-3)
    assert built.total != plain.total


@pytest.mark.parametrize("core, instructions", [
    ("m7", 57_278), ("m55", 21_910), ("m0plus", 105_224), ("m3", 79_035)])
def test_builds_at_os_are_counted_on_the_core_itself(core, instructions):
    graph = conv_graph()
    work = describe(GraphLayer(graph, graph.layers[0]))
    assert work is not None
    built = look_up("cmsis-nn", core, "Os", "conv_2d", work)
    assert built is not None and not built.stands_in
    assert built.total == pytest.approx(instructions, rel=0.07)


@pytest.mark.parametrize("op, source, target, kernel, window, counted", [
    ("conv_2d", (1, 10, 13, 17), (1, 10, 13, 15), (15, 1, 1, 17), {},
     {"m4": 226_327, "m7": 212_995, "m3": 1_104_740}),
    ("depthwise_conv_2d", (1, 14, 6, 6), (1, 14, 6, 6), (1, 3, 3, 6),
     {"dilation": (2, 2), "padding": (2, 2, 2, 2)}, {"m4": 118_516, "m7": 112_904, "m3": 179_950}),
    ("max_pool_2d", (1, 9, 15, 29), (1, 5, 8, 29), (1, 3, 3, 1),
     {"stride": (2, 2), "padding": (1, 1, 1, 1)}, {"m4": 69_737, "m7": 69_808, "m3": 168_959})])
def test_release_2_3_1_chooses_by_its_own_rules(op, source, target, kernel, window, counted):
    # Nothing was fitted to these. It widens columns where channels are no multiple of four, dilates
    # no depthwise window, pools in place; without DSP instructions all of it is portable code.
    made = Window(kernel=kernel[1:3], **window)
    graph = one_layer(op, [tensor(source), tensor(kernel, data="random")][:1 + ("conv" in op)],
                      [tensor(target)], window=made)
    work = describe(GraphLayer(graph, graph.layers[0]))
    assert work is not None
    for core, instructions in counted.items():
        found = look_up("cmsis-nn", core, "O2@2.3.1", op, work)
        assert found is not None and not found.stands_in
        assert found.total == pytest.approx(instructions, rel=0.04)


@pytest.mark.parametrize("op, shapes, level, counted", [
    ("greater", [(1, 6, 12, 9), (1, 1, 1, 9)], "O2", {"m4": 47_257, "m0plus": 132_690}),
    ("greater", [(1, 12, 11, 16), (1, 12, 1, 16)], "Os", {"m7": 287_859, "m3": 288_564}),
    ("unpack", [(5, 6, 19)], "O2", {"m4": 2_756, "m0plus": 3_336}),
    ("unpack", [(5, 6, 19)], "Os", {"m7": 3_970, "m3": 3_972}),
    ("arg_max", [(1, 5, 6, 19)], "Os", {"m7": 6_575, "m3": 6_546})])
def test_portable_kernels_of_release_2_3_1_were_counted_on_each_core(op, shapes, level, counted):
    # Shapes drawn afterwards. A broadcast is four loops that look each operand's place up.
    axis = {"unpack": 1, "arg_max": 3}.get(op, 0)
    target = shapes[0][:axis] + shapes[0][axis + 1:] if axis else shapes[0]
    graph = one_layer(op, [tensor(shape) for shape in shapes],
                      [tensor(target, {"greater": "bool", "arg_max": "int32"}.get(op, "int8"))
                       for _ in range(shapes[0][1] if op == "unpack" else 1)],
                      options={"axis": axis})
    work = describe(GraphLayer(graph, graph.layers[0]))
    assert work is not None
    for core, instructions in counted.items():
        found = look_up("cmsis-nn", core, f"{level}@2.3.1", op, work)
        assert found is not None and not found.stands_in
        assert found.total == pytest.approx(instructions, rel=0.03)


def test_float_on_a_risc_v_core_without_fpu_calls_its_own_libgcc():
    # The loops of reference/conv.h, GCC 12.2 -O2 for rv32imc with its libgcc, run in an emulator.
    shapes = [(1, 6, 6, 8), (16, 3, 3, 8), (16,)]
    graph = one_layer("conv_2d", [tensor(shape, "float32") for shape in shapes],
                      [tensor((1, 6, 6, 16), "float32")],
                      window=Window(kernel=(3, 3), padding=(1, 1, 1, 1)))
    (layer,) = predict(deploy(graph, "esp32c3_devkitm", runtime="tflm-reference@2026")).layers
    assert layer.instructions == pytest.approx(6_934_431, rel=0.1)


def test_a_release_has_the_counts_of_the_next_newer_where_its_source_is_the_same():
    same = one_layer("abs", [tensor((1, 64))], [tensor((1, 64))])
    work = describe(GraphLayer(same, same.layers[0]))
    assert work is not None
    assert look_up("reference", "m4", "O2@2023", "abs", work) == look_up(
        "reference", "m4", "O2", "abs", work)
    # CMSIS-NN's own maximum came in February 2025.
    image = (1, 8, 8, 8)
    pair = one_layer("maximum", [tensor(image), tensor(image)], [tensor(image)])
    work = describe(GraphLayer(pair, pair.layers[0]))
    assert work is not None
    assert look_up("cmsis-nn", "m4", "O2@2024", "maximum", work) == look_up(
        "reference", "m4", "O2@2024", "maximum", work)
    newest = look_up("cmsis-nn", "m4", "O2", "maximum", work)
    portable = look_up("cmsis-nn", "m4", "O2@2023", "maximum", work)
    assert newest and portable and portable.total > 1.5 * newest.total


@pytest.mark.parametrize("release", ["2023", "2024"])
def test_products_of_a_release_are_close_and_carried_whole_to_other_cores(release):
    # 12 and 8 shapes taught a table that said 1 instruction of some, and carried 0 elsewhere.
    graphs, errors = read_graphs(), []
    for row in JUDGES:
        if row.level != f"O2@{release}" or row.kernels != "cmsis-nn":
            continue
        layer = graphs[row.model].layers[0]
        work = describe(GraphLayer(graphs[row.model], layer), row.kernels)
        found, newest = (
            {core: look_up(row.kernels, core, level, layer.op, work).total
             for core in ("m4", "m7", "m33", "m3", "m0plus")} for level in (row.level, "O2"))
        errors.append(abs(found["m4"] / row.instructions - 1))
        assert all(found[core] > newest[core] / 2 for core in found), row.model
    assert sorted(errors)[len(errors) * 9 // 10] < 0.05


PRODUCTS = {"conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv_2d", "batch_matmul",
            "average_pool_2d", "max_pool_2d"}


def test_no_table_of_products_is_overfitted():
    # 9 coefficients of 12 shapes gave another of 545,138 instructions 8,699 on the Cortex-M7.
    assert find_overfitted({key: rows for key, rows in group_rows().items()
                            if key.op in PRODUCTS and key.kernels == "cmsis-nn"}) == []


def test_a_build_takes_over_only_parts_that_it_runs():
    # Helium runs none of the M4's parts of a turned convolution: two terms were left of four.
    code = Key("cmsis-nn", "cortex-m4", "O2", "transpose_conv_2d", "int8 turned")
    groups = {key: rows[:4] for key, rows in group_rows().items() if key[3:] == code[3:]}
    priors = find_priors(groups)
    assert len(priors) > 5 and not any("scalar" in name for key, prior in priors.items()
                                       for name in prior.names if key.core == "cortex-m55")
    for key, prior in priors.items():
        assert set(prior.names) <= {name for row in groups[key] for name in row.terms}


@pytest.mark.parametrize(("op", "variant", "most"), [
    ("depthwise_conv_2d", "int8 generic dilated", 0.01), ("fully_connected", "int16 long", 0.01),
    ("conv_2d", "int16 window", 0.03), ("transpose_conv_2d", "int8 turned", 0.03)])
def test_shapes_no_coefficient_was_fitted_to_are_as_counted_in_the_median(op, variant, most):
    # 4 to 40 % off before: channels of one input, products beyond 512 columns, few shapes.
    graphs, errors = read_graphs(), []
    for row in JUDGES:
        layer = graphs[row.model].layers[0]
        if layer.op != op or "_hg" not in row.model or row.core == "cortex-m0plus":
            continue
        work = describe(GraphLayer(graphs[row.model], layer), row.kernels)
        if work.path == variant:
            said = look_up(row.kernels, row.core[7:], row.level, op, work)
            errors.append(abs(said.total / row.instructions - 1))
    assert len(errors) >= 50 and sorted(errors)[len(errors) // 2] < most


def test_dense_layers_of_several_vectors_run_as_convolutions_since_2023():
    judged = [row for row in JUDGES if row.model.startswith("fully_connected_hc")]
    errors = sorted(abs(execute(row)[0] / row.instructions - 1) for row in judged
                    if row.core in ("cortex-m4", "cortex-m7", "cortex-m0plus"))
    assert len(errors) == 48 and errors[43] < 0.02 and errors[-1] < 0.04  # 17 to 56 % as dense.
    graph = read_graphs()[judged[0].model]
    for release, name in (("2.3.1", "arm_fully_connected_s8"), ("2023", "arm_convolve_1x1_s8_fast"),
                          ("2026", "arm_convolve_1x1_s8_fast")):
        deployment = deploy(graph, BOARD, runtime=f"tflm-cmsis-nn@{release}")
        ((kernel,),) = lower_network(deployment)
        assert kernel.name == name
        scratch = deployment.placement.scratch_bytes
        assert scratch == (8 * graph.tensors[-1].shape[-1] if "1x1" in name else 0)


@pytest.mark.parametrize(("dividend", "divisor", "steps"), [
    (12, 16, 0), (12, 24, 1), (12, 20, 6), (25, 24, 6), (0, 3, 0), (34, 12, 6), (51, 48, 2)])
def test_libgcc_divides_floats_four_bits_at_a_time_until_nothing_is_left(dividend, divisor, steps):
    assert _count_division(dividend, divisor) == steps


@pytest.mark.parametrize(("op", "most"), [
    ("resize_nearest", 0.08), ("resize_bilinear", 0.03), ("average_pool_2d", 0.02)])
def test_places_and_divisions_in_float_go_by_sizes_without_an_fpu(op, most):
    # 31, 23 and 17 % off before: a quotient's bits, zero weights, divisions by powers of two.
    errors = []
    for row in FITTED:
        if (row.core, row.level) == ("cortex-m3", "O2") and row.model.startswith(op):
            graph = read_graphs()[row.model]
            said = look_up(row.kernels, "m3", "O2", op,
                           describe(GraphLayer(graph, graph.layers[0])))
            errors.append(abs(said.total / row.instructions - 1))
    assert len(errors) > 20 and max(errors) < most


def test_sixteen_bit_windows_of_helium_start_a_product_every_four_pixels():
    errors = []
    for row in (*FITTED, *JUDGES):
        graph = read_graphs()[row.model]
        layer = graph.layers[0]
        if (row.core, row.level, layer.op) == ("cortex-m55", "O2", "conv_2d") and (
                graph.tensors[layer.inputs[0]].dtype == "int16" and row.kernels == "cmsis-nn"):
            said = look_up(row.kernels, "m55", "O2", "conv_2d", describe(GraphLayer(graph, layer)))
            errors.append(abs(said.total / row.instructions - 1))
    assert len(errors) == 29 and sorted(errors)[26] < 0.05  # 17 % of rows fitted to, before.


def test_the_cortex_m7_has_the_coefficients_of_the_m4_where_both_count_alike():
    graphs, errors = read_graphs(), {}
    for row in (*FITTED, *JUDGES):
        layer = graphs[row.model].layers[0]
        if (row.kernels, row.core, row.level) != ("cmsis-nn", "cortex-m4", "O2") or (
                layer.op not in PRODUCTS or (layer.inputs and graphs[row.model].tensors[
                    layer.inputs[0]].dtype == "float32")):
            continue
        work = describe(GraphLayer(graphs[row.model], layer), row.kernels)
        share = look_up(row.kernels, "m7", "O2", layer.op, work).total / row.instructions
        errors.setdefault((layer.op, work.code(row.kernels, "m7")), []).append(abs(share - 1))
    assert sorted(errors["conv_2d", "int8 window"])[-8] < 0.06  # Counts differ by 4 %.
    every = sorted(itertools.chain(*errors.values()))
    assert len(every) > 500 and every[len(every) // 2] < 0.02 and every[len(every) * 9 // 10] < 0.06


def test_builds_lend_rows_in_proportion_only_where_they_count_alike():
    rows = group_rows()[Key("cmsis-nn", "cortex-m4", "O2", "conv_2d", "int8 window")]

    def count(core, factors, shapes):
        return [Row(dataclasses.replace(row.counted, core=core, classes={}, instructions=round(
            row.counted.instructions * factor)), row.work)
            for row, factor in zip(shapes, itertools.cycle(factors))]

    known, like, unlike = (Key("cmsis-nn", core, "O2", "conv_2d", "int8 window")
                           for core in ("cortex-m4", "cortex-m7", "cortex-m3"))
    lenders = Lenders({known: count(known.core, [1], rows), like: count(like.core, [1.1], rows[:4]),
                       unlike: count(unlike.core, [1.1, 1.5], rows[:4])})
    lent = lenders.lend(like, lenders.groups[like])
    assert [row.counted.instructions for row in lent] == pytest.approx(
        [1.1 * row.counted.instructions for row in rows[4:]], rel=1e-3)
    assert lenders.lend(unlike, count(unlike.core, [1.1, 1.5], rows[:4])) == []


@pytest.mark.parametrize("release", ["2.3.1", "2023", "2024"])
def test_padding_and_means_of_older_releases_run_element_by_element(release):
    padded = one_layer("pad", [tensor((1, 16, 16, 16))], [tensor((1, 18, 18, 16))], options={
        "paddings": ((0, 0), (1, 1), (1, 1), (0, 0))})
    made = predict(deploy(padded, BOARD, runtime=f"tflm-cmsis-nn@{release}"))
    assert made.layers[0].instructions > 10 * 18 * 18 * 16


@pytest.mark.parametrize(("size_bytes", "start", "wide", "narrow"), [
    (0, 0, 10, 12), (3, 0, 21, 26), (3, 2, 26, 33), (8, 0, 29, 40), (20, 1, 57, 74),
    (64, 0, 58, 67)])
def test_fills_take_what_newlibs_routine_executes(size_bytes, start, wide, narrow):
    # Emulated with the routines GCC 12.2.1's newlib has for Thumb-2 and Thumb-1.
    filled = count_fills(size_bytes, 1, step=0, start=start)
    assert (filled["filling"], filled["filling thumb1"]) == (wide, narrow)


@pytest.mark.parametrize(("size_bytes", "start", "wide", "narrow"), [
    (1, 0, 19, 15), (1, 1, 17, 15), (16, 0, 24, 48), (20, 0, 28, 60), (20, 3, 44, 135)])
def test_copies_take_what_newlibs_routine_executes(size_bytes, start, wide, narrow):
    copied = count_copies(size_bytes, 1, to_start=start, from_start=start)
    assert (copied["copying"], copied["copying thumb1"]) == (wide, narrow)


@pytest.mark.parametrize(("op", "core", "level", "most"), [
    ("sub", "m4", "O2", 0.03), ("equal", "m4", "O2", 0.04), ("sub", "m0plus", "O2", 0.03),
    ("add", "m33", "O2", 0.05), ("squared_difference", "m3", "O2", 0.05)])
def test_zero_points_decide_how_many_values_are_rounded_as_negative(op, core, level, most):
    # 5 to 11 % either way where zero points were not asked.
    graphs, errors = read_graphs(), []
    for row in (*FITTED, *JUDGES):
        if row.model.startswith(f"{op}_z") and (row.core[7:], row.level) == (core, level):
            graph = graphs[row.model]
            said = look_up(row.kernels, core, level, op,
                           describe(GraphLayer(graph, graph.layers[0])))
            errors.append(abs(said.total / row.instructions - 1))
    assert len(errors) >= 22 and sorted(errors)[len(errors) * 9 // 10] < most


@pytest.mark.parametrize(("op", "variant", "kernels", "core", "most"), [
    ("pad", "int8 deep", "cmsis-nn", "cortex-m4", 0.02),
    ("pad", "int8 deep", "cmsis-nn", "cortex-m55", 0.03),
    ("gather", "any", "reference", "cortex-m0plus", 0.03),
    ("sum", "float32", "reference", "cortex-m3", 0.01),
    ("batch_matmul", "int8", "cmsis-nn", "cortex-m4", 0.06),
    ("batch_matmul", "int8", "reference", "cortex-m33", 0.01)])
def test_loops_as_read_give_back_all_shapes(op, variant, kernels, core, most):
    # 11, 13, 27, 6, 12 and 7 % off at most before.
    rows = group_rows()[Key(kernels, core, "O2", op, variant)]
    assert len(rows) >= 9
    for row in rows:
        said = look_up(kernels, core[7:], "O2", op, row.work)
        assert said.total == pytest.approx(row.counted.instructions, rel=most)


def test_the_interval_of_softmax_holds_any_logits():
    # Counted of 12 logits on the Cortex-M4: 1,527 where all but the largest are far, 6,423.
    graph = one_layer("softmax", [tensor((1, 12), quantization=Quantization(
        scales=(0.145,), zero_points=(14,)))], [tensor((1, 12))])
    made = twin.predict(twin.deploy(graph, BOARD, runtime="tflm-cmsis-nn@2026"))
    (layer,), (certain,) = made.layers, made.certainty.layers
    each_us = layer.time_us / layer.instructions
    assert certain.time_us.low < 1527 * each_us and 6423 * each_us < certain.time_us.high


def test_softmax_counts_the_logits_that_are_near():
    near, far = (one_layer("softmax", [tensor((1, 12), quantization=Quantization(
        scales=(scale,), zero_points=(0,)))], [tensor((1, 12))]) for scale in (0.03, 0.4))
    works = [describe(GraphLayer(graph, graph.layers[0])) for graph in (near, far)]
    assert not works[0].guessed and works[0].terms["near"] == 12
    assert works[1].guessed and 1 < works[1].terms["near"] < 6
    made = predict(deploy(far, BOARD, runtime="tflm-cmsis-nn@2026"))
    assert made.layers[0].assumed
