"""Back ends that run a network on this machine and are timed: ONNX Runtime, LiteRT, a user's own.

    class Own:
        SUFFIX = ".tflite"                      # of the model file it takes
        def setup(self, model, data): ...       # path and raw input -> its name and version
        def run(self): ...                      # one inference
        def counters(self): ...                 # of that one: name -> (value, unit); may be absent

A class of an installed package is named in the group `twin.backends`. It runs in a process of its
own: what a model file does to it ends with it. Interpreters take a thread for each processor they
may use, so that --cpu makes it one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from calibration.collecting.deadline import patient
from calibration.errors import MeasurementError
from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from calibration.virtual_board.host import HostGauges, describe_host
from hwmodels.errors import check_known
from hwmodels.extensions import blamed, find_entries, load_entry
from hwmodels.files import JsonObject
from hwmodels.processes import ask, serve
from twin.errors import UsageError
from twin.network.graph import Graph, Shape
from twin.network.writers import write_model
from twin.studies.accuracy import open_litert, open_onnx

GROUP = "twin.backends"
MEMORY_BYTES = 1 << 32
"""A back end may take beside its own."""
START_S, RUN_S = 60.0, 20.0
"""A back end may take to start, and for each inference; `TWIN_PATIENCE` makes it longer."""


class Backend(Protocol):
    """What runs one network and is timed."""

    SUFFIX: str

    def setup(self, model: Path, data: bytes) -> str:
        """Read the model, keep the input; return name and version."""

    def run(self) -> object:
        """Make one inference."""


@dataclass(slots=True)
class _Interpreter:
    """An interpreter of `twin.studies.accuracy`."""

    SUFFIX: str
    open: Callable[[bytes], tuple[Any, ...]]
    made: Any = None
    values: Any = None

    def setup(self, model: Path, data: bytes) -> str:
        self.made, by, *entry = self.open(model.read_bytes())
        shape, dtype = _read_entry(model, entry)
        self.values = np.frombuffer(data, dtype).reshape(shape)
        return str(by)

    def run(self) -> object:
        return self.made(self.values)


def _read_entry(model: Path, entry: list[Any]) -> tuple[Shape, str]:
    """Return shape and type of the input: as the interpreter says, else as the file does."""
    if not entry:
        from twin.network.readers import read_model

        graph = read_model(str(model))
        entry = [graph.entry]
    return entry[0].shape, entry[0].dtype


_OWN: Mapping[str, Callable[[], Backend]] = {
    "onnxruntime": lambda: _Interpreter(".onnx", open_onnx),
    "litert": lambda: _Interpreter(".tflite", open_litert)}


def find_backend(name: str) -> Backend:
    """Return a back end by name; raises `UsageError` for none."""
    if name in _OWN:
        return _OWN[name]()
    check_known("--backend", name, (*_OWN, *find_entries(GROUP)), UsageError)
    with blamed(GROUP, name):
        backend: Backend = load_entry(GROUP, name)()
    return backend


def measure_backend(graph: Graph, name: str, folder: Path, *, data: bytes | None, runs: int,
                    warmup: int) -> Measurement:
    """Time a network on a back end of this machine: a sample for each run.

    Parameters
    ----------
    graph : Graph
        Written as the file the back end takes.
    name : str
        "onnxruntime", "litert" or of an installed package.
    folder : Path
        Gets the folder "warm".
    data : bytes or None
        Raw input; None: seeded noise.
    runs, warmup : int
        Inferences that are kept, and those before them.

    Raises
    ------
    MeasurementError
        When the back end refuses the network, ends over it, or takes too long.
    """
    from twin.attribution.folders import note_file
    from twin.program.image.compile.verification import random_input

    backend = find_backend(name)
    if data is None:
        data = random_input(graph).tobytes()
    with TemporaryDirectory() as place:
        model = Path(place) / f"model{backend.SUFFIX}"
        if graph.source.lower().endswith(backend.SUFFIX) and Path(graph.source).is_file():
            model = Path(graph.source).resolve()
        else:
            write_model(graph, model)
        answer = _ask((name, str(model), data, runs, warmup),
                      patient(START_S + RUN_S * (runs + warmup)))
    by, clock = str(answer["by"]), "timer"
    samples = [Sample(run=run, counter="timer_ticks", clock=clock, unit="ticks", value=ns)
               for run, ns in enumerate(answer["ns"])]
    samples += [Sample(run=run, counter=counter, unit=unit, value=value)
                for run, counter, value, unit in answer["counters"]]
    header = Header(
        kind="measured", model=graph.name, model_sha256=graph.sha256, board="host",
        architecture_id=graph.architecture_id, runtime=f"{name}@{by.rpartition(' ')[2]}",
        temperature="warm", clocks_hz=((clock, 1e9),), source="twin measure", environment=tuple({
            "port": name, "compiler": by, "firmware_sha256": str(graph.sha256 or "")[:64],
            "warmup": str(warmup), **describe_host(), **note_file(graph),
            **answer["missing"]}.items()))
    found = Measurement(header=header, samples=tuple(samples))
    write_measurement(folder / "warm", found)
    return found


def _ask(asked: tuple[Any, ...], late_s: float) -> JsonObject:
    """Time it where nothing a model file does can reach this process."""
    answer = ask("twin.api.commands.backends", asked, late_s)
    if "refused" in answer:
        raise MeasurementError(f"{asked[0]}: {answer['why']}")
    return answer


def _time(asked: tuple[str, str, bytes, int, int]) -> JsonObject:
    name, model, data, runs, warmup = asked
    backend = find_backend(name)
    by = backend.setup(Path(model), data)
    count = getattr(backend, "counters", dict)
    for _ in range(warmup):
        backend.run()
    gauges = HostGauges(os.getpid())
    before, ns, counters = gauges.read(), list[int](), list[tuple[int, str, float, str]]()
    for run in range(runs):
        begin = time.perf_counter_ns()
        backend.run()
        ns.append(time.perf_counter_ns() - begin)
        counters += [(run, counter, float(value), unit)
                     for counter, (value, unit) in count().items()]
    counters += [(0, f"block_{counter}", (value - before[counter][0]) / runs, unit)
                 for counter, (value, unit) in gauges.read().items() if counter in before]
    gauges.close()
    return {"by": by, "ns": ns, "counters": counters,
            "missing": {f"no_{counter}": why for counter, why in gauges.missing.items()}}


if __name__ == "__main__":
    serve(_time, MEMORY_BYTES)
