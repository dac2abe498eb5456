"""`twin study run --elf`: rows of a study that are programs the user brings, read and run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError, check_known, did_you_mean
from twin.api.commands.program import LIMIT, read_program
from twin.errors import StudyError, UsageError
from twin.network.readers import read_model
from twin.network.readers.container import find_models
from twin.program.asking import Wanted, check_wanted
from twin.program.deployment import deploy_program
from twin.program.elf import Elf, read_elf
from twin.program.patterns import AUTO, find_entry
from twin.studies.axes import Brought, label
from twin.studies.study.definition import CASE, Study

KEYS = ("model", "board", "from", "call", "setup")
"""What may follow the file of `--elf NAME=FILE`."""

VARIED = ("model", "board", "runtime", CASE)
"""Axes a program has values of."""


def bring_programs(texts: Sequence[str], study: Study) -> tuple[Brought, ...]:
    """Return the programs of `--elf` as configurations of a study.

    Parameters
    ----------
    texts : sequence of str
        NAME=FILE[,model=MODEL][,board=BOARD][,from=SYMBOL][,call=SYMBOL][,setup=SYMBOL].
    study : Study
        That compares libraries or cases.

    Raises
    ------
    TwinError
        For an invalid word, a file that is not a program, and facts a program does not state.
    """
    other = [name for name in study.axes if name not in VARIED]
    if texts and (other or study.search is not None or study.finding is None
                  or study.finding.vary not in ("runtime", CASE)):
        raise StudyError(f"--elf: {study.name} "
                         + (f"varies {', '.join(other)}, which a program has decided" if other else
                            "compares neither libraries nor cases")
                         + "; accepted: finding: {vary: runtime} or {vary: case}")
    found = tuple(_bring(text, study) for text in texts)
    for one in found:
        if sum((one.name, one.model, one.board) == (each.name, each.model, each.board)
               for each in found) > 1:
            raise UsageError(f"--elf {one.name}: is given twice for {one.model} on {one.board}")
    return found


def _bring(text: str, study: Study) -> Brought:
    first, *rest = text.split(",")
    name, equals, file = first.partition("=")
    pairs = [one.partition("=")[::2] for one in rest]
    options = dict(pairs)
    wrong = next((key for key, value in pairs if key not in KEYS or not value), None)
    if not (name and equals and file) or len(options) < len(pairs):
        wrong = ""
    if wrong is not None:
        raise UsageError(f"--elf {text!r}: " + (did_you_mean(wrong, KEYS) if wrong else
                         f"accepted: NAME=FILE, then {'=..., '.join(KEYS)}=... behind commas"))
    option, elf = f"--elf {name}={file}", read_elf(file)
    if name in (*_list_values(study, "runtime"), *study.cases):
        raise UsageError(f"{option}: the study has a {name} already; accepted: another name")
    model = _choose(option, "model", options.get("model"), _list_values(study, "model"),
                    lambda one: _holds(elf, one))
    board = _choose(option, "board", options.get("board"), _list_values(study, "board"),
                    lambda one: _has_room(elf, load_board(one)))
    wanted = _ask(option, elf, options)
    setup = options.get("setup") or (find_entry(elf, "setup") or ("",))[0]
    prepared = _want(setup, None) if setup else None
    for one in (wanted, *([prepared] if prepared else [])):
        check_wanted(read_program(file, one), load_board(board), one)
    return Brought(
        name=name, model=model, board=board, file=elf.path.name,
        content=hashlib.sha256(f"{elf.sha256} {wanted} {prepared}".encode()).hexdigest(),
        deploy=partial(deploy_program, elf, wanted=wanted),
        prepare=None if prepared is None else partial(deploy_program, elf, wanted=prepared))


def _ask(option: str, elf: Elf, options: dict[str, str]) -> Wanted:
    """Return the part that is one inference: as stated, or what a known library calls it."""
    begin, call = options.get("from"), options.get("call")
    if begin is None and call is None:
        known = find_entry(elf, "invoke")
        if known is None:
            raise UsageError(f"{option}: no function of a known library runs an inference in it; "
                             "accepted: from=SYMBOL, or call=SYMBOL for one a program waits with")
        begin, call = (None, known[0]) if known[1] else (known[0], None)
    return _want(begin, call)


def _want(begin: str | None, call: str | None) -> Wanted:
    return Wanted(begin=begin, end=None, call=call, nth=1, layers=AUTO, registers={}, files={},
                  limit=LIMIT)


def _list_values(study: Study, axis: str) -> list[str]:
    return [label(value) for one in study.space.axes if one.name == axis for value in one.values]


def _choose(option: str, key: str, stated: str | None, values: Iterable[str],
            fits: Callable[[str], bool]) -> str:
    """Return the value of an axis a program is of: as stated, or the only one that fits."""
    values = [*values]
    if stated is not None:
        check_known(f"{option}: the study has no such {key}:", stated, values, UsageError)
        return stated
    able = [one for one in values if fits(one)]
    if len(able) == 1:
        return able[0]
    raise UsageError(f"{option}: which {key}? " + (f"it may be of {', '.join(able)}" if able else
                     f"it is of none of {', '.join(values)} as far as it shows")
                     + f"; accepted: {option},{key}={(able or values)[0]}")


def _holds(elf: Elf, model: str) -> bool:
    """Return whether a program holds a model's file; True too where it holds none at all."""
    try:
        held = find_models(str(elf.path), elf.path.read_bytes())
    except TwinError:
        return True
    with suppress(TwinError):
        return read_model(model).sha256 in {hashlib.sha256(one.content).hexdigest() for one in held}
    return False


def _has_room(elf: Elf, board: Board) -> bool:
    """Return whether a board has the core and the memories a program is linked for."""
    spans = [span for memory in board.memories for span in memory.spans]
    try:
        check_wanted(elf, board, _want(None, None))
    except TwinError:
        return False
    return all(any(low <= one.address and one.address + one.size_bytes <= high
                   for low, high in spans) for one in elf.parts)
