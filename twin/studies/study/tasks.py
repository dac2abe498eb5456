"""What a study asks, and tasks: configurations predicted together, each by its content address.

A task is cut from the whole study, never from what is left of it, and is predicted by one call:
what a row says does not depend on workers, on their number, or on what was interrupted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from hwmodels.files import JsonObject, hash_files, list_files, names_file
from hwmodels.frozen import frozen
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.studies.axes import Brought, Point, label
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import QUANTITIES, Row, Rows
from twin.studies.study.definition import Asked, Study
from twin.studies.sweep import cut_chunks

MEGABYTE = 1 << 20

MOST = 128
"""Configurations of a task: what a kill may lose of each worker."""

REJECTED = "rejected"
"""Failure of a row that violates a hard limit."""

_PACKAGES = ("twin", "calibration", "hwmodels")

_NOTED = ("numpy", "scipy", "pyarrow", "joblib", "optuna", "SALib", "distributed")
"""Whose versions are noted with results."""


@functools.cache
def identify() -> str:
    """Return the version of the twin, with a hash of all its sources and data."""
    root = str(Path(__file__).parents[3])
    digest = hash_files(root, list_files(root, _PACKAGES, (".py", ".yaml", ".csv", ".json")))
    return f"{version('embedded-twin')}+{digest[:16]}"


def made_with() -> JsonObject:
    """Return versions of the twin, Python and packages, as folders of results note them."""
    return {"twin": identify(), "python": platform.python_version(),
            "machine": platform.machine(), "packages": find_versions(_NOTED)}


def find_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@frozen
class Plan:
    """What all tasks of a study share, as a worker is sent it.

    Parameters
    ----------
    deployer
        The study's.
    hard
        Rows that violate one are rejected.
    models, boards
        What was read from files, by the name the points have: a worker needs no file.
    content
        Hash of each input, by name.
    identity
        `identify()` where the study was started.
    """

    study: str
    deployer: Deployer
    hard: Limits
    models: Mapping[str, Graph] = field(default_factory=dict)
    boards: Mapping[str, Board] = field(default_factory=dict)
    content: Mapping[str, str] = field(default_factory=dict)
    identity: str = ""

    def address(self, asked: Asked) -> str:
        """Return the content address of a configuration: a hash of all its prediction rests on."""
        settings = {name: value.content if isinstance(value, Brought)
                else self.content.get(label(value), label(value))
                for name, value in asked.point.items()}
        document = [sorted(settings.items()), asked.temperature, repr(self.deployer),
                    self.content.get(self.deployer.calibration), self.identity,
                    list(asked.labels), astuple(self.hard)]
        return hashlib.sha256(json.dumps(document).encode()).hexdigest()[:32]


@frozen
class Task:
    """Configurations of one model on one board at one temperature.

    Parameters
    ----------
    asked
        In the order of the study.
    """

    asked: tuple[Asked, ...]
    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """Of all of them together."""
        return hashlib.sha256(" ".join(self.addresses).encode()).hexdigest()[:32]


def make_plan(study: Study) -> Plan:
    """Return what tasks of a study share, with its files read; what cannot be read is omitted."""
    models: dict[str, Graph] = {}
    boards: dict[str, Board] = {}
    content: dict[str, str] = {}
    for axis in study.space.axes:
        for value in axis.values:
            name = label(value)
            try:
                if axis.name == "model":
                    graph = value if isinstance(value, Graph) else read_model(name)
                    content[name] = graph.sha256
                    if isinstance(value, Graph) or names_file(name):
                        models[name] = graph
                elif axis.name == "board":
                    if isinstance(value, Board):
                        content[name] = hashlib.sha256(repr(value).encode()).hexdigest()
                        boards[name] = value
                    elif names_file(name):
                        boards[name] = load_board(name)
                        content[name] = _hash(Path(name))
            except TwinError:
                continue  # A row says why.
    if names_file(calibration := study.deployer.calibration):
        content[calibration] = _hash(Path(calibration))
    content |= {f"{one.name} of {one.model} on {one.board}": one.content for one in study.brought}
    return Plan(study=study.name, deployer=study.deployer, hard=study.hard, models=models,
                boards=boards, content=content, identity=identify())


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def cut_tasks(plan: Plan, asked: Sequence[Asked]) -> tuple[Task, ...]:
    """Return tasks of configurations, in order; each is of one model, board and temperature."""
    found = []
    for temperature in dict.fromkeys(one.temperature for one in asked):
        some = [one for one in asked if one.temperature == temperature]
        begin = 0
        for chunk in cut_chunks([one.point for one in some], MOST):
            part = tuple(some[begin:begin + len(chunk)])
            found.append(Task(asked=part, addresses=tuple(map(plan.address, part))))
            begin += len(chunk)
    return tuple(found)


def compute(plan: Plan, task: Task) -> Rows:
    """Return the rows of a task, rejected where a hard limit is violated."""
    deployer = _deployer(plan, task.asked[0].temperature)
    rows = deployer.predict([_with_inputs(plan, one) for one in task.asked])
    return tuple(_reject(replace(row, inputs=asked.labels,
                                 model=label(asked.point["model"])), plan.hard)
                 for row, asked in zip(rows, task.asked, strict=True))


_DEPLOYERS: dict[tuple[str, str], Deployer] = {}


def _deployer(plan: Plan, temperature: str) -> Deployer:
    """Return the one of this process: a model is read once."""
    key = repr(plan.deployer), temperature
    if key not in _DEPLOYERS:
        _DEPLOYERS[key] = replace(plan.deployer, temperature=temperature)
    return _DEPLOYERS[key]


def _with_inputs(plan: Plan, asked: Asked) -> Point:
    """Return a point with what was read from files in place of their names."""
    point = dict(asked.point)
    model, board = label(point["model"]), label(point["board"])
    return {**point, "model": plan.models.get(model, point["model"]),
            "board": plan.boards.get(board, point["board"])}


def _reject(row: Row, hard: Limits) -> Row:
    """Return a row, failed where its prediction violates a hard limit or is not known."""
    if row.failure:
        return row
    for name, limit in hard.list_limits():
        value = getattr(row, name)
        if value is None or value > limit:
            excess = "is not known" if value is None else f"{value:.6g} is above it"
            return replace(row, failure=REJECTED, reason=(
                f"{row.network} on {row.board}: hard limit {name} {limit:.6g}: {excess}"))
    return row


def is_accepted(study: Study, row: Row) -> bool:
    """Whether a row is predicted, within the active memory budget and every hard limit."""
    active, held = study.hard.max_parameter_bytes, row.parameter_bytes
    return not row.failure and (active is None or (held is not None and held <= active))


SOFT = {"time_us": "violates_latency", "energy_uj": "violates_energy", "ram_bytes": "violates_ram",
        "flash_bytes": "violates_flash", "price_usd": "violates_price", "mean_mw": "violates_power",
        "error": "violates_accuracy", "parameter_bytes": "violates_parameters"}
"""Columns of soft limits by quantity."""

assert tuple(SOFT) == QUANTITIES
