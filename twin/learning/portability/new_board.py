"""A board file for a part nobody described yet: what is known, and guesses that say so."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hwmodels.board.declaration import MOST_WAIT_STATES
from hwmodels.board.facts import Board
from hwmodels.board.file import SHIPPED as BOARDS
from hwmodels.board.file import list_boards, load_board
from hwmodels.board.power import REGULATORS, Power
from hwmodels.board.scales import CURRENTS
from hwmodels.core.file import OWN_CORE, SHIPPED, list_built_cores, load_core
from hwmodels.errors import BoardError, check_known, did_you_mean
from hwmodels.frozen import frozen
from hwmodels.isa import read_name
from hwmodels.quantities import format_frequency, format_size
from twin.errors import UsageError

HZ_PER_WAIT = 30e6
"""Flash of these parts answers about this often; assumed where no table is known."""

NEEDED = {"core": "--core cortex-m4", "clock_hz": "--clock 96MHz", "flash_bytes": "--flash 1MiB",
          "sram_bytes": "--sram 256KiB"}
"""What has to be stated of a board that is like none, with an example."""

LEAST_BYTES, LEAST_HZ = 1024, 1e6
"""Of a memory, and of the clock a part is described at: below them a unit was mistaken."""

OPTIONS = {"clocks.cpu.frequency_hz": "--clock", "memories.flash.size_bytes": "--flash",
           "memories.sram.size_bytes": "--sram", "memories.flash.wait_states": "--wait-states",
           "memories.flash.read_bytes": "--flash-read", "caches.icache.size_bytes": "--cache",
           "supply.voltage_v": "--supply"}
"""What asks for a key of the file, for the refusal of a file that is not kept."""

BORROWED_SD = 0.5
"""Of the logarithm of a run current that is another board's: those datasheets state of shipped
boards of one core and kind of regulator lie 0.47 apart (Cortex-M4, M7, M33; nine boards)."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@frozen
class Wanted:
    """What is known of a new board; None is to be guessed.

    Parameters
    ----------
    name
        Lower case.
    core
        One of `list_built_cores`; like the clock and both sizes by default that of `like`.
    like
        Whose facts guesses are taken from.
    wait_states
        Of the flash at that clock.
    read_bytes
        What one read of the flash array delivers.
    cache_bytes
        Of a cache in front of the flash for code, and one for data; 0: none.
    regulator
        What makes the core voltage: "ldo", "smps" or "none".
    run_ma_per_mhz
        The whole run current at that clock, supply and regulator, per megahertz.
    """

    name: str
    core: str = ""
    clock_hz: float | None = None
    flash_bytes: int | None = None
    sram_bytes: int | None = None
    like: Board | None = None
    wait_states: int | None = None
    read_bytes: int | None = None
    cache_bytes: int | None = None
    supply_v: float | None = None
    regulator: str | None = None
    run_ma_per_mhz: float | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown core, a name no file can have and a model that is not a board."""
        check_name(self.name)
        missing = [such for name, such in NEEDED.items() if not getattr(self, name)]
        if missing and self.like is None:
            raise UsageError(f"needed: {', '.join(such.split()[0] for such in missing)}; accepted: "
                             f"as {' '.join(missing)}, or --like BOARD for all of them")
        known = list_built_cores()
        if self.like is not None and (model := self.like.core.model) not in known:
            raise UsageError(f"--like {self.like.name}: no file can be written of a {model}; "
                             f"accepted: a board with one of {', '.join(known)}")
        object.__setattr__(self, "core", read_name(
            self.core or self.like.core.model))  # type: ignore[union-attr]
        if self.core not in known:
            raise UsageError(f"--core {self.core!r}; {did_you_mean(self.core, known)}; "
                             f"{OWN_CORE}")
        if self.regulator is not None:
            check_known("--regulator", self.regulator, [*map(str, REGULATORS.words)], UsageError)
        for option, size_bytes in (("--flash", self.flash_bytes), ("--sram", self.sram_bytes)):
            if size_bytes is not None and size_bytes < LEAST_BYTES:
                raise UsageError(f"{option}: {size_bytes} bytes, less than any part has; accepted: "
                                 f"{format_size(LEAST_BYTES)} or more")
        if self.clock_hz is not None and self.clock_hz < LEAST_HZ:
            raise UsageError(f"--clock: {format_frequency(self.clock_hz)}; accepted: "
                             f"{format_frequency(LEAST_HZ)} or more, what the part runs at; "
                             "--clock of other commands then lowers it")


def check_name(name: str) -> None:
    """Refuse a name no file can have, or that is taken; raises `UsageError`."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"board name {name!r}; accepted: lower-case letters, digits and _, "
                         "a letter first")
    if name in list_boards():
        raise UsageError(f"{name} exists already: twin boards {name}; accepted: another name")


@frozen
class Guesses:
    """What is guessed unless it is known; see `Wanted`.

    `caches` names that of code and that of data, if it has one.
    `sources` say of each guess, by its key in the file, which board or family it is borrowed from.
    """

    clock_hz: float
    flash_bytes: float
    sram_bytes: float
    hz_per_wait: float
    read_bytes: int
    cache_bytes: int
    line_bytes: int
    ways: int
    replacement: str
    caches: tuple[str, ...]
    supply_v: float
    regulator: str
    sources: Mapping[str, str]

    @property
    def wait_states(self) -> int:
        """Of the flash at the clock of the core."""
        return math.ceil(self.clock_hz / self.hz_per_wait - 1e-9) - 1


def guess(wanted: Wanted) -> Guesses:
    """Guess what a board is like from another, or from its core.

    Of the board it is like are taken over: clock and sizes that are not stated, geometry, supply
    and currents as they are, wait states as often as it has them.
    """
    core, like = wanted.core, wanted.like
    if like is None:
        own, family = load_core(core).traits.own_caches, _name_family(core)
        usual, why = _find_usual(core)
        geometry = _take_caches(usual) if usual else {
            "cache_bytes": 16384 if own else 0, "line_bytes": 32, "ways": 4, "replacement": "lru",
            "caches": ("icache", "dcache")}
        return Guesses(
            **geometry, clock_hz=wanted.clock_hz or 0.0, flash_bytes=wanted.flash_bytes or 0,
            sram_bytes=wanted.sram_bytes or 0, hz_per_wait=HZ_PER_WAIT, read_bytes=16,
            supply_v=3.3, regulator="ldo",
            sources={
                "waits": f"guessed: one wait state each {HZ_PER_WAIT / 1e6:.0f} MHz, {family}",
                "array": f"guessed: 128 bits a read, {family}",
                "caches": f"guessed: {why}" if usual else
                          f"guessed: {'16 KiB' if own else 'none, else'} of 32-byte lines, "
                          f"4 ways, {family}",
                "supply": f"guessed: a linear regulator, 3.3 V, {family}",
                "currents": "not known: --like BOARD or --run-current gives it; 0.8 instructions "
                            "a cycle, and a third of activity while waiting, are guesses"})
    flash, sram = (like.memory(dict(like.placement)[role]) for role in ("weights", "arena"))
    cache = like.cache(like.core.dcache) or like.cache(like.core.icache)
    return Guesses(
        **_take_caches(like), clock_hz=wanted.clock_hz or like.core_clock.frequency_hz,
        flash_bytes=flash.size_bytes, sram_bytes=sram.size_bytes,
        hz_per_wait=like.core_clock.frequency_hz / (flash.wait_states + 1),
        read_bytes=flash.read_bytes, supply_v=like.power.voltage_v,
        regulator=like.power.regulator,
        sources={key: f"borrowed from {like.name}: its {what}" for key, what in {
            "sizes": f"clock, {flash.name} and {sram.name}",
            "waits": "wait states in proportion to the clock", "array": flash.name,
            "caches": cache.name if cache else "having none",
            "supply": "supply, core voltage and efficiency", "currents": "currents"}.items()})


def _take_caches(like: Board) -> dict[str, Any]:
    """Return what `Guesses` says of the caches of a board."""
    code, data = like.core.icache, like.core.dcache
    cache = like.cache(data) or like.cache(code)
    return {"cache_bytes": cache.size_bytes if cache else 0,
            "line_bytes": cache.line_bytes if cache else 32, "ways": cache.ways if cache else 1,
            "replacement": cache.replacement if cache else "lru",
            "caches": ("cache", "cache") if code == data else ("icache",) if data is None else (
                "icache", "dcache")}


def _find_usual(core: str) -> tuple[Board | None, str]:
    """Return the shipped board of a core with the usual cache before its flash, and what is usual.

    Median of the sizes; None where no more than half of them have one.
    """
    boards = [board for path in sorted(BOARDS.glob("*.yaml"))
              if (board := load_board(path.stem)).core.model == core
              and board.memory(dict(board.placement)["code"]).role == "flash"]
    cached = sorted((board for board in boards if board.core.icache is not None),
                    key=lambda board: board.caches[0].size_bytes)
    if 2 * len(cached) <= len(boards):
        return None, ""
    usual = cached[(len(cached) - 1) // 2]
    return usual, (f"as {usual.name}; {len(cached)} of {len(boards)} shipped boards with a {core} "
                   "have a cache before their flash")


def _name_family(core: str) -> str:
    """Say which parts a guess is of: no part is known with a core of one's own."""
    known = (SHIPPED / f"{core}.yaml").is_file()
    return f"as most parts with a {core} have it" if known else "as most microcontrollers have it"


def write_board(wanted: Wanted, path: str | Path) -> tuple[Path, Board]:
    """Write a board file and read it back.

    Parameters
    ----------
    path
        Where; an existing file is never replaced.

    Returns
    -------
    tuple of (Path, Board)
        The file, and what it says.

    Raises
    ------
    UsageError
        When the file exists or cannot be written, or a guess is beyond what its option accepts.
    BoardError
        When no part can be like that.
    """
    path = Path(path)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{path}: a board file ends in .yaml")
    text = describe_board(wanted)
    try:
        with open(path, "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path}: exists and is not replaced; accepted: another --output") \
            from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        return path, load_board(path)
    except BoardError as error:
        path.unlink()
        said = str(error)
        for key, option in OPTIONS.items():
            said = said.replace(f"{path}:{key}:", f"{path}:{key}, of {option}:", 1)
        raise BoardError(f"{said}; nothing is written") from error


def describe_board(wanted: Wanted) -> str:
    """Return the text of a board file: some 40 lines, guesses marked `assumed`."""
    guesses = guess(wanted)
    if wanted.wait_states is None and guesses.wait_states > MOST_WAIT_STATES:
        raise UsageError(f"--clock: at {format_frequency(guesses.clock_hz)} the guess would be "
                         f"{guesses.wait_states} wait states of the flash; accepted: a lower "
                         f"--clock, or your own --wait-states, up to {MOST_WAIT_STATES}")

    def fact(given: float | None, guessed: float = 0.0, source: str = "") -> str:
        return (_assume(f"{guessed:.10g}", source) if given is None else
                f"[{given:.10g}, datasheet, given]")

    # Without another board: of what may as well be none or twice as much.
    assume = partial(_assume, rel_sd=float(wanted.like is None))
    cache_bytes = guesses.cache_bytes if wanted.cache_bytes is None else wanted.cache_bytes
    traits = load_core(wanted.core).traits
    looked_up = "".join(f", {role}: {name}" for role, name in zip(
        ("icache", "dcache"), guesses.caches, strict=False) if cache_bytes)
    size = fact(wanted.cache_bytes, cache_bytes, "caches") if (
        traits.own_caches or wanted.cache_bytes is not None) else assume(cache_bytes, "caches")
    caches = "".join(
        f"  {name}: {{size_bytes: {size}, line_bytes: [{guesses.line_bytes}, assumed, caches], "
        f"ways: [{guesses.ways}, assumed, caches],\n    replacement: [{guesses.replacement}, "
        "assumed, caches], allocate: read, serves: [flash]}\n"
        for name in dict.fromkeys(guesses.caches) if cache_bytes)
    waits = f"wait_states: {fact(wanted.wait_states)}"
    if wanted.wait_states is None:  # of other clocks, too: those of a what-if
        highest = ", ".join(f"{math.ceil(states * guesses.hz_per_wait - 1e-3) / 1e6:.10g}MHz"
                            for states in range(1, 2 * guesses.wait_states + 3))
        waits = f"wait_states_max_hz: {{default: {assume(f'[{highest}]', 'waits')}}}"
    text = _BOARD.format(
        name=wanted.name, soc=_name_part(wanted), core=wanted.core, isa=traits.isa,
        clock=fact(wanted.clock_hz, guesses.clock_hz, "sizes"),
        sram=fact(wanted.sram_bytes, guesses.sram_bytes, "sizes"),
        flash=fact(wanted.flash_bytes, guesses.flash_bytes, "sizes"),
        fpu=f", fpu: {traits.fpu}" if traits.fpu else "",
        supply=fact(wanted.supply_v, guesses.supply_v, "supply"), looked_up=looked_up,
        caches=f"caches:\n{caches}" if caches else "", cacheable=str(bool(caches)).lower(),
        waits=textwrap.fill(waits, 98, initial_indent=" " * 10, subsequent_indent=" " * 12),
        read=assume(guesses.read_bytes, "array") if wanted.read_bytes is None
        else fact(wanted.read_bytes), sources="{sources}",
        **_describe_power(wanted, guesses))
    used = [f'  {key}: "{said}"' for key, said in _describe_sources(wanted, guesses).items()
            if re.search(rf"(assumed,|source:)\s+{key}\b", text)]
    return text.replace("{sources}", "\n".join(used))


def _assume(value: object, source: str, rel_sd: float = 0.0) -> str:
    """Write a guess, and how unsure it is where that is stated."""
    written = "null" if value is None else value
    return f"[{written}, assumed, {source}]" if not rel_sd else (
        f"{{value: {written}, kind: assumed, source: {source}, rel_sd: {rel_sd:.3g}}}")


def _name_part(wanted: Wanted) -> str:
    """Return a name of the chip that begins as those of its maker do: of the board it is like."""
    family = wanted.like and re.match(r"([a-z]+)\d*([a-z]\d)?", wanted.like.soc)
    return f"{family[0]}-{wanted.name}" if family and not wanted.name.startswith(family[1]) else (
        wanted.name)


def _describe_sources(wanted: Wanted, guesses: Guesses) -> dict[str, str]:
    """Return what each source a guess may name says."""
    said = {"map": f"guessed: {_name_family(wanted.core)}", **guesses.sources}
    if wanted.like is None and (wanted.supply_v is not None or wanted.regulator is not None):
        guessed = [*(["a linear regulator"] if wanted.regulator is None else []),
                   *(["3.3 V"] if wanted.supply_v is None else [])]
        said["supply"] = (f"guessed: {guessed[0]}, {_name_family(wanted.core)}" if guessed else
                          "guessed: currents are those at the supply voltage and regulator given")
    if wanted.run_ma_per_mhz is not None:
        parts = ("a third of it the clock tree's, none leaks (guessed)" if wanted.like is None else
                 f"parted in the proportions of {wanted.like.name}")
        said["split"] = f"--run-current {1e3 * wanted.run_ma_per_mhz:g} uA/MHz, given; {parts}"
    return said


def _describe_power(wanted: Wanted, guesses: Guesses) -> dict[str, str]:
    """Return what the file says of supply and currents, by name of its place in `_BOARD`."""
    like, regulator = wanted.like, wanted.regulator or guesses.regulator
    power, facts = (None, {}) if like is None else (
        like.power, {fact.path: fact for fact in like.facts})

    def assume(value: object, source: str = "supply", path: str = "", more_sd: float = 0.0) -> str:
        """Write a guess, at least as unsure as the file it is borrowed from has it."""
        stated = facts.get(path)
        return _assume(value, source, math.hypot(more_sd, (stated and stated.rel_sd) or 0.0))

    core_v = None if power is None else power.core_voltage_v
    more = "" if core_v is None else f", core_voltage_v: {{default: {assume(core_v)}}}"
    if efficiency := facts.get(by_v := "supply.efficiency_by_v"):
        more += f",\n         efficiency_by_v: {assume(efficiency.value, path=by_v)}"
    reference_v, reference = wanted.supply_v or guesses.supply_v, regulator
    currents: tuple[float | None, ...] = (None,) * 3
    taken, scale, borrowed_sd, idle, idle_hz = "currents", "", 0.0, "", ""
    if wanted.run_ma_per_mhz is not None:
        taken = "split"
        currents = split_current(wanted.run_ma_per_mhz, guesses.clock_hz, power)
    elif power is not None:
        reference_v, reference = power.reference_voltage_v, (
            power.reference_regulator or power.regulator)
        currents = tuple(getattr(power, name) for name in CURRENTS)
        scale, borrowed_sd = power.voltage_scale, BORROWED_SD
        idle = f"  boundary: {power.boundary}\n" * (power.boundary != "chip")
        idle += "  of_networks: true\n" * power.of_networks
        if power.idle_mw is not None:
            idle += f"  idle_mw: {assume(power.idle_mw, taken, 'power.idle_mw', BORROWED_SD)}\n"
            hertz = like and like.core_clock.idle_hz
            idle_hz = f", idle_hz: {assume(f'{hertz:.10g}', taken)}" if hertz else ""
    leakage, tree, activity = (
        assume(value if value is None else f"{value:.4g}", taken, f"power.{name}.{scale}",
               borrowed_sd)
        for name, value in zip(CURRENTS, currents, strict=True))
    of_loop = taken if power is None else "currents"
    ipc, stall = (0.8, 0.35) if power is None else (
        power.reference_ipc or 0.8, power.stall_share or 0.35)
    return {"regulator": regulator, "more": more, "reference": reference,
            "reference_v": assume(f"{reference_v:g}"), "leakage": leakage, "tree": tree,
            "activity": activity, "idle": idle, "idle_hz": idle_hz,
            "ipc": assume(ipc, of_loop, "power.reference_ipc"),
            "stall": assume(stall, of_loop, "power.stall_share")}


def split_current(run_ma_per_mhz: float, clock_hz: float,
                  like: Power | None) -> tuple[float, float, float]:
    """Split a run current into leakage, clock tree and activity.

    Parameters
    ----------
    run_ma_per_mhz
        The whole current over the clock.
    like
        Whose proportions at that clock are taken; without them a third is the clock tree's and
        nothing leaks.

    Returns
    -------
    tuple of float
        mA, mA/MHz, mA/MHz: leakage + MHz x (clock tree + activity) is the stated current.
    """
    mhz, parts = clock_hz / 1e6, (0.0, 1 / 3, 2 / 3)
    if like is not None and like.clock_tree_ma_per_mhz and like.activity_ma_per_mhz:
        parts = (like.leakage_ma or 0.0, like.clock_tree_ma_per_mhz, like.activity_ma_per_mhz)
    scale = run_ma_per_mhz * mhz / (parts[0] + mhz * (parts[1] + parts[2]))
    return parts[0] * scale, parts[1] * scale, parts[2] * scale


_BOARD = """\
schema: 1
sources:
  given: "stated by the user of `twin boards new`; name the page of the datasheet here"
{sources}
board:
  name: {name}
  soc: {soc}  # its beginning names the maker, whose libraries the chip can run
  core_family: {core}
  description: "{core}, described by `twin boards new`"
supply: {{voltage_v: {supply}, regulator: {regulator}{more}}}
clocks: {{cpu: {{frequency_hz: {clock}, max_hz_by_scale: {{default: {clock}}}{idle_hz}}}}}
cores: {{main: {{isa: {isa}, model: {core}, clock: cpu{fpu}{looked_up}}}}}
{caches}memories:
  sram: {{role: sram, address: [0x20000000, assumed, map], size_bytes: {sram}, cacheable: false,
         latency: {{cycles: [1, assumed, map]}}}}
  flash: {{role: flash, address: [0x08000000, assumed, map], size_bytes: {flash},
          cacheable: {cacheable}, read_bytes: {read}, line_buffer: true,
{waits}}}
power:
  reference_voltage_v: {reference_v}
  reference_regulator: {reference}
  leakage_ma: {{default: {leakage}}}
  clock_tree_ma_per_mhz: {{default: {tree}}}
  activity_ma_per_mhz: {{default: {activity}}}
  reference_ipc: {ipc}
  stall_share: {stall}
{idle}placement: {{weights: flash, arena: sram, code: flash}}
"""
