"""Vector code a closed library is taken to have: for which operators, types and cores."""

import numpy as np
import pytest

from hwmodels.kernel import Operand, count_accesses, walk_accesses
from twin.network.graph import Graph, Layer, Tensor
from twin.runtimes import load_runtime
from twin.runtimes.library import find_assumed
from twin.runtimes.lowering import Site

M55, M7 = "armv8.1-m-mve", "armv7e-m"
CLOSED, OPEN = "st-edge-ai@3.0.0", "cmsis-nn"


def make_graph(op: str, shapes, dtypes) -> Graph:
    tensors = tuple(Tensor(name=f"t{place}", shape=shape, dtype=dtype)
                    for place, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)))
    last = len(tensors) - 1
    return Graph(name=op, source="made", sha256="0" * 64, tensors=tensors,
                 layers=(Layer(index=0, name=op, op=op, inputs=tuple(range(last)),
                               outputs=(last,)),),
                 inputs=tuple(range(last)), outputs=(last,))


def lower(op: str, shapes, dtypes=None, runtime: str = CLOSED, isa: str = M55):
    dtypes = dtypes or ("int8",) * len(shapes)
    graph = make_graph(op, shapes, dtypes)
    names = (*("input", "input2")[:len(shapes) - 1], "output")
    site = Site(graph=graph, layer=graph.layers[0], isa=isa, fpu="single", operands=tuple(
        Operand(name=name, role=name.rstrip("2"), memory="sram", address=0x2000_0000 + 65536 * at,
                size_bytes=int(np.prod(shape)) * np.dtype(dtype).itemsize)
        for at, (name, shape, dtype) in enumerate(zip(names, shapes, dtypes, strict=True))))
    dtype = "float32" if dtypes[0] == "float32" else "int8"
    (kernel,) = load_runtime(runtime).lowering(op, dtype, isa).lower(site)
    return kernel


def moved_bytes(kernel, operand: str) -> int:
    return sum(int(np.prod(extents)) * access.width_bytes
               for extents, access in walk_accesses(kernel.nests) if access.operand == operand)


@pytest.mark.parametrize("count", [1, 3, 16, 1000, 1001])
@pytest.mark.parametrize(("op", "dtypes", "sizes"), [
    ("relu6", ("int8", "int8"), (1, 1)), ("logistic", ("int8", "int8"), (1, 1)),
    ("quantize", ("float32", "int8"), (4, 1)), ("dequantize", ("int8", "float32"), (1, 4)),
])
def test_every_element_is_read_and_written_once(op, dtypes, sizes, count) -> None:
    kernel = lower(op, ((1, count),) * 2, dtypes)
    assert kernel.assumed
    assert (moved_bytes(kernel, "input"), moved_bytes(kernel, "output")) == (
        count * sizes[0], count * sizes[1])


@pytest.mark.parametrize("op", ["add", "sub", "mul", "minimum", "maximum"])
@pytest.mark.parametrize(("other", "reads"), [((1, 6, 5), 30), ((5,), 30), ((1,), 0)])
def test_a_shorter_operand_is_read_again_and_a_constant_is_kept(op, other, reads) -> None:
    kernel = lower(op, ((1, 6, 5), other, (1, 6, 5)))
    assert kernel.assumed
    assert moved_bytes(kernel, "input") == moved_bytes(kernel, "output") == 30
    assert moved_bytes(kernel, "input2") == reads
    assert count_accesses(kernel.nests) > 0


@pytest.mark.parametrize(("op", "dtype", "isa"), [
    ("add", "int8", M7), ("add", "int16", M55), ("add", "float32", M55), ("softmax", "int8", M55)])
def test_elsewhere_the_librarys_own_code_runs(op, dtype, isa) -> None:
    assert find_assumed(op, dtype, isa) is None


def test_an_open_library_runs_what_its_source_says() -> None:
    shapes = ((1, 64),) * 2
    assert "helium" in lower("logistic", shapes).name
    assert "helium" not in lower("logistic", shapes, runtime=OPEN).name
    assert "helium" not in lower("logistic", shapes, isa=M7).name
