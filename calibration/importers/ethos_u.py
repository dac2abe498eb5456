"""Figures of Ethos-U's PMU, as Arm's evaluation kit, the driver's samples and ExecuTorch print.

    INFO - NPU ACTIVE: 48560 cycles                          (or `NPU ACTIVE cycles: 48560`)
    INFO - NPU AXI0_RD_DATA_BEAT_RECEIVED: 7838 beats
    ethosu_pmu_cycle_cntr : 5920305
    Ethos-U PMU Events:[ETHOSU_PMU_EXT0_RD_DATA_BEAT_RECEIVED, ...]

A figure that comes again begins a further run. Counters of the driver's samples have numbers; the
list of events gives their names, and without it they are not known and omitted.

References
----------
ml-embedded-evaluation-kit, docs/sections/run.md; Zephyr, samples/modules/tflite-micro/tflm_ethosu;
ExecuTorch, examples/arm/executor_runner/arm_perf_monitor.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from calibration.importers.log import Log, count, measurement_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.board.facts import Board

EXPECTED = "lines such as `NPU ACTIVE: 48560 cycles` or `ethosu_pmu_cycle_cntr : 48560`"

_KIT = re.compile(r"\bNPU (?:ETHOSU_PMU_)?(?P<name>[A-Z][A-Z0-9_]*)(?: (?:cycles|beats))?: "
                  r"(?P<value>\S+)(?: (?:cycles|beats))?\s*$")
_DRIVER = re.compile(r"\bethosu_pmu_(?P<name>cycle_cntr|cntr\d) : (?P<value>\S+)\s*$")
_HOST = re.compile(r"\bInference runtime: (?P<value>\S+) CPU cycles total\s*$")
_EVENTS = re.compile(r"\bEthos-U PMU Events:\s*\[(?P<names>[^\]]{0,400})\]")
_NEARLY = re.compile(r"\bethosu_pmu_c|\bNPU [A-Z0-9_]+(?: (?:cycles|beats))?:")
_KNOWN = re.compile(r"Profile for |Ethos-U PMU report|CPU cycles|ratio:|NPU Inferences|"
                    "predicted, no device")
_WHOLE = {"active": "npu_active", "idle": "npu_idle", "total": "npu_cycles",
          "npu_active": "npu_active", "npu_idle": "npu_idle", "cycle_cntr": "npu_cycles"}
_SLACK = 16
"""Cycles by which the kit's total, read by itself, may differ from active and idle."""


def recognise(text: str) -> bool:
    """Whether a text has such a line."""
    return any(_KIT.search(line) or _DRIVER.search(line) for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read every figure; inferences are runs.

    Raises
    ------
    MeasurementError
        For a line that is cut, or a total that is not of active and idle cycles.
    """
    runs: list[dict[str, int]] = []
    events: tuple[str, ...] = ()
    for number, line in log.lines():
        if found := _EVENTS.search(line):
            events = tuple(name.strip().removeprefix("ETHOSU_PMU_").lower()
                           for name in found["names"].split(","))
        elif not _take_figure(log, number, line, runs) and not _KNOWN.search(line):
            continue
        log.take(number)
    log.remark_open_end()
    for number, run in enumerate(runs):
        if "npu_cycles" not in run:
            log.lack(f"inference {number} has no total of its cycles")
    log.remarks.append("it does not say how many inferences and figures of each there should be")
    unnamed = {name for run in runs for name in run
               if name.startswith("cntr") and int(name[4:]) >= len(events)}
    if unnamed:
        log.remarks.append(f"no list of events names {', '.join(sorted(unnamed))}: omitted")
    if any("cpu_cycles" in run for run in runs):
        log.remarks.append("CPU cycles of a fast model are no time of a core")
    return measurement_of(log, [
        _sample(number, _name(name, events), value) for number, run in enumerate(runs)
        for name, value in run.items() if name not in unnamed], runtime="ethos-u-vela",
        kind=log.kind, expected=EXPECTED)


def _take_figure(log: Log, number: int, line: str, runs: list[dict[str, int]]) -> bool:
    """Add the figure of a line to the runs; whether it has one."""
    match = _KIT.search(line) or _DRIVER.search(line) or _HOST.search(line)
    if not match:
        if _NEARLY.search(line):
            raise log.refuse(number, f"{line.strip()[:60]!r} is cut or damaged; expected "
                                     f"{EXPECTED}")
        return False
    name = match.groupdict().get("name", "cpu_cycles").lower()
    name = _WHOLE.get(name, name)
    if not runs or name in runs[-1]:
        runs.append({})
    runs[-1][name] = count(match["value"], log, number)
    if name == "npu_cycles":
        _check_total(log, number, runs[-1])
    return True


def _name(name: str, events: tuple[str, ...]) -> str:
    """Return a counter's name; a numbered one has its event's."""
    named = events[int(name[4:])] if name.startswith("cntr") else name
    return _WHOLE.get(named, named)


def _sample(run: int, name: str, value: int) -> Sample:
    cycles = not name.endswith(("received", "written"))
    return Sample(run=run, counter=name, value=value, unit="cycles" if cycles else "beats",
                  clock=("cpu" if name == "cpu_cycles" else "npu") if cycles else None)


def _check_total(log: Log, number: int, run: dict[str, int]) -> None:
    if {"npu_active", "npu_idle"} <= run.keys() and abs(
            run["npu_active"] + run["npu_idle"] - run["npu_cycles"]) > _SLACK:
        raise log.refuse(number, f"{run['npu_active']:,} cycles active and {run['npu_idle']:,} "
                                 f"idle are not {run['npu_cycles']:,}: a counter overflowed, or "
                                 "the line is of another inference")


def find_foreign(names: Iterable[str], board: Board) -> str:
    """Return why counters are not of a board's Ethos-U; "" where they may be.

    Ports of an Ethos-U55 and U65 are AXI0 and AXI1, those of an Ethos-U85 SRAM and EXT.
    """
    npu = board.npu
    if npu is None or npu.family != "ethos-u":
        return f"{board.name} has no Ethos-U"
    recent = npu.config.startswith("ethos-u85")
    odd = sorted(name for name in names if name.startswith("axi" if recent else ("sram_", "ext")))
    ports = "SRAM and EXT" if recent else "AXI0 and AXI1"
    return "" if not odd else (f"{odd[0]} is no counter of the {npu.config} of {board.name}, whose "
                               f"ports are {ports}")
