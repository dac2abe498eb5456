"""`twin serve`: the live what-if, a page that bills a network again while a slider moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from os import fspath
from pathlib import Path
from urllib.parse import quote, urlencode

from hwmodels.files import read_regular
from twin.api.live.server import address_of, is_loopback, listen, run
from twin.api.live.state import State, check_names, tell_invalid
from twin.api.live.uploads import LARGEST_BYTES, SUFFIXES
from twin.api.requests import takes
from twin.api.requests.serving import Serve
from twin.deployment.choice import load_runtime
from twin.errors import UsageError

__all__ = ["is_loopback", "serve"]


@takes(Serve)
def serve(asked: Serve) -> None:
    """Serve the live what-if until interrupted; a file is read once, as if it were uploaded.

    Raises
    ------
    UsageError
        When the port is taken, or a name is none.
    RuntimeRefusedError
        For a runtime that is not known.
    ToolMissingError
        When the extra "serve" is not installed.
    """
    from twin.api.live.app import Service

    host, on_ready = asked.host, asked.on_ready
    opened = listen(host, asked.port)
    service = Service()
    try:
        address = address_of(opened, host)
        service.start = _write_query(lambda *file: asyncio.run(service.upload(*file)), asked)
        run(service, opened, host, lambda: on_ready(address + service.start) if on_ready else None)
    finally:
        service.close()
        opened.close()


def _write_query(upload: Callable[..., Mapping[str, object]], asked: Serve) -> str:
    """Return what the page is opened with, as the end of its address."""
    from pydantic import ValidationError

    model, board, runtime = asked.model, asked.board, asked.runtime
    if model is None and board is None and runtime is None and not asked.settings:
        return ""
    changes = {path: str(value) for path, value in (asked.settings or {}).items()}
    try:
        state = State(
            model=_find("model", fspath(model or "kws"), upload),
            board=_find("board", fspath(board or "nucleo_l4r5zi"), upload),
            runtime=changes.pop("runtime", runtime), set=changes)
    except ValidationError as error:
        raise UsageError(tell_invalid(error.errors())) from None
    check_names(state)
    words = [("model", state.model), ("board", state.board)]
    if state.runtime is not None:
        load_runtime(state.runtime)
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
