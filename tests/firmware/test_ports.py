"""Every port compiles without a warning, is small, and cannot leave a function out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_firmware import build
from made_networks import needs_make

from twin.image.compile.ports import firmware_folder, list_ports, load_port

FIRMWARE = firmware_folder()
COMPILERS = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc", "host": "cc"}
PYTHON = sys.executable
PORT_FILES = sorted((FIRMWARE / "ports").glob("*/*.c"))


@pytest.mark.parametrize("name", list_ports())
def test_every_port_compiles(name, tmp_path):
    port = load_port(name)
    if shutil.which(COMPILERS[port.arch]) is None or shutil.which("make") is None:
        pytest.skip(f"{COMPILERS[port.arch]} or make is not installed")
    folders = [name, *port.settings.get("FAMILY", "").split()]
    objects = [f"{tmp_path}/objects/{path.name}.o" for folder in folders
               for path in (FIRMWARE / "ports" / folder).glob("*.c")]
    assert any(path.endswith("/port.c.o") for path in objects)
    assert len(set(objects)) == len(objects)  # two of one name would be one object
    result = subprocess.run(["make", "-s", "-f", str(FIRMWARE / "Makefile"), f"PORT={name}",
                             f"MODEL={tmp_path}", f"OUT={tmp_path}", *objects],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


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
    assert len(compiled("OPT=-O3")) > 10 < len(compiled("CMSIS_NN_PATH=/none"))
    monkeypatch.delenv("TWIN_OBJECTS")
    assert len(compiled()) > 10
    images.append(build("unicorn-m4", tmp_path / "own"))
    for image in images:
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", image, image.with_suffix(".bin")],
                       check=True)
    kept, own = (image.with_suffix(".bin").read_bytes() for image in images)
    assert kept == own and len(own) > 10_000


FEATURES = {"cortex-m4": "DSP", "cortex-m7": "DSP", "cortex-m33": "DSP", "cortex-m55": "MVE"}


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
@pytest.mark.parametrize("core", FEATURES)
def test_compilers_are_told_all_the_core_has(core, compiler):
    """One that is not told of SIMD builds the plain kernels, and is compared unfairly."""
    if shutil.which("make") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("make or arm-none-eabi-gcc is not installed")
    pytest.importorskip("ziglang", reason="needs the ziglang package")
    port = next(name for name in list_ports() if load_port(name).core == core)
    command = ["make", "-s", "-f", str(FIRMWARE / "Makefile"), f"PORT={port}", f"PYTHON={PYTHON}",
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
