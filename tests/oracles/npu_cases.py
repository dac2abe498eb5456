"""Random epochs on random machines, from a seed."""

import itertools
import random

from hwmodels.board.npu import HandOver, NpuCache
from hwmodels.schedule import Interface, Link, Npu, Pool, Task, Transfer, UnitKind, UnitWork

KINDS = {"CONV_ACC": ("convolution",), "ARITH_ACC": ("arithmetic",), "ACTIV_ACC": ("activation",)}


def make_npu(rng: random.Random) -> Npu:
    """A machine with two interfaces, three pools on the chip and one outside."""
    pools = [Pool(name=f"ram{n}", memory="ram", clock_ratio=rng.choice((1.0, 10 / 9, 1.25, 2.5)),
                  bytes_per_cycle=rng.choice((4, 8)), read_latency_cycles=rng.choice((0, 3, 10.2)),
                  write_latency_cycles=rng.choice((0, 5)), shared=rng.random() < 0.3,
                  serialises=rng.random() < 0.8) for n in range(3)]
    pools.append(Pool(name="flash", memory="flash", external=True, clock_ratio=5.0,
                      wait_event="npu_external_wait", byte_event="npu_external_byte",
                      bytes_per_cycle=2, read_latency_cycles=23, cacheable=True))
    return Npu(
        name="made", family="neural-art", clock="npu", frequency_hz=1e9,
        units=tuple(UnitKind(kind=kind, roles=roles, count=4, macs_per_cycle=(("8x8", 72.0),),
                             fill_cycles=rng.choice((0, 7, 330)))
                    for kind, roles in KINDS.items()),
        engines=10, engine_buffer_bytes=rng.choice((16, 128, 1024)),
        engine_bytes_per_cycle=rng.choice((1, 2, 8)), engine_outstanding=rng.choice((1, 8)),
        interfaces=tuple(Interface(name=f"busif{n}", write_gap_cycles=rng.choice((0, 0.178)))
                         for n in range(2)),
        pools=tuple(pools), start_cycles=rng.choice((0, 950)),
        cache=NpuCache(size_bytes=4096, line_bytes=64, ways=8, enabled=rng.random() < 0.7),
        hand_over=HandOver(clock="cpu", pre_cycles=100, post_cycles=50, pre_engine_cycles=10),
    )


def make_engine(rng: random.Random, index: int, direction: str) -> Transfer:
    """An engine of any pattern and up to 4 KiB."""
    pattern = rng.choice(("contiguous", "strided", "channel_interleaved"))
    pools = ("ram0", "ram1", "ram2", "flash") if direction == "in" else ("ram0", "ram1", "ram2")
    return Transfer(
        channel=index, direction=direction, port=f"busif{rng.randrange(2)}",
        pool=rng.choice(pools), bytes=rng.randrange(1, rng.choice((20, 300, 4096))),
        pattern=pattern, run_bytes=0 if pattern == "contiguous" else rng.choice((1, 2, 24, 100)),
        repeats=rng.choice((1, 1, 3)))


def make_epoch(rng: random.Random) -> Task:
    """Chains side by side: engines in, units one after another, engines out; some only copy."""
    engines, units, links = [], [], []
    for _ in range(rng.randrange(1, 4)):
        ins = [make_engine(rng, len(engines) + n, "in") for n in range(rng.randrange(1, 4))]
        engines += ins
        outs = [make_engine(rng, len(engines) + n, "out") for n in range(rng.randrange(1, 3))]
        engines += outs
        works = [UnitWork(kind=rng.choice([*KINDS]), compute_cycles=rng.choice((0, 5, 400, 5000)),
                          macs=rng.choice((0, 3000))) for _ in range(rng.randrange(0, 3))]
        names = [f"U{len(units) + n}" for n in range(len(works))]
        units += works
        if not names:
            links += [Link(f"E{a.channel}", f"E{b.channel}") for a in ins for b in outs]
            continue
        links += [Link(f"E{a.channel}", rng.choice(names)) for a in ins]
        links += [Link(a, b) for a, b in itertools.pairwise(names)]
        links += [Link(names[-1], f"E{b.channel}") for b in outs]
    return Task(name="made", units=tuple(units), transfers=tuple(engines), links=tuple(links))
