"""Access nests as address streams, checked against their operands.

A nest is turned into a small tree of `Repeat` and `Stream`: addresses absolute, empty loops
gone, every stream inside one cache line per iteration. `hwmodels.nest.flattening` flattens that
tree to arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.errors import KernelError, did_you_mean
from hwmodels.frozen import entity, frozen
from hwmodels.kernel import Access, Guard, Nest, Operand, walk_accesses

WIDTHS_BYTES = (1, 2, 4, 8, 16)
"""Bytes one load or store can move."""


@frozen
class Stream:
    """One access of a nest, or the part of it that falls into a further line.

    Parameters
    ----------
    operand
        Position of its operand in the kernel.
    write
        Store or load.
    address
        Absolute address at index zero of every loop around it.
    steps_bytes
        Address step of each loop around it, outermost first.
    guards
        As in the access; all must hold.
    follows
        The access continues: a touch only where the line differs from the stream before.
    """

    operand: int
    write: bool
    address: int
    steps_bytes: tuple[int, ...] = ()
    guards: tuple[Guard, ...] = ()
    follows: bool = False


@entity
class Repeat:
    """A counted loop over streams and inner loops.

    Parameters
    ----------
    extent
        Iterations, at least one.
    body : tuple of Repeat or Stream
        In program order.
    """

    extent: int
    body: Tree


Tree = tuple[Repeat | Stream, ...]


def moves_stream(stream: Stream, depth: int) -> bool:
    """Whether the loop at a depth changes where or whether a stream touches."""
    return bool(stream.steps_bytes[depth]) or any(guard.steps[depth] for guard in stream.guards)


def check_nests(nests: Sequence[Nest], names: Sequence[str]) -> None:
    """Refuse nests that are malformed, or name other operands.

    Raises
    ------
    KernelError
        Naming the access and what would be accepted.
    """
    if len(set(names)) != len(names):
        raise KernelError(f"operand names must be unique; given: {', '.join(names)}")
    for extents, access in walk_accesses(tuple(nests)):
        _check_access(access, extents, names)


def _check_access(access: Access, extents: tuple[int, ...], names: Sequence[str]) -> None:
    """Refuse an access that is malformed."""
    where = f"access to {access.operand!r}"
    if access.operand not in names:
        raise KernelError(f"{where}: no such operand; {did_you_mean(access.operand, names)}")
    if access.width_bytes not in WIDTHS_BYTES:
        raise KernelError(f"{where}: width {access.width_bytes} bytes; accepted: "
                          + ", ".join(map(str, WIDTHS_BYTES)))
    if len(access.steps_bytes) != len(extents):
        raise KernelError(f"{where}: {len(access.steps_bytes)} steps in {len(extents)} loops")
    if any(len(guard.steps) != len(extents) for guard in access.guards):
        raise KernelError(f"{where}: a guard needs {len(extents)} steps, one per loop")
    if any(extent < 0 for extent in extents):
        raise KernelError(f"{where}: a loop extent is negative")


def make_tree(nests: Sequence[Nest], operands: Sequence[Operand], chosen: Sequence[bool],
              line_bytes: int) -> Tree:
    """Turn nests into a tree of streams of the chosen operands.

    Parameters
    ----------
    nests : sequence of Loop or Access
        Checked by `check_nests`.
    chosen
        One per operand: whether its accesses are kept.
    line_bytes
        A power of two.

    Returns
    -------
    tuple of Repeat or Stream
        In program order; loops without streams are gone.
    """
    position = {operand.name: index for index, operand in enumerate(operands)}

    def convert(nest: Nest) -> Tree:
        if isinstance(nest, Access):
            index = position[nest.operand]
            return (_split_access(nest, index, operands[index].address, line_bytes)
                    if chosen[index] else ())
        body = tuple([part for inner in nest.body for part in convert(inner)])
        return (Repeat(extent=nest.extent, body=body),) if body and nest.extent else ()

    return tuple([part for nest in nests for part in convert(nest)])


def _split_access(access: Access, operand: int, base_address: int, line_bytes: int) -> Tree:
    """Make one stream per line an access can touch in one go."""
    address = base_address + access.offset_bytes
    width = access.width_bytes
    aligned = width == 1 or not any([step % width for step in (address, *access.steps_bytes)])
    if aligned and width <= line_bytes:
        return (Stream(operand=operand, write=access.write, address=address,
                       steps_bytes=access.steps_bytes, guards=access.guards),)
    offsets = list(range(0, width, line_bytes))
    if not aligned and width > 1:
        offsets.append(width - 1)
    return tuple(Stream(operand=operand, write=access.write, address=address + offset,
                        steps_bytes=access.steps_bytes, guards=access.guards, follows=offset > 0)
                 for offset in offsets)
