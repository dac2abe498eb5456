"""Whether a rebuild moved a number: `python -m benchmarks.exactness.gate`.

    python -m benchmarks.exactness.gate --write FILE    keep what the commands print now
    python -m benchmarks.exactness.gate                 compare with `results/gate.json.xz`
    python -m benchmarks.exactness.gate --only predict  the cases whose name has that word

Every case is a command line, run as a process of its own, and the JSON document it prints: three
networks on every board with its default library and one other, cold caches, stated prices,
what-ifs, two programs, and rows of sweep, select, port, what-if, diagnosis, attribution and
calibration. Nothing of the package is imported, so the comparison outlives any change of its
modules. Event counts, sizes and structure must be equal, cycles, time and energy agree to 1e-9,
ends of intervals to 1e-6; a whole number of cycles, which is rounded, may differ by one where the
time beside it agrees. Keys that were added are counted, not refused; prose is not compared.

The kept values are those of 29 November 2026: intervals of layers with a reach of their own had
moved most of those kept before (commit 732da842) on purpose. A command keeps the library that
was its board's default then. What differs on purpose is named with its reason in `MOVED`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hwmodels.frozen import frozen

KEPT = Path(__file__).parent / "results" / "gate.json.xz"

NETWORKS = ("kws", "ic", "vww")

OTHER = {"esp32s3_devkitc": "esp-nn@1.2.3", "esp32c3_devkitm": "esp-nn-ansi@1.2.3",
         "rpi_pico": "tflm-reference@2026", "host": "float-reference@1"}
"""The library each board is predicted with beside its default; `CMSIS` where none is named."""

CMSIS = "cmsis-nn@6.0"

PROGRAMS = ("nucleo_l4r5zi", "esp32c3_devkitm")
"""Boards the autoencoder's image is built for, and run as a program of anybody's."""

MOVED: Mapping[str, str] = json.loads(KEPT.with_name("moved.json").read_text(encoding="utf-8"))
"""Cases that moved on purpose since the values were taken, each with the reason."""

LOG = ((48_123, "CONV_2D"), (39_871, "DEPTHWISE_CONV_2D"), (46_002, "CONV_2D"),
       (39_903, "DEPTHWISE_CONV_2D"), (46_011, "CONV_2D"), (39_866, "DEPTHWISE_CONV_2D"),
       (46_020, "CONV_2D"), (39_874, "DEPTHWISE_CONV_2D"), (46_007, "CONV_2D"),
       (6_310, "AVERAGE_POOL_2D"), (41, "RESHAPE"), (222, "FULLY_CONNECTED"), (171, "SOFTMAX"))
"""Microseconds of a made log of keyword spotting, in the shape of TFLite Micro's profiler."""

RUNS = 3

ROOT = str(Path(__file__).parents[2])

PT_LOAD = 1

PROSE = ("warnings", "explanation", "made_with")
"""Keys of sentences, and of the version that wrote a document."""

CYCLES = ("cycles", "cycles_by_clock")
"""Keys below which figures are rounded to whole cycles."""

INTERVALS = ("interval", "low", "high", "deviation", "quantile", "probability", "covers")
"""Words of keys whose figures come from a fit: ends of intervals and what is made of them."""


@frozen
class Case:
    """A command whose document is compared.

    Parameters
    ----------
    words : tuple of str
        Behind `python -m twin`, run in a folder of the case's own.
    reads : str
        File the command writes its document to; "" for standard output.
    prepare : tuple of tuple of str
        Commands that come before it, in order.
    program : str
        ELF file whose loaded bytes are hashed: where figures differ, that says whether it did.
    """

    name: str
    words: tuple[str, ...]
    reads: str = ""
    prepare: tuple[tuple[str, ...], ...] = ()
    program: str = ""


def list_boards() -> tuple[str, ...]:
    """Return names of all shipped boards."""
    folder = Path(__file__).parents[2] / "hwmodels" / "boards"
    return tuple(sorted(file.stem for file in folder.glob("*.yaml")))


def list_cases() -> Iterator[Case]:
    """Yield every case, in order of their names' kinds."""
    for board in list_boards():
        for network in NETWORKS:
            words = ("predict", network, "-b", board, "--json")
            yield Case(name=f"predict {network} {board}", words=words)
            other = OTHER.get(board, CMSIS)
            yield Case(name=f"predict {network} {board} {other}",
                       words=(*words, "--runtime", other))
    for board in ("nucleo_h7a3zi_q", "nucleo_f401re", "apollo510_evb", "ek_ra8d1",
                  "esp32s3_devkitc", "stm32n6570_dk"):
        yield Case(name=f"predict cold {board}",
                   words=("predict", "ic", "-b", board, "--cold", "--json"))
        yield Case(name=f"predict stated {board}",
                   words=("predict", "ic", "-b", board, "--calibration", "none", "--json"))
    yield from list_commands()
    yield from list_programs()


def list_commands() -> Iterator[Case]:
    """Yield what-ifs, studies, and what is made of a measurement."""
    changes = (("nucleo_h7a3zi_q", ("caches.l1d.size_bytes=32KiB",
                                    "clocks.cpu.frequency_hz=140MHz")),
               ("nucleo_l4r5zi", ("placement.weights=sram",)),
               ("stm32n6570_dk", ("npu.units.CONV_ACC.count=2",)))
    for board, settings in changes:
        words = [word for setting in settings for word in ("--set", setting)]
        yield Case(name=f"whatif {board}", words=("whatif", "ic", "-b", board, *words, "--json"))
    yield Case(name="sweep", words=(
        "sweep", "kws", "ic", "-b", "nucleo_h7a3zi_q", "-b", "nucleo_u575zi_q", "--clock", "each",
        "--set", "placement.weights=flash,sram", "--rows", "0", "--json"))
    yield Case(name="sweep accelerator", words=(
        "sweep", "ic", "-b", "stm32n6570_dk", "--set", "clocks.npu.frequency_hz=400..1000MHz:4",
        "--set", "clocks.cpu.frequency_hz=400..800MHz:3", "--rows", "0", "--json"))
    yield Case(name="select", words=("select", "kws", "--max-ms", "100", "--json"))
    yield Case(name="port", words=("port", "ic", "--from", "nucleo_l4r5zi", "-b", "nucleo_f401re",
                                   "--json"))
    log = (("import", "tflm", "log.txt", "-b", "nucleo_l4r5zi", "--model", "kws", "--clock",
            "1MHz", "--runtime", "tflm-cmsis-nn@2.3.1", "-o", "measured"),)
    yield Case(name="diagnose", words=("diagnose", "measured", "--json"), prepare=log)
    yield Case(name="attribute", prepare=log,
               words=("attribute", "kws", "measured", "--no-diagnose", "--json"))
    yield Case(name="calibrate", reads="own.yaml", prepare=log, words=(
        "calibrate", "measured", "-b", "nucleo_l4r5zi", "-o", "own.yaml"))
    yield Case(name="calibrated", prepare=(*log, (
        "calibrate", "measured", "-b", "nucleo_l4r5zi", "-o", "own.yaml")), words=(
        "predict", "ic", "-b", "nucleo_l4r5zi", "--calibration", "own.yaml", "--json"))


def list_programs() -> Iterator[Case]:
    """Yield images of ours, read as anybody's program."""
    board = PROGRAMS[0]
    yield Case(name=f"firmware {board}", words=("predict", "ad", "-b", board, "--runtime",
                                                "firmware", "--json"))
    image = "image/firmware.elf"
    for board in PROGRAMS:
        yield Case(name=f"program {board}", program=image, words=(
            "predict", "--elf", image, "-b", board, "--call", "infer_once", "--json"),
            prepare=(("firmware", "build", "ad", "-b", board, "-o", "image"),))


def run(case: Case) -> dict[str, Any]:
    """Run a case; return its exit code, and its document or the last line of its refusal."""
    with tempfile.TemporaryDirectory(prefix="twin-gate-") as folder:
        work = Path(folder)
        (work / "log.txt").write_text(make_log(), encoding="utf-8")
        for words in (*case.prepare, case.words):
            ended = subprocess.run(
                [sys.executable, "-P", "-m", "twin", *words], cwd=work, capture_output=True,
                text=True, check=False, env=os.environ | {"COLUMNS": "100", "PYTHONPATH": ROOT})
        made: dict[str, Any] = {"exit": ended.returncode}
        if case.program:
            made["program_sha256"] = hash_program((work / case.program).read_bytes())
        if case.reads:
            import yaml

            made["document"] = yaml.safe_load((work / case.reads).read_text(encoding="utf-8"))
        elif ended.returncode in (0, 1):
            made["document"] = json.loads(ended.stdout)
        else:
            made["refusal"] = ended.stderr.strip().rpartition("\n")[2]
    return made


def hash_program(image: bytes) -> str:
    """Return the hash of what a 32-bit little-endian ELF file loads: paths of sources are not."""
    (start,) = struct.unpack_from("<I", image, 28)
    size, number = struct.unpack_from("<HH", image, 42)
    digest = hashlib.sha256()
    for header in range(start, start + size * number, size):
        kind, offset, address, _, length = struct.unpack_from("<5I", image, header)
        if kind == PT_LOAD:
            digest.update(struct.pack("<2I", address, length) + image[offset:offset + length])
    return digest.hexdigest()


def make_log() -> str:
    """Return the made log: runs a few microseconds apart."""
    return "".join(
        f"{op} took {time + number * (place % 3)} ticks ({(time + number) // 1000} ms).\n"
        for number in range(RUNS) for place, (time, op) in enumerate(LOG))


@contextmanager
def empty_caches() -> Iterator[None]:
    """Keep counts and images of this run apart: old ones would hide what moved."""
    with tempfile.TemporaryDirectory(prefix="twin-gate-kept-") as folder:
        for name in ("TWIN_COUNTS", "TWIN_IMAGES"):
            os.environ[name] = f"{folder}/{name}"
        yield


def survey(cases: Sequence[Case]) -> dict[str, Any]:
    """Run cases, one per core at a time, with a progress line; return results by name."""
    made: dict[str, Any] = {}
    with empty_caches(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, result in zip(cases, pool.map(run, cases), strict=True):
            made[case.name] = result
            print(f"\r{len(made)} of {len(cases)}: {case.name:<60.60}", end="", file=sys.stderr,
                  flush=True)
    print(file=sys.stderr)
    return made


def differences(old: Any, new: Any, place: str = "", rounded: bool = False) -> Iterator[str]:
    """Yield where two documents differ by more than their tolerance."""
    key = place.rpartition(".")[2].partition("[")[0]
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            if name in PROSE:
                continue
            if name not in new:
                yield f"{place}.{name} is missing"
            else:
                yield from differences(value, new[name], f"{place}.{name}",
                                       rounded or name in CYCLES)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} entries -> {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{place}[{number}]", rounded)
    elif is_number(old) and is_number(new):
        if isinstance(old, int) and isinstance(new, int):
            bound = 1.0 if rounded else 0.0
        else:
            bound = (1e-6 if any(word in place for word in INTERVALS) else 1e-9) * max(
                abs(old), abs(new))
        if abs(old - new) > bound:
            yield f"{place} {old} -> {new}"
    elif isinstance(old, str) and isinstance(new, str):
        if old != new and not {" ", "/"} & {*old} and not key.endswith(("sha256", "address")):
            yield f"{place} {old!r} -> {new!r}"
    elif old != new:
        yield f"{place} {old!r} -> {new!r}"


def is_number(value: object) -> bool:
    """Return whether a value of a document is a figure."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one line for each case that differs and is not in `MOVED`."""
    moved = []
    for name, old in before.items():
        new = after[name]
        other = old.get("program_sha256") != new.get("program_sha256")
        found = [*differences(old, new)]
        if found and name not in MOVED:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            built = "another program was built: " if other else ""
            moved.append(f"{name}: {built}" + "; ".join(found[:3]) + more)
    return moved


def main() -> int:
    """Keep or compare documents; exit 1 when one moved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, help="file to keep the documents in")
    parser.add_argument("--against", type=Path, default=KEPT, help="file to compare with")
    parser.add_argument("--only", default="", help="word the names of cases must have")
    asked = parser.parse_args()
    if asked.write is not None:
        cases = [case for case in list_cases() if asked.only in case.name]
        made = survey(cases)
        kept = [{"name": case.name, "words": pin(case, made[case.name]), **made[case.name]}
                for case in cases]
        asked.write.write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))
        print(f"{len(kept)} documents kept in {asked.write}")
        return 0
    kept = [one for one in json.loads(lzma.decompress(asked.against.read_bytes()))
            if asked.only in one["name"]]
    known = {case.name: case for case in list_cases()}
    cases = [replace(known[one["name"]], words=tuple(one.pop("words"))) for one in kept]
    before = {one.pop("name"): one for one in kept}
    moved = compare(before, survey(cases))
    print("\n".join([*moved, f"{len(before) - len(moved)} of {len(before)} documents agree"]))
    return 1 if moved else 0


def pin(case: Case, made: Mapping[str, Any]) -> list[str]:
    """Return a case's command with the library it took by default."""
    document = made.get("document")
    if case.words[0] not in ("predict", "whatif") or "--runtime" in case.words or case.program:
        return [*case.words]
    if not isinstance(document, dict) or "runtime" not in document:
        return [*case.words]
    return [*case.words, "--runtime", str(document["runtime"])]


if __name__ == "__main__":
    raise SystemExit(main())
