"""`twin measure --plan`: micro-benchmarks on a board."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.virtual_board import Launched
    from hwmodels.board.facts import Board
    from twin.image.compile.ports import Port
    from twin.learning.portability.measuring import Job

HOST = "host"
RUNS = 5
MOST_RUNS = 50


def measure_plan(text: str, board: Board | None, *, port: str | None, virtual: str | None,
                 image: str | None, runs: int | None, baud: int, output: str | None,
                 supply: float | None, power: int | None) -> None:
    """Run the micro-benchmarks of a plan and say what they found.

    Parameters
    ----------
    text : str
        Of --plan.
    board : Board or None
        The machine; None is the host.
    port, virtual, image, baud, supply, power
        As `twin measure` takes them.
    runs : int or None
        Runs of the list; None: a few, since a probe hardly varies.
    output : str or None
        Folder.
    """
    from calibration.collecting.link import find_port
    from calibration.microbench.machine import describe_machine
    from twin.learning.portability.measuring import FOLDER, build_job, prepare_job, run_job
    from twin.learning.portability.plan_file import read_plan
    from twin.learning.portability.stated import state_memories
    from twin.reports.tables.microbench import machine_report

    if runs is not None and runs > MOST_RUNS:
        raise UsageError(f"--runs {runs}; accepted with --plan: up to {MOST_RUNS}")
    plan = read_plan(text)
    if plan.board is not None and board is not None and plan.board != board.name:
        raise UsageError(f"{text}: is for {plan.board}, -b says {board.name}")
    job = prepare_job(plan, board, _find_port(board, virtual))
    folder = Path(output) if output else (
        Path("out") / "measurements" / f"probes-{job.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        if virtual is None:
            build_job(job, folder / "firmware")
            warn([f"the board must hold {folder / 'firmware' / 'firmware.elf'}; flash it first"])
        with _launch(job, virtual, image, folder) as made:
            line = made.port if made is not None else find_port(port)
            measured = run_job(
                job, line, folder, baud=baud, runs=runs or RUNS, made=made, supply_v=supply,
                power_runs=power or 0, on_event=lambda event: warn([event]))
    except BaseException:
        if folder.is_dir():
            note_written(f"{folder}, as far as it came")
        raise
    found = describe_machine(measured, str(folder))
    show(open_console(), machine_report(found, job.name,
                                        None if board is None else state_memories(board)))
    note_written(folder / FOLDER)


def _find_port(board: Board | None, virtual: str | None) -> Port:
    from twin.image.compile.ports import choose_port, load_port

    if virtual is not None or board is None:
        return load_port(virtual or HOST)
    return choose_port(board, None)


@contextlib.contextmanager
def _launch(job: Job, virtual: str | None, image: str | None, folder: Path,
            ) -> Iterator[Launched | None]:
    if virtual is None:
        yield None
        return
    from calibration.virtual_board import check_virtual_board, launch
    from twin.learning.portability.measuring import build_job

    check_virtual_board(virtual)
    elf = Path(image) if image is not None else build_job(job, folder / "firmware").image
    with launch(virtual, elf, board=job.board) as made:
        yield made
