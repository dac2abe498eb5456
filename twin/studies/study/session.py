"""The folder of a study: inputs, versions, command, a file for every finished task, the table.

    study.yaml      the file as it was given
    inputs/         models and boards it names as files, by hash
    session.json    versions, hashes of inputs, commands
    parts/          rows of each finished task, by its content address
    results.parquet every row, in the order of the study
    finding.md, finding.png, front.png

Files appear whole or not at all, so a kill at any moment leaves tasks that are done and tasks that
are not.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hwmodels.errors import check_extra
from hwmodels.files import (
    LARGEST_JSON_BYTES,
    MISSHAPEN,
    DocumentError,
    JsonObject,
    open_regular,
    parse_json,
    read_regular_text,
    write_whole,
)
from hwmodels.frozen import frozen
from hwmodels.locks import NoLocksError, lock
from twin.errors import StudyError, UsageError
from twin.studies.results import Table, as_parquet, read_row, to_arrow
from twin.studies.rows import Row, Rows
from twin.studies.study.definition import Study
from twin.studies.study.file import find_study, load_study
from twin.studies.study.tasks import MEGABYTE, SOFT, Plan, Task, identify, is_accepted, made_with
from twin.studies.table_files import LARGEST_TABLE_BYTES, read_parquet, read_table

RESULTS = "results.parquet"
LOCK = ".lock"
STARTED = {LOCK, "parts", "study.yaml", "inputs"}
"""What is there before `session.json` is."""


@frozen
class Session:
    """A folder of a study that is being run, or was.

    Parameters
    ----------
    study
        As its file says.
    """

    folder: Path
    study: Study

    @property
    def head(self) -> JsonObject:
        """What `session.json` says."""
        return _read_head(self.folder)

    @property
    def is_finished(self) -> bool:
        """Whether its table is written."""
        return (self.folder / RESULTS).is_file()

    def load_rows(self, task: Task) -> Rows | None:
        """Return the rows of a task that is done; None: it is not."""
        path = self._part(task)
        if not path.is_file():
            return None
        from pyarrow import ArrowException

        try:
            with open_regular(path, LARGEST_TABLE_BYTES) as stream:
                found = read_parquet(stream).to_pylist()
            if tuple(record["address"] for record in found) != task.addresses:
                return None
            return tuple(map(read_row, found))
        except (OSError, ArrowException, *MISSHAPEN):
            return None  # Damaged: predicted again, and replaced.

    def save_rows(self, task: Task, rows: Sequence[Row]) -> None:
        """Keep the rows of a task: whole, or not at all."""
        _write_parquet(Table(rows=tuple(rows)), self._part(task), address=task.addresses)

    def save_results(self, table: Table, addresses: Sequence[str]) -> Path:
        """Write the table: a column more for the address and for each soft limit."""
        soft: dict[str, list[Any]] = {
            SOFT[name]: [None if (value := getattr(row, name)) is None else value > limit
                         if row.failure else name in row.violations for row in table.rows]
            for name, limit in table.limits.list_limits()}
        for column, quantity, limit in self.study.budgets:
            soft[column] = [None if (value := getattr(row, quantity)) is None else value > limit
                            for row in table.rows]
        active = self.study.hard.max_parameter_bytes
        if active is not None:
            soft["accepted"] = [is_accepted(self.study, row) for row in table.rows]
            soft["active_budget_mb"] = [active / MEGABYTE] * len(table.rows)
        path = self.folder / RESULTS
        _write_parquet(table, path, address=addresses, **soft)
        return path

    def load_results(self) -> Table:
        """Return the table; raises `StudyError` where the study is not finished."""
        if not self.is_finished:
            raise StudyError(f"{self.folder}: is not finished: "
                             f"{len([*(self.folder / 'parts').glob('*.parquet')])} tasks are done; "
                             "run its command again to resume")
        return read_table(self.folder / RESULTS)

    def load_records(self) -> list[JsonObject]:
        """Return the table as mappings from column to value, every column that is written."""
        with open_regular(self.folder / RESULTS, LARGEST_TABLE_BYTES) as stream:
            return list(read_parquet(stream).to_pylist())

    def _part(self, task: Task) -> Path:
        return self.folder / "parts" / f"{task.address}.parquet"


def open_session(folder: str | Path) -> Session:
    """Return the session of a folder.

    Raises
    ------
    StudyError
        For a folder that is none.
    """
    folder = Path(folder)
    if not (folder / "session.json").is_file():
        raise StudyError(f"{folder}: is not a folder of a study; accepted: one `twin study run` "
                         "wrote")
    _read_head(folder)
    return Session(folder=folder, study=load_study(str(folder / "study.yaml")))


def begin_session(source: str, study: Study, plan: Plan, folder: str | Path,
                  command: Sequence[str]) -> Session:
    """Return the session of a study in a folder: a new one, or the one it was started in.

    Parameters
    ----------
    source
        Name of a shipped study, or its file.
    plan
        What is to be computed.
    folder : str or Path
        New or empty, or of the same study by the same version.
    command
        What was typed, kept with the results.

    Raises
    ------
    StudyError
        For a folder of another study or another version of the twin, or with other files in it.
    ToolMissingError
        Without pyarrow.
    """
    check_extra("studies", "pyarrow", "study")
    folder, content = Path(folder), find_study(source).read_bytes()
    inputs = dict(sorted(plan.content.items()))
    if (folder / "session.json").is_file():
        head = dict(_read_head(folder))
        if (folder / "study.yaml").read_bytes() != content or head["inputs"] != inputs:
            raise StudyError(f"{folder}: holds a study of another file or other inputs; accepted: "
                             "the same as it was started with, or another folder")
        if head["twin"] != identify():
            raise StudyError(f"{folder}: was started by another version of the twin "
                             f"({head['twin']}, this is {identify()}); accepted: another folder")
        head["commands"] = [*head["commands"], list(command)]
    else:
        _check_folder(folder)
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        write_whole(folder / "study.yaml", content)
        _keep_inputs(folder / "inputs", inputs)
        head = {"schema": 1, "study": study.name, "inputs": inputs, **made_with(),
                "commands": [list(command)]}
    write_whole(folder / "session.json", (json.dumps(head, indent=1) + "\n").encode())
    return Session(folder=folder, study=study)


@contextlib.contextmanager
def lock_session(folder: str | Path) -> Iterator[None]:
    """Hold the folder a study runs in, or is to run in, for this process alone.

    Parameters
    ----------
    folder : str or Path
        Made where it is missing, and removed where nothing was written into it.

    Raises
    ------
    StudyError
        For a folder with other files in it, one that cannot be written or another process holds.
    """
    folder = Path(folder)
    _check_folder(folder)
    place, made = folder / LOCK, not folder.exists()
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock(place))
        except (BlockingIOError, NoLocksError) as error:
            raise StudyError(f"{folder}: another process runs this study") from error
        except OSError as error:
            raise StudyError(f"{place}: cannot be written ({error.strerror})") from error
        try:
            for draft in (folder / "parts").glob(".*.tmp"):
                draft.unlink(missing_ok=True)
            yield
        finally:
            if made and {one.name for one in folder.iterdir()} <= {LOCK}:
                place.unlink(missing_ok=True)
                folder.rmdir()


def _check_folder(folder: Path) -> None:
    """Refuse an existing folder that is neither a study's, nor just started, nor empty."""
    if folder.exists() and not (folder / "session.json").is_file() and (
            not folder.is_dir() or ((there := {one.name for one in folder.iterdir()})
            and not {LOCK} <= there <= STARTED)):
        raise StudyError(f"{folder}: is not empty and no folder of a study; accepted: a new one")


def _keep_inputs(folder: Path, inputs: Mapping[str, str]) -> None:
    for name, digest in inputs.items():
        path = Path(name)
        if path.is_file():
            folder.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / f"{digest[:12]}_{path.name}")


def _read_head(folder: Path) -> JsonObject:
    path = folder / "session.json"
    try:
        head = parse_json(read_regular_text(path, LARGEST_JSON_BYTES))
    except (DocumentError, OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: cannot be read: {error}") from error
    if not isinstance(head, dict) or head.get("schema") != 1 or not isinstance(
            head.get("commands"), list) or not {"twin", "inputs", "study"} <= set(head):
        raise StudyError(f"{path}: is not a session of a study")
    return head


def _write_parquet(table: Table, path: Path, **columns: Sequence[object]) -> None:
    """Write rows and further columns; what is there is replaced at once."""
    import pyarrow

    arrow = to_arrow(table)
    for name, values in {**columns, "draws": [[*row.draw] for row in table.rows]}.items():
        kind = {"address": pyarrow.string(), "active_budget_mb": pyarrow.float64(),
                "draws": pyarrow.list_(pyarrow.float64())}.get(name, pyarrow.bool_())
        arrow = arrow.append_column(name, pyarrow.array(values, kind))
    try:
        write_whole(path, as_parquet(arrow))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from error
