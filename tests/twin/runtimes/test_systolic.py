"""Systolic arrays beside SCALE-Sim's reference outputs and an array stepped cycle by cycle."""

from pathlib import Path

import pytest

import twin
from twin.runtimes.systolic.array import DATAFLOWS, count_cycles

EXAMPLE = Path(__file__).parents[3] / "examples" / "another-accelerator"
REFERENCES = [
    # scalesim-project/SCALE-Sim 1d62b68, test/general: total cycles less stalls, counted from 0
    ("output", (256, 128, 256), 52_447 - 42_272), ("weight", (256, 128, 256), 52_447 - 41_248),
    ("input", (256, 128, 256), 19_984 - 5_777), ("weight", (55 * 55, 96, 11 * 11 * 3), 112_283)]


@pytest.mark.parametrize(("dataflow", "product", "last"), REFERENCES)
def test_reference_outputs_are_met_exactly(dataflow, product, last):
    assert count_cycles(dataflow, product, (32, 32)) == last + 1


def step_output_stationary(product, array):
    """Cycles until the last cell has its sum: (r, c) takes its k-th pair at cycle k + r + c."""
    inputs, filters, depth = product
    rows, columns = array
    folds = -(-inputs // rows) * -(-filters // columns)
    return folds * (1 + max(k + r + c for k in range(depth) for r in range(rows)
                            for c in range(columns)))


@pytest.mark.parametrize("product", [(1, 1, 1), (5, 9, 7), (8, 8, 30), (33, 17, 4)])
def test_an_array_is_its_cells_stepped_one_by_one(product):
    assert count_cycles("output", product, (8, 4)) == step_output_stationary(product, (8, 4))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_an_array_of_one_cell_does_one_product_at_a_time(dataflow):
    fill = 0 if dataflow == "output" else 3 * 4 * 5 // {"weight": 3, "input": 4}[dataflow]
    assert count_cycles(dataflow, (3, 4, 5), (1, 1)) == 3 * 4 * 5 + fill


def test_a_network_runs_on_one(monkeypatch):
    monkeypatch.setenv("TWIN_BOARDS", str(EXAMPLE / "boards"))
    monkeypatch.setenv("TWIN_RUNTIMES", str(EXAMPLE / "runtimes"))
    prediction = twin.predict(twin.deploy("ic", "tile_evk", runtime="tile-systolic"))
    work = [unit for task in prediction.tasks if task.step.layers == (1,)
            for unit in task.run.task.units if unit.kind == "TILE"]
    assert [unit.compute_cycles for unit in work] == [
        count_cycles("weight", (32 * 32, 16, 9 * 16), (16, 16))]
