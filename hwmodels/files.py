"""Files of the user, read within bounds and written whole; YAML and JSON through one guard."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from hwmodels.errors import TwinError, did_you_mean, tell_in_one_line

File = str | os.PathLike[str]
"""A path of the user."""

LARGEST_BYTES = 1 << 28
"""Of a file read whole: four times the largest memory of a board; readers of text allow less."""


def read_regular(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Read a regular file whole.

    Parameters
    ----------
    largest_bytes
        A larger one is refused unread.

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    OSError
        When it is missing, a folder, a pipe, a device or too large; `strerror` says which.
    """
    with open_regular(path, largest_bytes) as stream:
        size = os.fstat(stream.fileno()).st_size
        return stream.read(min(max(size, 1 << 20), largest_bytes))


def list_files(root: str, parts: Iterable[str], endings: tuple[str, ...],
               without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield files that are parts of a folder, or of these endings below one, in order.

    Parameters
    ----------
    without
        Names of folders that are passed over.
    """
    for part in parts:
        where = os.path.join(root, part)
        if os.path.isfile(where):
            yield where
        for folder, folders, files in os.walk(where):
            folders[:] = sorted({*folders} - without)
            yield from (os.path.join(folder, file) for file in sorted(files)
                        if file.endswith(endings))


def hash_files(root: str, paths: Iterable[str]) -> str:
    """Return a hash of files' names in a folder and of what they hold."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path[len(root):].encode())
        with open(path, "rb", buffering=0) as file:
            digest.update(file.readall())
    return digest.hexdigest()


def open_regular(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> io.BufferedReader:
    """Open a regular file to read it in parts; parameters and errors as those of `read_regular`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
                             | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a null byte in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError:
        if Path(path).is_dir():  # not opened on Windows
            raise OSError(errno.EISDIR, "is a directory", str(path)) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            what = "is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file"
            raise OSError(errno.EINVAL, what, str(path))
        if found.st_size > largest_bytes:
            raise OSError(errno.EFBIG, f"has {found.st_size:,} bytes; at most {largest_bytes:,} "
                          "are read", str(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def names_file(name: str | Path) -> bool:
    """Whether a text names a file there is; what can be no name does not."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def is_path(name: str) -> bool:
    """Whether a name that may be of a file is: by how it ends, or for it leads into a folder."""
    ends = name.lower().endswith((".yaml", ".yml")) or "/" in name or os.sep in name
    return ends and "\0" not in name


class BoundedReader(io.BufferedReader):
    """A file of which no large part is read at once, such as the list of an archive's entries.

    Parameters
    ----------
    stream
        Of `open_regular`; taken over.
    most_bytes
        Read at once; asking for more raises ValueError.
    """

    def __init__(self, stream: BinaryIO, most_bytes: int) -> None:
        super().__init__(stream.detach())  # type: ignore[attr-defined]
        self.most_bytes = most_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        """Read so many bytes, or all that is left."""
        if size is not None and size > self.most_bytes:
            raise ValueError(f"lists more than {self.most_bytes:,} bytes of entries")
        return super().read(size)


def read_regular_text(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """Read a regular file of UTF-8 text; raises as `read_regular`, and UnicodeDecodeError."""
    return read_regular(path, largest_bytes).decode("utf-8")


def write_whole(path: str | Path, content: bytes, mode: int = 0o666, *,
                awaited: bool = True) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or Path
        Of the file; where it is a link, of what the link names. Its folder exists.
    mode
        Permissions of a new file, of which the user's mask takes some away.
    awaited
        Whether to wait until it is on the disk: not for what is checked when read, and made again.

    Raises
    ------
    OSError
        When it cannot be written; an older file stays as it was, and nothing beside it.

    Notes
    -----
    The draft beside it has a name nobody can foresee and is made, never opened; it takes the place
    (once on the disk, if that is awaited) with the mode of the file it replaces. A pipe or device,
    such as /dev/stdout, is written to as it is.
    """
    target = Path(os.path.realpath(path))
    before = None
    with contextlib.suppress(FileNotFoundError):
        before = os.stat(target).st_mode
    if before is not None and not stat.S_ISREG(before):
        with open(path, "wb") as stream:
            stream.write(content)
        return
    draft = target.with_name(f".{target.name[:200]}.{os.urandom(8).hex()}.tmp")
    try:
        with open_exclusive(draft, mode) as stream:
            stream.write(content)
            stream.flush()
            if before is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), stat.S_IMODE(before))
            if awaited:
                os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and (error.filename is None or error.filename == str(draft)):
            raise OSError(error.errno, error.strerror, str(path)) from error  # Not its draft.
        raise
    if awaited:
        _sync_folder(target.parent)


def open_exclusive(path: str | Path, mode: int = 0o666) -> BinaryIO:
    """Make a file and open it for writing; FileExistsError where there is one, or a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return open(os.open(path, flags, mode), "wb")


def _sync_folder(folder: Path) -> None:
    """Ask that a new name outlives a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


DEEPEST = 64
"""Lists and mappings inside each other; no file of the project has ten."""

LARGEST_YAML_BYTES = 1 << 21
"""A node of YAML takes up to 200 times the memory of its text."""

LARGEST_JSON_BYTES = 1 << 26
MOST_ELEMENTS = 3_000_000
"""Of a JSON document, or of a YAML document with its aliases written out."""

_NUMBER_BITS = 1024
"""Of a whole number: one of 1,025 is too large for a float."""

_DIGITS = re.compile(r"\d{19}")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NOT_BRACKETS = bytes(code for code in range(128) if chr(code) not in "[]{}")


MISSHAPEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What using a parsed document raises where it has another form than its reader takes for granted:
one list for every reader, so that none lacks a kind."""


class DocumentError(TwinError):
    """A document cannot be read; the message is the reason alone, whoever reads names the file."""


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file.

    Raises
    ------
    DocumentError
        When it cannot be read, is no YAML, or is too large or too deep.
    """
    return parse_yaml(_read(path, LARGEST_YAML_BYTES))


def read_json(path: str | Path) -> Any:
    """Read a JSON file; parameters and errors as those of `read_yaml`."""
    return parse_json(_read(path, LARGEST_JSON_BYTES))


def _read(path: str | Path, largest_bytes: int) -> str:
    try:
        return read_regular_text(path, largest_bytes)
    except OSError as error:
        raise DocumentError(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 text: {error}") from error


def parse_yaml(text: str, *, keys_once: bool = False) -> Any:
    """Parse YAML text, errors as those of `read_yaml`; a key given twice may be refused."""
    import yaml

    if len(text) > LARGEST_YAML_BYTES:
        raise DocumentError(f"not YAML: {len(text):,} characters; at most "
                            f"{LARGEST_YAML_BYTES:,} are read")
    try:
        loader = _guarded_loader(keys_once)(text)
        try:
            node = loader.get_single_node()
            if "*" in text:
                _count_nodes(node, {})
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        detail = ", ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(f"not YAML: {detail}{place}") from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError,
            RecursionError) as error:  # what its readers of dates, numbers and tags let through
        raise DocumentError(f"not YAML: {tell_in_one_line(str(error))}") from error


@functools.cache
def _guarded_loader(keys_once: bool) -> Any:
    import yaml

    class GuardedLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Safe, and refuses what is too deep, too large a number or a key given twice."""

        def __init__(self, text: str) -> None:
            super().__init__(text)
            self.depth = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            """Begin a node; the composer calls this before it goes deeper."""
            self.depth += 1
            if self.depth > DEEPEST:
                raise ValueError(f"deeper than {DEEPEST} lists and mappings")

        def ascend_resolver(self) -> None:
            """End it."""
            self.depth -= 1

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Construct a mapping, of which every key is given once; one of `<<` may be again."""
            given: dict[str, Any] = {}
            for key, _ in node.value if keys_once else ():
                if given.setdefault(str(key.value), key) is not key:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} is given twice", key.start_mark)
            return super().construct_mapping(node, deep)

        def construct_number(self, node: Any) -> int:
            """Construct an integer of a length that a float can have."""
            return _bound(super().construct_yaml_int(node))

    GuardedLoader.add_constructor("tag:yaml.org,2002:int", GuardedLoader.construct_number)
    return GuardedLoader


def _count_nodes(node: Any, counted: dict[int, int]) -> int:
    """Return how many nodes there are with each alias written out; refuse too many, or a circle."""
    if node is None or isinstance(node.value, str):
        return 1
    if id(node) not in counted:
        counted[id(node)] = MOST_ELEMENTS  # until it is known: it would have to hold itself
        counted[id(node)] = 1 + sum(
            _count_nodes(part, counted) for entry in node.value
            for part in (entry if isinstance(entry, tuple) else (entry,)))
    if counted[id(node)] >= MOST_ELEMENTS:
        raise ValueError(f"its aliases make more than {MOST_ELEMENTS:,} values")
    return counted[id(node)]


def _bound(number: int) -> int:
    if number.bit_length() > _NUMBER_BITS:
        raise ValueError("a whole number of more than 300 digits")
    return number


JsonObject = dict[str, Any]
"""An object of a JSON or YAML document: plain values by key."""


def parse_json(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON text.

    Parameters
    ----------
    pairs
        Makes an object of its keys and values.

    Raises
    ------
    DocumentError
        When it is no JSON, or is too large or too deep.
    """
    opened = text.count("[") + text.count("{")
    if opened + text.count(",") > MOST_ELEMENTS:
        raise DocumentError(f"not JSON: more than {MOST_ELEMENTS:,} values")
    if opened > DEEPEST and _is_deep(text):
        raise DocumentError(f"not JSON: deeper than {DEEPEST} lists and objects, or not closed")
    try:
        return json.loads(text, object_pairs_hook=pairs,
                          parse_int=_read_number if _DIGITS.search(text) else None)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON: {tell_in_one_line(str(error))}") from error


def check_keys(where: str, stated: Mapping[str, Any], known: Collection[str],
               refusal: type[TwinError], needed: Iterable[str] = ()) -> None:
    """Refuse a key that is not known, and a section without one it needs.

    Parameters
    ----------
    where
        File and section, ahead of the key: "library.yaml:offload.".
    """
    for key in sorted(map(str, stated.keys() - set(known))):
        raise refusal(f"{where}{key}: unknown key; {did_you_mean(key, known)}")
    for key in needed:
        if key not in stated:
            raise refusal(f"{where}{key}: missing")


def _is_deep(text: str) -> bool:
    """Whether brackets stand deeper than `DEEPEST`: pairs are taken out from the innermost on."""
    if "\\" in text:
        text = _ESCAPED.sub("", text)
    left = "".join(text.split('"')[::2]).encode("ascii", "ignore").translate(None, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def _read_number(digits: str) -> int:
    return _bound(int(digits))
