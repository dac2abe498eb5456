"""What `read_model` takes: files by suffix, zoo names, and what it says of anything else."""

import subprocess
import sys

import pytest

from twin.errors import ModelError
from twin.network.readers import read_model


def test_zoo_names_with_and_without_prefix():
    assert read_model("kws").sha256 == read_model("zoo:kws").sha256
    assert read_model("mobilenet_v1_0.25_96").source == "zoo:mobilenet_v1_0.25_96"


@pytest.mark.parametrize("given, message", [
    ("model.pb", "accepted: files ending .tflite, .onnx, .json"), ("kwz", "did you mean kws"),
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


def test_importing_the_readers_stays_light():
    script = ("import sys, twin.network.readers, twin.network.zoo; twin.network.zoo.build('kws'); "
              "print([m for m in ('onnx', 'tflite', 'flatbuffers', 'scipy', 'numba', 'pandas') "
              "if m in sys.modules])")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            check=True)
    assert result.stdout.strip() == "[]"
