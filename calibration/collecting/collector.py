"""Collects samples from a board, appends each to its folder as it comes, and loses none.

campaign = Campaign(session, folder=..., board=..., model=..., ...)
campaign.prepare(input_data); campaign.collect(plan)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from calibration.collecting.board_samples import UNITS, Translator, counter_name
from calibration.collecting.clock_check import ClockCheck, check_clock
from calibration.collecting.environment import describe_board, describe_clock, sample_environment
from calibration.collecting.plan import BLOCK_S, Pass, Plan
from calibration.collecting.resumption import count_runs, next_run, read_interrupted
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from calibration.errors import (
    BoardRefusedError,
    BoardRestartedError,
    LinkError,
    LinkResumedError,
    MeasurementError,
)
from calibration.measurement.measurement import (
    RUNS_ASKED,
    Measurement,
    append_samples,
    read_measurement,
    write_measurement,
)
from calibration.measurement.quality import WAITED, wants_more_runs
from calibration.measurement.sample import Header, Sample, check_counts
from hwmodels.frozen import NamedTexts, frozen

MOST_RESTARTS = 5
MOST_IDLE_BLOCKS = 5
LARGEST_INPUT_BYTES = 1 << 26
LEAST_TIMEOUT_S = 5.0
FIRST_RUN_S = 120.0
"""Longest wait for the first inference, of which nothing is known."""


@frozen
class Progress:
    """How far a measurement is; `left_s` is None before the first block."""

    temperature: str
    done: int
    total: int
    left_s: float | None


@dataclass(slots=True, kw_only=True)
class Campaign:
    """A measurement of one image on one board.

    Parameters
    ----------
    session
        Open.
    folder
        Gets a folder per temperature.
    model_layers
        Layers of the model; a board that names one beyond them is refused.
    scales : mapping of str to (str, float)
        Counters derived sample by sample: main counter's name to (name, factor); a virtual board
        turns timer ticks into instructions with it.
    environment
        Added to the header's.
    gauges
        Values that only grow, with their units; their growth over a block, per run, becomes a
        sample `block_<name>` of the block's first run. With runs that warm up: `WAITED` alone.
    resume
        Go on with what the folder has.
    clocked
        Whether the core's clock is that of a board; an emulator's own is omitted from the header.
    on_progress
        Called after each block, with everything collected of the temperature.
    """

    session: Session
    folder: Path
    board: str
    model: str
    runtime: str
    source: str = "twin measure"
    model_sha256: str | None = None
    architecture_id: str | None = None
    model_layers: int | None = None
    placement: NamedTexts = ()
    supply_v: float | None = None
    scales: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    gauges: Callable[[], Mapping[str, tuple[float, str]]] | None = None
    resume: bool = False
    clocked: bool = True
    on_progress: Callable[[Progress], None] = lambda progress: None
    identity: wire.Identity = field(init=False)
    counters: tuple[wire.Counter, ...] = field(init=False)
    clock: ClockCheck | None = field(init=False, default=None)
    mismatches: int = field(init=False, default=0)
    restarts: int = field(init=False, default=0)
    run_s: float = field(init=False, default=0.0)
    _input: bytes = field(init=False, default=b"")
    _translator: Translator = field(init=False)
    _next_sample: int = field(init=False, default=0)
    _next_run: int = field(init=False, default=0)
    _held: list[Sample] = field(init=False, default_factory=list)

    def prepare(self, data: bytes | None = None) -> None:
        """Identify the board, load the input, check the clock.

        Parameters
        ----------
        data
            The model's input; by default seeded noise of the right length.

        Raises
        ------
        MeasurementError
            When the image holds another model, or the input has another length.
        LinkError
            When the board does not answer as it should.
        """
        identity = self.identity = self.session.identify()
        held = identity.model_sha256.hex()
        if self.model_sha256 is not None and held != self.model_sha256:
            raise MeasurementError(
                f"the board runs {identity.model!r} with SHA-256 {held[:12]}..., the model asked "
                f"for has {self.model_sha256[:12]}...; build and flash it: twin firmware build")
        self.counters = self.session.counters()
        layers = tuple(self.session.layer(i).model_layer for i in range(identity.layers))
        if self.model_layers is not None and max(layers, default=0) >= self.model_layers:
            raise MeasurementError(f"the board names layer {max(layers)}; {self.model} has layers "
                                   f"0 to {self.model_layers - 1}")
        self._translator = Translator(counters=self.counters, scales=self.scales, layers=layers)
        if data is None:
            data = np.random.default_rng(0).bytes(min(identity.input_bytes, LARGEST_INPUT_BYTES))
        if len(data) != identity.input_bytes:
            raise MeasurementError(f"the input has {len(data)} bytes; {identity.model} takes "
                                   f"{identity.input_bytes}")
        self._input = data
        self.session.load(data)
        if not identity.has("SIMULATED"):
            self.clock = check_clock(self.session)

    def folder_of(self, temperature: str) -> Path:
        """Folder of the samples of one temperature."""
        return self.folder / temperature

    def header(self, plan: Plan) -> Header:
        """Return the header of a measurement of this plan."""
        identity = self.identity
        clocks = {"cpu": float(identity.cpu_hz) * self.clocked, "timer": float(identity.timer_hz)}
        environment = {
            **describe_board(self.session, identity), "warmup": str(plan.warmup),
            RUNS_ASKED: str(plan.runs),
            "interrupts": "masked" if plan.mask else "counted",
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **describe_clock(self.session, identity, self.clock), **self.environment,
        }
        return Header(
            kind="simulated" if identity.has("SIMULATED") else "measured", model=self.model,
            model_sha256=identity.model_sha256.hex(), architecture_id=self.architecture_id,
            board=self.board, runtime=self.runtime, temperature=plan.temperature,
            clocks_hz=tuple((name, hz) for name, hz in clocks.items() if hz),
            placement=self.placement, supply_v=self.supply_v, source=self.source,
            environment=tuple(environment.items()))

    def collect(self, plan: Plan) -> Measurement:
        """Make the runs of a plan and return what is in its folder.

        Notes
        -----
        KeyboardInterrupt ends the block on the board, saves what it made and goes on upwards.
        """
        folder = self.folder_of(plan.temperature)
        header = self.header(plan)
        there = read_interrupted(folder, header) if self.resume else None
        if there is None:
            write_measurement(folder, Measurement(header=header))
        try:
            self._probe(plan, folder, keep=there is None or not there.samples)
            self._next_run = next_run(there)
            for number, one in enumerate(plan.passes):
                self._collect_pass(plan, one, folder, plan.most_runs if number == 0 else one.runs,
                                   count_runs(there, one, self.counters))
        except KeyboardInterrupt:
            self._rescue(folder)
            raise
        finally:
            append_samples(folder, self._held)  # of a run that never ended
            self._held.clear()
        return read_measurement(folder, growing=True)  # what is missing is known here

    def power_window(self, runs: int, *, layers: bool = False, repeat_layer: int = wire.NO_LAYER,
                     repeat: int = 1, mask: bool = True) -> tuple[float, float]:
        """Make runs for a power meter: the line is silent, the mark pin says when.

        Parameters
        ----------
        layers
            Toggle the mark at every layer instead of holding it over the block.
        repeat_layer, repeat
            Run one entry of the call list many times within each run.
        mask
            Mask interrupts where the board can.

        Returns
        -------
        tuple of float
            When the request went out and the answer came, by the host's monotonic clock, in us;
            both include a trip over the line.

        Raises
        ------
        MeasurementError
            When the board did not make them all.
        """
        flags = wire.CONFIG_FLAGS["MARK_LAYER" if layers else "MARK_RUN"] \
            if self.identity.has("MARK") else 0
        if mask and self.identity.has("MASK"):
            flags |= wire.CONFIG_FLAGS["MASK"]
        self.session.configure(warmup=1, flags=flags, repeat_layer=repeat_layer, repeat=repeat,
                               timeout_s=FIRST_RUN_S)
        self._next_sample = 0
        expected = (runs + 1) * max(self.run_s, 1e-3) * (1 + repeat)
        begin = time.monotonic() * 1e6
        reply = self._make_block(0, runs, LEAST_TIMEOUT_S + 4 * expected, expected)
        end = time.monotonic() * 1e6
        if reply.done < runs:
            raise MeasurementError(f"the board made {reply.done} of {runs} runs of the power "
                                   f"window; it keeps {self.identity.sample_capacity} samples")
        return begin, end

    def _probe(self, plan: Plan, folder: Path, keep: bool) -> None:
        """Make the first inference after set-up: how long runs take, and what a first one costs."""
        while True:
            try:
                self._configure(plan, plan.passes[0], folder, first=True)
                start = time.monotonic()
                self._make_block(0, 1, FIRST_RUN_S)
                self.run_s = time.monotonic() - start
                self._fetch(folder if keep else None, prefix="first_")
                return
            except BoardRestartedError as error:
                self._restart(error)

    def _configure(self, plan: Plan, one: Pass, folder: Path, first: bool = False) -> None:
        reply = self.session.configure(warmup=0 if first else plan.warmup, flags=plan.flags,
                                       events=one.events, timeout_s=FIRST_RUN_S)
        self._next_sample = 0
        self._held.clear()
        overhead = self.session.ask("OVERHEAD", wire.Overhead, (100).to_bytes(4, "little"))
        clock = wire.CLOCKS.get(reply.setup_clock)
        values = {"setup": reply.setup_cycles, "read_overhead": overhead.sum / max(
            overhead.reads, 1)}
        if not first:
            append_samples(folder, [Sample(run=self._next_run, counter=name, clock=clock,
                                           unit=UNITS[clock], value=value)
                                    for name, value in values.items()])

    def _collect_pass(self, plan: Plan, one: Pass, folder: Path, most: int, made: int) -> None:
        """Make the runs of one pass that are not made yet."""
        first = self._next_run - made
        last = first + one.runs
        warmup, configured, idle = plan.warmup, False, 0
        while self._next_run < last:
            before = self._next_run
            try:
                if not configured:
                    self._configure(plan, one, folder)
                    configured = True
                self._collect_block(folder, last, warmup)
            except BoardRestartedError as error:
                self._restart(error)
                warmup, configured = plan.warmup, False
                continue
            warmup, idle = 0, idle + 1 if self._next_run == before else 0
            if idle >= MOST_IDLE_BLOCKS:
                raise LinkError(f"{self.session.link.port}: no whole run came of {idle} blocks; "
                                f"{self._next_run} of {last} came before")
            if self._next_run >= last and last - first < most and self._wants_more(folder):
                last = min(first + most, last + max(one.runs // 2, 1))
            self.on_progress(Progress(temperature=plan.temperature, done=self._next_run,
                                      total=max(last, plan.runs),
                                      left_s=self.run_s * (last - self._next_run)))

    def _collect_block(self, folder: Path, last: int, warmup: int) -> None:
        """Make up to a second of runs."""
        first_run = self._next_run
        runs = max(1, min(last - first_run, int(BLOCK_S / max(self.run_s, 1e-6))))
        append_samples(folder, sample_environment(self.session, self.identity, first_run))
        expected = (runs + warmup) * self.run_s
        before = {name: value for name, value in (self.gauges() if self.gauges else {}).items()
                  if not warmup or name == WAITED}  # runs that warm up count other things
        begin = time.monotonic()
        try:
            reply = self._make_block(first_run, runs, LEAST_TIMEOUT_S + 4 * expected, expected)
            if reply.done:
                spent = time.monotonic() - begin
                self.run_s = 0.7 * self.run_s + 0.3 * spent / (reply.done + warmup)
                self.mismatches = max(self.mismatches, reply.mismatches)
                self._note_gauges(folder, first_run, reply.done + warmup, before)
        except LinkResumedError:
            pass  # what was made meanwhile waits on the board
        self._fetch(folder)

    def _make_block(self, first_run: int, runs: int, timeout_s: float,
                    expected_s: float = 0.0) -> wire.RunReply:
        try:
            return self.session.run(first_run, runs, timeout_s=timeout_s,
                                    expected_s=expected_s or timeout_s / 4)
        except BoardRefusedError as error:
            if error.code == wire.ERRORS["INPUT"]:
                raise BoardRestartedError("the board has lost the input") from error
            raise

    def _fetch(self, folder: Path | None, prefix: str = "") -> None:
        """Append the samples that wait on the board, whole runs at a time; None drops them.

        Notes
        -----
        The checksum of the output is a run's last sample. A board that restarts in the middle of
        a run makes it again: what came of it before is dropped, so that no run is there twice.
        """
        for first, samples in self.session.samples(self._next_sample):
            for sample in samples:
                if sample.layer == wire.LAYER_SETUP:
                    continue
                self._held += self._translator.translate(sample, prefix)
                if self._translator.ends_run(sample):
                    run, self._held = self._held, []
                    check_counts(run, self.session.link.port)
                    if folder is not None:
                        append_samples(folder, run)
                    self._next_run = max(self._next_run, sample.run + 1)
            self._next_sample = first + len(samples)

    def _note_gauges(self, folder: Path, run: int, runs: int,
                     before: Mapping[str, tuple[float, str]]) -> None:
        after = self.gauges() if self.gauges is not None and before else {}
        append_samples(folder, [
            Sample(run=run, counter=f"block_{name}", unit=unit, value=(value - before[name][0])
                   / runs) for name, (value, unit) in after.items() if name in before])

    def _restart(self, error: LinkError) -> None:
        """Bring the input back to a board that forgot everything, as often as it does."""
        while True:
            self.restarts += 1
            if self.restarts > MOST_RESTARTS:
                raise LinkError(f"the board restarted {self.restarts} times: {error}") from error
            try:
                self.session.open()
                found = self.session.identify()
                if found.build_sha256 != self.identity.build_sha256:
                    raise MeasurementError("after a restart the board runs another image")
                if found.unique_id != self.identity.unique_id:
                    raise MeasurementError("after a restart another board is on the line")
                self.session.load(self._input)
                return
            except BoardRestartedError as again:
                error = again

    def _wants_more(self, folder: Path) -> bool:
        measured = read_measurement(folder, growing=True)
        main = counter_name(self.counters[0])
        return bool(measured.count(main)) and wants_more_runs(measured.values(main))

    def _rescue(self, folder: Path) -> None:
        """After an interruption: end the block, keep what was made."""
        try:
            self.session.request("IDLE", timeout_s=LEAST_TIMEOUT_S + 2 * self.run_s)
            self._fetch(folder)
        except LinkError:
            return  # the line is gone too; what was appended stays
