"""Which emulator runs an image, what ends with it, and boards another package adds."""

from __future__ import annotations

import contextlib
import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest

from calibration import virtual_board
from calibration.errors import LinkError, LinkLostError
from calibration.virtual_board import (
    Launched,
    launch,
    list_virtual_boards,
    port_of,
    repeats,
)
from calibration.virtual_board.qemu import MACHINES, find_program
from hwmodels import extensions
from hwmodels.board.file import load_board
from hwmodels.errors import ExtensionError, ToolMissingError

PACKAGE = """
from contextlib import contextmanager
from calibration.virtual_board import Launched

PORT = "unicorn-m4"

@contextmanager
def run(image, board):
    if board is None:
        raise ValueError("no board")
    yield Launched(port=f"{image.name} of {board.name}")
"""


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """An installed package whose emulator is called acme-board."""
    (tmp_path / "acme_emulator.py").write_text(PACKAGE)
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[twin.emulators]\nacme-board = acme_emulator\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    caches = (extensions.find_entries, extensions.load_entry)
    invalidate_caches()
    for one in caches:
        one.cache_clear()
    monkeypatch.setattr(virtual_board, "find_spec", lambda name: True)
    yield "acme-board"
    sys.modules.pop("acme_emulator", None)
    for one in caches:
        one.cache_clear()


def test_an_emulator_of_another_package_runs_images_of_the_port_it_names(acme, monkeypatch):
    checked = []
    monkeypatch.setattr(virtual_board, "check_image", lambda *image: checked.append(image))
    assert (port_of(acme), port_of("unicorn-m7")) == ("unicorn-m4", "unicorn-m7")
    board = load_board("nucleo_l4r5zi")
    with launch(acme, "net.elf", board=board) as made:
        assert made.port == "net.elf of nucleo_l4r5zi" and made.clocked
        assert made.failure() is None and made.scales(1000) == {} and made.gauges is None
    assert checked == [("net.elf", "unicorn-m4")]
    (listed,) = (one for one in list_virtual_boards() if one.name == acme)
    assert (listed.core, listed.emulator, listed.missing) == ("unicorn-m4", "extension", "")
    assert not repeats(acme)
    with pytest.raises(ExtensionError, match="acme-board = acme_emulator: ValueError: no board"), \
            launch(acme, "net.elf"):
        pass


def test_boards_that_can_run_stand_first(monkeypatch):
    monkeypatch.setattr(virtual_board, "find_spec", lambda name: name != "unicorn")
    monkeypatch.setattr(virtual_board, "which", {
        "qemu-system-arm": "/usr/bin/qemu-system-arm"}.get)
    found = {one.name: one for one in list_virtual_boards()}
    can_run = [name for name, one in found.items() if not one.missing]
    assert [*found][:len(can_run)] == sorted(can_run)
    assert [*found][len(can_run):] == sorted(set(found) - set(can_run))
    assert "host" in can_run and "mps2-an386" in can_run
    assert "pip install 'embedded-twin[boards]'" in found["unicorn-m4"].missing
    assert found["riscv_virt"].missing.startswith("apt-get install qemu-system-")
    assert (found["riscv_virt"].core, found["mps2-an500"].core) == ("rv32imc", "cortex-m7")
    assert {one.emulator for one in found.values()} == {"unicorn", "qemu", "none"}
    with pytest.raises(ToolMissingError, match="virtual board unicorn-m4 needs: the extra 'boards'"
                       ), launch("unicorn-m4", "net.elf"):
        pass


def test_qemu_needs_the_serial_line_of_the_extra_too(monkeypatch):
    monkeypatch.setattr(virtual_board, "find_spec", lambda name: name != "cobs")
    monkeypatch.setattr(virtual_board, "which", lambda name: name)
    assert all("'embedded-twin[boards]'" in one.missing for one in list_virtual_boards())


@pytest.mark.parametrize("name", ["unicorn-m4", "mps2-an386", "host", "made"])
def test_what_an_emulator_counts_is_the_same_each_time(name):
    assert repeats(name) is (name in ("unicorn-m4", "mps2-an386"))


@pytest.mark.parametrize(("machine", "timer_hz", "instructions"), [
    ("mps2-an386", 25_000_000, 40 / 128), ("stm32f4", 1_000_000, 1000 / 16),
    ("riscv_virt", 10_000_000, 100.0)])
def test_an_instruction_of_qemu_takes_a_power_of_two_of_nanoseconds(machine, timer_hz,
                                                                    instructions):
    assert MACHINES[machine].instructions_per_tick(timer_hz) == pytest.approx(instructions)


def test_a_qemu_that_is_not_there_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("calibration.virtual_board.qemu.shutil.which", {
        "qemu-system-arm": "/usr/bin/qemu-system-arm"}.get)
    assert find_program(MACHINES["mps2-an386"]) == "/usr/bin/qemu-system-arm"
    with pytest.raises(ToolMissingError, match=r"qemu-system-riscv32 is not installed: apt-get "
                                               r"install qemu-system-.*unicorn-"):
        find_program(MACHINES["riscv_virt"])


@pytest.fixture
def dying(monkeypatch):
    """A board whose process says how it ended only when it is asked the third time."""
    asked, answers = [], iter([None, None, "QEMU ended with code 1: no message"])

    def failure():
        asked.append(1)
        return next(answers, "asked again")

    @contextlib.contextmanager
    def start(name, image, board, stack):
        yield Launched(port="", failure=failure)

    monkeypatch.setattr(virtual_board, "check_virtual_board", lambda name: None)
    monkeypatch.setattr(virtual_board, "check_image", lambda image, port: None)
    monkeypatch.setattr(virtual_board, "_start", lambda *given: given[3].enter_context(
        start(*given)))
    return asked


def test_a_line_that_is_lost_is_explained_by_how_its_process_ended(dying):
    with pytest.raises(LinkError, match=r"^the line is gone; (QEMU ended with code 1|asked again)"
                       ), launch("made", Path("net.elf")):
        raise LinkLostError("the line is gone")
    assert len(dying) >= 3


def test_another_fault_of_a_line_waits_for_no_end_of_its_process(dying):
    with pytest.raises(LinkError, match=r"^no answer$"), launch("made", Path("net.elf")):
        raise LinkError("no answer")
    assert len(dying) == 1
