"""`twin serve`: the live what-if, a page that bills a network again while a slider moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import quote, urlencode

from hwmodels.files import read_regular
from twin.errors import UsageError
from twin.live.server import address_of, is_loopback, listen, run
from twin.live.state import State, check_names, tell_invalid
from twin.live.uploads import LARGEST_BYTES, SUFFIXES

__all__ = ["HOST", "PORT", "is_loopback", "serve"]

HOST, PORT = "127.0.0.1", 8787


def serve(model: str | PathLike[str] | None = None, board: str | PathLike[str] | None = None, *,
          runtime: str | None = None, settings: Mapping[str, object] | None = None,
          host: str = HOST, port: int = PORT,
          on_ready: Callable[[str], None] | None = None) -> None:
    """Serve the live what-if until interrupted.

    Parameters
    ----------
    model, board : str or path, optional
        What the page opens with: a name, or a file that is read once, as if it were uploaded.
    runtime : str, optional
        Its kernel library.
    settings : mapping of str to object, optional
        What-if paths that are set at first.
    host : str
        What is listened to; by default only this machine is answered.
    port : int
        0: any that is free.
    on_ready : callable, optional
        Told the address of the page when it is answered.

    Raises
    ------
    UsageError
        When the port is taken, or a name is none.
    ToolMissingError
        When the extra "serve" is not installed.
    """
    from twin.live.app import Service

    opened = listen(host, port)
    service = Service()
    try:
        address = address_of(opened, host)
        query = _write_query(lambda *file: asyncio.run(service.upload(*file)), model, board,
                             runtime, settings)
        run(service, opened, host, lambda: on_ready(address + query) if on_ready else None)
    finally:
        service.close()
        opened.close()


def _write_query(upload: Callable[..., Mapping[str, object]], model: str | PathLike[str] | None,
                 board: str | PathLike[str] | None, runtime: str | None,
                 settings: Mapping[str, object] | None) -> str:
    """Return what the page is opened with, as the end of its address."""
    from pydantic import ValidationError

    if model is None and board is None and runtime is None and not settings:
        return ""
    told = {path: str(value) for path, value in (settings or {}).items()}
    try:
        state = State(
            model=_find("model", fspath(model or "kws"), upload),
            board=_find("board", fspath(board or "nucleo_l4r5zi"), upload),
            runtime=told.pop("runtime", runtime), set=told)
    except ValidationError as error:
        raise UsageError(tell_invalid(error.errors())) from None
    check_names(state)
    words = [("model", state.model), ("board", state.board)]
    if state.runtime is not None:
        words.append(("runtime", state.runtime))
    words += [("set", f"{path}={value}") for path, value in state.set.items()]
    return "?" + urlencode(words, quote_via=quote, safe=":=@+.")


def _find(kind: str, name: str, upload: Callable[..., Mapping[str, object]]) -> str:
    """Return a name as it is, a file as what it is uploaded as."""
    if not name.lower().endswith(SUFFIXES[kind]):
        return name
    try:
        content = read_regular(name, LARGEST_BYTES[kind])
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}; accepted: a {kind} file ending "
                         f"{', '.join(SUFFIXES[kind])}") from None
    return str(upload(kind, Path(name).name, content)["key"])
