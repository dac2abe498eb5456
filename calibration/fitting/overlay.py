"""Learnt prices as a file: factors on what datasheets state, never an edit of a fact.

An overlay holds one entry per runtime on a board, or for unseen ones: a board of a known core, any
board at all. Each has the logarithm of every factor, their covariance, what the
data could not tell, and how far past predictions were off. The file names the hash of the rows it
was learnt from and the counts they were priced with, so that a stale one is noticed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import SHIPPED, UNSEEN, Estimate
from calibration.fitting.intervals import Band, Basis
from hwmodels.errors import reworded
from hwmodels.file_cache import make_once
from hwmodels.files import LARGEST_YAML_BYTES, DocumentError, parse_yaml, read_regular, write_whole
from hwmodels.frozen import frozen
from hwmodels.isa import read_name

if TYPE_CHECKING:
    import yaml

LARGEST_FACTOR = 1e5
"""No fit goes as far: a factor beyond, or below its inverse, is of a damaged file."""

UNMEASURED = "unmeasured"
"""Name of the file for boards nobody measured."""


class Within:
    """Bounds of a field, for pydantic without importing it: `ge`, `gt`, `lt`, `max_length`."""

    def __init__(self, **bounds: float) -> None:
        self.bounds = bounds

    def __get_pydantic_core_schema__(self, kind: Any, make: Any) -> dict[str, Any]:
        """Return the schema of a type with these bounds."""
        return {**make(kind), **self.bounds}


NotNegative = Annotated[float, Within(ge=0)]
Positive = Annotated[float, Within(gt=0)]
Count = Annotated[int, Within(ge=0)]
STRICT = {"extra": "forbid", "allow_inf_nan": False}
"""How pydantic reads the nouns below, where a file is read for the first time."""


@frozen
class BandModel:
    """How many stated standard deviations an interval reaches; see `intervals.Band`."""

    __pydantic_config__: ClassVar[Any] = STRICT
    down: Positive
    up: Positive
    level: Annotated[float, Within(gt=0, lt=1)]
    basis: Basis
    count: Count

    def band(self) -> Band:
        """Return it as the noun intervals are made with."""
        return Band(**asdict(self))


STRAINED = 2.5
"""Stated standard deviations from which a learnt price is not believed to be one: assumed."""


SAME_SD = 0.25
"""Share by which a learnt deviation may differ from its prior's and counts as kept: assumed."""

TIED, HARDLY, STANDS_IN, KEEPS_PRIOR = (
    "fitted as one with others", "hardly identified", "stands for what no price counts",
    "not identifiable: within its stated sd")
"""Why a learnt price is no finding."""


@frozen
class Learnt:
    """Factors on stated prices, in the order of the overlay's names.

    `log` are logarithms of the factors; `covariance` is the lower triangle, row by row;
    `prior_sd` what was stated before; `network_sd` and `row_sd` what no price explains, of a
    network and of a row; `tied` prices fitted as one, as no row asks for one of their own;
    `between_sd` the least a network is known to that was not among the rows, `fitting.between`.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    log: tuple[float, ...]
    covariance: tuple[float, ...]
    prior_sd: tuple[Positive, ...]
    network_sd: NotNegative
    row_sd: NotNegative
    band: BandModel
    rows: Count = 0
    effective_parameters: NotNegative = 0.0
    rank: Count = 0
    condition: NotNegative = 0.0
    unidentified: tuple[str, ...] = ()
    confused: tuple[tuple[str, str], ...] = ()
    tied: tuple[str, ...] = ()
    residuals: Mapping[str, float] = field(default_factory=dict)
    between_sd: NotNegative = 0.0

    def __post_init__(self) -> None:
        """Check what one field says of another."""
        count = len(self.log)
        limit = math.log(LARGEST_FACTOR)
        if any(abs(one) > limit for one in self.log):
            raise ValueError(f"log of a factor is {max(self.log, key=abs):g}; accepted: "
                             f"-{limit:.3g} to {limit:.3g}")
        if len(self.covariance) != count * (count + 1) // 2 or len(self.prior_sd) != count:
            raise ValueError(f"{count} factors need {count * (count + 1) // 2} covariances and "
                             f"{count} prior_sd")
        if np.linalg.eigvalsh(self.matrix()).min() < -1e-6:
            raise ValueError("covariance is not one: it has a negative variance")

    def strained(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the prices learnt further from what is stated than `STRAINED` deviations.

        Such a price stands for something no price counts: it makes totals right, and is no
        finding about what it is named after.
        """
        return tuple(name for name, log, sd in zip(names, self.log, self.prior_sd, strict=True)
                     if abs(log) > STRAINED * sd)

    def unmoved(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the unidentified prices within one prior deviation of 1 and about as unsure."""
        learnt = np.sqrt(np.diag(self.matrix()))
        return tuple(name for name, log, sd, now in zip(names, self.log, self.prior_sd, learnt,
                                                        strict=True)
                     if name in self.unidentified and abs(log) <= sd
                     and math.isclose(now, sd, rel_tol=SAME_SD))

    def doubtful(self, names: Sequence[str]) -> dict[str, str]:
        """Return the prices that are no findings, and why: what they cost is not what was learnt.

        A price is a finding when rows tell it from all others, and no further from what is stated
        than its uncertainty allows.
        """
        confused = {name: f"known as a sum with {other}" for pair in self.confused
                    for name, other in (pair, pair[::-1])}
        return (dict.fromkeys(self.unidentified, HARDLY) | dict.fromkeys(self.tied, TIED) | confused
                | dict.fromkeys(self.strained(names), STANDS_IN)
                | dict.fromkeys(self.unmoved(names), KEEPS_PRIOR))

    def matrix(self) -> np.ndarray:
        """Return the covariance, shape (names, names)."""
        count = len(self.log)
        full = np.zeros((count, count))
        full[np.tril_indices(count)] = self.covariance
        return full + np.tril(full, -1).T

    def estimate(self, names: tuple[str, ...]) -> Estimate:
        """Return log factors and covariance under their names."""
        return Estimate(names=names, log=np.array(self.log), covariance=self.matrix(),
                        prior_covariance=np.diag(np.array(self.prior_sd) ** 2))


@frozen
class Support:
    """What was measured: outside it a prediction extrapolates."""

    __pydantic_config__: ClassVar[Any] = STRICT
    networks: tuple[str, ...] = ()
    clocks_hz: tuple[Positive, ...] = ()
    supplies_v: tuple[Positive, ...] = ()
    arenas: tuple[str, ...] = ()
    cycles: tuple[Positive, Positive] | None = None
    boards: tuple[str, ...] = ()


@frozen
class Entry:
    """Prices of one board under one runtime; null stands for a board, or a core, not measured.

    `powers_of` says whose the energy prices are where no row of the entry measured energy.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    board: str | None
    core: str | None
    runtime: str
    time: Learnt
    energy: Learnt | None = None
    support: Support
    powers_of: str = ""

    @property
    def powers_are_own(self) -> bool:
        """Whether energy was measured on this board, not on others."""
        return self.board is not None and self.powers_of in ("", self.board)


FORMER = re.compile(r"^ +publisher(_factor)?: .*", re.MULTILINE)
"""Keys of entries that files written until 2026-12-01 have, which change no price."""

DOUBTED, CONTRADICTING = "doubted", "contradicting"
DOUBTS = {DOUBTED: "powers were learnt from an energy that can hardly be right",
          CONTRADICTING: "it was learnt from measurements that contradict each other"}
"""Among kinds of measurements: what was learnt from all the same."""


@frozen
class Data:
    """What an overlay was learnt from; `kinds` and `contents` (hashes) are of its measurements."""

    __pydantic_config__: ClassVar[Any] = STRICT
    sha256: Annotated[str, Within(min_length=64, max_length=64)]
    rows: Count
    energy_rows: Count = 0
    use: str
    kinds: tuple[str, ...] = ("published",)
    sources: tuple[str, ...]
    contents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the hash is one."""
        if set(self.sha256) - set("0123456789abcdef"):
            raise ValueError(f"sha256 is {self.sha256!r}; accepted: 64 digits 0 to f")


@frozen
class Overlay:
    """A calibration file; `operators` is how well its rows know each, `intervals.remaining_sd`.

    `powers` are energy prices by board, else by regulator, else "": those of any runtime whose
    firmware was not measured there.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    schema: Literal[1] = 1
    kind: Literal["calibration"] = "calibration"
    library: str
    made_with: Mapping[str, str]
    data: Data
    spread: Mapping[str, NotNegative] = field(default_factory=dict)
    energy_spread: Mapping[str, NotNegative] = field(default_factory=dict)
    time_prices: tuple[str, ...]
    energy_prices: tuple[str, ...]
    operators: Mapping[str, NotNegative] = field(default_factory=dict)
    powers: Mapping[str, Learnt] = field(default_factory=dict)
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        """Check that every entry has all prices."""
        for entry in self.entries:
            if len(entry.time.log) != len(self.time_prices):
                raise ValueError(f"entry {entry.board}, {entry.runtime}: "
                                 f"{len(self.time_prices)} time prices are expected")
            if entry.energy and len(entry.energy.log) != len(self.energy_prices):
                raise ValueError(f"entry {entry.board}, {entry.runtime}: "
                                 f"{len(self.energy_prices)} energy prices are expected")


def doubt_powers(overlay: Overlay, sd: float) -> Overlay:
    """Return an overlay whose own powers are unsure by a standard deviation more (logarithm)."""
    entries = tuple(one if one.energy is None or one.powers_of else replace(one, energy=replace(
        one.energy, row_sd=float(f"{math.hypot(one.energy.row_sd, sd):.6g}")))
        for one in overlay.entries)
    return mark_doubt(replace(overlay, entries=entries), DOUBTED)


def mark_doubt(overlay: Overlay, kind: str) -> Overlay:
    """Return an overlay whose data say that one of `DOUBTS` was learnt from."""
    return replace(overlay, data=replace(overlay.data, kinds=(*overlay.data.kinds, kind)))


def find_entry(overlay: Overlay, *, board: str, core: str, runtime: str) -> Entry | None:
    """Return the closest entry: this board and runtime, then what is shared with its family.

    Parameters
    ----------
    overlay
        Of the runtime's library.

    Returns
    -------
    Entry or None
        In order: this board, its core, any; each under this runtime.
    """
    for wanted in ((board, core), (None, core), (None, None)):
        for entry in overlay.entries:
            known = entry.core and read_name(entry.core)
            if (entry.board, known, entry.runtime) == (*wanted, runtime):
                return entry
    return None


def read_overlay(path: str | Path) -> Overlay:
    """Read an overlay file.

    Raises
    ------
    FitError
        When it cannot be read or is refused, naming file and key.
    """
    path = Path(path)
    with reworded(OSError, FitError, f"{path}: cannot be read: "):
        content = read_regular(path, LARGEST_YAML_BYTES)
    return make_once("overlay", path, content, Path(__file__).parent,
                     lambda: _validate(path, content))


def _validate(path: Path, content: bytes) -> Overlay:
    from pydantic import TypeAdapter, ValidationError

    with reworded((DocumentError, UnicodeDecodeError), FitError, f"{path}: cannot be read: "):
        document = parse_yaml(FORMER.sub("", content.decode()))
    if not isinstance(document, dict) or "library" not in document:
        raise FitError(f"{path}: {'is empty' if document is None else 'is no overlay'}; accepted: "
                       "a file of learnt prices that `twin calibrate` wrote")
    try:
        return TypeAdapter(Overlay).validate_python(document)
    except OverflowError as error:
        raise FitError(f"{path}: a number is out of range: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "document"
        raise FitError(f"{path}:{key}: {first['msg']}") from error


def write_overlay(path: str | Path, overlay: Overlay) -> Path:
    """Write an overlay file in one step, so that a stopped run leaves the old one.

    Raises
    ------
    FitError
        When it cannot be written.
    """
    path = Path(path)
    with reworded(OSError, FitError, f"{path}: cannot be written: "):
        write_whole(path, dump_overlay(overlay).encode())
    return path


def dump_overlay(overlay: Overlay) -> str:
    """Write an overlay as YAML; the same overlay gives the same bytes."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Blocks for what has parts, one line for what is a list of numbers or words."""

        def represent_sequence(self, tag: str, sequence: Iterable[object],
                               flow_style: bool | None = None) -> yaml.SequenceNode:
            items = list(sequence)
            flat = all(not isinstance(item, dict) for item in items)
            return super().represent_sequence(tag, items, flow_style=flat)

    return yaml.dump(_plain(overlay), Dumper=Dumper, sort_keys=False, width=100, allow_unicode=True)


def _plain(value: Any) -> Any:
    """Return a noun as lists and mappings, in the order of its fields."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def shipped_path(library: str, board: str | None) -> Path:
    """Return where the overlay of a library on a board is kept; None: boards not measured."""
    return SHIPPED / (library or UNSEEN) / f"{board or UNMEASURED}.yaml"


def list_shipped() -> tuple[Path, ...]:
    """Return the overlay files that come with the package, sorted."""
    return tuple(sorted(SHIPPED.glob("*/*.yaml")))


def read_shipped(library: str, board: str) -> Overlay | None:
    """Return the shipped overlay of a library on a board, or for boards not measured.

    Parameters
    ----------
    library, board
        As in a `Cell`.

    Returns
    -------
    Overlay or None
        None for a library nothing was measured of.
    """
    for name in (board, None):
        path = shipped_path(library, name)
        if path.is_file():
            return _read_once(path)
    return None


_read_once = lru_cache(maxsize=32)(read_overlay)
"""Of shipped files, which do not change: many boards share one of a library."""


def pack_covariance(covariance: np.ndarray) -> tuple[float, ...]:
    """Return the lower triangle, row by row, to six significant digits."""
    return tuple(float(f"{value:.6g}") for value in covariance[np.tril_indices(len(covariance))])
