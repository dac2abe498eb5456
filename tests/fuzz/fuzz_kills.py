"""Commands ended at random moments, and started again: nothing is half written, nothing is lost.

    PYTHONPATH=tests/made python tests/fuzz/fuzz_kills.py TURNS [VERB ...]

One row for each verb and signal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from made_patience import HANG_S

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
STUDY = b"""schema: 1
name: kills
question: "which"
models: [ad, kws]
boards: [nucleo_l4r5zi, nucleo_f746zg]
clocks: [own, 90%, 80%, 70%]
"""
RUNS = 40


def start(words: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "twin", *words], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


def end(words: tuple[str, ...], folder: Path, after_s: float, how: signal.Signals) -> str:
    """Run a command and end it; return what is wrong with how it ended, or nothing."""
    child = start(words, folder)
    sent: list[bool] = []

    def send() -> None:
        if child.poll() is None:
            sent.append(True)
            os.killpg(child.pid, how) if how == signal.SIGKILL else child.send_signal(how)

    timer = threading.Timer(after_s, send)
    timer.start()
    try:
        _, errors = child.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return "went on after it was ended"
    finally:
        timer.cancel()
    if not sent:
        return "" if child.returncode == 0 else f"ended by itself: {errors[-200:]}"
    if "Traceback" in errors or child.returncode == 70:
        return f"exit {child.returncode}: {errors[-300:]}"
    return ""


def check_measure(folder: Path) -> str:
    code, errors = finish(("measure", "ad", "-b", "host", "--runs", str(RUNS), "--fixed", "-o",
                           "m", "--resume"), folder)
    if code:
        return f"--resume exits {code}: {errors[-200:]}"
    lines = (folder / "m" / "warm" / "samples.jsonl").read_text().splitlines()
    runs = Counter(one["run"] for line in lines if (one := json.loads(line)).get("layer") == 0)
    return "" if sorted(runs) == list(range(RUNS)) else f"{len(runs)} runs of {RUNS}"


def finish(words: tuple[str, ...], folder: Path) -> tuple[int, str]:
    child = start(words, folder)
    _, errors = child.communicate(timeout=HANG_S)
    return child.returncode, errors


def check_study(folder: Path) -> str:
    from pyarrow import parquet

    code, errors = finish(("study", "run", "kills.yaml", "-o", "s"), folder)
    if code:
        return f"started again exits {code}: {errors[-200:]}"
    rows = len(parquet.read_table(folder / "s" / "results.parquet"))
    return "" if rows == 16 else f"{rows} rows of 16"


def check_file(name: str, words: tuple[str, ...]) -> Callable[[Path], str]:
    def check(folder: Path) -> str:
        odd = [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]
        kept = (folder / name).read_bytes() if (folder / name).exists() else None
        code, errors = finish(words, folder)
        if code:
            return f"again exits {code}: {errors[-200:]}"
        if kept is not None and kept != (folder / name).read_bytes():
            return "half written"
        return f"left {odd[:2]}" if odd else ""
    return check


SWEEP = ("sweep", "ad", "kws", "-b", "nucleo_l4r5zi", "--clock", "each", "-o", "rows.csv")
LEARN = ("calibrate", "cal", "-b", "nucleo_l4r5zi", "-o", "overlay.yaml")
VERBS: Mapping[str, tuple[tuple[str, ...], Callable[[Path], str]]] = {
    "measure": (("measure", "ad", "-b", "host", "--runs", str(RUNS), "--fixed", "-o", "m",
                 "--resume"), check_measure),
    "study": (("study", "run", "kills.yaml", "-o", "s"), check_study),
    "sweep": (SWEEP, check_file("rows.csv", SWEEP)),
    "calibrate": (LEARN, check_file("overlay.yaml", LEARN))}


def prepare(folder: Path) -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "made")]
    from made_measurements import measure

    import twin
    from calibration.measurement.measurement import write_measurement

    (folder / "kills.yaml").write_bytes(STUDY)
    deployment = twin.deploy("ad", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2023")
    made = measure(twin.predict(deployment), runtime="tflm-cmsis-nn@2023")
    write_measurement(folder / "cal", replace(made, header=replace(
        made.header, model="ad", model_sha256=deployment.graph.sha256)))


if __name__ == "__main__":
    turns, dice = int(sys.argv[1]), random.Random(7)
    print("| verb | ended by | times | wrong |")
    for verb in sys.argv[2:] or VERBS:
        words, check = VERBS[verb]
        for how in SIGNALS:
            wrong = []
            for _turn in range(turns):
                with tempfile.TemporaryDirectory(prefix="attack.") as made:
                    prepare(Path(made))
                    told = end(words, Path(made), dice.uniform(0.3, 10), how) \
                        or check(Path(made))
                    wrong += [told] if told else []
            print(f"| {verb} | {how.name} | {turns} | {len(wrong)} |", *wrong, sep="\n" * bool(
                wrong), flush=True)
