"""Requests for the bill of a network on a board, what changes it, and what it is held to."""


from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from hwmodels.files import File, JsonObject
from hwmodels.quantities import Settings
from twin.api.requests import (
    AUTO,
    SETTINGS_HELP,
    Calibration,
    Changes,
    Fed,
    LimitedAndPriced,
    Model,
    Powered,
    Priced,
    Prices,
    Request,
    option,
    required,
)
from twin.api.requests.values import parse_settings, split_words

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment


class Duty(Fed, Priced, kw_only=True):
    """What deploys and prices a network that is fed so."""


class WhatIf(Priced):
    """A deployment, and what is changed of it."""

    deployment: "Deployment"
    changes: Settings = required("--set", "PATH=VALUE", SETTINGS_HELP, parse=parse_settings)


class Accepted(LimitedAndPriced, Powered, kw_only=True):
    """Limits of an inference and of the chip's price, and how sure one has to be of them."""

    prices: Prices = None

    @property
    def given(self) -> JsonObject:
        """Those that were given, by name."""
        return {name: limit for name, limit in self.arguments.items() if limit}


class Check(Accepted, Priced):
    """A deployment, and the limits it is held to."""

    deployment: "Deployment"
    _: KW_ONLY
    arena_bytes: int | str | None = option(
        None, "--arena-bytes", "SIZE", "The buffer a program gives the runtime, such as 65536 or "
        "64KiB: kTensorArenaSize, AI_NETWORK_DATA_ACTIVATIONS_SIZE.")
    map_file: File | None = option(
        None, "--map", "FILE", "Linker map (GNU ld, armlink) or ELF of the program it goes into: "
        "whether arena and weights have room beside it.")
    sure: bool = option(
        False, "--sure", None, "Limits are met only where the whole interval meets them: exit 1 "
        "where a limit lies inside it.")


class Cache(Priced):
    """A deployment, and the caches its accesses are counted in."""

    deployment: "Deployment"
    _: KW_ONLY
    sweep: Sequence[str] = option(
        (), "--sweep", "size,ways", "Miss ratios over cache sizes, ways, or both.",
        parse=lambda text: [axis.strip() for axis in text.split(",")])


class Port(Request):
    """A deployment on a board nobody measured, and what its prices are learnt from."""

    deployment: "Deployment"
    sources: Sequence[File] = required(
        "--from", "BOARD|DIR", "A measurement folder, learnt from alone; or a measured board, whose"
        " rows are listed: every published row is behind the prediction; may be given several "
        "times.", text=list[str])
    _: KW_ONLY
    networks: Sequence[str] = option(
        (), "--networks", "NAMES", "Learn from these networks only, by comma.", parse=split_words)


class Plan(Request):
    """A deployment that is to be known better."""

    deployment: "Deployment"
    _: KW_ONLY
    calibration: Calibration = AUTO


class Accuracy(Request):
    """A network, data of one's own, and what is changed of the network."""

    model: Model
    data: File = required("--data", "FILE", "An .npz file of inputs (x) and correct classes (y).")
    changes: Changes = None
