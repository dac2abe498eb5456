"""Operators a reader does not know: collected, then refused together or kept as copies."""

from __future__ import annotations

from twin.errors import ModelError
from twin.network.graph import Layer, TensorIds


class UnsupportedError(Exception):
    """An operator, or a variant of one, that has no canonical form.

    Parameters
    ----------
    reason
        Which variant; empty when the operator is unknown altogether.
    """

    @property
    def suffix(self) -> str:
        """The reason in brackets, to follow the operator's name."""
        return f" ({self})" if str(self) else ""


def copy_layer(inputs: TensorIds, outputs: TensorIds, name: str) -> Layer:
    """Return the assumed memory copy that stands in for an unknown operator."""
    return Layer(index=0, name="", op="copy", inputs=inputs, outputs=outputs,
                 options=(("of", name),), assumed=True)


COMPILED = {"edgetpu-custom-op": ("edgetpu_compiler", "an Edge TPU"),
            "NeutronGraph": ("neutron-converter", "an eIQ Neutron NPU"),
            "XC_": ("xcore-opt", "an xcore.ai")}
"""Compilers by how the names of their own operators begin, and what they compile for."""


def refuse_compiled(path: str, name: str, count: int, whole: int) -> None:
    """Refuse a network some of whose layers are code for another chip.

    Raises
    ------
    ModelError
        Naming the file to bring instead.
    """
    tool, chip = next((COMPILED[own] for own in COMPILED if name.startswith(own)), ("", ""))
    if tool:
        raise ModelError(f"{path}: compiled by {tool} for {chip}: {count} of {whole} operators "
                         f"({name}) are that chip's code, not layers; bring the file that was "
                         f"given to {tool}")


def refuse_unknown(path: str, unknown: list[str], assume_unsupported: str | None) -> None:
    """Refuse a file with unknown operators unless they may be assumed.

    Raises
    ------
    ModelError
        Listing every unknown operator of the file.
    """
    if unknown and assume_unsupported != "copy":
        many = "operator is" if len(unknown) == 1 else "operators are"
        raise ModelError(f"{path}: {len(unknown)} {many} not supported: {', '.join(unknown)}; "
                         "--assume-unsupported copy prices them as memory copies")
