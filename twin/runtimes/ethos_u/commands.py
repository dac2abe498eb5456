"""The command stream of an Ethos-U, decoded: operations with the registers they start with.

The stream is the first tensor of the operator `ethos-u` that Vela writes: driver actions ("COP1"),
one of which holds the commands and one the configuration of the NPU they are for.

References
----------
.. [1] github:zephyrproject-rtos/hal_ethos_u, src/ethosu_driver.c and the interface headers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.files import LARGEST_YAML_BYTES, parse_yaml, read_regular
from hwmodels.frozen import frozen
from twin.errors import ModelError

MAGIC = (b"COP1", b"COP2")
"""First word of the payload of the driver."""

_PRODUCTS = {0: 55, 1: 65, 2: 85}
_CONFIGURATION, _COMMANDS, _NOTHING = 1, 2, 5
_ACCEPTED = "the driver payload Vela writes (COP1)"
MOST_OPERATIONS = 1 << 16
"""Of one stream: more is not a network of a microcontroller, but a damaged file."""


@frozen
class Command:
    """One operation of a stream.

    Parameters
    ----------
    kind
        "conv", "depthwise", "pool", "elementwise", "resize", "dma"; or a wait: "dma_wait",
        "kernel_wait".
    mode
        Parameter of the operation: kind of pooling or of element-wise operation; of a wait how
        many may be unfinished.
    offset
        Bytes from the first command; Vela's debug database names operations by it.
    registers
        Every register that is set; payloads as 32 bits, without the upper bits of an address.
    """

    kind: str
    mode: int
    offset: int
    registers: Mapping[str, int]

    def get(self, name: str, default: int = 0) -> int:
        """Return a register, or what it is before it is first set."""
        return self.registers.get(name, default)


@frozen
class Stream:
    """A decoded command stream.

    Parameters
    ----------
    config
        The NPU it is for, as Vela names it: "ethos-u55-128".
    size_bytes
        Of the commands, which the NPU reads.
    commands
        Operations in order.
    """

    config: str
    size_bytes: int
    commands: tuple[Command, ...]


@functools.cache
def _read_registers() -> Mapping[str, Any]:
    path = Path(__file__).with_name("registers.yaml")
    names: Mapping[str, Any] = parse_yaml(read_regular(path, LARGEST_YAML_BYTES).decode())
    return names


def read_stream(payload: bytes, where: str) -> Stream:
    """Decode the payload of an Ethos-U operator.

    Parameters
    ----------
    payload
        Driver actions, from "COP1" on.
    where
        File and operator, for errors.

    Raises
    ------
    ModelError
        When it is damaged or of another form.
    """
    if payload[:4] not in MAGIC or len(payload) % 4:
        raise ModelError(f"{where}: no command stream of an Ethos-U; accepted: {_ACCEPTED}")
    words = np.frombuffer(payload, "<u4").tolist()
    config, commands, place = "", None, 1
    while place < len(words):
        action, word = words[place] & 0xFF, words[place]
        if action == _CONFIGURATION and place + 2 < len(words):
            config = _name_config(words[place + 1], where)
            place += 3
        elif action == _COMMANDS:
            length = (word >> 8 & 0xFF) << 16 | word >> 16
            commands = words[place + 1:place + 1 + length]
            if len(commands) != length:
                raise ModelError(f"{where}: the command stream ends {length - len(commands)} "
                                 "words early; is the file whole?")
            place += 1 + length
        elif action == _NOTHING:
            place += 1
        else:
            raise ModelError(f"{where}: driver action {action} is not known; accepted: "
                             f"{_ACCEPTED}")
    if not config or commands is None:
        raise ModelError(f"{where}: no configuration or no commands; accepted: {_ACCEPTED}")
    return Stream(config=config, size_bytes=4 * len(commands),
                  commands=tuple(_decode(commands, where)))


def _name_config(word: int, where: str) -> str:
    product = _PRODUCTS.get(word >> 28)
    if product is None:
        raise ModelError(f"{where}: compiled for product {word >> 28}; accepted: Ethos-U55, U65 "
                         "and U85")
    return f"ethos-u{product}-{1 << (word & 0xF)}"


def _decode(words: list[int], where: str) -> list[Command]:
    """Run a stream as the NPU does: registers are set, operations take them as they are."""
    names = _read_registers()
    operations, waits, parameters, payloads = (names[key] for key in (
        "operations", "waits", "parameters", "payloads"))
    registers: dict[str, int] = {}
    found: list[Command] = []
    place = 0
    while place < len(words):
        word, offset = words[place], 4 * place
        code, parameter, payload = word & 0x3FF, word >> 16, word >> 14 & 3
        place += 1
        if payload:
            if payload > 1 or place >= len(words):
                raise ModelError(f"{where}: command {word:#010x} at byte {offset} is not known")
            if code == names["branch"]:
                raise ModelError(f"{where}: branches at byte {offset}: how often it runs is not "
                                 "known; accepted: streams without loops")
            if (name := payloads.get(code)) is not None:
                registers[name] = words[place]
            place += 1
        elif code in operations:
            found.append(Command(kind=operations[code], mode=parameter, offset=offset,
                                 registers=dict(registers)))
            if len(found) > MOST_OPERATIONS:
                raise ModelError(f"{where}: more than {MOST_OPERATIONS:,} operations")
        elif code in waits:
            found.append(Command(kind=waits[code], mode=parameter, offset=offset, registers={}))
        elif code == names["stop"]:
            break
        elif code in parameters:
            registers[parameters[code]] = parameter
    return found
