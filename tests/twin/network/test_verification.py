"""What verification accepts and refuses at the ends of what is possible."""

from dataclasses import replace

import pytest
from made_graphs import one_layer, tensor

from twin.errors import ModelError
from twin.network.readers.verification import verify_graph

DATA = (2, 3, 4)
PLACES = tensor((5,), "int32", "random")
ALONG = {  # what an operator makes of DATA along one of its axes, given how its options name it
    "mean": lambda axis: ([], (*DATA[:axis], *DATA[axis + 1:]), {"axes": (axis,)}),
    "arg_max": lambda axis: ([], (*DATA[:axis], *DATA[axis + 1:]), {"axis": axis}),
    "gather": lambda axis: ([PLACES], (*DATA[:axis], 5, *DATA[axis + 1:]), {"axis": axis}),
    "top_k": lambda axis: ([], (*DATA[:axis], 1, *DATA[axis + 1:]), {"axis": axis})}


def along(op: str, axis: int):
    more, output, options = ALONG[op](axis)
    return one_layer(op, [tensor(DATA), *more], [tensor(output)], options=options)


@pytest.mark.parametrize("op", ALONG)
def test_an_axis_is_any_of_the_datas_and_no_other(op):
    for axis in range(3):
        assert verify_graph(along(op, axis)).layers[0].op == op
    for axis in (-1, 3):
        graph = along(op, 2)
        wrong = (("axes", (axis,)) if op == "mean" else ("axis", axis),)
        with pytest.raises(ModelError, match=f"operator 0 {op} .*{axis}"):
            verify_graph(replace(graph, layers=(replace(graph.layers[0], options=wrong),)))


@pytest.mark.parametrize("op", ["arg_max", "gather", "top_k"])
def test_an_axis_that_is_not_stated_is_the_first(op):
    graph = along(op, 0)
    plain = replace(graph, layers=(replace(graph.layers[0], options=()),))
    assert verify_graph(plain) is plain


@pytest.mark.parametrize("wrong", [-1, 2])
def test_an_operator_writes_a_tensor_there_is(wrong):
    graph = one_layer("relu", [tensor((4,))], [tensor((4,))])
    layer = replace(graph.layers[0], outputs=(wrong,))
    with pytest.raises(ModelError, match="writes a tensor that does not exist"):
        verify_graph(replace(graph, layers=(layer,)))
