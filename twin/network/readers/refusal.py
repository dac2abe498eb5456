"""Operators a reader does not know: collected, then refused together or kept as copies."""

from __future__ import annotations

from twin.errors import ModelError
from twin.network.graph import Layer


class UnsupportedError(Exception):
    """An operator, or a variant of one, that has no canonical form.

    Parameters
    ----------
    reason : str
        Which variant; empty when the operator is unknown altogether.
    """

    @property
    def suffix(self) -> str:
        """The reason in brackets, to follow the operator's name."""
        return f" ({self})" if str(self) else ""


def copy_layer(inputs: tuple[int, ...], outputs: tuple[int, ...], name: str) -> Layer:
    """Return the assumed memory copy that stands in for an unknown operator."""
    return Layer(index=0, name="", op="copy", inputs=inputs, outputs=outputs,
                 options=(("of", name),), assumed=True)


def refuse_unknown(path: str, unknown: list[str], assume_unsupported: str | None) -> None:
    """Refuse a file with unknown operators unless they may be assumed.

    Raises
    ------
    ModelError
        Listing every unknown operator of the file.
    """
    if unknown and assume_unsupported != "copy":
        raise ModelError(f"{path}: {len(unknown)} operators are not supported: "
                         f"{', '.join(unknown)}; --assume-unsupported copy prices them as "
                         "memory copies")
