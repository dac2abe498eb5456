"""Published schemas are what the shapes say, and documents are what the schemas say."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from made_logs import TFLM_TEXT
from typer.testing import CliRunner

import twin
from calibration.fitting.overlay import read_shipped
from calibration.measurement.counters import Bottleneck, Metric
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from twin.api.commands.measure import Measured
from twin.api.sessions.agreement import Agreement, Comparison
from twin.attribution.measured_layers import MeasuredLayer, MeasuredNetwork
from twin.cli import app
from twin.network.zoo import build
from twin.program.image.compile.verification import BoardRun, LayerRun
from twin.program.image.tuning import Candidate, Tuning
from twin.reports.documents import SCHEMAS, write_json, write_schemas
from twin.reports.documents import load_schema as make_schema
from twin.reports.outcomes import Accuracies, Flashed, Removed
from twin.studies.accuracy import Accuracy

load_schema = cache(make_schema)


def test_every_schema_is_one_and_is_written_where_the_package_is_built(tmp_path):
    written = write_schemas(tmp_path / "schema")
    assert {path.name.split(".")[0] for path in written} == set(SCHEMAS)
    for path in written:
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema == load_schema(path.name.split(".")[0])
        assert schema["$id"].startswith("urn:embedded-twin:")


@pytest.mark.parametrize(("words", "schema", "kind"), [
    ("boards", "list", "boards"), ("boards nucleo_l4r5zi", "list", "board"),
    ("boards --virtual", "list", "virtual_boards"), ("runtimes", "list", "runtimes"),
    ("runtimes tflm-cmsis-nn@2.3.1", "list", "runtime"), ("models", "list", "models"),
    ("explain", "list", "terms"), ("explain IPC", "list", "term"),
    ("explain paths nucleo_l4r5zi", "list", "paths"), ("study list", "list", "studies"),
    ("scenario list", "list", "scenarios"),
    ("transform ad -b nucleo_l4r5zi", "list", "transformations"),
    ("compare ad -b nucleo_h723zg -b nucleo_f401re --published", "published", "several"),
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
    jsonschema.Draft202012Validator(load_schema(schema)).validate(document)


@pytest.mark.parametrize(("words", "kind"), [
    ("firmware export ad -o {}/source", "written"), ("models export ad {}/ad.onnx", "written"),
    ("report ad -b nucleo_l4r5zi --no-changes --max-ms 1 -o {}/report.md", "written"),
    ("import tflm {}/log.txt -o {}/m", "imported"),
    ("transform ad --set network.width=0.5 -o {}/half.tflite", "written"),
    ("sessions clean {}", "removed"),
    ("boards new mine --like nucleo_l4r5zi --clock 80MHz --flash 1MiB --sram 64KiB "
     "-o {}/mine.yaml", "new_board")])
def test_what_commands_did_is_a_document_too(words, kind, tmp_path):
    (tmp_path / "log.txt").write_text(TFLM_TEXT)
    ended = CliRunner().invoke(app, [*words.replace("{}", str(tmp_path)).split(), "--json"])
    document = json.loads(ended.stdout)
    assert document["kind"] == kind
    if "--max-ms" in words:
        assert ended.exit_code == 1 and document["met"] is False
    assert all(Path(one).exists() for one in document.get("files", ()))
    jsonschema.Draft202012Validator(load_schema("outcome")).validate(document)


def test_every_outcome_of_a_board_conforms():
    layer = MeasuredLayer(
        index=None, name="", op="", p50=2.0, p95=3.0, time_us=None, share=1.0,
        metrics={"macs": Metric(name="macs", value=1.0, unit="MAC", origin="modelled",
                                formula="")},
        bottleneck=Bottleneck(kind="", severity=0.0, evidence="", origin="modelled"))
    header = Header(kind="simulated", model="x", board="b", runtime="r", source="s",
                    temperature="warm")
    network = MeasuredNetwork(
        measurement=Measurement(header=header, samples=(
            Sample(run=0, counter="instructions", value=2.0, unit="events"),)),
        counter="instructions", layers=(), whole=layer, overhead_share=0.0)
    run = BoardRun(counter="instructions", simulated=True, total=2.0, setup=1.0, layers=(
        LayerRun(index=0, op="conv_2d", name="", count=1.0, equal=None),))
    overlay = read_shipped("cmsis-nn", "nucleo_l4r5zi")
    assert overlay is not None
    right = Accuracy(right=1, samples=2, low=0.1, high=0.9, by="x")
    agreement = Agreement(name="x", verb="predict", kept="a", again="b", count=1,
                          differences=(("total", "1", "2"),))
    for result in (Measured(folder=Path("m"), networks=(network,), graph=build("ad"), virtual=None),
                   run, overlay, (agreement,), {"x": overlay}, Flashed(message="done"),
                   Comparison(asked=(("verb", "a", "b"),), agreement=agreement, difference=None),
                   Removed(folders=(Path("m"),), really=True),
                   Accuracies(model="x", before=right, after=None),
                   Tuning(deployment=twin.deploy("ad", "nucleo_l4r5zi"), virtual="v", candidates=(
                       Candidate(tile=2, level="O2", cycles=1.0, layer_cycles=(1.0,), ram_bytes=1,
                                 run=run),))):
        document = json.loads(write_json(result))
        jsonschema.Draft202012Validator(load_schema("outcome")).validate(document)


def test_what_serve_says_first_is_a_line_to_read(monkeypatch):
    monkeypatch.setattr(twin, "serve", lambda *_, on_ready, **__: on_ready("http://127.0.0.1:1/"))
    ended = CliRunner().invoke(app, ["serve", "--port", "0", "--json"])
    document = json.loads(ended.stdout)
    assert document["address"] == "http://127.0.0.1:1/" and document["open_wide"] is False
    jsonschema.Draft202012Validator(load_schema("outcome")).validate(document)


def test_the_page_names_every_schema():
    page = (Path(__file__).parents[3] / "docs" / "exports.md").read_text(encoding="utf-8")
    for name in SCHEMAS:
        assert f"{name}.schema.json" in page
