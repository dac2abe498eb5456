"""Ways in of whole folders and of files with a form of their own, most through a command."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from fuzz_door import Door, run_command
from fuzz_shapes import SPLIT, damage_documents, damage_integers, damage_numbers, damage_table

ROOT = Path(__file__).parents[2]
STUDY = b"""schema: 1
name: pair
question: "two clocks"
models: [ad]
boards: [nucleo_l4r5zi]
clocks: [own, 50%]
soft: {max_ms: 100}
finding: {vary: clock, figures: [time]}
prices: {nucleo_l4r5zi: 20.0}
"""
SCENARIO = b"""schema: 1
name: short
description: "made"
model: ad
board: nucleo_l4r5zi
duration: 1s
sensor: {hop: 100ms, hop_bytes: 2560, buffers: 3, power_mw: 1.5, dma: dma1}
inference_every: 1
front_end_cycles: 600000
deadline: 50ms
sleep: {state: idle}
governor: ondemand
clocks: [120MHz, 80MHz, 26MHz]
loads:
  - {master: dma1, memory: sram, bytes_per_second: 8000000, period: 500ms, busy: 50ms, power_mw: 30}
battery: {capacity_mah: 2600, voltage_v: 3.6, usable: 0.9, regulator_efficiency: 0.9}
"""


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder of files that goes."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@lru_cache(maxsize=1)
def _study() -> Mapping[str, bytes]:
    """A study that was run: its files, by name."""
    import twin

    with scratch() as folder:
        (folder / "pair.yaml").write_bytes(STUDY)
        twin.run_study(folder / "pair.yaml", folder / "done", command=["twin"])
        return {path.relative_to(folder / "done").as_posix(): path.read_bytes()
                for path in sorted((folder / "done").rglob("*")) if path.is_file()}


def _with_study(changed: Mapping[str, bytes], use: Callable[[Path], None]) -> None:
    with scratch() as folder:
        for name, content in {**_study(), **changed}.items():
            path = folder / "done" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        use(folder / "done")


def _table(path: Path) -> None:
    data = path.read_bytes()

    def use(folder: Path) -> None:
        verb = data[len(data) // 2] % 4 if data else 0
        if verb == 0:
            run_command("study", "show", str(folder))
        elif verb == 1:
            run_command("study", "pareto", str(folder), "--json")
        elif verb == 2:
            run_command("guidelines", str(folder), "-o", str(folder.parent / "guide.md"))
        else:
            run_command("study", "diff", str(folder), str(folder))

    _with_study({"results.parquet": data}, use)


def _tables() -> list[bytes]:
    """As written; unpacked; with a dictionary; and as Arrow's own file, which is none of ours."""
    import pyarrow
    from pyarrow import parquet

    whole = _study()["results.parquet"]
    table = parquet.read_table(io.BytesIO(whole))
    found = [whole]
    for options in ({"compression": "none"}, {"compression": "none", "use_dictionary": False}):
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink, **options)
        found.append(sink.getvalue().to_pybytes())
    return found


def _part(path: Path) -> None:
    name = next(name for name in _study() if name.startswith("parts/"))

    def use(folder: Path) -> None:
        (folder / "results.parquet").unlink()
        run_command("study", "run", str(folder / "study.yaml"), "-o", str(folder))

    _with_study({name: path.read_bytes()}, use)


LESSONS = b"""schema: 1
name: lessons
question: "two networks, boards and clocks"
models: [ad]
boards: [nucleo_l4r5zi, nucleo_f746zg]
clocks: [own, 90%, 80%, 70%, 60%, 50%, 40%, 30%]
"""


@lru_cache(maxsize=1)
def _lessons() -> Mapping[str, bytes]:
    """A study that guidelines can be learnt from."""
    import twin

    with scratch() as folder:
        (folder / "lessons.yaml").write_bytes(LESSONS)
        twin.run_study(folder / "lessons.yaml", folder / "done", command=["twin"])
        return {path.relative_to(folder / "done").as_posix(): path.read_bytes()
                for path in sorted((folder / "done").iterdir()) if path.is_file()}


def _learn(path: Path) -> None:
    """Learn guidelines of a study's table, whose form is whole more often than not."""
    with scratch() as folder:
        (folder / "done").mkdir()
        for name, content in {**_lessons(), "results.parquet": path.read_bytes()}.items():
            (folder / "done" / name).write_bytes(content)
        run_command("guidelines", str(folder / "done"), "-o", str(folder / "guide.md"))


def _parts() -> list[bytes]:
    return [content for name, content in _study().items() if name.startswith("parts/")]


def _study_head(path: Path) -> None:
    head, _, study = path.read_bytes().partition(SPLIT)
    _with_study({"session.json": head, "study.yaml": study},
                lambda folder: run_command("study", "show", str(folder)))


def _scenario(path: Path) -> None:
    run_command("scenario", "run", str(path))


def _study_file(path: Path) -> None:
    from twin.studies.study.definition import list_asked
    from twin.studies.study.file import load_study
    from twin.studies.study.tasks import cut_tasks, make_plan

    study = load_study(str(path))
    cut_tasks(make_plan(study), list_asked(study))


def _runtime(path: Path) -> None:
    from twin.runtimes.file import load_runtime

    before = os.environ.get("TWIN_RUNTIMES")
    name = f"r{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
    with scratch() as folder:
        shutil.copyfile(path, folder / f"{name}.yaml")
        os.environ["TWIN_RUNTIMES"] = str(folder)
        try:
            load_runtime(name)
            run_command("predict", "ad", "-b", "nucleo_l4r5zi", "--runtime", name)
        finally:
            os.environ.pop("TWIN_RUNTIMES")
            if before is not None:
                os.environ["TWIN_RUNTIMES"] = before


def _kept_run() -> list[bytes]:
    import twin

    with scratch() as folder:
        _, session = twin.keep("predict", {"model": "ad", "board": "nucleo_l4r5zi"}, folder)
        return [(session.folder / "session.json").read_bytes() + SPLIT
                + (session.folder / "result.json").read_bytes()]


def _session(path: Path) -> None:
    head, _, result = path.read_bytes().partition(SPLIT)
    with scratch() as folder:
        for name in ("one", "two"):
            (folder / "runs" / name).mkdir(parents=True)
            (folder / "runs" / name / "session.json").write_bytes(head)
            (folder / "runs" / name / "result.json").write_bytes(result)
        (folder / "runs" / "two" / "result.json").write_bytes(_kept()[1])
        verbs = (("list", folder / "runs"), ("compare", folder / "runs/one", folder / "runs/two"))
        verb, *places = verbs[len(head) % 2]
        run_command("sessions", verb, *map(str, places))


@lru_cache(maxsize=1)
def _kept() -> tuple[bytes, bytes]:
    head, _, result = _kept_run()[0].partition(SPLIT)
    return head, result


def _bundles() -> list[bytes]:
    """A bundle with bytes as they are, and the head of its run alone, which is packed again."""
    import twin

    with scratch() as folder:
        _, session = twin.keep("predict", {"model": "ad", "board": "nucleo_l4r5zi"}, folder)
        whole = twin.bundle([session.folder], folder / "x.zip").read_bytes()
        head = json.loads((session.folder / "session.json").read_text())
        head["files"] = {"result.json": head["files"]["result.json"]}
        return [whole, json.dumps(head).encode()]


def _bundle(path: Path) -> None:
    data = path.read_bytes()
    if data[:1] == b"{":
        result = _kept()[1]
        files = {"a/session.json": data, "a/result.json": result}
        manifest = {"schema": 1, "kind": "bundle", "sessions": ["a"], "files": {
            name: hashlib.sha256(content).hexdigest() for name, content in files.items()}}
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as packed:
            for name, content in {"bundle.json": json.dumps(manifest), **files}.items():
                packed.writestr(name, content)
        path.write_bytes(made.getvalue())
    with scratch() as folder:
        run_command("reproduce", str(path), "--in", str(folder / "new"))


_PROBE_LINE = re.compile(rb"@(twin 1 [ -)+-~]*)\*..")


def _checked(match: re.Match[bytes]) -> bytes:
    total = 0
    for byte in match[1]:
        total ^= byte
    return b"@%s*%02X" % (match[1], total)


def make_probe_logs(layers: tuple[bytes, ...] = (b"CONV_2D", b"SOFTMAX")) -> list[bytes]:
    """Two inferences as lines, and as frames."""
    from calibration.collecting.wire.frames import Frame, encode_frame

    lines, frames = [], []
    for run in (0, 1):
        told = [(0, (run, 80_000_000, 1, len(layers), 0, 90_000, 0, 8), b"net"),
                *((1, (run, place, 5000 - place), name) for place, name in enumerate(layers)),
                (2, (run,), b"")]
        for kind, numbers, name in told:
            payload = bytes([kind, 1]) + struct.pack(f"<{len(numbers)}I", *numbers) + name
            frames.append(encode_frame(Frame(type=0xA0, sequence=run, payload=payload)))
        lines += [b"twin 1 begin run=%d hz=80000000 layers=%d lost=0 total=90000 mark=8 "
                  b"unit=cycles name=net" % (run, len(layers)),
                  *(b"twin 1 layer run=%d place=%d count=%d name=%s" % (
                      run, place, 5000 - place, name) for place, name in enumerate(layers)),
                  b"twin 1 end run=%d" % run]
    return [b"".join(b"I (12) app: " + _PROBE_LINE.sub(_checked, b"@%s*00" % line) + b"\r\n"
                     for line in lines), b"\0".join([b"boot", *frames, b""])]


def _probe(path: Path) -> None:
    """As it came, and with every checksum right."""
    data = path.read_bytes()
    if len(data) % 2:
        from calibration.collecting.wire.frames import Frame, FrameReader, encode_frame

        if b"\0" in data:
            pieces = [piece for piece in data.split(b"\0") if piece]
            whole = [frame.payload for frame in FrameReader().feed(data)]
            data = b"\0".join([b"", *(encode_frame(Frame(
                type=0xA0, sequence=place % 256, payload=(whole or pieces)[
                    place % len(whole or pieces)][:200]))
                for place in range(len(whole or pieces)))]) + b"\0"
        data = _PROBE_LINE.sub(_checked, data)
        path.write_bytes(data)
    with scratch() as folder:
        run_command("import", "probe", str(path), "-o", str(folder / "m"), "-b", "nucleo_l4r5zi",
                    "--runtime", "cmsis-nn")
        run_command("diff", str(folder / "m"), str(folder / "m"))


def _series(path: Path) -> None:
    header, _, samples = path.read_bytes().partition(SPLIT)
    whole = _measurements()[0].partition(SPLIT)
    with scratch() as folder:
        for name, parts in (("a", whole), ("b", (header, b"", samples)), ("c", whole)):
            (folder / name).mkdir()
            (folder / name / "header.json").write_bytes(parts[0])
            (folder / name / "samples.jsonl").write_bytes(parts[2])
        places = [str(folder / name) for name in "abc"]
        verb = len(samples) % 4
        if verb == 0:
            run_command("diff", *places)
        elif verb == 1:
            run_command("attribute", "ad", places[1], "--anyway")
        elif verb == 2:
            run_command("diagnose", places[1])
        else:
            run_command("calibrate", places[1], "-b", "nucleo_l4r5zi", "-o",
                        str(folder / "o.yaml"))


@lru_cache(maxsize=1)
def _measurements() -> list[bytes]:
    from made_measurements import measure

    import twin
    from calibration.measurement.measurement import write_measurement

    with scratch() as folder:
        made = measure(twin.predict(twin.deploy("ad", "nucleo_l4r5zi",
                                                runtime="tflm-cmsis-nn@2023")),
                       runtime="tflm-cmsis-nn@2023", model="ad")
        where = write_measurement(folder / "m", made)
        return [SPLIT.join((where / name).read_bytes()
                           for name in ("header.json", "samples.jsonl"))]


def _arrays() -> list[bytes]:
    import numpy as np

    found = []
    for write in (np.savez, np.savez_compressed):
        made = io.BytesIO()
        write(made, x=np.zeros((6, 2), np.int8), y=np.arange(6))
        found.append(made.getvalue())
    return found


def _labelled(path: Path) -> None:
    from twin.studies.labelled import read_data

    read_data(path)


def _compiled(path: Path) -> None:
    from twin.api.commands.compiled import predict_compiled

    predict_compiled(path, "stm32n6570_dk")


def _compiler_outputs() -> list[bytes]:
    from made_info import made_info

    return [json.dumps(made_info()).encode()]


def _program(path: Path) -> None:
    from twin.program.elf import read_elf

    found = read_elf(path)
    found.address_of("main", "--from")
    list(found.vector_tables())


@lru_cache(maxsize=1)
def _programs() -> list[bytes]:
    from made_program import make_few

    return [make_few(), make_riscv_program()]


def _run_program(path: Path) -> None:
    """Emulate a program and bill it, with a file at an address: its own first bytes."""
    data = path.read_bytes()
    dump = path.with_suffix(".dump")
    dump.write_bytes(data[:64])
    board = "esp32c3_devkitm" if data[18:19] == b"\xf3" else "nucleo_l4r5zi"
    at = ("0x1fff7500", "0x20000000", "0xfffffff0", "0x08000000")[len(data) % 4]
    run_command("predict", "--elf", str(path), "-b", board, "--from", "main", "--limit", "20000",
                "--memory", f"{dump}@{at}")


def make_riscv_program() -> bytes:
    """The same for RISC-V: main calls a function of ten turns and ends."""
    from made_program import make_few

    program = bytearray(make_few(base := 0x3FC7C000))
    struct.pack_into("<H", program, 18, 243)
    struct.pack_into("<I", program, 24, base + 0x40)
    struct.pack_into("<I", program, 36, 0)
    code = struct.pack("<6I", 0x008000EF, 0x0000006F,  # start: jal main; j .
                       0x00A00513, 0xFFF50513, 0xFE051EE3, 0x00008067)
    program[84 + 0x40:84 + 0x58] = code
    for number, (place, size) in enumerate(((0x40, 8), (0x48, 16), (0x4C, 12)), 1):
        struct.pack_into("<II", program, 84 + 0x58 + 16 * number + 4, base + place, size)
    return bytes(program)


def _options(path: Path) -> None:
    """Take the lines of a file for words of a command: values people type."""
    text = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
    words = re.sub(r":\d{3,7}\b", ":99", text).split("\n")  # who asks for many, waits for them
    with scratch() as folder:
        run_command("sweep", "ad", "-b", "nucleo_l4r5zi", *(
            word for word in words if "/" not in word and not word.startswith("-o")),
            "-o", str(folder / "rows.csv"))


OPTIONS = tuple("\n".join(words).encode() for words in (
    ("--set", "caches.art_d.size_bytes=1KiB..4KiB:3", "--max-ms", "0.2s"),
    ("--set", "clocks.cpu.frequency_hz=40MHz,80MHz", "--max-ram", "64KiB", "--price", "ad=3.5"),
    ("--sample", "sobol:4", "--set", "clocks.cpu.frequency_hz=40MHz..80MHz"),
    ("--clock", "40MHz,own", "--over", "time,ram", "--max-usd", "12")))


FILES: Mapping[str, Door] = {
    "study-table": Door(seeds=_tables, enter=_table, suffix=".parquet", reshape=damage_table),
    "study-part": Door(seeds=_parts, enter=_part, suffix=".parquet", reshape=damage_table),
    "study-head": Door(seeds=lambda: [SPLIT.join((_study()["session.json"],
                                                  _study()["study.yaml"]))], enter=_study_head,
                       reshape=damage_documents),
    "study-file": Door(seeds=lambda: [STUDY, *(path.read_bytes() for path in sorted(
        (ROOT / "twin" / "studies" / "study" / "files").glob("[ab]_*.yaml")))],
        enter=_study_file, suffix=".yaml", reshape=damage_documents),
    "scenario": Door(seeds=lambda: [SCENARIO], enter=_scenario, suffix=".yaml",
                     reshape=damage_documents),
    "runtime": Door(seeds=lambda: [(ROOT / "twin" / "runtimes" / f"{name}.yaml").read_bytes()
                                   for name in ("tflm-cmsis-nn", "cmsis-nn", "neural-art")],
                    enter=_runtime, suffix=".yaml", reshape=damage_documents),
    "session": Door(seeds=_kept_run, enter=_session, reshape=damage_documents),
    "bundle": Door(seeds=_bundles, enter=_bundle, suffix=".zip"),
    "probe": Door(seeds=make_probe_logs, enter=_probe, suffix=".log", reshape=damage_numbers),
    "series": Door(seeds=_measurements, enter=_series, reshape=damage_documents),
    "labelled": Door(seeds=_arrays, enter=_labelled, suffix=".npz"),
    "compiled": Door(seeds=_compiler_outputs, enter=_compiled, suffix=".json",
                     reshape=damage_documents),
    "learn": Door(seeds=lambda: [_lessons()["results.parquet"]], enter=_learn, suffix=".parquet",
                  reshape=damage_table),
    "program-run": Door(seeds=_programs, enter=_run_program, suffix=".elf",
                        reshape=damage_integers),
    "options": Door(seeds=lambda: list(OPTIONS), enter=_options, reshape=damage_numbers),
    "program": Door(seeds=_programs, enter=_program, suffix=".elf", reshape=damage_integers),
}
