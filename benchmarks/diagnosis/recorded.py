"""What a real image does, layer by layer, counted once: any hand's costs price it afterwards."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from benchmarks.diagnosis.timing import KINDS, count_kinds
from benchmarks.oracles.recording import LayerRecord, record_inference
from calibration.virtual_board.costs import SCALE, Span, costs_of
from calibration.virtual_board.image_file import read_image
from hwmodels.board.facts import Board
from hwmodels.frozen import entity
from hwmodels.program.listing import Listing
from twin.network.graph import Graph
from twin.program.image.compile.verification import random_input

OTHER = 1 << 31
"""Waits for other memories than flash are counted in multiples of this, in the same word."""

EVENTS = ("flash", "other", "write_backs", "fills", "fetched_words", "direct")
"""Lines filled or arrays read from flash; the like of other memories, or accesses that wait there;
dirty lines that left; lines of code filled; words of code fetched past the cache; loads from flash
that no cache holds, whether or not they read its array."""


@entity
class Work:
    """One warm inference of an image.

    Parameters
    ----------
    layers : tuple of int
        In the model file.
    kinds : numpy.ndarray
        Shape (layers, kinds): instructions.
    events : numpy.ndarray
        Shape (layers, events).
    """

    layers: tuple[int, ...]
    kinds: np.ndarray
    events: np.ndarray


def record_work(port: str, image: Path, graph: Graph, board: Board) -> Work:
    """Run an image with the caches of a board and count what each layer of a warm inference does.

    Parameters
    ----------
    port : str
        Emulated core.
    image : path
        Built for it.
    graph : Graph
        The network.
    board : Board
        Its caches and memories.
    """
    costs = costs_of(board)
    counting = dataclasses.replace(
        costs, core=None, write_back_cycles=0.0,
        spans=tuple(_count_span(span, flash=memory.role == "flash") for span, memory in zip(
            costs.spans, board.memories, strict=True)))
    data = random_input(graph).tobytes()
    records = record_inference(port, image, data, costs=counting, warmup=1, room=1)
    texts = Texts(image)
    direct = [0] * len(records)
    if counting.data is None:
        unlatched = dataclasses.replace(counting, spans=tuple(
            dataclasses.replace(span, buffer_bytes=0) for span in counting.spans))
        direct = [record.stalls[0] % OTHER for record in record_inference(
            port, image, data, costs=unlatched, warmup=1, room=1)]
    events = np.array([(*_events(record), loads)
                       for record, loads in zip(records, direct, strict=True)])
    return Work(layers=tuple(record.index for record in records),
                kinds=np.array([_kinds(record, texts) for record in records]), events=events)


def save_work(path: Path, work: Work) -> None:
    """Keep what was counted in a file."""
    np.savez(path, layers=work.layers, kinds=work.kinds, events=work.events)


def load_work(path: Path) -> Work:
    """Read what `save_work` kept."""
    with np.load(path) as kept:
        return Work(layers=tuple(kept["layers"].tolist()), kinds=kept["kinds"],
                    events=kept["events"])


def _count_span(span: Span, *, flash: bool) -> Span:
    """Make each wait of a span one, in the word of flash or in that of the others."""
    one = (1 if flash else OTHER) / SCALE
    return dataclasses.replace(
        span, read_miss_cycles=one, write_miss_cycles=one, read_cycles=one * bool(span.read_cycles),
        write_cycles=one * bool(span.write_cycles), fetch_miss_cycles=0.0, fetch_cycles=1 / SCALE,
        fetch_bytes=0)


def _events(record: LayerRecord) -> tuple[float, ...]:
    data, code = record.stalls
    return (data % OTHER, data // OTHER, record.totals.write_backs, record.totals.fetch_misses,
            code)


def _kinds(record: LayerRecord, texts: Texts) -> np.ndarray:
    total = np.zeros(len(KINDS))
    for (address, size), times in record.blocks.items():
        total += times * count_kinds(texts.text(address, size))
    total[KINDS.index("taken")] = sum(record.taken.values())
    return total


class Texts:
    """The instructions of an image's blocks."""

    def __init__(self, image: Path) -> None:
        self.listing = Listing(machine="arm")
        self.pieces = read_image(image).pieces

    def text(self, address: int, size: int) -> str:
        """Return the assembly of a block."""
        for base, data in self.pieces:
            if base <= address < base + len(data):
                return self.listing.text(address, data[address - base:address - base + size])
        return ""
