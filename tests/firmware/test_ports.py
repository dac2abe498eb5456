"""Every port compiles without a warning, links where its board has memory, is small, and cannot
leave a function out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("elftools", reason="needs the boards extra")

from elftools.elf.elffile import ELFFile
from made_firmware import build
from made_networks import needs_make

from hwmodels.board.facts import FLASH_ROLES
from hwmodels.board.file import list_boards, load_board
from twin.program.image.compile.image_sizes import read_sizes
from twin.program.image.compile.memory_map import map_memories
from twin.program.image.compile.ports import firmware_folder, list_ports, load_port

FIRMWARE = firmware_folder()
COMPILERS = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc", "host": "cc"}
PYTHON = sys.executable
PORT_FILES = sorted((FIRMWARE / "ports").glob("*/*.c"))


@pytest.mark.parametrize("name", list_ports())
def test_every_port_compiles_and_links(name, tmp_path, monkeypatch):
    port = load_port(name)
    monkeypatch.delenv("TWIN_OBJECTS")  # what is compiled here is the port's own
    if shutil.which(COMPILERS[port.arch]) is None or shutil.which("make") is None:
        pytest.skip(f"{COMPILERS[port.arch]} or make is not installed")
    folders = [name, *port.settings.get("FAMILY", "").split()]
    objects = [f"{tmp_path}/objects/{path.name}.o" for folder in folders
               for path in (FIRMWARE / "ports" / folder).glob("*.c")]
    assert any(path.endswith("/port.c.o") for path in objects)
    assert len(set(objects)) == len(objects)  # two of one name would be one object
    board = None if port.arch == "host" else _board_of(port)
    if board is not None and not port.fixed_map:
        places = dict(board.placement)
        (tmp_path / "memory.ld").write_text(map_memories(
            board, code=places["code"], weights=places["weights"], arena=places["arena"]))
    more = []
    if board is not None:
        (tmp_path / "weights.S").write_text(MODEL)
        more = [f"{tmp_path}/linker.ld", f"{tmp_path}/objects/weights.S.o"]
    result = subprocess.run(["make", "-s", "-f", str(FIRMWARE / "Makefile"), *port.arguments,
                             f"MODEL={tmp_path}", f"OUT={tmp_path}", *objects, *more,
                             "--eval", "print: ; @echo $(LINK)", "print"],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    if board is not None:
        _check_places(_link(result.stdout.split(), [*objects, *more[1:]], tmp_path), port,
                      board if name in list_boards() else None)


MODEL = """.section .model_weights, "a"
.word 1
.section .model_arena, "aw", %nobits
.space 64
"""
STAND_IN = {"cortex-m0plus": "rpi_pico", "cortex-m3": "nucleo_f401re", "cortex-m4": "nucleo_l4r5zi",
            "cortex-m7": "nucleo_h723zg", "cortex-m33": "nucleo_u575zi_q",
            "cortex-m55": "stm32n6570_dk", "cortex-m85": "ek_ra8d1", "rv32imc": "esp32c3_devkitm",
            "ri5cy": "gap9evk", "esp32p4-hp": "esp32p4_function_ev",
            "qingke-v4": "ch32v307v_evt", "c906": "m1s_dock"}
"""Boards whose memories ports of emulators and of cores are linked to."""


def _board_of(port):
    return load_board(port.name if port.name in list_boards() else STAND_IN[port.core])


def _link(link: list[str], objects: list[str], folder: Path) -> Path:
    """Link a port's objects; all they call of the rest of the firmware does nothing."""
    told = subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout
    kinds = [line.split()[-2:] for line in told.splitlines() if len(line.split()) > 1]
    wanted, own = ({word for kind, word in kinds if (kind == "U") == lacking}
                   for lacking in (True, False))
    own |= set(re.findall(r"(\w+) *=[^=]", (folder / "linker.ld").read_text()))
    (folder / "rest.c").write_text("".join(
        f"void {word}(void) {{}}\n" for word in sorted(wanted - own) if word[:2] != "__"))
    image = folder / "port.elf"
    done = subprocess.run([*link, "-w", "-fno-builtin", "-g0", *objects, str(folder / "rest.c"),
                           "-lgcc", "-o", str(image)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return image


def _check_places(image: Path, port, board) -> None:
    with image.open("rb") as file:
        elf = ELFFile(file)
        symbols = {one.name: one["st_value"] for one in elf.get_section_by_name(
            ".symtab").iter_symbols()}
        sections = {one.name: one for one in elf.iter_sections()
                    if one["sh_flags"] & 2 and one["sh_size"]}
        text = sections[".text"]
        first = int.from_bytes(text.data()[:4], "little"), int.from_bytes(
            text.data()[4:8], "little")
        entry = elf["e_entry"]
    assert {".model_weights", ".model_arena", ".stack"} <= set(sections)
    if port.arch == "arm":  # A vector table is aligned to its size (DDI 0403, B3.2.5).
        assert first == (symbols["stack_top"], entry) and entry & 1
        assert entry == symbols["Reset_Handler"] | 1 and text["sh_addr"] % 1024 == 0
    else:
        assert entry == symbols["_start"]
    spans = [(one["sh_addr"], one["sh_addr"] + one["sh_size"]) for one in sections.values()]
    assert all(high <= low for (_, high), (low, _) in pairwise(sorted(spans)))
    if board is None:
        return
    inside = {name: next((one for one in board.memories for low, high in one.spans
                          if low <= section["sh_addr"]
                          and section["sh_addr"] + section["sh_size"] <= high), None)
              for name, section in sections.items()}
    assert all(inside.values()), inside
    assert not {inside[name].role for name in (".model_arena", ".stack", ".bss")
                if name in inside} & set(FLASH_ROLES)
    assert read_sizes(image, board).memories


def test_kept_objects_make_the_same_image_and_are_of_one_set_of_options(tmp_path, monkeypatch):
    for name in ("arm-none-eabi-gcc", "make"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    assert os.environ["TWIN_OBJECTS"]
    images = [build("unicorn-m4", tmp_path / "kept")]

    def compiled(*more: str) -> set[str]:
        told = subprocess.run(
            ["make", "-n", "-f", str(FIRMWARE / "Makefile"), "PORT=unicorn-m4",
             f"MODEL={tmp_path / 'kept' / 'model'}", f"OUT={tmp_path / 'next'}", *more],
            capture_output=True, text=True, check=True).stdout
        return set(re.findall(r" -c \S*?(\w+)\.[cS] ", told))

    assert compiled() == {"model"} < compiled("DEFINES=-DKERNEL_PORTABLE")
    assert compiled("DEFINES=-DCONV_TILE=4") == {"model", "conv_s8", "matmul_s8"}
    # a level no other test builds: their objects are kept in the same folder
    assert len(compiled("OPT=-Ofast")) > 10 < len(compiled("CMSIS_NN_PATH=/none"))
    monkeypatch.delenv("TWIN_OBJECTS")
    assert len(compiled()) > 10
    images.append(build("unicorn-m4", tmp_path / "own"))
    for image in images:
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", image, image.with_suffix(".bin")],
                       check=True)
    kept, own = (image.with_suffix(".bin").read_bytes() for image in images)
    assert kept == own and len(own) > 10_000


FEATURES = {"cortex-m4": "DSP", "cortex-m7": "DSP", "cortex-m33": "DSP", "cortex-m55": "MVE",
            "cortex-m85": "MVE"}


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
@pytest.mark.parametrize("core", FEATURES)
def test_compilers_are_told_all_the_core_has(core, compiler):
    """One that is not told of SIMD builds the plain kernels, and is compared unfairly."""
    if shutil.which("make") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("make or arm-none-eabi-gcc is not installed")
    pytest.importorskip("ziglang", reason="needs the ziglang package")
    port = next(port for port in map(load_port, list_ports()) if port.core == core)
    command = ["make", "-s", "-f", str(FIRMWARE / "Makefile"), *port.arguments, f"PYTHON={PYTHON}",
               f"COMPILER={compiler}", "--eval", "print-compiler: ; @echo $(CC)", "print-compiler"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    macros = subprocess.run([*told, "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True,
                            text=True, check=True).stdout
    assert f"#define __ARM_FEATURE_{FEATURES[core]} " in macros


@pytest.mark.parametrize("name", list_ports())
def test_every_port_has_a_readme_with_tool_versions(name):
    folders = [name, *load_port(name).settings.get("FAMILY", "").split()]
    readmes = [FIRMWARE / "ports" / folder / "README.md" for folder in folders]
    text = "".join(path.read_text() for path in readmes if path.is_file())
    assert re.search(r"[Gg][Cc][Cc] \d+\.\d+", text), name


@pytest.mark.parametrize("path", PORT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_port_is_one_short_file(path):
    assert len(path.read_text().splitlines()) < 150


@needs_make
@pytest.mark.parametrize("function", ["port_send", "port_idle", "port_count", "port_features"])
def test_an_unported_function_does_not_compile(function, tmp_path):
    """The host port without one of its functions."""
    text = (FIRMWARE / "ports/host/port.c").read_text()
    cut = re.sub(rf"\nstatic [^\n;]*\b{function}\([^\n]*\)\n\{{\n.*?\n\}}\n", "\n", text,
                 count=1, flags=re.DOTALL)
    assert cut != text
    assert _compiles(text, tmp_path) and not _compiles(cut, tmp_path)


def _compiles(text: str, folder: Path) -> bool:
    (folder / "port.c").write_text(text)
    return subprocess.run(["cc", "-std=c99", "-fsyntax-only", f"-I{FIRMWARE}/core",
                           f"-I{FIRMWARE}/protocol", str(folder / "port.c")],
                          capture_output=True, check=False).returncode == 0


def test_the_firmware_asks_for_no_heap():
    for path in (*FIRMWARE.glob("core/*.c"), *FIRMWARE.glob("kernels/*.c"), *PORT_FILES):
        assert not re.search(r"\b(malloc|calloc|realloc|alloca)\b", path.read_text()), path
