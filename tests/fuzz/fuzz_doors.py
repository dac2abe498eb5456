"""Every way a file or a board's bytes come in, with small whole inputs to damage."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fuzz_commands import COMMANDS
from fuzz_door import LONGEST_REFUSAL, Answer, Door
from fuzz_files import FILES, ROOT, SPLIT
from fuzz_lines import LINES
from fuzz_networks import NETWORKS, damage_wire
from fuzz_shapes import damage_documents, damage_integers, damage_numbers, damage_onnx
from made_logs import LOGS

from hwmodels.errors import TwinError

WORDS = (b"1e999", b"nan", b"-1", b"0", b"null", b"true", b"2001-99-99", b"0x_", b"0b_", b"1e-320",
         b"9" * 30, b"9" * 5000, b"[" * 2000, b"{\"a\":" * 2000, b"&a [*a]", b"!!python/object:os",
         b"\x1b]0;x\x07", b"\xe2\x80\xae", b"\xff\xfe", b"\0", b"\n", b",", b";", b":", b"\t- ",
         b"1000000000", b"4294967296", b"<<: *x", b"%", b"\"", b"''", b"-0.0", b"1_000", b"1:30")


def try_door(door: str, data: bytes, folder: Path) -> Answer:
    """Return whether an input was read or refused well, and otherwise what is wrong."""
    path = folder / f"input{DOORS[door].suffix}"
    path.write_bytes(data)
    try:
        DOORS[door].enter(path)
    except TwinError as error:
        said = str(error)
        if len(said) > LONGEST_REFUSAL or not said.isprintable() or not said:
            return Answer(fault=f"a refusal of {len(said)} characters: {said[:200]!r}")
        return Answer(refused=True)
    except Exception as error:
        return Answer(fault=f"{type(error).__name__}: {str(error)[:300]!r} at {_place(error)}")
    return Answer()


def tell_fault(door: str, data: bytes, folder: Path) -> str | None:
    """Return what is wrong with how an input is taken; None where it is read or refused well."""
    return try_door(door, data, folder).fault


def _place(error: BaseException) -> str:
    """Return where in the project something failed."""
    frames = [f"{Path(frame.filename).name}:{frame.lineno}"
              for frame in traceback.extract_tb(error.__traceback__)
              if not {"site-packages", "fuzz"} & {*Path(frame.filename).parts}]
    return " ".join(frames[-3:])


def _model(path: Path) -> None:
    from twin.deployment.deploy import deploy
    from twin.network.readers import read_model

    deploy(read_model(path), "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2023")


def _tflite() -> list[bytes]:
    from made_networks import random_network

    from twin.network.writers.tflite import write_tflite

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.tflite" for seed in (1, 2)]
        for seed, path in enumerate(paths):
            write_tflite(random_network(seed + 1, layers=3), path)
        return [path.read_bytes() for path in paths]


def _onnx() -> list[bytes]:
    """A convolution and a dense layer, and shapes made from constants."""
    import numpy as np
    from made_onnx import node, save, weights

    with tempfile.TemporaryDirectory() as folder:
        one = save(Path(folder), [
            node("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Relu", "c", "r"), node("Flatten", "r", "f"), node("Gemm", "f d", "y", transB=1)],
            {"x": [1, 2, 6, 6]}, {"y": [1, 3]},
            {"w": weights(2, 2, 3, 3), "d": weights(3, 72)}).read_bytes()
        two = save(Path(folder), [
            node("Tile", "one times", "t"), node("ReduceMax", "t", "m"), node("Mul", "x m", "z"),
            node("Reshape", "z shape", "y")], {"x": [1, 4]}, {"y": [2, 2]},
            {"one": np.ones((1, 1), np.float32), "times": np.array([2, 3], np.int64),
             "shape": np.array([2, 2], np.int64)}).read_bytes()
    return [one, two]


def _layer_list() -> list[bytes]:
    return [json.dumps({"name": "x", "inputs": [[[1, 8, 8, 4], "i8"]], "macs": 0, "layers": [
        {"op": "CONV_2D", "inp": [[1, 8, 8, 4]], "out": [[1, 8, 8, 2]], "dt": "i8",
         "w": [2, 1, 1, 4], "stride": [1, 1], "pad": "SAME", "act": "NONE"},
        {"op": "TRANSPOSE", "inp": [[1, 8, 8, 2]], "out": [[1, 2, 8, 8]], "dt": "i8"}]}).encode()]


def _board(path: Path) -> None:
    from hwmodels.board.file import load_board

    load_board(path)


def _overlay(path: Path) -> None:
    from calibration.fitting.overlay import read_overlay

    read_overlay(path)


def _plan(path: Path) -> None:
    from twin.learning.portability.probes import read_plan

    read_plan(str(path))


def _document(path: Path) -> None:
    from twin.attribution.measured import read_side

    read_side(path)


def _documents() -> list[bytes]:
    from made_predictions import make_prediction

    from twin.reports.documents import write_json

    return [write_json(make_prediction(2)).encode()]


def _measurement(path: Path) -> None:
    from calibration.measurement.measurement import read_measurement

    header, _, samples = path.read_bytes().partition(SPLIT)
    folder = path.parent / "m"
    folder.mkdir(exist_ok=True)
    (folder / "header.json").write_bytes(header)
    (folder / "samples.jsonl").write_bytes(samples)
    read_measurement(folder)


def _measurements() -> list[bytes]:
    from calibration.measurement.measurement import Measurement, write_measurement
    from calibration.measurement.sample import Header, Sample

    made = Measurement(
        header=Header(kind="measured", model="m", board="b", runtime="firmware", temperature="warm",
                      source="made", clocks_hz=(("cpu", 1e8),)),
        samples=tuple(Sample(run=run, layer=layer, counter="cpu_cycles", clock="cpu", unit="cycles",
                             value=100.0 * layer + run) for run in (0, 1) for layer in (0, 1)))
    with tempfile.TemporaryDirectory() as folder:
        where = write_measurement(Path(folder) / "m", made)
        return [SPLIT.join((where / name).read_bytes() for name in ("header.json",
                                                                    "samples.jsonl"))]


def _settings(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    name, _, value = text.partition("=")
    _kws().replace({name: value})


@lru_cache(maxsize=1)
def _kws() -> Any:
    from twin.deployment.deploy import deploy

    return deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2023")


def _wire(path: Path) -> None:
    from calibration.collecting.wire import payloads
    from calibration.collecting.wire.frames import FrameReader

    data = path.read_bytes()
    kinds = [kind for kind in vars(payloads).values() if isinstance(kind, type)
             and issubclass(kind, payloads.Payload) and kind is not payloads.Payload]
    bodies = [frame.payload for frame in FrameReader().feed(data)] + [data]
    refusal = None
    for body in bodies:
        for kind in kinds:
            try:
                dataclasses.asdict(kind.parse(body))
            except TwinError as error:
                refusal = error
    if refusal is not None:
        raise refusal


def _frames() -> list[bytes]:
    from calibration.collecting.wire.frames import Frame, encode_frame
    from calibration.collecting.wire.payloads import TYPES, Hello

    one = encode_frame(Frame(type=TYPES["HELLO"], sequence=1, payload=Hello(session=7).pack()))
    return [one, one + b"boot ok\r\n\0" + one]


def _log(form: str) -> Door:
    def read(path: Path) -> None:
        from calibration.errors import IncompleteLogError
        from calibration.importers import import_log

        try:
            import_log(form, path)
        except IncompleteLogError:
            import_log(form, path, partial=True)

    def seeds() -> list[bytes]:
        return [log if isinstance(log, bytes) else log.encode() for log in LOGS[form]]

    return Door(seeds=seeds, enter=read, suffix=".log", reshape=damage_numbers)


def _trace(meter: str, *texts: str) -> Door:
    def read(path: Path) -> None:
        from calibration.power_trace.board_energy import energy_samples
        from calibration.power_trace.energy import integrate
        from calibration.power_trace.meter_files import read_meter_file

        found = read_meter_file(path, meter, supply_v=2.0, shunt_ohm=1.0)
        if found.marks_us:
            energy_samples(found, (0,), (50.0,), runs=1)
        else:
            integrate(found, *found.span_us)

    return Door(seeds=lambda: [text.encode() for text in texts], enter=read, suffix=".csv",
                reshape=damage_numbers)


def _table(head: str, row: str, rows: int = 14) -> str:
    return head + "".join(row.format(ms=0.01 * i, us=10 * i, s=1e-5 * i, mark=int(4 <= i < 9),
                                     value=5000.5 + i) for i in range(rows))


def _file(*parts: str) -> Callable[[], list[bytes]]:
    return lambda: [(ROOT.joinpath(*parts)).read_bytes()]


DOORS: Mapping[str, Door] = {
    "tflite": Door(seeds=_tflite, enter=_model, suffix=".tflite", reshape=damage_integers),
    "onnx": Door(seeds=_onnx, enter=_model, suffix=".onnx", reshape=damage_onnx),
    "executorch": Door(seeds=lambda: [path.read_bytes() for path in sorted(
        (ROOT / "tests" / "made" / "executorch").glob("*.pte"))],
        enter=_model, suffix=".pte", reshape=damage_integers),
    "layer-list": Door(seeds=_layer_list, enter=_model, suffix=".json",
                       reshape=damage_documents),
    "board": Door(seeds=_file("hwmodels", "boards", "nucleo_l4r5zi.yaml"), enter=_board,
                  suffix=".yaml", reshape=damage_documents),
    "overlay": Door(seeds=lambda: [min((path.read_bytes() for path in sorted(
        (ROOT / "calibration" / "fitting" / "shipped").glob("*/*.yaml"))), key=len)],
        enter=_overlay, suffix=".yaml", reshape=damage_documents),
    "plan": Door(seeds=lambda: [b"schema: 1\nboard: nucleo_l4r5zi\nbenchmarks:\n- latency:flash\n"
                                b"runtime: cmsis-nn@6.0\nmodel: kws\nexpected: narrower\n"],
                 enter=_plan, suffix=".yaml", reshape=damage_documents),
    "document": Door(seeds=_documents, enter=_document, suffix=".json",
                     reshape=damage_documents),
    "measurement": Door(seeds=_measurements, enter=_measurement, reshape=damage_documents),
    "settings": Door(seeds=lambda: [
        b"clocks.cpu.frequency_hz=80MHz", b"memories.flash.read_bytes=16", b"placement.arena=tcm",
        b"caches.art_d.size_bytes=2KiB", b"runtime=cmsis-nn", b"memories.sram1.size_bytes=1e3"],
        enter=_settings, reshape=damage_numbers),
    "wire": Door(seeds=_frames, enter=_wire, reshape=damage_wire),
    **{f"log-{form}": _log(form) for form in sorted(LOGS)},
    "trace-ppk2": _trace("ppk2", _table("Timestamp(ms),Current(uA),D0-D7\n",
                                        "{ms:.2f},{value},{mark}0000000\n")),
    "trace-joulescope": _trace("joulescope", _table("#time,current,voltage,power,gpi0\n",
                                                    "{s:.6f},{value},2.0,{value},{mark}\n")),
    "trace-stlink": _trace("stlink_v3pwr", _table(
        "Power recording\nTime (ms);Current (nA);Voltage (mV)\n", "{ms:.2f};{value};2000\n")),
    "trace-ina226": _trace("ina226", _table("t (us),shunt (uV),bus (mV)\n",
                                            "{us},{value},2000\n")),
    "trace-ina228": _trace("ina228", _table("time(ms);power(mW);mark\n",
                                            "{ms:.2f};{value};{mark}\n")),
    "trace-lpm01a": _trace("lpm01a", _table("TimeStamp: 000s 001ms, buff 00%\n",
                                            "{value:.0f}5-07\n")
                           + "TimeStamp: 000s 002ms, buff 00%\n"),
    "trace-otii": _trace("otii", _table("Timestamp,Main current,Main voltage,GPI1\n",
                                        "{s:.6f},{value},2.0,{mark}\n")),
    "trace-scope": _trace(
        "scope", _table("x-axis,1\nsecond,Volt\n", "{s:+.6E},{value:+.6E}\n"),
        _table("X,CH1,Start,Increment\nSequence,Volt,0,1e-5\n", "{us},{value},,\n"),
        _table("Horizontal Units,s\nVertical Units,V\n\nTIME,CH1,D0\n",
               "{s:.6f},{value},{mark}\n")),
    **FILES, **LINES, **NETWORKS, **COMMANDS,
}
