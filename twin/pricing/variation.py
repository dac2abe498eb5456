"""What configurations of a batch vary in: what-if paths and learnt factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hwmodels.errors import check_known
from hwmodels.frozen import entity, record
from hwmodels.paths.timing import Floats
from twin.errors import UsageError
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES

LEARNT = "learnt"
"""First part of a path of a learnt factor: learnt.time.memory, learnt.energy.leakage."""


@entity
class Variation:
    """Values of what-if paths and of learnt factors, one of each a configuration.

    Parameters
    ----------
    paths
        As `Deployment.replace` takes them; every sequence as long as `rows`.
    time, energy : mapping of str to ndarray of float, (rows,)
        By price: what the stated price is multiplied by, in place of what was learnt.
    """

    rows: int
    paths: Mapping[str, Sequence[Any]]
    time: Mapping[str, Floats] = field(default_factory=dict)
    energy: Mapping[str, Floats] = field(default_factory=dict)


def read_variation(vary: Mapping[str, ArrayLike]) -> Variation:
    """Sort what is varied into what-if paths and learnt factors.

    Parameters
    ----------
    vary
        Dotted path to as many values as there are configurations; a single value holds in all.

    Raises
    ------
    UsageError
        For sequences of different length, a learnt price that is none, or a factor that is not
        above zero.
    """
    if not hasattr(vary, "items"):  # as a data frame has them, too
        raise UsageError(f"vary: {type(vary).__name__}; accepted: a mapping of paths to values, "
                         'such as {"clocks.cpu.frequency_hz": [80e6, 120e6]}')
    columns = {name: _column(name, values) for name, values in vary.items()}
    lengths = {name: len(values) for name, values in columns.items()
               if not isinstance(values, _Same)}
    rows = max(lengths.values(), default=1)
    for name, length in lengths.items():
        if length != rows:
            raise UsageError(f"vary {name}: {length} values where others have {rows}; accepted: "
                             f"{rows} values, or a single one")
    paths: dict[str, Sequence[Any]] = {}
    factors: dict[str, dict[str, Floats]] = {"time": {}, "energy": {}}
    for name, values in columns.items():
        spread = [values.value] * rows if isinstance(values, _Same) else values
        if name.partition(".")[0] == LEARNT:
            kind, price = _read_price(name)
            factors[kind][price] = _read_factors(name, spread)
        else:
            paths[name] = spread
    return Variation(rows=rows, paths=paths, **factors)


@record
class _Same:
    """One value of all configurations."""

    value: Any


def _column(name: str, values: Any) -> Sequence[Any] | _Same:
    if isinstance(values, Iterator):
        raise UsageError(f"vary {name}: {type(values).__name__}; accepted: a list or an array, or "
                         "a single value")
    if isinstance(values, (str, bytes)) or not np.ndim(values):
        return _Same(values)
    column = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not column or isinstance(column[0], (list, tuple, dict)):
        raise UsageError(f"vary {name}: {'no' if not column else 'nested'} values; accepted: one "
                         "value for each configuration")
    return column


def _read_price(name: str) -> tuple[str, str]:
    known = {f"{LEARNT}.{kind}.{price}": (kind, price)
             for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES))
             for price in prices}
    check_known("vary: no learnt price", name, known, UsageError)
    return known[name]


def _read_factors(name: str, values: Sequence[Any]) -> Floats:
    try:
        factors = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"vary {name}: {values[0]!r}; accepted: numbers above 0") from error
    bad = ~(np.isfinite(factors) & (factors > 0))
    if bad.any():
        raise UsageError(f"vary {name}: {factors[bad][0]:g}; accepted: numbers above 0")
    return factors
