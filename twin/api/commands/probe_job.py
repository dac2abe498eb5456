"""Jobs of micro-benchmarks: the probes of a plan on one machine, run there and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from calibration.collecting.collector import Campaign
from calibration.collecting.link import open_link
from calibration.collecting.plan import Pass, Plan
from calibration.collecting.wire.conversation import RETURN_S
from calibration.collecting.wire.session import Session
from calibration.measurement.measurement import Measurement
from calibration.microbench.probes import PROBES_KEY, RUNTIME, Probe, Rooms, pack_probes
from calibration.virtual_board import Launched
from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from twin.errors import UsageError
from twin.learning.portability.probes import PlanFile, choose_benchmarks, find_rooms
from twin.program.image.compile.build import Build
from twin.program.image.compile.microbench import build_probes, hash_probes
from twin.program.image.compile.ports import Port

FOLDER = "warm"
"""Of the samples: every probe repeats what it has just done."""


@frozen
class Job:
    """Micro-benchmarks for one machine.

    Parameters
    ----------
    board
        The machine; None is the host.
    port
        The firmware's port for it.
    rooms
        Memories that are accessed.
    """

    plan: PlanFile
    probes: tuple[Probe, ...]
    board: Board | None
    port: Port
    rooms: Rooms

    @property
    def name(self) -> str:
        """Of the machine."""
        return self.port.name if self.board is None else self.board.name


def prepare_job(plan: PlanFile, board: Board | None, port: Port) -> Job:
    """Return the probes of a plan on a machine.

    Raises
    ------
    UsageError
        When the plan asks for what the machine cannot do, or the port runs other instructions.
    """
    core = port.core or port.isa  # an architecture that is not Arm's names no core
    if board is not None and core != board.core.model:
        raise UsageError(f"port {port.name} is a {core}, {board.name} a "
                         f"{board.core.model}; accepted: a board of that core")
    rooms = find_rooms(board, own_map=port.fixed_map)
    chosen = choose_benchmarks(plan.benchmarks, board, rooms)
    probes = dict.fromkeys(probe for one in chosen for probe in one.probes)
    return Job(plan=plan, probes=tuple(probes), board=board, port=port, rooms=rooms)


def build_job(job: Job, folder: Path) -> Build:
    """Build the image of a job; raises as `build_probes` does."""
    return build_probes(job.probes, job.port, folder, job.rooms, job.board)


def run_job(job: Job, line: str, folder: Path, *, baud: int = 115200, runs: int,
            made: Launched | None, supply_v: float | None = None, power_runs: int = 0,
            on_event: Callable[[str], None] = lambda event: None) -> Measurement:
    """Run a job on a board that holds its image.

    Parameters
    ----------
    job
        From `prepare_job`.
    line
        Serial device, pty or socket.
    folder
        Gets a folder `FOLDER` of samples.
    baud, runs
        Rate of a serial device; runs of the whole list.
    made
        The virtual board behind the line.
    power_runs
        Then so many silent runs, the mark toggled at every probe, for a power meter.
    on_event
        Called on trouble on the line.

    Returns
    -------
    Measurement
        As written to the folder.
    """
    facts = {PROBES_KEY: pack_probes(job.probes), **_purpose(job.plan),
            **(made.environment if made else {})}
    with open_link(line, baud=baud) as link:
        session = Session(link, on_event=on_event, return_s=RETURN_S if made is None else 0.0)
        try:
            session.open(timeout_s=10.0)
            timer_hz = session.identify().timer_hz
            campaign = Campaign(
                session=session, folder=folder, board=job.name, model=RUNTIME, runtime=RUNTIME,
                source="twin measure --plan", model_sha256=hash_probes(job.probes),
                placement=(("weights", job.rooms.weights), ("arena", job.rooms.arena),
                           ("code", job.rooms.code)),
                supply_v=supply_v, environment=facts,
                scales=made.scales(timer_hz) if made and timer_hz else {})
            campaign.prepare()
            measured = campaign.collect(Plan(temperature=FOLDER, warmup=1, most_runs=runs,
                                             passes=(Pass(events=(), runs=runs),)))
            if power_runs:
                begin, end = campaign.power_window(power_runs, layers=True)
                on_event(f"power window: {power_runs} runs in {(end - begin) * 1e-6:.3f} s")
            return measured
        finally:
            session.stop()


def _purpose(plan: PlanFile) -> Mapping[str, str]:
    """Return what the header says of whose prediction is to be narrowed."""
    return {key: value for key, value in (("for_runtime", plan.runtime),
                                          ("for_model", plan.model)) if value}
