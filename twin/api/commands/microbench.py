"""`twin measure --plan`: micro-benchmarks on a board."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.microbench.machine import Machine, describe_machine
from calibration.virtual_board.costs import Stated, state_memories
from hwmodels.frozen import frozen
from twin.api.commands.claims import CLAIM, claim_folder
from twin.api.commands.measuring import HOST, Watcher, aim, find_machine, launch_virtual
from twin.api.commands.probe_job import FOLDER, Job, build_job, prepare_job, run_job
from twin.api.requests.measurement import MeasureOptions
from twin.errors import UsageError
from twin.learning.portability.probes import read_plan
from twin.program.image.compile.ports import (
    Port,
    choose_port,
    list_ports,
    load_port,
    name_emulators,
)

if TYPE_CHECKING:
    from calibration.measurement.measurement import Measurement
    from hwmodels.board.facts import Board

RUNS = 5
MOST_RUNS = 50


@frozen
class MeasuredMachine:
    """What micro-benchmarks found.

    Parameters
    ----------
    machine : Machine
        Its memories and its core.
    stated : mapping of str to Stated or None
        What the board file says of its memories; None for this machine.
    """

    machine: Machine
    name: str
    stated: Mapping[str, Stated] | None
    folder: Path


def measure_plan(plan: str, board: str, options: MeasureOptions | None = None, *,
                 watcher: Watcher | None = None) -> MeasuredMachine:
    """Run the micro-benchmarks of a plan.

    Parameters
    ----------
    plan : str
        A file of `write_best`, names by comma, or "all".
    board : str
        Name or file of the board, or "host".
    options : MeasureOptions, optional
        As for `measure`.

    Returns
    -------
    MeasuredMachine
        As measured, beside what is stated.

    Raises
    ------
    UsageError
        When the plan is of another board, more is asked for than the list takes, or the folder
        holds a measurement or is another process's.
    """
    options, watcher = aim(board, options), watcher or Watcher()
    if options.resume:
        raise UsageError("--resume needs the -o DIR of a network's measurement")
    machine, runs = find_machine(board, options), options.runs
    if runs is not None and runs > MOST_RUNS:
        raise UsageError(f"--runs {runs}; accepted with --plan: up to {MOST_RUNS}")
    asked = read_plan(plan)
    if asked.board is not None and machine is not None and asked.board != machine.name:
        raise UsageError(f"{plan}: is for {asked.board}, -b says {machine.name}")
    job = prepare_job(asked, machine, _find_port(machine, options.virtual))
    folder = Path(options.output) if options.output else (
        Path("out") / "measurements" / f"probes-{job.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    with claim_folder(folder):
        if (folder / FOLDER / "header.json").exists():
            raise UsageError(f"{folder} holds a measurement, and none is written over; give "
                             "another -o")
        measured = _collect(job, options, folder, watcher)
    return MeasuredMachine(
        machine=describe_machine(measured, str(folder)), name=job.name, folder=folder / FOLDER,
        stated=None if machine is None else state_memories(machine))


def _collect(job: Job, options: MeasureOptions, folder: Path, watcher: Watcher) -> Measurement:
    """Make the runs; where they end early, say what there is."""
    try:
        if options.virtual is None:
            build_job(job, folder / "firmware")
            watcher.remark(f"the board must hold {folder / 'firmware' / 'firmware.elf'}; flash it "
                           "first")
        with launch_virtual(options.virtual, job.board, lambda _: Path(
                options.image or build_job(job, folder / "firmware").image)) as made:
            from calibration.collecting.link import find_port

            line = made.port if made is not None else find_port(options.port)
            return run_job(
                job, line, folder, baud=options.baud, runs=options.runs or RUNS, made=made,
                supply_v=options.supply_v, on_event=watcher.remark,
                power_runs=options.power.runs if options.power else 0)
    except BaseException:
        if {one.name for one in folder.iterdir()} - {CLAIM}:
            watcher.keep(folder, False)
        raise


def _find_port(board: Board | None, virtual: str | None) -> Port:
    if virtual is not None or board is None:
        return load_port(virtual or HOST)
    if board.name not in list_ports():
        raise UsageError(f"{board.name} has no port to build micro-benchmarks for; accepted: a "
                         "folder of its name in firmware/ports (firmware/README.md), or --virtual: "
                         + name_emulators(board))
    return choose_port(board, None)
