"""What a page or a picture shows, as text: what is kept beside a test and compared whole."""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

KEEP = "TWIN_KEEP"
"""Set to 1, files are written again instead of compared; read their difference before a commit."""


def compare_kept(path: Path, text: str) -> None:
    """Hold a text to the file that keeps it; which packages made it, it does not."""
    text = re.sub(r"\('made with', .*", "('made with')", text)
    if os.environ.get(KEEP) == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == text.splitlines()


def outline(value: Any, most: int = 12) -> str:
    """Write every field of a noun, and of those in it, a line for each that fits in one.

    Of a sequence `most` are written, and how many there are.
    """
    return "\n".join(_lines(value, most)) + "\n"


def outline_figure(figure: Any) -> str:
    """Write size, axes and artists of a picture: texts, places, colours; of many, the first."""
    lines = [f"size {_short(figure.get_size_inches())}"]
    for axes in figure.axes:
        back = axes.transData.inverted()
        lines += [f"axes {axes.get_title()!r} {axes.get_title('left')!r} "
                  f"{_short(axes.get_position().bounds)}"]
        for axis in (axes.xaxis, axes.yaxis):
            lines += [f"  {axis.axis_name} {axis.get_label_text()!r} {axis.get_scale()} "
                      f"{_short(axis.get_view_interval())} " + " ".join(
                          f"{_short(at)}={label.get_text()!r}" for at, label in zip(
                              axis.get_ticklocs(), axis.get_ticklabels(), strict=False))]
        lines += _first(f"text {text.get_text()!r} {_short(text.get_position())} "
                        f"{text.get_color()} {_short(text.get_fontsize())} {text.get_ha()} "
                        f"{text.get_va()} {text.get_fontweight()}" for text in axes.texts[:31])
        lines += _first(f"patch {_short(patch.get_extents().transformed(back).bounds)} "
                        f"{_short(patch.get_facecolor())} {patch.get_hatch()}"
                        for patch in axes.patches[:31])
        lines += _first(f"line {_short(line.get_xydata()[:40].ravel())} {line.get_color()} "
                        f"{line.get_linestyle()} {_short(line.get_linewidth())} "
                        f"{line.get_marker()}" for line in axes.lines)
        lines += _first(f"marks {_short(np.asarray(marks.get_offsets())[:40].ravel())} "
                        f"{_short([path.vertices[:4].ravel() for path in marks.get_paths()[:2]])} "
                        f"{_short(marks.get_facecolor()[:1].ravel())}"
                        for marks in axes.collections)
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        lines += [f"legend {[text.get_text() for text in legend.get_texts()]}"] if legend else []
    return "\n".join([*lines, *(f"text {text.get_text()!r}" for text in figure.texts)]) + "\n"


def _first(lines: Iterator[str]) -> list[str]:
    """Return 30 lines, and how many there are."""
    shown = [f"  {line}" for line in itertools.islice(lines, 30)]
    return [*shown, f"  and {more} more"] if (more := sum(1 for _ in lines)) else shown


def outline_text(part: Any, width: int) -> str:
    """Write what a terminal of a width shows of a report."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(part(console) if callable(part) else part)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def _lines(value: Any, most: int) -> Iterator[str]:
    for name, one in _pairs(value, most):
        if not callable(one):
            whole = _whole(one, most)
            yield str(name) if whole is None else f"{name} {whole}".lstrip()
            if whole is None:
                yield from (f"  {line}" for line in _lines(one, most))


def _pairs(value: Any, most: int) -> list[tuple[str, Any]]:
    """Return name and value of what is in a value: fields that are not as usual, a dozen items."""
    if is_dataclass(value):
        pairs = [(one.name, getattr(value, one.name)) for one in fields(value)
                 if one.name not in ("take", "write")]
        usual = {one.name: one.default for one in fields(value)}
        return [(name, one) for name, one in pairs if not (
            one is usual[name] or (isinstance(one, str | bool | int | float | tuple)
            and one == usual[name]))]
    if isinstance(value, Mapping):
        return [*value.items()]
    items = sorted(value) if isinstance(value, set | frozenset) else list(value)
    shown = [("", one) for one in items[:most]]
    return [*shown, ("more", len(items) - most)] if len(items) > most else shown


def _whole(value: Any, most: int) -> str | None:
    """Write a value in one line; None where it is too long for that."""
    if value is None or isinstance(value, str | bool | np.bool_):
        return repr(value)
    if isinstance(value, int | float | np.number):
        return _short(value)
    if isinstance(value, bytes | Path | Enum):
        return str(value)
    parts = [(str(name), _whole(one, most)) for name, one in _pairs(value, most)
             if not callable(one)]
    if any(part is None for _, part in parts) or sum(len(part or "") for _, part in parts) > 120:
        return None
    return f"({', '.join(f'{name}={part}'.lstrip('=') for name, part in parts)})"


def _short(value: Any) -> str:
    if isinstance(value, list) or np.ndim(value):
        return "(" + " ".join(_short(one) for one in value) + ")"
    return str(value) if isinstance(value, int | np.integer) else f"{float(value) + 0.0:.6g}"
