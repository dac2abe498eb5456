"""Runs that leave a trail: kept, listed, compared, cleaned; bundled, and asked again elsewhere."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from os import fspath
from pathlib import Path
from typing import Any

from hwmodels.drafts import draft_folder
from hwmodels.errors import TwinError, reworded, tell_in_one_line
from hwmodels.files import File, JsonObject
from twin.api.commands.predict import deploy_request, predict
from twin.api.requests import Predict, takes
from twin.api.requests.keeping import Bundle, CleanSessions, CompareSessions, Reproduce
from twin.api.sessions.agreement import (
    Agreement,
    Comparison,
    agree,
    compare_requests,
    compare_versions,
)
from twin.api.sessions.bundle import open_bundle, write_bundle
from twin.api.sessions.request import make_request
from twin.api.sessions.session import (
    RESULT,
    Session,
    begin_session,
    check_removal,
    end_session,
    find_sessions,
    kept_files,
    open_session,
    relative,
    remove_session,
    repeated,
)
from twin.api.sessions.studied import STUDY_FILE, check_files, pack_study
from twin.errors import BuildRefusedError, SessionError, UsageError
from twin.pricing.prediction import Prediction
from twin.program.image.compile.permission import building_refused, check_permission
from twin.studies.study.tasks import made_with

_OUTSIDE = ("port", "image", "input_file", "probe", "resume", "backend", "cpu")
"""Arguments of a measurement that name what is outside of a bundle."""

NO_BUILD = ("a run of the bundle needs a firmware image, which a compiler builds from what the "
            "bundle brought; accepted: reproduce --build")


def keep(verb: str, arguments: Mapping[str, Any], root: File, *, command: Sequence[str] = (),
         aside: Mapping[str, Any] | None = None) -> tuple[Any, Session]:
    """Run a verb and keep all it read, what stood between, and its result, in a new folder.

    Parameters
    ----------
    verb : str
        "predict", "attribute", "diagnose", "why", "sweep", "select", "build_firmware" or "measure".
    arguments : mapping of str to value
        As the verb takes them; of `predict` those of `deploy`, too, and "changes": path to value.
    root : str or path
        Folder of sessions; the run gets one of its own in it.
    aside : mapping of str to value, optional
        Arguments that change nothing, such as "on_progress"; they are not kept.

    Returns
    -------
    result, session
        What the verb returned, and where it is kept.

    Raises
    ------
    SessionError
        For another verb or argument, or what cannot be kept.
    """
    made = {"output": arguments["output"]} if "output" in arguments else {}
    request = make_request(verb, {name: arguments[name] for name in arguments if name not in made})
    session = begin_session(fspath(root), request, command)
    result = perform(session, {**(aside or {}), **made})
    return result, end_session(session, _document(result), _artefacts(result))


def perform(session: Session, aside: Mapping[str, Any] | None = None) -> Any:
    """Ask a kept run again, of the files in its folder, and return the verb's result."""
    with kept_files(session):
        return _perform(session, aside)


def _perform(session: Session, aside: Mapping[str, Any] | None) -> Any:
    from twin.api.commands.compare import attribute
    from twin.api.commands.diagnose import diagnose
    from twin.api.commands.firmware import build_firmware
    from twin.api.commands.study import run_study
    from twin.api.commands.sweep import select, sweep
    from twin.api.commands.why import why

    fields = session.request.resolve(session.folder)
    if session.request.verb == "predict":
        return _predict(Predict(**fields))
    if session.request.verb == "study":
        with tempfile.TemporaryDirectory() as folder:
            return run_study(Path(fields["study"]) / STUDY_FILE, folder).load_results()
    if session.request.verb == "measure":
        return _measure(fields, dict(aside or {}))
    ask: Mapping[str, Callable[..., Any]] = {
        "attribute": attribute, "diagnose": diagnose, "why": why, "sweep": sweep,
        "select": select, "build_firmware": build_firmware}
    return ask[session.request.verb](**fields, **(aside or {}))


def _measure(fields: JsonObject, aside: JsonObject) -> Any:
    """Measure a network as a kept run asks; the folder of its samples is aside."""
    from twin.api.commands.measure import measure
    from twin.api.requests.measurement import MeasureOptions

    model, board = fields.pop("model"), fields.pop("board")
    return measure(model, board, MeasureOptions(**fields, output=aside.pop("output", None)),
                   **aside)


def list_sessions(root: File) -> tuple[Session, ...]:
    """Return the kept runs of a folder, oldest first; those without a result, too."""
    return tuple(open_session(folder) for folder in find_sessions(fspath(root)))


@takes(CompareSessions)
def compare_sessions(asked: CompareSessions) -> Comparison:
    """Say what two kept runs were asked, by which versions, and where their results differ."""
    first, second = (open_session(fspath(one)) for one in (asked.before, asked.after))
    for one in (first, second):
        if not one.is_finished:
            raise SessionError(f"{one.folder}: has no result")
    found = agree(first.folder.name, first.request.verb, first.read_result(),
                  second.read_result(), compare_versions(first.head, second.head))
    difference = None
    if first.request.verb == second.request.verb == "predict":
        from twin.api.commands.compare import diff

        difference = diff(first.folder / RESULT, second.folder / RESULT, anyway=True)
    return Comparison(asked=compare_requests(first, second), agreement=found, difference=difference)


@takes(CleanSessions)
def clean_sessions(asked: CleanSessions) -> tuple[Path, ...]:
    """Delete kept runs but the newest; nothing else in the folder is touched.

    Folders that went, or, unless `really`, would go.

    Raises
    ------
    SessionError
        Before anything is removed, where one of them holds what no run leaves there.
    """
    keep_newest = asked.keep_newest
    if keep_newest < 0:
        raise UsageError(f"keep_newest {keep_newest}: accepted: 0 and more")
    found = [*find_sessions(fspath(asked.root))]
    old = found[:max(len(found) - keep_newest, 0)]
    for folder in old:  # All of them before any goes.
        check_removal(folder)
    for folder in old if asked.really else ():
        with reworded(OSError, SessionError, f"{folder}: cannot be removed: "):
            remove_session(folder)
    return tuple(old)


@takes(Bundle)
def bundle(asked: Bundle) -> Path:
    """Pack kept runs and studies into one .zip file that travels; returns it.

    Raises
    ------
    SessionError
        For a folder that is neither a kept run, a finished study nor a folder of kept runs, a run
        without a result, one changed since.
    """
    target, folders = Path(fspath(asked.path)), asked.folders
    if target.suffix.lower() != ".zip":
        raise UsageError(f"{target}: accepted: a name ending in .zip")
    if not folders:
        raise UsageError("nothing to bundle; accepted: folders --keep or twin study run wrote")
    with tempfile.TemporaryDirectory() as scratch:
        found: list[Session] = []
        for folder in folders:
            found.extend(_find(Path(fspath(folder)), Path(scratch)))
        return write_bundle(found, target)


@takes(Reproduce)
def reproduce(asked: Reproduce) -> tuple[Agreement, ...]:
    """Ask everything in a bundle again and set the results beside those it brought.

    One a run, whose `is_same` says whether the report is the same to nine digits. In a folder it is
    to stay in nothing is refused; a compiler runs only with `build`, on C made from the bundle's
    network.

    Raises
    ------
    SessionError
        For a bundle that is damaged or unsafe.
    """
    path, keep_in = asked.path, asked.keep_in
    with nullcontext() if asked.build else building_refused(NO_BUILD):
        if keep_in is None:
            with tempfile.TemporaryDirectory() as scratch:
                return _reproduce(path, Path(scratch))
        with _staged(Path(fspath(keep_in))) as folder:
            return _reproduce(path, folder)


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """Give an empty folder that becomes another, new one where nothing is refused within."""
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        if folder not in made or folder.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(folder.parent, ".unpacked-") as scratch:
            whole = scratch / folder.name
            whole.mkdir()
            yield whole
            whole.rename(folder)
    except BaseException as error:
        for one in made[1:]:
            with suppress(OSError):
                one.rmdir()
        if isinstance(error, OSError):
            raise SessionError(f"{folder}: {error.strerror}; accepted: a new folder") from error
        raise


def _reproduce(path: File, folder: Path) -> tuple[Agreement, ...]:
    try:
        return _ask_again(path, folder)
    except TwinError as error:  # the folder goes with the refusal: the bundle is what stays
        text = str(error)
        for unpacked in (folder.resolve(), folder):
            text = text.replace(f"{unpacked}{os.sep}", f"{fspath(path)}: ")
        text = text if fspath(path) in text else f"{fspath(path)}: {text}"
        error.args = (text if error.quotes_lines else tell_in_one_line(text),)
        raise


def _ask_again(path: File, folder: Path) -> tuple[Agreement, ...]:
    from calibration.virtual_board import repeats

    now, found = made_with(), []
    sessions = open_bundle(fspath(path), folder)
    hardware = [one for one in sessions if one.request.verb == "measure" and not repeats(
        str(one.request.arguments.get("virtual", "")))]
    if len(hardware) == len(sessions):
        raise SessionError(f"{hardware[0].folder.name}: a measurement of hardware is not made "
                           "again; accepted: beside runs that are, or of an emulated board "
                           "(--virtual)")
    for session in sessions:
        if session in hardware:
            found.append(Agreement(name=session.folder.name, verb="measure", again="",
                                   kept=session.head["report_hash"]))
            continue
        if session.request.verb == "study":
            check_files(session.folder / session.request.arguments["study"])
        kept, verb = session.read_result(), session.request.verb
        rows = kept.get("rows") if isinstance(kept, Mapping) else None
        with reworded(BuildRefusedError, BuildRefusedError, f"{session.folder.name}: "):
            if isinstance(rows, list) and any(isinstance(row, Mapping) and str(
                    row.get("runtime")).startswith("firmware@") for row in rows):
                check_permission()  # else its rows alone would be refused, and differ
            again = relative(_document(_perform_again(session)), session.folder)
        found.append(agree(session.folder.name, verb, repeated(verb, kept), repeated(verb, again),
                           compare_versions(session.head, now)))
    return tuple(found)


def _perform_again(session: Session) -> Any:
    """Ask a run of a bundle again; what it builds or samples is thrown away."""
    verb, fields = session.request.verb, session.request.arguments
    if verb == "measure" and (named := [name for name in _OUTSIDE if fields.get(name)]):
        raise SessionError(f"{session.folder.name}: {named[0]} is of the machine it was measured "
                           "on; accepted: a measurement without")
    with tempfile.TemporaryDirectory() as made:
        aside = {"output": f"{made}/made"} if verb in ("measure", "build_firmware") else {}
        return perform(session, aside)


def _predict(asked: Predict) -> Prediction:
    deployment = deploy_request(asked)
    return predict(deployment.replace(asked.changes),
                   temperature=asked.temperature, calibration=asked.calibration)


def _document(result: Any) -> Any:
    from twin.reports.documents import to_document

    document, folder = to_document(result), getattr(result, "folder", None)
    if folder is None:
        return document
    return relative({name: value for name, value in document.items() if name != "folder"},
                    Path(folder))


def _artefacts(result: Any) -> JsonObject:
    from twin.api.sessions.artefacts import list_artefacts

    if isinstance(result, Prediction):
        return list_artefacts(result)
    folder = getattr(result, "folder", None)
    files = {} if folder is None else {
        "image.elf": getattr(result, "image", None) or folder / "firmware" / "firmware.elf",
        **{f"{part}{ending}": folder / part / f"{name}{ending}" for part in ("cold", "warm")
           for name, ending in (("header", ".json"), ("samples", ".jsonl"))}}
    return {name: path.read_bytes() for name, path in files.items() if path.is_file()}


def _find(folder: Path, scratch: Path) -> list[Session]:
    """Return the kept run of a folder, those in it, or the one a study is as."""
    if (folder / STUDY_FILE).is_file():
        return [pack_study(folder, scratch, _document)]
    if (folder / "session.json").is_file():
        return [open_session(folder)]
    if not folder.is_dir() or not (found := [*find_sessions(folder)]):
        raise SessionError(f"{folder}: holds no kept run; accepted: folders --keep or "
                           "twin study run wrote")
    return [open_session(one) for one in found]
