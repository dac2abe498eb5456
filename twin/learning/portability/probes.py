"""Micro-benchmarks for a board: the probes of each, and the file that plans them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from calibration.microbench.probes import MAC_REPEATS, TAIL_BYTES, Probe, Rooms
from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.errors import check_known, reworded
from hwmodels.files import DocumentError, JsonObject, check_keys, read_yaml, write_whole
from hwmodels.frozen import frozen, list_fields
from twin.errors import UsageError
from twin.pricing.roofs import mac_loop

ALL = "all"
"""Name of every micro-benchmark a board can make."""

POWER = "power"
"""Name of the one that is long enough for a meter; not among all, since without one it shows
nothing."""

STEP_S = 0.05
"""How much longer a step of power is with many laps: many samples of any meter."""

ROOM_BYTES = 256 * 1024
"""Most of one memory that is accessed: four times the largest cache of these parts, and nine lines
of one set of a cache of 16 KiB a way."""

HARNESS_BYTES = 28 * 1024
"""RAM left beside the room: stack, line buffers, samples of the longest list."""

CODE_BYTES = 72 * 1024
"""Flash left beside the room: the firmware, and the slide of code with what aligns it."""

FINEST, COARSE = 8, 64
STRIDES = (16, 32, 128)
CHASED_BYTES = 65536
SETTLING = 8
SET_LINES = (1, 2, 3, 4, 5, 8, 9, 16, 17)
"""Lines of one set that are asked for, as far as the room goes."""

HOST_BYTES = 32 * 1024 * 1024
HOST_STEP = 64
HOST_LAPS = 200
"""Times as many laps as on a microcontroller: a timer of nanoseconds, and a busy machine."""

FETCHED = tuple(size for power in range(8, 16) for size in (1 << power, 3 << power - 1)
                if size <= 32768)
DTYPES = ("int8", "int16", "float32")
DOT_BYTES = 1024


@frozen
class Benchmark:
    """A micro-benchmark.

    Parameters
    ----------
    name
        "latency:flash", "bandwidth:sram", "fetch", "mac:int8", "kernel", "control".
    """

    name: str
    probes: tuple[Probe, ...]


def list_benchmarks(board: Board | None, rooms: Rooms) -> tuple[Benchmark, ...]:
    """Return every micro-benchmark a machine can make.

    Parameters
    ----------
    board
        Gives the instruction set; None is the host.
    rooms
        Memories that can be accessed, with how much of each.
    """
    found, scale = [], 1 if board is not None else HOST_LAPS
    loop = Probe(group="loop", few=200 * scale, many=1200 * scale)
    for name, size in rooms.sizes.items():
        writable = name != rooms.weights or name == rooms.arena
        latency = _latency(name, size, hosted=board is None)
        bandwidth = _bandwidth(name, size, writable, scale)
        found += [Benchmark(name=f"latency:{name}", probes=latency),
                  Benchmark(name=f"bandwidth:{name}", probes=bandwidth)]
    found.append(Benchmark(name="fetch", probes=tuple(
        Probe(group="fetch", memory=rooms.code, extent_bytes=size, few=2 * scale,
              many=(2 + max(4, 16384 // size)) * scale) for size in FETCHED)))
    if board is not None:
        for dtype in DTYPES:
            code = mac_loop(board.core.isa, dtype, bool(board.core.fpu))
            if code is not None:
                macs = schedule(code, load_core(board.core.model)).mac_lanes * MAC_REPEATS
                found.append(Benchmark(name=f"mac:{dtype}", probes=(loop, Probe(
                    group="mac", dtype=dtype, code=code, macs=macs, few=16, many=272))))
    found.append(Benchmark(name="kernel", probes=(
        Probe(group="dot", memory=rooms.arena, extent_bytes=DOT_BYTES, macs=DOT_BYTES,
              few=4 * scale, many=68 * scale),)))
    found.append(Benchmark(name="control", probes=(loop, *(
        replace(loop, group=group) for group in ("branch", "call")))))
    if board is not None:
        found.append(Benchmark(name=POWER, probes=_power(board, rooms, found)))
    return tuple(found)


def choose_benchmarks(names: Iterable[str], board: Board | None, rooms: Rooms,
                      ) -> tuple[Benchmark, ...]:
    """Return micro-benchmarks by name; `ALL` is all of them.

    Raises
    ------
    UsageError
        For a name there is not.
    """
    known = {one.name: one for one in list_benchmarks(board, rooms)}
    names = tuple(names)
    if ALL in names:
        return tuple(one for name, one in known.items() if name != POWER or POWER in names)
    for name in names:
        check_known("no micro-benchmark", name, (*known, ALL), UsageError)
    return tuple(known[name] for name in dict.fromkeys(names))


def find_rooms(board: Board | None, *, own_map: bool = False) -> Rooms:
    """Return what of a machine's memories micro-benchmarks may access.

    Parameters
    ----------
    board
        The board; None is the host.
    own_map
        Whether what the image runs on has a map of its own, with two memories, not the board's.
    """
    if board is None:
        return Rooms(weights="ram", arena="ram", code="ram", sizes={"ram": HOST_BYTES})
    if own_map:
        return Rooms(weights="weights", arena="arena", code="code",
                     sizes={"weights": ROOM_BYTES, "arena": ROOM_BYTES})
    placement = dict(board.placement)
    weights, arena, code = (placement[name] for name in ("weights", "arena", "code"))
    taken = {arena: HARNESS_BYTES + TAIL_BYTES}
    taken[code] = taken.get(code, 0) + CODE_BYTES
    sizes = {}
    for memory in board.memories:
        linked = memory.name in (weights, arena)
        if not linked and memory.role in (*FLASH_ROLES, "npu_ram", "external_ram"):
            continue  # not ours to write, or not set up unless the image uses it
        size = _power_below(min(ROOM_BYTES, memory.size_bytes - taken.get(memory.name, 0)))
        if size >= 2 * DOT_BYTES:
            sizes[memory.name] = size
    return Rooms(weights=weights, arena=arena, code=code, sizes=sizes)


def _power_below(size_bytes: int) -> int:
    return 1 << (size_bytes.bit_length() - 1) if size_bytes > 0 else 0


def _latency(memory: str, size: int, *, hosted: bool) -> tuple[Probe, ...]:
    """Dependent loads: by extent, by stride at the largest, and lines of one set."""
    if hosted:
        return tuple(_repeat("shuffled", memory, extent, HOST_STEP, 1 << 18)
                     for extent in _doubled(4096, size))
    most = min(size, CHASED_BYTES)
    found = [_repeat("chase", memory, extent, stride, 4096) for stride in (FINEST, COARSE)
             for extent in _doubled(2 * stride, most)]
    found += [_repeat("chase", memory, most, stride, 1024) for stride in STRIDES]
    apart = min(16384, _power_below(size // SET_LINES[5]))
    return (*found, *(_repeat("conflict", memory, lines * apart, apart, 512)
                      for lines in SET_LINES if lines * apart <= size))


def _power(board: Board, rooms: Rooms, found: Iterable[Benchmark]) -> tuple[Probe, ...]:
    """Do the same as elsewhere for `STEP_S`: compute, load, wait for the weights, loop."""
    hertz = board.core_clock.frequency_hz
    chosen = [("loop", 8.0), ("mac", 1.0), ("read", 0.5), ("chase", 12.0)]
    steps = []
    for group, cycles in chosen:
        memory = {"read": rooms.arena, "chase": rooms.weights}.get(group, "")
        probe = next((probe for one in found for probe in one.probes if probe.group == group
                      and probe.memory == memory and probe.dtype in ("", "int8")), None)
        if probe is None:
            continue
        if group == "chase":  # beyond any cache of these parts
            probe = replace(probe, extent_bytes=min(CHASED_BYTES, rooms.sizes[memory]),
                            stride_bytes=COARSE)
        laps = max(round(STEP_S * hertz / (probe.units * cycles)), 1)
        steps.append(replace(probe, few=max(laps // 5, 1), many=max(laps // 5, 1) + laps))
    return tuple(steps)


def _repeat(group: str, memory: str, extent: int, stride: int, steps: int) -> Probe:
    """Return a chase of at least so many steps, after as many laps that settle a cache.

    A cache that evicts at random takes several laps to hold what it can.
    """
    laps = max(1 if group == "shuffled" else SETTLING, steps * stride // extent)
    return Probe(group=group, memory=memory, extent_bytes=extent, stride_bytes=stride, few=laps,
                 many=2 * laps)


def _doubled(first: int, last: int) -> tuple[int, ...]:
    return tuple(first << power for power in range(last.bit_length()) if first << power <= last)


def _bandwidth(memory: str, size: int, writable: bool, scale: int) -> tuple[Probe, ...]:
    groups = ("read", "write") if writable else ("read",)
    return tuple(Probe(group=group, memory=memory, extent_bytes=extent, few=2 * scale,
                       many=(2 + max(2, 8192 // extent)) * scale) for group in groups
                 for extent in dict.fromkeys((min(1024, size), min(CHASED_BYTES, size))))


SCHEMA = 1
_KEYS = ("schema", "board", "benchmarks", "runtime", "model", "expected")


@frozen
class PlanFile:
    """Micro-benchmarks to run.

    Parameters
    ----------
    board
        Name or file of the board; None where none is asked for.
    benchmarks
        By name, as `twin.learning.portability.probes` has them.
    runtime, model
        Whose prediction they are to narrow.
    expected
        What they are expected to do, for people.
    """

    board: str | None
    benchmarks: tuple[str, ...]
    runtime: str | None = None
    model: str | None = None
    expected: str = ""


def write_plan(path: str | Path, plan: PlanFile) -> Path:
    """Write a plan.

    Raises
    ------
    UsageError
        When it cannot be written.
    """
    import yaml

    path = Path(path)
    document: JsonObject = {"schema": SCHEMA, **list_fields(plan),
                            "benchmarks": list(plan.benchmarks)}
    with reworded(OSError, UsageError, f"{path}: cannot be written (", ")"):
        write_whole(path, yaml.safe_dump(
            {key: value for key, value in document.items() if value},
            sort_keys=False, allow_unicode=True).encode())
    return path


def read_plan(text: str) -> PlanFile:
    """Read a plan: a file, or names of micro-benchmarks by comma.

    Parameters
    ----------
    text
        Path of a YAML file, or "latency:flash,mac:int8", or "all".

    Raises
    ------
    UsageError
        Naming the file and the key that will not do.
    """
    if not text.endswith((".yaml", ".yml")) and not Path(text).exists():
        asked = tuple(name.strip() for name in text.split(",") if name.strip())
        if not asked:
            raise UsageError(f"--plan {text!r} names nothing; accepted: a file of `twin plan`, "
                             "names such as latency:flash,mac:int8, or all")
        return PlanFile(board=None, benchmarks=asked)
    with reworded(DocumentError, UsageError, f"{text}: cannot be read (", ")"):
        document = read_yaml(text)
    if not isinstance(document, Mapping):
        raise UsageError(f"{text}: is not a plan; accepted: what `twin plan -o` writes")
    check_keys(f"{text}:", document, _KEYS, UsageError)
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{text}:schema: is {document.get('schema')!r}; accepted: {SCHEMA}")
    names = document.get("benchmarks")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"{text}:benchmarks: is {names!r}; accepted: a list of names")
    for key in ("board", "runtime", "model", "expected"):
        if not isinstance(document.get(key, ""), str):
            raise UsageError(f"{text}:{key}: is {document[key]!r}; accepted: text")
    return PlanFile(board=document.get("board"), benchmarks=tuple(names),
                    runtime=document.get("runtime"), model=document.get("model"),
                    expected=document.get("expected", ""))
