"""Read an .onnx file: float32, or int8 as quantise-dequantise pairs or QLinear operators.

A float operator whose inputs come from DequantizeLinear and whose output goes to QuantizeLinear
is one integer layer. Images and signals are stored channels last; weights are permuted to match,
and a transpose is kept only where data really has to move.
"""

from __future__ import annotations

from pathlib import Path

from hwmodels.files import MISSHAPEN
from twin.errors import ModelError
from twin.network.graph import Graph
from twin.network.readers.extended import find_converter
from twin.network.readers.onnx_fusion import fuse_nodes, group_nodes
from twin.network.readers.onnx_model import check_shapes, load_onnx
from twin.network.readers.onnx_nodes import OnnxModel
from twin.network.readers.onnx_operators import CONVERTERS, Converter
from twin.network.readers.onnx_quantization import QUANTISING
from twin.network.readers.onnx_reader import OnnxReader
from twin.network.readers.refusal import UnsupportedError, refuse_unknown
from twin.network.readers.verification import verify_graph


def read_onnx(path: str | Path, *, assume_unsupported: str | None = None,
              content: bytes | None = None) -> Graph:
    """Read an .onnx file.

    Parameters
    ----------
    assume_unsupported
        "copy" to keep unknown operators as assumed memory copies.
    content
        What the file would hold, where it is inside another.

    Returns
    -------
    Graph
        In NHWC layout, shapes computed, constants folded.

    Raises
    ------
    ModelError
        Naming file and operator.
    ToolMissingError
        Without the `onnx` extra.

    Notes
    -----
    Batch normalisation is folded into the convolution before it. Weights that are stored
    quantised but used by an operator on float data are read as float32.
    """
    model = load_onnx(str(path), content)
    try:
        graph = _convert(model, assume_unsupported)
    except (ModelError, UnsupportedError):
        raise
    except (*MISSHAPEN, AssertionError) as error:
        raise ModelError(f"{model.path}: cannot be read: {error!r}"[:400]) from None
    return verify_graph(graph)


def _convert(model: OnnxModel, assume_unsupported: str | None) -> Graph:
    fuse_nodes(model)
    groups = group_nodes(model)
    unknown = [f"{number} {group.node.op}" for number, group in enumerate(groups)
               if _find_converter(group.node.op) is None and group.node.op not in QUANTISING]
    refuse_unknown(model.path, unknown, assume_unsupported)
    check_shapes(model)
    reader = OnnxReader(model)
    for number, group in enumerate(groups):
        reader.group = group
        try:
            _add_group(reader)
        except UnsupportedError as refusal:
            unknown.append(f"{number} {group.node.op}{refusal.suffix}")
            reader.add_copy()
        except (KeyError, IndexError, TypeError, ValueError, AssertionError) as error:
            raise ModelError(f"{model.path}: operator {number} {group.node.op} "
                             f"{group.node.name!r}: cannot be read: {error!r}") from None
    refuse_unknown(model.path, unknown, assume_unsupported)
    return reader.finish()


def _find_converter(op: str) -> Converter | None:
    return CONVERTERS.get(op) or find_converter("ONNX", op)


def _add_group(reader: OnnxReader) -> None:
    node = reader.node
    if node.op == "QuantizeLinear":
        reader.add_quantizer()
    elif node.op != "DequantizeLinear":
        # A DequantizeLinear becomes a layer only when somebody reads real numbers.
        converter = _find_converter(node.op)
        if converter is None:
            raise UnsupportedError("")
        places = converter.places or range(len(node.inputs))
        reader.group.quantised = reader.is_quantised(places)
        converter.convert(reader)
