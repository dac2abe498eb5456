"""Damage that keeps a file's form: values, keys and rows changed in what still parses.

Damaged bytes end at a parser; these come to what is behind it.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from fuzz_mutator import cut_behind_line, pad

SPLIT = b"\n=====\n"
EDGES: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 255, 65536, 2**31, 2**32, 2**63, 10**9, 10**18, 10**30, 0.5, -0.0, 1e-320,
    1e308, math.inf, -math.inf, math.nan, True, False, None, "", "0", "x" * 300, "\x1b[2J",
    "\u202e", "a\nb", "../x", "1GHz", [], {}, [[]], [0], {"a": 1})
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
UNITED = re.compile(r"-?\d+(?:\.\d+)?")
MOST_CHANGES = 3


def damage_tree(dice: random.Random, tree: Any) -> Any:
    """Return a document with one to three of its values, keys or entries changed."""
    for _ in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        places = list(_places(tree))
        if not places:
            return dice.choice(EDGES)
        holder, key = dice.choice(places)
        dice.choice(TREE_CHANGES)(dice, holder, key, places)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry: what holds it, and its key."""
    inner = tree.items() if isinstance(tree, dict) else \
        enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(inner):
        yield tree, key
        yield from _places(value)


def change_value(dice: random.Random, value: Any) -> Any:
    """Return another of the same kind, or an edge."""
    if isinstance(value, str) and UNITED.search(value) and dice.random() < 0.7:
        return UNITED.sub(lambda _: str(dice.choice(EDGES[:21])), value, count=1)
    if isinstance(value, int | float | bool) and dice.random() < 0.1:
        return json.dumps(value)
    if isinstance(value, str) and dice.random() < 0.1:
        return value.replace(" ", " " * 6000) if " " in value else value + " " * 6000
    if isinstance(value, int | float) and not isinstance(value, bool) and dice.random() < 0.6:
        return dice.choice((value + 1, value - 1, -value, value * 2, value * 1000, value * 10**6,
                            value / 3, int(value) if math.isfinite(value) else 0))
    return dice.choice(EDGES)


def _set(dice: random.Random, holder: Any, key: Any, _places: Any) -> None:
    if key in holder if isinstance(holder, dict) else key < len(holder):
        holder[key] = change_value(dice, holder[key])


def _drop(_dice: random.Random, holder: Any, key: Any, _places: Any) -> None:
    if key in holder if isinstance(holder, dict) else key < len(holder):
        del holder[key]


def _double(dice: random.Random, holder: Any, key: Any, _places: Any) -> None:
    if isinstance(holder, list):
        holder[key:key] = [json.loads(json.dumps(one, default=str)) for one in
                           holder[key:key + 1] * dice.choice((1, 2, 40))]
    else:
        holder[f"{key}2"] = holder.get(key)


def _swap(dice: random.Random, holder: Any, key: Any, places: Any) -> None:
    other, place = dice.choice(places)
    try:
        holder[key] = json.loads(json.dumps(other[place], default=str))
    except (LookupError, ValueError, RecursionError):
        holder[key] = None


TREE_CHANGES: tuple[Callable[[random.Random, Any, Any, Any], None], ...] = (
    _set, _set, _set, _drop, _double, _swap)


def damage_documents(dice: random.Random, data: bytes) -> bytes:
    """Change one of the documents of an input: JSON, lines of JSON, or YAML."""
    import yaml

    parts = data.split(SPLIT)
    place = dice.randrange(len(parts))
    text = parts[place].decode("utf-8", "replace")
    try:
        parts[place] = json.dumps(damage_tree(dice, json.loads(text))).encode()
    except ValueError:
        lines = text.splitlines()
        number = dice.randrange(len(lines)) if lines else 0
        try:
            lines[number] = json.dumps(damage_tree(dice, json.loads(lines[number])))
            parts[place] = "\n".join([*lines, ""]).encode()
        except (ValueError, IndexError):
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            tree = damage_tree(dice, yaml.load(text, loader))
            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            parts[place] = yaml.dump(tree, Dumper=dumper, sort_keys=False).encode(
                "utf-8", "replace")
    return SPLIT.join(parts)


def damage_numbers(dice: random.Random, data: bytes) -> bytes:
    """Change one to three of the numbers of a text; now and then pad it or end it behind a line."""
    text = bytearray(data)
    for change in (pad, cut_behind_line):
        if dice.random() < 0.15:
            change(dice, text)
    data = bytes(text)
    for _ in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        found = list(NUMBER.finditer(data))
        if found:
            begin, end = dice.choice(found).span()
            number = float(data[begin:end])
            changed = dice.choice((*EDGES[:21], "", "x", number + 1, -number, number * 1000,
                                   number * 1e9, number / 3, int(min(number, 1e300)) * 2))
            data = data[:begin] + str(changed).encode() + data[end:]
    return data


def damage_integers(dice: random.Random, data: bytes) -> bytes:
    """Change one to three small aligned integers of a binary file: lengths, offsets, options."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        places = [place for place in range(0, len(changed) - 3, 4)
                  if 0 < int.from_bytes(changed[place:place + 4], "little") < 1 << 16]
        if places:
            place = dice.choice(places)
            old = int.from_bytes(changed[place:place + 4], "little")
            new = dice.choice((old + 1, old - 1, old + 4, old * 2, old * 4096, 0, 2**31 - 1))
            changed[place:place + 4] = (new % 2**32).to_bytes(4, "little")
    return bytes(changed)


def damage_table(dice: random.Random, data: bytes) -> bytes:
    """Change values, rows or columns of a Parquet file; it stays one."""
    import pyarrow
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(data))
    for _ in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        name = dice.choice(table.column_names)
        column, place = table[name].to_pylist(), table.column_names.index(name)
        change = dice.randrange(6)
        if change == 0:
            table = table.drop_columns([name])
        elif change == 1:
            table = pyarrow.concat_tables([table, table.slice(0, dice.choice((1, 3)))])
        elif change == 2:
            table = table.slice(dice.randrange(len(table) + 1), dice.choice((0, 1, 1000)))
        else:
            if change == 3 and column:
                column[dice.randrange(len(column))] = change_value(dice, dice.choice(column))
            elif change == 4:
                column = [dice.choice(EDGES[:29])] * len(column)
            else:
                dice.shuffle(column)
            try:
                made = pyarrow.array(column, type=table.schema.field(name).type)
            except (pyarrow.ArrowException, ValueError, TypeError, OverflowError):
                made = pyarrow.array([None if one is None else str(one).encode(
                    "utf-8", "replace").decode() for one in column])
            table = table.set_column(place, name, made)
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def damage_onnx(dice: random.Random, data: bytes) -> bytes:
    """Change fields of an ONNX file's messages; it stays one."""
    import onnx

    model = onnx.load_model_from_string(data)
    for _ in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        message: Any = model.graph
        while True:
            fields = message.ListFields()
            if not fields:
                break
            field, value = dice.choice(fields)
            several = not isinstance(value, int | float | str | bytes) and \
                hasattr(value, "__len__")
            if field.message_type is None:
                _change_field(dice, message, field.name, value, several)
                break
            if several and dice.random() < 0.1:
                del value[dice.randrange(len(value))]
                break
            if several and dice.random() < 0.1:
                value.append(dice.choice(value))
                break
            message = dice.choice(value) if several else value
    return model.SerializeToString()


def _change_field(dice: random.Random, message: Any, name: str, value: Any, several: bool) -> None:
    place = dice.randrange(len(value)) if several and len(value) else 0
    old = value[place] if several else value
    new = change_value(dice, old)
    if isinstance(old, bytes):
        new = damage_integers(dice, old) if dice.random() < 0.5 else old[:dice.randrange(
            len(old) + 1)]
    try:
        if not several:
            setattr(message, name, type(old)(new))
        elif dice.random() < 0.2:
            value.extend([old] * dice.choice((1, 8)))
        else:
            value[place] = type(old)(new)
    except (ValueError, TypeError, OverflowError):
        message.ClearField(name)
