"""Random interconnects and streams for the bus oracles: clock ratios, banks, replies."""

from __future__ import annotations

import random

import numpy as np

from hwmodels.bus.interconnect import (
    ARBITRATIONS,
    PACINGS,
    Interconnect,
    Master,
    Slave,
    Stream,
)

CLOCKS_HZ = (100e6, 200e6, 280e6, 150e6, 64e6)


def random_interconnect(rng: random.Random, arbitration: str | None = None) -> Interconnect:
    """A bus of up to five masters and four slaves, half of them all on one clock."""
    clocks = (CLOCKS_HZ[0],) if rng.random() < 0.5 else CLOCKS_HZ
    masters = tuple(Master(
        name=f"m{row}", clock_hz=rng.choice((None, *clocks)), outstanding=rng.choice((1, 1, 2, 4)),
        pacing=rng.choice(tuple(PACINGS)))
        for row in range(rng.randint(1, 5)))
    slaves = tuple(Slave(
        name=f"s{row}", latency_cycles=rng.choice((0, 0, 1, 2.5, 6)),
        beat_cycles=rng.choice((1, 1, 2, 0.5, 1.5)),
        pipeline_cycles=rng.choice((0, 0, 2, 3)),
        banks=rng.choice((1, 1, 2)), clock_hz=rng.choice((None, *clocks)))
        for row in range(rng.randint(1, 4)))
    return Interconnect(clock_hz=rng.choice(clocks), masters=masters, slaves=slaves,
                        arbitration=arbitration or rng.choice(tuple(ARBITRATIONS)))


def random_streams(rng: random.Random, interconnect: Interconnect,
                   bursts: int = 25) -> list[Stream]:
    """Streams of up to `bursts` bursts."""
    draw = np.random.default_rng(rng.randrange(1 << 32))
    streams: list[Stream] = []
    for master in interconnect.masters:
        count = rng.randint(1, bursts)
        slave = draw.integers(0, len(interconnect.slaves), count)
        banks = np.array([part.banks for part in interconnect.slaves])[slave]
        think = draw.integers(0, rng.choice((1, 4, 20)), count)
        if master.pacing == "clock":
            think = np.cumsum(think)
        streams.append(Stream(
            master=master.name, slave=slave, bank=draw.integers(0, banks),
            beats=draw.integers(1, 9, count), think_cycles=think))
    rng.shuffle(streams)
    return streams
