"""The gate: what it takes for a moved number, and one board's documents as they were kept."""

import json
import lzma

import pytest

from benchmarks.exactness import gate

KEPT = {"total": {"cycles": 100, "time_us": 2.5, "interval_us": {"low": 1.0, "high": 4.0}},
        "counts": {"mac_issue": {"occurred": 7, "exposed": 7.5}}, "layers": [1, 2],
        "board": "made", "warnings": ["a sentence"], "said": "two words"}


def change(path, value):
    made = json.loads(json.dumps(KEPT))
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize("path, value", [
    (("total", "time_us"), 2.5 * (1 + 2e-9)), (("total", "cycles"), 102),
    (("total", "interval_us", "low"), 1 + 2e-6), (("counts", "mac_issue", "occurred"), 8),
    (("counts", "mac_issue", "exposed"), 7.5 * (1 + 2e-9)), (("layers",), [1]),
    (("layers", 1), None), (("board",), "other"), (("total", "time_us"), None)])
def test_a_moved_figure_is_found(path, value):
    assert [*gate.differences(KEPT, change(path, value))]


@pytest.mark.parametrize("path, value", [
    (("total", "time_us"), 2.5 * (1 + 1e-10)), (("total", "cycles"), 101),
    (("total", "interval_us", "low"), 1 + 1e-7), (("warnings",), []), (("said",), "other words"),
    (("added",), 1)])
def test_rounding_prose_and_new_keys_are_none(path, value):
    assert not [*gate.differences(KEPT, change(path, value))]


def test_another_program_is_named_where_figures_differ():
    old, new = {"program_sha256": "1", "document": {"a": 1}}, {"program_sha256": "2"}
    assert not gate.compare({"a": old}, {"a": new | {"document": {"a": 1}}})
    (line,) = gate.compare({"a": old}, {"a": new | {"document": {"a": 2}}})
    assert "another program" in line


def test_kept_documents_are_of_every_board_and_command():
    kept = {one["name"]: one for one in json.loads(lzma.decompress(gate.KEPT.read_bytes()))}
    assert {case.name for case in gate.list_cases()} == set(kept)
    refused = {name: one["refusal"] for name, one in kept.items() if one["exit"]}
    assert all(line.startswith("error: does not fit") for line in refused.values())
    assert len(refused) <= 6 and all(kept[name]["document"] for name in kept.keys() - refused)


def test_a_board_agrees_with_what_was_kept():
    kept = [one for one in json.loads(lzma.decompress(gate.KEPT.read_bytes()))
            if one["name"].startswith("predict kws esp32s3")]
    case = {case.name: case for case in gate.list_cases()}[kept[0]["name"]]
    made = gate.run(gate.replace(case, words=tuple(kept[0]["words"])))
    assert not gate.compare({case.name: kept[0]}, {case.name: kept[0] | made})
