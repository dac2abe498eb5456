"""Files of a few bytes that asked for gigabytes, minutes or a crash: whole commands refuse them.

All run in one process that may take a gigabyte beside what a prediction takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_doors import ROOT
from made_patience import HANG_S

DEEP = "[" * 100_000
BOARD = (ROOT / "hwmodels" / "boards" / "nucleo_l4r5zi.yaml").read_text(encoding="utf-8")
LARGE_BYTES = 1_900_000_000
LARGE_MODELS = ("large.tflite", "large.onnx", "large.json")

CHILD = """
import json, sys
from pathlib import Path
import onnx
import twin
from fuzz_worker import limit_memory
from typer.testing import CliRunner
from twin.cli import app, progress
progress.PATIENCE_S = 1e6  # no line because a machine is slow
twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))
limit_memory()
for words in json.loads(Path(sys.argv[1]).read_text()):
    print(json.dumps({"started": words}), flush=True)
    result = CliRunner().invoke(app, words)
    print(json.dumps({"code": result.exit_code, "said": result.stderr[-2000:]}), flush=True)
"""


def layer_list(layers: list[dict[str, object]], shape: list[int]) -> str:
    return json.dumps({"name": "x", "inputs": [[shape, "i8"]], "macs": 0, "layers": layers})


def write_onnx(folder: Path, name: str, nodes: list[object], constants: dict[str, object]) -> None:
    from made_onnx import save

    save(folder, nodes, {"x": [1, 4]}, {"y": [1, 4]}, constants).rename(folder / name)


def write_bombs(folder: Path) -> None:
    import numpy as np
    from made_onnx import node, onnx

    ends = [node("Cast", "t", "f", to=1), node("ReduceMax", "f", "m"), node("Mul", "x m", "y")]
    write_onnx(folder, "filled.onnx", [node("ConstantOfShape", "times", "t"), *ends],
               {"times": np.array([2**20, 2**12])})
    write_onnx(folder, "doubled.onnx", [*(node("Concat", f"v{turn} v{turn}", f"v{turn + 1}", axis=0)
                                          for turn in range(40)), node("Identity", "v40", "t"),
                                        *ends], {"v0": np.arange(8)})
    away = onnx.TensorProto(name="w", data_type=1, dims=[4],
                            data_location=onnx.TensorProto.EXTERNAL)
    away.external_data.add(key="location", value="../secret.bin")
    write_onnx(folder, "elsewhere.onnx", [node("Constant", "", "w", value=away),
                                          node("Mul", "x w", "y")], {})
    (folder.parent / "secret.bin").write_bytes(bytes(16))
    one = {"op": "LOGISTIC", "inp": [[1, 8, 8, 4]], "out": [[1, 8, 8, 4]], "dt": "i8"}
    ones = [1] * 11
    texts = {
        "weights.json": layer_list([{
            "op": "CONV_2D", "inp": [[1, 8, 8, 4]], "out": [[1, 8, 8, 10**9]], "dt": "i8",
            "w": [10**9, 1, 1, 4], "stride": [1, 1], "pad": "SAME", "act": "NONE"}], [1, 8, 8, 4]),
        "turned.json": layer_list([{"op": "TRANSPOSE", "inp": [[*ones, 2]], "out": [[*ones, 3]],
                                    "dt": "i8"}], [*ones, 2]),
        "many.json": layer_list([one] * 20_000, [1, 8, 8, 4]), "deep.json": DEEP,
        "deep.yaml": DEEP, "date.yaml": "schema: 2001-99-99\n",
        "date-board.yaml": BOARD.replace("schema: 1", "schema: 2001-99-99"),
        "hex-board.yaml": BOARD.replace("schema: 1", "schema: 0x_"),
        "long-board.yaml": BOARD.replace("schema: 1", f"schema: {'9' * 5000}"),
        "mark.csv": "Timestamp(ms),Current(uA),D0\n0,1,0\n1,1,x\n2,1,0\n",
        "wide.csv": "Timestamp(ms),Current(uA),D0\n" + "".join(
            f"{row},1,{row // 9 % 2}\n" for row in range(20_000)) + f"20000,1,{'x' * 400_000}\n",
        "ticks.log": f"CONV_2D took {'9' * 5000} ticks (1 ms).\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    os.mkfifo(folder / "pipe")
    for name in ("large", *LARGE_MODELS):
        with (folder / name).open("wb") as stream:
            stream.write(b"\x1c\0\0\0TFL3" if name.endswith("tflite") else b"")
            stream.truncate(LARGE_BYTES)
    (folder / "padded.csv").write_text(f"{' ' * 6000}Timestamp(ms),Current(uA)\n0,1\n1,1\n")


def commands() -> dict[str, list[str]]:
    at = ["-b", "nucleo_l4r5zi"]
    models = {name: ["predict", name, *at] for name in (
        "filled.onnx", "doubled.onnx", "elsewhere.onnx", "weights.json", "turned.json", "many.json",
        "deep.json", *LARGE_MODELS)}
    boards = {f"boards {name}": ["boards", name] for name in (
        "deep.yaml", "date.yaml", "date-board.yaml", "hex-board.yaml", "long-board.yaml")}
    more = {f"overlay {name}": ["predict", "kws", *at, "--calibration", name]
            for name in ("deep.yaml", "date.yaml")}
    more |= {f"plan {name}": ["measure", *at, "--plan", name] for name in ("deep.yaml",
                                                                           "date.yaml")}
    more |= {f"set {value}": ["whatif", "ad", *at, "--set", value] for value in (
        "clocks.cpu.frequency_hz=0x_", "memories.flash.bytes_per_cycle=1e-320",
        "clocks.cpu.frequency_hz=2001-99-99")}
    more |= {f"diff {name}": ["diff", name, "deep.json"] for name in (
        "pipe", "/dev/zero", "large", "deep.json")}
    more |= {"trace mark": ["energy", "m", "mark.csv", "--meter", "ppk2", "--supply", "3"],
             "trace wide": ["energy", "m", "wide.csv", "--meter", "ppk2", "--supply", "3"],
             "trace padded": ["energy", "m", "padded.csv", "--meter", "ppk2", "--supply", "3"],
             "trace large": ["energy", "m", "large", "--meter", "ppk2", "--supply", "3"],
             "log large": ["import", "tflm", "large"], "log pipe": ["import", "tflm", "pipe"],
             "log ticks": ["import", "tflm", "ticks.log"],
             "input pipe": ["measure", "kws", "-b", "host", "--input", "pipe"]}
    return models | boards | more


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, dict[str, object]]:
    from calibration.measurement.measurement import Measurement, write_measurement
    from calibration.measurement.sample import Header, Sample

    folder = tmp_path_factory.mktemp("bombs")
    write_bombs(folder)
    write_measurement(folder / "m", Measurement(
        header=Header(kind="measured", model="m", board="b", runtime="firmware", source="made",
                      temperature="warm", clocks_hz=(("cpu", 1e8),)),
        samples=(Sample(run=0, layer=0, counter="cpu_cycles", clock="cpu", unit="cycles",
                        value=1e5),)))
    (folder / "commands.json").write_text(json.dumps(list(commands().values())))
    paths = (ROOT, ROOT / "tests" / "made", ROOT / "tests" / "fuzz")
    result = subprocess.run([sys.executable, "-c", CHILD, "commands.json"], cwd=folder, text=True,
                            capture_output=True, timeout=HANG_S, check=False,
                            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))})
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0, (lines[-1:], result.stderr[-400:])
    return dict(zip(commands(), lines[1::2], strict=True))


@pytest.mark.parametrize("bomb", commands())
def test_a_bomb_is_refused_in_a_line(answers, bomb):
    answer = answers[bomb]
    assert answer["code"] in (2, 3), answer
    refusal = [line for line in str(answer["said"]).splitlines()
               if not line.startswith(("warning: ", "note: "))]
    assert len(refusal) == 1 and refusal[0].startswith("error: "), answer
    assert refusal[0].isprintable() and len(refusal[0]) <= 520
