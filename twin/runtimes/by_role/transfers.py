"""How a layer's tensors become transfers: memories, patterns, and the ports they are bound to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from hwmodels.errors import BoardError
from hwmodels.schedule import Npu, Pool, Transfer
from twin.network.graph import Graph, Layer, Tensor
from twin.network.operators import Form, traits
from twin.runtimes.partition import Work


def pool_of(npu: Npu, memory: str, *, beside: str = "") -> Pool:
    """Return the pool in a memory, another one than `beside` where the memory has several.

    Raises
    ------
    BoardError
        When the accelerator reaches no pool in that memory.
    """
    pools = [pool for pool in npu.pools if pool.memory == memory]
    if not pools:
        raise BoardError(f"{npu.name} reaches no pool in memory {memory!r}; it reaches: "
                         + ", ".join(dict.fromkeys(pool.memory for pool in npu.pools)))
    return next((pool for pool in pools if pool.name != beside), pools[0])


def read_activation(tensor: Tensor, pool: str, *, scattered: bool, rows: int = 1) -> Transfer:
    """Return a transfer that reads a tensor; `scattered`: channel by channel, an element at a time.

    Outside the chip the compiler is taken to walk all channels of `rows` rows before the next, so
    that lines of the NPU cache are used up; on it the order is of no account.
    """
    return _activation(tensor, pool, "in", scattered, rows)


def write_activation(tensor: Tensor, pool: str, *, scattered: bool) -> Transfer:
    """Return a transfer that writes a tensor."""
    return _activation(tensor, pool, "out", scattered, 1)


def read_weights(work: Work, pool: str) -> list[Transfer]:
    """Transfers of a layer's weights, one for each unit that needs its own."""
    sizes, unpacked = (_share(size, work.weight_streams) for size in (
        work.weight_bytes, work.unpacked_bytes))
    return [Transfer(channel=0, direction="in", port="", pool=pool, bytes=size,
                     unpacked_bytes=unpacked[place], buffer_bytes=work.weight_bytes,
                     operand="weights") for place, size in enumerate(sizes) if size]


def _share(size_bytes: int, parts: int) -> list[int]:
    share, rest = divmod(size_bytes, max(1, parts))
    return [share + (place < rest) for place in range(parts)]


def stage_weights(work: Work, pool: str) -> list[Transfer]:
    """Return two transfers that bring a layer's weights from a pool to where they are staged."""
    return [Transfer(channel=0, direction=direction, port="", pool=name,
                         bytes=work.weight_bytes, buffer_bytes=work.weight_bytes,
                         operand="weights")
            for direction, name in (("in", pool), ("out", work.staged_in))]


def move_tensors(graph: Graph, layer: Layer, pool: Callable[[int], str]) -> list[Transfer]:
    """Transfers of an operator that only moves data: a pair for each piece it moves.

    Parameters
    ----------
    pool
        Tensor index -> name of its pool.

    Notes
    -----
    A piece is contiguous at its own tensor and walked in runs at the joined, split, padded or
    permuted one; a run is what stays together: the product of the axes from the operator's on.
    """
    inputs = graph.list_data(layer)
    split = len(layer.outputs) > len(inputs)
    transfers = []
    for piece_id in layer.outputs if split else inputs:
        piece = graph.tensors[piece_id]
        resized = traits(layer).form is Form.RESIZE
        moved = graph.output(layer) if resized else piece
        run = _run_bytes(layer, piece)
        whole = run >= moved.size_bytes
        plain = Transfer(channel=0, direction="out" if split else "in", port="",
                             pool=pool(piece_id), bytes=moved.size_bytes,
                             buffer_bytes=piece.size_bytes,
                             operand="output" if split else "input")
        other = replace(plain, direction="in" if split else "out",
                        pool=pool(inputs[0] if split else layer.target_id),
                        operand="input" if split else "output",
                        pattern="contiguous" if whole else "strided",
                        run_bytes=0 if whole else run)
        transfers += [plain, other]
    return transfers


def copy_image(tensor: Tensor, pool: str, *, scattered: bool) -> list[Transfer]:
    """Transfers that copy an input within its pool; `scattered`: written an element a beat."""
    return [read_activation(tensor, pool, scattered=False),
            write_activation(tensor, pool, scattered=scattered)]


def _activation(tensor: Tensor, pool: str, direction: str, scattered: bool, rows: int) -> Transfer:
    element_bytes = tensor.element_bytes
    apart = scattered and tensor.channels > 1
    return Transfer(
        channel=0, direction=direction, port="", pool=pool, bytes=tensor.size_bytes,
        pattern="channel_interleaved" if apart else "contiguous",
        run_bytes=element_bytes if apart else 0,
        stride_bytes=tensor.channels * element_bytes if apart else 0,
        buffer_bytes=tensor.size_bytes,
        window_bytes=rows * math.prod(tensor.shape[-2:]) * element_bytes if apart else 0,
        operand="input" if direction == "in" else "output")


def _run_bytes(layer: Layer, piece: Tensor) -> int:
    """Bytes of a piece that stay side by side in the tensor it is part of."""
    axis, perm = layer.option("axis", len(piece.shape) - 1), layer.option("perm", ())
    if perm:
        kept = 1
        for place in reversed(range(len(piece.shape))):
            if perm[place] != place:
                break
            kept *= piece.shape[place]
        return kept * piece.element_bytes
    # What has no axis keeps a row of channels together: padding, slicing, upsampling.
    return math.prod(piece.shape[axis:]) * piece.element_bytes


def bind_transfers(transfers: Sequence[Transfer], npu: Npu) -> tuple[Transfer, ...]:
    """Give transfers channels and spread them over the ports, the largest first, by beats.

    Reads and writes are channels of their own; those in come before those out, numbered from 0.
    """
    ordered = sorted(transfers, key=lambda one: one.direction == "out")
    load = {(port.name, direction): 0 for port in npu.interfaces for direction in ("in", "out")}
    bound: dict[int, Transfer] = {}
    beats = [_count_beats(one, npu) for one in ordered]
    for place in sorted(range(len(ordered)), key=lambda i: (-beats[i], i)):
        transfer = ordered[place]
        # Those that write go where fewer bytes are read too: the two meet at the memories.
        name = min((port.name for port in npu.interfaces),
                   key=lambda name: (load[name, transfer.direction], load[name, "in"]))
        load[name, transfer.direction] += beats[place]
        bound[place] = replace(transfer, channel=place, port=name)
    return tuple(bound[place] for place in range(len(ordered)))


def _count_beats(transfer: Transfer, npu: Npu) -> int:
    width = npu.interfaces[0].width_bytes
    run = transfer.run_bytes if transfer.pattern != "contiguous" else transfer.bytes
    runs = math.ceil(transfer.bytes / max(1, run))
    return transfer.repeats * runs * math.ceil(max(1, run) / width)
