"""Which kernels of a runtime are used: no SIMD, direct convolutions, another compiler level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwmodels.board.facts import Board
from hwmodels.errors import check_known, check_word
from hwmodels.isa import EXTENSIONS, load_isa
from twin.errors import NotApplicableError, UsageError
from twin.runtimes import Built, Runtime, list_runtimes, load_runtime

KERNEL_PATHS = (
    ("kernels.extension", ", ".join(EXTENSIONS),
     "code the kernels are built with: plain C, packed 16-bit multiplies, vectors of Helium, the "
     "ESP32-S3 or the ESP32-P4"),
    ("kernels.convolution", "im2col, direct",
     "windows are copied to columns and multiplied, or read where they are by portable kernels"),
    ("kernels.level", "Os, O2, O3, clang-Os, clang-O2, clang-O3",
     "compiler and level the kernels are built with, of runtimes whose builds were counted"),
    ("kernels.tile", "1, 2, 4, 8, 16, 32, 8x8, 16x16, 32x32",
     "windows the firmware's own convolution copies before it multiplies them, or the square of "
     "outputs a direct convolution computes channel by channel"),
)
"""Name, accepted values, what it changes."""


TILES = ("1", "2", "4", "8", "16", "32")
"""Windows our own convolution may copy at a time."""

SQUARES = ("8x8", "16x16", "32x32")
"""Output positions a direct convolution may compute channel by channel."""


def without_extension(isa: str, extension: str) -> str:
    """Return the instruction set code is built for when it may use no more than an extension."""
    return load_isa(isa).without.get(extension, isa)


def choose_kernels(asked: Mapping[str, str], runtime: Runtime,
                   board: Board) -> tuple[Runtime, str | None]:
    """Return a runtime with other kernels, and the extension they are built with.

    Parameters
    ----------
    asked
        Paths of `KERNEL_PATHS`.
    board
        Whose core runs them.

    Raises
    ------
    UsageError
        For a path or a value that does not exist.
    NotApplicableError
        When the runtime or the core has no such kernels, with the reason.
    """
    for name in asked:
        check_known("no such path", name, [path for path, *_ in KERNEL_PATHS], UsageError)
    if "kernels.level" in asked:
        runtime = _choose_level(runtime, asked["kernels.level"].strip())
    if "kernels.convolution" in asked:
        runtime = _choose_convolution(runtime, asked["kernels.convolution"].strip().lower())
    if "kernels.tile" in asked:
        runtime = _choose_tile(runtime, asked["kernels.tile"].strip())
    return runtime, None if "kernels.extension" not in asked else _choose_extension(
        runtime, board, asked["kernels.extension"].strip().lower())


def take_built(runtime: Runtime, files: Sequence[str], *, compiler: str, port: str) -> Runtime:
    """Return our firmware with images that are there already; parameters are those of `Built`."""
    return replace(runtime, built=Built(compiler=compiler, port=port, files=tuple(files)))


def list_levels(runtime: Runtime) -> dict[str, str]:
    """Return compiler levels a runtime's kernels were counted or are built at, and whose they are.

    Of runtimes that differ in nothing else.
    """
    same = [name for name in list_runtimes() if name.partition("@")[0] == runtime.name]
    if runtime.is_compiled:
        return {name.partition("@")[2]: name for name in same}
    if runtime.counted is None:
        return {}
    release = runtime.version.partition("-")[0]
    found = {}
    for name in same:
        other = load_runtime(name)
        if other.counted is not None and other.version.partition("-")[0] == release:
            found[other.counted[1]] = name
    return found


def _choose_level(runtime: Runtime, level: str) -> Runtime:
    levels = {name.lower(): identity for name, identity in list_levels(runtime).items()}
    if not levels:
        raise NotApplicableError(
            f"kernels.level={level}: {runtime.identity} was counted at one level only; accepted "
            "with firmware, tflm-cmsis-nn@2026 or tflm-reference@2026")
    wanted = level.lower().removeprefix("gcc-").removeprefix("-")
    if wanted not in levels:
        raise NotApplicableError(f"kernels.level={level}: {runtime.name} was not counted at it; "
                                 f"accepted: {', '.join(list_levels(runtime))}")
    return load_runtime(levels[wanted])


def _choose_tile(runtime: Runtime, tile: str) -> Runtime:
    if tile in SQUARES:
        if runtime.library != "reference" and not runtime.direct_convolutions:
            raise NotApplicableError(f"kernels.tile={tile}: {runtime.identity} copies windows; "
                                     "accepted with tflm-reference or kernels.convolution=direct")
        return replace(runtime, tile_outputs=int(tile.partition("x")[0]))
    check_word("kernels.tile:", tile, (*TILES, *SQUARES), UsageError)
    if not runtime.is_compiled:
        raise NotApplicableError(f"kernels.tile={tile}: {runtime.identity} is not built here: its "
                                 "tiles are those of its sources; accepted with firmware")
    return replace(runtime, tile_windows=int(tile))


def _choose_convolution(runtime: Runtime, how: str) -> Runtime:
    path = f"kernels.convolution={how}"
    check_word("kernels.convolution:", how, ("im2col", "direct"), UsageError)
    direct, reads_in_place = how == "direct", runtime.library == "reference"
    if runtime.is_compiled and direct:
        raise NotApplicableError(f"{path}: the firmware's convolutions copy windows to columns; "
                                 "there is no other")
    if reads_in_place and not direct:
        raise NotApplicableError(f"{path}: {runtime.identity} reads windows where they are; "
                                 "accepted with a runtime of CMSIS-NN's kernels")
    if runtime.is_compiled or reads_in_place:
        return runtime
    if direct and runtime.structure != "open":
        raise NotApplicableError(f"{path}: which convolutions {runtime.identity} has is not known; "
                                 "accepted with tflm-cmsis-nn or cmsis-nn")
    return replace(runtime, direct_convolutions=direct)


def _choose_extension(runtime: Runtime, board: Board, extension: str) -> str:
    able = load_isa(board.core.isa).extensions
    check_word(f"kernels.extension: the {board.core.model} of {board.name} cannot run", extension,
               able, NotApplicableError if extension in EXTENSIONS else UsageError)
    if runtime.is_compiled and extension != able[0]:
        raise NotApplicableError(
            f"kernels.extension={extension}: the firmware is built for all its core can run; "
            "accepted with a runtime of kernels that are lowered or counted")
    return extension
