"""What every picture shares: a blank figure, its heading, and how it reaches the disk."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.errors import check_extra, escape, need_extra
from hwmodels.quantities import format_energy, format_frequency, format_time
from twin.errors import UsageError
from twin.reports.export import write_file
from twin.reports.palette import DARK_GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from twin.pricing.locality import Locality
    from twin.pricing.prediction import Prediction

SUFFIXES = (".png", ".svg", ".pdf")
"""File types a picture can be written as."""

EXTRA = ("pictures", "matplotlib", "plot")
"""What needs which package of which extra."""

TITLE_POINTS, DESCRIPTION_POINTS = 13, 9
"""Sizes of the two parts of a heading."""

_STYLE: Any = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.edgecolor": DARK_GREY,
    "axes.labelcolor": INK, "text.color": INK, "axes.axisbelow": True, "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6, "hatch.linewidth": 0.5, "svg.hashsalt": "twin",
    "legend.frameon": False, "ytick.major.size": 0,
    "text.parse_math": False,  # a name may have dollar signs
}

LONGEST_PART = 300
"""Characters of a part of a text that are drawn: names of files may have any number."""


@contextmanager
def blank_figure(width_in: float, height_in: float) -> Iterator[Figure]:
    """Give a blank figure of that size in inches; the style holds while it is drawn on.

    Raises
    ------
    ToolMissingError
        When matplotlib is not installed.
    """
    with need_extra(*EXTRA):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width_in, height_in), layout="constrained")


def describe_deployment(shown: Prediction | Locality, *more: str) -> str:
    """Say what a picture shows: model, board, core, clock, runtime, more, temperature."""
    deployment = shown.deployment
    board = deployment.board
    clock = board.core_clock
    return " · ".join((
        "predicted", f"{deployment.graph.name} on {board.name} "
        f"({board.core.model}, {format_frequency(clock.frequency_hz)})",
        deployment.runtime.identity, *more, shown.temperature))


@contextmanager
def new_figure(width_in: float, body_in: float, title: str, caption: str) -> Iterator[Figure]:
    """Give a figure with its heading: what it shows in bold, of what in grey below.

    Parameters
    ----------
    width_in, body_in
        Of the drawing, in inches; the figure is taller by its heading.
    title, caption
        Folded where they are longer than the figure is wide: nothing is cut.
    """
    title, caption = make_plain(title), make_plain(caption)
    with blank_figure(width_in, body_in) as figure:
        titles = fold_text(title, width_in - 0.2, TITLE_POINTS, "bold")
        lines = fold_text(caption, width_in - 0.2, DESCRIPTION_POINTS)
        heading_in = 0.2 + 0.24 * len(titles) + 0.17 * len(lines)
        height_in = heading_in + body_in
        figure.set_figheight(height_in)
        layout = figure.get_layout_engine()
        if layout is not None:
            layout.set(rect=(0.0, 0.0, 1.0, 1 - heading_in / height_in))  # type: ignore[call-arg]
        left = 0.1 / width_in
        figure.text(left, 1 - 0.08 / height_in, "\n".join(titles), ha="left", va="top",
                    fontsize=TITLE_POINTS, fontweight="bold")
        figure.text(left, 1 - (0.1 + 0.24 * len(titles)) / height_in, "\n".join(lines),
                    ha="left", va="top", fontsize=DESCRIPTION_POINTS, color=DARK_GREY)
        yield figure


def draw_figure(draw: Callable[[Axes], object], width_in: float, body_in: float, title: str,
                caption: str, *, legend: bool = False) -> Figure:
    """Return a figure of one pair of axes, as `new_figure`; `draw` draws on them."""
    with new_figure(width_in, body_in, title, caption) as figure:
        draw(figure.subplots())
        if legend:
            write_legend(figure)
    return figure


def make_plain(text: str) -> str:
    """Return a text as it can be drawn: without what steers, long parts cut in their middle."""
    half = LONGEST_PART // 2
    return " · ".join(part if len(part) <= LONGEST_PART else f"{part[:half]} ... {part[-half:]}"
                      for part in escape(text, keep="\n").split(" · "))


def make_all_plain(figure: Figure) -> None:
    """Let names that stand anywhere in a figure be drawn so; labels of ticks are made late."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    for one in figure.findobj(Text):
        if isinstance(one, Text) and (plain := make_plain(one.get_text())) != one.get_text():
            one.set_text(plain)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        named = axis.get_major_formatter()
        if isinstance(named, FixedFormatter | FuncFormatter):
            axis.set_major_formatter(FuncFormatter(
                lambda value, place, named=named: make_plain(str(named(value, place)))))


def fold_text(text: str, width_in: float, points: float, weight: str = "normal") -> list[str]:
    """Return lines no wider than so many inches, cut between words, at dots where there are any."""
    lines: list[str] = []
    for part in text.split(" · "):
        joined = f"{lines[-1]} · {part}" if lines else part
        if lines and _width_in(joined, points, weight) <= width_in:
            lines[-1] = joined
            continue
        words = part.split(" ")
        lines.append(words[0])
        for word in words[1:]:
            longer = f"{lines[-1]} {word}"
            if _width_in(longer, points, weight) <= width_in:
                lines[-1] = longer
            else:
                lines.append(word)
    return lines


def _width_in(text: str, points: float, weight: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), text.replace("$", "S") or " ", size=points,
                    prop=FontProperties(weight=weight))
    # where an outline is widest there is a point of it, so its curves are not looked at
    return float(path.vertices[:, 0].max()) / 72 if len(path.vertices) else 0.0


def write_legend(drawn: Figure | Axes, handles: Sequence[Any] | None = None,
                 columns: int | None = None) -> None:
    """Write one legend below a figure, each label once, in as many columns as there is room for.

    Parameters
    ----------
    drawn
        The figure, or axes of it, whose axes have labels, unless handles are given.
    columns
        At most.
    """
    figure: Any = drawn.get_figure(root=False)
    entries: dict[str, Any] = {}
    if handles is None:
        for axes in figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
    else:
        entries = {str(handle.get_label()): handle for handle in handles}
    if not entries:
        return
    each_in = 0.55 + max(_width_in(label, 8, "normal") for label in entries)
    room = max(1, int((figure.bbox.width / figure.dpi - 0.2) / each_in))
    legend = figure.legend([*entries.values()], [*entries], loc="outside lower left", fontsize=8,
                           ncols=min(room, columns or room, len(entries)), handlelength=1.8,
                           handleheight=1.0, columnspacing=1.2)
    for shown in legend.legend_handles:
        if shown is not None and hasattr(shown, "set_sizes"):
            shown.set_sizes([36])


def label_plainly(axis: Axis, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis at 1, 2, 5, 10 ... and without powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def place_labels(axes: Axes, labels: Sequence[tuple[float, float, str]],
                 points: float = 8.0) -> None:
    """Write texts beside points so that none covers another; the first have the first choice.

    Parameters
    ----------
    axes
        Whose limits and legend are final.
    labels : sequence of (float, float, str)
        Where, in the axes' own units, and what.

    Notes
    -----
    Each text tries eight places around its point. Where none is free it joins, after a comma, the
    text of the nearest point; a joined text names four and says how many more.
    """
    figure = axes.get_figure(root=True)
    if figure is None or not labels:
        return
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    placed: list[_Label] = []
    for x, y, text in labels:
        across, up = (float(one) / scale for one in axes.transData.transform((x, y)))
        width = 0.62 * points * len(text)
        for dx, dy in ((5, 3), (5, -11), (-5 - width, 3), (-5 - width, -11), (5, 12), (5, -20),
                       (-5 - width, 12), (-5 - width, -20)):
            box = (across + dx, up + dy, across + dx + width, up + dy + points)
            if not any(one.covers(box) for one in placed):
                placed.append(_Label(at=(x, y), offset=(dx, dy), box=box, texts=[text]))
                break
        else:
            nearest = min(placed, key=lambda one: math.dist(one.box[:2], (across, up)))
            nearest.texts.append(text)
    for one in placed:
        more = len(one.texts) - 4
        texts_shown = ", ".join(one.texts[:4]) + (f" +{more}" if more > 0 else "")
        axes.annotate(texts_shown, one.at, xytext=one.offset, textcoords="offset points",
                      fontsize=points, zorder=4)


@dataclass(slots=True, kw_only=True)
class _Label:
    """A text that was placed: left, bottom, right and top of it in points."""

    at: tuple[float, float]
    offset: tuple[float, float]
    box: tuple[float, float, float, float]
    texts: list[str]

    def covers(self, box: tuple[float, float, float, float]) -> bool:
        """Whether it covers another."""
        return (self.box[0] < box[2] and box[0] < self.box[2]
                and self.box[1] < box[3] and box[1] < self.box[3])


def rule_values(axes: Axes, along: str = "x") -> None:
    """Draw faint lines at the ticks of the axis that carries values."""
    axes.grid(True, axis="x" if along == "x" else "y")
    axes.tick_params(axis="both", labelsize=8)


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a picture as PNG, SVG or PDF by suffix; the file appears whole or not at all.

    Parameters
    ----------
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
        make_all_plain(figure)
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=metadata)
    return write_file(path, content.getvalue())


def save_figures(figures: Mapping[str, Figure | None], folder: str | Path) -> tuple[Path, ...]:
    """Write pictures into a folder as PNG, by name; None is omitted."""
    return tuple(save_figure(figure, Path(folder) / f"{name}.png")
                 for name, figure in figures.items() if figure is not None)


def write_total(prediction: Prediction, quantity: str) -> str:
    """Return the "time" or "energy" of an inference with its unit."""
    return (format_time(prediction.time_us) if quantity == "time" else
            format_energy(prediction.energy_uj))


def check_suffix(path: Path, more: str = "") -> str:
    """Return the suffix of a picture's path; `more` is said of what else would be accepted.

    Raises
    ------
    UsageError
        When no picture can be written under it.
    ToolMissingError
        When matplotlib is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a picture ends in {', '.join(SUFFIXES)}{more}")
    check_extra(*EXTRA)
    return suffix
