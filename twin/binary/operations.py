"""What each instruction does to registers, flags and memory, as far as control and addresses go.

`compile_operation(listed)` gives a function of a machine: the `Walker` of `twin.binary.walk`, which
has registers and stack in `state`, `flags`, `scope`, `load`, `store` and `decide`. What only moves
data about makes its results `DATA`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hwmodels.errors import KernelError
from hwmodels.isa.instruction import Instruction, parse_code
from hwmodels.isa.words import Word, read_word
from twin.binary.image import Listed
from twin.binary.values import (
    DATA,
    STALE,
    Value,
    add,
    base_of,
    lost,
    subtract,
    times,
    wrap,
)
from twin.errors import FirmwareError

Operation = Callable[[Any], None]
Source = Callable[[Any], Any]

SP, LR, PC = 13, 14, 15
SINGLES = 16
"""Place of s0 in the state; general registers come first, words of the stack by their address."""

_NAMES = {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": SP, "lr": LR, "pc": PC}
REGISTERS = {f"r{i}": i for i in range(16)} | _NAMES
_SHIFTS = ("lsl", "lsr", "asr", "ror", "rrx")
_SIZES = {"b": (1, False), "sb": (1, True), "h": (2, False), "sh": (2, True), "": (4, True)}
_SCALAR_ACCESS = re.compile(r"^(ldr|str)(sb|sh|b|h|)(t?)$")


def split_operands(text: str) -> list[str]:
    """Operands as written; what brackets hold together is one."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def number(text: str) -> int | None:
    """An immediate, as 32 bits hold it."""
    text = text.lstrip("#")
    try:
        return wrap(int(text, 0))
    except ValueError:
        return None


def read_mnemonic(listed: Listed) -> tuple[Word, str]:
    """Return the mnemonic taken apart, and its condition, "" for none."""
    vector = bool(re.search(r"\bq[0-7]\b", listed.operands))
    try:
        word = read_word(listed.mnemonic, vector, listed.text)
    except KernelError as error:
        raise FirmwareError(f"0x{listed.address:08x}: {error}") from error
    name = listed.mnemonic.split(".")[0]
    return word, name[-2:] if word.conditional and word.base != "it" else ""


def compile_operation(listed: Listed) -> Operation:
    """Return what an instruction does, branches apart.

    Raises
    ------
    FirmwareError
        When it is not understood.
    """
    word, condition = read_mnemonic(listed)
    operation = _compile(word, listed)
    if not condition:
        return operation
    return lambda machine: _run_if(machine, condition, operation)


def _run_if(machine: Any, condition: str, operation: Operation) -> None:
    """Run under a condition; where data decide it, what it changes may be either."""
    decided = machine.decide(condition, machine.flags)
    if decided is None:
        before = dict(machine.state)
        operation(machine)
        state = machine.state
        for place, value in before.items():
            if state[place] != value:
                state[place] = lost(state[place], value)
    elif decided:
        operation(machine)


def _compile(word: Word, listed: Listed) -> Operation:
    base, tokens = word.base, split_operands(listed.operands)
    if base in ("it", "nop", "vpst", "vpt", "vctp", "vpnot", "vmsr", "pld", "dmb", "dsb", "isb"):
        return lambda machine: None
    if base in _BINARY:
        return _binary(_BINARY[base], word.flags, tokens, listed)
    if base in ("mov", "movw", "mvn", "neg", "adr") and tokens[0] in REGISTERS:
        return _unary(base, word.flags, tokens, listed)
    if base in ("cmp", "cmn", "tst", "teq"):
        return _comparison(base, tokens, listed)
    if base in _EXTENSIONS:
        return _extension(base, tokens, listed)
    if base in ("mla", "mls"):
        d, n, m, a = (REGISTERS[token] for token in tokens)
        sign = 1 if base == "mla" else -1

        def accumulate(machine: Any) -> None:
            state = machine.state
            product = machine.scope.multiply(state[n], state[m])
            state[d] = add(state[a], times(product, sign))
        return accumulate
    if base in ("smull", "umull"):
        low, high, first, second = (REGISTERS[token] for token in tokens)

        def multiply(machine: Any) -> None:
            state = machine.state
            state[low], state[high] = machine.scope.multiply_long(
                state[first], state[second], base == "smull")
        return multiply
    if base == "movt":
        return _move_top(REGISTERS[tokens[0]], number(tokens[1]) or 0)
    if base == "dls":
        return _move(LR, _source(tokens[1:], listed))
    if base in ("csel", "cset", "csinc", "cinc", "csneg", "csinv", "csetm"):
        return _select(base, tokens)
    if base == "vmov" and len(tokens) == 2 and any(token in REGISTERS for token in tokens):
        return _between_files(tokens)
    if word.spec.kind in ("load", "store"):
        return _access(word, tokens, listed)
    return _blind(listed)


# ---- sources ----

def _source(tokens: list[str], listed: Listed) -> Source:
    """The last operand: a constant, a register, or a register shifted."""
    value = number(tokens[0])
    if value is not None:
        return lambda machine: value
    if tokens[0] not in REGISTERS:
        raise FirmwareError(f"0x{listed.address:08x}: {listed.text!r} is not understood")
    register = REGISTERS[tokens[0]]
    if register == PC:
        here = listed.address + 4
        return lambda machine: here
    if len(tokens) == 1:
        return lambda machine: machine.state[register]
    kind, _, amount = tokens[1].partition(" ")
    by = _source([amount or "#1"], listed)
    return lambda machine: shift(machine.scope, kind, machine.state[register], by(machine))


def shift(scope: Any, kind: str, value: Value, amount: Value) -> Value:
    """A value shifted; rotations and shifts that data decide give data."""
    if type(amount) not in (int, tuple) or type(value) not in (int, tuple):
        return 0 if value == 0 else lost(value, amount)
    bits = scope.pin(amount) & 0xFF
    if kind == "lsl":
        return times(value, 1 << bits) if bits < 32 else 0
    if kind == "lsr":
        return scope.halve_unsigned(value, bits) if bits < 32 else 0
    if kind == "asr":
        return scope.halve(value, min(bits, 31))
    turned = scope.pin(value) & 0xFFFFFFFF
    bits %= 32
    return wrap(turned >> bits | turned << (32 - bits)) if kind == "ror" else DATA


# ---- arithmetic ----

def _or(scope: Any, left: Value, right: Value) -> Value:
    if type(left) in (int, tuple) and type(right) in (int, tuple):
        if left == 0 or right == 0:
            return right if left == 0 else left
        return wrap(scope.pin(left) | scope.pin(right))
    return lost(left, right)


def _exclusive(scope: Any, left: Value, right: Value) -> Value:
    if type(left) in (int, tuple) and type(right) in (int, tuple):
        return wrap(scope.pin(left) ^ scope.pin(right))
    return lost(left, right)


def _unsigned_quotient(scope: Any, left: Value, right: Value) -> Value:
    if type(left) in (int, tuple) and type(right) in (int, tuple) \
            and base_of(left) >= 0 and base_of(right) >= 0:
        scope.require(left)
        return scope.divide(left, right)  # type: ignore[no-any-return]
    return lost(left, right)


def _shifted(kind: str, scope: Any, value: Value, amount: Value) -> Value:
    return shift(scope, kind, value, amount)


def _inverted(value: Value) -> Value:
    return subtract(-1, value)


_BINARY: dict[str, Callable[[Any, Value, Value], Value]] = {
    "add": lambda scope, a, b: add(a, b), "addw": lambda scope, a, b: add(a, b),
    "sub": lambda scope, a, b: subtract(a, b), "subw": lambda scope, a, b: subtract(a, b),
    "rsb": lambda scope, a, b: subtract(b, a),
    "adc": lambda scope, a, b: lost(a, b), "sbc": lambda scope, a, b: lost(a, b),
    "mul": lambda scope, a, b: scope.multiply(a, b),
    "and": lambda scope, a, b: scope.mask(a, b),
    "bic": lambda scope, a, b: scope.mask(a, _inverted(b)),
    "orr": _or, "eor": _exclusive, "orn": lambda scope, a, b: _or(scope, a, _inverted(b)),
    "sdiv": lambda scope, a, b: scope.divide(a, b), "udiv": _unsigned_quotient,
    **{kind: partial(_shifted, kind) for kind in _SHIFTS[:4]},
}


def _parts(tokens: list[str], listed: Listed) -> tuple[int, Source, Source]:
    """Target and both sources of arithmetic written with two or three operands."""
    rest = tokens[1:]
    shifted = len(rest) > 1 and rest[-1].split(" ")[0] in _SHIFTS
    plain = rest[:-1] if shifted else rest
    if len(plain) == 1:
        first, last = tokens[:1], rest
    else:
        first, last = rest[:1], rest[1:]
    return REGISTERS[tokens[0]], _source(first, listed), _source(last, listed)


def _binary(work: Callable[[Any, Value, Value], Value], flags: bool, tokens: list[str],
            listed: Listed) -> Operation:
    target, left, right = _parts(tokens, listed)

    def run(machine: Any) -> None:
        machine.state[target] = work(machine.scope, left(machine), right(machine))

    if not flags:
        return run
    name = listed.mnemonic.split(".")[0].removesuffix("s")

    def run_and_compare(machine: Any) -> None:
        a, b = left(machine), right(machine)
        result = machine.state[target] = work(machine.scope, a, b)
        machine.flags = {"sub": (a, b, True), "rsb": (b, a, True),
                         "add": (a, times(b, -1), True)}.get(name, (result, 0, False))
    return run_and_compare


def _comparison(base: str, tokens: list[str], listed: Listed) -> Operation:
    left, right = _source(tokens[:1], listed), _source(tokens[1:], listed)

    def run(machine: Any) -> None:
        a, b = left(machine), right(machine)
        if base == "cmp":
            machine.flags = a, b, True
        elif base == "cmn":
            machine.flags = a, times(b, -1), True
        elif base == "tst":
            machine.flags = machine.scope.mask(a, b), 0, False
        else:
            machine.flags = _exclusive(machine.scope, a, b), 0, False
    return run


def _move(target: int, source: Source) -> Operation:
    def run(machine: Any) -> None:
        machine.state[target] = source(machine)
    return run


def _unary(base: str, flags: bool, tokens: list[str], listed: Listed) -> Operation:
    target = REGISTERS[tokens[0]]
    if base == "adr":
        here = (listed.address + 4 & ~3) + (number(tokens[-1]) or 0)
        return _move(target, lambda machine: here)
    source = _source(tokens[1:], listed)

    def run(machine: Any) -> None:
        value = source(machine)
        if base == "mvn":
            value = _inverted(value)
        result = times(value, -1) if base == "neg" else value
        machine.state[target] = result
        if flags:
            machine.flags = (0, value, True) if base == "neg" else (result, 0, False)
    return run


def _move_top(target: int, value: int) -> Operation:
    def run(machine: Any) -> None:
        old = machine.state[target]
        machine.state[target] = wrap(value << 16 | old & 0xFFFF) if type(old) is int else lost(old)
    return run


_EXTENSIONS = {"uxtb": (False, 8), "uxth": (False, 16), "sxtb": (True, 8), "sxth": (True, 16),
               "ubfx": (False, 0), "sbfx": (True, 0)}


def _extension(base: str, tokens: list[str], listed: Listed) -> Operation:
    signed, width = _EXTENSIONS[base]
    target, low = REGISTERS[tokens[0]], 0
    if width:
        source = _source(tokens[-1:], listed)
    else:
        source = _source(tokens[1:2], listed)
        low, width = number(tokens[2]) or 0, number(tokens[3]) or 0

    def run(machine: Any) -> None:
        value = source(machine)
        if type(value) in (int, tuple):
            scope = machine.scope
            value = scope.halve_unsigned(value, low) if low else value
            value = scope.narrow(value, width) if signed else scope.mask(value, (1 << width) - 1)
        machine.state[target] = value
    return run


def _select(base: str, tokens: list[str]) -> Operation:
    """CSEL and its kin of Armv8.1-M: one of two sources, the other one changed."""
    condition, target = tokens[-1], REGISTERS[tokens[0]]
    sources = [REGISTERS.get(token, -1) for token in tokens[1:-1]]

    def run(machine: Any) -> None:
        state, decided = machine.state, machine.decide(condition, machine.flags)
        yes: Value
        no: Value
        values = [0 if place < 0 else state[place] for place in sources]
        if base in ("cset", "csetm"):
            yes, no = (1 if base == "cset" else -1), 0
        elif base == "cinc":
            yes, no = add(values[0], 1), values[0]
        else:
            change = {"csinc": lambda v: add(v, 1), "csneg": lambda v: times(v, -1),
                      "csinv": _inverted}.get(base, lambda v: v)
            yes, no = values[0], change(values[1])
        state[target] = lost(yes, no) if decided is None else yes if decided else no
    return run


def _between_files(tokens: list[str]) -> Operation:
    """Moves between general and single registers, which compilers use to keep values."""
    places = [REGISTERS[token] if token in REGISTERS
              else SINGLES + int(token[1:]) if re.fullmatch(r"s\d+", token) else -1
              for token in tokens]

    def run(machine: Any) -> None:
        value = machine.state.get(places[1], DATA) if places[1] >= 0 else DATA
        if places[0] >= 0:
            machine.state[places[0]] = value
    return run


def _blind(listed: Listed) -> Operation:
    """An instruction of which only is known what it reads and writes."""
    try:
        one: Instruction = parse_code(listed.text)[0]
    except KernelError as error:
        raise FirmwareError(f"0x{listed.address:08x}: {error}") from error
    reads = [REGISTERS[name] for name, _ in one.reads if name in REGISTERS]
    writes = [REGISTERS[name] for name in one.writes if name in REGISTERS]
    singles = [SINGLES + int(name[1:]) for name in one.writes if re.fullmatch(r"s\d+", name)]

    def run(machine: Any) -> None:
        state = machine.state
        value = STALE if any(state[place] == STALE for place in reads) else DATA
        for place in writes:
            state[place] = value
        for place in singles:
            state.pop(place, None)
        if one.sets_flags:
            machine.flags = value, 0, False
    return run


# ---- memory ----

def _access(word: Word, tokens: list[str], listed: Listed) -> Operation:
    base = word.base
    single = _SCALAR_ACCESS.match(base)
    if single:
        size, signed = _SIZES[single[2]]
        return _scalar(single[1] == "ldr", size, signed, tokens, listed)
    if base in ("ldrd", "strd"):
        return _several(base == "ldrd", [REGISTERS[t] for t in tokens[:2]],
                        *_address(tokens[2:], listed))
    if base in ("push", "pop", "vpush", "vpop") or "ldm" in base or "stm" in base:
        return _block(base, tokens, listed)
    return _vector(word, tokens, listed)


def _address(tokens: list[str], listed: Listed) -> tuple[Source, int, Source | None]:
    """Address, register stepped (-1: none), and what it becomes."""
    inside = split_operands(tokens[0].rstrip("!")[1:-1])
    if inside[0] not in REGISTERS:
        return (lambda machine: DATA), -1, None
    register = REGISTERS[inside[0]]
    if register == PC:
        here = (listed.address + 4 & ~3) + (number(inside[1]) or 0 if len(inside) > 1 else 0)
        return (lambda machine: here), -1, None
    base: Source = lambda machine: machine.state[register]  # noqa: E731
    if len(inside) == 1:
        address = base
    elif inside[1] not in REGISTERS and number(inside[1]) is None:
        address = lambda machine: near(machine.state[register])  # noqa: E731  a vector of offsets
    else:
        offset = _source(inside[1:], listed)
        address = lambda machine: indexed(machine.state[register], offset(machine))  # noqa: E731
    if tokens[0].endswith("!"):
        return address, register, address
    if len(tokens) > 1:
        step = _source(tokens[1:], listed)
        return address, register, lambda machine: add(machine.state[register], step(machine))
    return address, -1, None


@dataclass(frozen=True, slots=True)
class Near:
    """Somewhere behind an address: data decide where."""

    base: Value


def near(base: Value) -> Value | Near:
    """An address data decide, in a table whose place is known if it is."""
    return Near(base) if type(base) in (int, tuple) else base


def indexed(base: Value, offset: Value) -> Value | Near:
    """Address of an element; of a table that data index, somewhere in the table."""
    if offset is DATA:
        return near(base)
    if base is DATA and type(offset) is int and offset >= 1 << 16:
        return near(offset)
    return add(base, offset)


def _scalar(is_load: bool, size: int, signed: bool, tokens: list[str],
            listed: Listed) -> Operation:
    register = REGISTERS[tokens[0]]
    address, stepped, after = _address(tokens[1:], listed)

    def load(machine: Any) -> None:
        value = machine.load(address(machine), size, signed)
        if after is not None:
            machine.state[stepped] = after(machine)
        if register != PC:
            machine.state[register] = value

    def store(machine: Any) -> None:
        machine.store(address(machine), size, machine.state[register])
        if after is not None:
            machine.state[stepped] = after(machine)
    return load if is_load else store


def _several(is_load: bool, places: list[int], address: Source, stepped: int = -1,
             after: Source | None = None) -> Operation:
    """Words of consecutive addresses into or out of places of the state."""
    def run(machine: Any) -> None:
        first, state = address(machine), machine.state
        end = after(machine) if after is not None else None
        if is_load:
            loaded = [machine.load(add(first, 4 * i), 4, True) for i in range(len(places))]
        else:
            for i, place in enumerate(places):
                machine.store(add(first, 4 * i), 4, state.get(place, DATA))
        if after is not None:
            state[stepped] = end
        if is_load:
            for place, value in zip(places, loaded, strict=True):
                if place != PC:
                    state[place] = value
    return run


def register_list(text: str) -> list[int]:
    """Places in the state of {r4-r7, lr} or {s16-s19}; a double register is two singles."""
    places: list[int] = []
    for part in text.strip("{}").split(","):
        first, _, last = (piece.strip() for piece in part.partition("-"))
        ends = [first, last or first]
        if first in REGISTERS:
            places += range(REGISTERS[ends[0]], REGISTERS[ends[1]] + 1)
        else:
            wide = 2 if first[0] == "d" else 1
            low, high = (int(name[1:]) * wide for name in ends)
            places += range(SINGLES + low, SINGLES + high + wide)
    return places


def _block(base: str, tokens: list[str], listed: Listed) -> Operation:
    if "push" in base or "pop" in base:
        register, steps, places = SP, True, register_list(tokens[0])
    else:
        register = REGISTERS[tokens[0].rstrip("!")]
        steps, places = tokens[0].endswith("!"), register_list(tokens[1])
    is_load = "pop" in base or "ldm" in base
    down = "push" in base or base.endswith(("db", "ea" if is_load else "fd"))
    size = 4 * len(places)
    before, behind = (-size, -size) if down else (0, size)
    after: Source | None = None
    if steps:
        after = lambda machine: add(machine.state[register], behind)  # noqa: E731
    return _several(is_load, places, lambda machine: add(machine.state[register], before),
                    register if steps else -1, after)


def _vector(word: Word, tokens: list[str], listed: Listed) -> Operation:
    """Loads and stores of float and vector registers."""
    try:
        one = parse_code(listed.text)[0]
    except KernelError as error:
        raise FirmwareError(f"0x{listed.address:08x}: {error}") from error
    place = next((i for i, token in enumerate(tokens) if token.startswith("[")), None)
    if place is None:
        raise FirmwareError(f"0x{listed.address:08x}: {listed.text!r} is not understood")
    address, stepped, after = _address(tokens[place:], listed)
    is_load = one.kind == "load"
    size = one.loaded_bytes or one.stored_bytes
    singles = [SINGLES + int(name[1:]) for name in one.writes if re.fullmatch(r"s\d+", name)]
    stored = SINGLES + int(tokens[0][1:]) if not one.vector and tokens[0][0] == "s" else -1

    def run(machine: Any) -> None:
        where = address(machine)
        if is_load:
            value = machine.load(where, size, True)
            for single in singles:
                machine.state[single] = value if size == 4 else DATA
        else:
            machine.store(where, size, machine.state.get(stored, DATA))
        if after is not None:
            machine.state[stepped] = after(machine)
    return run
