"""A core of one's own is one file: everything that works of a shipped one works of it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from made_measurements import measure
from typer.testing import CliRunner

import twin
from calibration.measurement.measurement import write_measurement
from hwmodels.board.file import load_board
from hwmodels.core.file import list_cores, load_core
from hwmodels.errors import BoardError
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.network.readers import read_model
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.inference import predict
from twin.pricing.structure import structure_key
from twin.program.image.compile.build import fingerprint
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.source import generate_source

CORES = Path(__file__).parents[2] / "made" / "cores"
MADE = {"cortex-m52": ("--clock", "200MHz"), "small-rv32imac": ("--clock", "160MHz")}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def own_cores(monkeypatch):
    monkeypatch.setenv("TWIN_CORES", str(CORES))


@pytest.mark.parametrize("core", MADE)
def test_one_file_runs_everything(core, tmp_path):
    board = tmp_path / "mine.yaml"
    run("boards", "new", "mine", "--core", core, *MADE[core], "--flash", "2MiB", "--sram",
        "512KiB", "-o", board)
    assert load_board(board).core.isa == load_core(core).traits.isa
    predicted = json.loads(run("predict", "ad", "-b", board, "--json"))
    assert predicted["total"]["time_us"] > 0

    built = tmp_path / "build"
    run("firmware", "build", "ad", "-b", board, "--port", f"rtt-{core.removeprefix('cortex-')}",
        "-o", built)
    ran = json.loads(run("predict", "--elf", built / "firmware.elf", "-b", board, "--call",
                         "infer_once", "--json"))
    # the same network by other kernels: the program is whole, and of the order of the model's
    assert 0.2 < ran["total"]["time_us"] / predicted["total"]["time_us"] < 5

    deployment = deploy("ad", board)
    write_measurement(tmp_path / "run" / "warm", measure(
        predict(deployment), model="ad", runtime=deployment.runtime.identity, board="mine",
        clocks_hz=(("cpu", deployment.board.clock("cpu").frequency_hz),)))
    found = json.loads(run("diagnose", tmp_path / "run", "--board", board, "--json"))
    assert found["verdict"] == "as declared"


def test_vectors_are_billed_a_beat_a_cycle(tmp_path):
    from hwmodels.core.schedule import schedule

    code = "vmladava.s8 r0, q0, q1; vmladava.s8 r2, q2, q3"
    beats = {core: schedule(code, load_core(core)).steady.cycles for core in (
        "cortex-m52", "cortex-m55")}
    assert beats["cortex-m52"] == 2 * beats["cortex-m55"]


def test_a_changed_file_is_another_core(monkeypatch, tmp_path):
    path = tmp_path / "mine-m52.yaml"
    text = (CORES / "cortex-m52.yaml").read_text().replace("model: cortex-m52", "model: mine-m52")
    path.write_text(text)
    monkeypatch.setenv("TWIN_CORES", str(tmp_path))
    first = load_core("mine-m52")
    assert first is load_core("mine-m52")
    deployment = deploy(
        "ad", load_board("apollo510_evb", overrides={"cores.main.model": "mine-m52"}))
    key = structure_key(deployment, "", cold=False)
    path.write_text(text.replace("latency: [16, derived, llvm]", "latency: [61, derived, llvm]"))
    assert load_core("mine-m52").classes != first.classes
    assert structure_key(deployment, "", cold=False) != key


def test_firmware_on_a_core_nobody_measured_extrapolates(tmp_path):
    for core, unseen in (("cortex-m52", True), ("cortex-m4", False)):
        board = tmp_path / f"{core}.yaml"
        run("boards", "new", "mine", "--core", core, "--clock", "96MHz", "--flash", "2MiB",
            "--sram", "512KiB", "-o", board)
        made = predict_calibrated(deploy("ad", board, runtime="firmware"))
        text = f"no measurement of any {core} is learnt from"
        assert made.certainty.extrapolating == (text,) * unseen
        assert (f"extrapolating: {text}" in made.warnings) == unseen


@pytest.mark.parametrize(("name", "old", "new", "message"), [
    ("cortex-m4", "", "", "already"),
    ("rv32imac", "", "", "already"),
    ("other", "", "", "as the file is named"),
    ("cortex-m52", "isa: armv8.1-m-mve", "isa: armv9-m", "core.isa"),
    ("cortex-m52", "emulators:", "emulator:", "emulator"),
    ("cortex-m52", "schema: 1", "schema: 1\nschema: 1", "key 'schema' is given twice in line"),
    ("cortex-m52", "issue_width: [", "issue_width: [20", "issue_width: 201"),
    ("cortex-m52", "max_ipc: [", "max_ipc: [9", "max_ipc: 91"),
    ("cortex-m52", "flags: \"", "flags: \"; touch x ", "core.build.flags"),
    *(("cortex-m52", "flags: \"", f"flags: \"{flags} ", "is no option of the machine or its code")
      for flags in ("; touch x", "-wrapper touch,x", "-fplugin=x.so", "-fpass-plugin=x", "-specs=x",
                    "-m$(touch x)", "-B.")),
    ("cortex-m52", "flags: \"-march=armv8.1-m.main+mve.fp+fp.dp\", ", "",
     "core.build.flags: is not"),
    ("cortex-m52", "unicorn: M33", "unicorn: M99", "core.emulators.unicorn: 'M99' is not known; "),
    ("cortex-m52", "qemu: cortex-m55", "qemu: cortex-m999", "did you mean cortex-m"),
    ("cortex-m52", "units: [load_store]", "units: [nosuch]", ".units: 'nosuch' is not known; "),
    ("cortex-m52", "classes:", "unit_counts: {laod: [2, derived, llvm]}\nclasses:",
     "unit_counts.laod: 'laod' is not known; "),
    ("cortex-m52", "latency: [16,", "latency: [200000,", "f_div.latency.0: Input should be less"),
    ("cortex-m52", "  alu: {", "  alu_lsl: {", "classes.alu: is not stated; accepted: its cycles"),
    ("cortex-m52", "  v_mac: {", "  v_mac_long: {", "classes.v_mac: is not stated"),
])
def test_mistakes_are_named(name, old, new, message, monkeypatch, tmp_path):
    shutil.copy(CORES / "cortex-m52.yaml", tmp_path / f"{name}.yaml")
    path = tmp_path / f"{name}.yaml"
    path.write_text(path.read_text().replace(old, new) if old else path.read_text())
    monkeypatch.setenv("TWIN_CORES", str(tmp_path))
    with pytest.raises(BoardError, match=name) as caught:
        for core in list_cores():
            load_core(core)
    assert message in str(caught.value)


def test_options_of_code_generation_are_taken_and_names_of_zig_are_not_needed(
        monkeypatch, tmp_path):
    text = (CORES / "cortex-m52.yaml").read_text().replace(", zig: cortex_m55+mve_fp", "")
    (tmp_path / "cortex-m52.yaml").write_text(
        text.replace('flags: "', 'flags: "-O3 -fno-math-errno -mthumb '))
    monkeypatch.setenv("TWIN_CORES", str(tmp_path))
    arguments = load_port("rtt-m52").arguments
    assert "ZIG_CPU=" in arguments
    assert "CPU=-O3 -fno-math-errno -mthumb -march=armv8.1-m.main+mve.fp+fp.dp" in arguments


def test_an_image_is_kept_by_the_options_of_its_core(monkeypatch, tmp_path):
    # that of flags asked for before was read again: 5.62 ms or 2.14 ms by what was built first
    source, found = generate_source(read_model("ad"), "armv8.1-m"), set()
    text = (CORES / "cortex-m52.yaml").read_text()
    for place, flags in enumerate(('flags: "', 'flags: "-O1 ')):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "cortex-m52.yaml").write_text(text.replace('flags: "', flags))
        monkeypatch.setenv("TWIN_CORES", str(folder))
        found.add(fingerprint(source, load_port("rtt-m52"), "gcc", (), b""))
    assert len(found) == 2


@pytest.mark.parametrize(("path", "value", "accepted"), [
    ("isa", "rv32imc", "armv7e-m, armv7-m"), ("isa", "armv6-m", "armv7e-m, armv7-m"),
    ("fpu", "double", "none, single")])
def test_a_core_is_one_of_its_model(path, value, accepted):
    board = load_board("nucleo_l4r5zi", overrides={f"cores.main.{path}": value})
    with pytest.raises(RuntimeRefusedError, match=f"nucleo_l4r5zi:cores.main.{path}: no cortex-m4 "
                                                  f"has '{value}'; accepted: {accepted}"):
        predict(deploy("ad", board))


def test_a_core_that_is_none_is_named_with_the_board_and_its_key(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(load_board("nucleo_l4r5zi").document.replace('"cortex-m4"', '"cortex-m44"'))
    with pytest.raises(BoardError, match=r":cores\.main\.model: core model 'cortex-m44' does not "
                                         "exist; did you mean cortex-m4"):
        predict(deploy("ad", path))


def test_a_board_is_of_the_family_of_its_core(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(load_board("nucleo_l4r5zi").document.replace(
        '"core_family":"cortex-m4"', '"core_family":"cortex-m7"'))
    with pytest.raises(BoardError, match=r"mine.json:board.core_family: cortex-m7 .* cortex-m4$"):
        load_board(path)


def test_a_folder_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("TWIN_CORES", "/nowhere")
    with pytest.raises(BoardError, match="TWIN_CORES: /nowhere is not a folder"):
        load_core("cortex-m52")


def test_a_bundle_brings_the_cores_its_runs_were_predicted_with(monkeypatch, tmp_path):
    own = tmp_path / "cores"
    own.mkdir()
    shutil.copy(CORES / "cortex-m52.yaml", own)
    monkeypatch.setenv("TWIN_CORES", str(own))
    run("boards", "new", "mine", "--core", "cortex-m52", *MADE["cortex-m52"], "-o",
        tmp_path / "mine.yaml", "--flash", "1MiB", "--sram", "512KiB")
    _, kept = twin.keep("predict", {"model": "ad", "board": str(tmp_path / "mine.yaml")},
                        tmp_path / "runs")
    assert "inputs/TWIN_CORES/cortex-m52.yaml" in kept.head["inputs"]
    twin.bundle([tmp_path / "runs"], tmp_path / "all.zip")
    (own / "cortex-m52.yaml").write_text((CORES / "cortex-m52.yaml").read_text().replace(
        "issue_width: [1", "issue_width: [2"))
    for folder in (str(own), ""):
        monkeypatch.setenv("TWIN_CORES", folder)
        (agreement,) = twin.reproduce(tmp_path / "all.zip")
        assert agreement.is_same
        assert os.environ["TWIN_CORES"] == folder
