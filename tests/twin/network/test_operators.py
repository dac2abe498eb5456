"""Multiply-accumulates, parameters and bytes by hand-worked formulas."""

import pytest
from made_graphs import conv_graph, model_file, needs_models, one_layer, tensor

from twin.network.graph import Window
from twin.network.operators import (
    OPERATORS,
    bytes_moved,
    graph_macs,
    graph_parameters,
    is_alias,
    is_assumed,
    layer_macs,
)
from twin.network.readers import read_model

WINDOW = Window(kernel=(3, 3), padding=(1, 1, 1, 1))


def test_conv_counts_padded_positions_and_stored_bytes():
    graph = conv_graph()
    layer = graph.layers[0]
    assert layer_macs(graph, layer) == 8 * 6 * 4 * 3 * 3 * 3  # out elements x window x inputs
    assert graph_parameters(graph) == 4 * 3 * 3 * 3 + 4
    # input + int8 weights + int32 biases + output
    assert bytes_moved(graph, layer) == 8 * 6 * 3 + 108 + 4 * 4 + 8 * 6 * 4


MACS = {  # op: (inputs, outputs, extra, expected)
    "grouped conv": ("conv_2d", [(1, 8, 6, 4), (6, 3, 3, 2), (6,)], [(1, 8, 6, 6)],
                     {"window": WINDOW, "groups": 2}, 8 * 6 * 6 * 9 * 2),
    "depthwise": ("depthwise_conv_2d", [(1, 8, 6, 4), (1, 3, 3, 8), (8,)], [(1, 8, 6, 8)],
                  {"window": WINDOW, "groups": 4}, 8 * 6 * 8 * 9),
    "transposed": ("transpose_conv_2d", [(1, 4, 3, 5), (2, 2, 2, 5)], [(1, 8, 6, 2)],
                   {"window": Window(kernel=(2, 2), stride=(2, 2))}, 4 * 3 * 5 * 4 * 2),
    "dense": ("fully_connected", [(1, 12), (7, 12), (7,)], [(1, 7)], {}, 12 * 7),
    "dense over rows": ("fully_connected", [(1, 5, 12), (7, 12)], [(1, 5, 7)], {}, 5 * 12 * 7),
    "matmul": ("batch_matmul", [(1, 4, 3), (1, 3, 5)], [(1, 4, 5)], {}, 4 * 3 * 5),
    "svdf": ("svdf", [(1, 10), (8, 10), (8, 6), (4,), (1, 48)], [(1, 4)],
             {"options": {"rank": 2}}, 8 * 10 + 8 * 6),
    "lstm": ("lstm", [(1, 7, 3), (16, 3), (16, 4), (16,)], [(1, 7, 4)], {},
             7 * (16 * 3 + 16 * 4)),
    "gru": ("gru", [(7, 1, 3), (12, 3), (12, 4)], [(7, 1, 1, 4)], {}, 7 * (12 * 3 + 12 * 4)),
    "add": ("add", [(1, 4), (1, 4)], [(1, 4)], {}, 0),
    "pool": ("average_pool_2d", [(1, 4, 4, 2)], [(1, 2, 2, 2)],
             {"window": Window(kernel=(2, 2), stride=(2, 2))}, 0),
}


@pytest.mark.parametrize("case", MACS)
def test_macs(case):
    op, inputs, outputs, extra, expected = MACS[case]
    data = [tensor(inputs[0])] + [tensor(shape, data="random") for shape in inputs[1:]]
    graph = one_layer(op, data, [tensor(shape) for shape in outputs], **extra)
    assert layer_macs(graph, graph.layers[0]) == expected


def test_only_an_alias_is_free():
    reshape = one_layer("reshape", [tensor((1, 4))], [tensor((4,))])
    assert is_alias(reshape.layers[0])
    assert bytes_moved(reshape, reshape.layers[0]) == 0
    assert [name for name, operator in OPERATORS.items() if operator.alias] == ["reshape"]
    for name in ("concatenation", "transpose", "copy"):
        moved = one_layer(name, [tensor((1, 4))], [tensor((1, 4))])
        assert bytes_moved(moved, moved.layers[0]) == 8


def test_int4_weights_count_half_bytes():
    graph = conv_graph(weights="int4")
    assert bytes_moved(graph, graph.layers[0]) == 8 * 6 * 3 + 108 // 2 + 16 + 8 * 6 * 4


def test_assumed_operators_have_no_published_rows():
    assert {"svdf", "lstm", "gru", "copy", "resize_bilinear"} <= {
        name for name, operator in OPERATORS.items() if operator.assumed}
    assert not is_assumed(conv_graph().layers[0])


def _reference_tables():
    """Rows (op, macs, weights, biases) of each model's table in models.md."""
    tables, rows = {}, None
    for line in (model_file("kws").parent / "models.md").read_text().splitlines():
        if line.startswith("- file `"):
            rows = tables.setdefault(line.split("`")[1], [])
        elif rows is not None and line.startswith("| ") and line.split("|")[1].strip().isdigit():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows.append((cells[1].lower(),
                         *(int(cells[i].replace(",", "")) for i in (7, 8, 9))))
    return tables


@needs_models
def test_every_layer_of_the_reference_files_counts_as_published():
    for file, rows in _reference_tables().items():
        path = model_file("kws").parent / file
        if not path.exists():
            continue
        graph = read_model(path)
        assert [(layer.op, layer_macs(graph, layer)) for layer in graph.layers] == \
            [(op, macs) for op, macs, _, _ in rows]
        assert graph_macs(graph) == sum(row[1] for row in rows)
        assert graph_parameters(graph) == sum(row[2] + row[3] for row in rows)
