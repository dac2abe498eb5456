"""Published layers: the networks rebuilt for them do the work that is published."""

from __future__ import annotations

import pytest

from benchmarks.accuracy import layers
from calibration.datasets import read_table
from twin.network.operators import graph_macs, layer_macs
from twin.network.zoo import build


def test_the_image_network_has_the_published_shapes_and_work():
    graph, rows = layers._image_example(), read_table("efr32xg24_layers").rows
    assert [layer.op for layer in graph.layers] == [row["op"] for row in rows]
    for layer, row in zip(graph.layers, rows, strict=True):
        assert layer_macs(graph, layer) == pytest.approx(float(row["macs"]), rel=0.06)


def test_kws_has_the_work_published_for_apollo4():
    graph, rows = build("kws"), read_table("apollo4p_kws_cache").rows
    assert [layer_macs(graph, layer) for layer in graph.layers] == [
        row["est_macs"] for row in rows]


def test_person_detection_has_the_published_operators():
    rows = [row for row in read_table("pico_person_detection").rows
            if row["mode"] == "single-core" and row["layer_index"] != "TOTAL"]
    graph = layers._person_detection()
    assert [layer.op.upper() for layer in graph.layers[1:27]] == [row["op"] for row in rows[1:27]]
    assert graph_macs(graph) == pytest.approx(7.16e6, rel=0.02)


def test_a_table_is_summed_up():
    pairs = tuple(layers.Pair(name=name, published=100.0, stated=stated, learnt=100.0)
                  for name, stated in (("a", 90.0), ("b", 120.0), ("c", 110.0)))
    text = layers.describe(layers.Judged(table="made", assumed="nothing", pairs=pairs))
    assert "| stated: n 3 | sum 1.07 | median 1.10 | p90 of abs. error 18 % |" in text
