"""Board files: finding them by name, reading them, and changing them by dotted path.

Boards are YAML files shipped in `hwmodels/boards`, in the folders of the environment variable
`TWIN_BOARDS`, or given by path. A what-if is a dotted path of the file with a new value.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.board.declaration import WHAT_IF, Leaf, Quantity, is_stated
from hwmodels.board.facts import Board
from hwmodels.errors import BoardError, UnknownPathError, did_you_mean, reworded
from hwmodels.extensions import find_folders, named_folders
from hwmodels.file_cache import make_once
from hwmodels.files import DocumentError, JsonObject, parse_json, parse_yaml, read_regular
from hwmodels.quantities import Settings

if TYPE_CHECKING:
    from hwmodels.board.schema import Section

SHIPPED = Path(__file__).parents[1] / "boards"
"""Folder of the boards that come with the project."""

NPUS = Path(__file__).parents[1] / "npus"
"""Folder of the families of accelerators that come in several sizes, a file each."""

SUFFIXES = (".yaml", ".yml")
LARGEST_BYTES = 1 << 20
"""No board file is near a mebibyte: a larger one is something else."""


WHAT_IF_SOURCE = "what-if: set by the user"
"""Source of a fact a what-if has set."""


def list_boards() -> tuple[str, ...]:
    """Return the names of all boards, shipped, of `TWIN_BOARDS` and of extensions, sorted.

    Returns
    -------
    tuple of str
        File names without suffix, each a name `load_board` takes.
    """
    return tuple(sorted({path.stem for path in (*_board_paths(), *_extension_paths())}))


def load_board(name_or_path: str | Path, *, overrides: Settings | None = None) -> Board:
    """Read a board by name, alias or path, and apply what-ifs to it.

    Parameters
    ----------
    name_or_path : str or Path
        A name of `list_boards`, an alias of a board (upper or lower case, `-` or `_`), or the
        path of a YAML file.
    overrides
        Dotted path of the file to new value: `{"clocks.cpu.frequency_hz": "240MHz"}`.

    Returns
    -------
    Board
        Validated, with every rule of the part kept.

    Raises
    ------
    BoardError
        `file:dotted.key: reason; accepted ...`.
    """
    path = _find(name_or_path)
    file = path.name if path.parent == SHIPPED else str(path)
    board = _read_once(path, file, _content(path), b"".join(
        _content(family) for family in sorted(NPUS.glob("*.yaml"))))
    shipped = SHIPPED / f"{board.name}.yaml"
    if path != shipped and shipped.is_file() and _name_part(board) != _name_part(
            load_board(shipped)):
        board = replace(board, as_shipped=False)
    if file == str(Path(name_or_path)):
        board = replace(board, file=file)
    return _change_once(board, overrides, file) if overrides else board


def find_board(name: str) -> Board | None:
    """Return a board by name, alias or path; None where no file that can be read is of it."""
    try:
        return load_board(name)
    except BoardError:
        return None


@lru_cache(maxsize=64)
def _read_once(path: Path, file: str, content: bytes, families: bytes) -> Board:
    return make_once("board", path, content + families, Path(__file__).parent,
                     lambda: _read(_parse(path, content), file))


def hash_board(board: Board) -> str:
    """Return a hash of what times and energies of a board follow from, by its file.

    Clocks and supply, which a run may set, and what only names or describes it are no part of it.
    """
    document = parse_json(board.document)
    assert isinstance(document, dict)
    facts = {name: part for name, part in document.items() if name not in (
        "sources", "clocks", "supply", "board", "sleep", "counters", "virtual")}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _name_part(board: Board) -> tuple[str, str]:
    """Return the chip and the core, by which a file is of another machine of the same name."""
    return board.soc, board.core.model


@lru_cache(maxsize=64)
def list_facts(document: str) -> dict[str, object]:
    """Return what a board's `document` states by dotted path, without kinds and sources."""
    return dict(_list_values(parse_json(document)))


def _list_values(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and "value" not in value:
        for key, part in value.items():
            yield from _list_values(part, f"{path}.{key}".lstrip("."))
    else:
        yield path, value[0] if is_stated(value) else (
            value["value"] if isinstance(value, dict) else value)


def change_board(board: Board, overrides: Settings, *, follow_clock: bool = False) -> Board:
    """Return a board with some of its facts changed, by dotted path of its file.

    Parameters
    ----------
    overrides
        As for `load_board`; the kind of a changed number becomes "assumed".
    follow_clock
        Whether a changed clock takes the lowest voltage scale it may run at, and the wait states
        of that, unless `overrides` name a scale.

    Returns
    -------
    Board
        Validated again.

    Raises
    ------
    BoardError
        On an unknown path or a value the part cannot have, naming the rule.
    """
    return _change_once(board, overrides, board.name, follow_clock and (
        "supply.voltage_scale" not in overrides)) if overrides else board


def _change_once(board: Board, overrides: Settings, name: str, follows: bool = False) -> Board:
    changes = tuple((path, type(value), value) for path, value in overrides.items())
    asked = board.document, name, changes, follows, board.as_shipped
    try:
        changed = _change(*asked)
    except TypeError:  # a list has no hash
        changed = _change.__wrapped__(*asked)
    return replace(changed, file=board.file) if board.file else changed


@lru_cache(maxsize=64)
def _change(document: str, name: str, changes: tuple[tuple[str, type, object], ...],
            follow_clock: bool, as_shipped: bool) -> Board:
    from hwmodels.board.assembly import to_plain
    from hwmodels.board.schema import validate

    with reworded(DocumentError, BoardError, f"{name}: "):
        section = read_section(document, name)
    overrides = {path: value for path, _, value in changes}
    plain = to_plain(section)
    plain["sources"][WHAT_IF] = WHAT_IF_SOURCE
    if "npu.config" in overrides:
        _set(section, plain, "npu.config", overrides["npu.config"], name)
        _configure(plain, name)
        section = validate(plain, name)
    for path, value in _reach_pools(section.npu, overrides):
        _set(section, plain, path, value, name)
    stated, section = section, validate(plain, name)
    if follow_clock:
        from hwmodels.board.scales import follow_clocks

        section = follow_clocks(stated, section)
    return replace(_make(section, name), as_shipped=as_shipped)


def paths_of(board: Board) -> frozenset[str]:
    """Return every path `change_board` may set: none of a part the board does not have."""
    return frozenset(_paths(read_section(board.document, board.name)))


@lru_cache(maxsize=8)
def read_section(document: str, name: str) -> Section:
    """Return a board's file again; it is only read."""
    from hwmodels.board.schema import validate

    return validate(parse_json(document), name)


def _read(document: JsonObject, file: str) -> Board:
    from hwmodels.board.schema import validate

    _configure(document, file)
    section = validate(document, file)
    _check_family(section, file)
    return _make(section, file)


def _make(section: Section, file: str) -> Board:
    from hwmodels.board.assembly import assemble
    from hwmodels.board.rules import find_broken

    broken = find_broken(section)
    if broken is not None:
        raise BoardError(f"{file}:{broken[0]}: {broken[1]}")
    return assemble(section)


def _check_family(section: Section, file: str) -> None:
    """Refuse a file whose family is not that of its core; a what-if may change the core alone."""
    core = section.cores.get("main") or next(iter(section.cores.values()), None)
    if core is not None and section.board.core_family not in (core.model, core.isa):
        raise BoardError(f"{file}:board.core_family: {section.board.core_family} has a core of "
                         f"{core.model}; accepted: {core.model}")


def _reach_pools(npu: Section | None, overrides: Settings,
                 ) -> Iterator[tuple[str, object]]:
    """Yield overrides; a pool of another configuration is the pool in use of the same memory.

    Raises
    ------
    BoardError
        When the configuration has no pool of that memory.
    """
    from hwmodels.board.rules import name_pools

    used = {} if npu is None else name_pools(npu)
    for path, value in overrides.items():
        name, _, key = path.removeprefix("npu.pools.").rpartition(".")
        if npu is None or name not in npu.pools or name in used or key == "configs":
            yield path, value
            continue
        same = [pool for pool, memory in used.items() if memory == npu.pools[name].memory]
        if len(same) != 1:
            raise BoardError(f"{path}: {npu.config} has no such pool; accepted: {', '.join(used)}")
        if f"npu.pools.{same[0]}.{key}" not in overrides:
            yield f"npu.pools.{same[0]}.{key}", value


def _configure(document: JsonObject, file: str) -> None:
    """Write what an accelerator's configuration has into a board's section of it.

    Raises
    ------
    BoardError
        When its family's file does not state the configuration.
    """
    npu = document.get("npu")
    if not isinstance(npu, dict) or not npu.get("config"):
        return
    family, config = str(npu.get("family", "")), str(npu["config"])
    known = _read_family(family) if "/" not in family else {}
    stated = known.get("configs", {})
    if config not in stated:
        raise BoardError(f"{file}:npu.config: no {config!r} of {family}; "
                         + did_you_mean(config, tuple(stated)))
    product = known["products"][config.rpartition("-")[0]]
    used: set[str] = set()
    npu.update(_name_sources(_overlay(product, stated[config]), family, used))
    sources = document.setdefault("sources", {})
    for name in [name for name in sources if name.startswith(f"{family} ")]:
        del sources[name]
    sources.update({f"{family} {name}": text for name, text in known["sources"].items()
                    if name in used})


@lru_cache(maxsize=8)
def _read_family(family: str) -> JsonObject:
    path = NPUS / f"{family}.yaml"
    return parse_yaml(_content(path).decode()) if path.is_file() else {}


def _overlay(base: JsonObject, over: JsonObject) -> JsonObject:
    """Return two sections in one, the second stating what both do."""
    return {key: _overlay(base[key], over[key]) if isinstance(base.get(key), dict)
            and isinstance(over.get(key), dict) and "value" not in over[key] else
            over.get(key, base.get(key)) for key in (*base, *(k for k in over if k not in base))}


def _name_sources(value: Any, family: str, used: set[str]) -> Any:
    """Return a part of a family's file with sources as a board file has them; add them to used."""
    if is_stated(value):
        used.add(value[2])
        return [*value[:2], f"{family} {value[2]}"]
    if isinstance(value, dict):
        if "source" in value:
            used.add(value["source"])
            return {**value, "source": f"{family} {value['source']}"}
        return {key: _name_sources(part, family, used) for key, part in value.items()}
    return value


def _set(section: Section, plain: Any, path: str, value: object, file: str) -> None:
    """Write one what-if into the plain form of a board file."""
    from hwmodels.board.schema import Section

    *parents, last = path.split(".")
    node: Any = section
    for part in parents:
        node = node.get(part) if isinstance(node, dict) else getattr(node, part, None)
        plain = plain.get(part) if isinstance(plain, dict) else None
    if isinstance(node, Section) and last in node.declared:
        old = dict(node.items())[last]
        number = isinstance(node.declared[last].kind, Quantity)
    elif isinstance(node, dict) and last in node:
        old, number = node[last], isinstance(node[last], Leaf)
    else:
        raise UnknownPathError(f"{file}: path {path!r} is not in the board; "
                               + did_you_mean(path, _paths(section)), path)
    if isinstance(old, (Section, dict)):
        raise BoardError(f"{file}:{path}: is a section, not a value; accepted: "
                         + ", ".join(_paths(old, f"{path}.")))
    read = _read_value(value)
    plain[last] = [read, "assumed", WHAT_IF] if number else read


def _read_value(value: object) -> object:
    """Read a word of the command line as the file would: `false`, `null`, `[1, 2]`, `240MHz`."""
    if not isinstance(value, str):
        return list(value) if isinstance(value, tuple) else value
    try:
        return parse_yaml(value)
    except DocumentError:
        return value


def _paths(node: object, prefix: str = "") -> Iterator[str]:
    """Yield every path a what-if may set."""
    from hwmodels.board.schema import Section

    for name, child in node.items():  # type: ignore[attr-defined]
        if isinstance(child, (Section, dict)):
            yield from _paths(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _board_paths() -> Iterator[Path]:
    """Yield board files, the user's folders before the shipped one."""
    for folder in (*named_folders("TWIN_BOARDS", "board"), SHIPPED):
        yield from _list_files(folder)


def _extension_paths() -> Iterator[Path]:
    for folder in find_folders("twin.boards"):
        yield from _list_files(folder)


def _list_files(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(SUFFIXES)]


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(SUFFIXES) or os.sep in text:
        return Path(name_or_path)
    ours, theirs = list(_board_paths()), list[Path]()
    found = _match(text, ours)
    if found is None:  # Only now: the list of installed packages is long.
        theirs = list(_extension_paths())
        found = _match(text, theirs)
    if found is None:
        from hwmodels.board.unmodelled import explain_unmodelled

        raise BoardError(f"board {text!r} is not known; " + (
            explain_unmodelled(text)
            or did_you_mean(text, [path.stem for path in (*ours, *theirs)])))
    return found


def _match(text: str, paths: list[Path]) -> Path | None:
    """Return the file of a name or an alias; None for neither."""
    wanted = _fold(text)
    for path in paths:
        if _fold(path.stem) == wanted:
            return path
    return next((path for path in reversed(paths) if wanted in _list_aliases(path)), None)


def _list_aliases(path: Path) -> tuple[str, ...]:
    """Return names of a board in its file; none where it is broken, which naming it says."""
    try:
        return _read_aliases(path, _content(path))
    except BoardError:
        return ()


@lru_cache(maxsize=128)
def _read_aliases(path: Path, content: bytes) -> tuple[str, ...]:
    def read() -> tuple[str, ...]:
        header = _parse(path, content).get("board")
        stated = header if isinstance(header, dict) else {}
        names = stated.get("aliases")
        return tuple(_fold(str(name)) for name in (
            stated.get("name", ""), *(names if isinstance(names, list) else ())))

    return make_once("aliases", path, content, Path(__file__).parent, read)


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_BYTES)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _parse(path: Path, content: bytes) -> JsonObject:
    """Return the YAML of a file; duplicate keys are refused, not overwritten."""
    try:
        document = parse_yaml(content.decode(), keys_once=True)
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"not UTF-8 text: {error}") from error
    except DocumentError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(document, dict):
        raise BoardError(f"{path}: holds no sections; accepted: a board file in YAML with "
                         "schema, sources, board, supply, clocks, cores, memories, power")
    return document


def _unreadable(path: Path, why: str) -> BoardError:
    return BoardError(f"{path}: cannot be read ({why}); accepted: a board file in YAML, or "
                      "a name of `twin boards`")
