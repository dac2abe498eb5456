"""What a part's peripherals are and hold after reset: a file for each part in `parts`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from hwmodels.board.facts import Span, Spans
from hwmodels.files import JsonObject, read_yaml
from hwmodels.frozen import frozen

_KIB = 1024


@frozen
class Field:
    """Bits of a register: its address, the first bit, how many."""

    word: int
    first: int
    bits: int

    @property
    def mask(self) -> int:
        """The bits, at bit 0."""
        return (1 << self.bits) - 1


@frozen
class Follower:
    """A field hardware sets: as another one, inverted (`!`), one bit by its number (`^`), or ones.

    Parameters
    ----------
    source
        Which one it follows; None: it always holds ones.
    how
        "", "!" or "^".
    """

    field: Field
    source: Field | None
    how: str

    def value(self, registers: Mapping[int, int]) -> int:
        """Return what the field holds while registers hold what they do."""
        if self.source is None:
            return self.field.mask
        held = registers.get(self.source.word, 0) >> self.source.first & self.source.mask
        if self.how == "^":
            return 1 << held & self.field.mask if held < self.field.bits else 0
        return (~held if self.how == "!" else held) & self.field.mask


@frozen
class Part:
    """Facts of a part's registers, by the vendor's SVD file or headers.

    Parameters
    ----------
    blocks : tuple of (int, int)
        Where it has peripherals: first addresses, and those behind the last.
    names
        Of peripherals, by base address in ascending order.
    reset
        Registers that are not 0 after reset.
    followers
        Ready bits and their like.
    keeps
        Bits that are cleared by writing 0, and are as they were where 1 is written.
    clears
        Bits that are cleared by writing 1.
    silent
        Data registers, which do not answer what was written: nothing is at the other end.
    opens_flash
        Registers that open flash to stores where 1 or 2 is written (CONFIG of an nRF's NVMC).
    triggers
        Task register -> event registers set when 1 is written to it.
    factory : tuple of (int, int)
        Memory the vendor writes: all ones but for `factory_words`.
    factory_words
        Of it, and of RAM as the boot ROM leaves it, by address.
    image_header
        What a bootloader's tool puts at the first page of constants, and no program's file has.
    memory : tuple of (int, int)
        Small memories beside the board's, in which a program may keep code and data.
    windows
        Further addresses of memories, uncached or without wait: that of the memory by each.
    rom : tuple of (int, int)
        Where its boot ROM has functions programs call.
    aliases
        "rp2" where a register has aliases that toggle, set and clear bits.
    bit_band
        Whether each bit of memory and peripherals has a word of its own elsewhere.
    devices
        Peripherals with a behaviour of their own (`twin.program.devices`), by kind.
    """

    blocks: Spans
    names: Mapping[int, str]
    reset: Mapping[int, int]
    followers: tuple[Follower, ...]
    keeps: Mapping[int, int]
    clears: Mapping[int, int]
    silent: frozenset[int]
    opens_flash: frozenset[int]
    triggers: Mapping[int, tuple[int, ...]]
    factory: Spans
    factory_words: Mapping[int, int]
    image_header: bytes
    memory: Spans
    windows: Mapping[int, int]
    rom: Spans
    aliases: str
    bit_band: bool
    devices: Mapping[str, tuple[str, ...]]

    def name(self, address: int) -> str:
        """Return a register as people look it up: "RCC+0x00 (0x40023800)"."""
        bases = list(self.names)
        place = bisect_right(bases, address) - 1
        if place < 0 or address - bases[place] >= 16 * _KIB:
            return f"0x{address:08x}"
        return f"{self.names[bases[place]]}+0x{address - bases[place]:02x} (0x{address:08x})"


@lru_cache(maxsize=8)
def load_part(soc: str) -> Part:
    """Return the facts of a part by its name in board files; of one nobody listed none."""
    path = Path(__file__).with_name("parts") / f"{soc}.yaml"
    document: JsonObject = read_yaml(path) if path.is_file() else {}
    words = {key: str(value).split() for key, value in document.items() if key != "devices"}
    blocks = _spans(words.get("blocks_kib", ()))
    return Part(
        blocks=tuple((low * _KIB, high * _KIB) for low, high in blocks),
        names={int(base, 16): name for base, name in _pairs(words.get("peripherals", ()))},
        reset=_numbers(words.get("reset", ())),
        followers=tuple(map(_read_follower, words.get("follow", ()))),
        keeps={int(word, 16): 0xFFFFFFFF for word in words.get("cleared_by_zeros", ())},
        clears=_numbers(words.get("cleared_by_ones", ())),
        silent=frozenset(int(word, 16) for word in words.get("silent", ())),
        opens_flash=frozenset(int(word, 16) for word in words.get("opens_flash", ())),
        triggers={int(task, 16): tuple(int(task, 16) & ~0xFFF | int(event, 16)
                                       for event in events.split(","))
                  for task, events in _pairs(words.get("triggers", ()))},
        factory=tuple(_spans(words.get("factory", ()))),
        factory_words=_numbers(words.get("factory_words", ())),
        image_header=bytes.fromhex(document.get("image_header", "")),
        memory=tuple(_spans(words.get("memory", ()))),
        windows=_numbers(words.get("windows", ())), rom=tuple(_spans(words.get("rom", ()))),
        aliases=document.get("aliases", ""), bit_band=document.get("bit_band", False),
        devices={kind: tuple(str(value).split())
                 for kind, value in document.get("devices", {}).items()})


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    return (word.partition("=")[::2] for word in words)


def _numbers(words: Iterable[str]) -> dict[int, int]:
    return {int(word, 16): int(value, 16) for word, value in _pairs(words)}


def _spans(words: Iterable[str]) -> Iterable[Span]:
    return ((int(low, 16), int(high, 16)) for low, _, high in (
        word.partition("-") for word in words))


def read_field(text: str) -> Field:
    """Return the field written as "ADDRESS.BIT" or "ADDRESS.BIT:BITS"."""
    word, _, place = text.partition(".")
    first, _, bits = place.partition(":")
    return Field(word=int(word, 16), first=int(first), bits=int(bits or 1))


def _read_follower(text: str) -> Follower:
    field, _, source = text.partition("<")
    how = source[0] if source[0] in "!^" else ""
    return Follower(field=read_field(field), how=how,
                    source=None if source == "1" else read_field(source[len(how):]))
