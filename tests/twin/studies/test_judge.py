"""Accuracy beside time and energy: on planted data and a function, cached, held to limits."""

from pathlib import Path

import numpy as np
import pytest
from made_graphs import separable

import twin
from twin.errors import UsageError
from twin.network.writers.tflite import encode_tflite
from twin.studies.accuracy import measure_accuracy
from twin.studies.judge import Judge, make_judge
from twin.studies.labelled import read_data
from twin.studies.limits import read_limits
from twin.studies.results import list_columns, read_row
from twin.studies.rows import Row, judge

BOARD = "nucleo_l4r5zi"


def plant(folder: Path) -> tuple[Path, Path]:
    """A network, and data of which it is right by construction in three of four."""
    path = folder / "net.tflite"
    path.write_bytes(encode_tflite(separable("net", (6, 6), (2, 4), 3)))
    x = np.random.default_rng(0).integers(-128, 127, (8, 6, 6, 2), dtype=np.int8)
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    labels = []
    for one in x:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], one[None])
        interpreter.invoke()
        labels.append(int(np.argmax(interpreter.get_tensor(
            interpreter.get_output_details()[0]["index"]))))
    np.savez(folder / "data.npz", x=x, y=[(one + (number < 2)) % 3
                                          for number, one in enumerate(labels)])
    return path, folder / "data.npz"


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> tuple[Path, Path]:
    return plant(tmp_path_factory.mktemp("accuracy"))


def test_a_row_has_the_share_the_interpreter_finds(planted, tmp_path) -> None:
    path, data = planted
    table = twin.sweep(path, BOARD, accuracy=data, settings={"placement.weights": ["flash",
                                                                                   "sram"]})
    found = measure_accuracy(twin.read_model(str(path)), read_data(data), str(path))
    assert [row.accuracy for row in table.rows] == [0.75, 0.75] == [found.share] * 2
    row = table.rows[0]
    assert row.bounds_of("error") == pytest.approx((1 - found.high, 0.25, 1 - found.low))
    assert row.accuracy_by == found.by and table.objectives == ("time_us", "energy_uj", "error")
    assert read_row(list_columns(row)) == row
    written = table.write(tmp_path / "rows.csv").read_text()
    assert "accuracy_low" in written.splitlines()[0]


def test_what_was_found_is_kept_by_content(planted, monkeypatch) -> None:
    path, data = planted
    graph = twin.read_model(str(path))
    first = make_judge(data).rate(graph, {})

    def fail(*asked):
        raise AssertionError("was measured before")

    monkeypatch.setattr("twin.studies.judge.measure_accuracy", fail)
    assert make_judge(data).rate(graph, {"placement.weights": "sram"}) == first


def test_a_changed_network_is_another_one_and_a_misfit_is_not_known(planted) -> None:
    path, data = planted
    graph, found = twin.read_model(str(path)), make_judge(data)
    narrow = found.rate(graph, {"network.width": "0.5"})
    assert narrow.share is None or narrow != found.rate(graph, {})
    other = found.rate(twin.read_model("ad"), {})
    assert other.share is None and "no data whose inputs have its 640 elements" in other.by


def test_a_function_is_asked_and_networks_compete() -> None:
    wide, narrow = separable("wide", (6, 6), (2, 16), 3), separable("narrow", (6, 6), (2, 4), 3)
    table = twin.sweep([wide, narrow], BOARD, runtimes="cmsis-nn",
                       accuracy=lambda graph: (90, 100) if graph.name == "wide" else 0.5)
    first, second = table.rows
    assert first.time_us > second.time_us and {first.front, second.front} <= {"front", "certain"}
    worse = twin.sweep([wide, narrow], BOARD, runtimes="cmsis-nn",
                       accuracy=lambda graph: 0.5 if graph.name == "wide" else 0.9)
    assert worse.rows[0].front in ("", "possible") and worse.rows[1].front in ("front", "certain")
    asked = twin.sweep([wide, narrow], BOARD, runtimes="cmsis-nn", min_accuracy="80%",
                       accuracy=lambda graph: 0.9 if graph.name == "wide" else 0.5)
    assert [row.verdict for row in asked.rows] == ["yes", "no"]


def test_limits_of_accuracy_have_a_probability() -> None:
    limits = read_limits(min_accuracy=0.9)
    assert limits.list_limits() == (("error", pytest.approx(0.1)),)
    found = make_judge(lambda graph: (90, 100)).rate(separable("n", (6, 6), (2, 4), 3), {})
    row = Row(inputs=(), time_us=1.0, accuracy=found.share, accuracy_range=found.interval,
              accuracy_by="x")
    assert judge(row, limits).probability == pytest.approx(0.5, abs=0.02)
    assert judge(row, read_limits(min_accuracy=0.7)).probability > 0.99
    unknown = judge(Row(inputs=(), time_us=1.0, accuracy_by="why"), limits)
    assert unknown.verdict == "may" and unknown.probability is None


@pytest.mark.parametrize("given", ["1.5", "0", "x", "120%"])
def test_no_share_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="a share above 0 and below 1"):
        read_limits(min_accuracy=given)
    with pytest.raises(UsageError, match="accepted: --accuracy DATA"):
        twin.select("kws", BOARD, min_accuracy="80%")


def test_sources_that_are_none_are_refused_in_a_line(tmp_path) -> None:
    for source, said in ((tmp_path, "holds no .npz"), (tmp_path / "no.npz", "cannot be read"),
                         (f"{tmp_path}/no.py:f", "there is no file")):
        with pytest.raises(UsageError, match=said):
            make_judge(source)
    (tmp_path / "own.py").write_text("def good(graph):\n    return 2.0\nbad = 1\n")
    with pytest.raises(UsageError, match="is not a function"):
        make_judge(f"{tmp_path}/own.py:bad")
    found = make_judge(f"{tmp_path}/own.py:good").rate(separable("n", (6, 6), (2, 4), 3), {})
    assert found.share is None and "returned 2.0" in found.by
    assert make_judge(None) is None and isinstance(make_judge(lambda graph: 1.0), Judge)
