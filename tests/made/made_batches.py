"""A row of many predictions beside the prediction it is of."""

from __future__ import annotations

import numpy as np
import pytest


def check_row(batch, row, made) -> None:
    """Demand that a row is a prediction."""
    def close(found, wanted) -> None:
        assert found == pytest.approx(np.nan if wanted is None else wanted, rel=1e-12, abs=1e-12,
                                      nan_ok=True)

    certainty, clock = made.certainty, made.clock
    close(batch.time_us[row], made.time_us)
    close(batch.cycles[row], made.cycles)
    close(batch.energy_uj[row], made.energy_uj)
    intervals = [None, None] if certainty is None else [certainty.time_us, certainty.energy_uj]
    for name, unit, interval in zip(("time", "energy"), ("us", "uj"), intervals, strict=True):
        for end in ("low", "high"):
            close(getattr(batch, f"{name}_{end}_{unit}")[row],
                  None if interval is None else getattr(interval, end))
    assert (batch.ram_bytes[row], batch.flash_bytes[row]) == (made.ram_bytes, made.flash_bytes)
    for column, cause in enumerate(batch.causes):
        close(batch.cause_cycles[row, column], made.bill.cycles(clock, cause))
        close(batch.cause_pj[row, column], made.bill.energy_pj(cause))
    close(np.nansum(batch.cause_us[row]), made.time_us)
    if batch.layers is not None:
        for column, layer in enumerate(made.layers):
            close(batch.layers.time_us[row, column], layer.time_us)
            close(batch.layers.energy_uj[row, column], layer.energy_uj)
            if certainty is None or not certainty.layers:
                continue
            own = certainty.layers[column]
            for name, unit, interval in (("time", "us", own.time_us),
                                         ("energy", "uj", own.energy_uj)):
                for end in ("low", "high"):
                    close(getattr(batch.layers, f"{name}_{end}_{unit}")[row, column],
                          None if interval is None else getattr(interval, end))
        assert np.isnan(batch.layers.time_us[row, len(made.layers):]).all()
