"""What a measurement was made with and in: image, port, host; clock, temperature, supply."""

from __future__ import annotations

import platform

from calibration.collecting.clock_check import ClockCheck
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from calibration.measurement.sample import Sample

CLOCK_SOURCES = {0: "internal oscillator", 1: "crystal", 2: "external"}


def describe_board(session: Session, identity: wire.Identity) -> dict[str, str]:
    """Return what a header says of the image, the board and this machine."""
    return {"firmware_sha256": identity.build_sha256.hex(), "port": identity.port,
            "compiler": identity.compiler, "unique_id": identity.unique_id.hex(),
            "link": session.link.port, "host": platform.platform(),
            "python": platform.python_version()}


def describe_clock(session: Session, identity: wire.Identity,
                   check: ClockCheck | None) -> dict[str, str]:
    """Return what a header says of the clock: held against the host's, and its source."""
    found = {}
    if check is not None:
        found["clock_by_host"] = f"{check.ratio:.5f} +- {check.uncertainty:.5f}"
    if identity.has("ENVIRONMENT"):
        answer = session.ask("ENVIRONMENT", wire.Environment)
        if answer.clock_source != wire.UNKNOWN:
            found["clock_source"] = CLOCK_SOURCES.get(answer.clock_source, str(answer.clock_source))
    return found


def sample_environment(session: Session, identity: wire.Identity, run: int) -> list[Sample]:
    """Return temperature and supply as the board reads them now; none where it reads none."""
    if not identity.has("ENVIRONMENT"):
        return []
    answer = session.ask("ENVIRONMENT", wire.Environment)
    values = (("die_temperature", answer.temperature_mc, 1e-3, "degC"),
              ("supply", answer.supply_mv, 1e-3, "V"))
    return [Sample(run=run, counter=name, value=value * factor, unit=unit)
            for name, value, factor, unit in values if value != wire.UNKNOWN]
