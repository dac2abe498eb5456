"""The app: a page, and an interface of JSON that the page asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from hwmodels.board.file import list_boards
from hwmodels.counts import CAUSE_GROUPS
from hwmodels.errors import BoardError, TwinError, need_extra, tell_in_one_line
from hwmodels.files import JsonObject
from twin.api.live.export import Variant, command_line, write_studies
from twin.api.live.guard import LOOPBACK, Guard
from twin.api.live.pool import Pool
from twin.api.live.state import (
    GONE,
    MOST_CHANGES,
    State,
    Wire,
    check_names,
    is_upload,
    tell_board,
    tell_invalid,
)
from twin.api.live.uploads import LARGEST_BYTES, SUFFIXES, Uploads
from twin.errors import UsageError
from twin.network import zoo
from twin.reports.glossary import load_glossary
from twin.reports.palette import CAUSE_STYLES

if TYPE_CHECKING:
    from fastapi import FastAPI

FOLDER = Path(__file__).parent / "page"

ASSETS = {"/": ("live.html", "text/html; charset=utf-8"),
          "/live.css": ("live.css", "text/css; charset=utf-8"),
          **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
             for name in ("live", "address", "controls", "drawing", "variants")}}
"""All there is besides the interface: path to file and type."""

MOST_VARIANTS = 12

STATUS = {"WorkerError": 503}
"""Of refusals by their class; others are 422."""


class Asked(Wire):
    """A state to predict; `controls`: with what can be turned."""

    state: State
    controls: bool = False


class Slid(Wire):
    """A state to price again at another clock; `begin`: what it takes may be simulated."""

    state: State
    path: str = Field(max_length=120)
    begin: bool = False


class Named(Wire):
    """A variant: a state and what it is called."""

    label: str = Field(min_length=1, max_length=80)
    state: State


class Exported(Wire):
    """Variants to write down, the first as a command line, too."""

    variants: list[Named] = Field(min_length=1, max_length=MOST_VARIANTS)


class Service:
    """What the interface does, without the wire: workers and uploads."""

    def __init__(self) -> None:
        self.start = ""  # what a bare address shows, as a query
        self.uploads = Uploads()
        self.pool = Pool(self.uploads.folder)

    async def predict(self, asked: Asked) -> JsonObject:
        """Predict a state."""
        check_names(asked.state)
        found = await self._ask({"do": "predict", "state": asked.state.model_dump(),
                                 "controls": asked.controls}, asked.state)
        names = self.uploads.names()
        files = {one: names[one] for one in (asked.state.model, asked.state.board) if one in names}
        return {**found, "files": files} if files else found

    async def reprice(self, slid: Slid) -> JsonObject:
        """Price a state again from kept counts."""
        check_names(slid.state)
        return await self._ask({"do": "reprice", "state": slid.state.model_dump(),
                                "path": slid.path, "begin": slid.begin}, slid.state)

    def export(self, asked: Exported) -> JsonObject:
        """Write variants as what gives the same figures elsewhere."""
        for one in asked.variants:
            check_names(one.state)
        names = self.uploads.names()
        gone = [one for variant in asked.variants for one in (variant.state.model,
                                                              variant.state.board)
                if is_upload(one) and one not in names]
        if gone:
            raise UsageError(GONE)
        variants = [Variant(label=" ".join(one.label.split()), state=one.state)
                    for one in asked.variants]
        return {"command": command_line(variants[0].state, names),
                "studies": write_studies(variants, names)}

    async def upload(self, kind: str, name: str, content: bytes) -> JsonObject:
        """Keep a file that can be read."""
        made = await self.uploads.add(kind, name, content, self.pool)
        return {"key": made.key, "file": made.file, **made.facts}

    def close(self) -> None:
        """End workers and remove what was uploaded."""
        self.pool.close()
        self.uploads.close()

    async def _ask(self, request: JsonObject, state: State) -> JsonObject:
        answer = await self.pool.ask(request, f"{state.model} {state.board} {state.runtime}")
        if "refused" in answer:
            raise _Refused(str(answer["refused"]), str(answer["kind"]), {
                name: answer[name] for name in ("controls", "paths") if name in answer})
        if "bug" in answer:
            raise RuntimeError(str(answer["bug"]))
        found: JsonObject = answer["found"]
        return found


class _Refused(TwinError):
    """What a worker refused, with the class of its error, and what can be turned instead."""

    def __init__(self, message: str, kind: str, beside: JsonObject) -> None:
        super().__init__(message)
        self.kind, self.beside = kind, beside


def list_catalogue() -> JsonObject:
    """Return what there is to choose from, and how causes are drawn and explained."""
    boards = []
    for name in list_boards():
        with suppress(BoardError):  # A file of the user's own that is broken.
            boards.append(tell_board(name) | {"name": name})
    glossary = load_glossary()
    return {
        "models": list(zoo.NAMES), "boards": boards,
        "causes": [{"cause": cause, "group": group, "colour": CAUSE_STYLES[cause][0],
                    "hatch": CAUSE_STYLES[cause][1][:1],
                    "text": glossary[cause].text.partition(". ")[0].rstrip(".")}
                   for group, causes in CAUSE_GROUPS.items() for cause in causes],
        "uploads": {kind: {"largest_bytes": LARGEST_BYTES[kind], "suffixes": SUFFIXES[kind]}
                    for kind in SUFFIXES},
        "most_changes": MOST_CHANGES, "most_variants": MOST_VARIANTS,
    }


def make_app(service: Service, *, hosts: tuple[str, ...] = LOOPBACK,
             any_address: bool = False) -> Guard:
    """Return the app of a service, guarded.

    Parameters
    ----------
    service : Service
        Closed when the app ends.
    hosts, any_address
        As of `Guard`.

    Raises
    ------
    ToolMissingError
        When FastAPI is not installed.
    """
    with need_extra("live pages", "FastAPI", "serve"):
        from fastapi import FastAPI, Request
        from fastapi.responses import JSONResponse, Response
        from starlette.concurrency import run_in_threadpool

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=live)

    _add_refusals(app)
    for path, (name, media) in ASSETS.items():
        app.add_api_route(path, _send_file(Response, name, media), methods=["GET"])
    catalogue = {**list_catalogue(), "start": service.start}
    app.add_api_route("/api/catalogue", lambda: catalogue, methods=["GET"])
    for question in (service.predict, service.reprice, service.export):
        app.add_api_route(f"/api/{question.__name__}", question, methods=["POST"])

    def add_upload(path: str, kind: str) -> None:
        async def upload(request: Request) -> JSONResponse:
            content = await request.body()
            return JSONResponse(await service.upload(
                kind, request.query_params.get("name", ""), content))

        app.add_route(path, upload, methods=["POST"])

    add_upload("/api/models", "model")
    add_upload("/api/boards", "board")
    return Guard(app, hosts=hosts, any_address=any_address, bodies={
        "/api/models": LARGEST_BYTES["model"], "/api/boards": LARGEST_BYTES["board"]})


def _add_refusals(app: FastAPI) -> None:
    """Make every error of a request a document with a status."""
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    def add_refusal(error_class: type[Exception], tell: Callable[[Any], tuple[int, Any]]) -> None:
        async def refused(_: Any, error: Exception) -> JSONResponse:
            status, content = tell(error)
            return JSONResponse(content, status)

        app.add_exception_handler(error_class, refused)

    add_refusal(TwinError, _refuse)
    add_refusal(RequestValidationError,
                lambda error: _refuse(UsageError(tell_invalid(error.errors()))))
    add_refusal(HTTPException, lambda error: (error.status_code, {"error": str(error.detail)}))
    add_refusal(Exception, lambda error: (500, {"kind": "bug", "error": tell_in_one_line(
        f"a bug of twin, not of your input: {error}")}))


def _refuse(error: TwinError) -> tuple[int, JsonObject]:
    """Return a refusal as its status and document."""
    kind = getattr(error, "kind", type(error).__name__)
    return STATUS.get(kind, 422), {"error": str(error), "kind": kind,
                                   **getattr(error, "beside", {})}


def _send_file(response: Any, name: str, media: str) -> Callable[[], Any]:
    content = (FOLDER / name).read_bytes()

    def send() -> Any:
        return response(content, media_type=media)

    return send

