"""`twin measure` and `twin boards --virtual`: from a model file to a report, each way to end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_patience import HANG_S
from made_session import IDENTITY
from typer.testing import CliRunner

import twin
from calibration.errors import IncompleteWarning
from calibration.measurement.measurement import read_measurement
from calibration.virtual_board import Launched
from hwmodels.board.file import load_board
from twin.api.commands.campaign import Run, _open_meter
from twin.api.commands.claims import claim_folder
from twin.api.commands.firmware import build_firmware
from twin.api.commands.measuring import MeasureOptions, Watcher
from twin.api.requests.measurement import PowerRuns
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.network.readers import read_model
from twin.program.image.compile import build as compile_build

needs_compiler = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None,
                                    reason="arm-none-eabi-gcc is not installed")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


def await_samples(process: subprocess.Popen, samples: Path, least_bytes: int) -> None:
    """Wait until a measurement has written some."""
    end = time.monotonic() + HANG_S
    while time.monotonic() < end and process.poll() is None and not (
            samples.exists() and samples.stat().st_size > least_bytes):
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("measured") / "m"


@needs_compiler
def test_from_model_to_report_on_an_emulated_board(folder, monkeypatch):
    stacks = folder.parent / "flame.txt"
    code, out, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4",
                         "--runs", 3, "--warmup", 1, "-o", folder, "--flamegraph", stacks,
                         "--power", 4, "--power-layers")
    assert code == 0, err
    assert "power window: 4 runs" in err and "placement:" not in err
    assert "kind        simulated, warm" in out and f"wrote {folder}" in err
    warm = read_measurement(folder / "warm")
    assert warm.header.kind == "simulated" and warm.count("cpu_cycles") == 3
    assert len(warm.layers) == 10  # the autoencoder's fully connected layers
    assert len(set(warm.values("output_checksum"))) == 1
    # every line of the metrics names where it comes from; eight or more
    origins = [line for line in out.splitlines() if " simulated " in line or " modelled " in line]
    assert len(origins) >= 8
    lines = stacks.read_text().splitlines()
    parts = re.findall(r"^(?:\d+ +fully_connected| +between layers|total) +([\d,]+) ", out,
                       re.MULTILINE)
    *parts, total = (int(part.replace(",", "")) for part in parts)
    assert len(parts) == 11 and abs(sum(parts) - total) <= len(parts) / 2  # each is rounded
    first, least = re.search(r"^warm, cycles +3 +([\d,]+) +([\d,]+)", out, re.MULTILINE).groups()
    assert int(first.replace(",", "")) >= 0.9999 * int(least.replace(",", ""))
    assert len(lines) == 10 and all(line.startswith("ad;fully_connected;") for line in lines)
    assert (folder / "firmware" / "firmware.elf").exists()
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4", "-o",
                       folder)
    assert code == 2 and "none is written over" in err
    before = {one: one.stat().st_mtime_ns for one in folder.rglob("*")}
    code, _, err = run("measure", "kws", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4", "-o",
                       folder, "--resume")
    assert code == 2 and "the model was ad, now kws" in err and "as far as it came" not in err
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4", "-o",
                       folder, "--resume", "--clock", "80MHz")
    assert code == 2 and "the core's clock was 120 MHz, now 80 MHz" in err
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386", "-o",
                       folder, "--resume")
    assert code == 2 and "cannot be resumed: the firmware was" in err
    with claim_folder(folder):
        code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4",
                           "-o", folder, "--resume")
    assert code == 2 and "another process measures into it" in err
    assert before == {one: one.stat().st_mtime_ns for one in folder.rglob("*")}
    header = json.loads((folder / "cold" / "header.json").read_text())
    assert header["temperature"] == "cold" and header["architecture_id"]
    assert header["placement"] == {"weights": "flash", "arena": "sram", "code": "flash"}
    held = (folder / "cold" / "header.json").read_text()
    other = held.replace(header["environment"]["board_sha256"], "0" * 64)
    (folder / "cold" / "header.json").write_text(other)
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4", "-o",
                       folder, "--resume")
    assert code == 2 and "that of nucleo_l4r5zi said something else when it was measured" in err
    (folder / "cold" / "header.json").write_text(held)
    samples = folder / "warm" / "samples.jsonl"
    kept = [line for line in samples.read_text().splitlines() if json.loads(line)["run"] < 1]
    samples.write_text("\n".join(kept) + "\n")
    build, made = compile_build.build_firmware, []
    monkeypatch.setattr(compile_build, "build_firmware",
                        lambda *given, **named: made.append(build(*given, **named)) or made[-1])
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4",
                       "--runs", 3, "--warmup", 1, "-o", folder, "--resume")
    assert len(made) == 1 and made[0].image == folder / "firmware" / "firmware.elf"
    assert not list(folder.glob("**/.building-*")) and not list(folder.glob("**/.claim"))
    assert code == 0 and read_measurement(folder / "warm").count("cpu_cycles") == 3, err


@needs_compiler
def test_placement_is_that_of_the_image(tmp_path, monkeypatch):
    """Of the image that is emulated, and of the one a real board runs, found by its hash."""
    monkeypatch.chdir(tmp_path)
    made = build_firmware("ad", "nucleo_l4r5zi", port="unicorn-m4", weights="sram")
    told = []
    monkeypatch.setattr(Watcher, "remark", lambda self, text: told.append(text))
    one = Run(graph=read_model("ad"), board=load_board("nucleo_l4r5zi"), folder=tmp_path,
              options=MeasureOptions(), data=None, watcher=Watcher())
    for launched in (Launched(port="", image=made.image), None):
        assert dict(one.place(made.digest, launched)) == {
            "weights": "sram", "arena": "sram", "code": "flash"}
        assert "weights in sram (flash), as the image has it" in told.pop()
    for unknown in (bytes(32), b"other" * 6):
        assert dict(one.place(unknown, None))["weights"] == "flash"
        assert "as the board's file declares" in told.pop()
    made.image.rename(tmp_path / "elsewhere.elf")  # as -o puts it
    assert dict(one.place(made.digest, None))["weights"] == "flash"
    assert "--image FILE names one built elsewhere" in told.pop()
    named = replace(one, options=MeasureOptions(image="elsewhere.elf"))
    assert dict(named.place(made.digest, None))["weights"] == "sram" and told.pop()
    with pytest.raises(UsageError,
                       match="is not what runs on the board, whose image states 6f7468"):
        named.place(b"other" * 6, None)
    fixed = replace(one, board=load_board("stm32n6570_dk"))  # its port brings a map
    assert dict(fixed.place(bytes(32), None))["weights"] == "sram" and not told
    other = build_firmware("ad", "nucleo_l4r5zi", port="mps2-an386").image
    places = dict(fixed.place(bytes(32), Launched(port="", image=other)))
    deploy("ad", "stm32n6570_dk", runtime="firmware", weights=places["weights"],
           arena=places["arena"])


def test_another_core_on_the_line_is_refused(tmp_path, monkeypatch):
    """A Cortex-M4 of any revision is no Cortex-M7; what has no CPUID is not held against one."""
    told = []
    monkeypatch.setattr(Watcher, "remark", lambda self, text: told.append(text))
    one = Run(graph=read_model("ad"), board=load_board("nucleo_h7a3zi_q"), folder=tmp_path,
              options=MeasureOptions(), data=None, watcher=Watcher())
    with pytest.raises(UsageError, match="nucleo_h7a3zi_q has a cortex-m7; accepted: -b"):
        one.check_part(replace(IDENTITY, core_id=0x410FC240), "/dev/ttyACM0")
    replace(one, options=MeasureOptions(anyway=True)).check_part(
        replace(IDENTITY, core_id=0x410FC240), "tty")
    assert "measured as it was asked for" in told.pop()
    for known in (0x411FC271, 0, 5):
        one.check_part(replace(IDENTITY, core_id=known), "tty")
    assert not told
    one.check_part(replace(IDENTITY, core_id=0x411FC271, port="nucleo_h723zg"), "tty")
    assert "the image is of port nucleo_h723zg" in told.pop()


def test_what_a_board_brings_is_the_campaigns(tmp_path):
    """Gauges beside its samples, and whether its clock is the board's."""
    one = Run(graph=read_model("ad"), board=None, folder=tmp_path, options=MeasureOptions(),
              data=None, watcher=Watcher())
    made = Launched(port="", gauges=lambda: {"waited": (0.5, "s")}, clocked=False)
    campaign = one.begin(None, "r", IDENTITY, made)
    assert campaign.gauges is made.gauges and not campaign.clocked
    assert one.begin(None, "r", IDENTITY, None).gauges is None


def test_the_file_of_a_network_is_noted(tmp_path):
    path = str(twin.export_model("ad", tmp_path / "own.tflite"))
    for model, noted in ((path, path), ("ad", None)):
        one = Run(graph=read_model(model), board=None, folder=tmp_path, options=MeasureOptions(),
                  data=None, watcher=Watcher())
        assert one.begin(None, "r", IDENTITY, None).environment.get("model_file") == noted


def test_a_meter_records_the_layer_that_is_repeated(monkeypatch):
    asked = {}

    def power_window(runs, **more):
        asked.update(more, runs=runs)
        return (1, 2)

    live = SimpleNamespace(trace=lambda edges: edges)
    monkeypatch.setattr("calibration.power_trace.live.LiveTrace",
                        lambda meter: contextlib.nullcontext(live))
    monkeypatch.setattr("calibration.power_trace.ina226.Ina226.open",
                        lambda bus, shunt_ohm: (bus, shunt_ohm))
    record = _open_meter(SimpleNamespace(power_window=power_window),
                         PowerRuns(runs=3, bus="/dev/i2c-1", shunt_ohm=0.1))
    assert record(1, False, 5, 70) == (1, 2)
    assert asked == {"runs": 1, "layers": False, "repeat_layer": 5, "repeat": 70}


@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                    reason="qemu-system-arm is not installed")
def test_an_interrupted_measurement_is_gone_on_with(tmp_path):
    asked = ("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386", "--runs", 4,
             "--fixed", "-o", tmp_path / "m")
    code, _, err = run(*asked, "--resume")
    assert code == 0 and "nothing was kept to resume; started again" in err
    samples = tmp_path / "m" / "warm" / "samples.jsonl"
    kept = [line for line in samples.read_text().splitlines()
            if json.loads(line)["run"] < 2 or json.loads(line)["counter"].startswith("first_")]
    samples.write_text("\n".join(kept) + "\n")
    with pytest.warns(IncompleteWarning, match="interrupted, 2 of 4 runs are missing"):
        assert read_measurement(samples.parent).missing_runs == 2
    code, _, err = run(*asked, "--resume")
    assert code == 0, err
    measured = read_measurement(tmp_path / "m" / "warm")
    assert measured.count("instructions") == 4 and measured.missing_runs == 0
    assert measured.count("first_instructions") == 1 and measured.next_run == 4


@needs_compiler
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_ctrl_c_ends_idle_and_says_where_the_samples_are(folder, tmp_path, ending):
    image, folder = folder / "firmware" / "firmware.elf", tmp_path / "m"
    if not image.exists():
        pytest.skip("the image is built by the test before")
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "measure", "ad", "-b", "nucleo_l4r5zi", "--virtual",
         "unicorn-m4", "--image", str(image), "--runs", "5000", "-o", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # as from a terminal
    await_samples(process, folder / "cold" / "samples.jsonl", 60_000)  # some seven runs
    process.send_signal(ending)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, err
    assert "as far as it came" in err and "Traceback" not in err
    assert "Ctrl-C is ignored" not in err
    with pytest.warns(IncompleteWarning, match="of 5000 runs are missing"):
        assert read_measurement(folder / "cold").count("cpu_cycles") > 5


@needs_compiler
def test_a_background_measurement_ignores_ctrl_c_and_says_so(folder, tmp_path):
    """A shell without job control starts what is followed by & with SIGINT ignored."""
    image, folder = folder / "firmware" / "firmware.elf", tmp_path / "m"
    if not image.exists():
        pytest.skip("the image is built by the test before")
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "measure", "ad", "-b", "nucleo_l4r5zi", "--virtual",
         "unicorn-m4", "--image", str(image), "--runs", "5000", "-o", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    samples = folder / "cold" / "samples.jsonl"
    await_samples(process, samples, 20_000)
    process.send_signal(signal.SIGINT)
    await_samples(process, samples, samples.stat().st_size + 20_000)  # it goes on
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, err
    assert f"Ctrl-C is ignored, as this was started in the background; kill {process.pid}" in err
    assert "as far as it came" in err and "Traceback" not in err


@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                    reason="qemu-system-arm is not installed")
def test_an_emulator_that_dies_is_told_and_the_samples_stay(tmp_path):
    folder = tmp_path / "m"
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "measure", "ad", "-b", "nucleo_l4r5zi", "--virtual",
         "mps2-an386", "--runs", "50000", "-o", str(folder)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    samples = folder / "warm" / "samples.jsonl"
    await_samples(process, samples, 40_000)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 4, err
    assert "QEMU ended with code -9" in err and "as far as it came" in err
    with pytest.warns(IncompleteWarning, match="of 50000 runs are missing"):
        assert read_measurement(folder / "warm").count("instructions") > 5


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                    reason="qemu-system-arm is not installed")
def test_an_image_that_is_none_is_told(tmp_path):
    for name, said in (("nosuch.elf", "no such image"), ("empty.elf", "not an ELF image")):
        (tmp_path / "empty.elf").touch()
        code, _, err = run("firmware", "run", "ad", "-b", "nucleo_l4r5zi", "--virtual",
                           "mps2-an386", "--image", tmp_path / name)
        assert code == 4 and said in err


def test_a_serial_line_is_no_port_of_the_firmware():
    code, _, err = run("firmware", "run", "ad", "-b", "nucleo_l4r5zi", "--port", "/dev/ttyACM0")
    assert code == 2 and "--port (a serial line is --device): no port '/dev/ttyACM0'" in err


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("--port", "x", "--virtual", "y"), 2, "exclude each other"),
    (("--image", "x"), 4, "no board is plugged in"),
    (("--ina226", "/dev/i2c-1"), 2, "--ina226 needs --shunt"),
    (("--power", "3", "--power-repeat"), 2, "--power-repeat needs --ina226"),
    (("--virtual", "unicorn-m5"), 4, "did you mean unicorn-m"),
    (("--virtual", "unicorn-m7"), 2, "a board of that core, or here mps2-an386"),
    (("--virtual", "riscv_virt"), 2, "riscv_virt is a rv32imc, nucleo_l4r5zi a cortex-m4"),
    (("--virtual", "mps2-an500", "--image", "x.elf"), 2, "mps2-an500 is a cortex-m7"),
    (("--virtual", "mps2-an386", "--clock", "80MHz"), 2, "runs at a clock of its own"),
    (("--virtual", "mps2-an386", "--input", "README.md"), 2, "ad takes 640"),
    (("--virtual", "unicorn-m4", "--image", "/nosuch.elf"), 4, "/nosuch.elf"),
    (("--port", "/dev/nosuch"), 4, "/dev/nosuch"),
    (("--port", "socket://127.0.0.1:1"), 4, "127.0.0.1:1"),
])
def test_each_way_to_fail_has_its_code(tmp_path, arguments, code, message):
    found, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "-o", tmp_path / "m", *arguments)
    assert (found, "Traceback" in err) == (code, False)
    assert message in err


def test_virtual_boards_are_listed():
    code, out, _ = run("boards", "--virtual")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()[1:]} >= {
        "unicorn-m4", "unicorn-m7", "unicorn-m33", "mps2-an386", "mps2-an500", "mps2-an505",
        "mps3-an547", "stm32f4", "riscv_virt", "host"}
    simulated = [line.split()[0] for line in out.splitlines() if "(simulated)" in line]
    assert len(simulated) == 9 and "host" not in simulated
    assert run("boards", "nucleo_l4r5zi", "--virtual")[0] == 2


@pytest.mark.parametrize(("setting", "said"), [
    (("PATH", "/nosuch"), "make is not installed"),
    (("TWIN_FIRMWARE", "/nosuch"), "the firmware's sources are not there")])
def test_a_virtual_board_is_not_ready_before_its_image_can_be_built(monkeypatch, setting, said):
    monkeypatch.setenv(*setting)
    code, out, _ = run("boards", "--virtual")
    rows = [line for line in out.splitlines() if line.startswith(("unicorn-", "host"))]
    assert code == 0 and len(rows) == 4 and all(said in row for row in rows)
    assert "ready" not in out


@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                    reason="qemu-system-arm is not installed")
def test_a_start_that_fails_leaves_no_folder(tmp_path):
    code, _, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386",
                       "--counters", "foo", "-o", tmp_path / "m")
    assert code == 3 and "counts no 'foo'" in err and "as far as it came" not in err
    assert not (tmp_path / "m").exists()


@needs_compiler
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                    reason="qemu-system-arm is not installed")
def test_kernels_of_cmsis_nn_are_another_runtime(tmp_path, monkeypatch):
    api = Path(__file__).parents[2] / "firmware" / "cmsis_nn_api"
    monkeypatch.setenv("CMSIS_NN_PATH", str(api))
    code, out, err = run("measure", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386",
                         "--runs", 2, "--fixed", "-o", tmp_path / "m")
    assert code == 0 and "CMSIS-NN" in out, err
    assert read_measurement(tmp_path / "m" / "warm").header.runtime == "cmsis-nn"


@needs_compiler
def test_the_bar_names_what_holds_the_network_up(tmp_path):
    """On a terminal, while samples arrive: class, severity, evidence and its origin."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "measure", "ad", "-b", "nucleo_l4r5zi", "--virtual",
         "unicorn-m4", "--runs", "5", "--fixed", "-o", str(tmp_path / "m")],
        stdout=subprocess.DEVNULL, stderr=slave, env={**os.environ, "COLUMNS": "200"})
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's other side is closed at the end
        while chunk := os.read(master, 65536):
            shown += chunk
    os.close(master)
    assert process.wait(120) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
    assert "5/5" in text
    assert re.search(r"(cache|compute|stalled) \d+%: .*\d+% of .*\[(simulated|modelled)\]", text)
