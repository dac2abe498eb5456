"""How a command ends: refusals, interruptions and bugs become one message and an exit code."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import stat
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from hwmodels.errors import TwinError, escape, tell_in_one_line
from twin.errors import UsageError
from twin.interruption import INTERRUPTED, leave_interrupts, note_interrupts, was_interrupted

_USAGE_ERRORS: Any = typer.BadParameter.__bases__
LONGEST_USAGE = 400
"""Characters of what the command-line library says of a wrong word, ahead of which it names it."""

BROKEN_PIPE = 141
BUG = 70
"""Besides the codes errors carry: 128 + SIGPIPE, and EX_SOFTWARE of sysexits."""


class AsTyped:
    """Words of the command line as they are, where a verb takes text."""

    def __init__(self, option: Any) -> None:
        vars(self).update(vars(option))

    def get_runtime_param(self) -> Any:
        """Return what coerces words: typer's own has pydantic do it, slower to load than predict.

        Releases without this method coerce by the type.
        """
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a word, several as a list, or nothing."""
        return list(value or ()) if param.multiple or param.nargs == -1 else value


class TextOption(AsTyped, typer.core.TyperOption):
    """An option whose words are taken as typed."""


class TextArgument(AsTyped, typer.core.TyperArgument):
    """An argument whose words are taken as typed."""


@functools.cache
def take_as_typed(option: Any) -> Any:
    """Return an option that takes text, or a flag, as one that takes it as it is.

    The same for the same: parsing asks for options several times and compares them.
    """
    taken = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    if taken not in (str, list[str], bool):
        return option
    return (TextOption if isinstance(option, typer.core.TyperOption) else TextArgument)(option)


class Plain:
    """A command whose words are taken as typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its arguments and options, that of help too."""
        return list(map(take_as_typed, super().get_params(ctx)))  # type: ignore[misc]


WRITTEN = frozenset({"--output", "--plot", "--csv", "--trace", "--export", "--flamegraph",
                     "--report", "--junit", "--bencher", "--markdown"})
"""Options that name what a verb writes; every other word may name what it reads."""


class Once(Plain, typer.core.TyperCommand):
    """A verb that refuses an option given twice, and to write over what it reads."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in self.get_params(ctx):
            if isinstance(option, typer.core.TyperOption) and not option.multiple \
                    and not option.is_flag and not option.count and order.count(option) > 1:
                raise UsageError(f"{'/'.join(option.opts)} is given {order.count(option)} times; "
                                 f"accepted: once; run {self.name} again for another")
        rest = super().parse_args(ctx, args)
        self._refuse_own_input(ctx.params)
        return rest

    def _refuse_own_input(self, params: Mapping[str, Any]) -> None:
        """Refuse an output that is a file the command line names elsewhere."""
        read: dict[tuple[int, int], str] = {}
        for writes in (False, True):
            for option in self.params:
                if bool(WRITTEN & {*option.opts}) != writes:
                    continue
                for word in _list_words(params.get(str(option.name))):
                    place = _find_file(word)
                    if writes and place in read:
                        raise UsageError(f"{option.opts[0]} {word}: is {read[place]}, which "
                                         f"{self.name} reads; accepted: another file")
                    if place is not None:
                        read.setdefault(place, word)


def _list_words(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [one for one in values if isinstance(one, str)]


def _find_file(word: str) -> tuple[int, int] | None:
    """Return which regular file a word names: device and number."""
    try:
        found = os.stat(word)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


class Verbs(Plain, TyperGroup):
    """The verbs of the command line, each ended in the same way."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run with somewhere to write: messages without a place are dropped, results are not."""
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        if sys.stderr is None:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        if sys.stdout is None:
            complain("error: standard output is closed: there is nowhere to write results; "
                     "accepted: a terminal, a file, a pipe, or /dev/null")
            sys.exit(UsageError.exit_code)
        with _ended_as_interrupted(), _show_progress():
            return super().main(*args, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty words: a folder or file of no name would be this folder, or nothing."""
        for place, word in enumerate(args):
            if not word.strip() or (word.startswith("--") and word.endswith("=")):
                before = args[place - 1] if place and not word.strip() else word.rstrip("=")
                raise typer.BadParameter(f"an empty value after {before}")
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERRORS as error:
            raise _shortened(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb the arguments name."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except Exception as error:
            if hasattr(error, "exit_code") and not isinstance(error, TwinError):
                raise _shortened(error) from None  # the command-line library's own ways to end
            raise typer.Exit(say_ending(error)) from error


def _shortened(error: Exception) -> Exception:
    """Return an error of the command-line library, with what it quotes cut where it is long.

    The help that stands where no verb is given is whole.
    """
    if getattr(error, "option_name", "") == "--report":
        error.message += "; `twin report` writes pages of predictions"  # type: ignore[attr-defined]
    if hasattr(error, "message") and type(error).__name__ != "NoArgsIsHelpError":
        error.message = tell_in_one_line(error.message, LONGEST_USAGE)
    return error


def say_ending(error: Exception) -> int:
    """Say what ended a verb, and return the exit code."""
    if was_interrupted():  # whatever a library made of it
        complain("interrupted")
        return INTERRUPTED
    if isinstance(error, TwinError):
        complain(f"error: {error}")
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        drop_output()
        return BROKEN_PIPE
    if isinstance(error, OSError):
        complain(f"error: cannot read or write: {error}")
        drop_output()
        return UsageError.exit_code
    report_bug(error)
    return BUG


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: boards idle, emulators ended, samples kept."""
    note_interrupts()
    try:
        yield
    finally:
        leave_interrupts()


class _Remarks(logging.Handler):
    """Log records as lines of stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


SHOWN_LOGS = ("hwmodels.kernels", "twin.program")
"""Logs whose messages are shown: kernels that are compiled, programs that are emulated."""


@contextlib.contextmanager
def _show_progress() -> Iterator[None]:
    """Tell on stderr what takes seconds, and is mostly done the first time only."""
    remarks = _Remarks()
    logs = [logging.getLogger(name) for name in SHOWN_LOGS]
    levels = [log.level for log in logs]
    for log in logs:
        log.addHandler(remarks)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.removeHandler(remarks)
            log.setLevel(level)


def note_ignored_interrupt() -> None:
    """Say how a long command is ended where Ctrl-C does not: a shell's background asks for that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        complain("note: Ctrl-C is ignored, as this was started in the background; "
                 f"kill {os.getpid()} ends it and keeps the samples")


def drop_output() -> None:
    """Send what stdout still holds nowhere; Python would complain again when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """Write a line to stderr, where it cannot mix with results."""
    print(escape(message, keep="\n\t"), file=sys.stderr)


def report_bug(error: Exception) -> None:
    """Say that the fault is ours and how to report it."""
    if os.environ.get("TWIN_DEBUG"):
        traceback.print_exception(error)
    text = str(error).splitlines()[0] if str(error) else ""
    complain(f"internal error: {type(error).__name__}: {text}\n"
             "This is a bug of twin, not of your input. Please report it with the command you "
             "ran and what it prints with TWIN_DEBUG=1.")
