"""A session with a board that is made up: no line, no threads, and a clock that only runs do."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from calibration.collecting.wire import payloads as wire

IDENTITY = wire.Identity(
    core_id=1, cpu_hz=100_000_000, timer_hz=1_000_000, features=0, input_bytes=6, output_bytes=2,
    arena_bytes=64, weights_bytes=32, sample_capacity=400, layers=2, counters=3,
    counters_at_once=1, text_model=0, unique_id=b"u" * 16, model_sha256=b"m" * 32,
    build_sha256=b"b" * 32, port="made port", model="made", compiler="made cc")
COUNTERS = tuple(wire.Counter(id=number, clock=clock, bits=32, name=name) for number, clock, name
                 in ((1, 1, "cycles"), (3, 0, "checksum"), (0x10, 0, "dwt cpi")))


class MadeSession:
    """Writes down what is asked, in order; a run takes `run_s` of a made clock.

    Runs leave the cycles of one layer, those of the whole, and the checksum. `trouble` is what
    the runs asked for raise, one after another, None being no trouble; `leaves` is how many
    samples a troubled block leaves.
    """

    def __init__(self, **identity: object) -> None:
        from dataclasses import replace

        self.identity = replace(IDENTITY, **identity)
        self.link = SimpleNamespace(port="made line")
        self.log: list[tuple[object, ...]] = []
        self.now_s = 100.0
        self.run_s = [0.125]
        self.trouble: list[BaseException | None] = []
        self.reopening: list[BaseException | None] = []
        self.leaves = 0
        self.environment = wire.Environment(temperature_mc=31_500, supply_mv=3_300,
                                            clock_source=1, cpu_hz=1)
        self.overhead = wire.Overhead(reads=100, clock=1, least=4, most=6, sum=500)
        self.mismatches = [0]
        self.most_done = 1000
        self.made: list[wire.RawSample] = []
        self.warmup = 0
        self.value_of = lambda run: 1000 + run

    def runs(self) -> list[tuple[object, ...]]:
        """Blocks asked for: first run and how many."""
        return [entry[1:3] for entry in self.log if entry[0] == "run"]

    def open(self) -> None:
        self.log.append(("open",))
        if self.reopening and (trouble := self.reopening.pop(0)) is not None:
            raise trouble

    def identify(self) -> wire.Identity:
        self.log.append(("identify",))
        return self.identity

    def counters(self) -> tuple[wire.Counter, ...]:
        self.log.append(("counters",))
        return COUNTERS

    def layer(self, index: int) -> wire.Layer:
        return wire.Layer(index=index, model_layer=10 + index, output_offset=0, output_bytes=1,
                          name="")

    def load(self, data: bytes) -> None:
        self.log.append(("load", data))

    def configure(self, **asked: object) -> wire.ConfigReply:
        self.log.append(("configure", asked))
        self.warmup = asked["warmup"]
        self.made = [wire.RawSample(run=0, layer=wire.LAYER_SETUP, counter=0, clock=1, value=7)]
        return wire.ConfigReply(setup_cycles=5000, setup_clock=1, samples_per_run=3)

    def ask(self, name: str, kind: type[wire.Payload], payload: bytes = b"") -> wire.Payload:
        self.log.append((name, payload))
        return {"OVERHEAD": self.overhead, "ENVIRONMENT": self.environment}[name]

    def request(self, name: str, *, timeout_s: float) -> bytes:
        self.log.append((name, timeout_s))
        return b""

    def run(self, first_run: int, runs: int, *, timeout_s: float,
            expected_s: float) -> wire.RunReply:
        self.log.append(("run", first_run, runs, round(timeout_s, 6), round(expected_s, 6)))
        one_s = self.run_s.pop(0) if len(self.run_s) > 1 else self.run_s[0]
        told = self.mismatches.pop(0) if len(self.mismatches) > 1 else self.mismatches[0]
        trouble = self.trouble.pop(0) if self.trouble else None
        done = min(runs, self.most_done)
        self.now_s += one_s * (done + self.warmup)
        self.warmup = 0
        made = [one for run in range(first_run, first_run + done) for one in self.samples_of(run)]
        self.made += made if trouble is None else made[:self.leaves]
        if trouble is not None:
            raise trouble
        return wire.RunReply(first_run=first_run, done=done, samples_next=len(self.made),
                             checksum=1, reserved=0, mismatches=told)

    def samples_of(self, run: int) -> list[wire.RawSample]:
        return [wire.RawSample(run=run, layer=layer, counter=counter, clock=1 - counter,
                               value=max(0, self.value_of(run) + extra))
                for layer, counter, extra in ((1, 0, 0), (wire.LAYER_INFERENCE, 0, 50),
                                              (wire.LAYER_INFERENCE, 1, 9))]

    def samples(self, first: int) -> Iterator[tuple[int, tuple[wire.RawSample, ...]]]:
        self.log.append(("samples", first))
        while first < len(self.made):
            yield first, tuple(self.made[first:first + 5])
            first += 5
