"""Requests for many configurations at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from hwmodels.files import File
from hwmodels.quantities import Settings
from twin.api.requests import (
    AssumeUnsupported,
    Boards,
    Judged,
    LimitedAndPriced,
    Models,
    Option,
    Powered,
    Priced,
    Prices,
    Request,
    Words,
    option,
    required,
)
from twin.api.requests.values import parse_settings, split_words

if TYPE_CHECKING:
    from hwmodels.board.facts import Board

Progress = Callable[[int, int, int], None]
"""Called now and then with points done, points, and failures."""

OVER = ("Objectives of the Pareto front: time, energy, ram, flash, price, with --every days "
        "(power); by default time and energy, with --every days and time{}.")


class Study(Request):
    """A study that was run, packed with its rows."""

    study: str = required(files=())


class Shared(Request, kw_only=True):
    """Who works on a study."""

    jobs: int = option(1, "-j --jobs", "N", "Processes of this machine.", least=1)
    cluster: str | None = option(
        None, "--cluster", "WHERE", "local:4 (as -j 4), or the address of a Dask scheduler: "
        "tls://host:8786.")
    on_progress: Progress | None = None


StudyFile = Annotated[File, Option("", "STUDY", "A study of `twin study list`, or a .yaml file.")]


class RunStudy(Shared):
    """A study, and the folder of its results."""

    study: StudyFile
    folder: File = required(
        "-o --output", "FOLDER", "Folder of the results; an interrupted study in it is "
        "resumed.")
    _: KW_ONLY
    elf: Sequence[str] = option(
        (), "--elf", "NAME=FILE,...", "A program to compare with the study's libraries, run under "
        "emulation; behind commas model=, board=, from= or call= (the function of an inference), "
        "setup= where the file does not say; may be given several times.", text=list[str])
    command: Sequence[str] = ()


class Sensitivity(Shared):
    """A study with two or more axes, and the figure that may depend on them."""

    study: StudyFile
    _: KW_ONLY
    figure: str = option("time", "--figure", "NAME", "time, energy, ram, flash or price.")
    method: str = option("morris", "--method", "NAME", "morris or sobol.")
    count: int = option(8, "-n --count", "N", "Trajectories of Morris, base samples of Sobol.")


class Front(Request):
    """A study that was run, and what its front is over."""

    folder: File = required("", "FOLDER", "Folder of a finished study.")
    objectives: Sequence[str] = option(
        (), "--over", "NAMES", "Objectives of the front, in place of the file's: time, energy, "
        "ram, flash, price.", parse=split_words)


class ReportStudy(Request):
    """A study that was run, and the file that describes it."""

    folder: File = required("", "FOLDER", "Folder of a finished study.")
    file: File = required("-o --output", "FILE", "Report to write: .html, .md or .pdf.")
    _: KW_ONLY
    length: str = option(
        "full", "--length", "full|short", "Length of a .md or .pdf report: everything, or one "
        "page.")


class DiffStudies(Request):
    """Two runs of one study."""

    before: File = required("", "BEFORE", "Folder of a study.")
    after: File = required("", "AFTER", "Folder of the same study, such as of another version.")
    _: KW_ONLY
    on_remark: Callable[[str], None] = lambda remark: None


class Compared(LimitedAndPriced, Powered, Priced, Judged, kw_only=True):
    """Networks on boards, what varies, and what they are held to."""

    settings: Settings | None = option(
        None, "--set", "PATH=VALUES", "Values of a what-if path: a,b,c (a;b where values have "
        "commas), LOW..HIGH:COUNT or, with --sample, LOW..HIGH; may be given several times.",
        parse=parse_settings)
    clocks: Words = option(
        (), "--clock", "FREQUENCY,...", "CPU clocks at their lowest voltage; own (the default) or "
        "each: the top of every voltage scale.")
    prices: Prices = None
    on_progress: Progress | None = None


class Sweep(Compared):
    """Every combination of models, boards and what else varies."""

    models: Models
    boards: Boards
    _: KW_ONLY
    runtimes: Words = option(
        (), "--runtime", "NAME,...", "Runtimes; default (what each board's vendor builds), best "
        "(the fastest measured on it), measured (all measured on it) or each (all it can run).")
    sample: str | None = option(
        None, "--sample", "METHOD:COUNT", "Points drawn instead of all: sobol:500, lhs:100, "
        "random:50.")
    objectives: Words = option((), "--over", "NAMES", OVER.format(""))
    assume_unsupported: AssumeUnsupported = None


class Select(Compared):
    """Boards and libraries to choose from for networks."""

    models: Models
    boards: "File | Board | Iterable[File | Board] | None" = option(
        None, "--board -b", "BOARD", "A board to choose from; by default all that are shipped; may "
        "be given several times.", text=list[str])
    _: KW_ONLY
    runtimes: Words = option(
        "each", "--runtime", "NAME,...", "Runtimes to choose from: each (all a board can run), "
        "measured (those measured on it), best (the fastest of the measured), default (the one its "
        "vendor builds), or names.")
    by: Words = option(
        (), "--by", "NAMES", "Rank boards that meet the limits by these, in this order: days "
        "(power), price (usd), energy, time, ram, flash; by default by score.")
    objectives: Words = option((), "--over", "NAMES", OVER.format(", and price"))
    advise: bool = option(
        True, "--advice/--no-advice", None, "For boards that miss the limits, find the cheapest "
        "change that meets them.")
