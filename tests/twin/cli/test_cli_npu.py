"""The command line with an accelerator: predict, trace, import, compare, and what they refuse."""

import json
from pathlib import Path

import pytest
from made_info import made_info
from rich.console import Console
from typer.testing import CliRunner

from twin.attribution.predicted import side_of_prediction
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict
from twin.reports.tables.tasks import tasks_part

KWS = ("kws", "-b", "stm32n6570_dk", "--runtime", "neural-art")


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def write_log(path):
    """A profiler's log as our own report prints one."""
    console = Console(width=400, file=path.open("w"), force_terminal=False)
    console.print(tasks_part(side_of_prediction(predict(
        deploy("kws", "stm32n6570_dk", runtime="neural-art")))))
    console.file.close()
    return path


def test_the_report_is_one_screen_unless_details_are_asked_for(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for network in ("kws", "mobilenet_v2_0.35_96"):
        result = run("predict", network, "-b", "stm32n6570_dk")
        lines = result.stdout.splitlines()
        assert len(lines) <= 46 and max(map(len, lines)) <= 80
        assert "hand-over" in result.stdout and "--details" in result.stdout
        assert "other layers" in result.stdout
    longer = run("predict", *KWS, "--details").stdout
    assert len(longer.splitlines()) > 46
    # The same total under both tables, and in the long report.
    totals = {line.split()[1] for line in run("predict", *KWS).stdout.splitlines()
              if line.startswith("total ")}
    assert len(totals) == 1 and totals.pop() in longer


def test_predict_says_what_is_offloaded_and_every_epoch():
    text = run("predict", *KWS, "--details").output
    assert "hand-over" in text
    assert "EpochBlock_1 " in text
    assert "EpochBlock_1 " not in run("predict", *KWS, "--details", "--no-epochs").output


def test_epochs_are_a_line_each_unless_all_of_them_is_asked_for():
    lines = run("predict", *KWS, "--details").output.splitlines()
    told = [line for line in lines if line.startswith("EpochBlock_")]
    assert len(told) == 12 and all(" us to " in line for line in told[:9])
    assert "[compiler]" not in lines
    lines = run("predict", *KWS, "--epochs").output.splitlines()
    assert lines.count("[compiler]") == 12
    head = [line for line in lines
            if line.startswith(("I[1/1]", "O[1/1]", "n_nodes", "activations"))]
    assert head[0].startswith("I[1/1] 'input' : int8[1,49,10,1], 490 Bytes, QLinear(")
    assert head[1].endswith("activations") and head[2].endswith(" 12")
    assert int(head[3].rpartition(" ")[2]) == deploy(
        "kws", "stm32n6570_dk", runtime="neural-art").placement.arena_bytes


def test_document_and_trace_have_the_epochs(tmp_path):
    result = run("predict", *KWS, "--json", "--trace", str(tmp_path / "run.json"))
    document = json.loads(result.stdout)
    assert len(document["epochs"]) == 12
    assert document["coverage"]["hand_over_us"] > 0
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_every_memory_with_buffers_is_judged_by_itself():
    text = run("check", "ic", "-b", "stm32n6570_dk", "--runtime", "neural-art", "--weights",
               "hyperRAM").output
    assert "fits npu_ram" in text and "fits psram" in text and "fits RAM" not in text
    assert "36,864" in text  # the arena's 32,768 and the runtime's 4,096


def test_a_trace_that_cannot_be_written_is_refused_before_the_model_is_read(tmp_path):
    result = run("predict", "none.tflite", "-b", "nucleo_f446re", "--trace",
                 str(tmp_path / "run.txt"))
    assert result.exit_code == 2 and "a name ends in .json" in result.output


def test_runtime_without_its_accelerator_is_refused():
    result = run("predict", "kws", "-b", "nucleo_f446re", "--runtime", "neural-art")
    assert result.exit_code != 0


def test_a_log_is_imported_and_compared(tmp_path):
    log = write_log(tmp_path / "run.txt")
    imported = run("import", "npu-profiler", str(log), "-o", str(tmp_path / "measured"))
    assert imported.exit_code == 0, imported.output
    measured = ("--measured", str(tmp_path / "measured"))
    for other in (("ic", "-b", "stm32n6570_dk"), ("kws", "-b", "stm32n6570_dk", "--clock",
                                                  "400MHz")):
        refused = run("compare", *other, *measured)
        assert refused.exit_code == 3 and "not of the same thing" in refused.output
    compared = run("compare", "kws", "-b", "stm32n6570_dk", *measured)
    assert compared.exit_code == 0, compared.output
    assert "whole model: sums over 12 epochs" in compared.output
    again = run("import", "npu-profiler", str(log), "-o", str(tmp_path / "measured"))
    assert again.exit_code == 3 and "has run 0 already" in again.output


def test_a_compilers_output_is_predicted_and_compared(tmp_path):
    compiled = tmp_path / "c_info.json"
    compiled.write_text(json.dumps(made_info()), encoding="utf-8")
    text = run("predict", str(compiled), "-b", "stm32n6570_dk").output
    assert "processor units" in text
    refused = run("predict", str(compiled), "-b", "stm32n6570_dk", "--set", "npu.engines=2")
    assert refused.exit_code == 2 and "--set: not with a compiler's output" in refused.output
    log = write_log(tmp_path / "run.txt")
    run("import", "npu-profiler", str(log), "-o", str(tmp_path / "measured"))
    against = ("compare", str(compiled), "-b", "stm32n6570_dk", "--measured",
               str(tmp_path / "measured"))
    refused = run(*against)
    assert refused.exit_code == 3 and "operations" in refused.output
    compared = run(*against, "--anyway", "--plot", str(tmp_path / "beside.png"))
    assert compared.exit_code == 0, compared.output
    assert "paired in order" in compared.output
    assert (tmp_path / "beside.png").stat().st_size > 10_000
    assert run("predict", str(compiled), "-b", "nucleo_f446re").exit_code != 0


@pytest.mark.parametrize(("form", "text"), [
    ("npu-profiler", "nothing of the kind\n"), ("no-such-form", "x\n")])
def test_what_is_not_a_log_is_refused(tmp_path, form, text):
    log = tmp_path / "run.txt"
    log.write_text(text)
    result = run("import", form, str(log), "-o", str(tmp_path / "measured"))
    assert result.exit_code != 0
    assert not Path(tmp_path / "measured").exists()
