"""A measurement's progress on a terminal: bars that name the bottleneck so far, and remarks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.api.commands.measuring import Watcher
from twin.cli.output import note_written, open_console, show, warn

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from calibration.collecting.collector import Progress
    from calibration.measurement.measurement import Measurement

PATIENCE_S = 1.0
"""Without a terminal, before the first line that names a step, in seconds."""

QUIET_S = 30.0
"""Between two lines of progress where there is no terminal, in seconds."""


class Terminal(Watcher):
    """Shows a measurement as it goes on; bars only where stderr is a terminal."""

    def __init__(self) -> None:
        self._bar = _Bar("")
        self._temperature = self._bound = ""
        self._due_s = 0.0

    def __enter__(self) -> Terminal:
        """Show nothing until there is something to show."""
        return self

    def __exit__(self, *how: object) -> None:
        """Take the bar away."""
        self._bar.stop()

    def progress(self, progress: Progress, describe: Callable[[], Any] | None) -> None:
        """Move the bar; now and then, in a tenth of the time, say what bounds the network."""
        if describe is None or not sys.stderr.isatty():
            return
        if self._temperature != progress.temperature:
            self._bar.stop()
            self._bar = _Bar(progress.temperature, stays=True)
            self._temperature, self._bound, self._due_s = progress.temperature, "", 0.0
        self._bar.move(progress.done, progress.total, self._bound)
        begin = time.monotonic()
        if begin >= self._due_s:
            worst = describe().whole.bottleneck
            self._bound = (f"{worst.kind} {worst.severity:.0%}: {worst.evidence} "
                           f"[{worst.origin}]" if worst.kind else worst.evidence)
            self._bar.move(progress.done, progress.total, self._bound)
            self._due_s = time.monotonic() + 10 * (time.monotonic() - begin)
        if progress.done >= progress.total:
            self._bar.stop()

    def remark(self, text: str) -> None:
        """Write a warning."""
        warn([text])

    def keep(self, folder: Path, resumable: bool) -> None:
        """Say where samples are."""
        self._bar.stop()
        note_written(f"{folder}, as far as it came"
                     + ("; --resume goes on with it" if resumable else ""))

    def energy(self, measurement: Measurement, folder: Path) -> None:
        """Print energy by layer."""
        from twin.reports.tables.measured import energy_table

        show(open_console(), energy_table(measurement))
        note_written(folder)


LEAST_SHARE = 0.5
"""Of the points, from which their rate says how long the rest takes."""


class Rate:
    """Points of a study as they come: how many, at what rate, and how long the rest takes.

    A bar where stderr is a terminal; else a line after a second, then every half minute.
    """

    def __init__(self, of: str = "predicted") -> None:
        self._of = of
        self._bar = _Bar(of)
        self._began_s = time.monotonic()
        self._due_s = self._began_s + PATIENCE_S
        self._come = self._written = (0, 0)

    def __enter__(self) -> Rate:
        """Show nothing until there is something to show."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *how: object) -> None:
        """Take the bar away; of an interrupted study, say what is not lost."""
        self._bar.stop()
        done, total = self._come
        if kind is None and self._written[0] and self._written != self._come:
            print(f"{done} of {total} {self._of}", file=sys.stderr)
        if kind is KeyboardInterrupt and done:
            print(f"{done} of {total} {self._of}; what was counted for them is kept",
                  file=sys.stderr)

    def tell(self, done: int, total: int, failed: int) -> None:
        """Say how far it is."""
        self._come = done, total
        now = time.monotonic()
        rate = done / max(now - self._began_s, 1e-9)
        status = ", ".join(([f"{rate:.3g} a second"] if done else [])
                         + ([f"{failed} infeasible"] if failed else []))
        if not sys.stderr.isatty():
            if now >= self._due_s and done < total:
                self._due_s, self._written = now + QUIET_S, self._come
                left = f", {status}, {(total - done) / rate:.0f} s left" if done else ""
                # The first points come late and are of one board: no rate of the others.
                print(f"{done} of {total} {self._of}" + left * (done >= LEAST_SHARE * total),
                      file=sys.stderr)
            return
        self._bar.move(done, total, status)


class Steps:
    """Steps of unequal length as they come, each by its name.

    A bar where stderr is a terminal; else a line after a second, in the midst of a step if that
    takes longer, then every half minute as steps begin.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._bar = _Bar(doing, timed=False)
        self._line = ""
        self._due_s = time.monotonic() + PATIENCE_S
        self._first = threading.Timer(PATIENCE_S, self._say)
        self._first.daemon = True

    def __enter__(self) -> Steps:
        """Show nothing until there is something to show."""
        if not sys.stderr.isatty():
            self._first.start()
        return self

    def __exit__(self, *how: object) -> None:
        """Take the bar away."""
        self._first.cancel()
        self._bar.stop()

    def tell(self, done: int, total: int, name: str) -> None:
        """Say which step begins."""
        if not sys.stderr.isatty():
            self._line = "" if done >= total else (
                f"{self._doing}: {f'{done + 1} of {total}, ' if total > 1 else ''}{name}")
            if time.monotonic() >= self._due_s:
                self._say()
            return
        self._bar.move(done, total, name)

    def _say(self) -> None:
        """Write the step it is at, if it is at one and did not just do so."""
        self._first.cancel()
        if self._line:
            self._due_s = time.monotonic() + QUIET_S
            print(self._line, file=sys.stderr)


class _Bar:
    """A bar on stderr between two texts, from when it is moved; rich is loaded only then."""

    def __init__(self, before: str, *, timed: bool = True, stays: bool = False) -> None:
        self._before, self._timed, self._stays = before, timed, stays
        self._bars: Bars | None = None

    def move(self, done: int, total: int, text: str) -> None:
        """Show so many of all, and a text behind."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        if self._bars is None:
            self._bars = Progress(
                TextColumn(self._before), BarColumn(bar_width=40 if self._timed else 20),
                MofNCompleteColumn(), *([TimeRemainingColumn()] if self._timed else []),
                TextColumn("{task.fields[text]}", markup=False), console=Console(file=sys.stderr),
                transient=not self._stays)
            self._bars.add_task("", total=total, text=text)
            self._bars.start()
        self._bars.update(self._bars.task_ids[0], completed=done, total=total, text=text)

    def stop(self) -> None:
        """Take it away, or leave it as it is."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
