"""Which tools there are, whether they know a board's part, and what to type."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from calibration.collecting.link import PortInfo
from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import ToolMissingError
from twin.api.commands import doctor
from twin.cli import app
from twin.program.image.compile.flashing import find_programmer, rehearse
from twin.program.image.compile.ports import load_port

BOARDS = Path(__file__).parents[3] / "hwmodels" / "boards"
PAGE = Path(__file__).parents[3] / "docs" / "first-light.md"


def run(*words):
    return CliRunner().invoke(app, ["doctor", *map(str, words)])


def offer(folder, monkeypatch, name, script):
    """Make a tool the only one there is."""
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_page_of_first_light_is_current():
    assert PAGE.read_text() == doctor.write_page(), (
        "python -m twin.api.commands.doctor > docs/first-light.md")


@pytest.mark.parametrize("board", list_boards())
def test_every_board_begins_with_a_prediction_and_ends_with_a_measurement(board):
    steps = [step for step, _ in doctor.list_steps(load_board(board))]
    assert steps[0] == f"twin predict kws -b {board}"
    assert any(step.startswith("twin measure kws") for step in steps)


def test_a_board_of_ones_own_is_named_by_its_file_and_built_through_its_core(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text((BOARDS / "frdm_imx93.yaml").read_text().replace(
        "name: frdm_imx93", "name: mine"))
    steps = json.loads(run("-b", mine, "--json").stdout)["steps"]
    typed = [step["type"] for step in steps]
    assert typed[0] == f"twin predict kws -b {mine}"
    assert f"twin firmware build kws -b {mine} -o out/kws --port rtt-m33" in typed
    assert not any("-b mine" in line or "firmware flash" in line for line in typed)
    assert typed[-1] == f"twin attribute kws out/m -b {mine}"


def test_a_machine_without_tools_is_told_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run()
    assert result.exit_code == 0 and result.stderr == ""
    assert "apt-get install gcc-arm-none-eabi" in result.stdout
    board = run("-b", "nucleo_l4r5zi")
    assert board.exit_code == 1 and "riscv64" not in board.stdout
    assert "apt-get install make gcc-arm-none-eabi && pip install pyocd\n" in board.stdout
    assert not re.search("(?m)^(esptool|openocd .*needed)", board.stdout)  # One tool writes flash.
    assert "twin firmware flash kws -b nucleo_l4r5zi" in board.stdout
    document = json.loads(run("-b", "nucleo_l4r5zi", "--json").stdout)
    assert document["kind"] == "checkup" and document["ready"] is False
    assert document["steps"][0]["type"] == "twin predict kws -b nucleo_l4r5zi"


def test_a_tool_is_tried_without_a_board(tmp_path, monkeypatch):
    said = tmp_path / "said"
    offer(tmp_path, monkeypatch, "openocd", f'echo "$@" > {said}')
    command = rehearse(load_port("nrf52840dk"))
    assert "program {IMAGE} verify reset exit" in command
    assert said.read_text() == ("-f interface/jlink.cfg -c transport select swd "
                                "-f target/nrf52.cfg -c shutdown\n")
    offer(tmp_path, monkeypatch, "openocd", "echo 'Error: no such file' >&2; echo at line 3 >&2; "
                                            "exit 1")
    with pytest.raises(ToolMissingError, match="Error: no such file"):
        rehearse(load_port("nrf52840dk"))
    offer(tmp_path, monkeypatch, "pyocd", "echo nrf52840 rp2040")
    assert rehearse(load_port("rpi_pico")) == "pyocd flash --target rp2040 --no-wait IMAGE"
    offer(tmp_path, monkeypatch, "openocd", "exit 0")
    assert rehearse(load_port("nucleo_l4r5zi")).startswith("openocd ")  # pyocd lacks its pack
    (tmp_path / "openocd").unlink()
    with pytest.raises(ToolMissingError, match="pyocd pack install stm32l4r5zitx"):
        rehearse(load_port("nucleo_l4r5zi"))


def test_a_jlink_is_told_to_talk_swd(tmp_path, monkeypatch):
    offer(tmp_path, monkeypatch, "openocd", "exit 0")
    assert "transport select swd" in find_programmer(load_port("nrf5340dk"))
    assert "transport select swd" not in find_programmer(load_port("nucleo_h723zg"))


def test_a_port_nobody_may_open_is_missing(monkeypatch):
    ports = (PortInfo(device="/dev/null", probe="ST-LINK", usb_serial=None),
             PortInfo(device="/dev/no-such-port", probe=None, usb_serial=None))
    monkeypatch.setattr(doctor, "list_ports", lambda: ports)
    first, second = (check for check in doctor.doctor().checks if check.name.startswith("port "))
    assert first.found == "ST-LINK"
    assert second.found == "" and "usermod -aG dialout" in second.advice


def test_an_unknown_board_is_one_line():
    result = run("-b", "nucleo_l4")
    assert result.exit_code == 3 and len(result.stderr.splitlines()) == 1


def test_an_extra_that_does_not_load_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "serial.py").write_text("raise ImportError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "serial", raising=False)
    line, = (line for line in run().stdout.splitlines() if line.startswith("extra boards"))
    assert line.endswith("its commands need serial, which does not load: broken")
