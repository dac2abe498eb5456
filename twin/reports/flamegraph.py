"""Folded stacks as a picture: width is share, a frame stands on its caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from hwmodels import errors
from twin.reports.export import write_file

WIDTH, ROW, HEAD = 1200, 18, 44
FEWEST = 5
"""Characters of a name that is cut, at least."""
CHARACTER = 6.6
"""Mean width of one, in pixels."""
COLOURS = ("#e76f51", "#f4a261", "#e9c46a", "#f28482", "#f6bd60", "#ee964b")


@dataclass(slots=True)
class _Frame:
    name: str
    weight: float = 0.0
    callees: dict[str, _Frame] = field(default_factory=dict)


def draw_flamegraph(stacks: Iterable[str], *, title: str = "", unit: str = "samples",
                    levels: str = "a frame stands on its caller") -> str:
    """Return an SVG of folded stacks.

    Parameters
    ----------
    stacks
        One per line: frames by semicolon, a blank, a weight. Order is kept from left to right.
    """
    root = _Frame("all")
    for line in stacks:
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        frame = root
        frame.weight += float(weight)
        for name in errors.escape(stack).split(";"):
            frame = frame.callees.setdefault(name, _Frame(name))
            frame.weight += float(weight)
    height = HEAD + (_depth(root) + 1) * ROW
    body = "\n".join(_draw(root, root.weight or 1.0, 0.0, height - ROW, unit))
    head = (f'<text x="8" y="18" font-size="14" font-weight="bold">'
            f'{escape(errors.escape(title))}</text>'
            f'<text x="8" y="35" fill="#555">width: {escape(unit)}, {root.weight:,.0f} in all; '
            f'{escape(levels)}; point at a frame for its figures</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n{head}\n{body}\n</svg>\n')


def _depth(frame: _Frame) -> int:
    return 1 + max(map(_depth, frame.callees.values()), default=0) if frame.callees else 0


def _draw(frame: _Frame, total: float, left: float, top: float, unit: str) -> Iterator[str]:
    width = WIDTH * frame.weight / total
    room = max(int((width - 4) / CHARACTER), 0)
    label = frame.name if len(frame.name) <= room else (
        f"{frame.name[:room - 2]}.." if room >= FEWEST else "")
    share = f"{frame.name}: {frame.weight:,.0f} {unit}, {frame.weight / total:.1%}"
    colour = COLOURS[sum(frame.name.encode()) % len(COLOURS)]
    yield (f'<g><title>{escape(share)}</title><rect x="{left:.2f}" y="{top:.0f}" '
           f'width="{width:.2f}" height="{ROW - 1}" fill="{colour}" stroke="#fff" '
           f'stroke-width="0.5"/>'
           f'<text x="{left + 2:.2f}" y="{top + 13:.0f}">{escape(label)}</text></g>')
    for callee in frame.callees.values():
        yield from _draw(callee, total, left, top - ROW, unit)
        left += WIDTH * callee.weight / total


def write_flamegraph(stacks: list[str], path: str | Path) -> Path:
    """Write stacks as a picture (.svg), or folded for any viewer; returns the file."""
    path = Path(path)
    text = draw_flamegraph(stacks) if path.suffix == ".svg" else "".join(stacks)
    return write_file(path, text.encode())
