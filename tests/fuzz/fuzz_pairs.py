"""Two commands at once into one place: both succeed, or one is refused in one line.

    PYTHONPATH=.:tests/made:tests/fuzz python tests/fuzz/fuzz_pairs.py TURNS [CASE ...]

One row for each case.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from fuzz_commands import list_recorded
from fuzz_kills import STUDY, finish, start
from made_measurements import measure
from made_patience import HANG_S

LIBRARY = "tflm-cmsis-nn@2023"
BOARD = ("-b", "nucleo_l4r5zi")
HOST = ("--runs", "2", "--fixed", "-b", "host")


def check_image(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where each was told it had built its own image."""
    from twin.network.readers import read_model

    image = (folder / "o/firmware.elf").read_bytes()
    held = [name for name in ("ad", "sww") if bytes.fromhex(str(read_model(name).sha256)) in image]
    won = [name for name, code in zip(("ad", "sww"), codes, strict=True) if not code]
    return "" if len(won) < 2 and held == won else f"{won} succeeded, the image is {held}"


def check_learnt(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where a program was learnt from and is not there."""
    import yaml

    sources = yaml.safe_load((folder / "l.yaml").read_text())["learnt"]["sources"]
    return "" if len(sources) == codes.count(0) else f"{codes}, and learnt from {sources}"


def check_runs(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where a run is there twice."""
    lines = [(path, json.loads(line)) for path in folder.glob("o/**/samples.jsonl")
             for line in path.read_text().splitlines()]
    keys = [(path, one["run"], one.get("layer"), one["counter"]) for path, one in lines
            if one["counter"] in ("output_checksum", "timer_ticks")]
    return "" if len(keys) == len(set(keys)) and (keys or codes.count(0) == 0) else \
        f"{len(keys)} samples, {len(set(keys))} of them others"


def check_energy(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where energies of one recording lie beside the power of another."""
    header = json.loads((folder / "o/header.json").read_text())
    runs = {json.loads(line)["run"] for line in (folder / "o/samples.jsonl").open()}
    power = json.loads((folder / "o/power.json").read_text())
    told, kept = header["environment"]["meter"], power["meter"]
    return "" if codes.count(0) == 1 and told == kept and runs == {0} else \
        f"{codes}: energies by {told}, power by {kept}, runs {runs}"


def check_overlay(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where an overlay is not that of one of two calibrations."""
    from calibration.fitting.overlay import read_overlay

    read_overlay(folder / "o.yaml")
    alone = []
    for name in "ab":
        finish(("calibrate", name, *BOARD, "-o", f"{name}.yaml"), folder)
        alone.append((folder / f"{name}.yaml").read_bytes())
    return "" if not any(codes) and (folder / "o.yaml").read_bytes() in alone else \
        f"{codes}, and the overlay is of neither"


def check_plan(folder: Path, codes: list[int]) -> str:
    """Return what is wrong where a plan cannot be read."""
    from twin.learning.portability.probes import read_plan

    found = read_plan(str(folder / "p.yaml"))
    return "" if not any(codes) and found.model in ("ad", "kws") else f"{codes}: {found}"


def no_check(folder: Path, codes: list[int]) -> str:
    """Find nothing."""
    return ""


Case = tuple[tuple[str, ...], tuple[str, ...], Callable[[Path, list[int]], str]]
IMPORT = ("import", "tflm", "log.txt", *BOARD, "-o", "o")
CASES: Mapping[str, Case] = {
    "firmware build": (("firmware", "build", "ad", *BOARD, "-o", "o"),
                       ("firmware", "build", "sww", *BOARD, "-o", "o"), check_image),
    "firmware export": (("firmware", "export", "ad", "-o", "o"),
                        ("firmware", "export", "sww", "-o", "o"), no_check),
    "runtimes learn": (("runtimes", "learn", "ad.elf", "--model", "ad", *BOARD, "--call",
                        "infer_once", "-o", "l.yaml"),
                       ("runtimes", "learn", "sww.elf", "--model", "sww", *BOARD, "--call",
                        "infer_once", "-o", "l.yaml"), check_learnt),
    "measure": (("measure", "ad", *HOST, "-o", "o"), ("measure", "ad", *HOST, "-o", "o"),
                check_runs),
    "measure --resume": (("measure", "ad", *HOST, "-o", "o", "--resume"),
                         ("measure", "ad", *HOST, "-o", "o", "--resume"), check_runs),
    "measure --plan": (("measure", "--plan", "latency:ram", *HOST, "-o", "o"),
                       ("measure", "--plan", "latency:ram", *HOST, "-o", "o"), check_runs),
    "energy": (("energy", "m", "ppk2.csv", "--meter", "ppk2", "--supply", "2", "-o", "o"),
               ("energy", "m", "joulescope.csv", "--meter", "joulescope", "-o", "o"),
               check_energy),
    "calibrate": (("calibrate", "a", *BOARD, "-o", "o.yaml"),
                  ("calibrate", "b", *BOARD, "-o", "o.yaml"), check_overlay),
    "plan": (("plan", "ad", *BOARD, "-o", "p.yaml"), ("plan", "kws", *BOARD, "-o", "p.yaml"),
             check_plan),
    "import": (IMPORT, IMPORT, check_runs),
    "study run": (("study", "run", "study.yaml", "-o", "s"),
                  ("study", "run", "other.yaml", "-o", "s"), no_check),
    "predict --keep": (("predict", "ad", *BOARD, "--keep", "runs"),
                       ("predict", "kws", *BOARD, "--keep", "runs"), no_check),
    "report": (("report", "ad", *BOARD, "-o", "page.html"),
               ("report", "kws", *BOARD, "-o", "page.html"), no_check),
    "sweep": (("sweep", "ad", *BOARD, "-b", "nucleo_f401re", "-o", "t.csv"),
              ("sweep", "kws", *BOARD, "-b", "nucleo_f401re", "-o", "t.csv"), no_check),
    "models export": (("models", "export", "ad", "m.tflite"),
                      ("models", "export", "kws", "m.tflite"), no_check),
    "sessions clean": (("sessions", "clean", "runs"), ("sessions", "clean", "runs"), no_check),
}


def prepare(case: str, folder: Path) -> None:
    """Make what the commands of a case read."""
    from made_logs import LOGS

    log = LOGS["tflm"][0]
    (folder / "log.txt").write_bytes(log if isinstance(log, bytes) else log.encode())
    (folder / "study.yaml").write_bytes(STUDY)
    (folder / "other.yaml").write_bytes(STUDY.replace(b"kills", b"other"))
    if case == "energy":
        for path, content in list_recorded().items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
    if case == "calibrate":
        import twin
        from calibration.measurement.measurement import write_measurement

        for name, network in (("a", "ad"), ("b", "sww")):
            deployment = twin.deploy(network, "nucleo_l4r5zi", runtime=LIBRARY)
            write_measurement(folder / name, measure(
                twin.predict(deployment), model=network, runtime=LIBRARY))
    if case == "runtimes learn":
        for name in ("ad", "sww"):
            finish(("firmware", "build", name, *BOARD, "-o", name), folder)
            (folder / name / "firmware.elf").rename(folder / f"{name}.elf")
    if case == "sessions clean":
        finish(("predict", "ad", *BOARD, "--keep", "runs"), folder)


def race(case: str) -> tuple[list[int], str]:
    """Run a case once; return the codes both ended with, and what is wrong."""
    first, second, check = CASES[case]
    with tempfile.TemporaryDirectory(prefix="pairs.") as name:
        folder = Path(name)
        prepare(case, folder)
        children = [start(words, folder) for words in (first, second)]
        said = [child.communicate(timeout=HANG_S)[1] for child in children]
        codes = [child.returncode for child in children]
        for code, errors in zip(codes, said, strict=True):
            lines = [line for line in errors.splitlines() if line.lower().startswith("error: ")]
            if code and (code not in (2, 3, 4) or len(lines) != 1 or "Traceback" in errors):
                return codes, f"exit {code}: {errors[-300:]}"
        if all(codes):
            return codes, f"neither succeeds: {said}"
        return codes, check(folder, codes)


if __name__ == "__main__":
    print("| case | turns | both succeed | one is refused | faults |")
    for one in sys.argv[2:] or CASES:
        found = [race(one) for _ in range(int(sys.argv[1]))]
        faults = sorted({what for _, what in found if what})
        both = sum(not any(codes) for codes, _ in found)
        print(f"| {one} | {len(found)} | {both} | "
              f"{sum(codes.count(0) == 1 for codes, _ in found)} | {len(faults)} |",
              *faults, sep="\n", flush=True)
