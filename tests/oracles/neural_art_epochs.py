"""Published NPU epochs as the hardware model asks for them: what was compiled, what was measured.

The tables give operations, units, bytes per pool and the compiler's cycles, not how an engine
walks memory, nor what each engine moves. Both are read off the compiler's own columns, never off
measured ones; what they do not tell is taken as contiguous and shared equally.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from calibration.datasets.tables import Cell, read_table, read_yaml
from hwmodels.files import parse_json
from hwmodels.frozen import frozen
from hwmodels.schedule import Link, Task, Transfer, UnitWork

Bursts = tuple[int, int, int, int]

BEAT_BYTES = 8
"""Of the NPU's interfaces and of its RAM pools."""

RAM_BEAT_CYCLES = 1.25
"""NPU cycles of a beat of NPU RAM in the compiler's rule (`freqRatio` of its pools)."""

DOCUMENT = "perlayer/n6_npu_profiler_document.yaml"

DOCUMENT_CHANNELS = 72
"""Of the document's convolution: 64 to 72 on 7 x 7 is its input's bytes, its weights and, with one
operation on half of the outputs, its 453,348 operations."""

FUNCTION_SEGMENTS = 32
"""Most an activation unit is given of a function, by the driver's public source (ll_aton.h)."""

COMPILED = ("mem_accesses_read_write_bytes", "compiler_compute_cycles_npu",
            "compiler_max_cycles_npu")
"""Columns by which a row a page cut off is known again."""


@frozen
class MeasuredEpoch:
    """One epoch of a profiler log.

    Parameters
    ----------
    epoch
        As the compiler's columns describe it.
    compute_cycles, max_cycles
        The compiler's.
    core_npu_cycles
        Measured; None: not reported.
    read_bytes, write_bytes
        Over both interfaces, whole beats.
    read_bursts, write_bursts
        By length, both interfaces.
    active_cycles : tuple of (int, int)
        By stream engine, where counted.
    source
        Of the row.
    """

    epoch: Task
    compute_cycles: int
    max_cycles: int
    core_npu_cycles: int | None
    pre_cpu_cycles: int
    core_cpu_cycles: int
    post_cpu_cycles: int
    read_bytes: int | None
    write_bytes: int | None
    read_bursts: Bursts | None
    write_bursts: Bursts | None
    active_cycles: tuple[tuple[int, int], ...] = ()
    source: str


@frozen
class CompiledEpoch:
    """One epoch of a compiler's report.

    Parameters
    ----------
    epoch
        From bytes, operations and compute cycles; the pool-cycle columns are not read.
    model
        Network and tool version.
    sums_directions
        Whether this version of the tool adds the reads and writes of a pool.
    max_cycles
        The compiler's.
    """

    epoch: Task
    model: str
    sums_directions: bool
    max_cycles: int


def read_measured_epochs() -> tuple[MeasuredEpoch, ...]:
    """Return the epochs of the profiler logs, in order."""
    rows = [dict(row) for row in read_table("n6_epochs").rows]
    for row in rows:
        if row["operations"] is None:
            twin = next(other for other in rows if other["operations"] is not None and all(
                other[key] == row[key] for key in COMPILED))
            row |= {key: twin[key] for key in ("operations", "processor_units", "ops_count")}
    return tuple(_measured(row) for row in rows)


def read_compiled_epochs() -> tuple[CompiledEpoch, ...]:
    """Return the hardware epochs of the compiler's reports that move or compute anything."""
    return tuple(_compiled(row) for row in read_table("n6_compiler_epochs").rows
                 if row["mapping"] == "NODE_HW" and row["max_cycles"])


def read_document_epoch() -> MeasuredEpoch:
    """Return epoch 186 of the profiler's own document.

    Returns
    -------
    MeasuredEpoch
        With the engines, pools and interfaces it lists.

    Notes
    -----
    It lists the bytes of each pool and the buffer of each engine, not the bytes of an engine. Four
    engines of one buffer size feed the four convolution units, a quarter of the buffer each; what
    is left of the pool's bytes are whole passes over the other buffer. Bytes written go to the
    two engines by the size of their buffers.
    """
    document = read_yaml(DOCUMENT)["epoch"]
    compiler, target = document["compiler"], document["target"]
    listed = target["stream_engines"]
    pools = {name: (amount["r"], amount["w"])
             for name, amount in compiler["mem_accesses_bytes"].items()}
    feeding = max(entry["buffer_bytes"] for entry in listed)
    feeders = sum(entry["buffer_bytes"] == feeding for entry in listed)
    engines: list[Transfer] = []
    for entry in listed:
        reads, writes = pools[entry["pool"]]
        size = entry["buffer_bytes"]
        if entry["dir"] == "out":
            moved = writes * size // sum(e["buffer_bytes"] for e in listed if e["dir"] == "out")
        elif size == feeding:
            moved = feeding // feeders
        else:
            moved = reads - feeding if reads > feeding else reads
        engines.append(Transfer(
            channel=entry["id"], direction=entry["dir"], port=f"busif{entry['busif']}",
            pool=entry["pool"], bytes=moved, buffer_bytes=size,
            operand="weights" if entry["pool"] == "octoFlash" else ""))
    loaded = {"ARITH_ACC": DOCUMENT_CHANNELS, "ACTIV_ACC": FUNCTION_SEGMENTS}
    units = [UnitWork(kind=kind, count=n, compute_cycles=compiler["compute_cycles"],
                      coefficients=loaded.get(kind, 0))
             for kind, n in compiler["processor_units"].items() if kind != "STR_ENG"]
    interfaces = [target["busif0"], target["busif1"]]
    reads, writes = (_sum(*(tuple(part[f"{way}burst_count_len_1_2_4_8"]) for part in interfaces))
                     for way in "rw")
    return MeasuredEpoch(
        epoch=Task(name=document["name"], kind="hw", units=tuple(units), transfers=tuple(engines),
                    operations=tuple((name.removeprefix("hw."), n)
                                     for name, n in compiler["operations"].items())),
        compute_cycles=compiler["compute_cycles"], max_cycles=compiler["max_cycles"],
        core_npu_cycles=target["core_npu_cycles"], pre_cpu_cycles=target["mcu_cycles"]["pre"],
        core_cpu_cycles=target["mcu_cycles"]["core"],
        post_cpu_cycles=target["mcu_cycles"]["post"], read_bytes=_moved(reads),
        write_bytes=_moved(writes), read_bursts=reads, write_bursts=writes,
        active_cycles=tuple((entry["id"], entry["active_cycles"]) for entry in listed),
        source=read_yaml(DOCUMENT)["source_page"])


def _compiled(row: Mapping[str, Cell]) -> CompiledEpoch:
    amounts = parse_json(str(row["mem_json"]))
    pools = dict.fromkeys(key.rsplit("_", 1)[0] for key in amounts if key.endswith("s")
                          and not key.endswith("cycles"))
    moved = {pool: (amounts.get(f"{pool}_reads", 0), amounts.get(f"{pool}_writes", 0))
             for pool in pools}
    stride = depthwise_stride(int(row["ops"] or 0), moved)
    engines: list[Transfer] = []
    for pool, both in moved.items():
        for direction, size in zip(("in", "out"), both, strict=True):
            run = 0 if pool == "octoFlash" or not stride else 1 if direction == "in" else stride
            engines.append(Transfer(
                channel=len(engines), direction=direction, port=f"busif{len(engines) % 2}",
                pool=pool, bytes=size, run_bytes=run,
                pattern="channel_interleaved" if run else "contiguous"))
    cycles = int(row["compute_cycles"] or 0)
    units = (UnitWork(kind="CONV_ACC", compute_cycles=cycles),) if cycles else ()
    model = str(row["model"])
    return CompiledEpoch(
        epoch=Task(name=str(row["epoch"]), kind="hw", units=units, transfers=tuple(engines)),
        model=model, sums_directions="(2." in model, max_cycles=int(row["max_cycles"] or 0))


def depthwise_stride(ops: int, moved: Mapping[str, tuple[int, int]]) -> int:
    """Return the stride of an epoch that is a 3 x 3 depthwise convolution, 0 for any other.

    Parameters
    ----------
    ops
        Operations of the epoch; a multiply-accumulate counts as two.
    moved : mapping of str to (int, int)
        Bytes read and written by pool.

    Returns
    -------
    int
        1 or 2; such an epoch walks its input a byte at a time and its output in runs of the
        stride.

    Notes
    -----
    Nine weights a channel; 9 multiply-accumulates and one or two element operations an output,
    computed for every column whatever the stride; reads are stride squared times the writes.
    """
    weights = moved.get("octoFlash", (0, 0))[0]
    rest = [both for pool, both in moved.items() if pool != "octoFlash"]
    if len(rest) != 1 or not weights or weights % 9 or not rest[0][1]:
        return 0
    reads, writes = rest[0]
    for stride in (1, 2):
        extra = ops / writes - 18 * stride
        if extra in (1, 2) and reads == stride * stride * writes:
            return stride
    return 0


def _measured(row: Mapping[str, Cell]) -> MeasuredEpoch:
    name = str(row["epoch"]).split(" ")[0]
    maximum = int(row["compiler_max_cycles_npu"] or 0)
    compute = int(row["compiler_compute_cycles_npu"] or 0)
    bursts = {key: _bursts(row[f"busif{n}_{way}bursts_len1_2_4_8"])
              for n in (0, 1) for way in "rw" for key in [(n, way)]}
    reads, writes = _sum(bursts[0, "r"], bursts[1, "r"]), _sum(bursts[0, "w"], bursts[1, "w"])
    return MeasuredEpoch(
        epoch=_table_epoch(name, row, compute, maximum), compute_cycles=compute,
        max_cycles=maximum, core_npu_cycles=_integer(row["meas_core_npu_cycles"]),
        pre_cpu_cycles=int(row["meas_mcu_cycles_pre"] or 0),
        core_cpu_cycles=int(row["meas_mcu_cycles_core"] or 0),
        post_cpu_cycles=int(row["meas_mcu_cycles_post"] or 0),
        read_bytes=_moved(reads), write_bytes=_moved(writes), read_bursts=reads,
        write_bursts=writes, source=str(row["source"]))


def _integer(cell: Cell) -> int | None:
    return None if cell is None else int(cell)


def _bursts(cell: Cell) -> Bursts | None:
    if cell is None:
        return None
    one, two, four, eight = (int(part) for part in str(cell).split(";"))
    return one, two, four, eight


def _sum(a: Bursts | None, b: Bursts | None) -> Bursts | None:
    if a is None or b is None:
        return None
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


def _moved(bursts: Bursts | None) -> int | None:
    if bursts is None:
        return None
    return BEAT_BYTES * (bursts[0] + 2 * bursts[1] + 4 * bursts[2] + 8 * bursts[3])


def _counts(cell: Cell) -> dict[str, int]:
    """Names and numbers of a cell like "conv:1 add:2"."""
    pairs = (part.rsplit(":", 1) for part in str(cell or "").split())
    return {name: int(number) for name, number in pairs}


def _pool_bytes(cell: Cell) -> dict[str, tuple[int, int]]:
    """Bytes read and written by pool of a cell like "npuRAM5:15/0 npuRAM4:7171/7685"."""
    found = re.findall(r"\b(\w+):(\d+)/(\d+)", str(cell or ""))
    return {pool: (int(reads), int(writes)) for pool, reads, writes in found}


def _table_epoch(name: str, row: Mapping[str, Cell], compute: int, maximum: int) -> Task:
    kind = str(row["epoch_type"]).lower()
    pools = _pool_bytes(row["mem_accesses_read_write_bytes"])
    operations = _counts(row["operations"])
    if kind != "hw":
        return Task(name=name, kind=kind, operations=tuple(operations.items()))
    return _build_epoch(name, operations, _counts(row["processor_units"]), pools, compute, maximum,
                        ops=int(row["ops_count"] or 0))


def _build_epoch(name: str, operations: Mapping[str, int], units: Mapping[str, int],
                 pools: Mapping[str, tuple[int, int]], compute: int, maximum: int, *,
                 ops: int) -> Task:
    """Return an epoch of the profiler's columns: copies side by side, then one chain of units.

    Operations that a page cut off are those of the epoch with the same bytes and cycles.
    """
    copies = sum(n for operation, n in operations.items() if operation.startswith("memcpy"))
    main = next(pool for pool, (_, writes) in pools.items() if writes)
    weights = [(pool, reads) for pool, (reads, _) in pools.items() if pool != main]
    outs = operations["dmaout"] - copies
    ins = operations["dmain"] - copies - len(weights)
    reads, writes = pools[main]
    copied = 0
    if copies:
        bounds = [writes - compute * outs] + ([] if weights else [reads - compute * ins])
        copied = max(0, min([*bounds, reads, writes]))
    scatter = find_scatter(copied, (reads - copied, writes - copied), maximum / RAM_BEAT_CYCLES)
    if not any(scatter) and "memcpy.identity" in operations and (
            copied + (reads - copied) / BEAT_BYTES) * RAM_BEAT_CYCLES <= maximum:
        # A copy of nothing but its layout gathers, as the others do, where the estimate lets it.
        scatter = (True, False, False, False)
    rows = [("in", copied // copies, scatter[0]) for _ in range(copies)]
    rows += [("out", copied // copies, scatter[1]) for _ in range(copies)]
    rows += [("in", (reads - copied) // ins, scatter[2]) for _ in range(ins)]
    rows += [("out", (writes - copied) // outs, scatter[3]) for _ in range(outs)]
    engines = [_engine(index, main, *row) for index, row in enumerate(rows)]
    engines += [Transfer(channel=len(rows) + n, direction="in", port="busif0", pool=pool,
                             bytes=size, operand="weights")
                for n, (pool, size) in enumerate(weights)]
    works = [UnitWork(kind=kind, count=n, compute_cycles=compute)
             for kind, n in units.items() if kind not in ("NULL", "STR_ENG")]
    works.sort(key=lambda work: work.kind != "CONV_ACC")
    if "CONV_ACC" in units and "ARITH_ACC" in units:
        channels = find_channels(ops / max(1, compute) - operations.get("add", 0),
                                 sum(size for _, size in weights))
        biased = next(n for n, work in enumerate(works) if work.kind == "ARITH_ACC")
        works[biased] = replace(works[biased], coefficients=channels)
    links = [Link(f"E{n}", f"E{copies + n}") for n in range(copies)]
    chain = [f"U{n}" for n in range(len(works))]
    links += [Link(f"E{engine.channel}", chain[0]) for engine in engines[2 * copies:]
              if engine.direction == "in"]
    links += [Link(a, b) for a, b in itertools.pairwise(chain)]
    links += [Link(chain[-1], f"E{engine.channel}") for engine in engines[2 * copies:]
              if engine.direction == "out"]
    return Task(name=name, kind="hw", units=tuple(works), transfers=tuple(engines),
                links=tuple(links), operations=tuple(operations.items()))


def find_channels(ops_per_output: float, weights: int) -> int:
    """Return the output channels of a convolution: its weights over those of one output.

    Parameters
    ----------
    ops_per_output
        A multiply-accumulate counts as two.
    """
    taps = round(ops_per_output / 2)
    return round(weights / taps) if taps > 0 else 0


def _engine(index: int, pool: str, direction: str, size: int, scattered: bool) -> Transfer:
    pattern = "channel_interleaved" if scattered else "contiguous"
    return Transfer(channel=index, direction=direction, port=f"busif{index % 2}", pool=pool,
                        bytes=size, pattern=pattern, run_bytes=1 if scattered else 0)


def find_scatter(copied: int, rest: tuple[int, int], beats: float) -> tuple[bool, ...]:
    """Return which streams of an epoch move a byte to a beat.

    Parameters
    ----------
    copied
        Bytes of the layout copies, the same in and out.
    rest
        Other bytes read and written.
    beats
        The compiler's estimate over the cycles of a beat: the longer of the two directions.

    Returns
    -------
    tuple of bool
        Copies in, copies out, others in, others out.

    Notes
    -----
    scattered + (bytes - scattered) / 8 = beats must hold for the direction that sets the
    estimate; writes are tried first. A copy whose writes are in long bursts while others
    scatter must gather on its way in, as it changes the layout.
    """
    for way in (1, 0):
        total = copied + rest[way]
        for copy, other in ((True, False), (False, True), (True, True)):
            scattered = copied * copy + rest[way] * other
            if scattered and abs(scattered + (total - scattered) / BEAT_BYTES - beats) <= 5:
                gathers = way == 1 and bool(copied) and not copy
                return (copy, False, other, False) if way == 0 else (gathers, copy, False, other)
    return False, False, False, False
