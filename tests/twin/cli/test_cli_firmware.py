"""`twin firmware`: build, flash, run and compare, and each way to fail."""

from __future__ import annotations

import re
import shutil

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")

from typer.testing import CliRunner

from twin.cli import app
from twin.program.image.compile import build as build_module

TOOLS = [name for name in ("make", "arm-none-eabi-gcc", "qemu-system-arm")
         if shutil.which(name) is None]
needs_tools = pytest.mark.skipif(bool(TOOLS), reason=f"{', '.join(TOOLS)} not installed")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["firmware", *map(str, arguments)])
    assert "Traceback" not in result.stderr
    return result.exit_code, result.stdout, result.stderr


@needs_tools
def test_build_sets_sizes_beside_the_predicted_ones_and_run_checks_outputs(tmp_path):
    code, out, err = run("build", "ad", "-b", "nucleo_l4r5zi", "--port", "mps2-an386", "-o",
                         tmp_path)
    assert code == 0 and f"wrote {tmp_path}/firmware.elf" in err
    assert not (tmp_path / "objects").exists() and (tmp_path / "model.c").is_file()
    rows = dict(re.findall(r"^(flash|RAM|arena) +([\d,]+ +[\d,]+)$", out, re.MULTILINE))
    image, predicted = (int(n.replace(",", "")) for n in rows["flash"].split())
    assert set(rows) == {"flash", "RAM", "arena"} and abs(image / predicted - 1) < 0.05
    code, out, err = run("run", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386", "--image",
                         tmp_path / "firmware.elf")
    assert code == 0, err
    assert "simulated; output bit for bit that of the arithmetic in 10 of 10 int8 layers" in out
    code, _, err = run("run", "kws", "-b", "nucleo_l4r5zi", "--virtual", "mps2-an386", "--image",
                       tmp_path / "firmware.elf")
    assert code == 3 and "the image holds 'ad'" in err


@pytest.mark.skipif(shutil.which("make") is None, reason="make not installed")
@pytest.mark.parametrize("board", ["rpi_pico2", "esp32c3_devkitm"])
def test_clang_builds_for_boards_with_a_boot_block_or_a_linker_script(board, tmp_path):
    pytest.importorskip("ziglang", reason="needs the ziglang package")
    code, _, err = run("build", "ad", "-b", board, "-o", tmp_path, "--compiler", "clang")
    assert code == 0 and (tmp_path / "firmware.elf").is_file(), err


@needs_tools
def test_compare_sets_builds_side_by_side(tmp_path, monkeypatch):
    pytest.importorskip("ziglang", reason="needs the ziglang package")
    monkeypatch.chdir(tmp_path)
    code, out, err = run("compare", "ad", "-b", "nucleo_l4r5zi", "--opts", "-O2")
    assert code == 0, err
    head = out.splitlines()[0]
    assert re.findall(r"gcc \S+ -O2|clang of zig \S+ -O2", head)[1:]
    total = next(line for line in out.splitlines() if "inference" in line)
    assert len(re.findall(r"[+-]\d+\.\d%", total)) == 1 and out.count("equal") == 2
    assert "instructions (simulated), and relative to gcc" in out


@needs_tools
def test_compare_takes_the_compilers_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which = shutil.which
    monkeypatch.setattr(build_module.shutil, "which",
                        lambda name: None if name == "clang" else which(name))
    monkeypatch.setattr(build_module, "find_spec", lambda name: None)
    code, out, err = run("compare", "ad", "-b", "nucleo_l4r5zi", "--opts", "-O2")
    assert code == 0 and "clang is not installed and omitted" in err
    assert out.splitlines()[0].count("-O2") == 1 and out.count("equal") == 1
    code, _, err = run("compare", "ad", "-b", "nucleo_l4r5zi", "--compilers", "clang")
    assert code == 5 and "pip install ziglang" in err
    monkeypatch.setattr(build_module.shutil, "which",
                        lambda name: "make" if name == "make" else None)
    code, _, err = run("compare", "ad", "-b", "nucleo_l4r5zi")
    assert code == 5 and "apt-get install gcc-arm-none-eabi" in err


@needs_tools
def test_weights_copied_to_ram_are_predicted_there(tmp_path):
    found = {}
    for role in ("flash", "sram"):
        code, out, err = run("build", "ad", "-b", "nucleo_l4r5zi", "--weights", role, "-o",
                             tmp_path / role)
        assert code == 0, err
        cells = re.findall(r"^(weights and requantisation|RAM) +([\d,]+) +([\d,]+)$", out,
                           re.MULTILINE)
        found[role] = {name: (int(image.replace(",", "")), int(predicted.replace(",", "")))
                       for name, image, predicted in cells}
        image, predicted = found[role]["RAM"]
        assert predicted == pytest.approx(image, rel=0.05)
    assert found["sram"]["RAM"][1] - found["flash"]["RAM"][1] == \
        found["sram"]["weights and requantisation"][1]


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (("build", "ad", "-b", "nucleo_l4r5zi", "--opt", "-O9"), 2, "accepted: -O0"),
    (("build", "ad", "-b", "nucleo_l4r5zi", "--compiler", "icc"), 2, "accepted: gcc, clang"),
    (("build", "ad", "-b", "nucleo_l4r5zi", "--port", "unicorn-m5"), 2, "did you mean"),
    (("build", "ad", "-b", "nucleo_u385rg_q"), 2, "rtt-m33"),
    (("build", "nosuch", "-b", "nucleo_l4r5zi"), 3, "nosuch"),
    (("build", "ad", "-b", "nucleo_l4r5zi", "--kernels", "cmsis-nn"), 5, "CMSIS_NN_PATH"),
    (("build", "ad", "-b", "nucleo_l4r5zi", "-o", "/dev/null/x"), 2, "/dev/null/x"),
    (("build", "ad", "-b", "nucleo_l4r5zi", "-o", "a b"), 2, "blank"),
    (("run", "ad", "-b", "nucleo_l4r5zi"), 2, "--virtual NAME or --device"),
    (("run", "ad", "-b", "nucleo_l4r5zi", "--device", "/dev/nosuch", "--image", "x"), 4,
     "/dev/nosuch"),
    (("flash", "ad", "-b", "nucleo_h7a3zi_q", "--port", "unicorn-m7"), 2, "not a board to be"),
    (("compare", "ad", "-b", "nucleo_l4r5zi", "--virtual", "mps2"), 2, "did you mean"),
])
def test_each_way_to_fail_has_its_code(tmp_path, monkeypatch, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CMSIS_NN_PATH", raising=False)
    found, _, err = run(*arguments)
    assert found == code and said in err


@pytest.mark.parametrize(("missing", "arguments", "advice"), [
    ("make", (), "apt-get install make"),
    ("arm-none-eabi-gcc", ("--compiler", "gcc"), "apt-get install gcc-arm-none-eabi"),
    ("clang", ("--compiler", "clang"), "pip install ziglang")])
def test_a_missing_compiler_is_named_with_what_to_install(tmp_path, monkeypatch, missing,
                                                          arguments, advice):
    monkeypatch.setattr(build_module.shutil, "which",
                        lambda name: None if name == missing else f"/usr/bin/{name}")
    monkeypatch.setattr(build_module, "find_spec", lambda name: None)
    code, _, err = run("build", "ad", "-b", "nucleo_l4r5zi", "-o", tmp_path / "out", *arguments)
    assert code == 5 and advice in err and not (tmp_path / "out").exists()
