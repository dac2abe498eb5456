"""The request for the live what-if."""

from collections.abc import Callable
from dataclasses import KW_ONLY

from hwmodels.files import File
from twin.api.requests import Changes, Request, Runtime, option
from twin.errors import UsageError

HOST, PORT = "127.0.0.1", 8787


def parse_port(text: str) -> int:
    """Read a port's number; raises `UsageError`."""
    if not text.isdecimal():
        raise UsageError(f"--port {text!r}; accepted: a number from 0 to 65,535")
    return int(text)


class Serve(Request):
    """What the page opens with, and where it is answered."""

    model: File | None = option(
        None, "", "[MODEL]", "What the page opens with: a .tflite or .onnx file, or a network of "
        "`twin models`.")
    board: File | None = option(
        None, "--board -b", "BOARD", "The board it opens with: of `twin boards`, or a board file.")
    _: KW_ONLY
    runtime: Runtime = None
    settings: Changes = None
    host: str = option(
        HOST, "--host", "ADDRESS", "Address to listen on; 0.0.0.0 serves other machines, too.")
    port: int = option(
        PORT, "--port", "PORT", "Port to listen on; 0: any free one.", parse=parse_port,
        default=str(PORT))
    on_ready: Callable[[str], None] | None = None
