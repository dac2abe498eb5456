"""Requests for a network as an image: built, exported, flashed, run, compiled in several ways."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from typing import Annotated

from hwmodels.files import File
from hwmodels.isa import DEFAULT
from twin.api.requests import Arena, BoardName, Model, Option, Request, Weights, option, required
from twin.api.requests.values import split_words

Folder = Annotated[File | None, Option(
    "--output -o", "DIR", "Folder of sources and image; by default below build/.")]
PortName = Annotated[str | None, Option(
    "--port", "NAME", "Port of firmware/ports; by default the board's own.")]
Compiler = Annotated[str | None, Option(
    "--compiler", "gcc|clang", "Compiler; by default gcc, or clang if only ziglang is installed.")]
Optimisation = Annotated[str, Option("--opt", "LEVEL", "-O2, -O3, -Os ...")]
Kernels = Annotated[str, Option(
    "--kernels", "own|cmsis-nn", "Ours, or those of the checkout that CMSIS_NN_PATH names; by "
    "default cmsis-nn where it is set.")]
Virtual = Annotated[str | None, Option(
    "--virtual", "NAME", "A virtual board (`twin boards --virtual`), or host.")]
Image = Annotated[File | None, Option(
    "--image", "FILE", "An image built before; else it is built.")]


class Compiled(Request):
    """A network, the board it is compiled for, and how."""

    model: Model
    board: BoardName
    _: KW_ONLY
    output: Folder = None
    port: PortName = None
    compiler: Compiler = None
    optimisation: Optimisation = "-O2"


class Build(Compiled, kw_only=True):
    """A network, a board, and how it is compiled for it."""

    kernels: Kernels = ""
    weights: Weights = None
    arena: Arena = None


class Export(Request):
    """A network, and the project it becomes part of."""

    model: Model
    _: KW_ONLY
    output: File = required("--output -o", "DIR", "Folder for twin_network.c and twin_network.h.")
    isa: str = option(
        DEFAULT, "--isa", "NAME", "Instruction set the project is compiled for, as in `twin "
        "boards`.")


class Flash(Compiled, kw_only=True):
    """An image, or the network it is built of, and the board it is written to."""

    image: Image = None


class Run(Request):
    """A network, and the board, virtual or flashed, it runs on."""

    model: Model
    board: BoardName
    _: KW_ONLY
    virtual: Virtual = None
    device: str | None = option(
        None, "--device", "PORT", "Serial device of a board that was flashed.")
    port: PortName = None
    compiler: Compiler = None
    optimisation: Optimisation = "-O2"
    kernels: Kernels = ""
    image: Image = None
    runs: int = option(1, "--runs", None, "Inferences; the least count is shown.", least=1)


class Compare(Request):
    """A network on a board, and the compilers and levels it is built with."""

    model: Model
    board: BoardName
    _: KW_ONLY
    virtual: Virtual = None
    compilers: Sequence[str] | None = option(
        None, "--compilers", "NAMES", "gcc, clang, or both by comma; by default those there are.",
        parse=split_words)
    optimisations: Sequence[str] = option(
        ("-Os", "-O2", "-O3"), "--opts", "LEVELS", parse=split_words, default="-Os,-O2,-O3")
    on_remark: Callable[[str], None] = lambda remark: None
