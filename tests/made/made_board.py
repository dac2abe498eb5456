"""A board made of Python on a pty: answers as the specification says, and misbehaves on request."""

from __future__ import annotations

import os
import select
import threading
import tty
import zlib

from made_patience import HANG_S
from made_payloads import Checksums

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import REPLY, Frame, FrameReader, encode_frame

INPUT_BYTES = 1000
LAYERS = 3
CPU_HZ = 100_000_000
CAPACITY = 64
COUNTERS = ((1, 1, 32, "cycles"), (3, 0, 32, "checksum"), (0x10, 0, 8, "dwt cpi"))
CYCLES = (1000, 2000, 3000)


class MadeBoard:
    """Answers on `port`; `faults` names ways to misbehave.

    hang_at: request type that is never answered; reboot_at_run: forgets all during that run,
    once; version: what HELLO tells; flood: sends rubbish without end after HELLO; mismatched: runs
    up to here gave another output than the first.
    """

    def __init__(self, *, hang_at: int | None = None, reboot_at_run: int | None = None,
                 version: int = 1, flood: bool = False, features: int = 0x421,
                 cycles_of=None, run_s: float = 0.0, mismatched: int = 0) -> None:
        self.hang_at, self.reboot_at_run, self.version = hang_at, reboot_at_run, version
        self.flood, self.features, self.run_s = flood, features, run_s
        self.mismatched = mismatched
        self.cycles_of = cycles_of or (lambda run, layer, cold: CYCLES[layer] + (run % 3))
        self.served: list[int] = []
        self.runs_made = 0
        self.forget()
        self.session = 0
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        tty.setraw(self._master)
        self.port = os.ttyname(self._slave)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def forget(self) -> None:
        self.session = 0
        self.input = bytearray()
        self.samples: list[bytes] = []
        self.first = 0
        self.last_request: tuple[int, bytes] | None = None
        self.last_reply = b""
        self.sequence = 0
        self.flags = 0
        self.warmup = 0
        self.configured = False

    def __enter__(self) -> MadeBoard:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join(HANG_S)
        os.close(self._master)
        os.close(self._slave)

    def _serve(self) -> None:
        reader = FrameReader()
        os.write(self._master, b"m-timestamp-mode-performance\r\nm-init-done\r\nm-ready\r\n")
        while not self._ended.is_set():
            if self.flood and self.session:
                os.write(self._master, os.urandom(256))
            ready, _, _ = select.select([self._master], [], [], 0.005 if self.flood else 0.02)
            if not ready:
                continue
            for frame in reader.feed(os.read(self._master, 4096)):
                self._take(frame)

    def _take(self, frame: Frame) -> None:
        identity = (frame.sequence, frame.type, frame.payload)
        if identity == self.last_request:
            self._send(self.last_reply)
            return
        self.served.append(frame.type)
        if frame.type == self.hang_at:
            return
        kind, payload = self._answer(frame)
        line = b"\0" + encode_frame(Frame(
            type=kind, flags=REPLY, sequence=self.sequence, reply_to=frame.sequence,
            payload=payload))
        self.sequence = (self.sequence + 1) & 0xFFFF
        self.last_request, self.last_reply = identity, line
        self._send(line)

    def _send(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._master, line):]

    def _error(self, kind: int, code: str, detail: int) -> tuple[int, bytes]:
        return wire.TYPES["ERROR"], wire.ErrorReply(
            type=kind, reserved=0, code=wire.ERRORS[code], detail=detail).pack()

    def _answer(self, frame: Frame) -> tuple[int, bytes]:
        name = next((n for n, v in wire.TYPES.items() if v == frame.type), "")
        if name == "HELLO":
            return self._hello(frame)
        if not self.session:
            return self._error(frame.type, "SESSION", self.version)
        if not hasattr(self, "_on_" + name.lower()):
            return self._error(frame.type, "TYPE", frame.type)
        answer = getattr(self, "_on_" + name.lower())(frame.payload)
        return answer if isinstance(answer, tuple) else (frame.type, answer)

    def _hello(self, frame: Frame) -> tuple[int, bytes]:
        asked = wire.Hello.parse(frame.payload)
        if self.version < asked.oldest or self.version > asked.version:
            return self._error(frame.type, "VERSION", self.version)
        resumed = self.session == asked.session
        if not resumed:
            self.forget()
            self.session = asked.session
        return frame.type, wire.HelloReply(
            version=self.version, oldest=self.version, features=self.features,
            session=self.session, resumed=int(resumed)).pack()

    def _on_identify(self, payload: bytes) -> bytes:
        return wire.Identity(
            core_id=0x410FC241, cpu_hz=CPU_HZ, timer_hz=0, features=self.features,
            input_bytes=INPUT_BYTES, output_bytes=8, arena_bytes=4096, weights_bytes=512,
            sample_capacity=CAPACITY, layers=LAYERS, counters=len(COUNTERS), counters_at_once=1,
            text_model=0, unique_id=b"0" * 16, model_sha256=b"m" * 32, build_sha256=b"b" * 32,
            port="made", model="made", compiler="none").pack()

    def _on_counters(self, payload: bytes) -> bytes:
        first = wire.Listing.parse(payload).first
        entries = COUNTERS[first:]
        return wire.Listing(first=first, count=len(entries)).pack() + b"".join(
            wire.Counter(id=i, clock=c, bits=b, name=n).pack() for i, c, b, n in entries)

    def _on_layer(self, payload: bytes):
        index = wire.Listing.parse(payload).first
        if index >= LAYERS:
            return self._error(wire.TYPES["LAYER"], "ARGUMENT", 0)
        return wire.Layer(index=index, model_layer=index, output_offset=0, output_bytes=8,
                          name=f"layer {index}").pack()

    def _on_load(self, payload: bytes):
        offset, data = int.from_bytes(payload[:4], "little"), payload[4:]
        if offset > len(self.input):
            return self._error(wire.TYPES["LOAD"], "OFFSET", len(self.input))
        if data:
            self.input = self.input[:offset] + data
        done = len(self.input) == INPUT_BYTES
        return wire.LoadReply(next=len(self.input),
                              checksum=zlib.crc32(self.input) if done else 0).pack()

    def _on_config(self, payload: bytes) -> bytes:
        config = wire.Config.parse(payload)
        self.flags, self.warmup, self.configured = config.flags, config.warmup, True
        self.first, self.samples = 0, []
        self.events = [int.from_bytes(config.event[2 * i:2 * i + 2], "little")
                       for i in range(config.events)]
        self._keep(0, wire.LAYER_SETUP, 0, 1, 5000)
        per_run = (LAYERS + 1) * (1 + len(self.events)) + 1
        return wire.ConfigReply(setup_cycles=5000, setup_clock=1, samples_per_run=per_run).pack()

    def _keep(self, run: int, layer: int, counter: int, clock: int, value: int) -> None:
        self.samples.append(wire.RawSample(run=run, layer=layer, counter=counter, clock=clock,
                                           value=value).pack())

    def _on_run(self, payload: bytes):
        if len(self.input) < INPUT_BYTES or not self.configured:
            return self._error(wire.TYPES["RUN"], "INPUT", len(self.input))
        asked = wire.Run.parse(payload)
        done = 0
        per_run = (LAYERS + 1) * (1 + len(self.events)) + 1
        cold = bool(self.flags & wire.CONFIG_FLAGS["COLD"])
        while done < asked.runs and len(self.samples) + per_run <= CAPACITY:
            run = asked.first_run + done
            if self._ended.wait(self.run_s):
                break
            self.runs_made += 1
            if self.reboot_at_run is not None and self.runs_made == self.reboot_at_run:
                self.forget()
                return self._error(wire.TYPES["RUN"], "SESSION", self.version)
            total = 0
            for layer in range(LAYERS):
                cycles = self.cycles_of(run, layer, cold)
                total += cycles
                self._keep(run, layer, 0, 1, cycles)
                for event in self.events:
                    self._keep(run, layer, 2, 0, cycles % 256 if event == 0x10 else 0)
            self._keep(run, wire.LAYER_INFERENCE, 0, 1, total)
            for _ in self.events:
                self._keep(run, wire.LAYER_INFERENCE, 2, 0, total % 256)
            self._keep(run, wire.LAYER_INFERENCE, 1, 0, 0xC0FFEE)
            done += 1
            if select.select([self._master], [], [], 0)[0]:
                break
        return wire.RunReply(first_run=asked.first_run, done=done, checksum=0xC0FFEE,
                             samples_next=self.first + len(self.samples),
                             mismatches=min(self.mismatched, asked.first_run + done),
                             reserved=0).pack()

    def _on_samples(self, payload: bytes):
        first = int.from_bytes(payload[:4], "little")
        if first < self.first:
            return self._error(wire.TYPES["SAMPLES"], "OFFSET", self.first)
        self.samples = self.samples[first - self.first:]
        self.first = first
        sent = self.samples[:29]
        return wire.SamplesReply(first=first, count=len(sent), reserved=0, reserved2=0,
                                 next=self.first + len(self.samples)).pack() + b"".join(sent)

    def _on_checksum(self, payload: bytes) -> bytes:
        return Checksums(input=zlib.crc32(self.input), output=0xC0FFEE, weights=1,
                         mismatches=0).pack()

    def _on_overhead(self, payload: bytes) -> bytes:
        reads = int.from_bytes(payload[:4], "little")
        return wire.Overhead(reads=reads, clock=1, least=4, most=6, sum=5 * reads).pack()

    def _on_status(self, payload: bytes) -> bytes:
        return wire.Status(session=self.session, loaded_bytes=len(self.input), runs=0,
                           samples_first=self.first, text=0, frames_good=0, frames_bad=0,
                           samples_next=self.first + len(self.samples)).pack()

    def _on_environment(self, payload: bytes) -> bytes:
        return wire.Environment(temperature_mc=31500, supply_mv=3300, clock_source=1,
                                cpu_hz=CPU_HZ).pack()

    def _on_idle(self, payload: bytes) -> bytes:
        return b""

    def _on_bye(self, payload: bytes) -> bytes:
        self.session = 0
        return b""
