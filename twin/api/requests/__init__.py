"""Typed requests: one dataclass per command, which options, sessions and functions derive from.

Its fields say how a command line and a file give them. Annotations are looked at when a class is
made, so no module of requests postpones them.
"""

import inspect
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, wraps
from numbers import Integral, Real
from os import PathLike
from types import ModuleType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    ParamSpec,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

from hwmodels.errors import did_you_mean
from hwmodels.files import File
from hwmodels.quantities import Settings
from twin.api.requests.values import FIELD as FIELD
from twin.api.requests.values import Option as Option
from twin.api.requests.values import option as option
from twin.api.requests.values import (
    parse_clock,
    parse_named,
    parse_prices,
    parse_settings,
)
from twin.api.requests.values import required as required
from twin.errors import UsageError
from twin.network.model_file import SUFFIXES as MODEL_FILES

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.network.graph import Graph

Fields = ParamSpec("Fields")
Asked = TypeVar("Asked")
Result = TypeVar("Result")


class Options:
    """What has options: a field without one is given in Python only.

    A field's `option` is its default; one that several classes share annotates their type.
    """

    postponed: ClassVar[bool] = False
    """Whether annotations are text, all of whose names are there when a class is looked at."""

    @classmethod
    def list_options(cls) -> Mapping[str, tuple[Option, Any]]:
        """Return the option and the type of each field, a class's own before its bases'."""
        found: dict[str, tuple[Option, Any]] = {}
        own = getattr(cls, "__dataclass_fields__", {})
        for each in cls.__mro__:
            for name, hint in inspect.get_annotations(each, eval_str=cls.postponed).items():
                if hasattr(hint, "__metadata__"):
                    found.setdefault(name, (hint.__metadata__[0], get_args(hint)[0]))
                elif name in own and Option in own[name].metadata:
                    found.setdefault(name, (own[name].metadata[Option], hint))
        return found

    @classmethod
    def option(cls, name: str) -> Option:
        """Return the option of a field, for a command that takes it in another way."""
        return cls.list_options()[name][0]

    @classmethod
    def list_required(cls) -> tuple[str, ...]:
        """Return the fields a request cannot be without."""
        return tuple(each.name for each in fields(cls)  # type: ignore[arg-type]
                     if each.default is MISSING)

    @classmethod
    def of_options(cls, given: Mapping[str, Any]) -> Any:
        """Make the request of a command line's values; None is as good as not given."""
        options = cls.list_options()
        made = {name: options[name][0].read(value)
                for name, value in given.items() if value is not None}
        later = [name for name in cls.list_required() if name not in options]
        return cls(**dict.fromkeys(later), **made)

    @property
    def arguments(self) -> dict[str, Any]:
        """The fields a command line can give, by name."""
        return {name: getattr(self, name) for name in self.list_options()}


@dataclass_transform(frozen_default=True, field_specifiers=(field, required))
class Request(Options):
    """Base of all requests, which are frozen dataclasses."""

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        """Make the class one."""
        dataclass(frozen=True, kw_only=kw_only)(cls)

    def read_texts(self) -> None:
        """Read fields that Python gave as texts as their options do; raises `UsageError`."""
        for name, (stated, hint) in self.list_options().items():
            object.__setattr__(self, name, _read_value(name, getattr(self, name), stated, hint))


def list_kinds(hint: Any) -> list[Any]:
    """Return what a type is a union of, without none."""
    return [kind for kind in get_args(hint) if kind is not type(None)] \
        if isinstance(hint, UnionType) else [hint]


def primitive(hint: Any) -> Any:
    """Return bool, int, float, str or a list where a type is that or none; else None."""
    kinds = list_kinds(hint)
    return kinds[0] if len(kinds) == 1 and kinds[0] in (bool, int, float, str, list[str]) else None


def is_mapping(hint: Any) -> bool:
    """Whether a type is a mapping, or one or none."""
    return any(get_origin(kind) is Mapping for kind in (hint, *get_args(hint)))


def takes(request: Callable[Fields, Asked]
          ) -> Callable[[Callable[[Asked], Result]], Callable[Fields, Result]]:
    """Make a function of a request one of the request's fields, documented as they are.

    A text is read as the command line reads it where a field's type has none, one alone is a
    sequence of one, and None is as good as not given; a field that there is not, and a value of
    another type, raise `UsageError`.
    """
    def decorate(perform: Callable[[Asked], Result]) -> Callable[Fields, Result]:
        signature = inspect.signature(request)
        options = request.list_options()  # type: ignore[attr-defined]
        hints = {each.name: options.get(each.name, (Option(), each.type))
                 for each in fields(request)}  # type: ignore[arg-type]

        @wraps(perform)
        def function(*args: Fields.args, **named: Fields.kwargs) -> Result:
            bound = _bind(perform.__name__, signature, hints, args, named)
            return perform(request(*bound.args, **bound.kwargs))

        parameters = [each.replace(annotation=_plain(each.annotation))
                      for each in signature.parameters.values()]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=inspect.signature(perform).return_annotation)
        function.__doc__ = f"{inspect.getdoc(perform)}\n\n{_describe(request)}"
        return function
    return decorate


@cache
def checks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of Python read its arguments as one of a request does; see `takes`."""
    signature = inspect.signature(function)
    hints: dict[str, tuple[Option, Any]] = {}
    for name, each in signature.parameters.items():
        with suppress(NameError, TypeError):  # Of a name for type checkers only.
            hints[name] = Option(), eval(each.annotation, function.__globals__)

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        bound = _bind(function.__name__, signature, hints, args, named)
        return function(*bound.args, **bound.kwargs)

    return checked


def _bind(function: str, signature: inspect.Signature, hints: Mapping[str, tuple[Option, Any]],
          args: Any, named: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return arguments by parameter, read, without those that are None in place of a default."""
    known = signature.parameters
    try:
        bound = signature.bind(*args, **{  # `max_ram_bytes` is `max_ram` in every function.
            name if name in known else name.removesuffix("_bytes"): value
            for name, value in named.items()})
    except TypeError as error:
        unknown = next((name for name in named if name not in known), "")
        raise UsageError(f"{function}: {error}; {did_you_mean(unknown, known)}") from None
    for name, value in [*bound.arguments.items()]:
        if value is None and known[name].default is not inspect.Parameter.empty:
            del bound.arguments[name]
        elif name in hints:
            bound.arguments[name] = _read_value(name, value, *hints[name])
    return bound


_WORDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"), int: (Integral, "a whole number"), float: (Real, "a number"),
    str: (str, "a text")}
"""Of a type a field has: what is one, and how a refusal names it."""


def _read_value(name: str, given: Any, stated: Option, hint: Any) -> Any:
    """Return a field's value, read as its option's where its type takes no text."""
    kinds, text, parse = list_kinds(hint), isinstance(given, str), stated.parse
    if given is None and NoneType in get_args(hint):
        return None
    if parse is not None and (is_mapping(hint) or stated.text == list[str]):
        return parse([given] if text else [*map(str, given)]) if text or isinstance(
            given, (list, tuple)) else given
    if "Deployment" in (hint, getattr(hint, "__name__", "")):
        accepted, right = "twin.deploy(model, board)", hasattr(given, "buffer")
    elif text and parse is not None and str not in kinds:
        return parse(given)
    elif get_origin(kinds[0]) is Sequence and isinstance(given, (str, PathLike)):
        return (given,)
    elif {*kinds} <= {*_WORDS} and isinstance(given, (
            Real, Collection, NoneType)) and (stated.names or not text):
        accepted = " or ".join(_WORDS[kind][1] for kind in kinds)
        right = isinstance(given, tuple(_WORDS[kind][0] for kind in kinds)) and (
            bool in kinds or not isinstance(given, bool))
    else:
        return given
    if not right:
        raise UsageError(f"{name}={reprlib.repr(given)} is a "
                         f"{'text' if text else type(given).__name__}; accepted: {accepted}")
    return given


def _plain(hint: Any) -> Any:
    """Return a type as a signature shows it, without its option."""
    kind = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    return getattr(kind, "__forward_arg__", kind)


def _describe(request: Any) -> str:
    """Write the parameters of a request as numpy's docstrings do."""
    lines = ["Parameters", "----------"]
    for name, (stated, hint) in request.list_options().items():
        kind = _plain(hint)
        lines += [f"{name} : {kind if isinstance(kind, str) else inspect.formatannotation(kind)}",
                  *([f"    {stated.help}"] if stated.help else [])]
    return "\n".join(lines)


AUTO = "auto"
"""The default of every command that prices."""

SETTINGS_HELP = (
    "A path of the board file, `runtime`, `placement.weights`, `placement.arena`, `network.width` "
    "and others of the network, `kernels.level` ... or, with an accelerator, `offload.host`; "
    "`twin explain paths BOARD` lists them all; may be given several times.")

BOARD_FILES = OVERLAY_FILES = (".yaml", ".yml")

Words = str | Iterable[str]
Model = Annotated[str, Option(
    "", "MODEL", "A .tflite, .onnx, .pte or .espdl file, a file that contains one (archive, C "
    "array, ELF), or a network of `twin models`.", files=MODEL_FILES)]
MODELS = Option("", "MODEL...", "Files .tflite, .onnx, .pte, .espdl, files that contain one "
                "(archives, C arrays, ELF), or networks of `twin "
                "models`.", text=list[str], files=MODEL_FILES)
BOARDS = Option("--board -b", "BOARD", "A board of `twin boards`, or a board file; may be given "
                "several times.", text=list[str], files=BOARD_FILES)
Models = Annotated["File | Graph | Iterable[File | Graph]", MODELS]
Boards = Annotated["File | Board | Iterable[File | Board]", BOARDS]
ModelNames = Annotated[list[str], MODELS]
BoardNames = Annotated[list[str], BOARDS]
BoardName = Annotated[str, Option(
    "--board -b", "BOARD", "A board of `twin boards`, or a board file.", files=BOARD_FILES)]
Runtime = Annotated[str | None, Option(
    "--runtime", "NAME", "A kernel library of `twin runtimes`, as name@version; default: the one "
    "the board's vendor builds; best: the fastest one measured on the board.")]
Clock = Annotated[float | None, Option(
    "--clock", "FREQUENCY", "CPU clock, such as 80MHz, at the lowest voltage scale that allows it.",
    parse=parse_clock)]
Weights = Annotated[str | None, Option(
    "--weights", "ROLE", "Memory of the weights: flash, sram, tcm ..., its name, or an NPU's "
    "pool.")]
Arena = Annotated[str | None, Option(
    "--arena", "ROLE", "Memory of the arena: sram, tcm ..., its name, or an NPU's pool.")]
AssumeUnsupported = Annotated[str | None, Option(
    "--assume-unsupported", "copy",
    "Predict an unknown operator as a memory copy, marked as assumed.")]
Temperature = Annotated[str, Option(
    "--cold", None, "First inference, caches empty.", text=bool, default=False,
    parse=lambda cold: "cold" if cold else "warm")]
Calibration = Annotated[File, Option(
    "--calibration", "auto|none|FILE", "Learnt prices: auto (those shipped for this board and "
    "runtime), none (datasheets only), or a file of `twin calibrate`.", files=OVERLAY_FILES)]
Changes = Annotated[Settings | None, Option(
    "--set", "PATH=VALUE", SETTINGS_HELP, parse=parse_settings)]
Prices = Annotated[Mapping[str, float] | None, Option(
    "--price", "NAME=USD", "Your own price of a board or chip; may be given several times.",
    parse=parse_prices)]
Anyway = Annotated[bool, Option(
    "--anyway", None, "Compare even where network, board or clock differ.")]
Limit = float | str | None


class Settled(Request, kw_only=True):
    """At which clock a network runs, from which memories."""

    clock_hz: Clock = None
    weights: Weights = None
    arena: Arena = None


class Placed(Settled, kw_only=True):
    """Which library runs a network, at which clock, from which memories."""

    runtime: Runtime = None


class Deployed(Placed, kw_only=True):
    """Where a network is put, and with which changes."""

    assume_unsupported: AssumeUnsupported = None
    changes: Changes = None


class Priced(Request, kw_only=True):
    """Which prices a bill has, and whether caches are empty."""

    temperature: Temperature = "warm"
    calibration: Calibration = AUTO


class Judged(Request, kw_only=True):
    """How often networks have to be right, and on what that is measured."""

    accuracy: File | Callable[..., Any] | None = option(
        None, "--accuracy", "DATA", "Measure how often each network is right: an .npz of x and y, "
        "a folder of them, or FILE.py:FUNCTION (a network -> its share of right answers). It "
        "becomes an objective of the front.")
    min_accuracy: Limit = option(
        None, "--min-accuracy", "SHARE", "With --accuracy: lowest share of right answers, 0.9 or "
        "90%.")


class Fed(Request, kw_only=True):
    """How often an inference runs from which cell, and what its user knows of currents."""

    every: str | None = option(
        None, "--every", "PERIOD", "Time from one inference to the next, such as 1s or 5min; "
        "asleep in between. Adds columns of mean power and energy a day.")
    cell: str | None = option(
        None, "--cell", "CELL", "With --every: the battery, such as 1000mAh@3.7V (3 V where none "
        "is given) or 3.7Wh. Adds a column of battery life.")
    currents: Mapping[str, float | str] | None = option(
        None, "--currents", "NAME=CURRENT", "Your own run current of a board or chip, such as "
        "52uA/MHz; may be given several times.",
        parse=lambda texts: parse_named(texts, "--currents", "CURRENT/MHz", "140uA/MHz"))
    sleep: Mapping[str, float | str] | None = option(
        None, "--sleep", "NAME=CURRENT", "Your own sleep current at the chip's supply, of a kit at "
        "its input: 1.2uA, or 1.2uA,10us with its wake-up; may be repeated.",
        parse=lambda texts: parse_named(texts, "--sleep", "CURRENT", "12uA"))
    known_only: bool = option(
        False, "--known-only", None, "Treat currents and prices assumed for a class of parts as "
        "not known.")


class Powered(Fed, kw_only=True):
    """How an inference is fed, and limits of what that draws."""

    max_mw: Limit = option(
        None, "--max-mw", "MW", "With --every: highest mean power, in milliwatts, or as 50uW.")
    min_days: Limit = option(
        None, "--min-days", "DAYS", "With --cell: shortest battery life, in days, or as 1y.")


class Limited(Request, kw_only=True):
    """Limits of an inference: bare numbers in ms, uJ and bytes, or texts with a unit."""

    max_ms: Limit = option(
        None, "--max-ms", "MS", "Longest time of an inference, in milliseconds, or as 0.2s.")
    max_uj: Limit = option(
        None, "--max-uj", "UJ", "Highest energy of an inference, in microjoules, or as 5mJ.")
    max_ram: Limit = option(None, "--max-ram", "SIZE", "Highest use of RAM, such as 64KiB.")
    max_flash: Limit = option(
        None, "--max-flash", "SIZE", "Highest use of flash, weights and code, such as 512KiB.")


class LimitedAndPriced(Limited, kw_only=True):
    """Limits of an inference and of the chip's price."""

    max_usd: Limit = option(
        None, "--max-usd", "USD", "Highest price of the chip, in US dollars.")


class Predict(Deployed, Priced):
    """A network on a board, and its bill."""

    model: Model
    board: BoardName


def load_parsers() -> ModuleType:
    """Return the module of the parsers of `Part`, loaded where an option of it is given."""
    from twin.api.requests import programs

    return programs


class Part(Request, kw_only=True):
    """Which part of a program is asked about, and what it finds in memory and registers."""

    begin: str | None = option(
        None, "--from", "SYMBOL", "With --elf: function whose call is billed, from its entry to "
        "its return.")
    end: str | None = option(
        None, "--to", "SYMBOL", "With --from: end here instead of at the return.")
    call: str | None = option(
        None, "--call", "SYMBOL", "With --elf: a function called once main is reached, or --from "
        "in a file without symbols.")
    nth: int | None = option(
        None, "--nth", "N", "With --from: begin the N-th time it is reached.",
        parse=lambda text: load_parsers().parse_count(text, "--nth"))
    layers: str = option(
        AUTO, "--layers", "PATTERNS", "With --elf: functions whose calls are layers, such as "
        "'run_*,pool*', a shipped set, auto or none.")
    memory: Mapping[int, bytes] | None = option(
        None, "--memory", "FILE@ADDRESS", "With --elf: load a file at an address; may be given "
        "several times.", parse=lambda texts: load_parsers().parse_memory(texts))
    registers: Mapping[str, int] | None = option(
        None, "--set-register", "REG=VALUE", "With --elf: r0, sp, a0 (RISC-V) ... as the billed "
        "part begins, or 0xADDRESS of a peripheral's.",
        parse=lambda texts: load_parsers().parse_registers(texts))
    skip_startup: bool = option(
        False, "--skip-startup", None, "With --elf: begin at main, variables as in the file.")
    limit: int | None = option(
        None, "--limit", "N", "With --elf: stop with an error after N instructions.",
        parse=lambda text: load_parsers().parse_count(text, "--limit"))
