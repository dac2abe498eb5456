"""`twin measure --plan`: micro-benchmarks from the command line, and each way to end."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from typer.testing import CliRunner

from calibration.measurement.measurement import read_measurement
from calibration.microbench.machine import describe_machine
from calibration.microbench.probes import read_probes
from hwmodels.board.file import load_board
from twin.api.commands.probe_job import build_job, prepare_job
from twin.cli import app
from twin.errors import UsageError
from twin.learning.portability.new_board import Wanted, write_board
from twin.learning.portability.probes import (
    PlanFile,
    choose_benchmarks,
    find_rooms,
    list_benchmarks,
    read_plan,
    write_plan,
)
from twin.program.image.compile.ports import list_ports, load_port

needs_compiler = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None,
                                    reason="arm-none-eabi-gcc is not installed")
needs_qemu = pytest.mark.skipif(shutil.which("qemu-system-arm") is None,
                                reason="qemu-system-arm is not installed")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


@needs_compiler
def test_a_plan_file_runs_and_says_what_it_found(tmp_path):
    plan = write_plan(tmp_path / "plan.yaml", PlanFile(
        board="nucleo_u575zi_q", benchmarks=("latency:flash", "mac:int8"), runtime="cmsis-nn@7",
        model="kws"))
    code, out, err = run("measure", "--plan", plan, "-b", "nucleo_u575zi_q", "--virtual",
                         "unicorn-m33", "--runs", 1, "-o", tmp_path / "m", "--power", 1)
    assert code == 0, err
    assert "power window: 1 runs" in err and "simulated" in out
    measured = read_measurement(tmp_path / "m" / "warm")
    told = dict(measured.header.environment)
    assert told["for_runtime"] == "cmsis-nn@7" and told["for_model"] == "kws"
    (flash,) = describe_machine(measured).memories
    cache = load_board("nucleo_u575zi_q").caches[0]
    assert (flash.levels[0].size_bytes, flash.line_bytes, flash.ways) == (
        cache.size_bytes, cache.line_bytes, cache.ways)


@needs_compiler
@needs_qemu
def test_qemu_counts_instructions(tmp_path):
    code, _, err = run("measure", "--plan", "mac:int8,control", "-b", "nucleo_l4r5zi", "--virtual",
                       "mps2-an386", "--runs", 1, "-o", tmp_path / "m")
    assert code == 0, err
    found = describe_machine(read_measurement(tmp_path / "m" / "warm"))
    assert found.counter == "instructions" and found.kind == "simulated"
    # SMLAD: two multiply-accumulates an instruction; a branch is one
    assert found.macs["int8"] == pytest.approx(2.0, rel=1e-3)
    assert found.branch == pytest.approx(1.0, rel=1e-3)


@pytest.mark.skipif(shutil.which("qemu-system-riscv32") is None
                    or shutil.which("riscv64-unknown-elf-gcc") is None,
                    reason="qemu-system-riscv32 or its compiler is not installed")
def test_another_architecture_runs_them(tmp_path):
    path, _ = write_board(Wanted(name="rv", core="rv32imc", clock_hz=96e6, flash_bytes=1 << 20,
                                 sram_bytes=1 << 18), tmp_path / "rv.yaml")
    code, _, err = run("measure", "--plan", "mac:int8,fetch", "-b", path, "--virtual",
                       "riscv_virt", "--runs", 1, "-o", tmp_path / "m")
    assert code == 0, err
    found = describe_machine(read_measurement(tmp_path / "m" / "warm"))
    # a multiplication and an addition; two bytes an instruction
    assert found.macs["int8"] == pytest.approx(0.5, rel=0.01)
    assert found.code[0].levels[0].cost == pytest.approx(0.5, rel=0.05)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_host_runs_them_for_real(tmp_path):
    code, out, err = run("measure", "--plan", "kernel,control", "-b", "host", "--runs", 2, "-o",
                         tmp_path / "m")
    assert code == 0, err
    measured = read_measurement(tmp_path / "m" / "warm")
    assert measured.header.kind == "measured" and "measured" in out
    assert all(one.cost > 0 for one in read_probes(measured))


@needs_compiler
@pytest.mark.parametrize("port", ["nucleo_l4r5zi", "rpi_pico", "mps3-an547"])
def test_images_for_other_cores_build(port, tmp_path):
    board = {"mps3-an547": "apollo510_evb"}.get(port, port)
    job = prepare_job(PlanFile(board=None, benchmarks=("all",)), load_board(board),
                      load_port(port))
    assert build_job(job, tmp_path).image.is_file()


@pytest.mark.parametrize("arguments, message", [
    (("-b", "nucleo_l4r5zi"), "either a MODEL or --plan"),
    (("kws", "--plan", "all", "-b", "nucleo_l4r5zi"), "either a MODEL or --plan"),
    (("--plan", "latency:flsh", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4"),
     "did you mean latency:flash"),
    (("--plan", "all", "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m7"), "a board of that core"),
    (("--plan", ",", "-b", "host"), "names nothing"),
    (("--plan", "none.yaml", "-b", "host"), "none.yaml: cannot be read"),
    (("--plan", "all", "-b", "host", "--runs", "1000"), "up to 50")])
def test_refusals(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("measure", *arguments)
    assert code == 2 and message in err and "Traceback" not in err


@pytest.mark.parametrize("text, message", [
    ("schema: 1\nbord: x\nbenchmarks: [all]", "bord: unknown key; did you mean board"),
    ("schema: 2\nbenchmarks: [all]", "schema: is 2; accepted: 1"),
    ("schema: 1\nbenchmarks: all", "benchmarks: is 'all'"),
    ("schema: 1\nbenchmarks: [all]\nboard: 3", "board: is 3"),
    ("- 1", "is not a plan"), ("a: [", "cannot be read")])
def test_plan_files_are_refused_by_key(text, message, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="plan.yaml.*" + message.replace("[", r"\[")):
        read_plan(str(path))


def test_a_plan_is_for_its_board(tmp_path):
    path = write_plan(tmp_path / "plan.yaml", PlanFile(board="nucleo_f401re", benchmarks=("all",)))
    code, _, err = run("measure", "--plan", path, "-b", "nucleo_l4r5zi", "--virtual", "unicorn-m4")
    assert code == 2 and "is for nucleo_f401re" in err


@pytest.mark.parametrize("name", ["nucleo_l4r5zi", "stm32h747i_disco", "apollo510_evb", "rpi_pico",
                                  "stm32n6570_dk"])
def test_every_memory_is_probed_within_its_size(name):
    board = load_board(name)
    rooms = find_rooms(board)
    for one in list_benchmarks(board, rooms):
        for probe in one.probes:
            room = rooms.sizes.get(probe.memory, 1 << 30)
            assert probe.extent_bytes <= room and probe.few < probe.many
    assert all(size <= board.memory(memory).size_bytes for memory, size in rooms.sizes.items())
    # nothing of the flash's is written
    assert not any(probe.group == "write" and probe.memory == rooms.weights != rooms.arena
                   for one in choose_benchmarks(["all"], board, rooms) for probe in one.probes)


def test_a_list_takes_less_than_two_minutes_on_a_slow_board():
    """Steps of every probe, six runs, at forty cycles each and 64 MHz."""
    rooms = find_rooms(load_board("nucleo_l4r5zi"))
    probes = [probe for one in choose_benchmarks(["all"], load_board("nucleo_l4r5zi"), rooms)
              for probe in one.probes]
    units = sum(probe.units * (probe.few + probe.many) for probe in probes)
    assert units * 6 * 40 / 64e6 < 120
    assert 2 * len(probes) + 1 < 500  # two samples each, in a board's ring of 1,024


def test_ports_without_a_microbench_folder_are_none():
    assert "microbench" not in list_ports()
