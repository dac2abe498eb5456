"""Functions of a boot ROM, which no program's file holds: answered here, their time unknown.

A ROM given by `--memory` runs as it is. Without one a call is answered in Python where its
function is known by name (of the C library, of a compiler's arithmetic, of RP2040's and RP2350's
tables) and by 0 where it is not. The report names what was called: its time is in no figure.
"""

from __future__ import annotations

import math
import operator
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any

import numpy as np

from hwmodels.program.elf import lies_in
from twin.program.device import quotient_of
from twin.program.memory import READ_RUN

_SIZES = {"i": 4, "u": 4, "f": 4, "d": 8, "l": 8, "q": 8}
_FORMATS = {"i": "<i", "u": "<I", "f": "<f", "d": "<d", "l": "<q", "q": "<Q"}
"""Kinds of arguments: int, unsigned, float, double, long long, unsigned long long."""
_LIMITS = {"i": (-1 << 31, (1 << 31) - 1), "u": (0, (1 << 32) - 1),
           "l": (-1 << 63, (1 << 63) - 1), "q": (0, (1 << 64) - 1)}

_FORMAT = re.compile(r"%([-+ #0]*+\d*(?:\.\d+)?)((?:hh|h|ll|l|z)?[diuxXcsp%])")

Work = Callable[..., Any]
Function = tuple[str, str, Work]
"""Kinds of arguments, of the result ("" for none), and what it computes."""


def _whole(kind: str) -> Work:
    """Return the conversion of a real number, towards zero and saturating."""
    low, high = _LIMITS[kind]

    def convert(value: float, shift: int = 0) -> int:
        scaled = 0.0 if math.isnan(value) else value * 2.0 ** shift
        return low if scaled <= low else high if scaled >= high else math.trunc(scaled)
    return convert


def _compare(first: float, second: float) -> int:
    return int(first > second) - int(first < second)


def _divide(first: float, second: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(first) / np.float64(second))


def _list_real(kind: str) -> dict[str, Function]:
    """Return arithmetic of a kind of real numbers, in the order of RP2040's tables."""
    other, two = ("d" if kind == "f" else "f"), kind * 2
    found: dict[str, Function] = {
        "add": (two, kind, operator.add), "sub": (two, kind, operator.sub),
        "mul": (two, kind, operator.mul), "div": (two, kind, _divide),
        "compare fast": (two, "i", _compare), "compare flags": (two, "", _compare),
        "sqrt": (kind, kind, lambda a: math.sqrt(a) if a >= 0 else math.nan)}
    for whole, size in (("iu", ""), ("lq", "64")):
        to = {f"to {name}{size}": (kind + more, one, _whole(one)) for one, sign in zip(
            whole, ("", "u"), strict=True) for name, more in ((f"{sign}int", ""),
                                                              (f"{sign}fix", "i"))}
        back = {f"from {name}{size}": (one + more, kind, lambda a, shift=0: math.ldexp(a, -shift))
                for one, sign in zip(whole, ("", "u"), strict=True)
                for name, more in ((f"{sign}int", ""), (f"{sign}fix", "i"))}
        if not size:
            found |= to | back
            found |= {name: (kind, kind, work) for name, work in (
                ("cos", math.cos), ("sin", math.sin), ("tan", math.tan), ("sincos", math.sin),
                ("exp", math.exp), ("ln", lambda a: math.log(a) if a > 0 else -math.inf))}
            found |= {"compare": (two, "i", _compare), "atan2": (two, kind, math.atan2)}
        else:
            found |= back | to
    return found | {"convert": (kind, other, lambda a: a)}


REAL = {"f": _list_real("f"), "d": _list_real("d")}


def _list_compiler() -> dict[str, Function]:
    """Return what compilers call for arithmetic a core lacks, by libgcc's names."""
    found: dict[str, Function] = {}
    for kind, letter in (("f", "s"), ("d", "d")):
        real = REAL[kind]
        found |= {f"__{name}{letter}f3": real[name] for name in ("add", "sub", "mul", "div")}
        found |= {f"__fix{gcc}{letter}f{size}": real[f"to {sign}int{bits}"]
                  for gcc, sign in (("", ""), ("uns", "u")) for size, bits in (("si", ""),
                                                                               ("di", "64"))}
        found |= {f"__float{gcc}{size}{letter}f": real[f"from {sign}int{bits}"]
                  for gcc, sign in (("", ""), ("un", "u")) for size, bits in (("si", ""),
                                                                              ("di", "64"))}
        found |= {f"__{name}{letter}f2": (kind * 2, "i", _compare)
                  for name in ("eq", "ne", "lt", "le", "gt", "ge")}
        found[f"__unord{letter}f2"] = (kind * 2, "i", lambda a, b: int(a != a or b != b))
        found[f"__neg{letter}f2"] = (kind, kind, operator.neg)
    for kind, sign in (("l", ""), ("q", "u")):
        found[f"__{sign}divdi3"] = (kind * 2, kind, quotient_of)
        found[f"__{sign}moddi3"] = (kind * 2, kind, lambda a, b: a - b * quotient_of(a, b))
    return found | {
        "__extendsfdf2": REAL["f"]["convert"], "__truncdfsf2": REAL["d"]["convert"],
        "__muldi3": ("qq", "q", operator.mul),
        "__ashldi3": ("qu", "q", operator.lshift),
        "__lshrdi3": ("qu", "q", operator.rshift),
        "__ashrdi3": ("lu", "l", operator.rshift),
        "__clzsi2": ("u", "i", lambda a: 32 - a.bit_length()),
        "__ctzsi2": ("u", "i", lambda a: (a & -a).bit_length() - 1 if a else 32),
        "__ffssi2": ("u", "i", lambda a: (a & -a).bit_length()),
        "__popcountsi2": ("u", "i", lambda a: a.bit_count()),
        "__bswapsi2": ("u", "u", lambda a: int.from_bytes(a.to_bytes(4, "little"), "big")),
        "reverse32": ("u", "u", lambda a: int(f"{a:032b}"[::-1], 2)),
        "abs": ("i", "i", abs)}


COMPILER = _list_compiler()
CODES: Mapping[str, str] = {
    "P3": "__popcountsi2", "R3": "reverse32", "L3": "__clzsi2", "T3": "__ctzsi2", "MS": "memset",
    "S4": "memset", "MC": "memcpy", "C4": "memcpy", "RE": "flash_range_erase",
    "RP": "flash_range_program", "UB": "reset_to_usb_boot"}
"""What RP2040 and RP2350 call functions of their ROM (pico-sdk, bootrom_constants.h)."""
LOOKUP, FIRST, VERSION = 0x20, 0x1000, 3
"""Where the ROM made for them has its look-up, and the first of its functions."""
ENDS = ("reset_to_usb_boot", "software_reset", "_exit", "abort")


class Rom:
    """A boot ROM whose functions are answered."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        part = machine.peripherals.part
        self.spans = tuple(span for span in part.rom if not any(
            low < span[1] and span[0] < high for low, high in machine.spans))
        self.names: dict[int, str] = {}
        self.called: dict[str, int] = {}
        for low, high in self.spans:
            machine.machine.mem_map(low, high - low, READ_RUN)
        self.tables = bool(self.spans) and part.aliases == "rp2"
        if self.tables:
            self._make_tables()
        for symbol, address in machine.elf.symbols.items():
            if not self.tables and self.holds(address):
                self.names.setdefault(address & ~machine.code.MODE, symbol)

    def holds(self, address: int) -> bool:
        """Whether an address is of this ROM."""
        return lies_in(address, self.spans)

    def _make_tables(self) -> None:
        """Put what RP2040's and RP2350's programs look up where they do (pico-sdk, bootrom.h)."""
        (low, high), = self.spans
        content = bytearray(high - low)
        lookup = struct.pack("<H", LOOKUP | 1)
        content[0x10:0x1A] = b"Mu\x01" + bytes([VERSION]) + struct.pack("<H", 0x1C) + (
            struct.pack("<H", 0x1E) + lookup if high - low < 0x8000 else lookup + bytes(2))
        content[:8] = struct.pack("<II", self.machine.stack, LOOKUP | 1)
        self.names[LOOKUP] = "look-up"
        at = FIRST
        for code, kind in (("SF", "f"), ("SD", "d")):
            self.names[at], content[at - 2] = code, len(REAL[kind])
            for place, name in enumerate(REAL[kind]):
                function = FIRST + 0x200 + 4 * len(self.names)
                self.names[function] = f"{'float' if kind == 'f' else 'double'} {name}"
                struct.pack_into("<I", content, at + 4 * place, function | 1)
            at += 0x100
        self.machine.machine.mem_write(low, bytes(content))

    def _look_up(self, first: int, second: int) -> int:
        """Return where a function or table is, making room for a function nobody asked for yet."""
        number = second if self.machine.traits.cpuid & 0xFFF0 == 0xC600 else first
        code = (number & 0xFFFF).to_bytes(2, "little").decode("latin-1")
        for address, name in self.names.items():
            if name == code:
                return address | (code not in ("SF", "SD"))
        address = FIRST + 0x200 + 4 * len(self.names)
        self.names[address] = code
        return address | 1

    def serve(self, address: int) -> int | None:
        """Do what the function at an address does; return where the program goes on."""
        machine = self.machine
        name = self.names.get(address & ~1, f"0x{address:08x}")
        back = machine.get("LR") & ~machine.code.MODE
        if name == "look-up":
            machine.set(machine.code.ARGUMENTS[0], self._look_up(*self._arguments("uu")))
            return int(back)
        name = CODES.get(name, name)
        if machine.peripherals.polling.billed:
            self.called[name] = self.called.get(name, 0) + 1
        if name in ENDS:
            machine.fail(f"the program ended in {name} of its boot ROM, called from "
                         f"{machine.elf.name_place(back)}")
            return None
        kind, _, real = name.partition(" ")
        function = (REAL[kind[0]].get(real) if kind in ("float", "double") else
                    COMPILER.get(name.replace("__aeabi_", "__")))
        if function is not None:
            self._compute(real, function)
        else:
            self._answer(self._do(name.removeprefix("ets_").removeprefix("esp_rom_")), "u")
        return int(back)

    def _compute(self, name: str, function: Function) -> None:
        kinds, result, work = function
        values = self._arguments(kinds)
        with np.errstate(all="ignore"):
            try:
                value = work(*values)
            except OverflowError:
                value = math.inf
        if name == "compare flags":
            flags = {-1: 8, 0: 6, 1: 2}[value] << 28
            self.machine.set("XPSR", self.machine.get("XPSR") & 0x0FFFFFFF | flags)
        else:
            self._answer(value, result)

    def _arguments(self, kinds: Iterable[str]) -> list[Any]:
        machine = self.machine
        held = struct.pack("<8I", *(machine.get(name) for name in machine.code.ARGUMENTS),
                           *[0] * (8 - len(machine.code.ARGUMENTS)))
        values, at = [], 0
        for kind in kinds:
            values.append(struct.unpack_from(_FORMATS[kind], held, at)[0])
            at += _SIZES[kind]
        return values

    def _answer(self, value: Any, kind: str) -> None:
        """Leave a result where a caller looks for it."""
        if kind == "f":
            with np.errstate(all="ignore"):
                held = np.float32(value).tobytes()
        elif kind == "d":
            held = struct.pack("<d", value)
        else:
            held = (int(value) & (1 << 8 * _SIZES[kind]) - 1).to_bytes(_SIZES[kind], "little")
        for place in range(len(held) // 4):
            self.machine.set(self.machine.code.ARGUMENTS[place],
                             int.from_bytes(held[4 * place:4 * place + 4], "little"))

    def _text(self, address: int) -> bytes:
        found = bytearray()
        while len(found) < 1 << 16 and (one := self.machine.read(address + len(found), 1)) != b"\0":
            found += one
        return bytes(found)

    def _do(self, name: str) -> int:
        """Do what a function with memory does; return its result, 0 of one nobody knows."""
        machine, write = self.machine, self.machine.machine.mem_write
        first, second, third = self._arguments("uuu")
        if name in ("memcpy", "memmove") and third:
            write(first, machine.read(second, third))
        elif name == "memset" and third:
            write(first, bytes([second & 0xFF]) * third)
        elif name == "bzero" and second:
            write(first, bytes(second))
        elif name in ("memcmp", "strncmp", "strcmp"):
            one, two = ((machine.read(first, third), machine.read(second, third))
                        if name == "memcmp" else (self._text(first), self._text(second)))
            if name == "strncmp":
                one, two = one[:third], two[:third]
            return int(one > two) - int(one < two)
        elif name == "strlen":
            return len(self._text(first))
        elif name in ("strcpy", "strncpy", "strcat"):
            text = self._text(second) + b"\0"
            write(first + (len(self._text(first)) if name == "strcat" else 0),
                  text if name != "strncpy" else text[:third].ljust(third, b"\0"))
        elif name in ("strchr", "strrchr"):
            text = self._text(first) + b"\0"
            at = (text.find if name == "strchr" else text.rfind)(bytes([second & 0xFF]))
            return first + at if at >= 0 else 0
        elif name == "crc32_le":
            return zlib.crc32(machine.read(second, third), first)
        elif name in ("delay_us", "get_cpu_frequency", "get_cpu_ticks_per_us", "get_reset_reason",
                      "rtc_get_reset_reason"):
            return self._tell(name, first)
        elif (matrix := machine.peripherals.matrix) is not None and (
                routed := matrix.route(name, first, second, third)):
            machine.peripherals.write(routed[0], 4, routed[1] & 0xFFFFFFFF, machine.here())
            return 0
        elif name == "qsort" and second:
            self._sort(first, second, third)
        elif name == "printf":
            return self._print(first)
        elif name == "GS":
            return self._tell_system(first, third)
        elif name.startswith("flash_range_"):
            low = next(one.address for one in machine.board.memories if "flash" in one.role)
            write(low + first, b"\xff" * second if name.endswith("erase")
                  else machine.read(second, third))
            return 0
        else:
            return 0
        return int(first)

    def _sort(self, place: int, count: int, size: int) -> None:
        """Sort what lies in memory by a function of the program."""
        machine = self.machine
        compare, stack = self._arguments("uuuu")[3], machine.get("SP")
        room = stack - 2 * size & ~15
        machine.set("SP", room)
        held = machine.read(place, count * size)

        def order(one: bytes, two: bytes) -> int:
            machine.machine.mem_write(room, one + two)
            return self._call(compare, room, room + size)

        rows = sorted((held[at:at + size] for at in range(0, len(held), size)),
                      key=cmp_to_key(order))
        machine.machine.mem_write(place, b"".join(rows))
        machine.set("SP", stack)

    def _call(self, function: int, *values: int) -> int:
        """Have the program run one of its functions; return its result, signed."""
        machine = self.machine
        link, here = machine.get("LR"), self.spans[0][0] + LOOKUP
        for name, value in zip(machine.code.ARGUMENTS, values, strict=False):
            machine.set(name, value)
        machine.set("LR", here | machine.code.MODE)
        place: int | None = function & ~machine.code.MODE
        while place is not None and place != here and machine.failure is None:
            machine.machine.emu_start(place | machine.code.MODE, here)
            place = machine.get("PC") & ~machine.code.MODE
            if place != here and self.holds(place):
                place = self.serve(place)
        machine.set("LR", link)
        return int(self._arguments("i")[0])

    def _print(self, place: int) -> int:
        """Keep what a program prints by its ROM's printf; return how many characters."""
        machine, code = self.machine, self.machine.code
        words = [machine.get(name) for name in code.ARGUMENTS[1:]]
        words += struct.unpack("<16I", machine.read(machine.get("SP"), 64))

        def put(match: re.Match[str]) -> str:
            flags, kind = match[1], match[2][-1]
            if kind == "%":
                return "%"
            value = words.pop(0) if words else 0
            if kind == "s":
                return f"%{flags}s" % self._text(value).decode("latin-1")
            if kind == "c":
                return chr(value & 0xFF)
            signed = kind in "di" and value >> 31
            return f"%{flags}{'x' if kind == 'p' else kind}" % (value - (1 << 32) * signed)

        text = _FORMAT.sub(put, self._text(place).decode("latin-1")).encode("latin-1", "replace")
        machine.semihosting.keep(text)
        return len(text)

    def _tell_system(self, place: int, asked: int) -> int:
        """Answer RP2350's get_sys_info: which of what is asked for there is, then zeros for it."""
        sizes = {1: 3, 2: 1, 4: 1, 8: 1, 16: 4, 64: 4}
        words = sum(size for flag, size in sizes.items() if asked & flag)
        self.machine.machine.mem_write(place, struct.pack("<I", asked) + bytes(4 * words))
        return words + 1

    def _tell(self, name: str, first: int) -> int:
        """Answer about clocks and resets, and let time pass."""
        machine = self.machine
        megahertz = round(machine.board.core_clock.frequency_hz / 1e6)
        if name == "delay_us":
            machine.pass_time(first * megahertz)
        return 0 if name == "delay_us" else 1 if name.endswith("reset_reason") else megahertz
