"""Published schemas are what the shapes say, and documents are what the schemas say."""

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from twin.cli import app
from twin.prediction.document import dump_document
from twin.reports.shapes.schemas import FOLDER, SHAPES, make_schema


def test_every_schema_is_made_of_its_shape_and_no_other_is_published():
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == set(SHAPES)
    for name in SHAPES:
        made = make_schema(name)
        jsonschema.Draft202012Validator.check_schema(made)
        kept = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
        assert kept == dump_document(made), "python -m twin.reports.shapes.schemas"


@pytest.mark.parametrize(("words", "schema", "kind"), [
    ("boards", "list", "boards"), ("boards nucleo_l4r5zi", "list", "board"),
    ("boards --virtual", "list", "virtual_boards"), ("runtimes", "list", "runtimes"),
    ("runtimes tflm-cmsis-nn@2.3.1", "list", "runtime"), ("models", "list", "models"),
    ("explain", "list", "terms"), ("explain IPC", "list", "term"),
    ("explain paths nucleo_l4r5zi", "list", "paths"), ("study list", "list", "studies"),
    ("check ad -b nucleo_l4r5zi --max-ms 90", "check", "check"),
    ("sweep ad -b nucleo_l4r5zi -b nucleo_f401re --max-ms 100", "study", "study"),
    ("advise ad -b nucleo_l4r5zi --max-ms 90 --effort setting", "advice", "advice"),
    ("select ad -b nucleo_l4r5zi -b nucleo_f401re --max-ms 90", "selection", "selection"),
    ("plan ad -b nucleo_l4r5zi", "plan", "predicted"),
    ("cache ad -b nucleo_l4r5zi", "cache", "cache"),
    ("scenario run anomaly_detection", "scenario", "scenario"),
    ("predict ad -b nucleo_l4r5zi", "prediction", "predicted"),
    ("whatif ad -b nucleo_l4r5zi --set placement.arena=sram", "comparison", "what-if")])
def test_what_commands_write_conforms(words, schema, kind):
    ended = CliRunner().invoke(app, [*words.split(), "--json"])
    assert ended.exit_code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["kind"] == kind
    jsonschema.Draft202012Validator(make_schema(schema)).validate(document)


def test_the_page_names_every_schema():
    page = (Path(__file__).parents[3] / "docs" / "exports.md").read_text(encoding="utf-8")
    for name in SHAPES:
        assert f"{name}.schema.json" in page
