"""The text commands of MLPerf Tiny, from the runner's side: our firmware speaks them, and others.

    board = TextBoard(link); board.load(data); window = board.infer(200, 10)

References
----------
github.com/mlcommons/tiny, api/internally_implemented.cpp: commands end with `%`, answers with
"m-ready"; at most 31 bytes of hexadecimal data in one `db` command.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from calibration.collecting.deadline import Deadline
from calibration.collecting.link import Link
from calibration.errors import BoardRefusedError, LinkError, LinkTimeoutError

DATA_BYTES = 31
READY = "m-ready"
LEAST_WINDOW_S = 10.0
LEAST_INFERENCES = 10
WINDOWS = 5
"""The benchmark's rules: five windows of at least ten seconds and ten inferences, warm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Inferences between two timestamps of the board."""

    inferences: int
    span_us: float
    results: tuple[float, ...]

    @property
    def latency_us(self) -> float:
        """Mean of one inference."""
        return self.span_us / self.inferences


class TextBoard:
    """A board that takes text commands.

    Parameters
    ----------
    link : Link
        Open.
    timeout_s : float
        Longest wait for the answer to a command that runs nothing.
    """

    def __init__(self, link: Link, *, timeout_s: float = 5.0) -> None:
        self.link, self.timeout_s = link, timeout_s
        self._pending = b""

    def command(self, text: str, timeout_s: float | None = None) -> list[str]:
        """Send a command and return the lines of its answer, without the last, "m-ready".

        Raises
        ------
        LinkTimeoutError
            When it does not end in time.
        BoardRefusedError
            When the board answers with an error line.
        """
        self.link.write(text.encode("ascii") + b"%")
        deadline = Deadline(timeout_s or self.timeout_s)
        lines: list[str] = []
        while True:
            while b"\n" in self._pending:
                line, _, self._pending = self._pending.partition(b"\n")
                said = line.decode("ascii", "replace").strip("\r\0 ")
                if said == READY:
                    return self._checked(text, lines)
                lines.append(said)
            if deadline.passed:
                raise LinkTimeoutError(f"{self.link.port}: {text.split(' ')[0]!r} did not end with "
                                       f"{READY} in time; it said {' | '.join(lines) or 'nothing'}")
            self._pending += self.link.read(deadline.left_s)

    def _checked(self, text: str, lines: list[str]) -> list[str]:
        errors = [line for line in lines if line.startswith("e-")]
        if errors:
            raise BoardRefusedError(f"{self.link.port}: {text.split(' ')[0]!r}: {errors[0]}", 0, 0)
        return lines

    def _find(self, text: str, pattern: str) -> str:
        lines = self.command(text)
        found = next((match[1] for line in lines if (match := re.match(pattern, line))), None)
        if found is None:
            raise LinkError(f"{self.link.port}: {text!r} was answered {' | '.join(lines)}")
        return found

    def name(self) -> str:
        """Return what the board calls itself; drains a banner that came before."""
        self._pending = b""
        self.link.read(0.2)
        pattern = r"^m-name-dut-\[([^]]+)]$"
        try:
            return self._find("name", pattern)
        except BoardRefusedError:  # a command somebody left half sent stood before it
            return self._find("name", pattern)

    def model(self) -> str:
        """Return the benchmark's name of the model, such as "kws01"."""
        return self._find("profile", r"^m-model-\[([^]]+)]$")

    def load(self, data: bytes, progress: Callable[[int], None] | None = None) -> None:
        """Send the input.

        Raises
        ------
        LinkError
            When the board does not say that it has all of it.
        """
        self.command(f"db load {len(data)}")
        lines: list[str] = []
        for start in range(0, len(data), DATA_BYTES):
            lines = self.command("db " + data[start:start + DATA_BYTES].hex())
            if progress is not None:
                progress(min(start + DATA_BYTES, len(data)))
        if "m-load-done" not in lines:
            raise LinkError(f"{self.link.port}: the board did not confirm {len(data)} bytes")

    def infer(self, inferences: int, warmup: int, *, timeout_s: float = 60.0) -> Window:
        """Run a window of inferences.

        Raises
        ------
        LinkError
            When two timestamps are not there.
        """
        lines = self.command(f"infer {inferences} {warmup}", timeout_s)
        begin = next((i for i, line in enumerate(lines) if line.startswith("m-infer-start")), 0)
        laps = [int(match[1]) for line in lines[begin:]
                if (match := re.match(r"^m-lap-us-([0-9]+)$", line))]
        results = next((match[1] for line in lines
                        if (match := re.match(r"^m-results-\[([^]]+)]$", line))), "")
        if len(laps) < 2:
            raise LinkError(f"{self.link.port}: {len(laps)} timestamps of a window; two are "
                            "needed. A firmware in energy mode gives none")
        return Window(inferences=inferences, span_us=float((laps[-1] - laps[0]) % (1 << 32)),
                      results=tuple(float(value) for value in results.split(",") if value))

    def windows(self, *, count: int = WINDOWS, least_s: float = LEAST_WINDOW_S,
                warmup: int = 10) -> list[Window]:
        """Return windows by the benchmark's rules, their length found from a first inference."""
        first = self.infer(LEAST_INFERENCES, warmup, timeout_s=120.0)
        each_s = max(first.latency_us * 1e-6, 1e-6)
        inferences = max(int(1.05 * least_s / each_s) + 1, LEAST_INFERENCES)
        return [self.infer(inferences, warmup, timeout_s=10.0 + 3 * (inferences + warmup) * each_s)
                for _ in range(count)]
