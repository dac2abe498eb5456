"""What a program leaves of its memory regions: maps of GNU ld and armlink, and other files."""

import struct
from pathlib import Path

import pytest

from hwmodels.board.file import load_board
from twin.api.commands.check import check
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.program.regions import Region, read_regions

BOARD = load_board("nucleo_l4r5zi")

GNU = """
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x08000000         0x00200000         xr
RAM              0x20000000         0x000a0000         xrw
*default*        0x00000000         0xffffffff

Linker script and memory map

.text           0x08000000    0x10000
 .rodata.g_model
                0x08001000     0x8000 model.o
.data           0x20000000      0x100 load address 0x08010000
.bss            0x20000100    0x20000 load address 0x08010100
 .bss.tensor_arena
                0x20000100    0x10000 main.o
OUTPUT(app.elf elf32-littlearm)
LOAD linker stubs
.debug_info     0x00000000    0xfcea
.comment        0x00000000       0x26
"""

ARM = "".join(
    f"  Execution Region {name} (Exec base: {base}, Load base: 0x08000000, Size: {size}, "
    f"Max: {most}, ABSOLUTE)\n" for name, base, size, most in (
        ("ER_IROM1", "0x08000000", "0x00001000", "0x00200000"),
        ("RW_IRAM1", "0x20000000", "0x0009f000", "0x000a0000")))


def test_gnu_map(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(GNU)
    assert read_regions(path, BOARD) == (
        Region(name="FLASH", start=0x0800_0000, size_bytes=2 << 20,
               stated_bytes=2 << 20, used_bytes=0x10100,
               weights_bytes=0x8000),
        Region(name="RAM", start=0x2000_0000, size_bytes=0xa0000,
               stated_bytes=0xa0000, used_bytes=0x20100,
               arena_bytes=0x10000))
    path.write_bytes(GNU.replace("\n", "\r\n").encode())
    assert read_regions(path, BOARD)[1].left_bytes == 0xa0000 - 0x20100


def test_armlink_map(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(ARM)
    assert [(one.name, one.left_bytes) for one in read_regions(path, BOARD)] == [
        ("ER_IROM1", 0x1ff000), ("RW_IRAM1", 0x1000)]


def test_a_program_larger_than_its_memory_leaves_less_than_its_old_arena(tmp_path: Path) -> None:
    """sram of the L4R5: 655,360 bytes; the program's .bss 786,432 of which 65,536 are an arena."""
    path = tmp_path / "a.map"
    path.write_text(GNU.replace("0x20000100    0x20000 ", "0x20000100    0xc0000 "))
    found = check(deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026"), map_file=path)
    (arena,) = (one for one in found.requirements if one.name == "arena in RAM")
    assert arena.limit == 0 and not found.met
    assert any("RAM: the program's 786,688 bytes are 131,328 more than its 655,360" in one
               for one in found.remarks)


def test_a_region_has_no_more_room_than_the_board_has_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(GNU.replace("0x000a0000", "0x003e8000"))
    found = check(deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026"), map_file=path)
    (arena,) = (one for one in found.requirements if one.name == "arena in RAM")
    assert arena.limit == 0xa0000 - 0x20100 + 0x10000
    assert any("its length is stated as 4,096,000" in one for one in found.remarks)


@pytest.mark.parametrize("content", [
    b"", b"\x00" * 4096, b"Memory Configuration\n", b"\xff\xfe" * 99])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="no memory regions in it; accepted: a map of GNU ld"):
        read_regions(path, BOARD)


def test_check_of_an_arena_and_a_map(tmp_path: Path) -> None:
    deployment = deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026")
    path = tmp_path / "a.map"
    path.write_text(GNU)
    found = check(deployment, arena_bytes="22832B", map_file=path)
    assert {one.name: one.predicted for one in found.requirements}["arena in RAM"] == 22832
    found = check(deployment, arena_bytes="64KiB", map_file=path)
    assert found.met and "22,832 bytes are needed; 42,704 could be saved" in found.remarks[0]
    assert {one.name: (one.predicted, one.limit) for one in found.requirements[-2:]} == {
        "fits kTensorArenaSize": (22832, 65536),
        "arena in RAM": (65536, 0xa0000 - 0x20100 + 0x10000)}
    path.write_text(ARM)
    found = check(deployment, arena_bytes=16384, map_file=path)
    assert [one.name for one in found.requirements if not one.met] == [
        "fits kTensorArenaSize", "arena in RW_IRAM1"]
    assert "22,832 bytes are needed; 6,448 are lacking" in found.remarks[0]
    with pytest.raises(UsageError, match="is given no arena"):
        check(deploy("kws", BOARD, runtime="cmsis-nn"), arena_bytes=1000)
    with pytest.raises(UsageError, match="no region in sram of"):
        path.write_text(GNU.replace("0x20000000", "0x30000000"))
        check(deployment, map_file=path)


def test_ram_has_the_arena_that_is_stated() -> None:
    deployment = deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026")
    for size in ("700KiB", "100GiB"):
        found = check(deployment, arena_bytes=size)
        assert [one.name for one in found.requirements if not one.met] == ["fits RAM"]
    found = check(deployment, arena_bytes="64KiB", max_ram_bytes=65536)
    assert [one.name for one in found.requirements if not one.met] == ["RAM"]
    with pytest.raises(UsageError, match=r"--arena-bytes '64'.*64KiB or 64B"):
        check(deployment, arena_bytes="64")


def test_what_a_map_shows_no_arena_of_is_said(tmp_path: Path) -> None:
    deployment = deploy("kws", BOARD, runtime="tflm-cmsis-nn@2026")
    path = tmp_path / "a.map"
    path.write_text(GNU.replace(".bss.tensor_arena", ".bss"))
    assert "no variable named ...arena... in RAM" in check(deployment, map_file=path).remarks[0]
    path.write_text(GNU)
    found = check(deployment, map_file=path)
    assert [one.name for one in found.requirements][-1] == "arena in RAM"
    assert "variables of 32,768 bytes named as a model, taken to be them" in found.remarks[0]


def test_an_arena_lies_where_data_are_addressed_though_code_has_another_window(
        tmp_path: Path) -> None:
    path = tmp_path / "esp.map"
    path.write_text("""
Memory Configuration

Name             Origin             Length
iram0_0_seg      0x40380000         0x4e710
dram0_0_seg      0x3fc80000         0x4e710
drom0_0_seg      0x3c000020         0x3fffe0

Linker script and memory map

.iram0.text     0x40380000     0xa800
.dram0.dummy    0x3fc80000     0xa800
.dram0.bss      0x3fc8a800     0x2000
.flash.rodata   0x3c000020     0x8000
OUTPUT(app.elf elf32-littleriscv)
""")
    found = check(deploy("kws", "esp32c3_devkitm", runtime="tflm-esp-nn"), map_file=path)
    limits = {one.name: one.limit for one in found.requirements}
    assert limits["arena in dram0_0_seg"] == 0x4e710 - 0xa800 - 0x2000
    assert limits["weights in drom0_0_seg"] == 0x3fffe0 - 0x8000


def test_a_map_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_text(GNU[:GNU.index(".bss ")])
    with pytest.raises(UsageError, match=r"a\.map: cut short: no OUTPUT"):
        read_regions(path, BOARD)


@pytest.mark.parametrize(("kind", "machine", "address", "said"), [
    (1, 40, 0x0800_0000, "of type 1 and machine 40; accepted: a linked program"),
    (3, 62, 0x0800_0000, "of type 3 and machine 62"), (2, 243, 0x0800_0000, "and machine 243"),
    (2, 40, 0x7000_0000, "no section in a memory of nucleo_l4r5zi"), (2, 40, 0x0800_0000, "")])
def test_programs_of_other_boards_are_refused(
        tmp_path: Path, kind: int, machine: int, address: int, said: str) -> None:
    path = tmp_path / "a.elf"
    header = struct.pack("<HHIIIIIHHHHHH", kind, machine, 1, address, 0, 52, 0, 52, 0, 0, 40, 1, 0)
    section = struct.pack("<10I", 0, 1, 6, address, 52, 64, 0, 0, 4, 0)
    path.write_bytes(b"\x7fELF\1\1\1".ljust(16, b"\0") + header + section + bytes(64))
    if said:
        with pytest.raises(UsageError, match=said):
            read_regions(path, BOARD)
    else:
        assert {one.name: one.used_bytes for one in read_regions(path, BOARD)}["flash"] == 64
