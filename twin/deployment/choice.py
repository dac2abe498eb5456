"""Which runtime a network gets when none is asked for, and what must be said of the choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING

from calibration.fitting.cell import Measured, default_build, list_measured, locate
from hwmodels.board.facts import Board
from hwmodels.isa import load_isa
from twin.deployment.support import (
    check_batch,
    check_layers,
    check_part,
    check_types,
    computing_layers,
    float_layers,
    list_other_makers,
    maker_of,
    runs,
)
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph
from twin.network.operators import traits
from twin.runtimes.file import list_compilers, list_runtimes, list_shipped, order_release
from twin.runtimes.file import load_runtime as load_runtime  # for packages that know no files
from twin.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from twin.runtimes.compiler import Compiler

SHOWN = 8
"""Float layers a note names one by one."""


DEFAULT, BEST = "default", "best"
"""Names that stand for a library: what the vendor's SDK builds for the board; the fastest of those
measured on it or on its core (`twin.deployment.deploy.deploy` tries them)."""

PORTABLE = ("tflm-cmsis-nn", "tflm-reference", "float-reference")
"""Libraries of every vendor's cores, tried in this order behind what the vendor ships."""


NOT_OFFERED = ("unknown", "float-reference")
"""Runtimes that are not offered: no library of that name exists."""


def choose_runtime(graph: Graph, name: str | None, board: Board) -> tuple[Runtime, tuple[str, ...]]:
    """Return the runtime asked for, or the default one with what must be said of it.

    Raises
    ------
    RuntimeRefusedError
        When it or its version is not known, the chip cannot have it, or no runtime runs a layer.
    """
    check_layers(graph)
    if name and name != DEFAULT:
        runtime, settled = settle_release(name, board)
        check_part(runtime, board)
        check_batch(graph, runtime)
        return check_types(graph, runtime), (*settled, *_note_foreign(runtime, board))
    runtime = check_types(graph, default_runtime(graph, board))
    check_batch(graph, runtime)
    return runtime, (*note_float_island(graph, runtime), *_note_default(graph, runtime, board))


def settle_release(name: str, board: Board) -> tuple[Runtime, tuple[str, ...]]:
    """Return the release a name without a version means on a board, and say so where it matters."""
    runtime, where = newest_release(name, board)
    if not where:
        return runtime, note_builds(runtime, board) if name == runtime.name else ()
    others = ", ".join(one.removeprefix(name) for one in list_releases(name)
                       if one != runtime.identity and "-" not in one.removeprefix(name))
    return runtime, (
        f"runtime: {name} is taken as {runtime.identity}, its newest release {where}; others may "
        f"be faster: {others}",)


def newest_release(name: str, board: Board) -> tuple[Runtime, str]:
    """Return the release a name without a version means on a board; what it is newest of, or "".

    Notes
    -----
    The newest build that was measured on the board, else the newest release whose instructions were
    counted, else the newest measured on the core, as built by default, else the file's default.
    """
    runtime = load_runtime(name)
    if "@" in name or name.partition("@")[0] != runtime.name:
        return runtime, ""
    near = list_near(runtime.name, board)
    here = any(row.board == board.measured_name for row in near)
    counted = "" if here else find_counted(runtime.name)
    if not (counted or near):
        return runtime, ""
    newest = counted or max(
        near, key=lambda row: locate(row.board, row.core, row.runtime).release).runtime
    newest = newest if here else default_build(newest)
    if newest == runtime.identity:
        return runtime, ""
    return load_runtime(newest), (
        "whose instructions were counted" if counted else
        f"measured on {board.name if here else f'a {board.core.model}'}")


def list_near(name: str, board: Board) -> list[Measured]:
    """Return what was measured of a family on a board, else on its core; no accelerator's."""
    rows = [row for row in list_measured() if row.runtime.partition("@")[0] == name]
    return [row for row in rows if row.board == board.measured_name] or [
        row for row in rows if row.core == board.core.model and not load_runtime(name).accelerated]


def note_builds(runtime: Runtime, board: Board) -> tuple[str, ...]:
    """Name the build with CMSIS-NN, where a library's plain C is taken on a core with its DSP."""
    one = f"{runtime.name}@cmsis"
    return (f"runtime: {runtime.name} is taken as {runtime.identity}, plain C; {one} uses the "
            "core's DSP instructions and is predicted to take much less",) * (
        bool(load_isa(board.core.isa).macro) and one in list_runtimes())


def list_releases(name: str) -> list[str]:
    """Return every release and build of a library, oldest first; none of a name that is none."""
    return [one for one in list_runtimes() if one.partition("@")[0] == name]


def find_newest(releases: Iterable[str]) -> str:
    """Return the newest of some releases."""
    return max(releases, key=order_release)


def find_counted(name: str) -> str:
    """Return the newest release of a library whose instructions were counted; "" for none."""
    return next((one for one in reversed(list_releases(name)) if "-" not in one.partition("@")[2]
                 and load_runtime(one).counted), "")


def default_runtime(graph: Graph, board: Board) -> Runtime:
    """Return the library a network gets on a board where none is asked for.

    Notes
    -----
    The first of `list_defaults` that runs the network, a file of one runtime's own that runtime's;
    where none does, the last.
    """
    for runtime in list_made_for(graph)[:1] or list_defaults(board):
        if runs(graph, runtime, board):
            break
    return runtime


def list_defaults(board: Board) -> Iterator[Runtime]:
    """Yield libraries in the order they are tried where none is asked for.

    Notes
    -----
    What the vendor's SDK builds for the chip, by `default_on` of the libraries' files, the longest
    prefix of the chip's name first; TFLite Micro with CMSIS-NN on Arm cores; its reference kernels;
    plain C. Each at the release `newest_release` finds, then at the newest counted one.
    """
    foreign = load_isa(board.core.isa).code.foreign
    for name in (*list_shipped(board.soc), *(name for name in PORTABLE if foreign not in name)):
        runtime = newest_release(name, board)[0]
        if not runtime.accelerated or board.npu is not None:
            yield runtime
            counted = find_counted(name)
            if counted not in ("", runtime.identity):
                yield load_runtime(counted)


def list_made_for(graph: Graph) -> list[Runtime]:
    """Return the libraries that state they run files of the network's kind, best first.

    Notes
    -----
    Integers between float layers are no reason for kernels of integers: only what computes is.
    Code of a compiler is run by its own runtime.
    """
    if code := next((traits(layer).code_of for layer in graph.layers if traits(layer).code_of), ""):
        return [load_runtime(code)]
    suffix = PurePath(graph.source).suffix.lower()
    if suffix in ("", ".tflite", ".onnx"):  # of no library alone
        return []
    types = {graph.output(layer).dtype for layer in computing_layers(graph)}
    return sorted((runtime for runtime in map(load_runtime, list_runtimes())
                   if suffix in runtime.files + runtime.default_for),
                  key=lambda runtime: ("int8" in runtime.dtypes) != ("int8" in types))


def portable_runtime(board: Board) -> Runtime:
    """Return the library any network of integers runs on a board's core with."""
    return next(one for one in list_defaults(board) if one.name in PORTABLE)


def list_best(board: Board) -> tuple[str, ...]:
    """Return runtimes measured on a board, or in its maker's parts of its core, best known first.

    One a library: its newest release that was measured; the library with most rows first. An
    accelerator's are known on the measured board only.
    """
    rows = list_measured()
    near = [row for row in rows if row.board == board.measured_name] or [
        row for row in rows
        if row.core == board.core.model and maker_of(row.soc) == maker_of(board.soc)
        and not load_runtime(row.runtime).accelerated]
    libraries = Counter[str]()
    newest: dict[str, Measured] = {}
    for row in near:
        cell = locate(row.board, row.core, row.runtime)
        libraries[cell.library] += row.rows
        known = newest.setdefault(cell.library, row)
        if cell.release > locate(known.board, known.core, known.runtime).release:
            newest[cell.library] = row
    return tuple(newest[library].runtime for library, _ in libraries.most_common())


def _note_default(graph: Graph, runtime: Runtime, board: Board) -> tuple[str, ...]:
    """Say which runtime nobody asked for, what refuses the network, and what else was measured."""
    shipped = list_shipped(board.soc)
    why = f"what {shipped[runtime.name]} builds" if runtime.name in shipped else "the portable one"
    option = locate("", "", runtime.identity).option
    why += f" with option {option}" if option else " by default"
    first = next(iter(list_made_for(graph) or list_defaults(board)))
    refused = "" if runs(graph, first, board) else f"; {first.identity} does not run this network"
    here = {row.runtime for row in list_measured() if row.board == board.measured_name}
    others = [name for name in list_best(board) if name in here and name != runtime.identity
              and runs(graph, load_runtime(name), board)]
    also = f"; also measured on this board: {', '.join(others)}" if others else ""
    return (f"runtime: {runtime.identity}, {why}: none was asked for{refused}{also}",)


def find_compiler(path: str) -> Runtime | None:
    """Return the library whose compiler wrote a file; None for a model."""
    if PurePath(path).suffix not in (".json", ".csv"):
        return None
    return next((runtime for runtime in map(load_runtime, list_compilers())
                 if runtime.compiler.wrote(path)), None)


def compiler_of(name: str) -> Compiler:
    """Return the compiler of a library, whatever stands behind a comma; any, where unknown."""
    from twin.runtimes.compiler import Compiler

    with suppress(RuntimeRefusedError):
        if (found := load_runtime(name.partition(",")[0])).accelerated:
            return found.compiler
    return Compiler()


def note_float_island(graph: Graph, runtime: Runtime) -> tuple[str, ...]:
    """Say which layers of a network of integers compute in float, and what they run on.

    Parameters
    ----------
    runtime
        What `default_runtime` chose.

    Returns
    -------
    tuple of str
        One note, or none where all layers compute in one type.
    """
    floating = float_layers(graph)
    computing = computing_layers(graph)
    if not floating or len(floating) >= len(computing):
        return ()
    shown = ", ".join(f"{layer.index} {layer.op}" for layer in floating[:SHOWN])
    more = f" and {len(floating) - SHOWN} more" if len(floating) > SHOWN else ""
    return (f"runtime: {len(floating)} of {len(computing)} layers compute in float32 ({shown}"
            f"{more}): they run on portable float kernels beside {runtime.identity}, assumed",)


def _is_foreign(runtime: Runtime, board: Board) -> bool:
    """Whether a library is made for other cores: CMSIS-NN off Arm, ESP-NN on it."""
    return load_isa(board.core.isa).code.foreign in runtime.name


def _note_foreign(runtime: Runtime, board: Board) -> tuple[str, ...]:
    return (f"runtime: {runtime.identity} is made for other cores than a {board.core.model}, for "
            "which no vendor ships it: its plain C is predicted",) * _is_foreign(runtime, board)


def _is_had(runtime: Runtime, board: Board) -> bool:
    """Whether the chip of a board can have a library."""
    from twin.runtimes.lowering import list_extensions

    with suppress(RuntimeRefusedError):
        check_part(runtime, board)
        return not runtime.extensions or not {*runtime.extensions}.isdisjoint(
            list_extensions(board.core.isa))
    return False


def list_runnable(board: Board) -> tuple[str, ...]:
    """Return every release of every library the chip of a board can have."""
    return tuple(one for one in list_runtimes() if _is_had(load_runtime(one), board))


def list_each_runtime(board: Board) -> tuple[str, ...]:
    """Return every library a board may have, at the release its name means there.

    Notes
    -----
    A closed library is offered on parts of the makers it was measured on, a library for an
    accelerator where there is one, CMSIS-NN on Arm cores and ESP-NN on others, one that needs
    vectors where the core has them; builds of our own programs are omitted. Best known first.
    """
    names = (one.partition("@")[0] for one in (*list_best(board), *list_runtimes()))
    return tuple(
        settle_release(runtime.name, board)[0].identity
        for runtime in map(load_runtime, dict.fromkeys(names))
        if not (runtime.is_compiled or runtime.files or runtime.name in NOT_OFFERED
                or not _is_had(runtime, board) or list_other_makers(runtime, board)
                or _is_foreign(runtime, board)))
