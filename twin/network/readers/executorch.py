"""Read an ExecuTorch program (.pte): portable kernels, and those of its Cortex-M backend.

Each kernel call is one layer, in the program's order. Images are channel last in a graph whatever
their order in memory, which no count depends on; permutations and copies the program makes stay
layers. A view has no call of its own: it is a tensor that lies where another was written.
"""

from __future__ import annotations

from pathlib import Path

from hwmodels.files import MISSHAPEN
from twin.errors import ModelError
from twin.network.graph import Graph
from twin.network.model_file import read_bytes
from twin.network.readers.executorch_layers import KERNELS, Tie
from twin.network.readers.executorch_program import Listed, Program, Spec, read_program
from twin.network.readers.executorch_values import Reader
from twin.network.readers.refusal import UnsupportedError, refuse_unknown
from twin.network.readers.verification import verify_graph


def read_executorch(path: str | Path, *, assume_unsupported: str | None = None) -> Graph:
    """Read a .pte file.

    Parameters
    ----------
    assume_unsupported
        "copy" to keep unknown kernels as assumed memory copies.

    Returns
    -------
    Graph
        With a layer for each kernel call and each view.

    Raises
    ------
    ModelError
        Naming file and kernel.

    Notes
    -----
    Portable programs transpose the weights of a matrix product at run time: that is a layer, and
    the product is priced as one that reads the weights in the file's order. Normalisations are
    priced as a product with a constant (batches) or as an L2 normalisation (layers), assumed.
    """
    path = str(path)
    program = None
    try:
        program = read_program(path, read_bytes(path))
        graph = _convert(program, assume_unsupported)
    except (*MISSHAPEN, MemoryError) as error:
        place = "header" if program is None else program.place
        raise ModelError(f"{path}: malformed at {place}: {error}"[:400]) from None
    return verify_graph(graph)


def _convert(program: Program, assume_unsupported: str | None) -> Graph:
    reader = Reader(program, _find_images(program))
    unknown = [f"{call.place} {call.kernel}" for call in program.calls if call.name not in KERNELS]
    refuse_unknown(program.path, unknown, assume_unsupported)
    for call in program.calls:
        program.place = f"instruction {call.place} {call.kernel}"
        reader.call = call
        try:
            if call.name not in KERNELS:
                raise UnsupportedError("")
            KERNELS[call.name].convert(reader)
        except UnsupportedError as refusal:
            unknown.append(f"{call.place} {call.kernel}{refusal.suffix}")
            reader.emit("copy", [reader.data(i) for i in reader.tensors()[:1]], of=call.kernel,
                        assumed=True)
    refuse_unknown(program.path, unknown, assume_unsupported)
    program.place = "outputs"
    return reader.finish()


def _find_images(program: Program) -> set[int]:
    """Return the values that are images or signals: of windows, and what keeps their axes."""
    values = program.values
    found: set[int] = set()
    ties = []
    for call in program.calls:
        tie = KERNELS[call.name].tie if call.name in KERNELS else Tie.NONE
        read = [j for i in call.inputs
                for j in (values[i] if isinstance(values[i], Listed) else (i,))]
        both = [i for i in (*(read[:1] if tie is Tie.IMAGE else read), *call.outputs)
                if isinstance(values[i], Spec) and (values[i].memory or i in program.inputs)]
        rank = max((len(values[i].shape) for i in both), default=0)
        if rank in (3, 4) and tie is not Tie.NONE:
            ties.append({i for i in both if len(values[i].shape) == rank})
            found.update(ties[-1] if tie is Tie.IMAGE else ())
    for tied in (*ties, *ties[::-1], *ties):  # down the program, up to where branches meet, down
        found.update(tied if tied & found else ())
    return found
