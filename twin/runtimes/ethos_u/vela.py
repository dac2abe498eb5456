"""Vela, the compiler of Ethos-U: run as a child process with limits, and its result, read.

What is taken of it are the command streams, sizes of memories and which operator of the file each
command comes from; of its estimates only the summary, for whoever asks to see it beside ours. Of
one network and one machine it runs once: the result is kept as files read once are.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

from hwmodels.board.npu import Npu, Pool
from hwmodels.errors import ToolMissingError, check_word, extra_missing, reworded
from hwmodels.file_cache import make_once
from hwmodels.files import LARGEST_YAML_BYTES, read_regular, read_regular_text, write_whole
from hwmodels.frozen import NamedTexts, frozen
from twin.errors import RuntimeRefusedError
from twin.runtimes.ethos_u.container import CompiledFile, read_compiled
from twin.runtimes.ethos_u.traffic import MODES

TIME_LIMIT_S = 600
"""Of one compilation; `TWIN_VELA_SECONDS` sets another."""

MEMORY_LIMIT_BYTES = 8 << 30
"""Of the compiler's address space."""

Sources = tuple[tuple[int, int], ...]
"""Byte of a command, and the operator of the network it comes from."""

OPTIMISE = ("Performance", "Size")


@frozen
class Compilation:
    """What Vela made of a network.

    Parameters
    ----------
    sources : tuple of (tuple of (int, int))
        For each stream: byte of a command, and the operator of the network it comes from.
    warnings
        What it says of operators it leaves to the CPU.
    summary : tuple of (str, str)
        Its own estimate, by the columns of its summary; no prediction reads it.
    """

    version: str
    file: CompiledFile
    sources: tuple[Sources, ...]
    warnings: tuple[str, ...]
    summary: NamedTexts


def find_vela() -> str:
    """Return the command: `TWIN_VELA`, the one of this environment, or of the path.

    Raises
    ------
    ToolMissingError
        When there is none.
    """
    beside = Path(sys.executable).with_name("vela")
    stated = os.environ.get("TWIN_VELA")
    found = stated or (str(beside) if beside.is_file() else shutil.which("vela"))
    if stated and not Path(stated).is_file():
        raise ToolMissingError(f"TWIN_VELA: {stated}: no such file; accepted: the program vela, or "
                               "unset for the environment's")
    if found is None or not os.access(found, os.X_OK):
        raise extra_missing("models before Vela", "ethos-u-vela", "ethos")
    return found


@lru_cache(maxsize=4)
def version_of(command: str, changed_ns: int) -> str:
    """Return the version of a Vela; `changed_ns` is when its file was last written.

    Of this environment's it is read, as the command takes longer than a prediction to start.
    """
    if Path(command).parent == Path(sys.executable).parent:
        for folder in Path(sysconfig.get_path("purelib")).glob("ethos_u_vela-*.dist-info"):
            return folder.name.removeprefix("ethos_u_vela-").removesuffix(".dist-info")
    version = " ".join(_run([command, "--version"], 60).split()[-1:])
    if not re.fullmatch(r"\d+\.[\w.]+", version):
        raise ToolMissingError(f"{command} --version prints no version; accepted: vela of "
                               "ethos-u-vela")
    return version


def compile_network(content: bytes, npu: Npu, host: tuple[str, ...] = (),
                    alive_bytes: int = 0) -> Compilation:
    """Compile a .tflite file for an accelerator, or return what was made of it before.

    Vela is given the size of the fast scratch only where the network needs more than that: where
    it is given one, release 5.2 may first copy the input there, which is slower by Vela's own
    estimate and by this model; earlier releases compile the same with and without.

    Parameters
    ----------
    npu
        Configuration, memory mode and memories it is compiled for.
    host
        Operators of TensorFlow Lite that are left to the CPU.
    alive_bytes
        The most bytes of activations alive at once.

    Raises
    ------
    ToolMissingError
        When Vela is not installed, fails, or takes more than its limits.
    RuntimeRefusedError
        When the board states a memory mode or a strategy that is not known.
    """
    check_memory_mode(npu)
    check_word("npu.optimise:", npu.optimise, OPTIMISE, RuntimeRefusedError)
    command = find_vela()
    version = version_of(command, os.stat(command).st_mtime_ns)
    extra = _read_own(npu)
    scratch_bytes = npu.scratch_bytes or npu.pools[0].size_bytes

    def make(limit_bytes: int) -> Compilation:
        settings = write_settings(npu, limit_bytes)
        asked = (version, npu.config, npu.optimise, system_of(npu), *host, settings)
        key = "\0".join(asked).encode() + extra + content
        return make_once("vela", hashlib.sha256(key).hexdigest()[:16], key, Path(__file__).parent,
                         lambda: _compile(command, version, content, npu, settings, host))

    if alive_bytes > scratch_bytes:
        return make(scratch_bytes)
    made = make(0)
    most = max((stream.scratch_bytes for stream in made.file.streams), default=0)
    return make(scratch_bytes) if most > scratch_bytes else made


def check_memory_mode(npu: Npu) -> None:
    """Refuse a memory mode Vela does not have."""
    check_word("npu.memory_mode:", npu.memory_mode, MODES, RuntimeRefusedError)


def _read_own(npu: Npu) -> bytes:
    """Return the user's own settings of Vela, where the board names a file of them."""
    if not npu.compiler_file:
        return b""
    try:
        return read_regular(npu.compiler_file, LARGEST_YAML_BYTES)
    except OSError as error:
        raise RuntimeRefusedError(
            f"npu.compiler_file: {npu.compiler_file}: {error.strerror}; "
            "accepted: a file of Vela's settings") from error


def write_settings(npu: Npu, scratch_bytes: int) -> str:
    """Return the configuration Vela is given: its system, and the memory mode.

    The size of the fast scratch is stated where it is not 0, of the mode that has one.

    A board that names a system of Vela's own (`npu.pools.NAME.system`) is compiled for that; any
    other for one written from the facts of its pools.
    """
    inner, outer = npu.pools[0], npu.pools[min(1, len(npu.pools) - 1)]
    places = MODES[npu.memory_mode]
    lines = ["[Memory_Mode.twin]", *(f"{part}_mem_area=Axi{place}" for part, place in zip(
        ("const", "arena", "cache"), places, strict=True))]
    if npu.memory_mode == "Dedicated_Sram" and scratch_bytes:
        lines.append(f"arena_cache_size={scratch_bytes}")
    if system_of(npu):
        return "\n".join(lines) + "\n"
    ports = dict(npu.rates)["inner_ports"]
    names = ("Sram", "Dram" if "Dedicated" in npu.memory_mode else "OffChipFlash")
    lines += ["", "[System_Config.twin]", f"core_clock={npu.frequency_hz:.0f}",
              f"axi0_port={names[0]}", f"axi1_port={names[1]}"]
    bursts = (64 if npu.config.startswith("ethos-u85") else 32, 128)  # as Arm's own systems
    for name, pool, count, burst in zip(
            names, (inner, outer), (ports, max(1, len(npu.interfaces) - ports)), bursts,
            strict=True):
        lines += _describe_pool(name, pool, npu, int(count), burst)
    return "\n".join(lines) + "\n"


def system_of(npu: Npu) -> str:
    """Return the name of Vela's own system the board names, or ""."""
    return next((pool.system for pool in npu.pools if pool.system), "")


def _describe_pool(name: str, pool: Pool, npu: Npu, ports: int, burst: int) -> list[str]:
    width = npu.interfaces[0].width_bytes * ports
    ratio = float(pool.clock_ratio)
    scale = min(1.0, pool.bytes_per_cycle / ratio / width)
    facts = {
        "clock_scale": f"{scale:.6f}", "burst_length": str(burst),
        "read_latency": str(max(1, round(pool.read_latency_cycles * ratio))),
        "write_latency": str(max(1, round(pool.write_latency_cycles * ratio))),
        "max_reads": str(pool.reads_in_flight or 8), "max_writes": str(pool.writes_in_flight or 8)}
    if npu.config.startswith("ethos-u85"):
        facts["ports_used"] = str(ports)
    return [f"{name}_{fact}={value}" for fact, value in facts.items()]


def _compile(command: str, version: str, content: bytes, npu: Npu, settings: str,
             host: tuple[str, ...]) -> Compilation:
    with tempfile.TemporaryDirectory(prefix="twin-vela-") as folder:
        model, config = Path(folder, "network.tflite"), Path(folder, "twin.ini")
        write_whole(model, content, awaited=False)
        write_whole(config, settings.encode(), awaited=False)
        system = system_of(npu)
        own = npu.compiler_file or ("Arm/vela.ini" if system else "")
        configs = [*(("--config", own) if own else ()), "--config", str(config),
                   *(("--ignore-ops", ",".join(host)) if host else ())]
        given = reworded(ToolMissingError, RuntimeRefusedError,
                         f"npu.compiler_file: {npu.compiler_file}: ")
        with given if npu.compiler_file else _name_system(npu):
            text = _run([command, str(model), "--accelerator-config", npu.config, *configs,
                         "--system-config", system or "twin", "--memory-mode", "twin",
                         "--optimise", npu.optimise, "--enable-debug-db", "--output-dir", folder],
                        _limit_s())
        made = sorted(Path(folder).glob("*_vela.tflite"))
        if not made:
            raise ToolMissingError(f"vela {version} wrote no network: {_last_line(text)}")
        file = read_compiled(read_regular(made[0]), "Vela's output")
        debug = next(iter(Path(folder).glob("*_debug.xml")), None)
        table = next(iter(Path(folder).glob("*_summary_*.csv")), None)
        return Compilation(
            version=version, file=file, warnings=tuple(_list_warnings(text)),
            sources=_read_sources(read_regular_text(debug) if debug else "", len(file.streams)),
            summary=_read_summary(read_regular_text(table)) if table else ())


@contextlib.contextmanager
def _name_system(npu: Npu) -> Iterator[None]:
    """Refuse a system Vela does not have by its key."""
    try:
        yield
    except ToolMissingError as error:
        pool = next((pool for pool in npu.pools if pool.system), None)
        if pool is None or f"System_Config.{pool.system} not found" not in str(error):
            raise
        files = (Path(sysconfig.get_path("purelib")) / "ethosu/config_files").glob("Arm/vela.ini")
        own = [name for file in files for name in re.findall(
            r"^\[System_Config\.(\w+)\]", read_regular_text(file), re.MULTILINE)]
        raise RuntimeRefusedError(
            f"npu.pools.{pool.name}.system: {pool.system!r}; accepted: "
            + (", ".join(own) or "a system of its Arm/vela.ini")) from error


def _limit_s() -> int:
    stated = os.environ.get("TWIN_VELA_SECONDS") or str(TIME_LIMIT_S)
    if not stated.isdecimal() or not int(stated):
        raise ToolMissingError(f"TWIN_VELA_SECONDS: {stated!r}; accepted: a whole number from 1")
    return int(stated)


def _run(command: list[str], seconds: int) -> str:
    """Run a child within its limits; it gets no input and is ended with this process's group."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        _limit_memory(child.pid)
        text, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ToolMissingError(f"vela took more than {seconds} s; TWIN_VELA_SECONDS sets another "
                               "limit") from None
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    if child.returncode:
        ended = (f"vela was ended by signal {-child.returncode}, as for want of memory"
                 if child.returncode < 0 else f"vela failed ({child.returncode})")
        raise ToolMissingError(f"{ended}: {_last_line(text)}")
    return text


def _limit_memory(process: int) -> None:
    try:
        import resource

        resource.prlimit(process, resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    except (ImportError, AttributeError, OSError, ValueError):
        return  # No such system, or it has ended.


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b", line)]
    return (errors or lines)[-1][:300] if lines else "it printed nothing"


def _list_warnings(text: str) -> list[str]:
    """Return what Vela says of operators, without its words on its own options."""
    return [line.removeprefix("Warning:").strip()[:300] for line in text.splitlines()
            if line.startswith("Warning:") and "on the CPU" in line.replace("on CPU", "on the CPU")]


def _read_sources(text: str, streams: int) -> tuple[Sources, ...]:
    """Return, for each stream, bytes of commands and operators of the network, from the database.

    A command is of an operation of the optimised network, that of an operator of the source, whose
    `ext_key` is its place in the file; one Vela made itself has none.
    """
    try:
        return _list_sources(ElementTree.fromstring(text), streams)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise ToolMissingError(f"vela's debug database is not understood ({error!r}), which says "
                               "what layer a command is of; accepted: that of ethos-u-vela "
                               "4.5 to 5.2") from None


def _list_sources(database: ElementTree.Element,
                  streams: int) -> tuple[Sources, ...]:
    tables = {table.get("name"): list(csv.DictReader((table.text or "").strip().splitlines()))
              for table in database.iter("table")}
    places = {row["id"]: int(row["ext_key"]) for row in tables.get("source", ())
              if re.fullmatch(r"\d+", row.get("ext_key") or "")}
    sources = {row["id"]: places[row["source_id"]] for row in tables.get("optimised", ())
               if row.get("source_id") in places}
    numbers = [row["id"] for row in tables.get("cmdstream", ())]
    found: list[list[tuple[int, int]]] = [[] for _ in range(streams)]
    for row in tables.get("queue", ()):
        stream = numbers.index(row["cmdstream_id"]) if row["cmdstream_id"] in numbers else -1
        if 0 <= stream < streams and row["optimised_id"] in sources:
            found[stream].append((int(row["offset"]), sources[row["optimised_id"]]))
    return tuple(tuple(sorted(own)) for own in found)


def _read_summary(text: str) -> NamedTexts:
    rows = list(csv.DictReader(text.splitlines()))
    return tuple((name, value or "") for name, value in rows[0].items()) if rows else ()
