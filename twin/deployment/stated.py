"""What a log says of its kernel library, beside the runtimes we know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from calibration.errors import MeasurementError
from calibration.importers.log import UNKNOWN
from hwmodels.errors import TwinError
from hwmodels.isa import load_isa
from twin.deployment.choice import find_counted, list_near, list_releases
from twin.runtimes.file import list_runtimes, list_shipped, load_runtime, order_release

if TYPE_CHECKING:
    from hwmodels.board.facts import Board

ONE_MAKER = (("x-cube-ai", "st-edge-ai", "neural-art"),)
"""Families one tool writes reports of, by names that changed with its versions."""

CORE_IN_CUBE = 8
"""ST Edge AI Core n.m shipped as X-CUBE-AI (n + 8).m, up to Core 2."""

LISTED = ("tflm", "firmware")
"""Beginnings of runtimes whose logs name the network's operators, one a layer."""

_VERSION, _LEVEL = re.compile(r"\A\d+(?:\.\d+)+"), re.compile(r"-(O\w+)")

ESPRESSIF_ONLY = "-esp-nn"
"""Kernels of one maker's cores: candidates on a board of its parts only."""


def list_candidates(stated: str, isa: str | None = None,
                    board: Board | None = None) -> tuple[str, ...]:
    """Return the runtimes a log may be of: each family's default, measured and counted releases.

    Parameters
    ----------
    stated
        As the log says it: "tflm" is every family whose name begins so, one that says nothing
        each that was measured on the board, else on its core.
    isa
        Of the board's core: families that do not run on it are omitted.
    board
        Adds what was measured on it, else on its core; identifies the core, its maker's
        kernels, and the library of its accelerator where that is its default.
    """
    stem = stated.partition("@")[0]
    families = sorted({identity.partition("@")[0] for identity in list_runtimes()})
    if stem in families:
        chosen = [stem]
    elif stated == UNKNOWN and board is not None:
        chosen = [name for name in families if list_near(name, board)]
    else:
        isa = isa if board is None else board.core.isa
        espressif = board is not None and board.soc.startswith("esp")
        chosen = [name for name in families if name.startswith(f"{stem}-")
                  and (isa is None or load_isa(isa).code.foreign not in name)
                  and (espressif or ESPRESSIF_ONLY not in name)]
        if chosen and board is not None:
            chosen += list_accelerating(board)
    return tuple(dict.fromkeys(one for name in chosen for one in (
        identify(name), *(identify(row.runtime) for row in (
            list_near(name, board) if board is not None else ())), find_counted(name)) if one))


def list_accelerating(board: Board) -> list[str]:
    """Return the library a board with an accelerator gets by default, where it is for that."""
    return [name for name in list(list_shipped(board.soc))[:1]
            if board.npu is not None and load_runtime(name).accelerated]


def settle_runtime(stated: str, given: str | None, where: str) -> str:
    """Return the runtime a measurement is of: as its user says, where it leaves that open.

    Parameters
    ----------
    given
        A runtime of ours, as its user says it.

    Raises
    ------
    MeasurementError
        When it says that it is of another one.
    RuntimeRefusedError
        When the one given is none of ours.
    """
    if given is None:
        return stated
    identity = identify(given)
    stated = without_tools(stated)
    ours, theirs = identity.partition("@")[0], stated.partition("@")[0]
    known = _load(stated)
    related = any(ours in family and theirs in family for family in ONE_MAKER)
    if known is None:
        allowed = not list_releases(theirs) or ours == theirs or related
    else:
        allowed = known == identity or ("@" not in stated and (ours == theirs or related))
    if not allowed:
        raise MeasurementError(f"{where}: says it is of {stated}, not of {identity}; leave the "
                               "runtime out")
    return identity


def find_release(stated: str) -> str | None:
    """Return the newest release we know that is not newer than the one a log names.

    Parameters
    ----------
    stated
        As the log says it: "st-edge-ai@2.1.0" is x-cube-ai@10.0.0, which Core 2.0 shipped as.

    Returns
    -------
    str or None
        None where it names no version, or one older than all we know.
    """
    stem, _, version = without_tools(stated).partition("@")
    if not _VERSION.fullmatch(version):
        return None
    known = []
    for identity in list_runtimes():
        name, numbers, release = order_release(identity)
        if not _VERSION.fullmatch(release):
            continue
        if name == stem:
            known.append((numbers, identity))
        elif stem == "st-edge-ai" and name == "x-cube-ai" and numbers[0] > CORE_IN_CUBE:
            known.append(((numbers[0] - CORE_IN_CUBE, *numbers[1:]), identity))
    asked = order_release(f"{stem}@{version}")[1]
    return max((one for one in known if one[0] <= asked), default=(None, None))[1]


def describe_open(stated: str, board: Board | None = None) -> str:
    """Return a hint which runtimes a measurement may be of; "" where it names one of ours."""
    if is_known(without_tools(stated)):
        return ""
    candidates = list_candidates(stated, board=board)
    known = f": {' or '.join(candidates)}" if candidates else " NAME, of `twin runtimes`"
    return f"--runtime{known}"


def without_tools(stated: str) -> str:
    """Return a library as a log names it, without the version of the tools it names behind."""
    return stated.partition(",")[0].strip()


def is_known(name: str) -> bool:
    """Whether a name is of one of our runtimes, with a version or without."""
    return _load(name) is not None


def _load(name: str) -> str | None:
    try:
        return identify(name)
    except TwinError:
        return None


def identify(name: str) -> str:
    """Return one of our runtimes with its version; raises RuntimeRefusedError for none of ours."""
    return load_runtime(name).identity


def name_runtime(runtime: str, compiler: str) -> str:
    """Return the runtime a measurement is of: our firmware's by what compiled it.

    Parameters
    ----------
    runtime
        As the measurement says it.
    compiler
        As the firmware says it, "gcc 12.2.1 -O2"; "" when not known.
    """
    level = _LEVEL.search(compiler)
    if runtime != "firmware" or level is None:
        return runtime
    if compiler.endswith("CMSIS-NN"):
        return load_runtime("cmsis-nn").identity
    named = f"firmware@{'clang-' * compiler.startswith('clang')}{level[1]}"
    return named if named in list_releases("firmware") else runtime
