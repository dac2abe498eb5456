"""How often a network is right: run by LiteRT or ONNX Runtime on data its user gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibration.collecting.deadline import patient
from hwmodels.errors import ToolMissingError, need_extra, reworded
from hwmodels.files import read_regular
from hwmodels.frozen import frozen
from hwmodels.processes import ask
from hwmodels.quantities import Ends, Settings
from twin.errors import NotApplicableError, RuntimeRefusedError, UsageError
from twin.network.arithmetic import run_network
from twin.network.graph import Graph, Tensor
from twin.network.model_file import MODELS
from twin.network.rewrites.precision import change_precision
from twin.network.rewrites.rewrite import load_rewrite, rewrite_network
from twin.network.writers.tflite import encode_tflite
from twin.studies.labelled import Data

RANGED = 100
"""Inputs at most that ranges of activations are taken from; they are not measured on."""

START_S, INPUT_S = 60.0, 5.0
"""An interpreter may take, and for each input; `TWIN_PATIENCE` makes it longer."""

Run = Callable[[np.ndarray], np.ndarray]
"""One input, as stored, with its batch axis -> the first output."""


@frozen
class Accuracy:
    """How many answers were right.

    Parameters
    ----------
    low, high
        Wilson interval of the share, 90 %.
    by
        What ran the network.
    notes
        What a reader must know.
    """

    right: int
    samples: int
    low: float
    high: float
    by: str
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of right answers."""
        return self.right / self.samples


def measure_accuracy(graph: Graph, data: Data, model_file: str | None = None) -> Accuracy:
    """Run a network on data and count right answers.

    Parameters
    ----------
    graph
        The network; written as .tflite where no file is given.
    data
        From `labelled.read_data`.
    model_file
        An .onnx or .tflite file, run as it is.

    Returns
    -------
    Accuracy
        With the interpreter that ran it.

    Raises
    ------
    UsageError
        When inputs do not have the network's shape.
    ToolMissingError
        Without the interpreter.
    """
    if len(graph.inputs) != 1:
        raise UsageError(f"{graph.name}: has {len(graph.inputs)} inputs; accepted: one")
    if graph.planned_bytes:
        raise UsageError(f"{graph.source}: a program, of which only what it does is read, not what "
                         "comes out; accepted: .tflite, .onnx")
    from twin.network.readers.container import open_container

    kind = Path(model_file or "x.tflite").suffix.lower()
    if model_file is None:
        content = encode_tflite(graph)
    elif kind in MODELS:
        content = read_regular(model_file)
    elif (found := open_container(model_file)) is not None:
        content, kind = found.content, found.suffix
    right, by = _count_right((kind.removeprefix("."), content, data,
                              graph.entry), model_file or graph.name)
    low, high = wilson_interval(right, len(data.labels))
    return Accuracy(right=right, samples=len(data.labels), low=low, high=high, by=by)


def _count_right(asked: tuple[str, bytes, Data, Tensor], name: str) -> tuple[int, str]:
    """Run a network where nothing its file does to the interpreter can reach this process."""
    answer = ask("twin.studies.counted", asked, patient(START_S + INPUT_S * len(asked[2].labels)))
    if "refused" in answer:
        if kind := {"UsageError": UsageError, "ToolMissingError": ToolMissingError,
                    "NotApplicableError": NotApplicableError}.get(answer["refused"]):
            raise kind(answer["why"])
        raise NotApplicableError(f"{name}: the interpreter {answer['why']}")
    return int(answer["right"]), str(answer["by"])


def store_input(values: np.ndarray, entry: Tensor) -> np.ndarray:
    """Return one input as the network takes it: its shape, and integers where it is quantised.

    Raises
    ------
    UsageError
        When it does not have that shape, or integers do not fit its type.
    """
    if values.size != entry.elements or (values.ndim >= len(entry.shape)
                                         and values.shape != entry.shape):
        raise UsageError(f"an input of shape {list(values.shape)}; accepted: "
                         f"{list(entry.shape[1:])}, one sample of {entry.name!r}")
    shaped = values.reshape(entry.shape)
    if entry.dtype == "float32" or values.dtype == np.dtype(entry.dtype):
        return np.ascontiguousarray(shaped.astype(entry.dtype))
    if values.dtype.kind != "f" or entry.quantization is None:
        raise UsageError(f"inputs are {values.dtype}; accepted: real numbers, or {entry.dtype} as "
                         "the network stores them")
    scale, zero = entry.quantization.scales[0], entry.quantization.zero_points[0]
    limits = np.iinfo(entry.dtype)
    stored = np.clip(np.rint(shaped / scale) + zero, limits.min, limits.max)
    return np.ascontiguousarray(stored.astype(entry.dtype))


def change_network(graph: Graph, changes: Settings,
                   data: Data) -> tuple[Graph, Data, tuple[str, ...]]:
    """Return a changed network that can be run, the data left to measure on, and notes.

    Parameters
    ----------
    changes
        Paths of the network.
    data
        Where numbers of a network of floats become integers, ranges of activations come from its
        first inputs, which are omitted from what is measured.

    Raises
    ------
    NotApplicableError
        When ranges are needed and the network cannot be run for them.
    """
    path = "network.precision"
    real = any(graph.output(layer).dtype == "float32" for layer in graph.layers)
    if not real or str(changes.get(path, "")).lower() not in ("int8", "int16x8"):
        return rewrite_network(graph, changes), data, ()
    stage = load_rewrite(path).stage
    before = {name: value for name, value in changes.items() if load_rewrite(name).stage < stage}
    after = {name: value for name, value in changes.items() if load_rewrite(name).stage > stage}
    floats = rewrite_network(graph, before)
    count = min(RANGED, len(data.labels) // 2)
    if not count:
        raise NotApplicableError(f"{path}: ranges of activations need inputs of their own; "
                                 "accepted: two or more")
    ranges: dict[int, Ends] = {}
    entry = floats.tensors[floats.inputs[0]]
    with reworded(RuntimeRefusedError, NotApplicableError,
                  f"{path}: ranges of activations cannot be found: ",
                  "; accepted: a file that is quantised already"):
        for one in data.inputs[:count]:
            for i, values in run_network(floats, [store_input(one, entry)]).items():
                low, high = ranges.get(i, (0.0, 0.0))
                ranges[i] = min(low, float(values.min())), max(high, float(values.max()))
    changed = rewrite_network(change_precision(floats, str(changes[path]).lower(), ranges), after)
    left = Data(inputs=data.inputs[count:], labels=data.labels[count:])
    return changed, left, (f"ranges of activations are those of the first {count} inputs, which "
                           "were not measured on",)


def wilson_interval(right: int, samples: int) -> Ends:
    """Return the Wilson score interval of a share, 90 %.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    z = 1.6448536269514722  # Of the normal distribution, 95 %.
    share, spread = right / samples, z * z / samples
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / samples + spread / (4 * samples)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def open_litert(content: bytes) -> tuple[Run, str]:
    """Return what runs a .tflite file, and its name."""
    with need_extra("accuracies of .tflite networks", "ai-edge-litert", "accuracy"):
        from importlib.metadata import version

        from ai_edge_litert.interpreter import Interpreter, OpResolverType

    def start(resolver: Any) -> Any:
        made = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
        made.allocate_tensors()
        return made

    with reworded((RuntimeError, ValueError), NotApplicableError,
                  "LiteRT does not run the network: "):
        try:
            interpreter = start(OpResolverType.AUTO)
        except RuntimeError:  # XNNPACK refuses scales that LiteRT's own kernels take.
            interpreter = start(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    entry, end = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def run(values: np.ndarray) -> np.ndarray:
        interpreter.set_tensor(entry["index"], values)
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(end["index"]))

    return run, f"LiteRT {version('ai-edge-litert')}"


def open_onnx(content: bytes) -> tuple[Run, str, Tensor]:
    """Return what runs an .onnx file, its name, and the input it takes."""
    with need_extra("accuracies of .onnx networks", "onnxruntime", "accuracy"):
        import onnxruntime
    with reworded(Exception, NotApplicableError, "ONNX Runtime does not run it: "):
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    dtype = {"tensor(float)": "float32"}.get(entry.type, entry.type[7:-1])
    shape = tuple(size if isinstance(size, int) else 1 for size in entry.shape)

    def run(values: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {entry.name: values})[0])

    return (run, f"ONNX Runtime {onnxruntime.__version__}",
            Tensor(name=entry.name, shape=shape, dtype=dtype))
