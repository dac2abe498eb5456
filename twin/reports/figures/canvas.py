"""What every picture shares: a blank sheet, its heading, and how it reaches the disk."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.errors import extra_missing
from hwmodels.quantities import format_frequency
from twin.errors import UsageError
from twin.reports.export import write_file
from twin.reports.figures.palette import DARK_GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.locality import Locality
    from twin.prediction.prediction import Prediction

SUFFIXES = (".png", ".svg", ".pdf")
"""File types a picture can be written as."""

HEADING_IN = 0.62
"""Height of the heading of a sheet, in inches."""

_STYLE: Any = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.edgecolor": DARK_GREY,
    "axes.labelcolor": INK, "text.color": INK, "axes.axisbelow": True, "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6, "hatch.linewidth": 0.5, "svg.hashsalt": "twin",
    "legend.frameon": False, "ytick.major.size": 0,
}


@contextmanager
def new_figure(width_in: float, height_in: float) -> Iterator[Figure]:
    """Give a blank sheet of that size in inches; the style holds while it is drawn on.

    Raises
    ------
    ToolMissingError
        When matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise extra_missing("pictures", "matplotlib", "plot") from error
    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width_in, height_in), layout="constrained")


def describe_deployment(shown: Prediction | Locality, *more: str) -> str:
    """Say what a picture shows: model, board, core, clock, runtime, more, temperature."""
    deployment = shown.deployment
    board = deployment.board
    clock = board.clock(board.core.clock)
    return " · ".join((
        "predicted", f"{deployment.graph.name} on {board.name} "
        f"({board.core.model}, {format_frequency(clock.frequency_hz)})",
        deployment.runtime.identity, *more, shown.temperature))


def write_heading(figure: Figure, title: str, description: str) -> None:
    """Head the sheet: what it shows in bold, of what in grey below."""
    height_in = figure.get_figheight()
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.set(rect=(0.0, 0.0, 1.0, 1 - HEADING_IN / height_in))  # type: ignore[call-arg]
    figure.text(0.1 / figure.get_figwidth(), 1 - 0.08 / height_in, title, ha="left", va="top",
                fontsize=13, fontweight="bold")
    figure.text(0.1 / figure.get_figwidth(), 1 - 0.34 / height_in, description, ha="left",
                va="top", fontsize=9, color=DARK_GREY)


def rule_values(axes: Axes, along: str = "x") -> None:
    """Draw faint lines at the ticks of the axis that carries values."""
    axes.grid(True, axis="x" if along == "x" else "y")
    axes.tick_params(axis="both", labelsize=8)


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a picture as PNG, SVG or PDF by suffix; the file appears whole or not at all.

    Parameters
    ----------
    figure : Figure
        As drawn.
    path : str or Path
        Where to; its folder is made if it does not exist.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    UsageError
        For another suffix, or a place that cannot be written.
    """
    import matplotlib

    suffix = check_suffix(Path(path))
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(
        suffix, {"Software": None})
    content = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=metadata)
    return write_file(path, content.getvalue())


def check_suffix(path: Path) -> str:
    """Return the suffix of a picture's path.

    Raises
    ------
    UsageError
        When no picture can be written under it.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a picture ends in {', '.join(SUFFIXES)}")
    return suffix
