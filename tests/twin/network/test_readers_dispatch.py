"""What `read_model` takes: files by suffix, zoo names, and what it says of anything else."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from twin.errors import ModelError, UsageError
from twin.network import zoo
from twin.network.operators import graph_macs
from twin.network.readers import read_model
from twin.network.writers.onnx import encode_onnx
from twin.network.writers.tflite import encode_tflite
from twin.reports.export import check_place


def test_zoo_names_with_and_without_prefix():
    assert read_model("kws").sha256 == read_model("zoo:kws").sha256
    assert read_model("mobilenet_v1_0.25_96").source == "zoo:mobilenet_v1_0.25_96"


@pytest.mark.parametrize("given, message", [
    ("model.pb", "accepted: files ending .tflite, .onnx, .json"), ("kwz", "did you mean kws"),
    ("person_detect", r"or a zoo name \(kws, ic, vww, .*ssdlite_mobilenet_v2_1.0_320\)$"),
    ("zoo:none", "no zoo network has that name"), ("mobilenet_v1_9_96", "9 is out of range"),
    ("mobilenet_v2_1.0_8", "8 is out of range"), ("some/folder/", "accepted: files ending")])
def test_anything_else_is_refused_with_what_is_accepted(given, message):
    with pytest.raises(ModelError, match=message):
        read_model(given)


def test_existing_files_of_other_kinds_and_folders(tmp_path):
    (tmp_path / "model.h5").touch()
    with pytest.raises(ModelError, match="not a kind of model file"):
        read_model(tmp_path / "model.h5")
    with pytest.raises(ModelError, match="a directory"):
        read_model(tmp_path)


def test_content_says_what_a_flatbuffer_is(tmp_path):
    content = encode_tflite(read_model("ad"))
    for name in ("noext", "a.onnx", "a.h5"):
        (tmp_path / name).write_bytes(content)
        assert read_model(tmp_path / name).overhead_bytes
    with pytest.raises(ModelError) as refused:
        read_model("-")
    assert str(refused.value).count("accepted:") == 1


def test_no_folder_is_made_at_the_root():
    with pytest.raises(UsageError, match="no folder"):
        check_place("/no-such-folder/x.png")


def zipped(*names):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"{}")

    return write


def tarred(*names):
    def write(path):
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))

    return write


def saved(path):
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"\x08\x01")


OTHERS = {  # name: (content, what is said); names as they come, and as somebody renamed them
    "a.keras": (zipped("metadata.json", "config.json", "model.weights.h5"), "from_keras_model"),
    "a.tflite": (b"\x89HDF\r\n\x1a\n" + bytes(99), "from_keras_model"),
    "a.h5": (b"\x89HDF\r\n\x1a\n", "from_keras_model"),
    "k.weights.h5": (b"\x89HDF\r\n\x1a\n", "they have no layers"),
    "k.h5": (b"\x89HDF\r\n\x1a\n", "open('model.tflite', 'wb').write"),
    "b.tflite": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d", "git lfs pull"),
    "network_2.c": (b"/*\n * @author  AST Embedded Analytics Research Platform\n*/", "stedgeai"),
    "saved.zip": (zipped("saved_model/saved_model.pb"), "tflite_convert --saved_model_dir"),
    "saved": (saved, "tflite_convert --saved_model_dir"),
    "frozen.pb": (b"\x0a\x1f", "tf2onnx.convert --graphdef"),
    "another.pb": (b"\x08\x01\x12\x20", "tflite_convert --saved_model_dir"),
    "input_0.pb": (b"\x08\x01\x08\x03\x10\x01", "not a network"),
    "a.pt2": (zipped("a/archive_format", "a/models/model.json"), "torch.export.load"),
    "a.pt": (zipped("a/data.pkl", "a/data/0"), "torch.onnx.export(model"),
    "a.pth": (b"\x80\x02\x8a\x0a", "torch.onnx.export(model"),
    "a.onnx": (zipped("a/data.pkl"), "torch.onnx.export(model"),
    "a.espdl": (b"EDL1" + bytes(60), "espdl_quantize_onnx"),
    "mlf.tar": (tarred("./metadata.json", "./codegen/host/src/default_lib0.c"), "tvmc compile"),
    "network.c": (b"AI_TENSOR_OBJ_DECLARE(\n  input_output, AI_STATIC,", "stedgeai generate"),
    "a.mlmodel": (b"\x08\x04", "onnxmltools.convert_coreml"),
    "model.safetensors": ((9).to_bytes(8, "little") + b'{"w": {}}', "optimum-cli export onnx"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_formats_of_other_tools_say_what_makes_a_file_that_is_read(name, tmp_path):
    content, message = OTHERS[name]
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        content(tmp_path / name)
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        read_model(tmp_path / name)
    assert "which this does not read" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"PK\3\4 no archive", bytes(257) + b"ustar" + bytes(99)])
def test_damaged_archives_are_left_to_their_reader(content, tmp_path):
    (tmp_path / "a.tflite").write_bytes(content)
    with pytest.raises(ModelError, match="not a TensorFlow Lite file"):
        read_model(tmp_path / "a.tflite")


def test_importing_the_readers_stays_light():
    script = ("import sys, twin.network.readers, twin.network.zoo; twin.network.zoo.build('kws'); "
              "print([m for m in ('onnx', 'tflite', 'flatbuffers', 'scipy', 'numba', 'pandas') "
              "if m in sys.modules])")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            check=True)
    assert result.stdout.strip() == "[]"


def test_a_zoo_name_is_not_shadowed_by_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("kws").write_bytes(encode_tflite(zoo.build("ad")))
    assert graph_macs(read_model("kws")) == graph_macs(zoo.build("kws"))
    assert graph_macs(read_model("./kws")) == graph_macs(zoo.build("ad"))


@pytest.mark.parametrize(("encode", "name"), [
    (encode_onnx, "net"), (encode_onnx, "net.tflite"), (encode_tflite, "net.pte"),
    (encode_tflite, "net.onnx")])
def test_what_a_file_holds_wins_over_its_name(encode, name, tmp_path):
    ad = zoo.build("ad")
    (tmp_path / name).write_bytes(encode(ad))
    assert graph_macs(read_model(tmp_path / name)) == graph_macs(ad)


def test_a_program_of_executorch_is_known_by_its_content(tmp_path):
    (tmp_path / "net.tflite").write_bytes(bytes(4) + b"ET12" + bytes(40))
    with pytest.raises(ModelError, match="no method"):
        read_model(tmp_path / "net.tflite")


def test_a_model_without_its_identifier_is_read_as_interpreters_do(tmp_path):
    content = bytearray(encode_tflite(zoo.build("ad")))
    content[4:8] = b"\0\0\x12\0"
    (tmp_path / "a.tflite").write_bytes(content)
    assert graph_macs(read_model(tmp_path / "a.tflite")) == graph_macs(zoo.build("ad"))
