"""No regular expression of the packages needs more steps than a small multiple of a line's length.

Two unbounded repeats that can match the same characters, with nothing between them that ends the
first, try every split of a long run of those: n such repeats take length**n steps. Each expression
is parsed and each pair of its repeats is checked; a search is a repeat of anything ahead of it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from made_sources import read_sources, walk

UNBOUNDED = 1000
"""From so many turns on a repeat counts as unbounded."""
ALPHABET = frozenset(map(chr, range(256))) | set("\u03bc\u202f\u2500\u4e00")
SEARCHES = ("search", "finditer", "findall", "sub", "subn", "split")
METHODS = (*SEARCHES, "compile", "match", "fullmatch")
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
CHARACTERS = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY)

Shared = Callable[[frozenset[str]], object]
"""Whether what stands between two repeats can be matched within a set of characters."""


@dataclass(frozen=True)
class Repeat:
    """An unbounded repeat that could still hand over characters: which, and what lies behind it."""

    text: str
    characters: frozenset[str]
    passed: tuple[Shared, ...] = ()


@dataclass
class Checker:
    """Walks an expression; `faults` are pairs of repeats."""

    flags: int
    ends: bool
    faults: list[str] = field(default_factory=list)

    def walk(self, items: Sequence[Any], before: list[Repeat], last: bool = True) -> list[Repeat]:
        """Return the repeats that can hand characters over to what follows these items."""
        for place, (code, argument) in enumerate(items):
            before = self._step(code, argument, before, last and all(
                code in REPEATS and not argument[0] for code, argument in items[place + 1:]))
        return before

    def _step(self, code: Any, argument: Any, before: list[Repeat], last: bool) -> list[Repeat]:
        if code in REPEATS:
            return self._repeat(code, argument, before, last)
        if code is codes.SUBPATTERN:
            return self.walk(argument[3], before, last)
        if code is codes.ATOMIC_GROUP:
            return [one for one in self.walk(argument, before, last)
                    if any(one.text == other.text for other in before)]
        if code is codes.BRANCH:
            return [one for branch in argument[1] for one in self.walk(branch, before, last)]
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            self.walk(argument[1], [])
            if argument[0] > 0 or len(argument[1]) != 1:
                return before
            behind = self._alphabet(argument[1])
            return _pass(before, behind.intersection if code is codes.ASSERT else
                         (ALPHABET - behind).intersection)
        if code is codes.AT:
            return _pass(before, functools.partial(self._can_stand, argument))
        if code is codes.GROUPREF:
            return before
        return _pass(before, self._one(code, argument).intersection)

    def _repeat(self, code: Any, argument: Any, before: list[Repeat],
                last: bool) -> list[Repeat]:
        least, most, body = argument
        free = last and not self.ends  # nothing behind it can fail
        skipped = before if least == 0 else []
        if most < UNBOUNDED:
            after = self.walk(body, before, False)
            if most > 1:
                after = [*after, *self.walk(body, after, False)]
            return [*skipped, *after]
        repeat = Repeat(text=_text(body), characters=self._alphabet(body))
        within = functools.partial(self._matches, body)
        if not free:
            self.faults += [
                f"{one.text} and {repeat.text}" for one in before
                if (shared := one.characters & repeat.characters) and within(shared)
                and all(passes(shared) for passes in one.passed)]
        inner = self.walk(body, [], False)
        self.walk(body, inner, False)
        own = [] if code is codes.POSSESSIVE_REPEAT else [
            Repeat(repeat.text, repeat.characters, (within,)), *inner]
        return [*skipped, *(_pass(before, within) if least else []), *own]

    def _can_stand(self, where: Any, shared: frozenset[str]) -> bool:
        """Whether a place between two characters of a set can be an end of a line or a word."""
        if where in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
            words = {bool(re.match(r"\w", one)) for one in shared}
            return len(words) == 2 or where is codes.AT_NON_BOUNDARY
        return bool(self.flags & re.MULTILINE) and "\n" in shared

    def _matches(self, items: Sequence[Any], within: frozenset[str]) -> bool:
        """Whether items can match with characters of a set alone."""
        for code, argument in items:
            if code in REPEATS:
                if argument[0] and not self._matches(argument[2], within):
                    return False
            elif code is codes.SUBPATTERN:
                if not self._matches(argument[3], within):
                    return False
            elif code is codes.BRANCH:
                if not any(self._matches(branch, within) for branch in argument[1]):
                    return False
            elif code in CHARACTERS and not self._one(code, argument) & within:
                return False
        return True

    def _alphabet(self, items: Sequence[Any]) -> frozenset[str]:
        found: set[str] = set()
        for code, argument in items:
            if code in REPEATS:
                found |= self._alphabet(argument[2])
            elif code is codes.SUBPATTERN:
                found |= self._alphabet(argument[3])
            elif code is codes.BRANCH:
                found |= {one for branch in argument[1] for one in self._alphabet(branch)}
            elif code in CHARACTERS:
                found |= self._one(code, argument)
            elif code is codes.GROUPREF:
                found |= ALPHABET
        return frozenset(found)

    def _one(self, code: Any, argument: Any) -> frozenset[str]:
        """Return what one character may be."""
        key = (str(code), str(argument), self.flags)
        if key not in _ACCEPTED:
            _ACCEPTED[key] = _accepted(parser_item(code, argument, self.flags))
        return _ACCEPTED[key]


_ACCEPTED: dict[tuple[str, str, int], frozenset[str]] = {}
"""By item and flags: what one character may be."""


def parser_item(code: Any, argument: Any, flags: int) -> re.Pattern[str]:
    """Return one item of an expression as an expression of its own."""
    state = parser.State()
    state.flags = flags & ~re.DEBUG
    state.str = ""
    return compiler.compile(parser.SubPattern(state, [(code, argument)]), state.flags)


def _accepted(one: re.Pattern[str]) -> frozenset[str]:
    return frozenset(character for character in ALPHABET if one.fullmatch(character))


def _pass(before: list[Repeat], passes: Shared) -> list[Repeat]:
    return [Repeat(one.text, one.characters, (*one.passed, passes)) for one in before]


def _text(items: Sequence[Any]) -> str:
    return str(list(items))


def find_faults(expression: str | bytes, flags: int = 0, method: str = "fullmatch") -> list[str]:
    """Return the pairs of repeats that can match the same characters side by side."""
    text = expression.decode("latin-1") if isinstance(expression, bytes) else expression
    tree = parser.parse(text, flags)
    checker = Checker(flags=tree.state.flags, ends=method == "fullmatch")
    checker.walk(list(tree), [Repeat("a search", ALPHABET)] if method in SEARCHES else [])
    return checker.faults


def _sources() -> Iterator[tuple[str, list[ast.AST]]]:
    """Yield module and nodes that matter of each file that may use an expression."""
    used = re.compile(rf"\.\s*({'|'.join(METHODS)})\b|\bread_groups\b")
    for name, text in read_sources().items():
        if used.search(text):
            yield name.removesuffix(".py").removesuffix("/__init__").replace("/", "."), [
                node for node in walk(ast.parse(text))
                if isinstance(node, ast.Attribute | ast.Assign | ast.Call)]


def list_expressions() -> Iterator[tuple[str, str | bytes, int, str]]:
    """Yield place, expression, flags and method of each call that takes one.

    Of a compiled expression the method is what its name is used with: a search where nothing tells.
    """
    sources = dict(_sources())
    used: dict[str, set[str]] = {}
    for module, nodes in sources.items():
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and \
                    node.attr in METHODS:
                used.setdefault(_name(module, node.value.id), set()).add(node.attr)
    for module, nodes in sources.items():
        assigned = {id(node.value): node.targets[0].id for node in nodes
                    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            method = _method(call)
            if method == "compile":
                methods = used.get(_name(module, assigned.get(id(call), "")), {"search"})
                method = next((one for one in (*SEARCHES, "fullmatch") if one in methods), "match")
            expression = _value(call.args[0], module) if method else None
            if isinstance(expression, str | bytes):
                flags = [_value(node, module) for node in ast.walk(call)
                         if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                         and node.value.id == "re" and node.attr.isupper()]
                yield f"{module}:{call.lineno}", expression, sum(set(flags)), str(method)


def _method(call: ast.Call) -> str | None:
    """Return the method of `re` a call is of; `read_groups` passes its pattern to a search."""
    if isinstance(call.func, ast.Name):
        return "search" if call.func.id == "read_groups" else None
    return call.func.attr if isinstance(call.func, ast.Attribute) and isinstance(
        call.func.value, ast.Name) and call.func.value.id == "re" and call.func.attr in METHODS \
        else None


def _name(module: str, name: str) -> str:
    return f"{module}.{name}" if name.startswith("_") else name


def _value(node: ast.expr, module: str) -> object:
    """Return what an expression of a module is; local names in a formatted text stand for x."""
    class Local(str):
        def __getattr__(self, name: str) -> Local:
            return self

    class Known(dict[str, object]):
        def __missing__(self, name: str) -> object:
            return vars(builtins).get(name, Local("x"))

    return eval(compile(ast.Expression(node), module, "eval"),
                {}, Known(vars(importlib.import_module(module))))


@pytest.mark.parametrize("expression, method", [
    (r"\s*([^(]+?)\s*\(", "match"), (r"(a+)+b", "match"), (r"(?:a|b\s*)*\s*c", "match"),
    (r"\s+x", "search"), (r"\d+ms", "search"), (r".*x.*y", "match"), (r"(\w+)\s?(\w+)!", "match"),
    (r"\s*(?:#\s*)?\s*x", "match"), (r"(?:\s+\w+)*\s*\w*;", "match"), (r"(?m)^\s*#", "search")])
def test_repeats_that_share_characters_are_found(expression, method):
    assert find_faults(expression, method=method)


@pytest.mark.parametrize("expression, method", [
    (r"\s*+([^(\s]++)\s*\(", "match"), (r"a+b+c", "match"), (r"(?:a|b\s+)*c", "match"),
    (r"(?<!\s)\s+x", "search"), (r"\b\d+ms", "search"), (r"\w+", "search"), (r"x\s*(.*)", "match"),
    (r"\s*(?:#\s*)?x", "match"), (r"\S+(?:\s+\S+)*\s*$", "match"), (r"(?m)^[ \t]*#", "search"),
    (r"x[^x]{0,500}y", "search")])
def test_repeats_that_share_none_are_not(expression, method):
    assert not find_faults(expression, method=method)


def test_no_expression_of_the_packages_has_repeats_that_share_characters():
    expressions = list(list_expressions())
    assert len(expressions) > 200
    faults = [f"{place}: {expression!r}: {fault}" for place, expression, flags, method
              in expressions for fault in find_faults(expression, flags, method)]
    assert not faults, "\n".join(faults)
