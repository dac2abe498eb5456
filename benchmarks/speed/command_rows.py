"""Whole processes: the command beside Vela's on the same file, the first time, the help.

Warm, counts of the network are kept. Of a structure never seen nothing is.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.speed.row import Row, median_processes_s, process_s
from twin.network.writers.tflite import write_tflite
from twin.network.zoo import build

BOARD = "nucleo_l4r5zi"
TIMES = 7
CHOSEN = ("kws", "ic", "vww", "mobilenet_v2_0.35_96")
"""Networks whose first selection of all boards and libraries is shared by two cores."""


def measure() -> Iterator[Row]:
    """Yield the rows of the command line."""
    twin = [sys.executable, "-m", "twin"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kws.tflite"
        write_tflite(build("kws"), path)
        predict = [*twin, "predict", str(path), "-b", BOARD]
        vela = [sys.executable, "-m", "ethosu.vela.vela", str(path), "--output-dir", folder,
                "--accelerator-config", "ethos-u55-128"]
        kept = {"XDG_CACHE_HOME": f"{folder}/cache", "PYTHONPYCACHEPREFIX": f"{folder}/pyc"}
        runs = {"warm": partial(process_s, predict, **kept),
                "unseen": partial(process_s, predict, **kept, TWIN_COUNTS=""),
                "help": partial(process_s, [*twin, "--help"], **kept)}
        if importlib.util.find_spec("ethosu") is not None:
            runs["vela"] = partial(process_s, vela, **kept)
        median_processes_s(runs, 2)  # What is kept is there, bytecode too.
        document = json.loads(subprocess.run(
            [*predict, "--json"], check=True, capture_output=True, text=True).stdout)
        events = {"cycles": sum(layer["cycles"] for layer in document["layers"])}
        found = median_processes_s(runs, TIMES)
    theirs, peer = found.get("vela"), "vela" if "vela" in found else "vela, not installed"
    yield Row(name="twin predict kws, warm", unit="s", figure=found["warm"], peer=peer,
              theirs=theirs, limit=0.45, ratio_limit=1.3, events=events)
    yield Row(name="twin predict kws, structure never seen", unit="s", figure=found["unseen"],
              peer=peer, theirs=theirs, ratio_limit=2.0, events=events)
    yield Row(name="twin --help", unit="s", figure=found["help"], limit=0.12)
    for network in CHOSEN:
        with tempfile.TemporaryDirectory() as empty:
            used_s = process_s([*twin, "select", network], XDG_CACHE_HOME=empty)
        yield Row(name=f"select {network}, the first time, a half of its processor time", unit="s",
                  figure=used_s / 2, limit=10.0)
