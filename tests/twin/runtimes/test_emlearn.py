"""emlearn's dense layers in float: counted shapes, cores with and without FPU, what is refused."""

import numpy as np
import pytest
from made_graphs import one_layer, tensor

from benchmarks.operators.__main__ import execute, read_amounts
from benchmarks.operators.table import read_rows
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.pricing.inference import predict

ROWS = [row for row in read_rows() if row.kernels == "emlearn"]
DENSE = [row for row in ROWS if row.model.startswith("fully")]


def dense(dtype="float32"):
    return one_layer("fully_connected", [
        tensor((1, 40), dtype), tensor((20, 40), dtype, "random"),
        tensor((20,), "float32" if dtype == "float32" else "int32", "random")],
        [tensor((1, 20), dtype)], activation="relu")


def test_every_build_follows_its_counts():
    builds = {(row.core, row.level) for row in ROWS}
    assert len(builds) == 10
    for build in builds:
        found = [abs(read_amounts(row).total / row.instructions - 1) for row in DENSE
                 if (row.core, row.level) == build]
        assert np.median(found) < 0.01 and max(found) < 0.05, build


def test_layers_execute_what_was_counted():
    row = next(row for row in DENSE if row.core == "cortex-m4" and row.instructions > 5000)
    assert execute(row)[0] == pytest.approx(row.instructions, rel=0.02)


def test_soft_float_takes_most_of_a_core_without_fpu():
    """A product and its sum are six instructions with an FPU, two calls without."""
    with_fpu, without = (predict(deploy(dense(), board, runtime="emlearn")).layers[0].instructions
                         for board in ("nucleo_l4r5zi", "rpi_pico"))
    assert 4_000 < with_fpu < 7_000 and without > 15 * with_fpu


def test_cores_with_helium_run_what_was_counted_on_a_cortex_m33():
    here, there = (predict(deploy(dense(), board, runtime="emlearn")).layers[0].instructions
                   for board in ("ek_ra8d1", "nucleo_u575zi_q"))
    assert here == there


def test_other_types_and_operators_are_refused():
    with pytest.raises(RuntimeRefusedError, match="emlearn@o2 does not run int8 fully_connected"):
        deploy(dense("int8"), "nucleo_l4r5zi", runtime="emlearn")
    graph = one_layer("add", [tensor((1, 4), "float32"), tensor((1, 4), "float32")],
                      [tensor((1, 4), "float32")])
    for network in (graph, "kws"):  # an int8 network of convolutions would need more than its type
        with pytest.raises(RuntimeRefusedError, match=r"no kernel for '(add|conv_2d)'; "):
            deploy(network, "nucleo_l4r5zi", runtime="emlearn")
