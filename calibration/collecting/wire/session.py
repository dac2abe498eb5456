"""What a board can be asked during a session."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.conversation import REPLY_S, Conversation, Reply
from calibration.collecting.wire.frames import PAYLOAD_MAX
from calibration.errors import BoardRefusedError, LinkError

MOST_COUNTERS = 256
"""That a sample can number."""
MOST_SAMPLES = 1 << 16
"""That a board keeps: a MiB of them."""
SPARE_CHUNKS = 16
"""By which an input may go on where it was before, beside once for each of its chunks."""


class Session(Conversation):
    """One session with one board; made as a `Conversation`."""

    def identify(self) -> wire.Identity:
        """Return part, image and model."""
        return self.ask("IDENTIFY", wire.Identity)

    def counters(self) -> tuple[wire.Counter, ...]:
        """Return the counters the board lists, in its numbering."""
        found: list[wire.Counter] = []
        while True:
            data = self.request("COUNTERS", wire.Listing(first=len(found), count=0).pack())
            entries = _entries(data, wire.Listing.parse(data).count, wire.Listing, wire.Counter)
            if not entries and not found:
                raise LinkError(f"{self.link.port}: the board lists no counter")
            if not entries:
                return tuple(found)
            found += entries
            if len(found) > MOST_COUNTERS:
                raise LinkError(f"{self.link.port}: the board lists more than {MOST_COUNTERS} "
                                "counters")

    def layer(self, index: int) -> wire.Layer:
        """Return one entry of the call list."""
        return wire.Layer.parse(self.request("LAYER", wire.Listing(first=index, count=0).pack()))

    def load(self, data: bytes, progress: Callable[[int], None] | None = None) -> None:
        """Send the input, going on where the board says.

        Raises
        ------
        LinkError
            When what arrived is not what was sent.
        """
        chunk = PAYLOAD_MAX - 4
        reply = self.ask("LOAD", wire.LoadReply, _offset(0) + data[:chunk])
        asked, most = 0, 2 * (len(data) // chunk) + SPARE_CHUNKS
        while reply.next < len(data):
            here = reply.next
            asked += 1
            if asked > most:
                raise LinkError(f"{self.link.port}: the board has {here:,} of {len(data):,} bytes "
                                f"of the input after {asked:,} requests")
            try:
                reply = self.ask("LOAD", wire.LoadReply, _offset(here) + data[here:here + chunk])
            except BoardRefusedError as error:
                if error.code != wire.ERRORS["OFFSET"] or error.detail >= here:
                    raise
                reply = wire.LoadReply(next=error.detail, checksum=0)
            if progress is not None:
                progress(reply.next)
        if reply.checksum != zlib.crc32(data):
            raise LinkError(f"{self.link.port}: the input arrived with CRC {reply.checksum:08x}, "
                            f"{zlib.crc32(data):08x} was sent")

    def configure(self, *, warmup: int = 0, flags: int = 0, events: tuple[int, ...] = (),
                  repeat_layer: int = wire.NO_LAYER, repeat: int = 1,
                  timeout_s: float = 60.0) -> wire.ConfigReply:
        """Say what the next runs do; forgets the samples and prepares the model again."""
        payload = wire.Config(warmup=warmup, flags=flags, events=len(events),
                              repeat_layer=repeat_layer, repeat=repeat,
                              event=wire.Config.pack_events(events)).pack()
        return wire.ConfigReply.parse(self.request("CONFIG", payload, timeout_s=timeout_s))

    def run(self, first_run: int, runs: int, *, timeout_s: float,
            expected_s: float = 0.0) -> wire.RunReply:
        """Make runs; a lost line that came back raises LinkResumedError.

        Notes
        -----
        A byte on the line ends the block early, so the request is sent again only when the block
        is overdue by as much as it should last.
        """
        payload = wire.Run(first_run=first_run, runs=runs).pack()
        return wire.RunReply.parse(self.request(
            "RUN", payload, timeout_s=timeout_s, attempt_s=2 * expected_s + 1.0, once=True))

    def samples(self, first: int = 0) -> Iterator[tuple[int, tuple[wire.RawSample, ...]]]:
        """Yield the number of the first of some samples, and these, until there are no more.

        Raises
        ------
        LinkError
            When the board sends others than it was asked for, or more than boards keep.
        """
        last = min(first + MOST_SAMPLES, 1 << 32)
        while first < last:
            try:
                data = self.request("SAMPLES", first.to_bytes(4, "little"))
            except BoardRefusedError as error:
                if error.code != wire.ERRORS["OFFSET"] or error.detail <= first:
                    raise
                first = error.detail  # an answer that forgot them was lost with the line
                continue
            head = wire.SamplesReply.parse(data)
            entries = _entries(data, head.count, wire.SamplesReply, wire.RawSample)
            if not entries:
                return
            if head.first < first:
                raise LinkError(f"{self.link.port}: the board sent samples from {head.first} on, "
                                f"asked for those from {first}")
            yield head.first, tuple(entries)
            first = head.first + len(entries)
        raise LinkError(f"{self.link.port}: the board has no end of samples, asked up to "
                        f"number {first:,}")

    def stop(self) -> None:
        """Leave the board idle and end the session; never raises for a line that is gone."""
        with contextlib.suppress(LinkError):
            self._exchange("IDLE", b"", REPLY_S)
            self._exchange("BYE", b"", 1.0)


def _offset(offset: int) -> bytes:
    return offset.to_bytes(4, "little")


def _entries(data: bytes, count: int, head: type[wire.Payload], entry: type[Reply]) -> list[Reply]:
    start, size = head.LAYOUT.size, entry.LAYOUT.size
    if len(data) < start + count * size:
        raise LinkError(f"the board announces {count} entries of {entry.__name__} in "
                        f"{len(data)} bytes")
    return [entry.parse(data[start + i * size:]) for i in range(count)]
