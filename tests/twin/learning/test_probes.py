"""Micro-benchmarks of boards: all probes of each, and how much of which memory they access."""

from pathlib import Path

import pytest
from made_outlines import compare_kept, outline

from calibration.microbench.probes import Rooms
from hwmodels.board.file import load_board
from twin.errors import UsageError
from twin.learning.portability.probes import choose_benchmarks, find_rooms, list_benchmarks

KEPT = Path(__file__).parent / "kept"
SMALL = {"weights": "flash", "arena": "sram", "code": "flash",
         "sizes": {"flash": 16384, "sram": 65536}}


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "nucleo_f401re", "rpi_pico", "esp32c3_devkitm",
                                   "nucleo_h7a3zi_q", None])
def test_every_probe(board) -> None:
    machine = board and load_board(board)
    rooms = find_rooms(machine)
    names = [one.name for one in list_benchmarks(machine, rooms)]
    if machine is not None:
        assert names[-1] == "power"
    compare_kept(KEPT / f"probes-{board or 'host'}.txt", outline(
        {"rooms": rooms, "benchmarks": list_benchmarks(machine, rooms)}, 400))


def test_every_probe_of_small_memories() -> None:
    """Latency goes over 64 KiB of SRAM by two strides, then by lines of one set."""
    found = {one.name: one.probes for one in list_benchmarks(
        load_board("nucleo_l4r5zi"), Rooms(**SMALL))}
    assert list(found) == [
        "latency:flash", "bandwidth:flash", "latency:sram", "bandwidth:sram", "fetch", "mac:int8",
        "mac:int16", "mac:float32", "kernel", "control", "power"]
    chases = [(one.extent_bytes, one.stride_bytes, one.few, one.many)
              for one in found["latency:sram"] if one.group == "chase"]
    assert chases[0] == (16, 8, 2048, 4096) and chases[12] == (65536, 8, 8, 16)
    assert chases[13] == (128, 64, 2048, 4096) and chases[-1] == (65536, 128, 8, 16)
    assert [one.extent_bytes for one in found["latency:sram"] if one.group == "conflict"] == [
        8192 * lines for lines in (1, 2, 3, 4, 5, 8)]
    assert [(one.group, one.extent_bytes, one.few, one.many)
            for one in found["bandwidth:sram"]] == [
        ("read", 1024, 2, 10), ("read", 65536, 2, 4),
        ("write", 1024, 2, 10), ("write", 65536, 2, 4)]
    assert {one.group for one in found["bandwidth:flash"]} == {"read"}
    assert [(one.memory, one.extent_bytes, one.few, one.many) for one in found["fetch"]][::13] == [
        ("flash", 256, 2, 66), ("flash", 24576, 2, 6)]
    kernel, = found["kernel"]
    assert (kernel.group, kernel.memory, kernel.extent_bytes, kernel.macs, kernel.few,
            kernel.many) == ("dot", "sram", 1024, 1024, 4, 68)
    assert [one.group for one in found["control"]] == ["loop", "branch", "call"]
    assert [one.group for one in found["power"]] == ["loop", "mac", "read", "chase"]


def test_a_port_with_a_map_of_its_own_has_its_own_memories() -> None:
    board = load_board("nucleo_l4r5zi")
    rooms = find_rooms(board, own_map=True)
    assert rooms == Rooms(weights="weights", arena="arena", code="code",
                          sizes={"weights": 262144, "arena": 262144})
    assert find_rooms(None) == Rooms(weights="ram", arena="ram", code="ram",
                                     sizes={"ram": 1 << 25})


def test_benchmarks_are_chosen_by_name() -> None:
    board, rooms = load_board("nucleo_l4r5zi"), Rooms(**SMALL)
    made = list_benchmarks(board, rooms)
    assert choose_benchmarks(["all"], board, rooms) == made[:-1]
    assert choose_benchmarks(["all", "power"], board, rooms) == made
    assert [one.name for one in choose_benchmarks(["fetch", "kernel", "fetch"], board, rooms)] == [
        "fetch", "kernel"]
    with pytest.raises(UsageError, match=r"no micro-benchmark 'fetsch'.*fetch"):
        choose_benchmarks(["fetsch"], board, rooms)
