"""Expressions of a loop written in Python, as instructions of LLVM."""

import ast
import functools
import inspect
import textwrap
from types import ModuleType
from typing import Any

import numpy as np

from hwmodels.kernels.llvm_types import (
    LLVM_TYPES,
    NOTHING,
    SIGNED,
    TRUTH,
    UNSIGNED,
    Function,
    Translator,
    Value,
    declare,
    type_of,
)
from hwmodels.kernels.native import External, HostRead

PLAIN_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
                   ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl"}
COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
               ast.GtE: "ge"}


class UntranslatableError(Exception):
    """A loop says what this translator does not know; the message has file and line."""


@functools.cache
def functions_of(module: ModuleType) -> dict[str, ast.FunctionDef]:
    """Return the syntax of a module's functions by name."""
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


class Expressions:
    """Expressions of one function; variables live in slots, which LLVM makes registers of.

    Parameters
    ----------
    unit : Translator
        Translates what is called.
    function : callable
        Whose source is read.
    kinds : tuple of str
        Types of its arguments.
    variables : dict
        Types of its variables as far as they are known.
    """

    def __init__(self, unit: Translator, function: Function, kinds: tuple[str, ...],
                 variables: dict[str, str]) -> None:
        module = inspect.getmodule(function)
        if module is None:
            raise UntranslatableError(f"{function!r}: no source")
        self.unit, self.function, self.kinds = unit, function, kinds
        self.node = functions_of(module)[function.__name__]
        self.file, self.globals = module.__file__, vars(module)
        self.names = [one.arg for one in self.node.args.args]
        self.variables = variables
        self.arrays = {name: kind for name, kind in zip(self.names, kinds, strict=True)
                       if kind not in LLVM_TYPES}
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.slotted: set[str] = set()
        self.count = 0
        self.ended, self.group = False, ""

    def refuse(self, node: ast.AST, why: str) -> UntranslatableError:
        """Return the error that names a line."""
        return UntranslatableError(f"{self.file}:{getattr(node, 'lineno', 0)}: {why}: "
                                   f"{textwrap.shorten(ast.unparse(node), 80)}")

    def emit(self, text: str) -> str:
        """Add an instruction that gives a value; return its name."""
        self.count += 1
        self.lines.append(f"%.{self.count} = {text}")
        return f"%.{self.count}"

    def label(self) -> str:
        """Return a fresh label."""
        self.count += 1
        return f"L{self.count}"

    def go(self, text: str) -> None:
        """End a block with a branch or a return."""
        if not self.ended:
            self.lines.append(text)
        self.ended = True

    def begin(self, label: str) -> None:
        """Begin a block, which the one before falls into."""
        self.go(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.ended = False

    def slot(self, name: str, kind: str) -> str:
        """Return where a variable is kept."""
        if name not in self.slotted:
            self.slotted.add(name)
            self.slots.append(f"%{name}.at = alloca {LLVM_TYPES[kind]}")
        return f"%{name}.at"

    def value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        known = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if known is None:
            raise self.refuse(node, "expression is not known")
        found: Value = known(node)
        return found

    def kinds_of(self, nodes: list[ast.expr]) -> str:
        """Return the type several expressions have in common, without translating them."""
        kept = len(self.lines), self.count, self.ended
        found = [self.value(node) for node in nodes]
        del self.lines[kept[0]:]
        self.count, self.ended = kept[1:]
        return self.common(found, nodes[0])

    def common(self, values: list[Value], node: ast.AST) -> str:
        """Return the type of several values; a number written down takes that of the others."""
        kinds = {value.kind for value in values if value.text.startswith("%")} or {
            value.kind for value in values}
        if kinds == {TRUTH} and {value.kind for value in values} == {TRUTH}:
            return TRUTH
        kinds -= {TRUTH}
        if kinds == {SIGNED, UNSIGNED}:
            raise self.refuse(node, "int64 meets uint64")
        return kinds.pop() if kinds else SIGNED

    def whole(self, value: Value, node: ast.AST) -> Value:
        """Return a whole number; a truth value is 0 or 1."""
        if value.kind in (SIGNED, UNSIGNED):
            return value
        if value.kind != TRUTH:
            raise self.refuse(node, "is not a number")
        if not value.text.startswith("%"):
            return Value(SIGNED, str(int(value.text == "true")))
        return Value(SIGNED, self.emit(f"zext i1 {value.text} to i64"))

    def decide(self, node: ast.expr, yes: str, no: str) -> None:
        """Branch on what an expression says, no further than needed."""
        if isinstance(node, ast.BoolOp):
            for one in node.values[:-1]:
                further = self.label()
                if isinstance(node.op, ast.And):
                    self.decide(one, further, no)
                else:
                    self.decide(one, yes, further)
                self.begin(further)
            self.decide(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.decide(node.operand, no, yes)
        else:
            said = self.truth(self.value(node), node)
            marked = isinstance(node, ast.Call) and ast.unparse(node.func) == "likely"
            self.go(f"br i1 {said}, label %{yes}, label %{no}" + (", !prof !0" if marked else ""))

    def truth(self, value: Value, node: ast.AST) -> str:
        """Return whether a value is not zero."""
        if value.kind == TRUTH:
            return value.text
        return self.emit(f"icmp ne i64 {self.whole(value, node).text}, 0")

    def of_constant(self, node: ast.Constant) -> Value:
        """Return a number or truth value that stands in the source."""
        return self.constant(node.value, node)

    def constant(self, known: Any, node: ast.AST) -> Value:
        """Return a number or truth value that is known."""
        if isinstance(known, (bool, np.bool_)):
            return Value(TRUTH, "true" if known else "false")
        if isinstance(known, (int, np.int64, np.uint64)):
            return Value(UNSIGNED if isinstance(known, np.uint64) else SIGNED, str(int(known)))
        raise self.refuse(node, "is not a whole number")

    def of_name(self, node: ast.Name) -> Value:
        """Return a variable, or a constant of the module."""
        kind = self.variables.get(node.id)
        if kind is not None:
            at = self.slot(node.id, kind)
            return Value(kind, self.emit(f"load {LLVM_TYPES[kind]}, ptr {at}"))
        if node.id in self.arrays:
            return Value(self.arrays[node.id], f"%{node.id}")
        return self.constant(self.globals.get(node.id), node)

    def of_tuple(self, node: ast.Tuple) -> Value:
        """Return several values."""
        return Value("tuple", "", tuple(self.value(one) for one in node.elts))

    def of_subscript(self, node: ast.Subscript) -> Value:
        """Return a word of an array, a length, or a part of a tuple."""
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return Value(SIGNED, f"%{ast.unparse(node.value.value)}.{ast.unparse(node.slice)}")
        if isinstance(node.value, ast.Call):
            return self.value(node.value).parts[int(ast.unparse(node.slice))]
        if isinstance(node.slice, ast.Slice):
            return self.rest(node, node.slice)
        place, kind = self.place(node)
        return Value(kind, self.emit(f"load i64, ptr {place}{self.group}"))

    def rest(self, node: ast.Subscript, part: ast.Slice) -> Value:
        """Return an array from one of its words on, `words[first:]`."""
        name = ast.unparse(node.value)
        kind = self.arrays.get(name, "")
        if kind[1:] != "1" or part.lower is None or part.upper or part.step:
            raise self.refuse(node, "is not the rest of an array of one dimension")
        first = self.index(part.lower, f"%{name}.0")
        found = self.emit(f"getelementptr i64, ptr %{name}, i64 {first}")
        self.lines.append(f"{found}.0 = sub i64 %{name}.0, {first}")
        return Value(kind, found)

    def place(self, node: ast.Subscript) -> tuple[str, str]:
        """Return where a word is, and its type."""
        name = ast.unparse(node.value)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kind = self.arrays.get(name, "")
        if len(indices) != int(kind[1:] or 0):
            raise self.refuse(node, "is not an array of as many dimensions")
        places = [self.index(one, f"%{name}.{number}") for number, one in enumerate(indices)]
        at = places[0]
        for number, place in enumerate(places[1:], 1):
            at = self.emit(f"add i64 {self.emit(f'mul i64 {at}, %{name}.{number}')}, {place}")
        return self.emit(f"getelementptr i64, ptr %{name}, i64 {at}"), kind[0]

    def index(self, node: ast.expr, length: str) -> str:
        """Return an index; a negative one counts from the end."""
        value = self.whole(self.value(node), node)
        if value.kind == UNSIGNED or not value.text.startswith(("%", "-")):
            return value.text
        behind = self.emit(f"add i64 {value.text}, {length}")
        below = self.emit(f"icmp slt i64 {value.text}, 0")
        return self.emit(f"select i1 {below}, i64 {behind}, i64 {value.text}")

    def of_binop(self, node: ast.BinOp) -> Value:
        """Return what an operator makes of two numbers."""
        return self.operate(node, node.op, self.value(node.left), self.value(node.right))

    def operate(self, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
        """Return what an operator makes of two numbers."""
        a, b = self.whole(left, node), self.whole(right, node)
        written = [one for one in (a, b) if not one.text.startswith("%")]
        kind = self.common([a, b], node) if len(written) == 1 else \
            SIGNED if SIGNED in (a.kind, b.kind) else UNSIGNED
        x, y = a.text, b.text
        if type(operator) in PLAIN_OPERATORS:
            return Value(kind, self.emit(f"{PLAIN_OPERATORS[type(operator)]} i64 {x}, {y}"))
        if isinstance(operator, ast.RShift):
            return Value(kind, self.emit(f"{'ashr' if kind == SIGNED else 'lshr'} i64 {x}, {y}"))
        if not isinstance(operator, (ast.FloorDiv, ast.Mod)):
            raise self.refuse(node, "operator is not known")
        if kind == UNSIGNED:
            name = "udiv" if isinstance(operator, ast.FloorDiv) else "urem"
            return Value(kind, self.emit(f"{name} i64 {x}, {y}"))
        rest = self.emit(f"srem i64 {x}, {y}")
        apart = self.emit(f"icmp slt i64 {self.emit(f'xor i64 {rest}, {y}')}, 0")
        some = self.emit(f"icmp ne i64 {rest}, 0")
        below = self.emit(f"and i1 {apart}, {some}")
        if isinstance(operator, ast.Mod):
            return Value(kind, self.emit(f"select i1 {below}, i64 "
                                         f"{self.emit(f'add i64 {rest}, {y}')}, i64 {rest}"))
        share = self.emit(f"sdiv i64 {x}, {y}")
        lower = self.emit(f"sext i1 {below} to i64")
        return Value(kind, self.emit(f"add i64 {share}, {lower}"))

    def of_unaryop(self, node: ast.UnaryOp) -> Value:
        """Return what a sign makes of a number."""
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(TRUTH, self.emit(f"xor i1 {self.truth(value, node)}, true"))
        value = self.whole(value, node)
        if not value.text.startswith("%") and isinstance(node.op, ast.USub):
            return Value(value.kind, str(-int(value.text)))
        text = f"sub i64 0, {value.text}" if isinstance(node.op, ast.USub) \
            else f"xor i64 {value.text}, -1"
        return Value(value.kind, self.emit(text))

    def of_compare(self, node: ast.Compare) -> Value:
        """Return whether all comparisons of a chain hold."""
        left, held = self.value(node.left), ""
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            if isinstance(operator, (ast.In, ast.NotIn)):
                said = "false"
                for one in right.parts:
                    same = self.compare(ast.Eq(), left, one, node)
                    said = self.emit(f"or i1 {said}, {same}")
                if isinstance(operator, ast.NotIn):
                    said = self.emit(f"xor i1 {said}, true")
            else:
                said = self.compare(operator, left, right, node)
            held = self.emit(f"and i1 {held}, {said}") if held else said
            left = right
        return Value(TRUTH, held)

    def compare(self, operator: ast.cmpop, left: Value, right: Value, node: ast.AST) -> str:
        """Return whether a comparison of two values holds."""
        mixed = {left.kind, right.kind} == {SIGNED, UNSIGNED}
        kind = SIGNED if mixed else self.common([left, right], node)
        name = COMPARISONS[type(operator)]
        sign = "" if name in ("eq", "ne") else "s" if kind == SIGNED else "u"
        if kind == TRUTH:
            return self.emit(f"icmp {sign}{name} i1 {left.text}, {right.text}")
        x, y = self.whole(left, node).text, self.whole(right, node).text
        return self.emit(f"icmp {sign}{name} i64 {x}, {y}")

    def of_boolop(self, node: ast.BoolOp) -> Value:
        """Return the operand that decided, as Python does."""
        kind = self.kinds_of(node.values)
        at, end = self.slot(f"t.{self.label()}", kind), self.label()
        for place, one in enumerate(node.values):
            value = self.value(one)
            said = self.truth(value, one)
            text = value.text if kind == TRUTH else self.whole(value, one).text
            self.lines.append(f"store {LLVM_TYPES[kind]} {text}, ptr {at}")
            if place + 1 < len(node.values):
                further = self.label()
                order = (further, end) if isinstance(node.op, ast.And) else (end, further)
                self.go(f"br i1 {said}, label %{order[0]}, label %{order[1]}")
                self.begin(further)
        self.begin(end)
        return Value(kind, self.emit(f"load {LLVM_TYPES[kind]}, ptr {at}"))

    def of_ifexp(self, node: ast.IfExp) -> Value:
        """Return one of two values; both are worked out where that costs and touches nothing."""
        kind = self.kinds_of([node.body, node.orelse])
        if all(isinstance(one, (ast.Name, ast.Constant)) for one in (node.body, node.orelse)):
            said = self.truth(self.value(node.test), node)
            arms = [self.value(one) for one in (node.body, node.orelse)]
            x, y = (one.text if kind == TRUTH else self.whole(one, node).text for one in arms)
            of = LLVM_TYPES[kind]
            return Value(kind, self.emit(f"select i1 {said}, {of} {x}, {of} {y}"))
        at = self.slot(f"t.{self.label()}", kind)
        yes, no, end = self.label(), self.label(), self.label()
        self.decide(node.test, yes, no)
        for label, one in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            value = self.value(one)
            text = value.text if kind == TRUTH else self.whole(value, one).text
            self.lines.append(f"store {LLVM_TYPES[kind]} {text}, ptr {at}")
            self.go(f"br label %{end}")
        self.lines.append(f"{end}:")
        self.ended = False
        return Value(kind, self.emit(f"load {LLVM_TYPES[kind]}, ptr {at}"))

    def of_call(self, node: ast.Call) -> Value:
        """Return what a function gives."""
        name = ast.unparse(node.func)
        if name == "len":
            return Value(SIGNED, f"%{ast.unparse(node.args[0])}.0")
        values = [self.value(one) for one in node.args]
        if name in ("np.int64", "np.uint64"):
            return Value(SIGNED if name == "np.int64" else UNSIGNED,
                         self.whole(values[0], node).text)
        if name == "likely":
            return values[0]
        if name == "lowest_bit":
            return Value(UNSIGNED, self.emit(
                f"call i64 @llvm.cttz.i64(i64 {self.whole(values[0], node).text}, i1 true)"))
        if name in ("min", "max", "abs"):
            return self.choose(name, values, node)
        function = self.globals.get(name)
        if isinstance(function, (External, HostRead)):
            self.unit.externals.add(function.declaration)
            return Value(SIGNED, function.write(self.emit, [
                one.text if one.kind == "i1" else self.whole(one, node).text for one in values]))
        if function not in self.unit.parts:
            raise self.refuse(node, "only compiled functions are called")
        symbol, kinds = self.unit.translate(function, tuple(value.kind for value in values))
        given = ", ".join(declare(value.kind, value.text) for value in values)
        if not kinds:
            self.lines.append(f"call void @{symbol}({given})")
            return Value(NOTHING, "")
        found = self.emit(f"call {type_of(kinds)} @{symbol}({given})")
        if len(kinds) == 1:
            return Value(kinds[0], found)
        return Value("tuple", "", tuple(
            Value(kind, self.emit(f"extractvalue {type_of(kinds)} {found}, {place}"))
            for place, kind in enumerate(kinds)))

    def choose(self, name: str, values: list[Value], node: ast.Call) -> Value:
        """Return the least or the greatest of some numbers, or one without its sign."""
        values = [self.whole(one, node) for one in values]
        if name == "abs":
            values.append(Value(SIGNED, self.emit(f"sub i64 0, {values[0].text}")))
        kind = self.common(values, node)
        order = ("s" if kind == SIGNED else "u") + ("lt" if name == "min" else "gt")
        best = values[0].text
        for value in values[1:]:
            better = self.emit(f"icmp {order} i64 {value.text}, {best}")
            best = self.emit(f"select i1 {better}, i64 {value.text}, i64 {best}")
        return Value(kind, best)
