"""From a loop written in Python to the text of an LLVM module.

What is read: functions of int64, uint64, truth values and arrays of them; `if`, `while`, `for` over
`range`, calls of each other, `min`, `max`, `abs`, `len`, `.shape`, `np.int64`, `np.uint64`, tuples
of scalars; as an argument an array from one of its words on, `words[first:]`. Anything else is
refused with its line. A function is translated once for the types it is called with.

As in numpy a whole number that meets a signed one is signed, division rounds down, and a negative
index counts from the end; an unsigned one is taken as it is and lies below 2^63. Unlike there a
variable keeps one type: int64 and uint64 are never mixed in one unasked. Division by zero and
an index out of range are not looked for.
"""

import ast

from hwmodels.kernels.expressions import Expressions
from hwmodels.kernels.llvm_types import (
    LLVM_TYPES,
    SIGNED,
    TRUTH,
    UNSIGNED,
    Function,
    Translator,
    Value,
    declare,
    type_of,
)
from hwmodels.kernels.native import write_callback

MOST_INLINED = 160
"""Instructions of a function above which it is called: putting it in place of a call saves nothing,
and what it is put into takes LLVM longer than both."""


class Retype(Exception):
    """A variable or result turned out wider than first taken: translate the function again."""


def translate(entry: Function, kinds: tuple[str, ...], parts: dict[Function, bool],
              native: tuple[str, ...] = ()) -> str:
    """Return an LLVM module with a loop and all it calls.

    Parameters
    ----------
    entry : callable
        Its name is the symbol. Arguments are whole numbers and arrays; each array is given as a
        pointer and the length of every dimension, and no two of them overlap.
    kinds : tuple of str
        Types of its arguments: "i" a whole number, "i2" and "u1" arrays, signed of two dimensions
        and unsigned of one.
    parts : dict
        Functions that may be called, and whether they are put in place of every call.
    native : tuple of str
        Of a callback its arguments as native code passes them, "i64", "i32" or "ptr".

    Returns
    -------
    str
        Of LLVM 15 or later.

    Raises
    ------
    UntranslatableError
        Naming file and line.
    """
    unit = Unit(parts)
    symbol, _ = unit.translate(entry, kinds, "internal " if native else "")
    if native:
        unit.texts.append(write_callback(entry.__name__, native, symbol))
    return "\n".join([*unit.texts, *sorted(unit.externals)])


class Unit:
    """Functions of a module, each translated once for the types of its arguments."""

    def __init__(self, parts: dict[Function, bool]) -> None:
        self.parts = parts
        self.externals: set[str] = set()
        self.texts = ["declare i64 @llvm.cttz.i64(i64, i1)", "declare void @llvm.sideeffect()",
                      '!0 = !{!"branch_weights", i32 1000, i32 1}',
                      '!1 = !{!"llvm.loop.vectorize.enable", i1 true}',
                      '!2 = !{!"llvm.loop.interleave.count", i32 4}',
                      '!3 = distinct !{}',
                      '!4 = !{!"llvm.loop.parallel_accesses", !3}']
        self.known: dict[tuple[Function, tuple[str, ...]], tuple[str, tuple[str, ...]]] = {}
        self.loops = 4

    def name_loop(self) -> str:
        """Return a name for a loop whose turns are done several at once."""
        self.loops += 1
        self.texts.append(f"!{self.loops} = distinct !{{!{self.loops}, !1, !2, !4}}")
        return f"!{self.loops}"

    def translate(self, function: Function, kinds: tuple[str, ...],
                  linkage: str = "internal ") -> tuple[str, tuple[str, ...]]:
        """Return the symbol of a function for types, and the types of its result."""
        key = function, kinds
        if key not in self.known:
            number = len(self.known)
            symbol = f"{function.__name__}.{number}" if linkage else function.__name__
            variables: dict[str, str] = {}
            result: list[tuple[str, ...]] = []
            while True:
                body = Body(self, function, kinds, variables, result)
                try:
                    body.run()
                    break
                except Retype:
                    continue
            returned = result[0] if result else ()
            # what is called by name may change an array it knows
            alone = " noalias" if not linkage and not self.externals else ""
            arguments = ", ".join(declare(kind, f"%{name}", alone)
                                  for name, kind in zip(body.names, kinds, strict=True))
            size = len(body.lines)
            inline = "" if not linkage else " alwaysinline" if self.parts.get(function) else \
                " noinline" if size > MOST_INLINED else ""
            self.texts.append(
                f"define {linkage}{type_of(returned)} @{symbol}({arguments}) nounwind{inline} {{\n"
                ".top:\n" + "\n".join(body.slots + body.lines) + "\n}\n")
            self.known[key] = symbol, returned
        return self.known[key]


class Body(Expressions):
    """One function on its way to text.

    Parameters
    ----------
    unit, function, kinds, variables
        As for `Expressions`.
    result : list
        Types of what it returns, once they are known.
    """

    def __init__(self, unit: Translator, function: Function, kinds: tuple[str, ...],
                 variables: dict[str, str], result: list[tuple[str, ...]]) -> None:
        super().__init__(unit, function, kinds, variables)
        self.result = result
        self.loops: list[tuple[str, str]] = []

    def run(self) -> None:
        """Translate all of it."""
        for name, kind in zip(self.names, self.kinds, strict=True):
            if name not in self.arrays:
                self.assign_name(name, Value(kind, f"%{name}"), self.node)
        self.block(self.node.body)
        if not self.ended:
            self.lines.append("ret void" if not self.result else "unreachable")

    def block(self, statements: list[ast.stmt]) -> None:
        """Translate statements up to one after which nothing follows."""
        for statement in statements:
            if self.ended:
                return
            known = getattr(self, f"do_{type(statement).__name__.lower()}", None)
            if known is None:
                raise self.refuse(statement, "statement is not known")
            known(statement)

    def do_pass(self, node: ast.Pass) -> None:
        """Do nothing."""

    def do_expr(self, node: ast.Expr) -> None:
        """Call for its effect; what documents is passed over."""
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def do_annassign(self, node: ast.AnnAssign) -> None:
        """Assign; the annotation is for people."""
        if node.value is not None:
            self.store(node.target, self.value(node.value))

    def do_assign(self, node: ast.Assign) -> None:
        """Assign one value, or several at once."""
        value = self.value(node.value)
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                if len(value.parts) != len(target.elts):
                    raise self.refuse(node, "as many values as names are needed")
                for one, part in zip(target.elts, value.parts, strict=True):
                    self.store(one, part)
            else:
                self.store(target, value)

    def do_augassign(self, node: ast.AugAssign) -> None:
        """Change a variable or a word in place."""
        if isinstance(node.target, ast.Subscript):
            place, kind = self.place(node.target)
            old = Value(kind, self.emit(f"load i64, ptr {place}{self.group}"))
            new = self.operate(node, node.op, old, self.value(node.value))
            self.lines.append(
                f"store i64 {self.whole(new, node).text}, ptr {place}{self.group}")
        else:
            self.store(node.target, self.operate(node, node.op, self.value(node.target),
                                                 self.value(node.value)))

    def store(self, target: ast.expr, value: Value) -> None:
        """Put a value into a variable or a word."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            place, _ = self.place(target)
            self.lines.append(
                f"store i64 {self.whole(value, target).text}, ptr {place}{self.group}")
        else:
            raise self.refuse(target, "cannot be assigned to")

    def assign_name(self, name: str, value: Value, node: ast.AST) -> None:
        """Put a value into a variable, which keeps one type."""
        kind = self.variables.setdefault(name, value.kind)
        if kind == TRUTH and value.kind != TRUTH:
            self.variables[name] = value.kind
            raise Retype
        if value.kind == TRUTH != kind:
            value = self.whole(value, node)
        elif value.kind != kind and value.text.startswith("%"):
            raise self.refuse(node, f"{name} is {kind}, and {value.kind} here")
        self.lines.append(f"store {LLVM_TYPES[kind]} {value.text}, ptr {self.slot(name, kind)}")

    def do_return(self, node: ast.Return) -> None:
        """Return one value, several or none."""
        if node.value is None:
            return self.go("ret void")
        found = self.value(node.value)
        parts = list(found.parts or (found,))
        if not self.result:
            self.result.append(tuple(part.kind for part in parts))
        for place, (part, kind) in enumerate(zip(parts, self.result[0], strict=True)):
            if kind == TRUTH != part.kind:
                self.result[0] = tuple(one.kind for one in parts)
                raise Retype
            parts[place] = part if kind == TRUTH else self.whole(part, node)
        kinds = self.result[0]
        text = parts[0].text
        if len(parts) > 1:
            text = "undef"
            for place, part in enumerate(parts):
                text = self.emit(f"insertvalue {type_of(kinds)} {text}, "
                                 f"{LLVM_TYPES[kinds[place]]} {part.text}, {place}")
        self.go(f"ret {type_of(kinds)} {text}")

    def do_if(self, node: ast.If) -> None:
        """Translate a decision."""
        yes, no, end = self.label(), self.label(), self.label()
        self.decide(node.test, yes, no if node.orelse else end)
        for label, statements in ((yes, node.body), (no, node.orelse)):
            if statements:
                self.begin(label)
                self.block(statements)
                self.go(f"br label %{end}")
        self.lines.append(f"{end}:")
        self.ended = False

    def do_while(self, node: ast.While) -> None:
        """Translate a loop."""
        head, body, end = self.label(), self.label(), self.label()
        self.begin(head)
        self.decide(node.test, body, end)
        self.turn(node.body, body, head, end)

    def turn(self, statements: list[ast.stmt], body: str, again: str, end: str) -> None:
        """Translate what a loop does each turn."""
        self.begin(body)
        self.loops.append((again, end))
        self.block(statements)
        self.loops.pop()
        self.go(f"br label %{again}")
        self.lines.append(f"{end}:")
        self.ended = False

    def do_break(self, node: ast.Break) -> None:
        """Leave the loop."""
        self.go(f"br label %{self.loops[-1][1]}")

    def do_continue(self, node: ast.Continue) -> None:
        """Go on with the loop's next turn."""
        self.go(f"br label %{self.loops[-1][0]}")

    def do_for(self, node: ast.For) -> None:
        """Translate a loop over a range, or over values that stand in a row."""
        if isinstance(node.iter, ast.Tuple):
            return self.unroll(node, node.iter)
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) in ("range", "abreast")
                and isinstance(node.target, ast.Name) and not node.orelse):
            raise self.refuse(node.iter, "only ranges are looped over")
        limits = [self.value(one) for one in call.args]
        step = int(limits[2].text) if len(limits) == 3 else 1
        first = Value(SIGNED, "0") if len(limits) == 1 else limits[0]
        last = limits[len(limits) > 1]
        kind = UNSIGNED if UNSIGNED in (first.kind, last.kind) and all(
            one.kind == UNSIGNED or not one.text.startswith("%") for one in (first, last)) \
            else SIGNED
        counter = self.slot(f"{node.target.id}.{self.label()}", kind)
        self.lines.append(f"store i64 {first.text}, ptr {counter}")
        head, body, again, end = self.label(), self.label(), self.label(), self.label()
        self.begin(head)
        now = self.emit(f"load i64, ptr {counter}")
        order = ("s" if kind == SIGNED else "u") + ("lt" if step > 0 else "gt")
        goes_on = self.emit(f"icmp {order} i64 {now}, {last.text}")
        self.go(f"br i1 {goes_on}, label %{body}, label %{end}")
        self.begin(body)
        self.assign_name(node.target.id, Value(kind, now), node)
        inner = self.label()
        self.begin(inner)
        together = ast.unparse(call.func) == "abreast"
        self.loops.append((again, end))
        self.group = ", !llvm.access.group !3" if together else ""
        self.block(node.body)
        self.group = ""
        self.loops.pop()
        self.begin(again)
        following = self.emit(f"add i64 {self.emit(f'load i64, ptr {counter}')}, {step}")
        self.lines.append(f"store i64 {following}, ptr {counter}")
        named = f", !llvm.loop {self.unit.name_loop()}" if together else ""
        self.go(f"br label %{head}{named}")
        self.lines.append(f"{end}:")
        if together:  # else what is said of this loop may end up at the one around it
            self.lines.append("call void @llvm.sideeffect()")
        self.ended = False

    def unroll(self, node: ast.For, values: ast.Tuple) -> None:
        """Translate what is done with each of some values."""
        end = self.label()
        for value in [self.value(one) for one in values.elts]:
            self.store(node.target, value)
            following = self.label()
            self.loops.append((following, end))
            self.block(node.body)
            self.loops.pop()
            self.begin(following)
        self.begin(end)
