"""A network as C files: model.c, its weights, and for a board the memory map."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hwmodels.drafts import renewed_files
from hwmodels.frozen import entity
from twin.deployment.memories import align
from twin.deployment.placement import Placement, plan_placement
from twin.errors import FirmwareError, RuntimeRefusedError
from twin.network.arithmetic.requantisation import single
from twin.network.graph import Graph, Layer, Shape, Tensor
from twin.network.operators import is_alias, list_states, traits
from twin.program.image.compile.calls import Site, emit_layer
from twin.program.image.compile.plan import FIRMWARE, Image, lay_out_constants
from twin.runtimes import load_runtime

TEXT_MODELS = {"ic": 1, "kws": 2, "vww": 3, "ad": 4, "sww": 5}
"""Numbers of MLPerf Tiny's benchmarks on the wire."""

_TEXT_SHAPES: dict[tuple[Shape, Shape], str] = {
    ((1, 32, 32, 3), (1, 10)): "ic", ((1, 49, 10, 1), (1, 12)): "kws",
    ((1, 96, 96, 3), (1, 2)): "vww", ((1, 640), (1, 640)): "ad",
    ((1, 30, 1, 40), (1, 3)): "sww",
}

_IMAGES = ("ic", "vww")
"""Benchmarks whose input comes as unsigned bytes."""


@entity
class Source:
    """A network as C.

    Parameters
    ----------
    model_c
        Text of model.c, with `@BUILD@` and `@COMPILER@` where the build fills in.
    placement
        The arena plan.
    input_room_bytes
        RAM of the copy of the input that every run starts from.
    """

    model_c: str
    image: Image
    placement: Placement
    input_room_bytes: int
    kernels: str = "own"


def generate_source(graph: Graph, isa: str, *, kernels: str = "own", tile: int = 2) -> Source:
    """Write a network as C.

    Parameters
    ----------
    graph
        int8 or float32, one input and one output.
    isa
        Instruction set, which CMSIS-NN's scratch depends on.
    kernels
        One of `twin.program.image.compile.plan.KERNELS`.
    tile
        Windows our own int8 convolution copies before it multiplies them.

    Raises
    ------
    RuntimeRefusedError
        When the firmware has no kernel for a layer, or the network several inputs or outputs.
    """
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or list_states(graph):
        raise RuntimeRefusedError(f"{graph.source}: {len(graph.inputs)} inputs, "
                                  f"{len(graph.outputs)} outputs, {len(list_states(graph))} "
                                  "states; the firmware runs networks of one input, one output, "
                                  "no state")
    runtime = load_runtime("cmsis-nn") if kernels == "cmsis-nn" else replace(
        FIRMWARE, tile_windows=tile)
    placement = plan_placement(graph, runtime, isa)
    image = lay_out_constants(graph, placement, kernels=kernels, isa=isa)
    positions = [i for i, layer in enumerate(graph.layers) if not is_alias(layer)]
    layers = "\n".join(
        emit_layer(Site(graph, graph.layers[position], placement=placement, image=image,
                        position=position)) for position in positions)
    text = _text_fields(graph)
    parts = [
        _HEAD.format(source=_one_line(graph.source), layers=len(positions),
                     arena=placement.arena_bytes,
                     room=graph.entry.size_bytes,
                     samples=_text_array(text), scratch=_scratch(graph, placement, kernels)),
        layers, "\n", _call_list(graph, placement, positions),
        _description(graph, placement, image, text, kernels),
    ]
    return Source(model_c="".join(parts), image=image, placement=placement, kernels=kernels,
                  input_room_bytes=count_input_room(graph))


def count_input_room(graph: Graph) -> int:
    """Bytes of RAM of the input's copies: as the layers read it, and as text mode sends floats."""
    text = _text_fields(graph)
    return graph.entry.size_bytes + (text["bytes"] if text["floats"] else 0)


OBSOLETE = ("memory.ld", "linker.ld", "firmware.map")
"""Files that not every build has."""


@contextmanager
def draft_build(folder: str | Path, within: Path | None = None) -> Iterator[Path]:
    """Give a folder to build in; what is there at the end is moved into `folder`, or nothing is.

    Raises
    ------
    FirmwareError
        When the folder cannot be written.
    """
    try:
        with renewed_files(Path(folder), ".building-", OBSOLETE, within=within) as draft:
            yield draft
    except OSError as error:
        raise FirmwareError(f"{error.filename or folder}: the image cannot be put there "
                            f"({error.strerror})") from error


def write_source(source: Source, folder: Path) -> None:
    """Write model.c, weights.S and weights.bin into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.c").write_text(source.model_c, encoding="utf-8")
    (folder / "weights.bin").write_bytes(source.image.content)
    (folder / "weights.S").write_text(WEIGHTS_S, encoding="utf-8")


def _one_line(text: str) -> str:
    return "".join(c for c in text if " " <= c <= "~" and c not in '"\\*?')


def _quoted(text: str, most: int) -> str:
    """Return a C string of the ASCII part of a text."""
    kept = "".join(c for c in text if " " <= c <= "~" and c not in '"\\?')
    return f'"{kept[:most]}"'


def _scratch(graph: Graph, placement: Placement, kernels: str) -> str:
    """CMSIS-NN's working memory, where its kernels are called."""
    if kernels != "cmsis-nn":
        return ""
    planned = [slot.size_bytes for slot in placement.arena if slot.tensor < 0]
    most = max(*planned, *(_working_bytes(graph, layer) for layer in graph.layers), 16)
    return ("\n/* CMSIS-NN's working memory. */\n"
            f"uint8_t kernels_scratch[{most}] __attribute__((aligned(16)));\n"
            f"const int32_t kernels_scratch_bytes = {most};\nuint32_t kernels_failure;\n")


def _working_bytes(graph: Graph, layer: Layer) -> int:
    """Working memory that any release may ask for: two int16 columns, or four of int8 rounded up.

    Depthwise with MVE takes four blocks of 124 channels. A release that asks for more is noticed on
    the board.
    """
    operator = traits(layer)
    if not operator.is_convolution:
        return 0
    weights = graph.input(layer, 1)
    if not operator.is_depthwise:
        return 4 * align(weights.elements // weights.shape[0], 8)
    taps = weights.rows
    return max(4 * 124 * taps, 2 * weights.elements) + 16


def _text_fields(graph: Graph) -> dict[str, int]:
    """Return what the text mode of the protocol needs to know of the input."""
    data, output = graph.entry, graph.tensors[graph.outputs[0]]
    name = _TEXT_SHAPES.get((data.shape, output.shape), "")
    floats = int(name == "ad" and data.dtype == "int8")
    images = name in _IMAGES and data.dtype == "int8"
    return {"model": TEXT_MODELS.get(name, 0), "floats": floats,
            "bytes": data.elements * 4 if floats else data.size_bytes,
            "subtract": 128 if images else 0}


def _text_array(text: dict[str, int]) -> str:
    if not text["floats"]:
        return ""
    return (f"static uint8_t model_text[{text['bytes']}] __attribute__((aligned(16)));\n")


def _call_list(graph: Graph, placement: Placement, positions: list[int]) -> str:
    rows = []
    for position in positions:
        layer = graph.layers[position]
        slot = placement.slot(layer.target_id)
        assert slot is not None, f"layer {layer.index} has no output in the arena"
        size = graph.output(layer).size_bytes
        rows.append(f"    {{run_{position}, {_quoted(layer.op + ' ' + layer.name, 63)}, "
                    f"{slot.offset_bytes}, {size}, {layer.index}}},\n")
    return "static const struct model_layer layers[] = {\n" + "".join(rows) + "};\n\n"


def _scale(tensor: Tensor) -> tuple[float, int]:
    return (0.0, 0) if tensor.dtype == "float32" else single(tensor)


def _description(graph: Graph, placement: Placement, image: Image, text: dict[str, int],
                 kernels: str) -> str:
    data, output = graph.entry, graph.tensors[graph.outputs[0]]
    source, target = placement.slot(graph.inputs[0]), placement.slot(graph.outputs[0])
    if source is None or target is None:
        raise RuntimeRefusedError(f"{graph.source}: its output is a constant")
    (input_scale, input_zero), (output_scale, output_zero) = _scale(data), _scale(output)
    scales = {
        "input_scale": f"{float(input_scale):.9e}f", "output_scale": f"{float(output_scale):.9e}f",
        "input_zero": input_zero, "output_zero": output_zero}
    return describe_model(
        _quoted(graph.name, 31), graph.sha256, placement.arena_bytes,
        (source.offset_bytes, data.size_bytes), (target.offset_bytes, output.size_bytes),
        len(image.content), failure="&kernels_failure" if kernels == "cmsis-nn" else "0",
        text_model=text["model"], text="model_text" if text["floats"] else "model_input",
        text_bytes=text["bytes"], text_subtract=text["subtract"], text_floats=text["floats"],
        **scales)


def describe_model(name: str, sha256: str, arena_bytes: int, source: tuple[int, int],
                   target: tuple[int, int], weights_bytes: int, **further: object) -> str:
    """Write the `struct model` of an image.

    Parameters
    ----------
    sha256
        Of the network or the list of probes.
    arena_bytes, weights_bytes
        Of `model_arena` and `model_weights`.
    source, target : (int, int)
        Offset and bytes of input and output in the arena.
    **further
        Fields behind these.
    """
    digest = ", ".join(f"0x{sha256[i:i + 2]}" for i in range(0, 64, 2))
    fields = {
        "name": name, "layers": "layers", "layer_count": "sizeof layers / sizeof layers[0]",
        "arena": "model_arena", "arena_bytes": arena_bytes, "input_offset": source[0],
        "input_bytes": source[1], "output_offset": target[0], "output_bytes": target[1],
        "input": "model_input", "weights": "model_weights", "weights_bytes": weights_bytes,
        "sha256": f"{{{digest}}}", "build_sha256": "{@BUILD@}", "compiler": '"@COMPILER@"',
        **further}
    rows = "".join(f"    .{field} = {value},\n" for field, value in fields.items())
    return f"const struct model model = {{\n{rows}}};\n"


_HEAD = """\
/* {source}: {layers} calls. Generated by `twin firmware build`. */
#include "kernels.h"
#include "model.h"

extern const uint8_t model_weights[];

static uint8_t model_arena[{arena}] __attribute__((aligned(32), section(".model_arena")));
static uint8_t model_input[{room}] __attribute__((aligned(16)));
{samples}{scratch}
"""

WEIGHTS_S = """\
/* The constants of the model, as one block. Generated by `twin firmware build`. */
    .section .model_weights, "a", %progbits
    .balign 32
    .globl model_weights
model_weights:
    .incbin "weights.bin"
    .balign 16
#if defined(__ELF__) && !defined(__arm__)
    .section .note.GNU-stack, "", %progbits
#endif
"""
