"""What an ExecuTorch program holds: values, kernel calls and its memory plan, checked.

References
----------
pytorch/executorch, schema/program.fbs, whose tables and fields the numbers here are; the extended
header is that of runtime/core/../schema/extended_header.cpp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hwmodels.flatbuffer import Flatbuffer, Table
from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.network.graph import DTYPE_BITS, Shape, TensorIds
from twin.network.readers.budget import Budget, check_operators, check_tensors
from twin.network.readers.ethos_u import BACKEND, Delegate, split_delegate

_NUMBERS: dict[int, tuple[type, str]] = {2: (int, "q"), 3: (bool, "b"), 4: (float, "d")}
IDENTIFIER, EXTENDED = b"ET12", b"eh00"

DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
          7: "float64", 11: "bool", 27: "uint16", 28: "uint32", 29: "uint64"}
"""Schema ScalarType by number; what is missing here (complex, bfloat16 ...) is refused."""


@frozen
class Spec:
    """A tensor of the program: shape and order of dimensions as stated, and where its bytes lie.

    `buffer` numbers a constant's data, 0 without; `memory` is (memory, offset) of the plan.
    """

    name: str
    shape: Shape
    dtype: str
    order: tuple[int, ...]
    buffer: int
    memory: tuple[int, int] | None

    @property
    def size_bytes(self) -> int:
        """Stored size in bytes."""
        return math.prod(self.shape) * DTYPE_BITS[self.dtype] // 8


class Listed(list[int]):
    """A list of tensors: numbers of values."""


class Numbers(list[int]):
    """A list of integers: numbers of values."""


@frozen
class Call:
    """A kernel call: its place in the program, the kernel's full name, and numbers of values.

    Of a call of a delegate that is read the kernel is the backend, and its code is kept.
    """

    place: int
    kernel: str
    inputs: TensorIds
    outputs: TensorIds
    delegate: Delegate | None = None

    @property
    def name(self) -> str:
        """The kernel without its overload and without what says that it copies."""
        return self.kernel.partition(".")[0].replace("aten::", "").removesuffix("_copy")


@dataclass(slots=True, kw_only=True)
class Program:
    """One method of a program; values are numbers, texts, tuples of them, `Spec` or `Listed`.

    `data` says between which bytes of the file each constant lies.
    """

    path: str
    content: bytes
    budget: Budget
    data: list[tuple[int, int]]
    values: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    inputs: TensorIds = ()
    outputs: TensorIds = ()
    planned_bytes: tuple[int, ...] = ()
    place: str = "header"
    notes: tuple[str, ...] = ()

    def constant(self, spec: Spec) -> np.ndarray:
        """Return a constant's values, with its dimensions in the file's order."""
        self.budget.take(spec.size_bytes, f"tensor {spec.name!r}")
        start, end = self.data[spec.buffer]
        dtype = np.dtype(spec.dtype)
        if end - start < spec.size_bytes:
            raise ModelError(f"{self.path}: tensor {spec.name!r}: {end - start:,} bytes of data "
                             f"for {spec.size_bytes:,}; is it cut short?")
        flat = np.frombuffer(self.content, dtype, math.prod(spec.shape), start)
        stored = flat.reshape([spec.shape[axis] for axis in spec.order])
        return stored.transpose(np.argsort(spec.order)) if spec.order else stored


def read_program(path: str, content: bytes) -> Program:
    """Read the method `forward`, or the first, of a .pte file.

    Raises
    ------
    ModelError
        For another file, control flow, a delegate, or constants in a second file.
    ValueError, IndexError
        Where it is damaged.
    """
    if content[4:8] != IDENTIFIER:
        raise ModelError(f"{path}: not an ExecuTorch program: bytes 4 to 7 are {content[4:8]!r}, "
                         f"expected {IDENTIFIER!r}")
    root = Flatbuffer(content).root
    program = Program(path=path, content=content, budget=Budget(path, len(content)),
                      data=_list_data(path, content, root))
    plans = root.tables(1)
    names = [plan.text(0) for plan in plans]
    if not plans:
        raise ModelError(f"{path}: no method")
    plan = plans[names.index("forward") if "forward" in names else 0]
    if len(plans) > 1:
        program.notes = (f"file: of {len(plans)} methods {plan.text(0)!r} is read",)
    entries = plan.tables(2)
    check_tensors(path, len(entries))
    for number, entry in enumerate(entries):
        program.place = f"value {number}"
        program.values.append(_read_value(program, entry))
    program.inputs, program.outputs = (_ids(plan, slot) for slot in (3, 4))
    program.planned_bytes = tuple(int(size) for size in plan.vector(8, "q")[1:])
    _read_calls(program, plan, root)
    return program


def _list_data(path: str, content: bytes, root: Table) -> list[tuple[int, int]]:
    """Return between which bytes each constant lies: in the flatbuffer, or in a segment behind."""
    where = root.table(5)
    if where is None or len(where.vector(1, "Q")) < 2:  # the first is of no constant
        return [entry.span(0) for entry in root.tables(2)]
    if content[8:12] != EXTENDED:
        raise ModelError(f"{path}: constants lie in a segment and no extended header says where")
    segment = root.tables(4)[where.number(0, "I")]
    base = root.buffer.number("Q", 24) + segment.number(0, "Q")
    end = min(base + segment.number(1, "Q"), len(content))
    return [(base + offset, end) for offset in where.vector(1, "Q").tolist()]


def _ids(table: Table, slot: int) -> TensorIds:
    return tuple(table.vector(slot, "i").tolist())


def _read_value(program: Program, entry: Table) -> Any:
    kind, value = entry.number(0, "B"), entry.table(1)
    if value is None or kind <= 1:
        return None
    if kind in _NUMBERS:
        make, form = _NUMBERS[kind]
        return make(value.number(0, form))
    if kind == 5:
        return _read_spec(program, value)
    if kind == 6:
        return value.text(0)
    if kind == 7:
        return Numbers(value.vector(0, "q").tolist())
    return Listed(_ids(value, 0)) if kind > 9 else tuple(
        value.vector(0, "d" if kind == 8 else "b").tolist())


def _read_spec(program: Program, table: Table) -> Spec:
    more, memory = table.table(9), table.table(6)
    name = more.text(1) if more is not None else ""
    place = f"{program.path}: {program.place} {name!r}"
    dtype = DTYPES.get(table.number(0, "b"))
    if dtype is None:
        raise ModelError(f"{place}: type number {table.number(0, 'b')}; accepted: "
                         f"{', '.join(DTYPES.values())}")
    if more is not None and more.number(2, "b"):
        raise ModelError(f"{place}: its values are in a second file (.ptd); export without "
                         "external constants")
    if table.number(8, "b"):
        raise ModelError(f"{place}: dynamic shape; export with every dimension fixed")
    shape, order = tuple(table.vector(2, "i").tolist()), tuple(table.vector(3, "B").tolist())
    if sorted(order) != list(range(len(shape))) or min(shape, default=1) < 0:
        raise ModelError(f"{place}: shape {list(shape)}, order of dimensions {list(order)}")
    return Spec(name=name, shape=shape, dtype=dtype, order=order, buffer=table.number(5, "I"),
                memory=None if memory is None else (
                    memory.number(0, "I"), memory.number(1, "I") + (memory.number(2, "I") << 32)))


def _read_delegate(program: Program, root: Table, entry: Table, place: int,
                   args: tuple[int, ...]) -> Call:
    """Return the call of a delegate of Ethos-U; any other is refused by its name."""
    name, where = entry.text(0), entry.table(1)
    if name != BACKEND or where is None:
        raise ModelError(f"{program.path}: instruction {place}: delegate {name} runs a part of "
                         "the network by code of its own; accepted: Ethos-U's, or a program "
                         "exported without delegates, for portable or Cortex-M kernels")
    number = where.number(1, "I")
    if where.number(0, "b"):  # in a segment behind the flatbuffer
        segment = root.tables(4)[number]
        start = root.buffer.number("Q", 24) + segment.number(0, "Q")
        end = start + segment.number(1, "Q")
    else:
        start, end = root.tables(3)[number].span(0)
    code = split_delegate(program.content[start:end])
    if len(args) < code.inputs + code.outputs:
        raise ValueError(f"{len(args)} arguments for {code.inputs} inputs and {code.outputs} "
                         "outputs")
    return Call(place=place, kernel=name, inputs=args[:code.inputs], delegate=code,
                outputs=args[code.inputs:code.inputs + code.outputs])


def _read_calls(program: Program, plan: Table, root: Table) -> None:
    chains, kernels = plan.tables(5), [
        ".".join(filter(None, (entry.text(0), entry.text(1)))) for entry in plan.tables(6)]
    if len(chains) != 1:
        raise ModelError(f"{program.path}: {len(chains)} chains of instructions; accepted: one")
    instructions = chains[0].tables(2)
    check_operators(program.path, len(instructions))
    for place, instruction in enumerate(instructions):
        kind, arguments = instruction.number(0, "B"), instruction.table(1)
        program.place = f"instruction {place}"
        if arguments is None or kind == 5:  # memory is freed
            continue
        if kind not in (1, 2):
            raise ModelError(f"{program.path}: instruction {place}: control flow at run time; "
                             "accepted: kernel calls in sequence")
        args = _ids(arguments, 1)
        if not args or min(args) < 0 or max(args) >= len(program.values):
            raise ModelError(f"{program.path}: instruction {place}: arguments {list(args)[:9]}; "
                             f"there are {len(program.values)} values")
        if kind == 2:
            program.calls.append(_read_delegate(
                program, root, plan.tables(7)[arguments.number(0, "i")], place, args))
            continue
        made = program.values[args[-1]]
        outputs = tuple(made) if isinstance(made, Listed) else args[-1:]
        program.calls.append(Call(
            place=place, kernel=kernels[arguments.number(0, "i")], outputs=outputs,
            inputs=tuple(i for i in args[:-1] if i not in (args[-1], *outputs) and not (
                isinstance(made, Listed) and program.values[i] == made))))
