"""What each instruction does to registers, flags and memory, as far as control and addresses go.

`compile_operation(listed)` gives a function of a machine: the `Walker` of `walk`,
which has registers and stack in `state`, `flags`, `scope`, `load`, `store` and `decide`. What only
moves data about makes its results `DATA`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from hwmodels.errors import KernelError, reworded
from hwmodels.isa.mnemonics import Word, read_word
from hwmodels.program.listing import Listed
from twin.errors import FirmwareError
from twin.program.image.read.accesses import compile_access, parse_listed
from twin.program.image.read.sources import (
    LR,
    REGISTERS,
    SHIFTS,
    SINGLES,
    STEP,
    Operation,
    Source,
    number,
    shift,
    source_of,
    split_operands,
)
from twin.program.image.read.values import (
    DATA,
    STALE,
    Value,
    add,
    are_known,
    base_of,
    lost,
    subtract,
    times,
    wrap,
)


def read_mnemonic(listed: Listed) -> tuple[Word, str]:
    """Return the mnemonic taken apart, and its condition, "" for none."""
    vector = bool(re.search(r"\bq[0-7]\b", listed.operands))
    with reworded(KernelError, FirmwareError, f"0x{listed.address:08x}: "):
        word = read_word(listed.mnemonic, vector, listed.text)
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
    if base in ("dls", "dlstp", "wls", "wlstp"):
        return _start_loop(base, listed, tokens)
    if base in ("csel", "cset", "csinc", "cinc", "csneg", "csinv", "csetm"):
        return _select(base, tokens)
    if base == "vmov" and len(tokens) == 2 and any(token in REGISTERS for token in tokens):
        return _between_files(tokens)
    if word.spec.kind in ("load", "store"):
        return compile_access(word, tokens, listed)
    return _blind(listed)


# ---- arithmetic ----

def _or(scope: Any, left: Value, right: Value) -> Value:
    if are_known(left, right):
        if left == 0 or right == 0:
            return right if left == 0 else left
        return wrap(scope.pin(left) | scope.pin(right))
    return lost(left, right)


def _exclusive(scope: Any, left: Value, right: Value) -> Value:
    if are_known(left, right):
        return wrap(scope.pin(left) ^ scope.pin(right))
    return lost(left, right)


def _unsigned_quotient(scope: Any, left: Value, right: Value) -> Value:
    if are_known(left, right) and base_of(left) >= 0 and base_of(right) >= 0:
        scope.require(left)
        return scope.divide(left, right)
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
    **{kind: partial(_shifted, kind) for kind in SHIFTS[:4]},
}


def _parts(tokens: list[str], listed: Listed) -> tuple[int, Source, Source]:
    """Target and both sources of arithmetic written with two or three operands."""
    rest = tokens[1:]
    shifted = len(rest) > 1 and rest[-1].split(" ")[0] in SHIFTS
    plain = rest[:-1] if shifted else rest
    if len(plain) == 1:
        first, last = tokens[:1], rest
    else:
        first, last = rest[:1], rest[1:]
    return REGISTERS[tokens[0]], source_of(first, listed), source_of(last, listed)


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
    left, right = source_of(tokens[:1], listed), source_of(tokens[1:], listed)

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
    source = source_of(tokens[1:], listed)

    def run(machine: Any) -> None:
        value = source(machine)
        if base == "mvn":
            value = _inverted(value)
        result = times(value, -1) if base == "neg" else value
        machine.state[target] = result
        if flags:
            machine.flags = (0, value, True) if base == "neg" else (result, 0, False)
    return run


def _start_loop(base: str, listed: Listed, tokens: list[str]) -> Operation:
    """Loops counted in lr: by one, or by as many elements as fill a vector."""
    source, register = source_of(tokens[1:2], listed), base.startswith("dls")
    step = 128 // int(listed.mnemonic.split(".")[1]) if base.endswith("tp") else 1

    def run(machine: Any) -> None:
        machine.state[STEP] = step
        if register:
            machine.state[LR] = source(machine)
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
        source = source_of(tokens[-1:], listed)
    else:
        source = source_of(tokens[1:2], listed)
        low, width = number(tokens[2]) or 0, number(tokens[3]) or 0

    def run(machine: Any) -> None:
        value = source(machine)
        if are_known(value):
            scope = machine.scope
            value = scope.halve_unsigned(value, low) if low else value
            value = scope.narrow(value, width) if signed else scope.mask(value, (1 << width) - 1)
        machine.state[target] = value
    return run


def _select(base: str, tokens: list[str]) -> Operation:
    """CSEL and similar of Armv8.1-M: one of two sources, the other one changed."""
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
            change: Callable[[Value], Value] = {
                "csinc": lambda v: add(v, 1), "csneg": lambda v: times(v, -1),
                "csinv": _inverted}.get(base, lambda v: v)
            yes, no = values[0], change(values[1])
        state[target] = lost(yes, no) if decided is None else yes if decided else no
    return run


def _between_files(tokens: list[str]) -> Operation:
    """Return moves between general and single registers, which compilers use to keep values."""
    places = [REGISTERS[token] if token in REGISTERS
              else SINGLES + int(token[1:]) if re.fullmatch(r"s\d+", token) else -1
              for token in tokens]

    def run(machine: Any) -> None:
        value = machine.state.get(places[1], DATA) if places[1] >= 0 else DATA
        if places[0] >= 0:
            machine.state[places[0]] = value
    return run


def _blind(listed: Listed) -> Operation:
    """Return an instruction of which only is known what it reads and writes."""
    one, singles = parse_listed(listed)
    reads = [REGISTERS[name] for name, _ in one.reads if name in REGISTERS]
    writes = [REGISTERS[name] for name in one.writes if name in REGISTERS]

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
