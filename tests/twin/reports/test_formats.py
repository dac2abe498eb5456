"""Files of other tools: their shapes, their sums, and what is read back."""

import json
import math
from importlib.util import find_spec

import pytest
from made_predictions import make_prediction
from typer.testing import CliRunner

from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.network import zoo
from twin.pricing.calibrated import predict_calibrated
from twin.reports.formats import FORMATS, check_format, write_format
from twin.reports.functions import make_speedscope
from twin.reports.mlia import to_mlia
from twin.reports.model_explorer import to_node_data


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_written_the_same_twice(tmp_path, monkeypatch, ending):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = (write_format(make_prediction(3), tmp_path / f"{name}{ending}").read_bytes()
                     for name in "ab")
    assert first == second and json.loads(first)


def test_other_endings_are_refused_with_those_there_are(tmp_path):
    with pytest.raises(UsageError, match=r"\.mlia\.json.*\.node-data\.json"):
        check_format(tmp_path / "a.json")
    ended = run("predict", "none.tflite", "-b", "nucleo_l4r5zi", "--export", tmp_path / "a.xml")
    assert ended.exit_code == 2 and "a name ends in" in ended.stderr


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "stm32n6570_dk"])
def test_mlia_reads_as_its_schema_says_and_back(board):
    prediction = predict_calibrated(deploy("kws", board))
    document = to_mlia(prediction)
    # Required keys of MLIA's output schema 1.2.0.
    assert {"schema_version", "run_id", "timestamp", "tool", "target", "model", "context",
            "backends", "results"} == set(document)
    result, = document["results"]
    assert (result["kind"], result["mode"], result["status"]) == ("performance", "predicted", "ok")
    known = {entity["id"] for entity in result["entities"]}
    assert len(known) == len(prediction.layers)
    assert {one["entity_id"] for one in result["breakdowns"]} == known
    placed = {entity["placement"] for entity in result["entities"]}
    assert placed == ({"CPU"} if board == "nucleo_l4r5zi" else {"CPU", "NPU"})
    back = {one["entity_id"]: {part["name"]: part["value"] for part in one["metrics"]
                               if "value" in part}
            for one in ({"entity_id": "", "metrics": result["metrics"]}, *result["breakdowns"])}
    assert back[""]["inference_time"] == pytest.approx(prediction.time_us / 1e3)
    assert math.fsum(one["inference_time"] for name, one in back.items() if name) \
        == pytest.approx(back[""]["inference_time"])
    setup = {name for name in back[""] if name.startswith("setup_")}
    assert setup and not setup & {"cpu_cycles"}
    if find_spec("mlia") is not None:  # Arm's own tool, where somebody has it
        from mlia.core.output_validation import validate_standardized_output

        validate_standardized_output(document)


def test_node_data_stand_at_tensors_the_model_file_has():
    prediction = predict_calibrated(deploy("ad", "nucleo_l4r5zi"))
    graph = zoo.build("ad")
    names = {tensor.name for tensor in graph.tensors}
    overlays = to_node_data(prediction)
    for overlay in overlays.values():
        assert set(overlay["results"]) <= names and overlay["results"]
    assert math.fsum(one["value"] for one in overlays["time, us"]["results"].values()) \
        == pytest.approx(prediction.time_us)


def test_speedscope_of_a_network_weighs_its_time():
    prediction = make_prediction(4)
    profile, = make_speedscope(prediction)["profiles"]
    assert profile["unit"] == "nanoseconds"
    assert sum(profile["weights"]) == profile["endValue"] == pytest.approx(
        1e3 * prediction.time_us, abs=80)


def test_what_diff_reads_is_what_predict_wrote(tmp_path):
    """Bencher's figures and the document's are one prediction's; diff reads that document."""
    words = ("predict", "ad", "-b", "nucleo_l4r5zi")
    made = run(*words, "--json", "--export", tmp_path / "a.bencher.json")
    (tmp_path / "a.json").write_text(made.stdout)
    total = json.loads(made.stdout)["total"]
    (measures,) = json.loads((tmp_path / "a.bencher.json").read_text()).values()
    assert measures["latency"]["value"] == pytest.approx(1e3 * total["time_us"], abs=1)
    assert measures["latency"]["lower_value"] == 1e3 * total["time_interval_us"]["low"]
    same = run("diff", tmp_path / "a.json", tmp_path / "a.json", "--max-increase", "0%", "--json")
    assert same.exit_code == 0 and json.loads(same.stdout)["exceeding"] == []
    # What schema 1 wrote, with interval and value in one object, is read, too.
    old = json.loads(made.stdout) | {"schema": 1}
    for part in (old["total"], *old["layers"]):
        for name, unit in (("time", "us"), ("energy", "uj")):
            bounds = part.pop(f"{name}_interval_{unit}")
            part[f"{name}_{unit}"] = {"value": part[f"{name}_{unit}"], **bounds}
    (tmp_path / "old.json").write_text(json.dumps(old))
    moved = json.loads(run("diff", tmp_path / "old.json", tmp_path / "a.json", "--json").stdout)
    assert all(account["total"]["gap"] == 0 for account in moved["accounts"])


def test_check_writes_acceptance_and_junit(tmp_path):
    ended = run("check", "ad", "-b", "nucleo_l4r5zi", "--max-ms", "0.1", "--no-advice", "--csv",
                tmp_path / "csv", "--accuracy", "0.87", "--junit", tmp_path / "j.xml")
    assert ended.exit_code == 1
    told = (tmp_path / "csv" / "precision_tradeoffs.csv").read_text().splitlines()[1].split(",")
    assert (told[1], told[-1]) == ("0.87", "0.0")
    from xml.etree import ElementTree

    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["time"] and suite.get("failures") == "1"
    refused = run("check", "ad", "-b", "nucleo_l4r5zi", "--accuracy", "0.87")
    assert refused.exit_code == 2 and "--csv DIR" in refused.stderr
