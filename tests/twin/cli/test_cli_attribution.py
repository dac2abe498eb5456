"""`twin attribute`, `diagnose`, `diff`: what they print, and wrong arguments refused in words."""

import copy
import json
import random

import jsonschema
import pytest
from made_measurements import check_sums, measure
from typer.testing import CliRunner

from calibration.measurement.measurement import write_measurement
from hwmodels.errors import TwinError
from twin.attribution.document import load_schema
from twin.attribution.measured import read_side
from twin.attribution.predicted import side_of_document
from twin.attribution.views import attribute
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.documents import dump_document
from twin.pricing.document import to_document
from twin.pricing.inference import predict


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two predictions and two measurements of ad."""
    folder = tmp_path_factory.mktemp("made")
    deployment = deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn")
    for name, one in (("sram", deployment.replace({"placement.weights": "sram"})),
                      ("flash", deployment)):
        prediction = predict(one)
        (folder / f"{name}.json").write_text(dump_document(to_document(prediction)))
        told = {"model": "ad", "runtime": "cmsis-nn@6.0", "clocks_hz": (("cpu", 120e6),)}
        write_measurement(folder / name / "warm", measure(prediction, factor=1.02, **told))
    return folder


def test_attribute_prints_rows_causes_and_a_verdict(made, tmp_path):
    code, out, err = run("attribute", made / "flash.json", made / "sram", "--csv",
                         tmp_path / "a.csv", "--plot", tmp_path / "a.svg")
    assert code == 0, err
    assert "unexplained" in out and "what explains the pattern" in out
    assert "0 fully_connected" in out and "total" in out
    assert (tmp_path / "a.csv").read_text().startswith("quantity,unit,index")
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1
    code, out, _ = run("attribute", "ad", made / "flash", "--json", "--shapley")
    document = json.loads(out)
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    split = document["idealised"]
    assert split["work"] + sum(one["share"] for one in split["resources"]) == split["total"]


def test_diagnose_prints_a_ranking(made):
    code, out, _ = run("diagnose", made / "flash", "--json")
    document = json.loads(out)
    assert code == 0 and document["verdict"] == "as declared"
    code, out, _ = run("diagnose", made / "sram", "--healthy", made / "flash")
    assert code == 0 and "verdict" in out and "remedy" in out


def test_diff_ends_with_1_beyond_the_limit(made, tmp_path):
    code, out, err = run("diff", made / "flash.json", made / "sram.json", "--max-increase", "2%")
    assert code == 1 and "ram_bytes" in err  # the weights are in RAM now
    assert "placement of weights: flash -> sram" in out
    code, out, _ = run("diff", made / "flash", made / "sram", "--max-increase", "2%",
                       "--junit", tmp_path / "d.xml", "--bencher", tmp_path / "b.json", "--json")
    assert code == 0 and json.loads(out)["kind"] == "difference"
    assert "<testsuites>" in (tmp_path / "d.xml").read_text()
    assert "latency" in (tmp_path / "b.json").read_text()


@pytest.mark.parametrize(("arguments", "words"), [
    (("attribute", "FLASH", "ad"), "swapped"),
    (("attribute", "FLASH", "FLASH"), "twin diff"),
    (("attribute", "ad", "flash.json"), "is a file"),
    (("attribute", "ad", "FLASH/warm/header.json"), "give its folder"),
    (("attribute", "flash.json", "FLASH", "--clock", "80MHz"), "a prediction already"),
    (("attribute", "ad", "FLASH", "--csv", "/"), "is a folder"),
    (("attribute", "ad", "FLASH", "--plot", "x.gif"), "a picture ends in"),
    (("diagnose", "flash.json"), "is a file"),
    (("diagnose", "/tmp"), "no header.json"),
    (("diff", "flash.json", "FLASH"), "twin attribute"),
    (("diff", "flash.json", "missing.json"), "no such file"),
    (("diff", "flash.json", "flash.json", "--layers"), "--max-increase"),
])
def test_wrong_arguments_are_refused_in_words(made, arguments, words, monkeypatch):
    monkeypatch.chdir(made)
    code, _, err = run(*(argument.replace("FLASH", "flash") for argument in arguments))
    assert code == 2 and words in err, err


@pytest.mark.parametrize(("arguments", "words"), [
    (("attribute", "ic", "flash"), "other networks"),
    (("attribute", "ad", "flash", "-b", "nucleo_h7a3zi_q"), "predict with -b nucleo_l4r5zi"),
    (("attribute", "ad", "flash", "--clock", "80MHz"), "--clock 120MHz predicts at its clock"),
    (("compare", "ic", "-b", "nucleo_l4r5zi", "--measured", "flash"), "other networks"),
    (("diff", "flash.json", "kws.json"), "other networks"),
])
def test_every_verb_refuses_what_is_not_the_same_in_the_same_words(made, arguments, words,
                                                                   monkeypatch):
    monkeypatch.chdir(made)
    other = predict(deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    (made / "kws.json").write_text(dump_document(to_document(other)))
    code, out, err = run(*arguments)
    assert (code, out) == (3, "") and words in err, err
    assert "not of the same thing" in err and "--anyway compares regardless" in err
    code, out, err = run(*arguments, "--anyway")
    assert code == 0 and out and words.partition(" predicts")[0] in err


def test_any_damage_to_a_prediction_is_a_typed_error_or_harmless(made):
    document = json.loads((made / "flash.json").read_text())
    measured = read_side(made / "flash")
    source = random.Random(11)
    for _ in range(60):
        damaged = copy.deepcopy(document)
        place = damaged
        while True:
            key = source.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or not place[key] or source.random() < 0.2:
                break
            place = place[key]
        place[key] = source.choice([None, -5, float("nan"), float("inf"), "x", [], {}, 10**30])
        try:
            check_sums(attribute(side_of_document(damaged, "made.json"), measured))
        except TwinError as error:
            assert str(error)
