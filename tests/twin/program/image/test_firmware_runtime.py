"""The runtime whose kernels are compiled: predictions from built images, kept by content."""

from __future__ import annotations

import hashlib
import os
import shutil

import pytest

pytest.importorskip("elftools", reason="needs the boards extra")

from hwmodels.board.file import change_board, load_board
from hwmodels.errors import ToolMissingError
from twin.deployment.deploy import deploy
from twin.deployment.stated import name_runtime
from twin.errors import RuntimeRefusedError, UsageError
from twin.pricing.inference import predict
from twin.program.image.compile import store
from twin.program.image.compile.store import keep_image, port_of
from twin.program.image.read import network
from twin.runtimes import load_runtime

missing = [tool for tool in ("arm-none-eabi-gcc", "make") if shutil.which(tool) is None]
needs_compiler = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images of this module in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("images")
        patch.setenv("TWIN_IMAGES", str(folder))
        yield folder


@needs_compiler
@pytest.mark.parametrize("board,runtime", [
    ("b_u585i_iot02a", "firmware@Os"), ("apollo510_evb", "firmware")])
def test_a_network_is_predicted_from_its_image(images, board, runtime):
    deployment = deploy("sww", board, runtime=runtime)
    prediction = predict(deployment)
    names = [layer.kernels for layer in prediction.layers if not layer.alias]
    assert names[:2] == [("depthwise_s8",), ("matmul_s8",)] and names[-1] == ("softmax_s8",)
    for layer in prediction.layers:
        if not layer.macs:
            continue
        # One instruction does at most 16 products, and each product is done.
        assert layer.instructions * 16 > layer.macs
        assert layer.cycles > 0 and not layer.assumed
    assert prediction.bill.cycles(prediction.clock) == prediction.cycles
    assert predict(deployment).bill == prediction.bill


@needs_compiler
def test_an_image_is_built_once_and_again_when_its_memories_move(images):
    first = keep_image(deploy("ad", "nucleo_l4r5zi", runtime="firmware"))
    written = first.path.stat().st_mtime_ns
    again = keep_image(deploy("ad", "nucleo_l4r5zi", runtime="firmware", clock_hz=40e6))
    assert again.path == first.path and again.path.stat().st_mtime_ns == written
    paths = {first.path}
    for changed in (deploy("ad", "nucleo_l4r5zi", runtime="firmware@O3"),
                    deploy("ad", "nucleo_l4r5zi", runtime="firmware", weights="sram")):
        paths.add(keep_image(changed).path)
    assert len(paths) == 3
    assert not [path for path in images.iterdir() if path.name.startswith("new-")]


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "swapped", "swapped with its seal", "seal", "links"])
def test_a_damaged_or_swapped_image_is_built_again(images, damage):
    kept = keep_image(deploy("ad", "nucleo_l4r5zi", runtime="firmware")).path
    other = keep_image(deploy("ad", "nucleo_l4r5zi", runtime="firmware@O3")).path
    content, seal = kept.read_bytes(), kept.with_suffix(".sha256")
    if damage == "seal":
        seal.unlink()
    elif damage == "links":  # A folder in the place of one, a link in that of the other.
        kept.unlink()
        kept.mkdir()
        (kept / "x").touch()
        seal.unlink()
        seal.symlink_to(images / "victim")
    else:
        kept.write_bytes(other.read_bytes() if "swapped" in damage else content[:5000])
    if damage == "swapped with its seal":
        seal.write_bytes(other.with_suffix(".sha256").read_bytes())
    again = keep_image(deploy("ad", "nucleo_l4r5zi", runtime="firmware")).path
    # A build names its folder, so that its bytes differ, and not its size.
    assert again == kept and len(again.read_bytes()) == len(content) != other.stat().st_size
    assert not (images / "victim").exists()
    assert seal.read_text().startswith(hashlib.sha256(again.read_bytes()).hexdigest())


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no modes of files")
def test_an_image_others_can_write_is_not_believed(monkeypatch, tmp_path):
    built = []

    def build(into):
        built.append(into)
        into.mkdir()
        (into / "firmware.elf").write_bytes(b"made %d" % len(built))

    def keep():
        return store._keep("0" * 64, build)

    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path / "named"))
    first = keep()
    assert keep() == first and first.read_bytes() == b"made 1"
    first.chmod(0o666)
    assert keep() == first and first.read_bytes() == b"made 2"
    (tmp_path / "named").chmod(0o777)
    aside = keep()
    assert tmp_path not in aside.parents and aside.read_bytes() == b"made 3" and keep() == aside
    monkeypatch.delenv("TWIN_IMAGES")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert keep() == aside and len(built) == 3


@needs_compiler
def test_weights_in_ram_are_read_there(images):
    kernels = network.read_network(deploy("ad", "nucleo_l4r5zi", runtime="firmware",
                                          weights="sram"))
    held = {operand.name: operand.memory for operand in kernels[0][0].operands}
    assert held["weights1"] == held["parameters"] == held["input0"] == "sram"
    assert held["constants"] == "flash"


def test_cores_that_are_not_read_are_refused():
    with pytest.raises(RuntimeRefusedError, match="cortex-m0plus is not read; accepted: Cortex-M3"):
        network.read_network(deploy("ad", "rpi_pico", runtime="firmware"))
    board = load_board("nucleo_l4r5zi")
    assert port_of(board).name == "nucleo_l4r5zi"
    assert port_of(load_board("nucleo_u385rg_q")).name == "rtt-m33"


def test_operators_without_a_kernel_are_refused():
    with pytest.raises(RuntimeRefusedError, match="no kernel for 'mul'"):
        load_runtime("firmware").lowering("mul", "int8", "armv7e-m")


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="apt-get install"):
        predict(deploy("ad", "nucleo_l4r5zi", runtime="firmware"))


@needs_compiler
def test_a_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path / "file" / "below"))
    board = change_board(load_board("nucleo_l4r5zi"), {"memories.flash.size_bytes": "1MiB"})
    with pytest.raises(UsageError, match="images cannot be kept there"):
        keep_image(deploy("ad", board, runtime="firmware"))


@pytest.mark.parametrize("compiler,named", [
    ("gcc 12.2.1 -O3", "firmware@O3"), ("clang of zig 0.14.0 -Os", "firmware@clang-Os"),
    ("gcc 12.2.1 -O2, CMSIS-NN", "cmsis-nn@6.0"), ("gcc 12.2.1 -O0", "firmware"),
    ("", "firmware")])
def test_a_measurement_is_of_what_its_compiler_made(compiler, named):
    assert name_runtime("firmware", compiler) == named
    assert name_runtime("tflm-cmsis-nn@2.3.1", compiler) == "tflm-cmsis-nn@2.3.1"
