"""TinyMaix's kernels: counted shapes, builds beside each other, what is refused."""

import numpy as np
import pytest
from made_graphs import conv_graph, one_layer, tensor

from benchmarks.operators.__main__ import BOARDS, execute, read_amounts
from benchmarks.operators.table import read_rows
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.network.graph import Window
from twin.pricing.inference import predict
from twin.runtimes.counted.mixture import CLASSES, mix

ROWS = [row for row in read_rows() if row.kernels == "tinymaix"]


def test_every_build_follows_its_counts():
    """Softmax is steered by its input; a call of a dozen elements by what a call costs."""
    errors: dict[tuple[str, str], list[float]] = {}
    for row in ROWS[::7]:
        if not row.model.startswith(("softmax", "fully")):
            errors.setdefault((row.core, row.level), []).append(
                abs(read_amounts(row).total / row.instructions - 1))
    assert len(errors) == 26
    for build, found in errors.items():
        assert np.median(found) < 0.01 and np.quantile(found, 0.9) < 0.05, build


@pytest.mark.parametrize("row", [row for row in ROWS if row.core in BOARDS and not
                                 row.model.startswith("softmax")][::397],
                         ids=lambda row: f"{row.core} {row.level} {row.model}")
def test_layers_execute_what_was_counted(row):
    assert execute(row)[0] == pytest.approx(row.instructions, rel=0.05)


def test_builds_lie_as_their_code_does():
    graph = one_layer(
        "conv_2d", [tensor((1, 6, 6, 32)), tensor((16, 1, 1, 32), "int8", "random"),
                    tensor((16,), "int32", "random")], [tensor((1, 6, 6, 16))], window=Window(
                        kernel=(1, 1)), activation="relu")
    plain, small, vectors = (predict(deploy(
        graph, "nucleo_l4r5zi", runtime=f"tinymaix@{level}")).layers[0].instructions
        for level in ("o1", "o1-os", "o1-simd"))
    assert vectors < plain < small < 2 * plain


def test_what_it_has_no_kernel_of_is_refused():
    graph = one_layer("max_pool_2d", [tensor((1, 4, 4, 3))], [tensor((1, 2, 2, 3))])
    with pytest.raises(RuntimeRefusedError, match="has no kernel for 'max_pool_2d'; accepted: c"):
        deploy(graph, "rpi_pico", runtime="tinymaix")
    with pytest.raises(RuntimeRefusedError, match="DSP extension, which armv6-m has not"):
        predict(deploy(conv_graph(), "rpi_pico", runtime="tinymaix@o0-simd"))


def test_products_in_order_sum_to_what_is_asked():
    amounts = {name: 3 + 7 * place for place, name in enumerate(CLASSES)}
    blocks = mix("thumb2 products", amounts)
    assert sum((block.code.count(";") + 1) * block.trips for block in blocks) == sum(
        amounts.values())
